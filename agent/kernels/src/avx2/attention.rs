//! Attention: blocks of positions that are expanded to f32 and whose scores stay on the stack, four queries at once, one
//! lane of a score vector each.

use std::arch::x86_64::*;

use super::exp::exp;
use super::{load, load_halves, store};
use crate::attention::{Partial, ROWS, TILE_ROWS, Tile, attend_by_blocks};
use crate::cache::scale_bytes;
use crate::format::GROUP;
use crate::prefetch::prefetch;
use crate::{CacheKind, MAX_HEAD_DIM};

/// Positions of a block, even.
pub(crate) const BLOCK: usize = 32;

/// The scores or weights of a block, `[position][query]`.
pub(crate) type Scores = [[f32; 2 * ROWS]; BLOCK / 2];

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn attend(tile: &Tile<'_>, partials: &mut [Partial]) {
    attend_by_blocks!(tile, partials, [[0.0; 2 * ROWS]; BLOCK / 2]);
}

/// Eight elements of each query.
type Queries = [[f32; 8]; ROWS];

/// Converts the rows of a block to f32.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn expand<'a>(tile: &Tile<'_>, rows: &[u8], expanded: &'a mut [[f32; 8]]) -> &'a [[f32; 8]] {
    let per_head = tile.head_dim / 8;
    let n_rows = rows.len() / tile.row_bytes();
    let expanded = &mut expanded[..n_rows * per_head];
    let rows = rows.chunks_exact(tile.row_bytes()).zip(expanded.chunks_exact_mut(per_head));
    match tile.cache {
        CacheKind::F16 => {
            for (row, expanded) in rows {
                prefetch(row, BLOCK * tile.row_bytes());
                for (out, halves) in expanded.iter_mut().zip(row.as_chunks().0) {
                    store(out, load_halves(halves));
                }
            }
        }
        CacheKind::I8 => {
            for (row, expanded) in rows {
                prefetch(row, BLOCK * tile.row_bytes());
                let (scales, quants) = row.split_at(scale_bytes(tile.head_dim));
                let groups = expanded.chunks_mut(GROUP / 8).zip(quants.chunks(GROUP));
                for ((expanded, quants), scale) in groups.zip(scales.as_chunks().0) {
                    let scale = _mm256_cvtph_ps(_mm_set1_epi16(i16::from_le_bytes(*scale)));
                    for (out, quants) in expanded.iter_mut().zip(quants.as_chunks().0) {
                        store(out, _mm256_mul_ps(_mm256_cvtepi32_ps(widen(quants)), scale));
                    }
                }
            }
        }
    }
    expanded
}

/// Eight integers of 8 bits as 32.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn widen(v: &[u8; 8]) -> __m256i {
    _mm256_cvtepi8_epi32(_mm_cvtsi64_si128(i64::from_le_bytes(*v)))
}

/// The products of all queries with the keys of a block, two positions a step. An odd last position is taken twice.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn score<const R: usize>(q: &[Queries], keys: &[[f32; 8]], scores: &mut Scores) {
    for (pair, scores) in keys.chunks(2 * q.len()).zip(scores) {
        let (first, second) = pair.split_at(q.len());
        let second = if second.is_empty() { first } else { second };
        let mut sums = [[_mm256_setzero_ps(); ROWS]; 2];
        for (q, (first, second)) in q.iter().zip(first.iter().zip(second)) {
            let (first, second) = (load(first), load(second));
            for (r, q) in q.iter().enumerate().take(R) {
                let q = load(q);
                sums[0][r] = _mm256_fmadd_ps(q, first, sums[0][r]);
                sums[1][r] = _mm256_fmadd_ps(q, second, sums[1][r]);
            }
        }
        let [first, second] = sums;
        store(scores, _mm256_set_m128(lane_sums(second), lane_sums(first)));
    }
}

/// Turns the scores of a block into weights against the new largest score; gives what older sums shrink by.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn softmax(scores: &mut Scores, visible: [i32; ROWS], partial: &mut Partial) -> [f32; ROWS] {
    let [a, b, c, d] = visible;
    let visible = _mm256_setr_epi32(a, b, c, d, a - 1, b - 1, c - 1, d - 1);
    let mask = |pair: usize| _mm256_castsi256_ps(_mm256_cmpgt_epi32(visible, _mm256_set1_epi32(2 * pair as i32)));
    let [a, b, c, d] = partial.max;
    let old = _mm256_setr_ps(a, b, c, d, a, b, c, d);
    let mut max = old;
    for (pair, scores) in scores.iter().enumerate() {
        max = _mm256_max_ps(_mm256_blendv_ps(old, load(scores), mask(pair)), max);
    }
    let max = _mm256_max_ps(max, _mm256_permute2f128_ps::<1>(max, max));
    let mut sum = _mm256_setzero_ps();
    for (pair, scores) in scores.iter_mut().enumerate() {
        let weight = _mm256_and_ps(exp(_mm256_sub_ps(load(scores), max)), mask(pair));
        sum = _mm256_add_ps(sum, weight);
        store(scores, weight);
    }
    let sum = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum));
    let shrink = _mm256_castps256_ps128(exp(_mm256_sub_ps(old, max)));
    let sum = _mm_fmadd_ps(lanes(&partial.sum), shrink, sum);
    partial.sum = array(sum);
    partial.max = array(_mm256_castps256_ps128(max));
    array(shrink)
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn add_values<const R: usize>(
    weights: &Scores,
    values: &[[f32; 8]],
    per_value: usize,
    shrink: [f32; ROWS],
    partial: &mut Partial,
) {
    let weights = weights.as_flattened().as_chunks::<ROWS>().0;
    let mut first = 0;
    while first + 2 <= per_value {
        add_columns::<R, 2>(weights, values, per_value, first, shrink, partial);
        first += 2;
    }
    if first < per_value {
        add_columns::<R, 1>(weights, values, per_value, first, shrink, partial);
    }
}

/// Adds `8 * C` columns of the values, from column `8 * first`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn add_columns<const R: usize, const C: usize>(
    weights: &[[f32; ROWS]],
    values: &[[f32; 8]],
    per_value: usize,
    first: usize,
    shrink: [f32; ROWS],
    partial: &mut Partial,
) {
    let mut sums = [[_mm256_setzero_ps(); C]; R];
    for (r, sums) in sums.iter_mut().enumerate() {
        let old = &partial.weighted[r].as_chunks::<8>().0[first..];
        for (sum, old) in sums.iter_mut().zip(old) {
            *sum = _mm256_mul_ps(load(old), _mm256_set1_ps(shrink[r]));
        }
    }
    for (weights, value) in weights.iter().zip(values.chunks_exact(per_value)) {
        for (c, value) in value[first..first + C].iter().enumerate() {
            let value = load(value);
            for (sums, weight) in sums.iter_mut().zip(weights) {
                sums[c] = _mm256_fmadd_ps(_mm256_set1_ps(*weight), value, sums[c]);
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        let new = &mut partial.weighted[r].as_chunks_mut::<8>().0[first..];
        for (new, sum) in new.iter_mut().zip(sums) {
            store(new, *sum);
        }
    }
}

/// The sum of the lanes of each vector.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn lane_sums([a, b, c, d]: [__m256; ROWS]) -> __m128 {
    let sums = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps::<1>(sums))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn lanes(v: &[f32; ROWS]) -> __m128 {
    // SAFETY: the array is as long as the vector.
    unsafe { _mm_loadu_ps(v.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn array(v: __m128) -> [f32; ROWS] {
    let mut out = [0.0; ROWS];
    // SAFETY: the array is as long as the vector.
    unsafe { _mm_storeu_ps(out.as_mut_ptr(), v) };
    out
}
