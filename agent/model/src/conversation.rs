//! Tokens in order, and how far the model has evaluated them.
//!
//! Invariants: `cache.len() <= tokens.len() <= context`; the cache holds exactly the first `cache.len()` tokens;
//! `logits_after <= cache.len()`. Appended tokens are evaluated when logits are next needed, in one batch.

use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

use tract_core::internal::*;

use crate::error::{Error, ErrorKind, Result};
use crate::model::{Model, runtime};
use crate::ops::{self, Workspace};

/// Tokens of one batch: enough that expanding a panel of weights pays, few enough that progress is heard of often.
const BATCH_TOKENS: usize = 128;

/// Hears the index of a token and the logits after it.
type EachRow<'a> = &'a mut dyn FnMut(usize, &[f32]) -> Result<()>;

/// One text in the making, with its own KV cache.
pub struct Conversation {
    model: Model,
    state: SimpleState<TypedFact, Box<dyn TypedOp>>,
    workspace: Workspace,
    tokens: Vec<u32>,
    /// What the model says after the first `logits_after` tokens; not known if that is 0.
    logits: Vec<f32>,
    logits_after: usize,
    /// Spent in prefill since the last completion.
    pub(crate) prefill_time: Duration,
}

impl Conversation {
    pub(crate) fn new(
        model: Model,
        state: SimpleState<TypedFact, Box<dyn TypedOp>>,
        workspace: Workspace,
    ) -> Conversation {
        Conversation {
            model,
            state,
            workspace,
            tokens: Vec::new(),
            logits: Vec::new(),
            logits_after: 0,
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
        if n < self.tokens.len() {
            self.tokens.truncate(n);
            self.workspace.cache.truncate(n);
            self.forget_logits_after(n);
        }
    }

    fn forget_logits_after(&mut self, n: usize) {
        if self.logits_after > n {
            self.logits_after = 0;
        }
    }

    /// Appends tokens and evaluates them in batches; `progress` hears tokens done and total before each batch and at the end.
    ///
    /// # Errors
    /// `ContextFull` if they do not fit and `Argument` for an id outside the vocabulary: nothing is appended. `Cancelled` if
    /// `progress` breaks off, `Runtime`: the tokens evaluated so far stay.
    pub fn prefill(&mut self, tokens: &[u32], progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>) -> Result<()> {
        let started = Instant::now();
        self.append(tokens)?;
        let result = self.evaluate(progress, None);
        if result.is_err() {
            self.tokens.truncate(self.workspace.cache.len());
        }
        self.prefill_time += started.elapsed();
        result
    }

    /// Appends tokens that are evaluated later.
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
        self.tokens.extend_from_slice(tokens);
        Ok(())
    }

    /// The logits after the last token, one a row of the vocabulary; evaluates what is not yet evaluated.
    ///
    /// # Errors
    /// `Argument` for an empty conversation, `Runtime`.
    pub fn logits(&mut self) -> Result<&[f32]> {
        if self.tokens.is_empty() {
            return Err(Error::new(ErrorKind::Argument, "nothing to continue: the conversation is empty"));
        }
        if self.logits_after != self.tokens.len() {
            self.workspace.cache.truncate(self.tokens.len() - 1);
            self.evaluate(&mut |_, _| ControlFlow::Continue(()), None)?;
        }
        Ok(&self.logits)
    }

    /// Hands out the logits after each number of tokens from `first` (at least 1) on, but for the last, which
    /// [`Conversation::logits`] has afterwards.
    pub(crate) fn each_logits(&mut self, first: usize, each: EachRow<'_>) -> Result<()> {
        let mut evaluated = first - 1;
        if self.logits_after == first && first < self.tokens.len() {
            each(first, &self.logits)?;
            evaluated = first;
        }
        self.workspace.cache.truncate(evaluated);
        self.evaluate(&mut |_, _| ControlFlow::Continue(()), Some(each))
    }

    fn evaluate(
        &mut self,
        progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
        mut each: Option<EachRow<'_>>,
    ) -> Result<()> {
        let first = self.workspace.cache.len();
        let total = self.tokens.len() - first;
        while self.workspace.cache.len() < self.tokens.len() {
            let start = self.workspace.cache.len();
            if progress(start - first, total).is_break() {
                return Err(Error::cancelled());
            }
            let end = self.tokens.len().min(start + BATCH_TOKENS);
            let is_last = end == self.tokens.len();
            let n_rows = match (&each, is_last) {
                (Some(_), _) => end - start,
                (None, true) => 1,
                (None, false) => 0,
            };
            let output = self.forward(start..end, n_rows)?;
            let plain = output.try_as_plain_ram().map_err(|e| runtime(&e))?;
            let mut rows =
                plain.as_slice::<f32>().map_err(|e| runtime(&e))?.chunks_exact(self.model.tokenizer().n_vocab());
            if is_last && let Some(row) = rows.next_back() {
                self.logits.clear();
                self.logits.extend_from_slice(row);
                self.logits_after = end;
            }
            if let Some(each) = &mut each {
                for (row, n_tokens) in rows.zip(start + 1..) {
                    each(n_tokens, row)?;
                }
            }
        }
        match total > 0 && progress(total, total).is_break() {
            true => Err(Error::cancelled()),
            false => Ok(()),
        }
    }

    /// Runs the plan over tokens that follow those in the cache; logits after each of the last `n_rows` of them.
    fn forward(&mut self, range: Range<usize>, n_rows: usize) -> Result<TValue> {
        let ids: Vec<i64> = self.tokens[range].iter().map(|&id| i64::from(id)).collect();
        let rows: Vec<i64> = (ids.len() - n_rows..ids.len()).map(|row| row as i64).collect();
        let inputs = tvec!(tensor1(&ids).into_tvalue(), tensor1(&rows).into_tvalue());
        let workspace = &mut self.workspace;
        let outputs = self.state.run_plan_with_eval(inputs, |context, state, node, inputs| {
            ops::eval(workspace, context, state, node, inputs)
        });
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
