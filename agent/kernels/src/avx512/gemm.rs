//! Matmul of many tokens: the weights of two panels are expanded to bytes once, then used for tiles of 16 rows and 8 tokens.
//!
//! A block of columns of two panels and of eight tokens lies in the first cache level, that of all tokens of a block in the
//! second.

use std::arch::x86_64::*;
use std::ops::Range;

use super::{Q4, Q4M, Q8, RAISED, excess, load, load_bytes, store};
use crate::activations::{Activations, GroupScale};
use crate::avx2::load_halves;
use crate::disjoint::Disjoint;
use crate::format::{GROUP, Kind, Matrix, PANEL};

/// Groups of a block of columns.
const BLOCK_GROUPS: usize = 32;

/// Tokens of a block.
const BLOCK_TOKENS: usize = 128;

/// Rows of a tile: two panels.
const ROWS: usize = 2 * PANEL;

/// One group of two panels with an unsigned byte a weight.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Expanded {
    quants: [[u8; 64]; GROUP / 4],
    scales: [f32; ROWS],
    mins: [f32; ROWS],
}

const NOTHING: Expanded = Expanded { quants: [[0; 64]; GROUP / 4], scales: [0.0; ROWS], mins: [0.0; ROWS] };

/// # Safety
/// The CPU has the instructions, and no other thread writes the rows of the same panels.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
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
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
unsafe fn gemm_of<const KIND: u8, const BYTES: usize>(
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
            for panel in panels.clone().step_by(2) {
                let last = (panel + 1).min(panels.end - 1);
                for (half, panel) in [panel, last].into_iter().enumerate() {
                    let packed = &w.packed(panel).as_chunks::<BYTES>().0[groups.clone()];
                    for (packed, expanded) in packed.iter().zip(&mut expanded) {
                        expand::<KIND>(packed, half, expanded);
                    }
                }
                let (first_row, end) = (panel * PANEL, w.rows().min((last + 1) * PANEL));
                let block = Block { a, groups: groups.clone(), tile_rows: first_row..end, rows: w.rows(), y };
                // SAFETY: the caller's contract; the rows are those of its panels.
                unsafe { block.tokens::<KIND>(&expanded[..groups.len()], tokens.clone()) };
            }
        }
    }
}

/// Writes one of the two panels.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn expand<const KIND: u8>(group: &[u8], half: usize, expanded: &mut Expanded) {
    let (halves, _) = group.as_chunks::<16>();
    crate::avx2::store(&mut expanded.scales.as_chunks_mut().0[half], load_halves(&halves[0]));
    if KIND == Q4M {
        crate::avx2::store(&mut expanded.mins.as_chunks_mut().0[half], load_halves(&halves[1]));
    }
    let (vectors, _) = group[if KIND == Q4M { 32 } else { 16 }..].as_chunks::<32>();
    let mut put = |column: usize, vector: __m256i| {
        let out: &mut [u8; 32] = &mut expanded.quants[column].as_chunks_mut().0[half];
        // SAFETY: the array is as long as the vector.
        unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), vector) };
    };
    for (v, vector) in vectors.iter().enumerate() {
        let vector = crate::avx2::load_bytes(vector);
        if KIND == Q8 {
            put(v, _mm256_xor_si256(vector, _mm256_set1_epi8(RAISED)));
        } else {
            let low_bits = _mm256_set1_epi8(15);
            put(2 * v, _mm256_and_si256(vector, low_bits));
            put(2 * v + 1, _mm256_and_si256(_mm256_srli_epi16::<4>(vector), low_bits));
        }
    }
}

/// The activations and outputs that belong to expanded panels.
struct Block<'a> {
    a: &'a Activations,
    groups: Range<usize>,
    tile_rows: Range<usize>,
    rows: usize,
    y: &'a Disjoint<'a, f32>,
}

impl Block<'_> {
    /// # Safety
    /// As for [`gemm`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
    unsafe fn tokens<const KIND: u8>(&self, panels: &[Expanded], tokens: Range<usize>) {
        let mut token = tokens.start;
        while token < tokens.end {
            // SAFETY: the caller's contract.
            token += unsafe {
                match tokens.end - token {
                    1 => self.tile::<KIND, 1>(panels, token),
                    2 | 3 => self.tile::<KIND, 2>(panels, token),
                    4..8 => self.tile::<KIND, 4>(panels, token),
                    _ => self.tile::<KIND, 8>(panels, token),
                }
            };
        }
    }

    /// Adds the block's groups to the outputs of `T` tokens, which it gives; the first block starts them.
    ///
    /// # Safety
    /// As for [`gemm`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
    unsafe fn tile<const KIND: u8, const T: usize>(&self, panels: &[Expanded], token: usize) -> usize {
        let groups = self.groups.start..self.groups.start + panels.len();
        let quants: [&[[[i8; 4]; GROUP / 4]]; T] = std::array::from_fn(|t| {
            &self.a.quants(token + t).as_chunks().0.as_chunks().0[groups.clone()][..panels.len()]
        });
        let scales: [&[GroupScale]; T] =
            std::array::from_fn(|t| &self.a.scales(token + t)[groups.clone()][..panels.len()]);
        let rows = |t: usize| {
            let start = (token + t) * self.rows;
            // SAFETY: the rows are those of the caller's panels, and each part ends before the next begins.
            unsafe { self.y.part(start + self.tile_rows.start..start + self.tile_rows.end) }
        };
        let mut sums = [_mm512_setzero_ps(); T];
        if groups.start > 0 {
            for (t, sum) in sums.iter_mut().enumerate() {
                let mut row = [0.0; ROWS];
                let y = rows(t);
                row[..y.len()].copy_from_slice(y);
                *sum = load(&row);
            }
        }
        for (g, group) in panels.iter().enumerate() {
            let scale_of = scales.map(|scales| &scales[g]);
            let mut dots = scale_of.map(|a| _mm512_set1_epi32(-excess::<KIND>(a)));
            for (v, vector) in group.quants.iter().enumerate() {
                let vector = load_bytes(vector);
                for (dots, quants) in dots.iter_mut().zip(quants) {
                    let word = i32::from_le_bytes(quants[g][v].map(|q| q as u8));
                    *dots = _mm512_dpbusd_epi32(*dots, vector, _mm512_set1_epi32(word));
                }
            }
            let (scale, min) = (load(&group.scales), load(&group.mins));
            for (sum, (dots, a)) in sums.iter_mut().zip(dots.into_iter().zip(scale_of)) {
                let factor = _mm512_mul_ps(scale, _mm512_set1_ps(a.scale));
                *sum = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots), factor, *sum);
                if KIND == Q4M {
                    *sum = _mm512_fmadd_ps(min, _mm512_set1_ps(a.offset), *sum);
                }
            }
        }
        for (t, sum) in sums.into_iter().enumerate() {
            let mut row = [0.0; ROWS];
            store(&mut row, sum);
            let y = rows(t);
            y.copy_from_slice(&row[..y.len()]);
        }
        T
    }
}
