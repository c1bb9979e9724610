//! Products of f16 rows, four rows at once.

use std::arch::x86_64::*;

use super::attention::lane_sums;
use super::{load, load_halves};

/// Rows that are summed up together.
const ROWS: usize = 4;

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn add_halves(w: &[u8], x: &[f32], y: &mut [f32]) {
    let row_bytes = 2 * x.len();
    for (w, y) in w.chunks(ROWS * row_bytes).zip(y.chunks_mut(ROWS)) {
        let row = |r: usize| w.get(r * row_bytes..(r + 1) * row_bytes).unwrap_or(&w[..row_bytes]);
        let sums = products([row(0), row(1), row(2), row(3)], x);
        for (y, sum) in y.iter_mut().zip(sums) {
            *y += sum;
        }
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn products(rows: [&[u8]; ROWS], x: &[f32]) -> [f32; ROWS] {
    let (x, x_rest) = x.as_chunks::<8>();
    let (vectors, rests) = (rows.map(|row| row.as_chunks::<16>().0), rows.map(|row| row.as_chunks::<16>().1));
    let vectors = vectors.map(|row| &row[..x.len()]);
    let mut sums = [_mm256_setzero_ps(); ROWS];
    for (i, x) in x.iter().enumerate() {
        let x = load(x);
        for (sum, row) in sums.iter_mut().zip(vectors) {
            *sum = _mm256_fmadd_ps(load_halves(&row[i]), x, *sum);
        }
    }
    if !x_rest.is_empty() {
        let mut padded = [0.0; 8];
        padded[..x_rest.len()].copy_from_slice(x_rest);
        for (sum, rest) in sums.iter_mut().zip(rests) {
            let mut halves = [0; 16];
            halves[..rest.len()].copy_from_slice(rest);
            *sum = _mm256_fmadd_ps(load_halves(&halves), load(&padded), *sum);
        }
    }
    super::attention::array(lane_sums(sums))
}
