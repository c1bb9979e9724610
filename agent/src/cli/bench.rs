//! `mote bench`: how fast a model loads, reads and writes here, and what memory it takes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use clap::Args;
use mote_model::{GenerateOptions, Model, Stop};
use serde::Serialize;

use crate::cli::load::LoadArgs;
use crate::cli::model::{cancelled, go_on};
use crate::cli::{Globals, interrupt};
use crate::error::{Error, ErrorKind, Result};
use crate::machine;

/// Lengths of prompts that are read, in tokens; those that the window cannot hold are left out.
const PREFILL_TOKENS: [usize; 3] = [32, 128, 512];

/// Each prompt is read so many times; the median counts.
const REPEATS: usize = 3;

/// Tokens before those that are decoded, and how many are.
const DECODE_AFTER: usize = 32;
const DECODE_TOKENS: usize = 64;

#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    load: LoadArgs,
}

#[derive(Serialize)]
struct Report {
    model: String,
    threads: usize,
    kernels: &'static str,
    load_ms: u64,
    /// Tokens a second, by the length of the prompt.
    prefill: BTreeMap<usize, f64>,
    decode_tok_s: f64,
    /// Of the milliseconds between two tokens.
    p99_ms: f64,
    anon_mib: Option<u64>,
    mapped_mib: Option<u64>,
}

pub(crate) fn run(arguments: &BenchArgs, globals: &Globals) -> Result<u8> {
    interrupt::end_soon_after(&globals.cancel)?;
    let started = Instant::now();
    let model = arguments.load.load(globals)?;
    let load_ms = started.elapsed().as_millis() as u64;

    globals.out.message("measuring, prompts first");
    prefill(&model, DECODE_AFTER.min(model.context()), globals)?;
    let mut by_length = BTreeMap::new();
    for n_tokens in PREFILL_TOKENS.into_iter().filter(|n_tokens| *n_tokens <= model.context()) {
        let mut times = (0..REPEATS).map(|_| prefill(&model, n_tokens, globals)).collect::<Result<Vec<_>>>()?;
        times.sort();
        by_length.insert(n_tokens, rate(n_tokens, times[REPEATS / 2]));
    }
    let gaps = decode(&model, globals)?;
    let memory = machine::process_memory();
    let report = Report {
        model: model.bundle().manifest().name.clone(),
        threads: model.threads(),
        kernels: mote_kernels::dispatch().name(),
        load_ms,
        prefill: by_length,
        decode_tok_s: rate(gaps.len(), gaps.iter().sum()),
        p99_ms: tenths(gaps[(gaps.len() * 99).div_ceil(100) - 1].as_secs_f64() * 1000.0),
        anon_mib: memory.map(|memory| memory.anonymous >> 20),
        mapped_mib: memory.map(|memory| memory.mapped >> 20),
    };
    if globals.out.json() {
        globals.out.object(&report)?
    } else {
        show(&report, globals)?
    }
    Ok(0)
}

/// The time to read a prompt of so many tokens.
fn prefill(model: &Model, n_tokens: usize, globals: &Globals) -> Result<Duration> {
    let mut conversation = model.conversation()?;
    let started = Instant::now();
    conversation.prefill(&tokens(model, n_tokens), &mut |_, _| go_on(globals))?;
    Ok(started.elapsed())
}

/// The times between tokens, sorted; at least one.
fn decode(model: &Model, globals: &Globals) -> Result<Vec<Duration>> {
    let mut conversation = model.conversation()?;
    let n_before = DECODE_AFTER.min(model.context() / 2);
    conversation.prefill(&tokens(model, n_before), &mut |_, _| go_on(globals))?;
    let mut gaps = Vec::with_capacity(DECODE_TOKENS);
    while gaps.len() < DECODE_TOKENS && conversation.room() > 0 {
        let options = GenerateOptions { max_tokens: DECODE_TOKENS - gaps.len(), ..GenerateOptions::default() };
        let mut last = Instant::now();
        let completion = conversation.generate(&options, None, &mut |_| {
            gaps.push(last.elapsed());
            last = Instant::now();
            go_on(globals)
        })?;
        match completion.stop {
            Stop::Cancelled => return Err(cancelled()),
            _ if completion.tokens.is_empty() => break,
            _ => {}
        }
    }
    if gaps.is_empty() {
        return Err(Error::new(
            ErrorKind::Usage,
            format!("the context window has no room to decode: {}", model.context()),
        ));
    }
    gaps.sort();
    Ok(gaps)
}

/// Ordinary token ids, the same on every machine.
fn tokens(model: &Model, n_tokens: usize) -> Vec<u32> {
    let n_vocab = model.tokenizer().n_vocab().max(1) as u64;
    (0..n_tokens as u64).map(|idx| ((idx * 7919 + 101) % n_vocab) as u32).collect()
}

fn rate(n_tokens: usize, time: Duration) -> f64 {
    tenths(n_tokens as f64 / time.as_secs_f64().max(f64::EPSILON))
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn show(report: &Report, globals: &Globals) -> Result<()> {
    let out = globals.out;
    out.line(&format!("{}, {} threads, {} kernels", report.model, report.threads, report.kernels))?;
    out.line(&format!("load     {:>8} ms", report.load_ms))?;
    for (n_tokens, tok_s) in &report.prefill {
        out.line(&format!("prefill  {tok_s:>8} tokens/s at {n_tokens} tokens"))?;
    }
    out.line(&format!("decode   {:>8} tokens/s, 99% of the tokens within {} ms", report.decode_tok_s, report.p99_ms))?;
    if let (Some(anonymous), Some(mapped)) = (report.anon_mib, report.mapped_mib) {
        out.line(&format!("memory   {anonymous:>8} MiB of its own, {mapped} MiB mapped"))?;
    }
    Ok(())
}
