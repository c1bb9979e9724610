//! Attention against a naive softmax in f64.

use super::{noise, pools};
use crate::attention::attention_by;
use crate::{AttentionArgs, Dispatch, Pool, attention, f16_to_f32, f32_to_f16};
use proptest::prelude::*;

struct Case {
    q: Vec<f32>,
    k: Vec<u16>,
    v: Vec<u16>,
    position: usize,
    tokens: usize,
    kv_heads: usize,
    heads_per_kv: usize,
    head_dim: usize,
    capacity: usize,
}

impl Case {
    fn new(position: usize, tokens: usize, kv_heads: usize, heads_per_kv: usize, head_dim: usize, seed: u64) -> Self {
        let capacity = position + tokens + 3;
        let cache = |seed| {
            let floats = noise(seed, kv_heads * capacity * head_dim);
            let mut bits = vec![0; floats.len()];
            f32_to_f16(&floats, &mut bits).unwrap();
            bits
        };
        let q = noise(seed, tokens * kv_heads * heads_per_kv * head_dim).iter().map(|v| 4.0 * v).collect();
        Self { q, k: cache(seed ^ 1), v: cache(seed ^ 2), position, tokens, kv_heads, heads_per_kv, head_dim, capacity }
    }

    fn args(&self) -> AttentionArgs<'_> {
        AttentionArgs {
            q: &self.q,
            k_cache: &self.k,
            v_cache: &self.v,
            position: self.position,
            tokens: self.tokens,
            heads: self.kv_heads * self.heads_per_kv,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            capacity: self.capacity,
        }
    }

    fn reference(&self) -> Vec<f64> {
        let floats = |bits: &[u16]| {
            let mut floats = vec![0.0; bits.len()];
            f16_to_f32(bits, &mut floats).unwrap();
            floats.into_iter().map(f64::from).collect::<Vec<_>>()
        };
        let (k, v, d) = (floats(&self.k), floats(&self.v), self.head_dim);
        let mut out = Vec::new();
        for (row, q) in self.q.chunks(d).enumerate() {
            let heads = self.kv_heads * self.heads_per_kv;
            let (token, kv_head) = (row / heads, row % heads / self.heads_per_kv);
            let cached = |position: usize| (kv_head * self.capacity + position) * d;
            let scores: Vec<f64> = (0..=self.position + token)
                .map(|p| q.iter().zip(&k[cached(p)..]).map(|(q, k)| f64::from(*q) * k).sum::<f64>() / (d as f64).sqrt())
                .collect();
            let max = scores.iter().copied().fold(f64::MIN, f64::max);
            let weights: Vec<f64> = scores.iter().map(|s| (s - max).exp()).collect();
            let sum: f64 = weights.iter().sum();
            out.extend(
                (0..d).map(|i| {
                    weights.iter().enumerate().map(|(p, weight)| weight * v[cached(p) + i]).sum::<f64>() / sum
                }),
            );
        }
        out
    }

    /// Values are in -1..1, so that an output moves by at most twice the relative error of the weights: the error of a
    /// score (`head_dim` products of size 4 at most, over `sqrt(head_dim)`, one rounding each), of `exp`, and of the sums.
    fn check(&self) {
        let want = self.reference();
        let score = 4.0 * (self.head_dim as f64).powf(1.5);
        let sums = (self.position + self.tokens + 16) as f64;
        let bound = 2.0 * (score + sums) * f64::from(f32::EPSILON);
        for pool in pools() {
            for by in Dispatch::available() {
                let mut out = vec![f32::NAN; self.q.len()];
                attention_by(by, &pool, &self.args(), &mut out).unwrap();
                for (i, (out, want)) in out.iter().zip(&want).enumerate() {
                    assert!((f64::from(*out) - want).abs() <= bound, "{} [{i}]: {out} {want}", by.name());
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_backend_attends(
        position in 0usize..150, tokens in 1usize..10, kv_heads in 1usize..4, heads_per_kv in 1usize..6,
        eighths in 1usize..9, seed: u64,
    ) {
        Case::new(position, tokens, kv_heads, heads_per_kv, 8 * eighths, seed).check();
    }
}

#[test]
fn shapes_of_known_models() {
    Case::new(0, 1, 3, 3, 64, 1).check();
    Case::new(700, 1, 3, 3, 64, 2).check();
    Case::new(513, 3, 8, 4, 128, 3).check();
    Case::new(0, 70, 1, 4, 128, 4).check();
    Case::new(40, 1, 1, 1, 256, 5).check();
    for position in [126, 127, 128, 129, 255, 256] {
        Case::new(position, 2, 1, 3, 16, 6).check();
    }
}

/// Scores grow along the positions, so that the running maximum moves at each step, and most weights vanish.
#[test]
fn growing_scores_stay_finite() {
    let mut case = Case::new(300, 4, 1, 2, 8, 9);
    case.q.iter_mut().for_each(|q| *q = 40.0);
    let keys: Vec<f32> = (0..case.capacity * 8).map(|i| (i / 8) as f32 / 4.0).collect();
    f32_to_f16(&keys, &mut case.k).unwrap();
    let want = case.reference();
    for pool in pools() {
        for by in Dispatch::available() {
            let mut out = vec![f32::NAN; case.q.len()];
            attention_by(by, &pool, &case.args(), &mut out).unwrap();
            for (out, want) in out.iter().zip(&want) {
                assert!((f64::from(*out) - want).abs() <= 0.01, "{}: {out} {want}", by.name());
            }
        }
    }
}

#[test]
fn poisoned_caches_are_only_numbers() {
    for bits in [0x7c00, 0xfc00, 0x7e00] {
        let mut case = Case::new(200, 3, 2, 3, 16, 11);
        case.k.iter_mut().step_by(7).for_each(|k| *k = bits);
        for pool in pools() {
            for by in Dispatch::available() {
                attention_by(by, &pool, &case.args(), &mut vec![0.0; case.q.len()]).unwrap();
            }
        }
    }
}

#[test]
fn wrong_shapes_are_refused() {
    let case = Case::new(5, 2, 2, 3, 16, 1);
    let pool = Pool::new(1).unwrap();
    let message = |args: AttentionArgs<'_>, out: usize| {
        attention(&pool, &args, &mut vec![0.0; out]).map_err(|error| error.to_string())
    };
    let (args, out) = (case.args(), case.q.len());
    assert_eq!(message(args, out), Ok(()));
    let refused = |args, what: &str| assert_eq!(message(args, out), Err(what.to_owned()));
    refused(AttentionArgs { head_dim: 12, ..args }, "head_dim must be a positive multiple of 8: 12");
    refused(AttentionArgs { head_dim: 264, ..args }, "head_dim is over its limit of 256: 264");
    refused(AttentionArgs { kv_heads: 4, ..args }, "heads must be a positive multiple of 4: 6");
    refused(AttentionArgs { kv_heads: 0, ..args }, "heads must be a positive multiple of 0: 6");
    refused(AttentionArgs { position: 9, ..args }, "cached positions is over its limit of 10: 11");
    refused(
        AttentionArgs { position: usize::MAX, ..args },
        &format!("cached positions is over its limit of 10: {}", usize::MAX),
    );
    refused(AttentionArgs { tokens: 1, ..args }, "wrong length of queries, expected 96: 192");
    refused(AttentionArgs { capacity: 11, ..args }, "wrong length of key cache, expected 352: 320");
    refused(AttentionArgs { v_cache: &case.v[1..], ..args }, "wrong length of value cache, expected 320: 319");
    assert!(message(args, out - 1).is_err());
    assert_eq!(message(AttentionArgs { tokens: 0, q: &[], ..args }, 0), Ok(()));
}
