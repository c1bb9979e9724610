//! Activation quantization, one group after the other.

use crate::activations::{GroupScale, scale_and_factor};
use crate::format::GROUP;

pub(super) fn quantize(x: &[f32], quants: &mut [i8], scales: &mut [GroupScale]) {
    let groups = x.chunks_exact(GROUP).zip(quants.chunks_exact_mut(GROUP));
    for ((x, quants), group) in groups.zip(scales) {
        let largest = x.iter().map(|v| v.abs().to_bits()).max().map_or(0.0, f32::from_bits);
        let (scale, factor) = scale_and_factor(largest);
        let mut sums = [0; 2];
        for (column, (q, x)) in quants.iter_mut().zip(x).enumerate() {
            *q = (x * factor).round_ties_even() as i8;
            sums[column % 4 / 2] += i16::from(*q);
        }
        *group = GroupScale::new(scale, sums);
    }
}
