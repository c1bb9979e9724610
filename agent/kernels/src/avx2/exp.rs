//! `exp` of eight floats, within 2 units in the last place, with zero, denormal, infinite and NaN results as they should be.

use std::arch::x86_64::*;

/// Beyond these, the result is zero or infinite for sure.
const LIMIT: f32 = 104.0;

/// ln 2 in two parts, the first with few enough bits that its products with the exponents are exact.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];

/// The minimax polynomial of Cephes' `expf`, highest power first: `exp(r) = 1 + r + r^2 * p(r)`.
const POLYNOMIAL: [f32; 6] = [1.987_569_1e-4, 1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn exp(x: __m256) -> __m256 {
    // The second operand comes back where one is NaN.
    let x = _mm256_max_ps(_mm256_set1_ps(-LIMIT), _mm256_min_ps(_mm256_set1_ps(LIMIT), x));
    let exponent = _mm256_cvtps_epi32(_mm256_mul_ps(x, _mm256_set1_ps(std::f32::consts::LOG2_E)));
    let n = _mm256_cvtepi32_ps(exponent);
    let r = _mm256_fnmadd_ps(n, _mm256_set1_ps(LN_2[0]), x);
    let r = _mm256_fnmadd_ps(n, _mm256_set1_ps(LN_2[1]), r);
    let mut p = _mm256_set1_ps(POLYNOMIAL[0]);
    for coefficient in &POLYNOMIAL[1..] {
        p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(*coefficient));
    }
    let p = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0));
    let half = _mm256_srai_epi32::<1>(exponent);
    _mm256_mul_ps(_mm256_mul_ps(p, power_of_2(half)), power_of_2(_mm256_sub_epi32(exponent, half)))
}

/// For exponents of normal floats only: one that is larger is reached in two factors.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn power_of_2(exponent: __m256i) -> __m256 {
    _mm256_castsi256_ps(_mm256_slli_epi32::<23>(_mm256_add_epi32(exponent, _mm256_set1_epi32(127))))
}
