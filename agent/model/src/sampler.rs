//! From logits to one token: greedy, or temperature, then min-p, then top-p, with a seed.
//!
//! Invariants: the same logits, mask and seed give the same token on every machine; among equal logits the lowest id wins; a
//! token outside the mask is never drawn. Logits that are not finite are an error, never a panic.

use crate::error::{Error, ErrorKind, Result};

/// How the next token is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sampling {
    /// Divides the logits; 0 is greedy: the most likely token, and the other fields do nothing.
    pub temperature: f32,
    /// Keeps the fewest most likely tokens that together reach this probability; 1 keeps all.
    pub top_p: f32,
    /// Keeps tokens at least this likely relative to the most likely one; 0 keeps all.
    pub min_p: f32,
    /// Start of the random sequence of one completion.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling { temperature: 0.0, top_p: 1.0, min_p: 0.0, seed: 0 }
    }
}

/// A drawn token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Choice {
    pub(crate) token: u32,
    /// Log-probability under mask and temperature (1 if greedy), before min-p and top-p.
    pub(crate) logprob: f32,
}

/// First try at how many candidates top-p sorts; doubled while their weight does not suffice.
const TOP_P_FIRST: usize = 64;

/// The random sequence of a completion and buffers that are kept between tokens.
pub(crate) struct Sampler {
    sampling: Sampling,
    random: SplitMix64,
    /// What the mask allows, in order of ids; empty without a mask, where the logits' places are the ids.
    tokens: Vec<u32>,
    masked: Vec<f32>,
    candidates: Vec<Candidate>,
}

#[derive(Clone, Copy)]
struct Candidate {
    /// Index among what is allowed.
    at: usize,
    /// Probability relative to the likeliest candidate's.
    weight: f32,
}

impl Sampler {
    pub(crate) fn new(sampling: Sampling) -> Result<Sampler> {
        let Sampling { temperature, top_p, min_p, seed } = sampling;
        let checks = [
            ("temperature is not between 0 and 100", (0.0..=100.0).contains(&temperature), temperature),
            ("top_p is not above 0 and at most 1", top_p > 0.0 && top_p <= 1.0, top_p),
            ("min_p is not between 0 and 1", (0.0..=1.0).contains(&min_p), min_p),
        ];
        match checks.iter().find(|(_, holds, _)| !holds) {
            Some((message, _, value)) => Err(Error::new(ErrorKind::Argument, format!("sampling: {message}: {value}"))),
            None => Ok(Sampler {
                sampling,
                random: SplitMix64(seed),
                tokens: Vec::new(),
                masked: Vec::new(),
                candidates: Vec::new(),
            }),
        }
    }

    /// Draws from the tokens of `mask` (a bit each, from the lowest of the first word; all tokens if there is none).
    pub(crate) fn choose(&mut self, logits: &[f32], mask: Option<&[u32]>) -> Result<Choice> {
        self.gather(logits, mask);
        let logits = if mask.is_some() { self.masked.as_slice() } else { logits };
        let token = |at: usize| self.tokens.get(at).copied().unwrap_or(at as u32);
        let likeliest = likeliest(logits).map_err(|fault| match fault {
            Fault::NotFinite(at) => not_finite(token(at), logits[at]),
            Fault::Nothing => Error::new(ErrorKind::Runtime, "no token is allowed"),
        })?;
        let max = logits[likeliest];
        let is_greedy = self.sampling.temperature == 0.0;
        let divisor = if is_greedy { 1.0 } else { self.sampling.temperature };
        let log_total = sum_of_exp(logits, max, divisor).ln();
        let at = if is_greedy {
            likeliest
        } else {
            draw(&self.sampling, &mut self.random, &mut self.candidates, logits, likeliest)
        };
        Ok(Choice { token: token(at), logprob: (logits[at] - max) / divisor - log_total })
    }

    /// Takes what the mask allows, in order of ids.
    fn gather(&mut self, logits: &[f32], mask: Option<&[u32]>) {
        self.tokens.clear();
        self.masked.clear();
        for (&word, first) in mask.unwrap_or_default().iter().zip((0..).step_by(32)) {
            let mut rest = word;
            while rest != 0 {
                let token = first + rest.trailing_zeros();
                rest &= rest - 1;
                if let Some(&logit) = logits.get(token as usize) {
                    self.tokens.push(token);
                    self.masked.push(logit);
                }
            }
        }
    }
}

enum Fault {
    NotFinite(usize),
    Nothing,
}

/// Where the largest logit is, the first of equals.
fn likeliest(logits: &[f32]) -> std::result::Result<usize, Fault> {
    // Zero times what is not finite is NaN, and stays so in a sum: this runs in vectors.
    let zero: f32 = lanes(logits, 0.0, |sum, logit| sum + 0.0 * logit).iter().sum();
    if zero != 0.0 {
        return Err(logits.iter().position(|logit| !logit.is_finite()).map_or(Fault::Nothing, Fault::NotFinite));
    }
    let max = lanes(logits, f32::NEG_INFINITY, |max, logit| if logit > max { logit } else { max });
    let max = max.into_iter().fold(f32::NEG_INFINITY, f32::max);
    logits.iter().position(|&logit| logit == max).ok_or(Fault::Nothing)
}

/// Draws an index, after min-p and top-p.
fn draw(
    sampling: &Sampling,
    random: &mut SplitMix64,
    candidates: &mut Vec<Candidate>,
    logits: &[f32],
    likeliest: usize,
) -> usize {
    let weight = |logit: &f32| exp((logit - logits[likeliest]) / sampling.temperature);
    candidates.clear();
    candidates.extend(logits.iter().map(weight).enumerate().map(|(at, weight)| Candidate { at, weight }));
    if sampling.min_p > 0.0 {
        candidates.retain(|candidate| candidate.weight >= sampling.min_p);
    }
    if sampling.top_p < 1.0 {
        keep_top_p(candidates, sampling.top_p);
    }
    let mut rest = random.unit() * total_weight(candidates);
    for candidate in candidates.iter() {
        rest -= candidate.weight;
        if rest < 0.0 {
            return candidate.at;
        }
    }
    likeliest
}

fn total_weight(candidates: &[Candidate]) -> f32 {
    candidates.iter().map(|candidate| candidate.weight).sum()
}

/// Leaves the fewest likeliest candidates whose weights reach `top_p` of the whole; at least one.
fn keep_top_p(candidates: &mut Vec<Candidate>, top_p: f32) {
    let likelier = |a: &Candidate, b: &Candidate| b.weight.total_cmp(&a.weight).then(a.at.cmp(&b.at));
    let target = top_p * total_weight(candidates);
    let mut n_sorted = TOP_P_FIRST;
    loop {
        n_sorted = n_sorted.min(candidates.len());
        if n_sorted < candidates.len() {
            candidates.select_nth_unstable_by(n_sorted - 1, likelier);
        }
        candidates[..n_sorted].sort_unstable_by(likelier);
        let mut reached = 0.0;
        let last = candidates[..n_sorted].iter().position(|candidate| {
            reached += candidate.weight;
            reached >= target
        });
        if last.is_some() || n_sorted == candidates.len() {
            candidates.truncate(last.map_or(n_sorted, |last| last + 1));
            return;
        }
        n_sorted *= 2;
    }
}

fn not_finite(token: u32, logit: f32) -> Error {
    Error::new(ErrorKind::Runtime, format!("the logit of token {token} is not finite: {logit}"))
        .hint("check the bundle with: mote model verify")
}

/// Log-probability of one token under all logits at a temperature, without any mask.
pub(crate) fn free_logprob(logits: &[f32], token: u32, temperature: f32) -> Result<f32> {
    let divisor = if temperature > 0.0 { temperature } else { 1.0 };
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let logit = logits.get(token as usize).copied().unwrap_or(f32::NAN);
    let logprob = (logit - max) / divisor - sum_of_exp(logits, max, divisor).ln();
    if logprob.is_finite() { Ok(logprob) } else { Err(not_finite(token, logit)) }
}

/// Values that are folded side by side, so that they are in vectors.
const LANES: usize = 16;

fn lanes(values: &[f32], start: f32, fold: impl Fn(f32, f32) -> f32) -> [f32; LANES] {
    let mut folded = [start; LANES];
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (folded, value) in folded.iter_mut().zip(chunk) {
            *folded = fold(*folded, *value);
        }
    }
    for (folded, value) in folded.iter_mut().zip(rest) {
        *folded = fold(*folded, *value);
    }
    folded
}

fn sum_of_exp(logits: &[f32], max: f32, divisor: f32) -> f32 {
    lanes(logits, 0.0, |sum, logit| sum + exp((logit - max) / divisor)).iter().sum()
}

/// `e^x` of what is not positive, in operations that vectors have, so that every machine gives the same bits; at most 2 units in
/// the last place from the true value. Below -87 it is 0 or next to it.
///
/// Cephes' `expf`: `x = n ln 2 + r`, a polynomial of `r`, times two to the `n`.
fn exp(x: f32) -> f32 {
    /// Adding it leaves an integer in the low bits of the mantissa.
    const ROUND: f32 = 12_582_912.0;
    let x = if x > -87.0 { x } else { -87.0 };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let value = p * (r * r) + r + 1.0;
    f32::from_bits(value.to_bits().wrapping_add(shifted.to_bits() << 23))
}

/// Sebastiano Vigna's SplitMix64: one word of state, every seed is good.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1), of 24 bits.
    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn choose(sampling: Sampling, logits: &[f32], mask: Option<&[u32]>) -> Result<Choice> {
        Sampler::new(sampling)?.choose(logits, mask)
    }

    fn sampling() -> impl Strategy<Value = Sampling> {
        let temperature = prop_oneof![Just(0.0f32), 0.05f32..4.0];
        (temperature, 0.01f32..=1.0, 0.0f32..=1.0, any::<u64>())
            .prop_map(|(temperature, top_p, min_p, seed)| Sampling { temperature, top_p, min_p, seed })
    }

    /// Logits of a few values, so that there are ties.
    fn logits() -> impl Strategy<Value = Vec<f32>> {
        prop_oneof![
            prop::collection::vec(-20.0f32..20.0, 1..400),
            prop::collection::vec((-3i8..3).prop_map(f32::from), 1..400)
        ]
    }

    proptest! {
        #[test]
        fn a_choice_is_allowed_likely_enough_and_repeatable(
            sampling in sampling(), logits in logits(), words in prop::collection::vec(any::<u32>(), 13),
        ) {
            let allowed = |token: u32| words[token as usize / 32] >> (token % 32) & 1 == 1;
            let probabilities: Vec<(f32, u32)> = (0..logits.len() as u32)
                .filter(|&token| allowed(token))
                .map(|token| (logits[token as usize], token))
                .collect();
            let choice = choose(sampling, &logits, Some(&words));
            let Some(max) = probabilities.iter().map(|(logit, _)| *logit).reduce(f32::max) else {
                prop_assert_eq!(choice.unwrap_err().kind(), ErrorKind::Runtime);
                return Ok(());
            };
            let choice = choice.unwrap();
            prop_assert!(allowed(choice.token));
            prop_assert!(choice.logprob <= 1e-6 && choice.logprob.is_finite());
            prop_assert_eq!(choice, choose(sampling, &logits, Some(&words)).unwrap());
            let logit = logits[choice.token as usize];
            if sampling.temperature == 0.0 {
                let first = probabilities.iter().find(|(logit, _)| *logit == max).unwrap();
                prop_assert_eq!(choice.token, first.1);
                return Ok(());
            }
            let weight = |logit: f32| ((logit - max) / sampling.temperature).exp();
            prop_assert!(weight(logit) >= sampling.min_p);
            let kept = probabilities.iter().map(|(logit, _)| weight(*logit)).filter(|weight| *weight >= sampling.min_p);
            let (mut likelier, mut total) = (0.0f64, 0.0f64);
            for other in kept {
                total += f64::from(other);
                likelier += f64::from(if other > weight(logit) { other } else { 0.0 });
            }
            prop_assert!(likelier <= f64::from(sampling.top_p) * total * 1.0001, "{likelier} of {total} is likelier");
        }

        #[test]
        fn a_logit_that_is_not_finite_is_an_error(
            sampling in sampling(), mut logits in logits(), at in any::<prop::sample::Index>(),
            bad in prop::sample::select(vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY]),
        ) {
            let token = at.index(logits.len());
            logits[token] = bad;
            let error = choose(sampling, &logits, None).unwrap_err();
            prop_assert_eq!(error.message(), format!("the logit of token {token} is not finite: {bad}"));
        }
    }

    #[test]
    fn draws_follow_the_probabilities() {
        let logits = [0.0, 2.0f32.ln(), 5.0f32.ln()];
        let mut sampler = Sampler::new(Sampling { temperature: 1.0, seed: 42, ..Sampling::default() }).unwrap();
        let mut counts = [0.0; 3];
        for _ in 0..8000 {
            counts[sampler.choose(&logits, None).unwrap().token as usize] += 1.0 / 8000.0;
        }
        for (count, expected) in counts.iter().zip([1.0 / 8.0, 2.0 / 8.0, 5.0 / 8.0]) {
            let difference: f64 = count - expected;
            assert!(difference.abs() < 0.02, "{counts:?}");
        }
    }

    #[test]
    fn exp_is_within_two_units_of_the_last_place() {
        assert_eq!(exp(0.0), 1.0);
        for i in 0..200_000 {
            let x = -(i as f32) * 4.35e-4;
            let (found, expected) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((found - expected).abs() <= 2.0 * expected * f64::from(f32::EPSILON), "{x}: {found} {expected}");
        }
        assert!(exp(-87.0) < 1.7e-38 && exp(-1e30) == exp(-87.0) && exp(f32::NEG_INFINITY) == exp(-87.0));
    }

    #[test]
    fn split_mix_is_vigna_s() {
        let mut random = SplitMix64(1_234_567);
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }
}
