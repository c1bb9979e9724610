//! Activation quantization, one group after the other.

use crate::activations::GroupScale;
use crate::format::GROUP;

pub(crate) fn quantize(x: &[f32], quants: &mut [i8], scales: &mut [GroupScale]) {
    let groups = x.chunks_exact(GROUP).zip(quants.chunks_exact_mut(GROUP));
    for ((x, quants), group) in groups.zip(scales) {
        let largest = x.iter().map(|v| v.abs().to_bits()).max().map_or(0.0, f32::from_bits);
        let (scale, factor) = scale_and_factor(largest);
        let mut sums = [0; 2];
        for (column, (q, x)) in quants.iter_mut().zip(x).enumerate() {
            *q = (x * factor).round_ties_even() as i8;
            sums[column % 4 / 2] += i16::from(*q);
        }
        *group = GroupScale { scale, offset: scale * f32::from(sums[0] + sums[1]), sums };
    }
}

/// The scale of a group and the factor from values to integers. The magnitude of bits is compared, which puts infinity
/// and NaN above all numbers: such a group gets the scale NaN and, as NaN converts to zero, the integers zero.
pub(crate) fn scale_and_factor(largest: f32) -> (f32, f32) {
    let factor = 127.0 / largest;
    if !largest.is_finite() {
        (f32::NAN, 0.0)
    } else if factor.is_infinite() {
        (0.0, 0.0)
    } else {
        (largest / 127.0, factor)
    }
}
