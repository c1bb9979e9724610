//! Matmul of many tokens: the nibbles of two panels are expanded to bytes once, then used for tiles of 16 rows and 3 tokens.
//!
//! The sums of such a tile, the weights and one activation are what 16 registers hold. A block of columns of two panels and
//! of three tokens lies in the first cache level, that of all tokens of a block in the second.

use std::arch::x86_64::*;
use std::ops::Range;

use super::dots::Dots;
use super::stream::{self, Token};
use super::{Q4, Q4M, Q8, load, load_bytes, load_halves, repeat, store};
use crate::activations::Activations;
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

/// One group of a panel with a byte a weight, as [`Dots`] wants them.
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
/// The CPU has the instructions of `D`, and no other thread writes the rows of the same panels.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn gemm<D: Dots>(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &Disjoint<'_, f32>) {
    // SAFETY: the caller's contract.
    unsafe {
        match w.kind() {
            _ if a.tokens() <= stream::MAX_TOKENS => stream::gemm::<D>(w, a, panels, y),
            Kind::Q4 => gemm_of::<D, Q4, { Kind::Q4.group_bytes() }>(w, a, panels, y),
            Kind::Q4m => gemm_of::<D, Q4M, { Kind::Q4m.group_bytes() }>(w, a, panels, y),
            Kind::Q8 => gemm_of::<D, Q8, { Kind::Q8.group_bytes() }>(w, a, panels, y),
        }
    }
}

/// # Safety
/// As for [`gemm`].
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn gemm_of<D: Dots, const KIND: u8, const BYTES: usize>(
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
                    expand::<D, KIND, BYTES>(&w.packed(panel).as_chunks::<BYTES>().0[groups.clone()], expanded);
                }
                let block = Block { a, groups: groups.clone(), first_row: panel * PANEL, rows: w.rows(), y };
                // SAFETY: the rows are those of the caller's panels.
                unsafe {
                    if n == TILE_PANELS {
                        block.tokens::<D, KIND, TILE_PANELS>(&expanded, tokens.clone());
                    } else {
                        block.tokens::<D, KIND, 1>(&[expanded[0]], tokens.clone());
                    }
                }
            }
        }
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
fn expand<D: Dots, const KIND: u8, const BYTES: usize>(groups: &[[u8; BYTES]], panel: &mut Panel) {
    let low_bits = _mm256_set1_epi8(15);
    for (group, expanded) in groups.iter().zip(panel) {
        let (halves, _) = group.as_chunks::<16>();
        store(&mut expanded.scales, load_halves(&halves[0]));
        if KIND == Q4M {
            store(&mut expanded.mins, load_halves(&halves[1]));
        }
        let (vectors, _) = group[if KIND == Q4M { 32 } else { 16 }..].as_chunks::<32>();
        if KIND == Q8 {
            for (vector, out) in vectors.iter().zip(&mut expanded.quants) {
                let flipped = _mm256_xor_si256(load_bytes(vector), _mm256_set1_epi8(D::FLIPPED));
                // SAFETY: the array is as long as the vector.
                unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), flipped) };
            }
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
    unsafe fn tokens<D: Dots, const KIND: u8, const P: usize>(&self, panels: &[Panel; P], tokens: Range<usize>) {
        for token in tokens.clone().step_by(TILE_TOKENS) {
            // SAFETY: the caller's contract.
            unsafe {
                match tokens.end - token {
                    1 => self.tile::<D, KIND, P, 1>(panels, token),
                    2 => self.tile::<D, KIND, P, 2>(panels, token),
                    _ => self.tile::<D, KIND, P, TILE_TOKENS>(panels, token),
                }
            }
        }
    }

    /// Adds the block's groups to the outputs of one tile; the first block starts them.
    ///
    /// # Safety
    /// As for [`gemm`].
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn tile<D: Dots, const KIND: u8, const P: usize, const T: usize>(&self, panels: &[Panel; P], token: usize) {
        let n_groups = self.groups.len();
        let mut tokens: [Token<'_>; T] = [(&[], &[]); T];
        for (t, tile) in tokens.iter_mut().enumerate() {
            let quants = self.a.quants(token + t).as_chunks().0.as_chunks().0;
            *tile = (&quants[self.groups.clone()], &self.a.scales(token + t)[self.groups.clone()]);
        }
        let rows = |p: usize, t: usize| {
            let row = self.first_row + p * PANEL;
            let start = (token + t) * self.rows + row;
            // SAFETY: the rows are those of the caller's panels, and each part ends before the next begins.
            unsafe { self.y.part(start..start + PANEL.min(self.rows - row)) }
        };
        let mut sums = [[_mm256_setzero_ps(); T]; P];
        if self.groups.start > 0 {
            for (p, sums) in sums.iter_mut().enumerate() {
                for (t, sum) in sums.iter_mut().enumerate() {
                    *sum = load_part(rows(p, t));
                }
            }
        }
        assert!(n_groups <= BLOCK_GROUPS);
        for g in 0..n_groups {
            // SAFETY: the caller's contract; the group is below the lengths of the slices above and of the panels.
            unsafe { add_group::<D, KIND, P, T>(panels, &tokens, g, &mut sums) };
        }
        for (p, sums) in sums.iter().enumerate() {
            for (t, sum) in sums.iter().enumerate() {
                store_part(rows(p, t), *sum);
            }
        }
    }
}

/// At most eight outputs.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn load_part(y: &[f32]) -> __m256 {
    if let Ok(y) = y.try_into() {
        return load(y);
    }
    let mut rows = [0.0; PANEL];
    rows[..y.len()].copy_from_slice(y);
    load(&rows)
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn store_part(y: &mut [f32], sums: __m256) {
    if let Ok(y) = y.try_into() {
        return store(y, sums);
    }
    let mut rows = [0.0; PANEL];
    store(&mut rows, sums);
    y.copy_from_slice(&rows[..y.len()]);
}

/// # Safety
/// The CPU has the instructions of `D`, and all panels and tokens have more groups than `g`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn add_group<D: Dots, const KIND: u8, const P: usize, const T: usize>(
    panels: &[Panel; P],
    tokens: &[Token<'_>; T],
    g: usize,
    sums: &mut [[__m256; T]; P],
) {
    let mut dots = [[_mm256_setzero_si256(); T]; P];
    for t in 0..T {
        // SAFETY: the caller's contract.
        let start = unsafe { D::start::<KIND>(tokens[t].1.get_unchecked(g)) };
        for dots in &mut dots {
            dots[t] = start;
        }
    }
    for v in 0..GROUP / 4 {
        let mut vectors = [_mm256_setzero_si256(); P];
        for p in 0..P {
            // SAFETY: the caller's contract.
            vectors[p] = load_bytes(unsafe { &panels[p].get_unchecked(g).quants[v] });
        }
        for t in 0..T {
            // SAFETY: the caller's contract.
            let a = repeat(unsafe { tokens[t].0.get_unchecked(g) }[v]);
            for p in 0..P {
                // SAFETY: the caller's contract.
                dots[p][t] = unsafe { D::add::<KIND>(dots[p][t], vectors[p], a) };
                keep_order(&mut dots[p][t]);
            }
        }
    }
    for p in 0..P {
        // SAFETY: the caller's contract.
        let panel = unsafe { panels[p].get_unchecked(g) };
        let (scale, min) = (load(&panel.scales), load(&panel.mins));
        for t in 0..T {
            // SAFETY: the caller's contract.
            let (dot, a) = unsafe { (D::finish::<KIND>(dots[p][t]), tokens[t].1.get_unchecked(g)) };
            let factor = _mm256_mul_ps(scale, _mm256_set1_ps(a.scale));
            sums[p][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), factor, sums[p][t]);
            if KIND == Q4M {
                sums[p][t] = _mm256_fmadd_ps(min, _mm256_set1_ps(a.offset), sums[p][t]);
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
