//! Tokens in order, and how far the model has evaluated them.
//!
//! Invariants: the cache holds the first `cache.len()` of the tokens followed by the draft; where there is a draft, all of
//! them; `tokens.len() <= context`. Appended tokens are evaluated when logits are next needed, in one batch. Logits do not
//! depend on the batches in which tokens came, so neither a draft nor forced tokens change what is said.

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

use tract_core::internal::*;

use crate::adapter::Adapter;
use crate::error::{Error, ErrorKind, Result};
use crate::logits::Logits;
use crate::model::{Model, runtime};
use crate::ops::{self, MoteOp, Workspace};

/// Tokens of one batch: enough that expanding a panel of weights pays.
pub(crate) const BATCH_TOKENS: usize = 128;

/// Hears the index of a token and the logits after it.
type EachRow<'a> = &'a mut dyn FnMut(usize, &[f32]) -> Result<()>;

/// Hears tokens done and total, and may break off.
type Progress<'a> = &'a mut dyn FnMut(usize, usize) -> ControlFlow<()>;

/// One text in the making, with its own KV cache.
pub struct Conversation {
    model: Model,
    state: SimpleState<TypedFact, Box<dyn TypedOp>>,
    pub(crate) workspace: Workspace,
    tokens: Vec<u32>,
    /// Guessed tokens behind the others, evaluated with them.
    draft: VecDeque<u32>,
    logits: Logits,
    /// Spent in prefill since the last completion.
    pub(crate) prefill_time: Duration,
}

impl Conversation {
    pub(crate) fn new(
        model: Model,
        state: SimpleState<TypedFact, Box<dyn TypedOp>>,
        workspace: Workspace,
    ) -> Conversation {
        let logits = Logits::new(model.tokenizer().n_vocab());
        Conversation {
            model,
            state,
            workspace,
            tokens: Vec::new(),
            draft: VecDeque::new(),
            logits,
            prefill_time: Duration::ZERO,
        }
    }

    /// The model it runs on.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Number of tokens.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there are no tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The tokens, prompt and completions.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Tokens that still fit.
    pub fn room(&self) -> usize {
        self.model.context() - self.tokens.len()
    }

    /// Forgets all tokens from the `n`-th on. What stays in the cache is not computed again.
    pub fn truncate(&mut self, n: usize) {
        self.forget_draft();
        if n < self.tokens.len() {
            self.tokens.truncate(n);
            self.workspace.cache.truncate(n);
            self.logits.forget_after(n);
        }
    }

    /// A second conversation of the same tokens. What its KV cache has from a snapshot file is shared, the rest copied.
    ///
    /// # Errors
    /// `Runtime` if the system has no memory for another cache.
    pub fn fork(&mut self) -> Result<Conversation> {
        self.forget_draft();
        let cache = self.workspace.cache.fork(&self.model.bundle().manifest().architecture)?;
        let mut fork = self.model.conversation_over(cache)?;
        fork.workspace.adapter = self.workspace.adapter.clone();
        fork.tokens.clone_from(&self.tokens);
        fork.logits = self.logits.clone();
        Ok(fork)
    }

    /// Uses an adapter from now on, or none. Tokens stay; if the adapter is another one they are evaluated again when logits
    /// are next needed, because the cache of the one before does not hold for it.
    ///
    /// # Errors
    /// `Mismatch` for an adapter that was opened for another bundle.
    pub fn set_adapter(&mut self, adapter: Option<&Adapter>) -> Result<()> {
        if let Some(adapter) = adapter
            && adapter.bundle_id() != self.model.bundle().id()
        {
            let message = format!("adapter: opened for another bundle: {}", adapter.bundle_id());
            return Err(Error::new(ErrorKind::Mismatch, message).hint("open it with the bundle of this model"));
        }
        if self.workspace.adapter.as_ref() != adapter {
            self.forget_draft();
            self.workspace.cache.truncate(0);
            self.logits.forget_after(0);
            self.workspace.adapter = adapter.cloned();
        }
        Ok(())
    }

    /// The identity of the adapter in use.
    pub(crate) fn adapter_id(&self) -> Option<&str> {
        self.workspace.adapter.as_ref().map(Adapter::id)
    }

    /// Takes over the tokens that a cache was made from.
    pub(crate) fn resume(&mut self, tokens: Vec<u32>, adapter: Option<&Adapter>) {
        self.tokens = tokens;
        self.workspace.adapter = adapter.cloned();
    }

    /// Takes the guessed tokens back.
    pub(crate) fn forget_draft(&mut self) {
        if !self.draft.is_empty() {
            self.draft.clear();
            self.workspace.cache.truncate(self.tokens.len());
            self.logits.forget_after(self.tokens.len());
        }
    }

    /// Appends tokens and evaluates them in batches; `progress` hears tokens done and total before every layer of every batch
    /// and at the end.
    ///
    /// # Errors
    /// `ContextFull` if they do not fit and `Argument` for an id outside the vocabulary: nothing is appended. `Cancelled` if
    /// `progress` breaks off, `Runtime`: the tokens of whole batches evaluated so far stay.
    pub fn prefill(&mut self, tokens: &[u32], progress: Progress<'_>) -> Result<()> {
        let started = Instant::now();
        let n_before = self.tokens.len();
        self.append(tokens)?;
        let result = self.evaluate(progress, None);
        if result.is_err() {
            self.tokens.truncate(n_before.max(self.workspace.cache.len()));
        }
        self.prefill_time += started.elapsed();
        result
    }

    /// Appends tokens that are evaluated later, or were as a draft.
    pub(crate) fn append(&mut self, tokens: &[u32]) -> Result<()> {
        let (limit, used) = (self.model.context(), self.tokens.len() + tokens.len());
        if used > limit {
            let error = Error::new(
                ErrorKind::ContextFull { limit, used },
                format!("the context window of {limit} tokens is full: {used}"),
            );
            return Err(error.hint("shorten the prompt, or load the model with a larger context"));
        }
        let n_vocab = self.model.tokenizer().n_vocab();
        if let Some(id) = tokens.iter().find(|&&id| id as usize >= n_vocab) {
            return Err(Error::new(ErrorKind::Argument, format!("token id outside the vocabulary of {n_vocab}: {id}")));
        }
        for &token in tokens {
            if self.draft.front() == Some(&token) {
                self.draft.pop_front();
            } else {
                self.forget_draft();
            }
            self.tokens.push(token);
        }
        Ok(())
    }

    /// The logits after the last token, one a row of the vocabulary; evaluates what is not yet evaluated.
    ///
    /// # Errors
    /// `Argument` for an empty conversation, `Runtime`.
    pub fn logits(&mut self) -> Result<&[f32]> {
        if !self.has_logits() {
            self.compute_logits(&[])?;
        }
        self.known_logits()
    }

    /// Whether all logits after the last token are there.
    pub(crate) fn has_logits(&self) -> bool {
        !self.logits.is_sparse() && self.logits.after(self.tokens.len()).is_some()
    }

    /// The logits after the last token that were computed, all or those of some rows.
    pub(crate) fn known_logits(&self) -> Result<&[f32]> {
        let missing = || Error::new(ErrorKind::Runtime, "the graph gave no logits");
        self.logits.after(self.tokens.len()).ok_or_else(missing)
    }

    /// Tokens that the next logits wait for, at least 1.
    pub(crate) fn n_pending(&self) -> usize {
        self.tokens.len().saturating_sub(self.workspace.cache.len()).max(1)
    }

    pub(crate) fn has_draft(&self) -> bool {
        !self.draft.is_empty()
    }

    /// Whether the last token is in the cache.
    pub(crate) fn is_evaluated(&self) -> bool {
        self.workspace.cache.len() >= self.tokens.len()
    }

    /// Computes the logits after the last token, and after each token of `draft`, which are there if these tokens are
    /// appended. The caller has made sure that there is room for them.
    pub(crate) fn compute_logits(&mut self, draft: &[u32]) -> Result<()> {
        if self.tokens.is_empty() {
            return Err(Error::new(ErrorKind::Argument, "nothing to continue: the conversation is empty"));
        }
        self.forget_draft();
        self.workspace.cache.truncate(self.tokens.len() - 1);
        self.draft.extend(draft);
        let result = self.evaluate(&mut |_, _| ControlFlow::Continue(()), None);
        if result.is_err() {
            self.draft.clear();
            self.workspace.cache.truncate(self.tokens.len());
        }
        result
    }

    /// Computes the logits after the last token of some rows of the vocabulary; the others are of no meaning.
    pub(crate) fn compute_logits_of(&mut self, rows: Vec<u32>) -> Result<()> {
        self.workspace.output_rows = Some(rows);
        let result = self.compute_logits(&[]);
        let rows = self.workspace.output_rows.take();
        result.and_then(|()| self.logits.scatter(rows.as_deref().unwrap_or_default()))
    }

    /// Hands out the logits after each number of tokens from `first` (at least 1) on, but for the last, which
    /// [`Conversation::logits`] has afterwards.
    pub(crate) fn each_logits(&mut self, first: usize, each: EachRow<'_>) -> Result<()> {
        self.forget_draft();
        let mut evaluated = first - 1;
        if first < self.tokens.len()
            && !self.logits.is_sparse()
            && let Some(row) = self.logits.after(first)
        {
            each(first, row)?;
            evaluated = first;
        }
        self.workspace.cache.truncate(evaluated);
        self.evaluate(&mut |_, _| ControlFlow::Continue(()), Some(each))
    }

    fn evaluate(&mut self, progress: Progress<'_>, mut each: Option<EachRow<'_>>) -> Result<()> {
        let first = self.workspace.cache.len();
        let all = self.tokens.len() + self.draft.len();
        let total = all - first;
        while self.workspace.cache.len() < all {
            let start = self.workspace.cache.len();
            let end = all.min(start + BATCH_TOKENS);
            let is_last = end == all;
            let n_rows = match (&each, is_last) {
                (Some(_), _) => end - start,
                (None, true) => (1 + self.draft.len()).min(end - start),
                (None, false) => 0,
            };
            let output = self.forward(start..end, n_rows, &mut || progress(start - first, total))?;
            let plain = output.try_as_plain_ram().map_err(|e| runtime(&e))?;
            let rows = plain.as_slice::<f32>().map_err(|e| runtime(&e))?;
            if let Some(each) = &mut each {
                let n_told = n_rows - usize::from(is_last);
                for (row, n_tokens) in rows.chunks_exact(self.logits.width()).take(n_told).zip(start + 1..) {
                    each(n_tokens, row)?;
                }
                self.logits.keep(end, 1, &rows[(n_rows - 1) * self.logits.width()..]);
            } else if n_rows > 0 {
                self.logits.keep(end + 1 - n_rows, n_rows, rows);
            }
        }
        match total > 0 && progress(total, total).is_break() {
            true => Err(Error::cancelled()),
            false => Ok(()),
        }
    }

    /// Runs the plan over tokens that follow those in the cache; logits after each of the last `n_rows` of them. `go_on` is
    /// asked before each layer.
    fn forward(
        &mut self,
        range: Range<usize>,
        n_rows: usize,
        go_on: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<TValue> {
        let ids = self.tokens.iter().chain(&self.draft).skip(range.start).take(range.len());
        let ids: Vec<i64> = ids.map(|&id| i64::from(id)).collect();
        let rows: Vec<i64> = (ids.len() - n_rows..ids.len()).map(|row| row as i64).collect();
        let inputs = tvec!(tensor1(&ids).into_tvalue(), tensor1(&rows).into_tvalue());
        let workspace = &mut self.workspace;
        let mut is_cancelled = false;
        let outputs = self.state.run_plan_with_eval(inputs, |context, state, node, inputs| {
            if node.op_as::<MoteOp>().is_some_and(MoteOp::begins_layer) && go_on().is_break() {
                is_cancelled = true;
                bail!("cancelled");
            }
            ops::eval(workspace, context, state, node, inputs)
        });
        if outputs.is_err() {
            self.state.reset_turn().map_err(|e| runtime(&e))?;
        }
        if is_cancelled {
            return Err(Error::cancelled());
        }
        let mut outputs = outputs.map_err(|e| runtime(&e))?;
        self.workspace.cache.advance(ids.len());
        outputs.pop().ok_or_else(|| Error::new(ErrorKind::Runtime, "the graph gave no logits"))
    }
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation").field("len", &self.len()).finish_non_exhaustive()
    }
}
