//! A loaded model: bundle, plan, threads. It is immutable and shared by its conversations.

use std::path::Path;
use std::sync::Arc;

use mote_kernels::{Activations, Pool, rope_table};
use tract_core::internal::*;

use crate::bundle::Bundle;
use crate::cache::{KvCache, KvKind};
use crate::conversation::Conversation;
use crate::error::{Error, ErrorKind, Result};
use crate::graph;
use crate::manifest::Manifest;
use crate::map::FileMap;
use crate::memory::MemoryNeed;
use crate::ops::{Spare, Workspace};
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
    /// What the KV cache holds; by default f16, or int8 where only that fits the memory budget.
    pub kv: Option<KvKind>,
    /// Bytes that weights, one conversation and the program may take together.
    pub memory_budget: Option<u64>,
}

impl LoadOptions {
    /// What a model takes with these options.
    ///
    /// # Errors
    /// `Argument` for a context longer than the model's, `MemoryBudget` with what would fit.
    pub fn memory_need(&self, manifest: &Manifest) -> Result<MemoryNeed> {
        let limit = manifest.context_length;
        let context = if self.context == 0 { limit } else { self.context };
        if context > limit {
            let message = format!("the context is longer than the model's {limit} tokens: {context}");
            return Err(Error::new(ErrorKind::Argument, message).hint("ask for a smaller context"));
        }
        manifest.fit(context, self.kv, self.memory_budget)
    }
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
    memory: MemoryNeed,
}

impl Model {
    /// Opens the bundle in `dir` and loads it, once its manifest has shown that it fits the options.
    ///
    /// # Errors
    /// Those of [`Bundle::open`] and [`Model::load`].
    pub fn open(dir: &Path, options: &LoadOptions) -> Result<Model> {
        options.memory_need(&Manifest::read(dir)?)?;
        Model::load(Bundle::open(dir)?, options)
    }

    /// Builds the plan of the bundle's graph and starts the threads.
    ///
    /// # Errors
    /// `Argument` for a context longer than the model's, `MemoryBudget` if it does not fit, `Format` or `Shape` for a graph that
    /// does not fit the bundle, `Runtime` if the system refuses threads.
    pub fn load(bundle: Bundle, options: &LoadOptions) -> Result<Model> {
        let architecture = &bundle.manifest().architecture;
        let memory = options.memory_need(bundle.manifest())?;
        let threads = if options.threads == 0 { physical_cores() } else { options.threads };
        warm(bundle.weights.map());
        let pool = Pool::new(threads).map_err(|e| Error::new(ErrorKind::Runtime, e.to_string()))?;
        let plan = graph::read(&bundle.graph, &bundle.weights, architecture)?
            .into_optimized()
            .and_then(SimplePlan::new)
            .map_err(|e| runtime(&e))?;
        let rope_table = rope_table(architecture.head_dim, f64::from(architecture.rope_theta), memory.context).into();
        Ok(Model { inner: Arc::new(Inner { bundle, plan, pool: Arc::new(pool), rope_table, memory }) })
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
        self.inner.memory.context
    }

    /// What it takes in memory with one conversation.
    pub fn memory(&self) -> &MemoryNeed {
        &self.inner.memory
    }

    /// Threads that compute, the caller's included.
    pub fn threads(&self) -> usize {
        self.inner.pool.threads()
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
    /// `Shape` if the cache would be absurdly large, `Runtime` if the system has no memory for it.
    pub fn conversation(&self) -> Result<Conversation> {
        let architecture = &self.bundle().manifest().architecture;
        self.conversation_over(KvCache::new(architecture, self.memory().kv_kind, self.context())?)
    }

    /// A conversation without tokens over a cache.
    pub(crate) fn conversation_over(&self, cache: KvCache) -> Result<Conversation> {
        let workspace = Workspace {
            pool: self.inner.pool.clone(),
            rope_table: self.inner.rope_table.clone(),
            cache,
            adapter: None,
            activations: Activations::new(),
            queries: Vec::new(),
            spare: Spare::default(),
            output_rows: None,
        };
        let state = self.inner.plan.spawn().map_err(|e| runtime(&e))?;
        Ok(Conversation::new(self.clone(), state, workspace))
    }
}

/// Reads the weights into memory in the background, in the order of the file, while the rest is loaded and the first tokens
/// are computed. It ends early if the model is gone, and nothing waits for it.
fn warm(weights: &Arc<FileMap>) {
    let weights = weights.clone();
    let warming = move || weights.warm(&|| Arc::strong_count(&weights) > 1);
    // Without a thread the pages come one by one, which is slower and no fault.
    drop(std::thread::Builder::new().name("mote-warm".into()).spawn(warming));
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
