//! Attention: as with AVX2, with 16 elements of a head in a register and four positions at once. The softmax is AVX2's.
//!
//! Up to four queries, as in a decode, convert keys and values where they use them; for more, a block is expanded to f32 first.
//! Both give the same bits.

use std::arch::x86_64::*;

use super::{load, store};
use crate::attention::{Partial, ROWS, TILE_ROWS, Tile};
use crate::avx2::{SCORE_BLOCK, Scores, load_halves, softmax};
use crate::cache::scale_bytes;
use crate::format::GROUP;
use crate::prefetch::prefetch;
use crate::{CacheKind, MAX_HEAD_DIM};

/// Positions whose products are computed together.
const POSITIONS: usize = 4;

/// Registers of a value that are summed up together.
const COLUMNS: usize = 4;

/// The forms of rows.
const F16: u8 = CacheKind::F16 as u8;
const I8: u8 = CacheKind::I8 as u8;
const F32: u8 = 2;

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn attend(tile: &Tile<'_>, partials: &mut [Partial]) {
    let partials = &mut partials[..tile.q.len().div_ceil(ROWS)];
    let in_place = partials.len() == 1 && tile.head_dim.is_multiple_of(16);
    match tile.cache {
        CacheKind::F16 if in_place => attend_blocks::<F16, 1>(tile, partials, &mut []),
        CacheKind::I8 if in_place => attend_blocks::<I8, 1>(tile, partials, &mut []),
        _ => {
            let mut expanded = [[0.0; 16]; SCORE_BLOCK * MAX_HEAD_DIM / 16];
            attend_blocks::<F32, { TILE_ROWS / ROWS }>(tile, partials, &mut expanded);
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn attend_blocks<const FORM: u8, const N: usize>(
    tile: &Tile<'_>,
    partials: &mut [Partial],
    expanded: &mut [[f32; 16]],
) {
    let per_head = tile.head_dim.div_ceil(16);
    let mut scaled = [[[[0.0; 16]; ROWS]; MAX_HEAD_DIM / 16]; N];
    for (r, q) in tile.q.iter().enumerate() {
        for (scaled, q) in scaled[r / ROWS].iter_mut().zip(q.chunks(16)) {
            for (scaled, q) in scaled[r % ROWS].iter_mut().zip(q) {
                *scaled = q * tile.scale;
            }
        }
    }
    let block_bytes = SCORE_BLOCK * tile.row_bytes();
    let (mut scores, mut shrink) = ([[[0.0; 2 * ROWS]; SCORE_BLOCK / 2]; N], [[0.0; ROWS]; N]);
    let mut scales = [[0.0; MAX_HEAD_DIM / GROUP]; SCORE_BLOCK];
    for (block, (keys, values)) in tile.keys.chunks(block_bytes).zip(tile.values.chunks(block_bytes)).enumerate() {
        let keys = Rows::<FORM>::new(tile, keys, expanded, &mut scales);
        for (i, partial) in partials.iter_mut().enumerate() {
            let q = &scaled[i][..per_head];
            match tile.q.len() - ROWS * i {
                1 => keys.score::<1>(q, &mut scores[i]),
                2 => keys.score::<2>(q, &mut scores[i]),
                3 => keys.score::<3>(q, &mut scores[i]),
                _ => keys.score::<ROWS>(q, &mut scores[i]),
            }
            let mut visible = [0; ROWS];
            for (visible, all) in visible.iter_mut().zip(&tile.visible[ROWS * i..]) {
                *visible = all.saturating_sub(block * SCORE_BLOCK).min(SCORE_BLOCK) as i32;
            }
            shrink[i] = softmax(&mut scores[i], visible, partial);
        }
        let values = Rows::<FORM>::new(tile, values, expanded, &mut scales);
        for (i, partial) in partials.iter_mut().enumerate() {
            match tile.q.len() - ROWS * i {
                1 => values.add::<1>(&scores[i], shrink[i], partial),
                2 => values.add::<2>(&scores[i], shrink[i], partial),
                3 => values.add::<3>(&scores[i], shrink[i], partial),
                _ => values.add::<ROWS>(&scores[i], shrink[i], partial),
            }
        }
    }
}

/// The keys or values of a block, at most [`SCORE_BLOCK`] positions, in one of the forms.
struct Rows<'a, const FORM: u8> {
    bytes: &'a [u8],
    n_rows: usize,
    row_bytes: usize,
    scale_bytes: usize,
    per_head: usize,
    scales: &'a [[f32; MAX_HEAD_DIM / GROUP]; SCORE_BLOCK],
}

impl<'a, const FORM: u8> Rows<'a, FORM> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
    fn new(
        tile: &Tile<'_>,
        stored: &'a [u8],
        expanded: &'a mut [[f32; 16]],
        scales: &'a mut [[f32; MAX_HEAD_DIM / GROUP]; SCORE_BLOCK],
    ) -> Self {
        let (per_head, n_rows) = (tile.head_dim.div_ceil(16), stored.len() / tile.row_bytes());
        if tile.cache == CacheKind::I8 {
            for (row, scales) in stored.chunks_exact(tile.row_bytes()).zip(&mut *scales) {
                // More than the scales, but within the row, except for the smallest head.
                let halves = row.first_chunk().copied().unwrap_or_else(|| {
                    let mut halves = [0; 16];
                    halves[..row.len()].copy_from_slice(row);
                    halves
                });
                crate::avx2::store(scales, load_halves(&halves));
            }
        }
        let stored = Rows::<FORM> {
            bytes: stored,
            n_rows,
            row_bytes: tile.row_bytes(),
            scale_bytes: if tile.cache == CacheKind::I8 { scale_bytes(tile.head_dim) } else { 0 },
            per_head,
            scales,
        };
        assert!((1..=SCORE_BLOCK).contains(&n_rows));
        if FORM != F32 {
            assert!(tile.head_dim.is_multiple_of(16));
            return stored;
        }
        let expanded = &mut expanded[..n_rows * per_head];
        let whole = tile.head_dim / 16;
        for (row, out) in expanded.chunks_exact_mut(per_head).enumerate() {
            stored.prefetch_next(row);
            for (i, out) in out.iter_mut().enumerate().take(whole) {
                // SAFETY: there is this row, and it has these 16 elements.
                let elements = unsafe {
                    match tile.cache {
                        CacheKind::F16 => stored.row(row).elements::<F16>(i),
                        CacheKind::I8 => stored.row(row).elements::<I8>(i),
                    }
                };
                store(out, elements);
            }
            if let Some(out) = out.get_mut(whole) {
                *out = stored.last_half(tile.cache, row, whole);
            }
        }
        let bytes = expanded.as_flattened();
        // SAFETY: floats are four bytes each.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<u8>(), size_of_val(bytes)) };
        Self { bytes, row_bytes: 64 * per_head, scale_bytes: 0, ..stored }
    }

    /// Asks for the same row of the next block. All at once would fill the queue of the memory.
    #[inline]
    fn prefetch_next(&self, row: usize) {
        prefetch(&self.bytes[row * self.row_bytes..][..self.row_bytes], SCORE_BLOCK * self.row_bytes);
    }

    /// The elements `16 * i..` of a head that ends 8 elements after.
    fn last_half(&self, cache: CacheKind, row: usize, i: usize) -> [f32; 16] {
        let mut head = [0.0; MAX_HEAD_DIM];
        let mut out = [0.0; 16];
        cache.load_row(&self.bytes[row * self.row_bytes..][..self.row_bytes], &mut head[..16 * i + 8]);
        out[..8].copy_from_slice(&head[16 * i..][..8]);
        out
    }

    /// # Safety
    /// There is this row.
    #[inline]
    unsafe fn row(&self, row: usize) -> Row<'a> {
        // SAFETY: the caller's contract; there are scales for each row of a block.
        unsafe {
            let start = self.bytes.as_ptr().add(row * self.row_bytes + self.scale_bytes);
            Row { start, scales: self.scales.get_unchecked(row) }
        }
    }

    /// The products of all queries with the keys. Positions beyond the last one get its products.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
    fn score<const R: usize>(&self, q: &[[[f32; 16]; ROWS]], scores: &mut Scores) {
        let scores = scores.as_flattened_mut().as_chunks_mut::<{ POSITIONS * ROWS }>().0;
        for (first, scores) in (0..self.n_rows).step_by(POSITIONS).zip(scores) {
            // SAFETY: there is a row, so that the first one, and any up to the last, is there.
            let mut keys = unsafe { [self.row(0); POSITIONS] };
            for (p, key) in keys.iter_mut().enumerate() {
                let row = (first + p).min(self.n_rows - 1);
                // SAFETY: as before.
                *key = unsafe { self.row(row) };
                if FORM != F32 {
                    self.prefetch_next(row);
                }
            }
            let mut sums = [[_mm512_setzero_ps(); POSITIONS]; ROWS];
            for (i, q) in q.iter().enumerate().take(self.per_head) {
                for p in 0..POSITIONS {
                    // SAFETY: a head has `per_head` such parts.
                    let key = unsafe { keys[p].elements::<FORM>(i) };
                    for r in 0..R {
                        sums[r][p] = _mm512_fmadd_ps(load(&q[r]), key, sums[r][p]);
                    }
                }
            }
            store(scores, lane_sums(sums));
        }
    }

    /// Adds the values to the weighted sums, which shrink before.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
    fn add<const R: usize>(&self, weights: &Scores, shrink: [f32; ROWS], partial: &mut Partial) {
        let weights = weights.as_flattened().as_chunks::<ROWS>().0;
        let mut first = 0;
        while first + COLUMNS <= self.per_head {
            self.add_columns::<R, COLUMNS>(weights, first, shrink, partial);
            first += COLUMNS;
        }
        while first < self.per_head {
            self.add_columns::<R, 1>(weights, first, shrink, partial);
            first += 1;
        }
    }

    /// Adds `16 * C` columns of the values, from column `16 * first`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
    fn add_columns<const R: usize, const C: usize>(
        &self,
        weights: &[[f32; ROWS]],
        first: usize,
        shrink: [f32; ROWS],
        partial: &mut Partial,
    ) {
        let mut sums = [[_mm512_setzero_ps(); R]; C];
        for (c, sums) in sums.iter_mut().enumerate() {
            for (r, sum) in sums.iter_mut().enumerate() {
                let old = &partial.weighted[r].as_chunks().0[first + c];
                *sum = _mm512_mul_ps(load(old), _mm512_set1_ps(shrink[r]));
            }
        }
        for (row, weights) in weights.iter().enumerate().take(self.n_rows) {
            if FORM != F32 && first == 0 {
                self.prefetch_next(row);
            }
            // SAFETY: there are `n_rows`.
            let value = unsafe { self.row(row) };
            for (c, sums) in sums.iter_mut().enumerate() {
                // SAFETY: a head has `per_head` such parts, and the columns are below.
                let value = unsafe { value.elements::<FORM>(first + c) };
                for r in 0..R {
                    sums[r] = _mm512_fmadd_ps(_mm512_set1_ps(weights[r]), value, sums[r]);
                }
            }
        }
        for (c, sums) in sums.into_iter().enumerate() {
            for (r, sum) in sums.into_iter().enumerate() {
                store(&mut partial.weighted[r].as_chunks_mut().0[first + c], sum);
            }
        }
    }
}

/// One of the rows: where its elements start, and the scales of each 32.
#[derive(Clone, Copy)]
struct Row<'a> {
    start: *const u8,
    scales: &'a [f32; MAX_HEAD_DIM / GROUP],
}

impl Row<'_> {
    /// Sixteen elements, stored in the form `OF`.
    ///
    /// # Safety
    /// The row has these elements.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
    unsafe fn elements<const OF: u8>(&self, i: usize) -> __m512 {
        // SAFETY: the caller's contract; there are scales for each 32 elements of a head.
        unsafe {
            match OF {
                F16 => _mm512_cvtph_ps(_mm256_loadu_si256(self.start.cast::<[u8; 32]>().add(i).cast())),
                I8 => {
                    let integers = _mm_loadu_si128(self.start.cast::<[u8; 16]>().add(i).cast());
                    let scale = _mm512_set1_ps(*self.scales.get_unchecked(i / 2));
                    _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(integers)), scale)
                }
                _ => _mm512_loadu_ps(self.start.cast::<[f32; 16]>().add(i).cast()),
            }
        }
    }
}

/// The sum of the lanes of each vector `[query][position]`, as `[position][query]`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn lane_sums(sums: [[__m512; POSITIONS]; ROWS]) -> __m512 {
    let [a, b, c, d] = sums;
    let (a, b, c, d) = (quarters(a), quarters(b), quarters(c), quarters(d));
    let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    _mm512_add_ps(_mm512_shuffle_ps::<0b01_00_01_00>(ab, cd), _mm512_shuffle_ps::<0b11_10_11_10>(ab, cd))
}

/// The sums of the quarters of each, one after the other.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn quarters([a, b, c, d]: [__m512; POSITIONS]) -> __m512 {
    let (ab, cd) = (halves(a, b), halves(c, d));
    let even = _mm512_shuffle_f32x4::<0b10_00_10_00>(ab, cd);
    _mm512_add_ps(even, _mm512_shuffle_f32x4::<0b11_01_11_01>(ab, cd))
}

/// The sums of the halves of both.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn halves(a: __m512, b: __m512) -> __m512 {
    let low = _mm512_shuffle_f32x4::<0b01_00_01_00>(a, b);
    _mm512_add_ps(low, _mm512_shuffle_f32x4::<0b11_10_11_10>(a, b))
}
