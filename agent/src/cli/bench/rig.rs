//! The measurements of one model, a round of them at a time.

use std::time::{Duration, Instant};

use mote_model::{Adapter, Conversation, GenerateOptions, Model, Sampling, Speculate, Stop};

use crate::cli::Globals;
use crate::cli::bench::alone::{self, Alone};
use crate::cli::bench::report::Rounds;
use crate::cli::model::{cancelled, go_on};
use crate::cli::progress::{Progress, Unit};
use crate::error::{Error, ErrorKind, Result};

/// Lengths of the prompts, in tokens; those that the window cannot hold are left out.
pub(super) const PREFILL_TOKENS: [usize; 4] = [32, 128, 512, LONG_TOKENS];

/// The prompt of this length is read once, because on a board that takes minutes, and is decoded after in every round.
pub(super) const LONG_TOKENS: usize = 2048;

/// Tokens that are decoded in a round, without context and after the long prompt.
const DECODE_TOKENS: usize = 64;
const LONG_DECODE_TOKENS: usize = 32;

/// What `--quick` does instead.
pub(super) const QUICK_PREFILL_TOKENS: [usize; 2] = [32, 128];
const QUICK_DECODE_TOKENS: usize = 24;

/// Before anything counts: pages are mapped, threads are awake, and the time of the rest is estimated.
const WARM_UP_PREFILL_TOKENS: usize = 32;
const WARM_UP_DECODE_TOKENS: usize = 4;

/// Work of a decoded token in units of a token of a prompt, until the warm-up knows better.
const DECODE_WORK: f64 = 4.0;

/// Tokens decoded after each of two texts to see what drafts bring.
const SPECULATION_TOKENS: usize = 96;

/// A text that goes on as it began, as the answers about tables and logs do.
const REPEATING: &str = "sensor north: temperature 21 C, humidity 40 %, battery full, link good\n\
sensor south: temperature 21 C, humidity 40 %, battery full, link good\n\
sensor west: temperature 21 C, humidity 40 %, battery full, link good\n\
sensor north: temperature 21 C, humidity 40 %, battery full, link good\n\
sensor south: temperature 21 C, humidity 40 %, battery full, link good\n\
sensor west: temperature 21 C, humidity 40 %, battery full, link good\nsensor north:";

/// A text in which hardly a word comes twice.
const OTHER: &str = "At dawn the keeper climbed ninety iron steps, wound the old clockwork and trimmed its wick. Far out, \
beyond grey shoals, trawlers hauled nets while gulls wheeled above. Nobody had written for months, so";

/// Small models say the same again and again if they take the most likely token.
const OTHER_TEMPERATURE: f32 = 1.0;

/// What is measured.
pub(super) struct Plan {
    pub(super) rounds: usize,
    prefill: Vec<usize>,
    decode: usize,
    /// Tokens decoded after the long prompt, or 0.
    pub(super) long: usize,
    /// Tokens decoded with drafts, or 0.
    speculation: usize,
}

impl Plan {
    /// # Errors
    /// `Usage` for a window in which nothing can be decoded.
    pub(super) fn new(rounds: usize, lengths: &[usize], quick: bool, context: usize) -> Result<Plan> {
        let least = WARM_UP_PREFILL_TOKENS + WARM_UP_DECODE_TOKENS + 1;
        if context < least {
            let message = format!("the context window is shorter than the {least} tokens of a measurement: {context}");
            return Err(Error::new(ErrorKind::Usage, message));
        }
        let decode = if quick { QUICK_DECODE_TOKENS } else { DECODE_TOKENS };
        let is_long = lengths.contains(&LONG_TOKENS) && context > LONG_TOKENS + LONG_DECODE_TOKENS;
        Ok(Plan {
            rounds,
            prefill: lengths.iter().copied().filter(|n| *n <= context && *n != LONG_TOKENS).collect(),
            decode: decode.min(context - 2),
            long: if is_long { LONG_DECODE_TOKENS } else { 0 },
            speculation: 0,
        })
    }

    /// Also what drafts bring.
    pub(super) fn with_speculation(mut self) -> Plan {
        self.speculation = SPECULATION_TOKENS;
        self
    }

    /// The most tokens that lie in KV caches at the same time.
    pub(super) fn kv_tokens(&self) -> usize {
        let long = if self.long > 0 { LONG_TOKENS + self.long } else { 0 };
        long + self.prefill.iter().copied().max().unwrap_or(0).max(self.decode + 2)
    }

    /// All work, in tokens of a prompt.
    fn work(&self, decode_work: f64, alone_work: f64) -> f64 {
        let round = self.prefill.iter().sum::<usize>() as f64
            + (self.decode + self.long + 4 * self.speculation) as f64 * decode_work
            + alone_work;
        let long = if self.long > 0 { LONG_TOKENS } else { 0 };
        long as f64 + self.rounds as f64 * round
    }
}

/// What was decoded: the times between tokens, and how many were drafts and came true.
struct Decoded {
    gaps: Vec<Duration>,
    drafted: usize,
    accepted: usize,
}

/// Decoding with drafts beside decoding without.
#[derive(Clone, Copy)]
pub(super) struct Drafted {
    pub(super) ratio: f64,
    pub(super) plain_tok_s: f64,
    pub(super) drafted: usize,
    pub(super) accepted: usize,
}

/// A model under measurement.
pub(super) struct Rig<'a> {
    model: &'a Model,
    adapter: Option<&'a Adapter>,
    alone: &'a Alone<'a>,
    plan: &'a Plan,
    globals: &'a Globals,
    progress: Progress,
    done: f64,
    total: f64,
    decode_work: f64,
    alone_work: f64,
}

impl<'a> Rig<'a> {
    /// Decodes a first token.
    pub(super) fn new(
        model: &'a Model,
        adapter: Option<&'a Adapter>,
        alone: &'a Alone<'a>,
        plan: &'a Plan,
        globals: &'a Globals,
    ) -> Result<Rig<'a>> {
        let progress = Progress::new(globals.out, "measuring", Unit::Work);
        let (decode_work, alone_work) = (DECODE_WORK, 0.0);
        let mut rig =
            Rig { model, adapter, alone, plan, globals, progress, done: 0.0, total: f64::MAX, decode_work, alone_work };
        let mut conversation = rig.prefill(1)?.0;
        rig.decode(&mut conversation, 1)?;
        Ok(rig)
    }

    /// Touches everything once and estimates the time of the rest.
    pub(super) fn warm_up(&mut self) -> Result<()> {
        let (mut conversation, time) = self.prefill(WARM_UP_PREFILL_TOKENS)?;
        let gaps = self.decode(&mut conversation, WARM_UP_DECODE_TOKENS)?;
        self.alone.read()?;
        let token_s = time.as_secs_f64() / WARM_UP_PREFILL_TOKENS as f64;
        self.decode_work = mean_s(&gaps) / token_s;
        self.alone_work = alone::ROUND_TIME.as_secs_f64() / token_s;
        self.total = self.plan.work(self.decode_work, self.alone_work);
        self.done = 0.0;
        self.progress = Progress::new(self.globals.out, "measuring", Unit::Work);
        self.globals.out.message(&format!("measuring, for about {:.0} s", self.total * token_s));
        Ok(())
    }

    /// Reads the long prompt, if the plan has one.
    pub(super) fn read_long(&mut self, rounds: &mut Rounds) -> Result<Option<Conversation>> {
        if self.plan.long == 0 {
            return Ok(None);
        }
        let (conversation, time) = self.prefill(LONG_TOKENS)?;
        rounds.prefill(LONG_TOKENS, LONG_TOKENS as f64 / time.as_secs_f64());
        Ok(Some(conversation))
    }

    /// Takes every figure once more.
    pub(super) fn round(&mut self, rounds: &mut Rounds, long: Option<&mut Conversation>) -> Result<()> {
        rounds.read.push(self.alone.read()?);
        rounds.kernels.push(self.alone.multiply()?);
        self.advance(self.alone_work);
        let mut short = self.prefill(1)?.0;
        let gaps = self.decode(&mut short, self.plan.decode)?;
        drop(short);
        rounds.decode.push(1.0 / mean_s(&gaps));
        rounds.gaps.extend(gaps);
        if let Some(long) = long {
            let gaps = self.decode(long, self.plan.long)?;
            rounds.decode_long.push(1.0 / mean_s(&gaps));
            long.truncate(LONG_TOKENS);
        }
        for n_tokens in self.plan.prefill.clone() {
            let (_, time) = self.prefill(n_tokens)?;
            rounds.prefill(n_tokens, n_tokens as f64 / time.as_secs_f64());
        }
        if self.plan.speculation > 0 {
            rounds.repeating.push(self.speculate(REPEATING, 0.0)?);
            rounds.other.push(self.speculate(OTHER, OTHER_TEMPERATURE)?);
        }
        Ok(())
    }

    /// A conversation of so many tokens, and the time it took to read them.
    fn prefill(&mut self, n_tokens: usize) -> Result<(Conversation, Duration)> {
        self.read(&tokens(self.model, n_tokens))
    }

    fn read(&mut self, tokens: &[u32]) -> Result<(Conversation, Duration)> {
        let mut conversation = self.model.conversation()?;
        conversation.set_adapter(self.adapter)?;
        let (globals, before) = (self.globals, self.done);
        let started = Instant::now();
        conversation.prefill(tokens, &mut |done, _| {
            self.done = before + done as f64;
            self.progress.update(self.done as u64, self.total as u64);
            go_on(globals)
        })?;
        Ok((conversation, started.elapsed()))
    }

    /// Decodes after a text without drafts and with them: the same tokens.
    fn speculate(&mut self, text: &str, temperature: f32) -> Result<Drafted> {
        let ids = self.model.tokenizer().encode(text)?;
        let n_tokens = self.plan.speculation.min(self.model.context().saturating_sub(ids.len() + 1));
        let (mut conversation, _) = self.read(&ids)?;
        let sampling = Sampling { temperature, ..Sampling::default() };
        let how = |speculate| GenerateOptions { sampling, speculate, ..GenerateOptions::default() };
        let plain = self.decode_by(&mut conversation, n_tokens, &how(Speculate::Off))?;
        conversation.truncate(ids.len());
        let drafted = self.decode_by(&mut conversation, n_tokens, &how(Speculate::Auto))?;
        let plain_tok_s = 1.0 / mean_s(&plain.gaps);
        let ratio = mean_s(&plain.gaps) / mean_s(&drafted.gaps);
        Ok(Drafted { ratio, plain_tok_s, drafted: drafted.drafted, accepted: drafted.accepted })
    }

    /// The times between tokens that come one by one.
    fn decode(&mut self, conversation: &mut Conversation, n_tokens: usize) -> Result<Vec<Duration>> {
        let how = GenerateOptions { speculate: Speculate::Off, ..GenerateOptions::default() };
        Ok(self.decode_by(conversation, n_tokens, &how)?.gaps)
    }

    /// Decodes at least one token. The first one comes from the prefill and does not count.
    fn decode_by(
        &mut self,
        conversation: &mut Conversation,
        n_tokens: usize,
        how: &GenerateOptions,
    ) -> Result<Decoded> {
        let mut gaps = Vec::with_capacity(n_tokens + 1);
        let (mut drafted, mut accepted) = (0, 0);
        while gaps.len() <= n_tokens && conversation.room() > 0 {
            let options = GenerateOptions { max_tokens: n_tokens + 1 - gaps.len(), ..how.clone() };
            let mut last = Instant::now();
            let completion = conversation.generate(&options, None, &mut |_| {
                gaps.push(last.elapsed());
                last = Instant::now();
                go_on(self.globals)
            })?;
            drafted += completion.drafted;
            accepted += completion.accepted;
            match completion.stop {
                Stop::Cancelled => return Err(cancelled()),
                _ if completion.tokens.is_empty() => break,
                _ => {}
            }
        }
        self.advance(n_tokens as f64 * self.decode_work);
        match gaps.split_off(gaps.len().min(1)) {
            gaps if gaps.is_empty() => Err(Error::new(ErrorKind::Failed, "the model decodes no token")),
            gaps => Ok(Decoded { gaps, drafted, accepted }),
        }
    }

    fn advance(&mut self, work: f64) {
        self.done += work;
        self.progress.update(self.done as u64, self.total as u64);
    }
}

/// Ordinary token ids, the same on every machine.
fn tokens(model: &Model, n_tokens: usize) -> Vec<u32> {
    let n_vocab = model.tokenizer().n_vocab().max(1) as u64;
    (0..n_tokens as u64).map(|idx| ((idx * 7919 + 101) % n_vocab) as u32).collect()
}

fn mean_s(times: &[Duration]) -> f64 {
    times.iter().sum::<Duration>().as_secs_f64() / times.len().max(1) as f64
}
