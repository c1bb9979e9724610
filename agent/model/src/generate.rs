//! The decode loop: logits, mask, choice, token, until something ends it.
//!
//! Tokens that the grammar leaves no choice about are appended without the model being asked, and evaluated together with
//! the next one that needs logits. Where the grammar allows few tokens, only their rows of the output matrix are computed.
//! What may come next by `speculate` is evaluated along; it changes no token.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Instant;

use toktrie::SimpleVob;

use crate::conversation::Conversation;
use crate::error::{Error, ErrorKind, Result};
use crate::grammar::{Grammar, Walk};
use crate::sampler::{Sampler, Sampling, free_logprob};
use crate::speculate::Drafts;

/// Rows of the output matrix are computed one by one where at most one in so many is needed: a row costs as much as the
/// panel of 8 that it lies in.
const SPARSE_OUTPUT: usize = 16;

/// How to continue a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateOptions {
    /// Ends the completion after so many tokens, forced ones included.
    pub max_tokens: usize,
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// Token ids that end it, besides the manifest's.
    pub stop: Vec<u32>,
    /// Texts that end it. The completion's text ends before them; its tokens do not.
    pub stop_texts: Vec<String>,
    /// Also record log-probabilities without the grammar's mask (recording `full`): every row of logits is computed, those
    /// of forced tokens too.
    pub logprobs: bool,
    /// Whether drafts from the conversation's own text are evaluated along, where that is faster. With `logprobs` none are.
    pub speculate: Speculate,
}

/// Whether the decode loop works ahead.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Speculate {
    /// Where it measures faster. The tokens are the same as without.
    #[default]
    Auto,
    /// Never.
    Off,
    /// Drafts of so many tokens, at most 15, wherever there is one: for measurements.
    Always(usize),
}

impl Default for GenerateOptions {
    fn default() -> Self {
        GenerateOptions {
            max_tokens: 256,
            sampling: Sampling::default(),
            stop: Vec::new(),
            stop_texts: Vec::new(),
            logprobs: false,
            speculate: Speculate::Auto,
        }
    }
}

/// Why a completion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// A stop token came; it is the last of the tokens and not in the text.
    StopToken,
    /// One of the stop texts came.
    StopText,
    /// The grammar is complete and nothing can follow.
    GrammarEnd,
    /// `max_tokens` were made.
    MaxTokens,
    /// The caller broke off.
    Cancelled,
    /// The context window is full.
    ContextFull,
}

/// A token as it comes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenEvent<'a> {
    /// Its id.
    pub token: u32,
    /// Whether it was appended without a choice.
    pub forced: bool,
    /// Its entry in [`Completion::logprobs`].
    pub logprob: f32,
    /// The text that became complete with it: whole characters only, so it may be empty.
    pub text: &'a str,
}

/// What was made. All tokens are part of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// The tokens, a stop token included.
    pub tokens: Vec<u32>,
    /// Which of them were appended without a choice.
    pub forced: Vec<bool>,
    /// Log-probability of each under mask and temperature (1 if greedy), before min-p and top-p; 0 for a forced one.
    pub logprobs: Vec<f32>,
    /// The same without the mask, if asked for.
    pub logprobs_free: Option<Vec<f32>>,
    /// The text without special tokens, cut before a stop text.
    pub text: String,
    /// Why it ended.
    pub stop: Stop,
    /// Tokens that were evaluated as a draft, and how many of them came true.
    pub drafted: usize,
    /// See `drafted`.
    pub accepted: usize,
    /// Milliseconds of prefill since the completion before.
    pub prefill_ms: u64,
    /// Milliseconds of this call.
    pub decode_ms: u64,
}

impl Conversation {
    /// Continues the conversation. `on_token` hears every token and may break off.
    ///
    /// # Errors
    /// `Argument` for an empty conversation or options that make no sense, `Grammar` if the grammar becomes too complex,
    /// `Runtime` for logits that are not finite. The tokens made until then stay in the conversation.
    pub fn generate(
        &mut self,
        options: &GenerateOptions,
        grammar: Option<&Grammar>,
        on_token: &mut dyn FnMut(&TokenEvent<'_>) -> ControlFlow<()>,
    ) -> Result<Completion> {
        if self.is_empty() {
            return Err(Error::new(ErrorKind::Argument, "nothing to continue: the conversation is empty"));
        }
        let started = Instant::now();
        let prefill_ms = std::mem::take(&mut self.prefill_time).as_millis() as u64;
        let mut run = Run {
            sampler: Sampler::new(options.sampling)?,
            walk: grammar.map(Grammar::walk),
            first: self.len(),
            forced_ahead: VecDeque::new(),
            forced: Vec::new(),
            logprobs: Vec::new(),
            logprobs_free: Vec::new(),
            bytes: Vec::new(),
            n_bytes_told: 0,
            text_end: None,
            drafts: drafts(options),
            n_drafted: 0,
            n_accepted: 0,
            options,
            conversation: self,
        };
        let stop = run.decode(on_token);
        run.conversation.forget_draft();
        let stop = stop?;
        if options.logprobs {
            run.catch_up_free_logprobs()?;
        }
        let text = String::from_utf8_lossy(&run.bytes[..run.text_end.unwrap_or(run.bytes.len())]).into_owned();
        let Run { forced, logprobs, logprobs_free, first, n_drafted, n_accepted, .. } = run;
        Ok(Completion {
            tokens: self.tokens()[first..].to_vec(),
            forced,
            logprobs,
            logprobs_free: options.logprobs.then_some(logprobs_free),
            text,
            stop,
            drafted: n_drafted,
            accepted: n_accepted,
            prefill_ms,
            decode_ms: started.elapsed().as_millis() as u64,
        })
    }
}

/// A completion in the making.
struct Run<'a> {
    conversation: &'a mut Conversation,
    options: &'a GenerateOptions,
    sampler: Sampler,
    walk: Option<Walk>,
    /// Index of the completion's first token.
    first: usize,
    /// Forced tokens that are not yet appended.
    forced_ahead: VecDeque<u32>,
    forced: Vec<bool>,
    logprobs: Vec<f32>,
    logprobs_free: Vec<f32>,
    bytes: Vec<u8>,
    n_bytes_told: usize,
    /// Where a stop text begins.
    text_end: Option<usize>,
    drafts: Option<Drafts>,
    n_drafted: usize,
    n_accepted: usize,
}

/// What the next token is.
struct Next {
    token: u32,
    forced: bool,
    logprob: f32,
}

impl Run<'_> {
    fn decode(&mut self, on_token: &mut dyn FnMut(&TokenEvent<'_>) -> ControlFlow<()>) -> Result<Stop> {
        loop {
            if self.forced.len() >= self.options.max_tokens {
                return Ok(Stop::MaxTokens);
            }
            if self.conversation.room() == 0 {
                return Ok(Stop::ContextFull);
            }
            let Some(next) = self.next()? else { return Ok(Stop::GrammarEnd) };
            if let Some(walk) = &mut self.walk {
                walk.accept(next.token)?;
            }
            self.append(&next)?;
            self.forced.push(next.forced);
            self.logprobs.push(next.logprob);
            let is_stop = self.take_text(next.token);
            let told = self.n_bytes_told;
            self.n_bytes_told += whole_characters(&self.bytes[told..]);
            let text = String::from_utf8_lossy(&self.bytes[told..self.n_bytes_told]);
            let event = TokenEvent { token: next.token, forced: next.forced, logprob: next.logprob, text: &text };
            if on_token(&event).is_break() {
                return Ok(Stop::Cancelled);
            }
            if is_stop {
                return Ok(Stop::StopToken);
            }
            if self.text_end.is_some() {
                return Ok(Stop::StopText);
            }
        }
    }

    fn append(&mut self, next: &Next) -> Result<()> {
        let was_there = self.conversation.has_draft();
        self.conversation.append(&[next.token])?;
        match &mut self.drafts {
            Some(drafts) if next.forced => drafts.forced(next.token),
            Some(drafts) => drafts.chosen(next.token),
            None => {}
        }
        self.n_accepted += usize::from(was_there && self.conversation.is_evaluated());
        Ok(())
    }

    /// Appends the token's text and looks for a stop text; whether the token is a stop token.
    fn take_text(&mut self, token: u32) -> bool {
        let tokenizer = self.conversation.model().tokenizer();
        if self.is_stop(token) {
            return true;
        }
        if !tokenizer.is_special(token) {
            let longest = self.options.stop_texts.iter().map(String::len).max().unwrap_or(0);
            let searched = self.bytes.len().saturating_sub(longest);
            self.bytes.extend_from_slice(tokenizer.token_bytes(token));
            self.text_end = find_text(&self.bytes, &self.options.stop_texts, searched);
        }
        false
    }

    fn is_stop(&self, token: u32) -> bool {
        let special = self.conversation.model().tokenizer().special();
        special.stop.contains(&token) || self.options.stop.contains(&token)
    }

    /// The next token; none where the grammar has ended.
    fn next(&mut self) -> Result<Option<Next>> {
        let Some(walk) = &mut self.walk else { return self.choose(None).map(Some) };
        if self.forced_ahead.is_empty() {
            if walk.is_finished() {
                return Ok(None);
            }
            self.forced_ahead.extend(walk.forced()?);
        }
        if let Some(token) = self.forced_ahead.pop_front() {
            return Ok(Some(Next { token, forced: true, logprob: 0.0 }));
        }
        let mask = walk.mask()?;
        if mask.num_set() == 1
            && let Some(token) = mask.first_bit_set()
        {
            return Ok(Some(Next { token: token as u32, forced: true, logprob: 0.0 }));
        }
        self.choose(Some(&mask)).map(Some)
    }

    fn choose(&mut self, mask: Option<&SimpleVob>) -> Result<Next> {
        if self.options.logprobs {
            self.catch_up_free_logprobs()?;
        }
        self.compute_logits(mask)?;
        let logits = self.conversation.known_logits()?;
        let choice = self.sampler.choose(logits, mask.map(SimpleVob::as_slice))?;
        if self.options.logprobs {
            self.logprobs_free.push(free_logprob(logits, choice.token, self.options.sampling.temperature)?);
        }
        Ok(Next { token: choice.token, forced: false, logprob: choice.logprob })
    }

    /// Computes logits, those of a draft with them if one pays, or only those that the mask allows if they are few.
    fn compute_logits(&mut self, mask: Option<&SimpleVob>) -> Result<()> {
        if self.conversation.has_logits() {
            return Ok(());
        }
        let draft = self.draft()?;
        let n_tokens = self.conversation.n_pending() + draft.len();
        let n_vocab = self.conversation.model().tokenizer().n_vocab();
        let few = mask.filter(|mask| !self.options.logprobs && mask.num_set() <= n_vocab / SPARSE_OUTPUT);
        let started = Instant::now();
        match few {
            Some(mask) if draft.is_empty() => self.conversation.compute_logits_of(mask.iter().collect())?,
            _ => self.conversation.compute_logits(&draft)?,
        }
        self.n_drafted += draft.len();
        if let Some(drafts) = &mut self.drafts {
            drafts.took(n_tokens, started.elapsed());
        }
        Ok(())
    }

    /// Tokens to evaluate with the next one: those that fit, that the grammar allows and that do not end the completion.
    fn draft(&mut self) -> Result<Vec<u32>> {
        let Some(drafts) = &mut self.drafts else { return Ok(Vec::new()) };
        let limit = (self.options.max_tokens - self.forced.len()).saturating_sub(1).min(self.conversation.room());
        let draft = drafts.draft(self.conversation.tokens(), self.conversation.n_pending(), limit);
        let mut draft = draft.to_vec();
        draft.truncate(draft.iter().position(|&token| self.is_stop(token)).unwrap_or(draft.len()));
        if let Some(walk) = &mut self.walk {
            draft.truncate(walk.n_allowed(&draft)?);
        }
        Ok(draft)
    }

    /// Computes the free log-probabilities of appended tokens that have none yet.
    fn catch_up_free_logprobs(&mut self) -> Result<()> {
        let done = self.first + self.logprobs_free.len();
        let tokens = self.conversation.tokens()[done..].to_vec();
        if tokens.is_empty() {
            return Ok(());
        }
        let (temperature, logprobs_free) = (self.options.sampling.temperature, &mut self.logprobs_free);
        self.conversation.each_logits(done, &mut |n_tokens, logits| {
            logprobs_free.push(free_logprob(logits, tokens[n_tokens - done], temperature)?);
            Ok(())
        })
    }
}

fn drafts(options: &GenerateOptions) -> Option<Drafts> {
    match options.speculate {
        _ if options.logprobs => None,
        Speculate::Off => None,
        Speculate::Auto => Some(Drafts::new(None)),
        Speculate::Always(n_tokens) => Some(Drafts::new(Some(n_tokens))),
    }
}

/// Bytes at the front that are whole characters, or that can never become one.
fn whole_characters(bytes: &[u8]) -> usize {
    let mut n_whole = 0;
    while let Err(e) = std::str::from_utf8(&bytes[n_whole..]) {
        n_whole += e.valid_up_to();
        match e.error_len() {
            Some(n_broken) => n_whole += n_broken,
            None => return n_whole,
        }
    }
    bytes.len()
}

/// Where the first of the texts begins, at or after `from`.
fn find_text(bytes: &[u8], texts: &[String], from: usize) -> Option<usize> {
    let texts = texts.iter().filter(|text| !text.is_empty());
    let starts =
        texts.filter_map(|text| bytes[from..].windows(text.len()).position(|window| window == text.as_bytes()));
    starts.min().map(|start| from + start)
}
