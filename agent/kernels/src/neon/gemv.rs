//! Matmul by widening multiplies, for CPUs without `sdot`: eight products of bytes to 16 bits an instruction.
//!
//! A vector holds 4 columns of 4 rows; the 4 activations are repeated for each row. A lane of 16 bits sums up one column in
//! 4 of a row, so that no product is moved before the end of a group.

use std::arch::aarch64::*;
use std::ops::Range;

use super::gemm::{Expanded, Multiply, Tokens};
use super::{Q4, Q4M, Q8, Rows, add_scaled, load_bytes, load_quants, load_scales, store_rows, zero_point};
use crate::Activations;
use crate::activations::GroupScale;
use crate::format::{GROUP, Kind, Matrix, PANEL};

#[target_feature(enable = "neon")]
pub(super) fn gemv(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &mut [f32]) {
    match w.kind() {
        Kind::Q4 => gemv_of::<Q4, { Kind::Q4.group_bytes() }>(w, a, panels, y),
        Kind::Q4m => gemv_of::<Q4M, { Kind::Q4m.group_bytes() }>(w, a, panels, y),
        Kind::Q8 => gemv_of::<Q8, { Kind::Q8.group_bytes() }>(w, a, panels, y),
    }
}

#[target_feature(enable = "neon")]
fn gemv_of<const KIND: u8, const BYTES: usize>(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &mut [f32]) {
    let quants = a.quants(0).as_chunks::<GROUP>().0;
    let scales = a.scales(0);
    for (panel, y) in panels.zip(y.chunks_mut(PANEL)) {
        let groups = w.packed(panel).as_chunks::<BYTES>().0;
        let mut sums = [vdupq_n_f32(0.0); 2];
        for (group, (quants, a)) in groups.iter().zip(quants.iter().zip(scales)) {
            let (vectors, _) = group.as_chunks::<16>();
            let mins = if KIND == Q4M { load_scales(&vectors[1]) } else { [vdupq_n_f32(0.0); 2] };
            let dots = if KIND == Q8 {
                dots_of_bytes(&vectors[1..], quants)
            } else {
                dots_of_nibbles::<KIND>(&vectors[if KIND == Q4M { 2 } else { 1 }..], quants, a)
            };
            add_scaled::<KIND>(&mut sums, dots, load_scales(&vectors[0]), mins, a);
        }
        store_rows(y, sums);
    }
}

/// Eight products, at most `8 * 15 * 127` in size, fit 16 bits.
#[inline]
#[target_feature(enable = "neon")]
fn dots_of_nibbles<const KIND: u8>(vectors: &[[u8; 16]], quants: &[i8; GROUP], a: &GroupScale) -> [int32x4_t; 2] {
    let mut lanes = [[vdupq_n_s16(0); 2]; 2];
    for (vectors, quants) in vectors.as_chunks::<8>().0.iter().zip(repeated(quants).as_chunks::<8>().0) {
        for (v, vector) in vectors.iter().enumerate() {
            let (low, high) = nibbles(vector);
            add_products(&mut lanes[v % 2], low, quants[v / 2 * 2]);
            add_products(&mut lanes[v % 2], high, quants[v / 2 * 2 + 1]);
        }
    }
    let dots = lanes.map(|[a, b]| row_sums(vpaddlq_s16(a), vpaddlq_s16(b)));
    if KIND == Q4 { dots.map(|dots| vsubq_s32(dots, vdupq_n_s32(zero_point(a)))) } else { dots }
}

/// Two products, at most `2 * 128 * 127` in size, fit 16 bits, four do not.
#[inline]
#[target_feature(enable = "neon")]
fn dots_of_bytes(vectors: &[[u8; 16]], quants: &[i8; GROUP]) -> [int32x4_t; 2] {
    let mut sums = [[vdupq_n_s32(0); 2]; 2];
    let quants = repeated(quants);
    for (vectors, quants) in vectors.as_chunks::<4>().0.iter().zip(quants.as_chunks::<2>().0) {
        for (half, sums) in sums.iter_mut().enumerate() {
            let first = vreinterpretq_s8_u8(load_bytes(&vectors[half]));
            let second = vreinterpretq_s8_u8(load_bytes(&vectors[2 + half]));
            add_pairs(sums, [first, second], *quants);
        }
    }
    sums.map(|[a, b]| row_sums(a, b))
}

/// Splits a vector of 4 bits a weight: its 4 columns, and the 4 after those.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn nibbles(vector: &[u8; 16]) -> (int8x16_t, int8x16_t) {
    let vector = load_bytes(vector);
    (vreinterpretq_s8_u8(vandq_u8(vector, vdupq_n_u8(15))), vreinterpretq_s8_u8(vshrq_n_u8::<4>(vector)))
}

/// Each 4 activations of a group, four times.
#[inline]
#[target_feature(enable = "neon")]
fn repeated(quants: &[i8; GROUP]) -> [int8x16_t; 8] {
    let (halves, _) = quants.as_chunks::<16>();
    let [low, high] = [0, 1].map(|half| vreinterpretq_s32_s8(load_quants(&halves[half])));
    [
        vdupq_laneq_s32::<0>(low),
        vdupq_laneq_s32::<1>(low),
        vdupq_laneq_s32::<2>(low),
        vdupq_laneq_s32::<3>(low),
        vdupq_laneq_s32::<0>(high),
        vdupq_laneq_s32::<1>(high),
        vdupq_laneq_s32::<2>(high),
        vdupq_laneq_s32::<3>(high),
    ]
    .map(|words| vreinterpretq_s8_s32(words))
}

/// Adds products to the lanes of two rows each.
#[inline]
#[target_feature(enable = "neon")]
fn add_products(lanes: &mut [int16x8_t; 2], w: int8x16_t, a: int8x16_t) {
    lanes[0] = vmlal_s8(lanes[0], vget_low_s8(w), vget_low_s8(a));
    lanes[1] = vmlal_high_s8(lanes[1], w, a);
}

/// Adds two products a lane, then these to sums of 32 bits.
#[inline]
#[target_feature(enable = "neon")]
fn add_pairs(sums: &mut [int32x4_t; 2], w: [int8x16_t; 2], a: [int8x16_t; 2]) {
    let mut lanes = [vmull_s8(vget_low_s8(w[0]), vget_low_s8(a[0])), vmull_high_s8(w[0], a[0])];
    add_products(&mut lanes, w[1], a[1]);
    sums[0] = vpadalq_s16(sums[0], lanes[0]);
    sums[1] = vpadalq_s16(sums[1], lanes[1]);
}

/// The sums of four rows from two lanes of each.
#[inline]
#[target_feature(enable = "neon")]
fn row_sums(a: int32x4_t, b: int32x4_t) -> int32x4_t {
    vpaddq_s32(a, b)
}

/// Tiles by the same multiplies.
pub(super) enum Widening {}

impl Multiply for Widening {
    const PAIRED: bool = false;

    #[target_feature(enable = "neon")]
    unsafe fn add<const KIND: u8, const T: usize>(panel: &[Expanded], tokens: &Tokens<'_, T>, sums: &mut [Rows; T]) {
        let (tokens, mut of_panel) = (tokens.first(panel.len()), *sums);
        for (g, group) in panel.iter().enumerate() {
            let (quants, scales) = tokens.group(g);
            let dots = if KIND == Q8 { tile_of_bytes(group, quants) } else { tile_of_nibbles(group, quants) };
            group.add_scaled::<KIND, T>(dots, scales, &mut of_panel);
        }
        *sums = of_panel;
    }
}

/// As [`dots_of_nibbles`], of weights in -8..=15.
#[inline]
#[target_feature(enable = "neon")]
fn tile_of_nibbles<const T: usize>(group: &Expanded, quants: [&[i8; GROUP]; T]) -> [[int32x4_t; 2]; T] {
    let mut lanes = [[[vdupq_n_s16(0); 2]; 2]; T];
    let quants = quants.map(|quants| quants.as_chunks::<4>().0);
    for (v, vectors) in group.quants.as_chunks::<2>().0.iter().enumerate() {
        let vectors = [load_quants(&vectors[0]), load_quants(&vectors[1])];
        for (lanes, quants) in lanes.iter_mut().zip(quants) {
            let a = repeat(&quants[v]);
            add_products(&mut lanes[0], vectors[0], a);
            add_products(&mut lanes[1], vectors[1], a);
        }
    }
    lanes.map(|lanes| lanes.map(|[a, b]| row_sums(vpaddlq_s16(a), vpaddlq_s16(b))))
}

/// As [`dots_of_bytes`].
#[inline]
#[target_feature(enable = "neon")]
fn tile_of_bytes<const T: usize>(group: &Expanded, quants: [&[i8; GROUP]; T]) -> [[int32x4_t; 2]; T] {
    let mut sums = [[[vdupq_n_s32(0); 2]; 2]; T];
    let quants = quants.map(|quants| quants.as_chunks::<4>().0);
    for (v, vectors) in group.quants.as_chunks::<4>().0.iter().enumerate() {
        let [a, b, c, d] = [0, 1, 2, 3].map(|i| load_quants(&vectors[i]));
        for (sums, quants) in sums.iter_mut().zip(quants) {
            let quants = [repeat(&quants[2 * v]), repeat(&quants[2 * v + 1])];
            add_pairs(&mut sums[0], [a, c], quants);
            add_pairs(&mut sums[1], [b, d], quants);
        }
    }
    sums.map(|sums| sums.map(|[a, b]| row_sums(a, b)))
}

/// Four activations, four times.
#[inline]
#[target_feature(enable = "neon")]
fn repeat(quants: &[i8; 4]) -> int8x16_t {
    vreinterpretq_s8_s32(vdupq_n_s32(i32::from_le_bytes(quants.map(|q| q as u8))))
}
