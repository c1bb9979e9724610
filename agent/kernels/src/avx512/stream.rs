//! Matmul of few tokens: the weights are read once and unpacked in registers, all tokens are multiplied with them there.
//!
//! Two panels of a range are taken together, one of its first half and one of its second, so that there are two streams of
//! memory from start to end.

use std::arch::x86_64::*;
use std::ops::Range;

use super::{RAISED, ROWS, repeat, start, store};
use crate::activations::{Activations, GroupScale};
use crate::avx2::{Q4, Q4M, Q8, prefetch};
use crate::disjoint::Disjoint;
use crate::format::{GROUP, Kind, Matrix, PANEL};

/// The most tokens for which this is faster than expanding the weights.
pub(super) const MAX_TOKENS: usize = 16;

/// Tokens of one pass: the sums of each are kept in two registers. What a second pass reads lies in the second cache level.
const PASS_TOKENS: usize = 8;

/// # Safety
/// The CPU has the instructions, and no other thread writes the rows of the same panels.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
pub(super) unsafe fn gemm(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &Disjoint<'_, f32>) {
    let mut put = |token: usize, row: usize, outputs: &[f32; PANEL]| {
        let n = PANEL.min(w.rows() - row);
        // SAFETY: these are rows of the caller's panels.
        unsafe { y.part(token * w.rows() + row..token * w.rows() + row + n) }.copy_from_slice(&outputs[..n]);
    };
    for first in (0..a.tokens()).step_by(PASS_TOKENS) {
        match a.tokens() - first {
            1 => stream::<1>(w, a, first, panels.clone(), &mut put),
            2 => stream::<2>(w, a, first, panels.clone(), &mut put),
            3 => stream::<3>(w, a, first, panels.clone(), &mut put),
            4 => stream::<4>(w, a, first, panels.clone(), &mut put),
            5 | 6 => stream::<6>(w, a, first, panels.clone(), &mut put),
            _ => stream::<PASS_TOKENS>(w, a, first, panels.clone(), &mut put),
        }
    }
}

/// The integers, by fours, and the scales of the groups of one token.
pub(super) type Token<'a> = (&'a [[[i8; 4]; GROUP / 4]], &'a [GroupScale]);

/// Takes the outputs of one panel: the token, the first row, the rows.
type Put<'a> = &'a mut dyn FnMut(usize, usize, &[f32; PANEL]);

#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn stream<const T: usize>(w: &Matrix<'_>, a: &Activations, first: usize, panels: Range<usize>, put: Put<'_>) {
    match w.kind() {
        Kind::Q4 => stream_of::<Q4, { Kind::Q4.group_bytes() }, T>(w, a, first, panels, put),
        Kind::Q4m => stream_of::<Q4M, { Kind::Q4m.group_bytes() }, T>(w, a, first, panels, put),
        Kind::Q8 => stream_of::<Q8, { Kind::Q8.group_bytes() }, T>(w, a, first, panels, put),
    }
}

/// The last token stands for those that are missing, the last panel for the partner of a lone one.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn stream_of<const KIND: u8, const BYTES: usize, const T: usize>(
    w: &Matrix<'_>,
    a: &Activations,
    first: usize,
    panels: Range<usize>,
    put: Put<'_>,
) {
    let (n_groups, last) = (w.groups(), a.tokens() - 1);
    let mut tokens: [Token<'_>; T] = [(&[], &[]); T];
    for (t, token) in tokens.iter_mut().enumerate() {
        let t = last.min(first + t);
        *token = (a.quants(t).as_chunks().0.as_chunks().0, a.scales(t));
        assert!(token.0.len() >= n_groups && token.1.len() >= n_groups);
    }
    let half = panels.len().div_ceil(2);
    for low in panels.start..panels.start + half {
        let high = (low + half).min(panels.end - 1);
        let (lows, highs) = (w.packed(low).as_chunks::<BYTES>().0, w.packed(high).as_chunks::<BYTES>().0);
        let mut sums = [_mm512_setzero_ps(); T];
        for (g, (low, high)) in lows.iter().zip(highs).enumerate().take(n_groups) {
            prefetch(low);
            prefetch(high);
            // SAFETY: the group is below the lengths asserted above.
            unsafe { add_group::<KIND, BYTES, T>(low, high, &tokens, g, &mut sums) };
        }
        for (token, sum) in (first..a.tokens()).zip(sums) {
            let mut rows = [0.0; ROWS];
            store(&mut rows, sum);
            let [first, second] = rows.as_chunks::<PANEL>().0 else { continue };
            put(token, low * PANEL, first);
            put(token, high * PANEL, second);
        }
    }
}

/// # Safety
/// Each token has more groups than `g`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
unsafe fn add_group<const KIND: u8, const BYTES: usize, const T: usize>(
    low: &[u8; BYTES],
    high: &[u8; BYTES],
    tokens: &[Token<'_>; T],
    g: usize,
    sums: &mut [__m512; T],
) {
    let header = if KIND == Q4M { 32 } else { 16 };
    let mut dots = [_mm512_setzero_si512(); T];
    for t in 0..T {
        // SAFETY: the caller's contract.
        dots[t] = start::<KIND>(unsafe { tokens[t].1.get_unchecked(g) }.negative_sum);
    }
    for v in 0..(BYTES - header) / 32 {
        let vector = join(low, high, header + 32 * v);
        if KIND == Q8 {
            let raised = _mm512_xor_si512(vector, _mm512_set1_epi8(RAISED));
            for t in 0..T {
                // SAFETY: the caller's contract.
                let quants = unsafe { tokens[t].0.get_unchecked(g) };
                dots[t] = _mm512_dpbusd_epi32(dots[t], raised, repeat(quants[v]));
            }
        } else {
            let first = _mm512_and_si512(vector, _mm512_set1_epi8(15));
            let second = _mm512_and_si512(_mm512_srli_epi16::<4>(vector), _mm512_set1_epi8(15));
            for t in 0..T {
                // SAFETY: the caller's contract.
                let quants = unsafe { tokens[t].0.get_unchecked(g) };
                dots[t] = _mm512_dpbusd_epi32(dots[t], first, repeat(quants[2 * v]));
                dots[t] = _mm512_dpbusd_epi32(dots[t], second, repeat(quants[2 * v + 1]));
            }
        }
    }
    let scale = join_halves(low, high, 0);
    for t in 0..T {
        // SAFETY: the caller's contract.
        let a = unsafe { tokens[t].1.get_unchecked(g) };
        let factor = _mm512_mul_ps(scale, _mm512_set1_ps(a.scale));
        sums[t] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[t]), factor, sums[t]);
        if KIND == Q4M {
            sums[t] = _mm512_fmadd_ps(join_halves(low, high, 16), _mm512_set1_ps(a.offset), sums[t]);
        }
    }
}

/// The 32 bytes from `at` of two panels.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn join<const BYTES: usize>(low: &[u8; BYTES], high: &[u8; BYTES], at: usize) -> __m512i {
    assert!(at + 32 <= BYTES);
    // SAFETY: as asserted.
    unsafe {
        let low = _mm256_loadu_si256(low.as_ptr().add(at).cast());
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), _mm256_loadu_si256(high.as_ptr().add(at).cast()))
    }
}

/// The eight f16 from `at` of two panels.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
fn join_halves<const BYTES: usize>(low: &[u8; BYTES], high: &[u8; BYTES], at: usize) -> __m512 {
    assert!(at + 16 <= BYTES);
    // SAFETY: as asserted.
    unsafe {
        let low = _mm_loadu_si128(low.as_ptr().add(at).cast());
        let high = _mm_loadu_si128(high.as_ptr().add(at).cast());
        _mm512_cvtph_ps(_mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high))
    }
}
