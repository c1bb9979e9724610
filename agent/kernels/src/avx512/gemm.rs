//! Matmul of many tokens: the weights of four panels are expanded to bytes once, then used for tiles of 32 rows and 6 tokens.
//!
//! The sums of such a tile, its weights and one activation are what 32 registers hold. A block of columns of four panels and
//! of six tokens lies in the first cache level, that of all tokens of a block in the second.

use std::arch::x86_64::*;
use std::ops::Range;

use super::{RAISED, ROWS, load, load_bytes, store};
use crate::activations::{Activations, TILE_WORDS};
use crate::avx2::{Q4, Q4M, Q8, load_halves};
use crate::disjoint::Disjoint;
use crate::format::{GROUP, Kind, Matrix, PANEL};
use crate::prefetch::prefetch;

/// Groups of a block of columns.
const BLOCK_GROUPS: usize = 16;

/// Tokens of a block, whole tiles.
const BLOCK_TOKENS: usize = 42 * TILE_TOKENS;

/// Registers of rows that a tile takes together.
const TILE_REGISTERS: usize = 2;

/// Panels that a tile takes together.
const TILE_PANELS: usize = TILE_REGISTERS * ROWS / PANEL;

/// Tokens that a tile takes together.
pub(super) const TILE_TOKENS: usize = 6;

/// One group of a tile of [`Activations::tiles`].
type TileGroup = [u32; TILE_WORDS * TILE_TOKENS];

/// Where the scales, the offsets, and what sums of products start at, of a [`TileGroup`] begin.
const SCALES: usize = GROUP / 4 * TILE_TOKENS;
const OFFSETS: usize = SCALES + TILE_TOKENS;
const STARTS_Q4: usize = OFFSETS + TILE_TOKENS;
const STARTS_Q8: usize = STARTS_Q4 + TILE_TOKENS;

/// One group of the rows of one register with an unsigned byte a weight.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Expanded {
    quants: [[u8; 64]; GROUP / 4],
    scales: [f32; ROWS],
    mins: [f32; ROWS],
}

const NOTHING: Expanded = Expanded { quants: [[0; 64]; GROUP / 4], scales: [0.0; ROWS], mins: [0.0; ROWS] };

type Rows = [Expanded; BLOCK_GROUPS];

/// The sums of a token of a block over the columns so far. They lie together, as the outputs of one token are far from those of
/// the next, often by a distance that a cache has few places for.
type Sums = [[f32; ROWS]; TILE_REGISTERS];

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
    let mut expanded = [[NOTHING; BLOCK_GROUPS]; TILE_REGISTERS];
    let mut sums = [[[0.0; ROWS]; TILE_REGISTERS]; BLOCK_TOKENS];
    for first_token in (0..a.tokens()).step_by(BLOCK_TOKENS) {
        let tokens = first_token..a.tokens().min(first_token + BLOCK_TOKENS);
        for panel in panels.clone().step_by(TILE_PANELS) {
            let end = panels.end.min(panel + TILE_PANELS);
            let rows = panel * PANEL..w.rows().min(end * PANEL);
            for first_group in (0..w.groups()).step_by(BLOCK_GROUPS) {
                let groups = first_group..w.groups().min(first_group + BLOCK_GROUPS);
                let next_block = if groups.end < w.groups() {
                    groups.len() * BYTES
                } else {
                    TILE_PANELS * w.panel_bytes() - first_group * BYTES
                };
                for (part, panel) in (panel..panel + TILE_PANELS).enumerate() {
                    let packed = &w.packed(panel.min(end - 1)).as_chunks::<BYTES>().0[groups.clone()];
                    for (packed, expanded) in packed.iter().zip(&mut expanded[part / 2]) {
                        prefetch(packed, next_block);
                        expand::<KIND>(packed, part % 2, expanded);
                    }
                }
                let mut block = Block { a, groups, rows: rows.clone(), all_rows: w.rows(), sums: &mut sums, y };
                // SAFETY: the caller's contract; the rows are those of its panels.
                unsafe {
                    if rows.len() > ROWS {
                        block.tokens::<KIND, TILE_REGISTERS>(&expanded, tokens.clone());
                    } else {
                        block.tokens::<KIND, 1>(std::array::from_ref(&expanded[0]), tokens.clone());
                    }
                }
            }
        }
    }
}

/// Writes one of the two panels of a register.
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
    rows: Range<usize>,
    all_rows: usize,
    sums: &'a mut [Sums; BLOCK_TOKENS],
    y: &'a Disjoint<'a, f32>,
}

impl Block<'_> {
    /// # Safety
    /// As for [`gemm`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
    unsafe fn tokens<const KIND: u8, const R: usize>(&mut self, rows: &[Rows; R], tokens: Range<usize>) {
        for token in tokens.clone().step_by(TILE_TOKENS) {
            // SAFETY: the caller's contract.
            unsafe {
                match tokens.end - token {
                    1 => self.tile::<KIND, R, 1>(rows, token),
                    2 => self.tile::<KIND, R, 2>(rows, token),
                    3 => self.tile::<KIND, R, 3>(rows, token),
                    4 => self.tile::<KIND, R, 4>(rows, token),
                    5 => self.tile::<KIND, R, 5>(rows, token),
                    _ => self.tile::<KIND, R, TILE_TOKENS>(rows, token),
                }
            }
        }
    }

    /// Adds the block's groups to the sums of `T` tokens; the first block starts them, the last one writes the outputs.
    ///
    /// # Safety
    /// As for [`gemm`].
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
    unsafe fn tile<const KIND: u8, const R: usize, const T: usize>(&mut self, rows: &[Rows; R], token: usize) {
        let all_groups = self.a.cols() / GROUP;
        let (tile, next_tile) = (token / TILE_TOKENS * all_groups, all_groups * size_of::<TileGroup>());
        let tile = &self.a.tiles().as_chunks().0[tile + self.groups.start..tile + self.groups.end];
        let sums_so_far = &mut self.sums.as_chunks_mut::<TILE_TOKENS>().0[token % BLOCK_TOKENS / TILE_TOKENS];
        let mut sums = [[_mm512_setzero_ps(); T]; R];
        if self.groups.start > 0 {
            for (r, sums) in sums.iter_mut().enumerate() {
                for (sum, so_far) in sums.iter_mut().zip(&*sums_so_far) {
                    *sum = load(&so_far[r]);
                }
            }
        }
        assert!(tile.len() <= BLOCK_GROUPS);
        for (g, group) in tile.iter().enumerate() {
            prefetch(group, next_tile);
            // SAFETY: the rows have as many groups.
            unsafe { add_group::<KIND, R, T>(rows, group, g, &mut sums) };
        }
        if self.groups.end * GROUP < self.a.cols() {
            for (r, sums) in sums.iter().enumerate() {
                for (sum, so_far) in sums.iter().zip(&mut *sums_so_far) {
                    store(&mut so_far[r], *sum);
                }
            }
            return;
        }
        for (r, sums) in sums.iter().enumerate() {
            for (t, sum) in sums.iter().enumerate() {
                let first = (token + t) * self.all_rows;
                let row = self.rows.start + r * ROWS;
                // SAFETY: the rows are those of the caller's panels, and each part ends before the next begins.
                store_part(unsafe { self.y.part(first + row..first + self.rows.end.min(row + ROWS)) }, *sum);
            }
        }
    }
}

/// Writes at most sixteen outputs.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn store_part(y: &mut [f32], sums: __m512) {
    if let Ok(y) = y.try_into() {
        return store(y, sums);
    }
    let mut rows = [0.0; ROWS];
    store(&mut rows, sums);
    y.copy_from_slice(&rows[..y.len()]);
}

/// # Safety
/// All rows have more groups than `g`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
unsafe fn add_group<const KIND: u8, const R: usize, const T: usize>(
    rows: &[Rows; R],
    tile: &TileGroup,
    g: usize,
    sums: &mut [[__m512; T]; R],
) {
    let mut dots = [[_mm512_setzero_si512(); T]; R];
    for t in 0..T {
        let start = match KIND {
            Q4 => _mm512_set1_epi32(tile[STARTS_Q4 + t] as i32),
            Q8 => _mm512_set1_epi32(tile[STARTS_Q8 + t] as i32),
            _ => _mm512_setzero_si512(),
        };
        for dots in &mut dots {
            dots[t] = start;
        }
    }
    // The compiler does not unroll a loop over these.
    // SAFETY: the caller's contract.
    unsafe {
        add_columns::<0, R, T>(rows, tile, g, &mut dots);
        add_columns::<1, R, T>(rows, tile, g, &mut dots);
        add_columns::<2, R, T>(rows, tile, g, &mut dots);
        add_columns::<3, R, T>(rows, tile, g, &mut dots);
        add_columns::<4, R, T>(rows, tile, g, &mut dots);
        add_columns::<5, R, T>(rows, tile, g, &mut dots);
        add_columns::<6, R, T>(rows, tile, g, &mut dots);
        add_columns::<7, R, T>(rows, tile, g, &mut dots);
    }
    for r in 0..R {
        // SAFETY: the caller's contract.
        let rows = unsafe { rows[r].get_unchecked(g) };
        let (scale, min) = (load(&rows.scales), load(&rows.mins));
        for t in 0..T {
            let factor = _mm512_mul_ps(scale, _mm512_set1_ps(f32::from_bits(tile[SCALES + t])));
            sums[r][t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[r][t]), factor, sums[r][t]);
            if KIND == Q4M {
                let offset = _mm512_set1_ps(f32::from_bits(tile[OFFSETS + t]));
                sums[r][t] = _mm512_fmadd_ps(min, offset, sums[r][t]);
            }
        }
    }
}

/// Four columns of a group.
///
/// # Safety
/// As for [`add_group`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
unsafe fn add_columns<const V: usize, const R: usize, const T: usize>(
    rows: &[Rows; R],
    tile: &TileGroup,
    g: usize,
    dots: &mut [[__m512i; T]; R],
) {
    let mut vectors = [_mm512_setzero_si512(); R];
    for r in 0..R {
        // SAFETY: the caller's contract.
        vectors[r] = load_bytes(unsafe { &rows[r].get_unchecked(g).quants[V] });
    }
    for t in 0..T {
        let quants = _mm512_set1_epi32(tile[V * TILE_TOKENS + t] as i32);
        for r in 0..R {
            dots[r][t] = _mm512_dpbusd_epi32(dots[r][t], vectors[r], quants);
            keep_order(&mut dots[r][t]);
        }
    }
}

/// Keeps the compiler from adding up in another order, for which it would spill most of the tile.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn keep_order(sum: &mut __m512i) {
    // SAFETY: there is no instruction in it.
    unsafe { std::arch::asm!("/* {0} */", inout(zmm_reg) * sum, options(nomem, nostack, preserves_flags)) };
}
