//! The backend for x86-64 with AVX-512 and its VNNI: the matmul by `vpdpbusd`, attention, the rest as AVX2.
//!
//! A register holds 4 columns of 16 rows, which are two panels; with one token the 256 bits of one panel are faster.

mod attention;
mod gemm;
mod stream;

use std::arch::x86_64::*;
use std::ops::Range;

use crate::activations::{Activations, Tiling};
use crate::avx2::{Q4, Q8, Vpdpbusd};
use crate::disjoint::Disjoint;
use crate::format::{Kind, Matrix, PANEL};

/// Rows of a register.
const ROWS: usize = 2 * PANEL;

static TABLE: crate::Dispatch = crate::Dispatch {
    name: "avx512vnni",
    gemv: crate::avx2::gemv::<Vpdpbusd<true>>,
    gemm: matmul,
    attend: attention::attend,
    tiling: Some(Tiling { from: stream::MAX_TOKENS + 1, tokens: gemm::TILE_TOKENS }),
    ..crate::avx2::TABLE
};

/// The table, if the CPU has what it and the AVX2 backend need.
pub(crate) fn detect() -> Option<&'static crate::Dispatch> {
    let detected = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni");
    (detected && crate::avx2::detect().next().is_some()).then_some(&TABLE)
}

/// # Safety
/// The CPU has the instructions, and no other thread writes the rows of the same panels.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
unsafe fn matmul(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &Disjoint<'_, f32>) {
    // SAFETY: the caller's contract.
    unsafe {
        if a.tokens() <= stream::MAX_TOKENS {
            stream::gemm(w, a, panels, y);
        } else {
            gemm::gemm(w, a, panels, y);
        }
    }
}

/// What a sum of products starts at. `vpdpbusd` multiplies unsigned by signed bytes, so that the weights are above their
/// values by their zero point, those of 8 bits by [`RAISED`].
#[inline]
#[target_feature(enable = "avx512f")]
fn start<const KIND: u8>(negative_sum: i32) -> __m512i {
    const { assert!(Kind::Q4.zero_point() == 1 << 3 && RAISED as u8 == 1 << 7) };
    match KIND {
        Q4 => _mm512_slli_epi32::<3>(_mm512_set1_epi32(negative_sum)),
        Q8 => _mm512_slli_epi32::<7>(_mm512_set1_epi32(negative_sum)),
        _ => _mm512_setzero_si512(),
    }
}

/// What weights of 8 bits are raised by, which is the same as turning that bit.
const RAISED: i8 = i8::MIN;

/// Four activations for each row.
#[inline]
#[target_feature(enable = "avx512f")]
fn repeat(quants: [i8; 4]) -> __m512i {
    let [a, b, c, d] = quants;
    _mm512_set1_epi32(i32::from_le_bytes([a as u8, b as u8, c as u8, d as u8]))
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
