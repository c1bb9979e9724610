//! Activation quantization, one group of 32 in eight vectors.

use std::arch::aarch64::*;

use crate::activations::{GroupScale, scale_and_factor};
use crate::format::GROUP;

#[target_feature(enable = "neon")]
pub(super) fn quantize(x: &[f32], quants: &mut [i8], scales: &mut [GroupScale]) {
    let groups = x.as_chunks::<GROUP>().0.iter().zip(quants.as_chunks_mut::<GROUP>().0);
    for ((x, quants), group) in groups.zip(scales) {
        // SAFETY: eight vectors are as long as a group.
        let x: [float32x4_t; 8] = std::array::from_fn(|v| unsafe { vld1q_f32(x.as_ptr().add(4 * v)) });
        let (scale, factor) = scale_and_factor(largest(&x));
        let [a, b, c, d, e, f, g, h] = x.map(|x| vqmovn_s32(vcvtnq_s32_f32(vmulq_n_f32(x, factor))));
        let low = vcombine_s8(vqmovn_s16(vcombine_s16(a, b)), vqmovn_s16(vcombine_s16(c, d)));
        let high = vcombine_s8(vqmovn_s16(vcombine_s16(e, f)), vqmovn_s16(vcombine_s16(g, h)));
        // SAFETY: two vectors are as long as a group.
        unsafe {
            vst1q_s8(quants.as_mut_ptr(), low);
            vst1q_s8(quants.as_mut_ptr().add(16), high);
        }
        let pairs = vaddq_s16(vpaddlq_s8(low), vpaddlq_s8(high));
        let sums = [vaddvq_s16(vuzp1q_s16(pairs, vdupq_n_s16(0))), vaddvq_s16(vuzp2q_s16(pairs, vdupq_n_s16(0)))];
        *group = GroupScale::new(scale, sums);
    }
}

/// The largest magnitude, compared by its bits as the scalar kernel does.
#[inline]
#[target_feature(enable = "neon")]
fn largest(x: &[float32x4_t; 8]) -> f32 {
    let mut largest = vdupq_n_u32(0);
    for x in x {
        largest = vmaxq_u32(largest, vreinterpretq_u32_f32(vabsq_f32(*x)));
    }
    f32::from_bits(vmaxvq_u32(largest))
}
