//! Activation quantization, one group of 32 in four vectors.

use std::arch::x86_64::*;

use super::load;
use crate::activations::{GroupScale, scale_and_factor};
use crate::format::GROUP;

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn quantize(x: &[f32], quants: &mut [i8], scales: &mut [GroupScale]) {
    let groups = x.as_chunks::<GROUP>().0.iter().zip(quants.as_chunks_mut::<GROUP>().0);
    for ((x, quants), group) in groups.zip(scales) {
        let (parts, _) = x.as_chunks::<8>();
        let x = [load(&parts[0]), load(&parts[1]), load(&parts[2]), load(&parts[3])];
        let (scale, factor) = scale_and_factor(largest(&x));
        if factor == 0.0 {
            *quants = [0; GROUP];
            *group = GroupScale::new(scale, [0; 2]);
            continue;
        }
        let factor = _mm256_set1_ps(factor);
        let [a, b, c, d] = x.map(|x| _mm256_cvtps_epi32(_mm256_mul_ps(x, factor)));
        let packed = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
        let packed = _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        // SAFETY: the array is as long as the vector.
        unsafe { _mm256_storeu_si256(quants.as_mut_ptr().cast(), packed) };
        let sums = sums(packed);
        *group = GroupScale::new(scale, sums);
    }
}

/// The largest magnitude, compared by its bits as the scalar kernel does.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn largest(x: &[__m256; 4]) -> f32 {
    let magnitude = _mm256_set1_epi32(i32::MAX);
    let [a, b, c, d] = x.map(|x| _mm256_and_si256(_mm256_castps_si256(x), magnitude));
    let m = _mm256_max_epi32(_mm256_max_epi32(a, b), _mm256_max_epi32(c, d));
    let m = _mm_max_epi32(_mm256_castsi256_si128(m), _mm256_extracti128_si256::<1>(m));
    let m = _mm_max_epi32(m, _mm_shuffle_epi32::<0b01_00_11_10>(m));
    let m = _mm_max_epi32(m, _mm_shuffle_epi32::<0b10_11_00_01>(m));
    f32::from_bits(_mm_cvtsi128_si32(m) as u32)
}

/// The sums of [`GroupScale::sums`].
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn sums(quants: __m256i) -> [i16; 2] {
    let pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), quants);
    let s = _mm_add_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256::<1>(pairs));
    let s = _mm_add_epi16(s, _mm_shuffle_epi32::<0b01_00_11_10>(s));
    let s = _mm_add_epi16(s, _mm_shuffle_epi32::<0b10_11_00_01>(s));
    let both = _mm_cvtsi128_si32(s);
    [both as i16, (both >> 16) as i16]
}
