//! The backends for aarch64: NEON, which every such CPU has, and with it the `sdot` and `smmla` instructions where detected.
//!
//! Those two, the conversions of f16 and nothing else are inline assembly, as their intrinsics are not stable. Everything
//! reads and writes arrays and slices whose lengths the compiler sees. Nothing is prefetched: the weights are one ascending
//! stream, which the CPU recognizes.

mod attention;
mod dotprod;
mod exp;
mod gemm;
mod gemv;
pub(crate) mod half_floats;
mod halves;
mod i8mm;
mod quantize;
mod swiglu;

use std::arch::aarch64::*;
use std::arch::is_aarch64_feature_detected;

use crate::activations::GroupScale;
use crate::format::{Kind, PANEL};

const Q4: u8 = Kind::Q4 as u8;
const Q4M: u8 = Kind::Q4m as u8;
const Q8: u8 = Kind::Q8 as u8;

const NEON_ONLY: crate::Dispatch = crate::Dispatch {
    name: "neon",
    quantize: quantize::quantize,
    gemv: gemv::gemv,
    gemm: gemm::gemm::<gemv::Widening>,
    attend: attention::attend,
    swiglu: swiglu::swiglu,
    add_halves: halves::add_halves,
    tiling: None,
};

static NEON: crate::Dispatch = NEON_ONLY;

static DOTPROD: crate::Dispatch =
    crate::Dispatch { name: "dotprod", gemv: dotprod::gemv, gemm: gemm::gemm::<dotprod::Sdot>, ..NEON_ONLY };

static I8MM: crate::Dispatch =
    crate::Dispatch { name: "i8mm", gemv: dotprod::gemv, gemm: gemm::gemm::<i8mm::Smmla>, ..NEON_ONLY };

/// The tables that this CPU can run, the fastest first.
pub(crate) fn detect() -> impl Iterator<Item = &'static crate::Dispatch> {
    let neon = is_aarch64_feature_detected!("neon");
    let dotprod = neon && is_aarch64_feature_detected!("dotprod");
    let i8mm = dotprod && is_aarch64_feature_detected!("i8mm");
    [(i8mm, &I8MM), (dotprod, &DOTPROD), (neon, &NEON)].into_iter().filter_map(|(has, table)| has.then_some(table))
}

/// Eight floats, usually one a row.
type Rows = [float32x4_t; 2];

#[inline]
#[target_feature(enable = "neon")]
fn load(v: &[f32; 8]) -> Rows {
    // SAFETY: the array is as long as two vectors.
    unsafe { [vld1q_f32(v.as_ptr()), vld1q_f32(v.as_ptr().add(4))] }
}

#[inline]
#[target_feature(enable = "neon")]
fn store(v: &mut [f32; 8], [low, high]: Rows) {
    // SAFETY: the array is as long as two vectors.
    unsafe {
        vst1q_f32(v.as_mut_ptr(), low);
        vst1q_f32(v.as_mut_ptr().add(4), high);
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn load_bytes(v: &[u8; 16]) -> uint8x16_t {
    // SAFETY: the array is as long as the vector.
    unsafe { vld1q_u8(v.as_ptr()) }
}

/// The activations of half a group.
#[inline]
#[target_feature(enable = "neon")]
fn load_quants(v: &[i8; 16]) -> int8x16_t {
    // SAFETY: the array is as long as the vector.
    unsafe { vld1q_s8(v.as_ptr()) }
}

/// Eight f16 as they lie in a file.
#[inline]
#[target_feature(enable = "neon")]
fn load_scales(v: &[u8; 16]) -> Rows {
    half_floats::widen(vreinterpretq_u16_u8(load_bytes(v)))
}

/// What the nibbles of a group of zeros sum up to: the zero point times the activations.
#[inline]
fn zero_point(a: &GroupScale) -> i32 {
    i32::from(Kind::Q4.zero_point()) * (i32::from(a.sums[0]) + i32::from(a.sums[1]))
}

/// Adds one group to the sums of a panel.
#[inline]
#[target_feature(enable = "neon")]
fn add_scaled<const KIND: u8>(sums: &mut Rows, dots: [int32x4_t; 2], scales: Rows, mins: Rows, a: &GroupScale) {
    for (half, sum) in sums.iter_mut().enumerate() {
        let factor = vmulq_n_f32(scales[half], a.scale);
        *sum = vfmaq_f32(*sum, vcvtq_f32_s32(dots[half]), factor);
        if KIND == Q4M {
            *sum = vfmaq_n_f32(*sum, mins[half], a.offset);
        }
    }
}

/// The outputs of a panel as floats; a short last panel gives fewer.
#[inline]
#[target_feature(enable = "neon")]
fn store_rows(y: &mut [f32], sums: Rows) {
    let mut rows = [0.0; PANEL];
    store(&mut rows, sums);
    y.copy_from_slice(&rows[..y.len()]);
}
