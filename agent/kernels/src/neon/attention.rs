//! Attention: blocks of positions that are expanded to f32 and whose scores stay on the stack, four queries at once, one
//! lane of a score vector each.

use std::arch::aarch64::*;

use super::exp::exp;
use super::{load, load_scales, store};
use crate::attention::{Partial, ROWS, TILE_ROWS, Tile, attend_by_blocks};
use crate::cache::scale_bytes;
use crate::format::GROUP;
use crate::{CacheKind, MAX_HEAD_DIM};

/// Positions of a block.
const BLOCK: usize = 32;

#[target_feature(enable = "neon")]
pub(super) fn attend(tile: &Tile<'_>, partials: &mut [Partial]) {
    attend_by_blocks!(tile, partials, [vdupq_n_f32(0.0); BLOCK]);
}

/// Eight elements of each query.
type Queries = [[f32; 8]; ROWS];

/// The scores or weights of a block, a lane a query.
type Scores = [float32x4_t; BLOCK];

/// Converts the rows of a block to f32.
#[inline]
#[target_feature(enable = "neon")]
fn expand<'a>(tile: &Tile<'_>, rows: &[u8], expanded: &'a mut [[f32; 8]]) -> &'a [[f32; 8]] {
    let per_head = tile.head_dim / 8;
    let n_rows = rows.len() / tile.row_bytes();
    let expanded = &mut expanded[..n_rows * per_head];
    let rows = rows.chunks_exact(tile.row_bytes()).zip(expanded.chunks_exact_mut(per_head));
    match tile.cache {
        CacheKind::F16 => {
            for (row, expanded) in rows {
                for (out, halves) in expanded.iter_mut().zip(row.as_chunks().0) {
                    store(out, load_scales(halves));
                }
            }
        }
        CacheKind::I8 => {
            for (row, expanded) in rows {
                let (scales, quants) = row.split_at(scale_bytes(tile.head_dim));
                let (mut halves, mut factors) = ([0; 16], [0.0; MAX_HEAD_DIM / GROUP]);
                halves[..scales.len()].copy_from_slice(scales);
                store(&mut factors, load_scales(&halves));
                let groups = expanded.chunks_mut(GROUP / 8).zip(quants.chunks(GROUP));
                for ((expanded, quants), scale) in groups.zip(factors) {
                    for (out, quants) in expanded.iter_mut().zip(quants.as_chunks().0) {
                        store(out, widen(quants).map(|quants| vmulq_n_f32(quants, scale)));
                    }
                }
            }
        }
    }
    expanded
}

/// Eight integers of 8 bits as floats.
#[inline]
#[target_feature(enable = "neon")]
fn widen(v: &[u8; 8]) -> [float32x4_t; 2] {
    // SAFETY: the array is as long as the vector.
    let v = vmovl_s8(unsafe { vld1_s8(v.as_ptr().cast()) });
    [vcvtq_f32_s32(vmovl_s16(vget_low_s16(v))), vcvtq_f32_s32(vmovl_high_s16(v))]
}

/// The products of all queries with the keys of a block.
#[inline]
#[target_feature(enable = "neon")]
fn score<const R: usize>(q: &[Queries], keys: &[[f32; 8]], scores: &mut Scores) {
    for (key, score) in keys.chunks_exact(q.len()).zip(scores) {
        let mut sums = [[vdupq_n_f32(0.0); 2]; ROWS];
        for (q, key) in q.iter().zip(key) {
            let key = load(key);
            for (q, sums) in q.iter().zip(&mut sums).take(R) {
                let q = load(q);
                *sums = [vfmaq_f32(sums[0], q[0], key[0]), vfmaq_f32(sums[1], q[1], key[1])];
            }
        }
        let [a, b, c, d] = sums.map(|[low, high]| vaddq_f32(low, high));
        *score = vpaddq_f32(vpaddq_f32(a, b), vpaddq_f32(c, d));
    }
}

/// Turns the scores of a block into weights against the new largest score; gives what older sums shrink by. A score that is
/// NaN is no maximum.
#[inline]
#[target_feature(enable = "neon")]
fn softmax(scores: &mut Scores, visible: [i32; ROWS], partial: &mut Partial) -> [f32; ROWS] {
    // SAFETY: the arrays are as long as the vectors.
    let (visible, old, sum) =
        unsafe { (vld1q_s32(visible.as_ptr()), vld1q_f32(partial.max.as_ptr()), vld1q_f32(partial.sum.as_ptr())) };
    let mask = |position: usize| vcgtq_s32(visible, vdupq_n_s32(position as i32));
    let mut max = old;
    for (position, score) in scores.iter().enumerate() {
        max = vmaxnmq_f32(max, vbslq_f32(mask(position), *score, old));
    }
    let shrink = exp(vsubq_f32(old, max));
    let mut sum = vmulq_f32(sum, shrink);
    for (position, score) in scores.iter_mut().enumerate() {
        let weight = vreinterpretq_u32_f32(exp(vsubq_f32(*score, max)));
        *score = vreinterpretq_f32_u32(vandq_u32(weight, mask(position)));
        sum = vaddq_f32(sum, *score);
    }
    let mut shrink_by = [0.0; ROWS];
    // SAFETY: the arrays are as long as the vectors.
    unsafe {
        vst1q_f32(partial.sum.as_mut_ptr(), sum);
        vst1q_f32(partial.max.as_mut_ptr(), max);
        vst1q_f32(shrink_by.as_mut_ptr(), shrink);
    }
    shrink_by
}

#[inline]
#[target_feature(enable = "neon")]
fn add_values<const R: usize>(
    weights: &Scores,
    values: &[[f32; 8]],
    per_value: usize,
    shrink: [f32; ROWS],
    partial: &mut Partial,
) {
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
#[target_feature(enable = "neon")]
fn add_columns<const R: usize, const C: usize>(
    weights: &Scores,
    values: &[[f32; 8]],
    per_value: usize,
    first: usize,
    shrink: [f32; ROWS],
    partial: &mut Partial,
) {
    let mut sums = [[[vdupq_n_f32(0.0); 2]; C]; R];
    for (r, sums) in sums.iter_mut().enumerate() {
        let old = &partial.weighted[r].as_chunks::<8>().0[first..];
        for (sum, old) in sums.iter_mut().zip(old) {
            *sum = load(old).map(|old| vmulq_n_f32(old, shrink[r]));
        }
    }
    for (weights, value) in weights.iter().zip(values.chunks_exact(per_value)) {
        for (c, value) in value[first..first + C].iter().enumerate() {
            let value = load(value);
            for (r, sums) in sums.iter_mut().enumerate() {
                sums[c] =
                    [add_weighted(sums[c][0], value[0], *weights, r), add_weighted(sums[c][1], value[1], *weights, r)];
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

/// Adds the product with one lane of the weights.
#[inline]
#[target_feature(enable = "neon")]
fn add_weighted(sum: float32x4_t, value: float32x4_t, weights: float32x4_t, lane: usize) -> float32x4_t {
    match lane {
        0 => vfmaq_laneq_f32::<0>(sum, value, weights),
        1 => vfmaq_laneq_f32::<1>(sum, value, weights),
        2 => vfmaq_laneq_f32::<2>(sum, value, weights),
        _ => vfmaq_laneq_f32::<3>(sum, value, weights),
    }
}
