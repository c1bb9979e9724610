//! The backend for x86-64 with AVX-512 and its VNNI: the matmul by `vpdpbusd`, the rest as AVX2.

mod gemm;
mod gemv;

use std::arch::x86_64::*;

use crate::activations::GroupScale;
use crate::format::Kind;

const Q4: u8 = Kind::Q4 as u8;
const Q4M: u8 = Kind::Q4m as u8;
const Q8: u8 = Kind::Q8 as u8;

static TABLE: crate::Dispatch =
    crate::Dispatch { name: "avx512vnni", gemv: gemv::gemv, gemm: gemm::gemm, ..crate::avx2::TABLE };

/// The table, if the CPU has what it and the AVX2 backend need.
pub(crate) fn detect() -> Option<&'static crate::Dispatch> {
    let detected = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vnni");
    (detected && crate::avx2::detect().is_some()).then_some(&TABLE)
}

/// `vpdpbusd` multiplies unsigned by signed bytes: the weights of 8 bits are raised by this.
const RAISED: i8 = i8::MIN;

/// What the products of a group are too high by, as the weights are unsigned: the zero point times the activations.
#[inline]
fn excess<const KIND: u8>(a: &GroupScale) -> i32 {
    let zero_point = match KIND {
        Q4 => i32::from(Kind::Q4.zero_point()),
        Q8 => -i32::from(RAISED),
        _ => 0,
    };
    zero_point * (i32::from(a.sums[0]) + i32::from(a.sums[1]))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_bytes(v: &[u8; 64]) -> __m512i {
    // SAFETY: the array is as long as the vector.
    unsafe { _mm512_loadu_si512(v.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load(v: &[f32; 16]) -> __m512 {
    // SAFETY: the array is as long as the vector.
    unsafe { _mm512_loadu_ps(v.as_ptr()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(v: &mut [f32; 16], value: __m512) {
    // SAFETY: the array is as long as the vector.
    unsafe { _mm512_storeu_ps(v.as_mut_ptr(), value) }
}
