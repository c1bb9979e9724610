//! Matmul of many tokens: the weights of a panel are expanded to bytes once, then used for tiles of 8 rows and 4 tokens.
//!
//! What differs between CPUs is how a tile is multiplied. A block of columns of a panel and of four tokens lies in the first
//! cache level, that of all tokens of a block in the second.

use std::arch::aarch64::*;
use std::ops::Range;

use super::gemv::nibbles;
use super::{Q4, Q4M, Q8, Rows, add_scaled, load, load_bytes, load_scales, store, store_rows};
use crate::activations::{Activations, GroupScale};
use crate::disjoint::Disjoint;
use crate::format::{GROUP, Kind, Matrix, PANEL};

/// Groups of a block of columns.
const BLOCK_GROUPS: usize = 32;

/// Tokens of a block.
const BLOCK_TOKENS: usize = 128;

/// Tokens that a tile takes together, where there are more than two.
const TILE_TOKENS: usize = 4;

/// One group of a panel with a signed byte a weight, the zero point taken off.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Expanded {
    /// Two vectors for each 4 columns, of 4 rows each; or, where [`Multiply::PAIRED`], four vectors for each 8 columns, of 2
    /// rows each.
    pub(super) quants: [[i8; 16]; GROUP / 2],
    pub(super) scales: [f32; PANEL],
    pub(super) mins: [f32; PANEL],
}

const NOTHING: Expanded = Expanded { quants: [[0; 16]; GROUP / 2], scales: [0.0; PANEL], mins: [0.0; PANEL] };

impl Expanded {
    /// Adds the dot products of a tile to its sums.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(super) fn add_scaled<const KIND: u8, const T: usize>(
        &self,
        dots: [[int32x4_t; 2]; T],
        a: [&GroupScale; T],
        sums: &mut [Rows; T],
    ) {
        let (scales, mins) = (load(&self.scales), load(&self.mins));
        for (sums, (dots, a)) in sums.iter_mut().zip(dots.into_iter().zip(a)) {
            add_scaled::<KIND>(sums, dots, scales, mins, a);
        }
    }
}

/// The activations of one tile: `T` tokens, as many groups as the weights have.
pub(super) struct Tokens<'a, const T: usize> {
    quants: [&'a [[i8; GROUP]]; T],
    scales: [&'a [GroupScale]; T],
}

impl<'a, const T: usize> Tokens<'a, T> {
    /// The first groups: the compiler then sees that as many are there.
    #[inline]
    pub(super) fn first(&self, groups: usize) -> Self {
        Self {
            quants: self.quants.map(|quants| &quants[..groups]),
            scales: self.scales.map(|scales| &scales[..groups]),
        }
    }

    #[inline]
    pub(super) fn group(&self, group: usize) -> ([&'a [i8; GROUP]; T], [&'a GroupScale; T]) {
        (self.quants.map(|quants| &quants[group]), self.scales.map(|scales| &scales[group]))
    }
}

/// A way to multiply tiles.
pub(super) trait Multiply {
    /// Whether it wants 8 columns of 2 rows in a vector instead of 4 columns of 4.
    const PAIRED: bool;

    /// Adds all groups to the sums of a tile of 2 or 4 tokens.
    ///
    /// # Safety
    /// The CPU has the instructions.
    unsafe fn add<const KIND: u8, const T: usize>(panel: &[Expanded], tokens: &Tokens<'_, T>, sums: &mut [Rows; T]);
}

/// # Safety
/// The CPU has the instructions of `M`, and no other thread writes the rows of the same panels.
#[target_feature(enable = "neon")]
pub(super) unsafe fn gemm<M: Multiply>(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &Disjoint<'_, f32>) {
    // SAFETY: the caller's contract.
    unsafe {
        match w.kind() {
            Kind::Q4 => gemm_of::<M, Q4, { Kind::Q4.group_bytes() }>(w, a, panels, y),
            Kind::Q4m => gemm_of::<M, Q4M, { Kind::Q4m.group_bytes() }>(w, a, panels, y),
            Kind::Q8 => gemm_of::<M, Q8, { Kind::Q8.group_bytes() }>(w, a, panels, y),
        }
    }
}

/// # Safety
/// As for [`gemm`].
#[target_feature(enable = "neon")]
unsafe fn gemm_of<M: Multiply, const KIND: u8, const BYTES: usize>(
    w: &Matrix<'_>,
    a: &Activations,
    panels: Range<usize>,
    y: &Disjoint<'_, f32>,
) {
    let mut expanded = [NOTHING; BLOCK_GROUPS];
    for first_token in (0..a.tokens()).step_by(BLOCK_TOKENS) {
        let tokens = first_token..a.tokens().min(first_token + BLOCK_TOKENS);
        for first_group in (0..w.groups()).step_by(BLOCK_GROUPS) {
            let groups = first_group..w.groups().min(first_group + BLOCK_GROUPS);
            for panel in panels.clone() {
                let packed = &w.packed(panel).as_chunks::<BYTES>().0[groups.clone()];
                for (packed, expanded) in packed.iter().zip(&mut expanded) {
                    expand::<M, KIND>(packed, expanded);
                }
                let block = Block { a, groups: groups.clone(), first_row: panel * PANEL, rows: w.rows(), y };
                let expanded = &expanded[..groups.len()];
                for token in tokens.clone().step_by(TILE_TOKENS) {
                    let tokens = token..tokens.end.min(token + TILE_TOKENS);
                    // SAFETY: the caller's contract; the rows are those of its panels.
                    unsafe {
                        if tokens.len() <= 2 {
                            block.tile::<M, KIND, 2>(expanded, tokens);
                        } else {
                            block.tile::<M, KIND, TILE_TOKENS>(expanded, tokens);
                        }
                    }
                }
            }
        }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn expand<M: Multiply, const KIND: u8>(group: &[u8], expanded: &mut Expanded) {
    let (vectors, _) = group.as_chunks::<16>();
    store(&mut expanded.scales, load_scales(&vectors[0]));
    if KIND == Q4M {
        store(&mut expanded.mins, load_scales(&vectors[1]));
    }
    let vectors = &vectors[if KIND == Q4M { 2 } else { 1 }..];
    let zero_point = vdupq_n_s8(if KIND == Q4 { Kind::Q4.zero_point() } else { 0 });
    for (v, out) in expanded.quants.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        if KIND == Q8 {
            let of = |i: usize| vreinterpretq_s8_u8(load_bytes(&vectors[4 * v + i]));
            place::<M>(out, [of(0), of(1)], [of(2), of(3)]);
        } else {
            let ((a, c), (b, d)) = (nibbles(&vectors[2 * v]), nibbles(&vectors[2 * v + 1]));
            place::<M>(
                out,
                [vsubq_s8(a, zero_point), vsubq_s8(b, zero_point)],
                [vsubq_s8(c, zero_point), vsubq_s8(d, zero_point)],
            );
        }
    }
}

/// Writes the 4 columns of all rows in `low`, and the 4 columns after those in `high`, in the order that `M` wants.
#[inline]
#[target_feature(enable = "neon")]
fn place<M: Multiply>(out: &mut [[i8; 16]; 4], low: [int8x16_t; 2], high: [int8x16_t; 2]) {
    let mut put = |i: usize, vector: int8x16_t| {
        // SAFETY: the array is as long as the vector.
        unsafe { vst1q_s8(out[i].as_mut_ptr(), vector) };
    };
    for half in 0..2 {
        if M::PAIRED {
            let (low, high) = (vreinterpretq_s32_s8(low[half]), vreinterpretq_s32_s8(high[half]));
            put(2 * half, vreinterpretq_s8_s32(vzip1q_s32(low, high)));
            put(2 * half + 1, vreinterpretq_s8_s32(vzip2q_s32(low, high)));
        } else {
            put(half, low[half]);
            put(2 + half, high[half]);
        }
    }
}

/// The activations and outputs that belong to an expanded panel.
struct Block<'a> {
    a: &'a Activations,
    groups: Range<usize>,
    first_row: usize,
    rows: usize,
    y: &'a Disjoint<'a, f32>,
}

impl Block<'_> {
    /// Adds the block's groups to the outputs of one tile; the first block starts them. Where there are fewer than `T`
    /// tokens, the last one is computed again.
    ///
    /// # Safety
    /// As for [`gemm`].
    #[target_feature(enable = "neon")]
    unsafe fn tile<M: Multiply, const KIND: u8, const T: usize>(&self, panel: &[Expanded], tokens: Range<usize>) {
        let of = |t: usize| (tokens.start + t).min(tokens.end - 1);
        let activations = Tokens {
            quants: std::array::from_fn(|t| &self.a.quants(of(t)).as_chunks().0[self.groups.clone()]),
            scales: std::array::from_fn(|t| &self.a.scales(of(t))[self.groups.clone()]),
        };
        let rows = |token: usize| {
            let start = token * self.rows + self.first_row;
            // SAFETY: the rows are those of the caller's panels, and each part ends before the next begins.
            unsafe { self.y.part(start..start + PANEL.min(self.rows - self.first_row)) }
        };
        let mut sums = [[vdupq_n_f32(0.0); 2]; T];
        if self.groups.start > 0 {
            for (token, sums) in tokens.clone().zip(&mut sums) {
                let mut row = [0.0; PANEL];
                let y = rows(token);
                row[..y.len()].copy_from_slice(y);
                *sums = load(&row);
            }
        }
        // SAFETY: the caller's contract.
        unsafe { M::add::<KIND, T>(panel, &activations, &mut sums) };
        for (token, sums) in tokens.zip(sums) {
            store_rows(rows(token), sums);
        }
    }
}
