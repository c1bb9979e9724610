//! Products of f16 rows, eight rows at once.

use std::arch::x86_64::*;

use super::{load, load_halves, store};

/// Rows that are summed up together.
const ROWS: usize = 8;

/// How far ahead of the elements in work each row is asked for.
const PREFETCH_BYTES: usize = 1024;

const LINE_BYTES: usize = 64;

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn add_halves(w: &[u8], x: &[f32], y: &mut [f32]) {
    let row_bytes = 2 * x.len();
    let (eights, rest) = y.as_chunks_mut::<ROWS>();
    for (w, y) in w.chunks_exact(ROWS * row_bytes).zip(&mut *eights) {
        store(y, _mm256_add_ps(load(y), products(w, row_bytes, x)));
    }
    for (w, y) in w.chunks_exact(row_bytes).skip(ROWS * eights.len()).zip(rest) {
        let mut sums = [0.0; ROWS];
        store(&mut sums, products(w, 0, x));
        *y += sums[0];
    }
}

/// The products of rows that lie `row_bytes` after each other.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn products(w: &[u8], row_bytes: usize, x: &[f32]) -> __m256 {
    assert!(w.len() >= (ROWS - 1) * row_bytes + 2 * x.len());
    let (x, x_rest) = x.as_chunks::<8>();
    let mut sums = [_mm256_setzero_ps(); ROWS];
    for (i, x) in x.iter().enumerate() {
        let x = load(x);
        let is_line_start = i % (LINE_BYTES / 16) == 0;
        for (r, sum) in sums.iter_mut().enumerate() {
            if is_line_start {
                let ahead = w.as_ptr().wrapping_add(r * row_bytes + 16 * i + PREFETCH_BYTES);
                _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
            }
            // SAFETY: a row has so many elements, as asserted.
            let halves = unsafe { _mm_loadu_si128(w.as_ptr().add(r * row_bytes + 16 * i).cast()) };
            *sum = _mm256_fmadd_ps(_mm256_cvtph_ps(halves), x, *sum);
        }
    }
    if !x_rest.is_empty() {
        let mut padded = [0.0; 8];
        padded[..x_rest.len()].copy_from_slice(x_rest);
        for (r, sum) in sums.iter_mut().enumerate() {
            let mut halves = [0; 16];
            halves[..2 * x_rest.len()].copy_from_slice(&w[r * row_bytes + 16 * x.len()..][..2 * x_rest.len()]);
            *sum = _mm256_fmadd_ps(load_halves(&halves), load(&padded), *sum);
        }
    }
    lane_sums(sums)
}

/// The sum of the lanes of each vector.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn lane_sums([a, b, c, d, e, f, g, h]: [__m256; ROWS]) -> __m256 {
    let low = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
    let high = _mm256_hadd_ps(_mm256_hadd_ps(e, f), _mm256_hadd_ps(g, h));
    _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(low, high), _mm256_permute2f128_ps::<0x31>(low, high))
}
