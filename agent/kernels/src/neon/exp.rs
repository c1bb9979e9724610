//! `exp` of four floats, within 2 units in the last place, with zero, denormal, infinite and NaN results as they should be.

use std::arch::aarch64::*;

/// Beyond these, the result is zero or infinite for sure.
const LIMIT: f32 = 104.0;

/// ln 2 in two parts, the first with few enough bits that its products with the exponents are exact.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];

/// The minimax polynomial of Cephes' `expf`, highest power first: `exp(r) = 1 + r + r^2 * p(r)`.
const POLYNOMIAL: [f32; 6] = [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];

#[inline]
#[target_feature(enable = "neon")]
pub(super) fn exp(x: float32x4_t) -> float32x4_t {
    // Both give NaN where one is NaN.
    let x = vmaxq_f32(vdupq_n_f32(-LIMIT), vminq_f32(vdupq_n_f32(LIMIT), x));
    let exponent = vcvtnq_s32_f32(vmulq_n_f32(x, std::f32::consts::LOG2_E));
    let n = vcvtq_f32_s32(exponent);
    let r = vfmsq_n_f32(x, n, LN_2[0]);
    let r = vfmsq_n_f32(r, n, LN_2[1]);
    let mut p = vdupq_n_f32(POLYNOMIAL[0]);
    for coefficient in &POLYNOMIAL[1..] {
        p = vfmaq_f32(vdupq_n_f32(*coefficient), p, r);
    }
    let p = vaddq_f32(vfmaq_f32(r, p, vmulq_f32(r, r)), vdupq_n_f32(1.0));
    let half = vshrq_n_s32::<1>(exponent);
    vmulq_f32(vmulq_f32(p, power_of_2(half)), power_of_2(vsubq_s32(exponent, half)))
}

/// For exponents of normal floats only: one that is larger is reached in two factors.
#[inline]
#[target_feature(enable = "neon")]
fn power_of_2(exponent: int32x4_t) -> float32x4_t {
    vreinterpretq_f32_s32(vshlq_n_s32::<23>(vaddq_s32(exponent, vdupq_n_s32(127))))
}
