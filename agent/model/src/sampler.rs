//! From logits to one token: greedy, or temperature, then min-p, then top-p, with a seed.
//!
//! Invariants: the same logits, mask and seed give the same token on every machine whose `exp` agrees; among equal logits the
//! lowest id wins; a token outside the mask is never drawn. Logits that are not finite are an error, never a panic.

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

/// First try at how many candidates top-p looks at; doubled while their mass does not suffice.
const TOP_P_FIRST: usize = 64;

/// The random sequence of a completion and buffers that are kept between tokens.
pub(crate) struct Sampler {
    sampling: Sampling,
    random: SplitMix64,
    /// (logit, id) of what the mask allows, later of what is still a candidate.
    candidates: Vec<(f32, u32)>,
    weights: Vec<f32>,
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
            None => Ok(Sampler { sampling, random: SplitMix64(seed), candidates: Vec::new(), weights: Vec::new() }),
        }
    }

    /// Draws from the tokens of `mask` (a bit each, from the lowest of the first word; all tokens if there is none).
    pub(crate) fn choose(&mut self, logits: &[f32], mask: Option<&[u32]>) -> Result<Choice> {
        let max = self.gather(logits, mask)?;
        let divisor = if self.sampling.temperature > 0.0 { self.sampling.temperature } else { 1.0 };
        self.weights.clear();
        self.weights.extend(self.candidates.iter().map(|(logit, _)| ((logit - max) / divisor).exp()));
        let total: f32 = self.weights.iter().sum();
        let (logit, token) = if self.sampling.temperature > 0.0 { self.draw() } else { self.first_of(max) };
        Ok(Choice { token, logprob: (logit - max) / divisor - total.ln() })
    }

    /// Fills `candidates` in order of id and gives the largest logit.
    fn gather(&mut self, logits: &[f32], mask: Option<&[u32]>) -> Result<f32> {
        self.candidates.clear();
        match mask {
            None => self.candidates.extend(logits.iter().copied().zip(0..)),
            Some(words) => {
                for (word_idx, &word) in words.iter().enumerate() {
                    let mut rest = word;
                    while rest != 0 {
                        let id = word_idx as u32 * 32 + rest.trailing_zeros();
                        rest &= rest - 1;
                        if let Some(&logit) = logits.get(id as usize) {
                            self.candidates.push((logit, id));
                        }
                    }
                }
            }
        }
        if let Some((logit, id)) = self.candidates.iter().find(|(logit, _)| !logit.is_finite()) {
            let message = format!("the logit of token {id} is not finite: {logit}");
            return Err(Error::new(ErrorKind::Runtime, message).hint("check the bundle with: mote model verify"));
        }
        let max = self.candidates.iter().map(|(logit, _)| *logit).reduce(f32::max);
        max.ok_or_else(|| Error::new(ErrorKind::Runtime, "no token is allowed"))
    }

    fn first_of(&self, max: f32) -> (f32, u32) {
        self.candidates.iter().copied().find(|(logit, _)| *logit == max).unwrap_or((max, 0))
    }

    /// Draws from `candidates` with `weights`, which are relative to the likeliest candidate.
    fn draw(&mut self) -> (f32, u32) {
        let mut pairs: Vec<(f32, (f32, u32))> =
            self.weights.iter().copied().zip(self.candidates.iter().copied()).collect();
        if self.sampling.min_p > 0.0 {
            pairs.retain(|(weight, _)| *weight >= self.sampling.min_p);
        }
        if self.sampling.top_p < 1.0 {
            keep_top_p(&mut pairs, self.sampling.top_p);
        }
        let total: f32 = pairs.iter().map(|(weight, _)| weight).sum();
        let mut rest = self.random.unit() * total;
        for (weight, candidate) in &pairs {
            rest -= weight;
            if rest < 0.0 {
                return *candidate;
            }
        }
        let likeliest = pairs.iter().max_by(|a, b| a.0.total_cmp(&b.0));
        likeliest.map_or((0.0, 0), |(_, candidate)| *candidate)
    }
}

/// Leaves the fewest likeliest candidates whose weights reach `top_p` of the whole; at least one.
fn keep_top_p(pairs: &mut Vec<(f32, (f32, u32))>, top_p: f32) {
    let by_weight = |a: &(f32, (f32, u32)), b: &(f32, (f32, u32))| b.0.total_cmp(&a.0).then(a.1.1.cmp(&b.1.1));
    let target = top_p * pairs.iter().map(|(weight, _)| weight).sum::<f32>();
    let mut n_sorted = TOP_P_FIRST;
    loop {
        let n = n_sorted.min(pairs.len());
        if n < pairs.len() {
            pairs.select_nth_unstable_by(n - 1, by_weight);
        }
        pairs[..n].sort_unstable_by(by_weight);
        let mut mass = 0.0;
        let reached = pairs[..n].iter().position(|(weight, _)| {
            mass += weight;
            mass >= target
        });
        if let Some(last) = reached {
            pairs.truncate(last + 1);
            return;
        }
        if n == pairs.len() {
            return;
        }
        n_sorted *= 2;
    }
}

/// Log-probability of one token under all logits at a temperature, without any mask.
pub(crate) fn free_logprob(logits: &[f32], token: u32, temperature: f32) -> Result<f32> {
    let divisor = if temperature > 0.0 { temperature } else { 1.0 };
    let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f32 = logits.iter().map(|logit| ((logit - max) / divisor).exp()).sum();
    let logit = logits.get(token as usize).copied().unwrap_or(f32::NAN);
    let logprob = (logit - max) / divisor - total.ln();
    match logprob.is_finite() {
        true => Ok(logprob),
        false => Err(Error::new(ErrorKind::Runtime, format!("the logit of token {token} is not finite: {logit}"))),
    }
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
