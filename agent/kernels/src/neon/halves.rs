//! Products of f16 rows, four rows at once.

use std::arch::aarch64::*;

use super::{Rows, load, load_scales};

/// Rows that are summed up together.
const ROWS: usize = 4;

#[target_feature(enable = "neon")]
pub(super) fn add_halves(w: &[u8], x: &[f32], y: &mut [f32]) {
    let row_bytes = 2 * x.len();
    for (w, y) in w.chunks(ROWS * row_bytes).zip(y.chunks_mut(ROWS)) {
        let row = |r: usize| w.get(r * row_bytes..(r + 1) * row_bytes).unwrap_or(&w[..row_bytes]);
        for (y, sum) in y.iter_mut().zip(products([row(0), row(1), row(2), row(3)], x)) {
            *y += sum;
        }
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn products(rows: [&[u8]; ROWS], x: &[f32]) -> [f32; ROWS] {
    let (x, x_rest) = x.as_chunks::<8>();
    let (vectors, rests) = (rows.map(|row| row.as_chunks::<16>().0), rows.map(|row| row.as_chunks::<16>().1));
    let vectors = vectors.map(|row| &row[..x.len()]);
    let mut sums = [[vdupq_n_f32(0.0); 2]; ROWS];
    for (i, x) in x.iter().enumerate() {
        let x = load(x);
        for (sum, row) in sums.iter_mut().zip(vectors) {
            *sum = add_products(*sum, load_scales(&row[i]), x);
        }
    }
    if !x_rest.is_empty() {
        let mut padded = [0.0; 8];
        padded[..x_rest.len()].copy_from_slice(x_rest);
        for (sum, rest) in sums.iter_mut().zip(rests) {
            let mut halves = [0; 16];
            halves[..rest.len()].copy_from_slice(rest);
            *sum = add_products(*sum, load_scales(&halves), load(&padded));
        }
    }
    sums.map(|[low, high]| vaddvq_f32(vaddq_f32(low, high)))
}

#[inline]
#[target_feature(enable = "neon")]
fn add_products(sum: Rows, w: Rows, x: Rows) -> Rows {
    [vfmaq_f32(sum[0], w[0], x[0]), vfmaq_f32(sum[1], w[1], x[1])]
}
