//! The backend for x86-64 with AVX2, FMA and F16C, and the one that multiplies by AVX-VNNI.
//!
//! Kernels take arrays and slices wherever the compiler sees that the lengths fit, and raw pointers only in the tile of the
//! GEMM, behind asserts.

mod attention;
mod dots;
mod exp;
mod gemm;
mod halves;
mod quantize;
mod stream;
mod swiglu;

use std::arch::x86_64::*;

pub(crate) use attention::{BLOCK as SCORE_BLOCK, Scores, softmax};
use dots::Maddubs;
pub(crate) use dots::Vpdpbusd;
pub(crate) use stream::gemv;

use crate::format::Kind;

pub(crate) const Q4: u8 = Kind::Q4 as u8;
pub(crate) const Q4M: u8 = Kind::Q4m as u8;
pub(crate) const Q8: u8 = Kind::Q8 as u8;

pub(crate) const TABLE: crate::Dispatch = crate::Dispatch {
    name: "avx2",
    quantize: quantize::quantize,
    gemv: stream::gemv::<Maddubs>,
    gemm: gemm::gemm::<Maddubs>,
    attend: attention::attend,
    swiglu: swiglu::swiglu,
    add_halves: halves::add_halves,
    tiling: None,
};

static AVX2: crate::Dispatch = TABLE;

static AVX_VNNI: crate::Dispatch = crate::Dispatch {
    name: "avxvnni",
    gemv: stream::gemv::<Vpdpbusd<false>>,
    gemm: gemm::gemm::<Vpdpbusd<false>>,
    ..TABLE
};

/// The tables that this CPU can run, the fastest first.
pub(crate) fn detect() -> impl Iterator<Item = &'static crate::Dispatch> {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
    let avx_vnni = avx2 && is_x86_feature_detected!("avxvnni");
    [(avx_vnni, &AVX_VNNI), (avx2, &AVX2)].into_iter().filter_map(|(has, table)| has.then_some(table))
}

/// How far ahead of the group in work the weights are asked for, in bytes.
const PREFETCH_BYTES: usize = 8192;

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn prefetch<const BYTES: usize>(group: &[u8; BYTES]) {
    crate::prefetch::prefetch(group, PREFETCH_BYTES);
}

/// Four activations for each row.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn repeat(quants: [i8; 4]) -> __m256i {
    let [a, b, c, d] = quants;
    _mm256_set1_epi32(i32::from_le_bytes([a as u8, b as u8, c as u8, d as u8]))
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
