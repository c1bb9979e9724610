//! The two ways to multiply bytes: by `maddubs`, which every CPU with AVX2 has, and by `vpdpbusd` of AVX-VNNI or AVX-512.
//!
//! Both take one side unsigned. With `maddubs` weights of 4 bits are unsigned as they are, and those of 8 bits give their
//! sign to the activations; `vpdpbusd` takes the latter raised by 128.

use std::arch::asm;
use std::arch::x86_64::*;

use super::{Q4, Q8};
use crate::activations::GroupScale;
use crate::format::Kind;

/// A way to multiply. The lanes of the sums are its own until [`Dots::finish`].
///
/// # Safety
/// All functions want a CPU that has its instructions.
pub(crate) trait Dots {
    /// What weights of 8 bits are changed by, bit by bit, before they are added.
    const FLIPPED: i8;

    /// The sums before a group: what the zero point of the weights makes them too high by, negative.
    unsafe fn start<const KIND: u8>(a: &GroupScale) -> __m256i;

    /// Adds the products of 4 columns of 8 rows, or of the 4 activations of each row.
    unsafe fn add<const KIND: u8>(sums: __m256i, weights: __m256i, quants: __m256i) -> __m256i;

    /// A sum of 32 bits a row.
    unsafe fn finish<const KIND: u8>(sums: __m256i) -> __m256i;
}

/// By `maddubs`. Eight products of pairs of a nibble, at most `8 * 2 * 15 * 127` in size, fit 16 bits; so do all sums on the
/// way, as the zero point goes in first. Of bytes one pair fits, at most `2 * 128 * 127` in size.
pub(super) enum Maddubs {}

impl Dots for Maddubs {
    const FLIPPED: i8 = 0;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn start<const KIND: u8>(a: &GroupScale) -> __m256i {
        let [low, high] = a.sums;
        let both = i32::from(high) << 16 | i32::from(low) & 0xffff;
        match KIND {
            Q4 => _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_slli_epi16::<3>(_mm256_set1_epi32(both))),
            _ => _mm256_setzero_si256(),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn add<const KIND: u8>(sums: __m256i, weights: __m256i, quants: __m256i) -> __m256i {
        if KIND == Q8 {
            let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(quants, weights));
            _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        } else {
            _mm256_add_epi16(sums, _mm256_maddubs_epi16(weights, quants))
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn finish<const KIND: u8>(sums: __m256i) -> __m256i {
        if KIND == Q8 { sums } else { _mm256_madd_epi16(sums, _mm256_set1_epi16(1)) }
    }
}

/// By `vpdpbusd`, in the encoding of AVX-512 VL and VNNI or in that of AVX-VNNI.
pub(crate) struct Vpdpbusd<const AVX_512: bool>;

impl<const AVX_512: bool> Dots for Vpdpbusd<AVX_512> {
    const FLIPPED: i8 = i8::MIN;

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn start<const KIND: u8>(a: &GroupScale) -> __m256i {
        const { assert!(Kind::Q4.zero_point() == 1 << 3 && Self::FLIPPED as u8 == 1 << 7) };
        match KIND {
            Q4 => _mm256_slli_epi32::<3>(_mm256_set1_epi32(a.negative_sum)),
            Q8 => _mm256_slli_epi32::<7>(_mm256_set1_epi32(a.negative_sum)),
            _ => _mm256_setzero_si256(),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn add<const KIND: u8>(mut sums: __m256i, weights: __m256i, quants: __m256i) -> __m256i {
        // SAFETY: the instruction touches the named registers only; the caller's CPU has it.
        unsafe {
            if AVX_512 {
                asm!(
                    "{{evex}} vpdpbusd {sums}, {weights}, {quants}",
                    sums = inout(ymm_reg) sums,
                    weights = in(ymm_reg) weights,
                    quants = in(ymm_reg) quants,
                    options(pure, nomem, nostack, preserves_flags),
                );
            } else {
                asm!(
                    "{{vex}} vpdpbusd {sums}, {weights}, {quants}",
                    sums = inout(ymm_reg) sums,
                    weights = in(ymm_reg) weights,
                    quants = in(ymm_reg) quants,
                    options(pure, nomem, nostack, preserves_flags),
                );
            }
        }
        sums
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    unsafe fn finish<const KIND: u8>(sums: __m256i) -> __m256i {
        sums
    }
}
