//! Products of f16 rows, one element after the other.

use half::f16;

pub(super) fn add_halves(w: &[u8], x: &[f32], y: &mut [f32]) {
    for (w, y) in w.chunks_exact(2 * x.len()).zip(y) {
        let products = w.as_chunks().0.iter().zip(x).map(|(w, x)| f16::from_le_bytes(*w).to_f32() * x);
        *y += products.sum::<f32>();
    }
}
