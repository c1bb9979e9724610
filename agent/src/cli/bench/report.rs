//! The figures of all rounds, and how they are shown.

use std::collections::BTreeMap;
use std::time::Duration;

use mote_model::Model;
use serde::Serialize;

use crate::cli::Out;
use crate::cli::bench::alone::Alone;
use crate::cli::bench::rig::{Drafted, LONG_TOKENS};
use crate::error::Result;
use crate::machine::ProcessMemory;

/// Other programs that take more of the machine than this are told of.
const DISTURBED: f64 = 0.05;

/// What each round found, in passes over the weights (so tokens) a second.
#[derive(Default)]
pub(super) struct Rounds {
    pub(super) read: Vec<f64>,
    pub(super) kernels: Vec<f64>,
    pub(super) decode: Vec<f64>,
    pub(super) decode_long: Vec<f64>,
    /// Between two tokens without context.
    pub(super) gaps: Vec<Duration>,
    /// Drafts after a text that repeats itself, and after one that does not.
    pub(super) repeating: Vec<Drafted>,
    pub(super) other: Vec<Drafted>,
    prefill: BTreeMap<usize, Vec<f64>>,
}

/// What was found beside the rounds.
pub(super) struct About {
    pub(super) load: Duration,
    pub(super) first_token: Duration,
    pub(super) peak: Option<ProcessMemory>,
    /// Tokens in KV caches when they were fullest.
    pub(super) kv_tokens: usize,
    pub(super) others: Option<f64>,
}

impl Rounds {
    pub(super) fn prefill(&mut self, n_tokens: usize, tok_s: f64) {
        self.prefill.entry(n_tokens).or_default().push(tok_s);
    }
}

/// What programs read; `docs/cli.md` says what each field means.
#[derive(Serialize)]
pub(super) struct Report {
    model: String,
    quantization: String,
    threads: usize,
    kernels: &'static str,
    kv: String,
    rounds: usize,
    load_ms: u64,
    first_token_ms: u64,
    prefill: BTreeMap<usize, f64>,
    decode_tok_s: f64,
    decode_tok_s_2k: Option<f64>,
    p50_ms: f64,
    p99_ms: f64,
    anon_mib: Option<u64>,
    mapped_mib: Option<u64>,
    kv_mib: u64,
    bytes_per_token: usize,
    bytes_per_weight: f64,
    read_gb_s: f64,
    fraction_of_bandwidth: f64,
    kernels_tok_s: f64,
    fraction_of_kernels: f64,
    fraction_at_2k: Option<f64>,
    speculation: Option<Speculation>,
    /// What part of the machine's cores other programs took meanwhile.
    others: Option<f64>,
    spread: Spread,
}

/// What drafts bring after a text that repeats itself and after one that does not.
#[derive(Serialize)]
struct Speculation {
    repeating: DraftReport,
    other: DraftReport,
}

/// `ratio` is the speed with drafts as a multiple of that without; the drafts are of all rounds.
#[derive(Serialize)]
struct DraftReport {
    ratio: f64,
    plain_tok_s: f64,
    drafted: usize,
    accepted: usize,
}

impl DraftReport {
    fn new(rounds: &[Drafted]) -> Option<DraftReport> {
        let each = |figure: fn(&Drafted) -> f64| median(&rounds.iter().map(figure).collect::<Vec<_>>());
        (!rounds.is_empty()).then(|| DraftReport {
            ratio: each(|round| round.ratio),
            plain_tok_s: each(|round| round.plain_tok_s),
            drafted: rounds.iter().map(|round| round.drafted).sum(),
            accepted: rounds.iter().map(|round| round.accepted).sum(),
        })
    }
}

/// Highest less lowest of the rounds, as a part of the median.
#[derive(Serialize)]
struct Spread {
    prefill: BTreeMap<usize, f64>,
    decode_tok_s: f64,
    decode_tok_s_2k: Option<f64>,
    read_gb_s: f64,
    kernels_tok_s: f64,
}

impl Report {
    pub(super) fn new(model: &Model, alone: &Alone<'_>, rounds: &Rounds, about: &About) -> Report {
        let manifest = model.bundle().manifest();
        let bytes = alone.bytes();
        let gb_s: Vec<f64> = rounds.read.iter().map(|passes| passes * bytes as f64 / 1e9).collect();
        let mut gaps = rounds.gaps.clone();
        gaps.sort();
        let each = |figure: fn(&[f64]) -> f64| rounds.prefill.iter().map(|(n, all)| (*n, figure(all))).collect();
        let long = |figure: fn(&[f64]) -> f64| (!rounds.decode_long.is_empty()).then(|| figure(&rounds.decode_long));
        Report {
            model: manifest.name.clone(),
            quantization: manifest.quantization.clone(),
            threads: model.threads(),
            kernels: mote_kernels::dispatch().name(),
            kv: model.memory().kv_kind.to_string(),
            rounds: rounds.decode.len(),
            load_ms: about.load.as_millis() as u64,
            first_token_ms: about.first_token.as_millis() as u64,
            prefill: each(median),
            decode_tok_s: median(&rounds.decode),
            decode_tok_s_2k: long(median),
            p50_ms: quantile_ms(&gaps, 50),
            p99_ms: quantile_ms(&gaps, 99),
            anon_mib: about.peak.map(|peak| peak.anonymous >> 20),
            mapped_mib: about.peak.map(|peak| peak.mapped >> 20),
            kv_mib: kv_bytes(model, about.kv_tokens) >> 20,
            bytes_per_token: bytes,
            bytes_per_weight: round(bytes as f64 / alone.n_weights() as f64, 4),
            read_gb_s: median(&gb_s),
            fraction_of_bandwidth: fraction(&rounds.decode, &rounds.read),
            kernels_tok_s: median(&rounds.kernels),
            fraction_of_kernels: fraction(&rounds.decode, &rounds.kernels),
            fraction_at_2k: (!rounds.decode_long.is_empty()).then(|| fraction(&rounds.decode_long, &rounds.decode)),
            speculation: DraftReport::new(&rounds.repeating)
                .zip(DraftReport::new(&rounds.other))
                .map(|(repeating, other)| Speculation { repeating, other }),
            others: about.others.map(|others| round(others, 3)),
            spread: Spread {
                prefill: each(spread),
                decode_tok_s: spread(&rounds.decode),
                decode_tok_s_2k: long(spread),
                read_gb_s: spread(&gb_s),
                kernels_tok_s: spread(&rounds.kernels),
            },
        }
    }

    /// A table for people.
    pub(super) fn show(&self, out: Out) -> Result<()> {
        let Report { model, quantization, threads, kernels, rounds, .. } = self;
        out.line(&format!("{model} ({quantization}), {threads} threads, {kernels} kernels, rounds: {rounds}"))?;
        out.line(&format!("load          {:>8} ms, first token after {} ms", self.load_ms, self.first_token_ms))?;
        for (n_tokens, tok_s) in &self.prefill {
            let spread = percent(self.spread.prefill.get(n_tokens));
            out.line(&format!("prefill {n_tokens:<6}{tok_s:>8} tokens/s{spread}"))?;
        }
        let spread = percent(Some(&self.spread.decode_tok_s));
        let (p50, p99) = (self.p50_ms, self.p99_ms);
        out.line(&format!(
            "decode        {:>8} tokens/s{spread}, a token {p50} ms, 99% within {p99} ms",
            self.decode_tok_s
        ))?;
        if let (Some(tok_s), Some(fraction)) = (self.decode_tok_s_2k, self.fraction_at_2k) {
            let spread = percent(self.spread.decode_tok_s_2k.as_ref());
            out.line(&format!(
                "  after {LONG_TOKENS}  {tok_s:>8} tokens/s{spread}, {fraction} of that without context"
            ))?;
        }
        let spread = percent(Some(&self.spread.kernels_tok_s));
        let (kernels_tok_s, fraction) = (self.kernels_tok_s, self.fraction_of_kernels);
        out.line(&format!("kernels alone {kernels_tok_s:>8} tokens/s{spread}, decode reaches {fraction} of it"))?;
        let spread = percent(Some(&self.spread.read_gb_s));
        let (gb_s, fraction) = (self.read_gb_s, self.fraction_of_bandwidth);
        out.line(&format!("memory read   {gb_s:>8} GB/s{spread}, decode reaches {fraction} of it"))?;
        let mb = round(self.bytes_per_token as f64 / 1e6, 1);
        out.line(&format!("weights       {mb:>8} MB a token, {} bytes each", self.bytes_per_weight))?;
        if let Some(Speculation { repeating, other }) = &self.speculation {
            let (a, b) = (repeating.ratio, other.ratio);
            out.line(&format!(
                "drafts        {a:>8} times as fast on a text that repeats itself, {b} on one that does not"
            ))?;
        }
        if let (Some(anonymous), Some(mapped)) = (self.anon_mib, self.mapped_mib) {
            let kv = self.kv_mib;
            out.line(&format!(
                "memory        {anonymous:>8} MiB of its own at most, {kv} of them KV cache; {mapped} MiB mapped"
            ))?;
        }
        if let Some(others) = self.others.filter(|others| *others > DISTURBED) {
            out.message(&format!(
                "other programs took {:.0}% of the machine meanwhile, so this is no measurement",
                others * 100.0
            ));
        }
        Ok(())
    }
}

fn kv_bytes(model: &Model, n_tokens: usize) -> u64 {
    let memory = model.memory();
    memory.kv / memory.context.max(1) as u64 * n_tokens as u64
}

fn percent(spread: Option<&f64>) -> String {
    spread.filter(|spread| **spread > 0.0).map(|spread| format!(" ±{:.0}%", spread * 50.0)).unwrap_or_default()
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn exact_median(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        n if n.is_multiple_of(2) => (sorted[middle - 1] + sorted[middle]) / 2.0,
        _ => sorted[middle],
    }
}

fn median(values: &[f64]) -> f64 {
    let median = exact_median(values);
    round(median, if median < 100.0 { 2 } else { 1 })
}

fn spread(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    match (sorted.first(), sorted.last()) {
        (Some(low), Some(high)) => round((high - low) / exact_median(values), 3),
        _ => f64::NAN,
    }
}

/// The median of what part of `whole` each of `part` is.
fn fraction(part: &[f64], whole: &[f64]) -> f64 {
    let fractions: Vec<f64> = part.iter().zip(whole).map(|(part, whole)| part / whole).collect();
    round(exact_median(&fractions), 3)
}

fn quantile_ms(sorted: &[Duration], percent: usize) -> f64 {
    let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(index).map_or(f64::NAN, |time| round(time.as_secs_f64() * 1000.0, 2))
}

fn round(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_and_spread_is_relative() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[1.0, 2.0]), 1.5);
        assert_eq!(spread(&[9.0, 10.0, 12.0]), 0.3);
        assert_eq!(spread(&[7.0]), 0.0);
        assert!(median(&[]).is_nan() && spread(&[]).is_nan());
    }

    #[test]
    fn a_fraction_pairs_what_was_measured_in_the_same_round() {
        assert_eq!(fraction(&[8.0, 4.0, 9.0], &[10.0, 5.0, 10.0]), 0.8);
    }

    #[test]
    fn quantiles_are_times_that_were_measured() {
        let times: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        assert_eq!((quantile_ms(&times, 50), quantile_ms(&times, 99)), (100.0, 198.0));
        assert_eq!(quantile_ms(&times[..1], 99), 1.0);
    }
}
