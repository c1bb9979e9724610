//! Matmul of one token: two vectors of the packing in a register, which is 8 rows twice.

use std::arch::x86_64::*;
use std::ops::Range;

use super::{Q4, Q4M, Q8, RAISED, excess, load_bytes};
use crate::activations::{Activations, GroupScale};
use crate::avx2::{load_halves, prefetch, store};
use crate::format::{GROUP, Kind, Matrix, PANEL};

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) fn gemv(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &mut [f32]) {
    match w.kind() {
        Kind::Q4 => gemv_of::<Q4, { Kind::Q4.group_bytes() }>(w, a, panels, y),
        Kind::Q4m => gemv_of::<Q4M, { Kind::Q4m.group_bytes() }>(w, a, panels, y),
        Kind::Q8 => gemv_of::<Q8, { Kind::Q8.group_bytes() }>(w, a, panels, y),
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn gemv_of<const KIND: u8, const BYTES: usize>(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &mut [f32]) {
    let quants = a.quants(0).as_chunks::<GROUP>().0;
    let scales = a.scales(0);
    for (panel, y) in panels.zip(y.chunks_mut(PANEL)) {
        let groups = w.packed(panel).as_chunks::<BYTES>().0;
        let mut sum = _mm256_setzero_ps();
        for (group, (quants, scale)) in groups.iter().zip(quants.iter().zip(scales)) {
            prefetch(group);
            sum = add_group::<KIND>(group, quants, scale, sum);
        }
        let mut rows = [0.0; PANEL];
        store(&mut rows, sum);
        y.copy_from_slice(&rows[..y.len()]);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn add_group<const KIND: u8>(group: &[u8], quants: &[i8; GROUP], a: &GroupScale, sum: __m256) -> __m256 {
    let (halves, _) = group.as_chunks::<16>();
    let (vectors, _) = group[if KIND == Q4M { 32 } else { 16 }..].as_chunks::<64>();
    // SAFETY: the array is as long as the vector.
    let quants = _mm512_castsi256_si512(unsafe { _mm256_loadu_si256(quants.as_ptr().cast()) });
    let mut dots = _mm512_setzero_si512();
    for (v, vector) in vectors.iter().enumerate() {
        let vector = load_bytes(vector);
        if KIND == Q8 {
            let raised = _mm512_xor_si512(vector, _mm512_set1_epi8(RAISED));
            dots = _mm512_dpbusd_epi32(dots, raised, words(quants, 2 * v, 2 * v + 1));
        } else {
            let low_bits = _mm512_set1_epi8(15);
            let low = _mm512_and_si512(vector, low_bits);
            let high = _mm512_and_si512(_mm512_srli_epi16::<4>(vector), low_bits);
            dots = _mm512_dpbusd_epi32(dots, low, words(quants, 4 * v, 4 * v + 2));
            dots = _mm512_dpbusd_epi32(dots, high, words(quants, 4 * v + 1, 4 * v + 3));
        }
    }
    let dots = _mm256_add_epi32(_mm512_castsi512_si256(dots), _mm512_extracti64x4_epi64::<1>(dots));
    let dots = _mm256_sub_epi32(dots, _mm256_set1_epi32(excess::<KIND>(a)));
    let scale = _mm256_mul_ps(load_halves(&halves[0]), _mm256_set1_ps(a.scale));
    let sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), scale, sum);
    if KIND == Q4M { _mm256_fmadd_ps(load_halves(&halves[1]), _mm256_set1_ps(a.offset), sum) } else { sum }
}

/// Four activations for the 8 rows of each half.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn words(quants: __m512i, first: usize, second: usize) -> __m512i {
    let indices = _mm512_inserti64x4::<1>(_mm512_set1_epi32(first as i32), _mm256_set1_epi32(second as i32));
    _mm512_permutexvar_epi32(indices, quants)
}
