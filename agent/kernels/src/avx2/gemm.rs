//! Matmul of many tokens: the nibbles of two panels are expanded to bytes once, then used for tiles of 16 rows and 3 tokens.
//!
//! The sums of such a tile, the weights and one activation are what 16 registers hold. A block of columns of two panels and
//! of three tokens lies in the first cache level, that of all tokens of a block in the second.

use std::arch::x86_64::*;
use std::ops::Range;

use super::gemv::{Q4, Q4M, Q8, zero_point};
use super::{load, load_bytes, load_halves, store};
use crate::activations::{Activations, GroupScale};
use crate::disjoint::Disjoint;
use crate::format::{GROUP, Kind, Matrix, PANEL};

/// Groups of a block of columns.
const BLOCK_GROUPS: usize = 32;

/// Tokens of a block.
const BLOCK_TOKENS: usize = 128;

/// Panels that a tile takes together.
const TILE_PANELS: usize = 2;

/// Tokens that a tile takes together.
const TILE_TOKENS: usize = 3;

/// One group of a panel with a byte a weight, as unsigned nibbles or signed bytes.
#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Expanded {
    quants: [[u8; 32]; GROUP / 4],
    scales: [f32; PANEL],
    mins: [f32; PANEL],
}

type Panel = [Expanded; BLOCK_GROUPS];

const NOTHING: Panel =
    [Expanded { quants: [[0; 32]; GROUP / 4], scales: [0.0; PANEL], mins: [0.0; PANEL] }; BLOCK_GROUPS];

/// # Safety
/// The CPU has the instructions, and no other thread writes the rows of the same panels.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn gemm(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &Disjoint<'_, f32>) {
    // SAFETY: the caller's contract.
    unsafe {
        match w.kind() {
            Kind::Q4 => gemm_of::<Q4, { Kind::Q4.group_bytes() }>(w, a, panels, y),
            Kind::Q4m => gemm_of::<Q4M, { Kind::Q4m.group_bytes() }>(w, a, panels, y),
            Kind::Q8 => gemm_of::<Q8, { Kind::Q8.group_bytes() }>(w, a, panels, y),
        }
    }
}

/// # Safety
/// As for [`gemm`].
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn gemm_of<const KIND: u8, const BYTES: usize>(
    w: &Matrix<'_>,
    a: &Activations,
    panels: Range<usize>,
    y: &Disjoint<'_, f32>,
) {
    let mut expanded = [NOTHING; TILE_PANELS];
    for first_token in (0..a.tokens()).step_by(BLOCK_TOKENS) {
        let tokens = first_token..a.tokens().min(first_token + BLOCK_TOKENS);
        for first_group in (0..w.groups()).step_by(BLOCK_GROUPS) {
            let groups = first_group..w.groups().min(first_group + BLOCK_GROUPS);
            for panel in panels.clone().step_by(TILE_PANELS) {
                let n = TILE_PANELS.min(panels.end - panel);
                for (panel, expanded) in (panel..panel + n).zip(&mut expanded) {
                    expand::<KIND, BYTES>(&w.packed(panel).as_chunks::<BYTES>().0[groups.clone()], expanded);
                }
                let block = Block { a, groups: groups.clone(), first_row: panel * PANEL, rows: w.rows(), y };
                // SAFETY: the rows are those of the caller's panels.
                unsafe {
                    if n == TILE_PANELS {
                        block.tokens::<KIND, TILE_PANELS>(&expanded, tokens.clone());
                    } else {
                        block.tokens::<KIND, 1>(&[expanded[0]], tokens.clone());
                    }
                }
            }
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
fn expand<const KIND: u8, const BYTES: usize>(groups: &[[u8; BYTES]], panel: &mut Panel) {
    let low_bits = _mm256_set1_epi8(15);
    for (group, expanded) in groups.iter().zip(panel) {
        let (halves, _) = group.as_chunks::<16>();
        store(&mut expanded.scales, load_halves(&halves[0]));
        if KIND == Q4M {
            store(&mut expanded.mins, load_halves(&halves[1]));
        }
        let (vectors, _) = group[if KIND == Q4M { 32 } else { 16 }..].as_chunks::<32>();
        if KIND == Q8 {
            expanded.quants.copy_from_slice(vectors);
            continue;
        }
        for (vector, [low, high]) in vectors.iter().zip(expanded.quants.as_chunks_mut::<2>().0) {
            let vector = load_bytes(vector);
            // SAFETY: both arrays are as long as the vector.
            unsafe {
                _mm256_storeu_si256(low.as_mut_ptr().cast(), _mm256_and_si256(vector, low_bits));
                let nibbles = _mm256_and_si256(_mm256_srli_epi16::<4>(vector), low_bits);
                _mm256_storeu_si256(high.as_mut_ptr().cast(), nibbles);
            }
        }
    }
}

/// The activations and outputs that belong to expanded panels.
struct Block<'a> {
    a: &'a Activations,
    groups: Range<usize>,
    first_row: usize,
    rows: usize,
    y: &'a Disjoint<'a, f32>,
}

impl Block<'_> {
    /// # Safety
    /// As for [`gemm`].
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn tokens<const KIND: u8, const P: usize>(&self, panels: &[Panel; P], tokens: Range<usize>) {
        for token in tokens.clone().step_by(TILE_TOKENS) {
            // SAFETY: the caller's contract.
            unsafe {
                match tokens.end - token {
                    1 => self.tile::<KIND, P, 1>(panels, token),
                    2 => self.tile::<KIND, P, 2>(panels, token),
                    _ => self.tile::<KIND, P, TILE_TOKENS>(panels, token),
                }
            }
        }
    }

    /// Adds the block's groups to the outputs of one tile; the first block starts them.
    ///
    /// # Safety
    /// As for [`gemm`].
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn tile<const KIND: u8, const P: usize, const T: usize>(&self, panels: &[Panel; P], token: usize) {
        let first = &self.groups.start;
        let quants: [&[i8]; T] = std::array::from_fn(|t| &self.a.quants(token + t)[first * GROUP..]);
        let scales: [&[GroupScale]; T] = std::array::from_fn(|t| &self.a.scales(token + t)[*first..]);
        let rows = |p: usize, t: usize| {
            let row = self.first_row + p * PANEL;
            let start = (token + t) * self.rows + row;
            // SAFETY: the rows are those of the caller's panels, and each part ends before the next begins.
            unsafe { self.y.part(start..start + PANEL.min(self.rows - row)) }
        };
        let mut sums = [[_mm256_setzero_ps(); T]; P];
        if *first > 0 {
            for (p, sums) in sums.iter_mut().enumerate() {
                for (t, sum) in sums.iter_mut().enumerate() {
                    let mut row = [0.0; PANEL];
                    let y = rows(p, t);
                    row[..y.len()].copy_from_slice(y);
                    *sum = load(&row);
                }
            }
        }
        assert!(self.groups.len() <= BLOCK_GROUPS);
        assert!(quants.iter().all(|quants| quants.len() >= self.groups.len() * GROUP));
        assert!(scales.iter().all(|scales| scales.len() >= self.groups.len()));
        for g in 0..self.groups.len() {
            // SAFETY: `g` is below the lengths asserted above.
            unsafe {
                let groups: [&Expanded; P] = std::array::from_fn(|p| panels[p].get_unchecked(g));
                let quants = quants.map(|quants| quants.as_ptr().add(g * GROUP).cast::<i32>());
                let scales = scales.map(|scales| scales.get_unchecked(g));
                add_group::<KIND, P, T>(groups, quants, scales, &mut sums);
            }
        }
        for (p, sums) in sums.iter().enumerate() {
            for (t, sum) in sums.iter().enumerate() {
                let mut row = [0.0; PANEL];
                store(&mut row, *sum);
                let y = rows(p, t);
                y.copy_from_slice(&row[..y.len()]);
            }
        }
    }
}

/// # Safety
/// Each of `quants` points to the integers of one group, of any alignment.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn add_group<const KIND: u8, const P: usize, const T: usize>(
    groups: [&Expanded; P],
    quants: [*const i32; T],
    scales: [&GroupScale; T],
    sums: &mut [[__m256; T]; P],
) {
    let ones = _mm256_set1_epi16(1);
    let mut dots = [[_mm256_setzero_si256(); T]; P];
    if KIND == Q4 {
        let zero_points = scales.map(|scale| zero_point(scale));
        dots = [zero_points; P];
    }
    for v in 0..GROUP / 4 {
        let vectors = groups.map(|group| load_bytes(&group.quants[v]));
        for t in 0..T {
            // SAFETY: a group is `GROUP / 4` words long.
            let a = _mm256_set1_epi32(unsafe { quants[t].add(v).read_unaligned() });
            for p in 0..P {
                dots[p][t] = if KIND == Q8 {
                    let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(vectors[p]), _mm256_sign_epi8(a, vectors[p]));
                    _mm256_add_epi32(dots[p][t], _mm256_madd_epi16(pairs, ones))
                } else {
                    _mm256_add_epi16(dots[p][t], _mm256_maddubs_epi16(vectors[p], a))
                };
                keep_order(&mut dots[p][t]);
            }
        }
    }
    for p in 0..P {
        let (scale, min) = (load(&groups[p].scales), load(&groups[p].mins));
        for t in 0..T {
            let dot = if KIND == Q8 { dots[p][t] } else { _mm256_madd_epi16(dots[p][t], ones) };
            let factor = _mm256_mul_ps(scale, _mm256_set1_ps(scales[t].scale));
            sums[p][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), factor, sums[p][t]);
            if KIND == Q4M {
                sums[p][t] = _mm256_fmadd_ps(min, _mm256_set1_ps(scales[t].offset), sums[p][t]);
            }
        }
    }
}

/// Keeps the compiler from adding up in another order, for which it would spill most of the tile.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn keep_order(sum: &mut __m256i) {
    // SAFETY: there is no instruction in it.
    unsafe { std::arch::asm!("/* {0} */", inout(ymm_reg) * sum, options(nomem, nostack, preserves_flags)) };
}
