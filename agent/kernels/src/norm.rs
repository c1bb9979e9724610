//! Root mean square norm, in place.

use crate::Error;

/// Partial sums, so that the compiler may add several elements at once.
const LANES: usize = 8;

/// Norms each row of `x` (rows of `weight.len()` elements): `x * weight / sqrt(mean(x^2) + eps)`.
pub fn rms_norm(x: &mut [f32], weight: &[f32], eps: f32) -> Result<(), Error> {
    Error::check_multiple("norm input", weight.len(), x.len())?;
    for row in x.chunks_exact_mut(weight.len()) {
        let factor = 1.0 / (sum_of_squares(row) / weight.len() as f32 + eps).sqrt();
        for (x, w) in row.iter_mut().zip(weight) {
            *x = *x * factor * w;
        }
    }
    Ok(())
}

fn sum_of_squares(row: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let (lanes, rest) = row.as_chunks::<LANES>();
    for lane in lanes {
        for (sum, v) in sums.iter_mut().zip(lane) {
            *sum += v * v;
        }
    }
    sums.iter().sum::<f32>() + rest.iter().map(|v| v * v).sum::<f32>()
}
