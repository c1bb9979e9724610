//! Attention against a naive softmax in f64.

use super::{noise, pools};
use crate::attention::attention_by;
use crate::{AttentionArgs, CacheKind, Dispatch, Pool, attention};
use proptest::prelude::*;

struct Case {
    cache: CacheKind,
    q: Vec<f32>,
    k: Vec<u8>,
    v: Vec<u8>,
    position: usize,
    tokens: usize,
    kv_heads: usize,
    heads_per_kv: usize,
    head_dim: usize,
    capacity: usize,
}

/// The rows of a cache.
fn stored(cache: CacheKind, floats: &[f32], head_dim: usize) -> Vec<u8> {
    let mut bytes = vec![0; floats.len() / head_dim * cache.row_bytes(head_dim)];
    for (row, head) in bytes.chunks_mut(cache.row_bytes(head_dim)).zip(floats.chunks(head_dim)) {
        cache.store(head, row).unwrap();
    }
    bytes
}

impl Case {
    fn new(
        cache: CacheKind,
        [position, tokens]: [usize; 2],
        [kv_heads, heads_per_kv, head_dim]: [usize; 3],
        seed: u64,
    ) -> Self {
        let capacity = position + tokens + 3;
        let cached = |seed| stored(cache, &noise(seed, kv_heads * capacity * head_dim), head_dim);
        let q = noise(seed, tokens * kv_heads * heads_per_kv * head_dim).iter().map(|v| 4.0 * v).collect();
        let (k, v) = (cached(seed ^ 1), cached(seed ^ 2));
        Self { cache, q, k, v, position, tokens, kv_heads, heads_per_kv, head_dim, capacity }
    }

    fn args(&self) -> AttentionArgs<'_> {
        AttentionArgs {
            q: &self.q,
            cache: self.cache,
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
        let floats = |bytes: &[u8]| {
            let mut head = vec![0.0; self.head_dim];
            let rows = bytes.chunks(self.cache.row_bytes(self.head_dim));
            let heads = rows.flat_map(|row| {
                self.cache.load(row, &mut head).unwrap();
                head.iter().copied().map(f64::from).collect::<Vec<_>>()
            });
            heads.collect::<Vec<_>>()
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
        eighths in 1usize..9, seed: u64, cache in kinds(),
    ) {
        Case::new(cache, [position, tokens], [kv_heads, heads_per_kv, 8 * eighths], seed).check();
    }

    /// Half a step of the group, a part in 2,048 of the largest for the rounded scale, and where that is denormal half
    /// of the smallest f16 for each of 127 steps.
    #[test]
    fn stored_rows_come_back(cache in kinds(), len in 1usize..257, seed: u64, exponent in -9i32..5) {
        let head: Vec<f32> = noise(seed, len).iter().map(|v| v * 10f32.powi(exponent)).collect();
        let mut back = vec![0.0; len];
        cache.load(&stored(cache, &head, len), &mut back).unwrap();
        for (back, head) in back.chunks(32).zip(head.chunks(32)) {
            let largest = head.iter().fold(0f32, |largest, v| largest.max(v.abs()));
            for (back, head) in back.iter().zip(head) {
                let bound = match cache {
                    CacheKind::F16 => head.abs() / 2048.0 + 3e-8,
                    CacheKind::I8 => largest * (0.5 / 127.0 + 1.0 / 2048.0) + 127.0 * 3e-8,
                };
                prop_assert!((back - head).abs() <= bound, "{back} {head}");
            }
        }
    }
}

fn kinds() -> impl Strategy<Value = CacheKind> {
    prop_oneof![Just(CacheKind::F16), Just(CacheKind::I8)]
}

#[test]
fn poisoned_heads_are_stored_as_nan() {
    for cache in [CacheKind::F16, CacheKind::I8] {
        let mut head = [127.0; 64];
        head[40] = f32::NAN;
        let mut back = [0.0; 64];
        cache.load(&stored(cache, &head, 64), &mut back).unwrap();
        assert!(back[40].is_nan() && back[..32] == head[..32], "{back:?}");
    }
    assert_eq!(CacheKind::I8.row_bytes(128), 136);
    assert!(CacheKind::I8.store(&[0.0; 64], &mut [0; 67]).is_err());
    assert!(CacheKind::F16.store(&[0.0; 257], &mut [0; 514]).is_err());
    assert!(CacheKind::F16.load(&[0; 514], &mut [0.0; 257]).is_err());
}

#[test]
fn shapes_of_known_models() {
    for cache in [CacheKind::F16, CacheKind::I8] {
        Case::new(cache, [0, 1], [3, 3, 64], 1).check();
        Case::new(cache, [700, 1], [3, 3, 64], 2).check();
        Case::new(cache, [513, 3], [8, 4, 128], 3).check();
        Case::new(cache, [0, 70], [1, 4, 128], 4).check();
        Case::new(cache, [40, 1], [1, 1, 256], 5).check();
        for position in [126, 127, 128, 129, 255, 256] {
            Case::new(cache, [position, 2], [1, 3, 16], 6).check();
        }
    }
}

/// Scores grow along the positions, so that the running maximum moves at each step, and most weights vanish.
#[test]
fn growing_scores_stay_finite() {
    let mut case = Case::new(CacheKind::F16, [300, 4], [1, 2, 8], 9);
    case.q.iter_mut().for_each(|q| *q = 40.0);
    let keys: Vec<f32> = (0..case.capacity * 8).map(|i| (i / 8) as f32 / 4.0).collect();
    case.k = stored(case.cache, &keys, 8);
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
    for (cache, bits) in [(CacheKind::F16, 0x7c00u16), (CacheKind::F16, 0xfc00), (CacheKind::I8, 0x7e00)] {
        let mut case = Case::new(cache, [200, 3], [2, 3, 16], 11);
        case.k.chunks_mut(14).for_each(|k| k[..2].copy_from_slice(&bits.to_le_bytes()));
        for pool in pools() {
            for by in Dispatch::available() {
                attention_by(by, &pool, &case.args(), &mut vec![0.0; case.q.len()]).unwrap();
            }
        }
    }
}

#[test]
fn wrong_shapes_are_refused() {
    let case = Case::new(CacheKind::F16, [5, 2], [2, 3, 16], 1);
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
    refused(AttentionArgs { capacity: 11, ..args }, "wrong length of key cache, expected 704: 640");
    refused(AttentionArgs { v_cache: &case.v[1..], ..args }, "wrong length of value cache, expected 640: 639");
    refused(AttentionArgs { cache: CacheKind::I8, ..args }, "wrong length of key cache, expected 360: 640");
    assert!(message(args, out - 1).is_err());
    assert_eq!(message(AttentionArgs { tokens: 0, q: &[], ..args }, 0), Ok(()));
}

/// A token's bits are those it has alone, in whatever batch it comes.
#[test]
fn a_batch_gives_the_bits_of_single_tokens() {
    for cache in [CacheKind::F16, CacheKind::I8] {
        for (position, tokens, heads_per_kv, head_dim) in [(250, 13, 4, 64), (30, 5, 3, 128), (0, 40, 1, 72)] {
            let case = Case::new(cache, [position, tokens], [2, heads_per_kv, head_dim], 12);
            let width = 2 * heads_per_kv * head_dim;
            for (pool, by) in pools().iter().flat_map(|pool| Dispatch::available().map(move |by| (pool, by))) {
                let mut all = vec![f32::NAN; case.q.len()];
                attention_by(by, pool, &case.args(), &mut all).unwrap();
                for token in 0..tokens {
                    let mut one = vec![f32::NAN; width];
                    let q = &case.q[token * width..][..width];
                    let args = AttentionArgs { q, position: position + token, tokens: 1, ..case.args() };
                    attention_by(by, pool, &args, &mut one).unwrap();
                    assert_eq!(one, all[token * width..][..width], "{} {cache:?} token {token}", by.name());
                }
            }
        }
    }
}
