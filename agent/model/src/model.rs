//! A loaded model: bundle, plan, threads. It is immutable and shared by its conversations.

use std::sync::Arc;

use mote_kernels::{Activations, Pool, rope_table};
use tract_core::internal::*;

use crate::bundle::Bundle;
use crate::cache::{KvCache, cache_bytes};
use crate::conversation::Conversation;
use crate::error::{Error, ErrorKind, Result};
use crate::graph;
use crate::ops::Workspace;
use crate::threads::physical_cores;
use crate::tokenizer::Tokenizer;

pub(crate) type Plan = SimplePlan<TypedFact, Box<dyn TypedOp>>;

/// How to load a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// Threads that compute; 0 takes the physical cores.
    pub threads: usize,
    /// Tokens of the context window; 0 takes the manifest's `context_length`.
    pub context: usize,
}

/// A model that can hold conversations; clones share it.
#[derive(Clone)]
pub struct Model {
    inner: Arc<Inner>,
}

struct Inner {
    bundle: Bundle,
    plan: Arc<Plan>,
    pool: Arc<Pool>,
    rope_table: Arc<[f32]>,
    context: usize,
}

impl Model {
    /// Builds the plan of the bundle's graph and starts the threads.
    ///
    /// # Errors
    /// `Argument` for a context longer than the model's, `Format` or `Shape` for a graph that does not fit the bundle,
    /// `Runtime` if the system refuses threads.
    pub fn load(bundle: Bundle, options: &LoadOptions) -> Result<Model> {
        let architecture = &bundle.manifest().architecture;
        let limit = bundle.manifest().context_length;
        let context = if options.context == 0 { limit } else { options.context };
        if context > limit {
            let message = format!("the context is longer than the model's {limit} tokens: {context}");
            return Err(Error::new(ErrorKind::Argument, message).hint("ask for a smaller context"));
        }
        let threads = if options.threads == 0 { physical_cores() } else { options.threads };
        let pool = Pool::new(threads).map_err(|e| Error::new(ErrorKind::Runtime, e.to_string()))?;
        let plan = graph::read(&bundle.graph, &bundle.weights, architecture)?
            .into_optimized()
            .and_then(SimplePlan::new)
            .map_err(|e| runtime(&e))?;
        let rope_table = rope_table(architecture.head_dim, f64::from(architecture.rope_theta), context).into();
        Ok(Model { inner: Arc::new(Inner { bundle, plan, pool: Arc::new(pool), rope_table, context }) })
    }

    /// The bundle it was loaded from.
    pub fn bundle(&self) -> &Bundle {
        &self.inner.bundle
    }

    /// The bundle's tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.inner.bundle.tokenizer
    }

    /// Tokens of the context window.
    pub fn context(&self) -> usize {
        self.inner.context
    }

    /// Threads that compute, the caller's included.
    pub fn threads(&self) -> usize {
        self.inner.pool.threads()
    }

    /// Bytes of KV cache of one conversation whose window is full.
    pub fn cache_bytes(&self) -> usize {
        cache_bytes(&self.bundle().manifest().architecture, self.context())
    }

    /// Writes the embedding of a token, `architecture.hidden` floats.
    ///
    /// # Errors
    /// `Argument` for an id outside the vocabulary or a slice of another length.
    pub fn embedding(&self, token: u32, out: &mut [f32]) -> Result<()> {
        self.bundle().embedding_table()?.row(token, out)
    }

    /// An empty conversation with a KV cache of its own.
    ///
    /// # Errors
    /// `Shape` if the cache would be absurdly large.
    pub fn conversation(&self) -> Result<Conversation> {
        let workspace = Workspace {
            pool: self.inner.pool.clone(),
            rope_table: self.inner.rope_table.clone(),
            cache: KvCache::new(&self.bundle().manifest().architecture, self.context())?,
            activations: Activations::new(),
            queries: Vec::new(),
        };
        let state = self.inner.plan.spawn().map_err(|e| runtime(&e))?;
        Ok(Conversation::new(self.clone(), state, workspace))
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model")
            .field("bundle", &self.bundle().id())
            .field("context", &self.context())
            .finish_non_exhaustive()
    }
}

pub(crate) fn runtime(e: &TractError) -> Error {
    Error::new(ErrorKind::Runtime, format!("the model cannot be run: {e:#}"))
}
