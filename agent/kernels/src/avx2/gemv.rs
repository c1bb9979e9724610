//! Matmul of one token: as few instructions as keep up with the memory.

use std::arch::x86_64::*;
use std::ops::Range;

use super::{load_bytes, load_halves, store};
use crate::activations::{Activations, GroupScale};
use crate::format::{GROUP, Kind, Matrix, PANEL};

/// How far ahead of the group in work the weights are asked for, in bytes.
const PREFETCH_BYTES: usize = 8192;

const LINE_BYTES: usize = 64;

pub(super) const Q4: u8 = Kind::Q4 as u8;
pub(super) const Q4M: u8 = Kind::Q4m as u8;
pub(super) const Q8: u8 = Kind::Q8 as u8;

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn gemv(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &mut [f32]) {
    match w.kind() {
        Kind::Q4 => gemv_of::<Q4, { Kind::Q4.group_bytes() }>(w, a, panels, y),
        Kind::Q4m => gemv_of::<Q4M, { Kind::Q4m.group_bytes() }>(w, a, panels, y),
        Kind::Q8 => gemv_of::<Q8, { Kind::Q8.group_bytes() }>(w, a, panels, y),
    }
}

#[target_feature(enable = "avx2,fma,f16c")]
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
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) fn prefetch<const BYTES: usize>(group: &[u8; BYTES]) {
    for line in (0..BYTES).step_by(LINE_BYTES) {
        let ahead = group.as_ptr().wrapping_add(PREFETCH_BYTES + line);
        _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
    }
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn add_group<const KIND: u8>(group: &[u8], quants: &[i8; GROUP], a: &GroupScale, sum: __m256) -> __m256 {
    let (halves, _) = group.as_chunks::<16>();
    let header = if KIND == Q4M { 32 } else { 16 };
    let (vectors, _) = group[header..].as_chunks::<32>();
    let (quants, _) = quants.as_chunks::<4>();
    let dots = if KIND == Q8 { dots_of_bytes(vectors, quants) } else { dots_of_nibbles::<KIND>(vectors, quants, a) };
    let scale = _mm256_mul_ps(load_halves(&halves[0]), _mm256_set1_ps(a.scale));
    let sum = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), scale, sum);
    if KIND == Q4M { _mm256_fmadd_ps(load_halves(&halves[1]), _mm256_set1_ps(a.offset), sum) } else { sum }
}

/// Eight products of pairs, at most `8 * 2 * 15 * 127` in size, fit 16 bits; so do all sums on the way when the zero
/// point goes in first.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn dots_of_nibbles<const KIND: u8>(vectors: &[[u8; 32]], quants: &[[i8; 4]], a: &GroupScale) -> __m256i {
    let low_bits = _mm256_set1_epi8(15);
    let mut low = if KIND == Q4 { zero_point(a) } else { _mm256_setzero_si256() };
    let mut high = _mm256_setzero_si256();
    for (vector, quants) in vectors.iter().zip(quants.as_chunks::<2>().0) {
        let vector = load_bytes(vector);
        let nibbles = _mm256_and_si256(vector, low_bits);
        low = _mm256_add_epi16(low, _mm256_maddubs_epi16(nibbles, broadcast(&quants[0])));
        let nibbles = _mm256_and_si256(_mm256_srli_epi16::<4>(vector), low_bits);
        high = _mm256_add_epi16(high, _mm256_maddubs_epi16(nibbles, broadcast(&quants[1])));
    }
    _mm256_madd_epi16(_mm256_add_epi16(low, high), _mm256_set1_epi16(1))
}

/// `maddubs` wants one side unsigned: the weights give their sign to the activations. A pair of products is at most
/// `2 * 128 * 127` in size and fits 16 bits, two pairs do not.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn dots_of_bytes(vectors: &[[u8; 32]], quants: &[[i8; 4]]) -> __m256i {
    let mut dots = _mm256_setzero_si256();
    for (vector, quants) in vectors.iter().zip(quants) {
        let vector = load_bytes(vector);
        let signed = _mm256_sign_epi8(broadcast(quants), vector);
        let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(vector), signed);
        dots = _mm256_add_epi32(dots, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
    dots
}

/// `-8` times the activations' sums, in the 16-bit lanes that they are summed in.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn zero_point(a: &GroupScale) -> __m256i {
    let [low, high] = a.sums;
    let both = i32::from(high) << 16 | i32::from(low) & 0xffff;
    _mm256_sub_epi16(_mm256_setzero_si256(), _mm256_slli_epi16::<3>(_mm256_set1_epi32(both)))
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn broadcast(quants: &[i8; 4]) -> __m256i {
    _mm256_set1_epi32(i32::from_le_bytes(quants.map(|q| q as u8)))
}
