//! f16 to f32 and back, by instructions that every aarch64 CPU has; those which compute in f16 are not needed.

use std::arch::aarch64::*;
use std::arch::asm;

use super::store;

/// Eight f16 as f32, exactly; a signalling NaN becomes a quiet one.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn widen(halves: uint16x8_t) -> [float32x4_t; 2] {
    let (low, high): (float32x4_t, float32x4_t);
    // SAFETY: the instructions touch the named registers only.
    unsafe {
        asm!(
            "fcvtl {low:v}.4s, {halves:v}.4h",
            "fcvtl2 {high:v}.4s, {halves:v}.8h",
            low = out(vreg) low,
            high = lateout(vreg) high,
            halves = in(vreg) halves,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    [low, high]
}

/// Eight f16 as they lie in a cache.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn load_halves(v: &[u16; 8]) -> [float32x4_t; 2] {
    // SAFETY: the array is as long as the vector.
    widen(unsafe { vld1q_u16(v.as_ptr()) })
}

/// Converts as many elements as both slices have.
#[target_feature(enable = "neon")]
pub(crate) fn to_f32(halves: &[u16], out: &mut [f32]) {
    let ((halves, halves_rest), (out, out_rest)) = (halves.as_chunks::<8>(), out.as_chunks_mut::<8>());
    for (halves, out) in halves.iter().zip(out) {
        store(out, load_halves(halves));
    }
    for (half, out) in halves_rest.iter().zip(out_rest) {
        *out = half::f16::from_bits(*half).to_f32();
    }
}

/// Converts as many elements as both slices have, rounding to nearest even.
#[target_feature(enable = "neon")]
pub(crate) fn from_f32(values: &[f32], out: &mut [u16]) {
    let ((values, values_rest), (out, out_rest)) = (values.as_chunks::<4>(), out.as_chunks_mut::<4>());
    for (values, out) in values.iter().zip(out) {
        // SAFETY: the arrays are as long as the vectors, and the instruction touches the named registers only.
        unsafe {
            let halves: uint16x4_t;
            asm!(
                "fcvtn {halves:v}.4h, {values:v}.4s",
                halves = lateout(vreg) halves,
                values = in(vreg) vld1q_f32(values.as_ptr()),
                options(pure, nomem, nostack, preserves_flags),
            );
            vst1_u16(out.as_mut_ptr(), halves);
        }
    }
    for (value, out) in values_rest.iter().zip(out_rest) {
        *out = half::f16::from_f32(*value).to_bits();
    }
}
