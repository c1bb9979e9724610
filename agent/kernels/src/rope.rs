//! Rotary position embedding over halves: element `i` turns with element `i + head_dim / 2`.

use crate::Error;

/// Rotates one head in place. `table` is the row of [`rope_table`] for its position, as long as the head.
pub fn rope(x: &mut [f32], table: &[f32]) -> Result<(), Error> {
    Error::check_multiple("head_dim", 2, x.len())?;
    Error::check_length("rope table", x.len(), table.len())?;
    let (low, high) = x.split_at_mut(x.len() / 2);
    for ((a, b), &[cos, sin]) in low.iter_mut().zip(high).zip(table.as_chunks().0) {
        (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
    }
    Ok(())
}

/// Cosine and sine pairs `[positions, head_dim / 2, 2]` of the angles `position * theta^(-2i / head_dim)`, computed in f64.
/// It takes `4 * head_dim * positions` bytes, which the caller keeps in bounds.
pub fn rope_table(head_dim: usize, theta: f64, positions: usize) -> Vec<f32> {
    let frequencies: Vec<f64> = (0..head_dim / 2).map(|i| theta.powf(-2.0 * i as f64 / head_dim as f64)).collect();
    (0..positions)
        .flat_map(|position| frequencies.iter().map(move |frequency| position as f64 * frequency))
        .flat_map(|angle| [angle.cos() as f32, angle.sin() as f32])
        .collect()
}
