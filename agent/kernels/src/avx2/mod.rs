//! The backend for x86-64 with AVX2, FMA and F16C.
//!
//! Kernels take arrays and slices wherever the compiler sees that the lengths fit, and raw pointers only in the tile of the
//! GEMM, behind asserts.

mod attention;
mod exp;
mod gemm;
mod gemv;
mod halves;
mod quantize;
mod swiglu;

use std::arch::x86_64::*;

pub(crate) use gemv::prefetch;

pub(crate) static TABLE: crate::Dispatch = crate::Dispatch {
    name: "avx2",
    quantize: quantize::quantize,
    gemv: gemv::gemv,
    gemm: gemm::gemm,
    attend: attention::attend,
    swiglu: swiglu::swiglu,
    add_halves: halves::add_halves,
};

/// The table, if the CPU has what it needs.
pub(crate) fn detect() -> Option<&'static crate::Dispatch> {
    let detected =
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
    detected.then_some(&TABLE)
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn load(v: &[f32; 8]) -> __m256 {
    // SAFETY: the array is as long as the vector.
    unsafe { _mm256_loadu_ps(v.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn store(v: &mut [f32; 8], value: __m256) {
    // SAFETY: the array is as long as the vector.
    unsafe { _mm256_storeu_ps(v.as_mut_ptr(), value) }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn load_bytes(v: &[u8; 32]) -> __m256i {
    // SAFETY: the array is as long as the vector.
    unsafe { _mm256_loadu_si256(v.as_ptr().cast()) }
}

/// Eight f16 as they lie in a file.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn load_halves(v: &[u8; 16]) -> __m256 {
    // SAFETY: the array is as long as the vector.
    _mm256_cvtph_ps(unsafe { _mm_loadu_si128(v.as_ptr().cast()) })
}
