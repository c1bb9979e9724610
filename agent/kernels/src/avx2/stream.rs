//! Matmul of one token or few: the weights are read once and unpacked in registers, all tokens are multiplied with them there.

use std::arch::x86_64::*;
use std::ops::Range;

use super::dots::Dots;
use super::{Q4, Q4M, Q8, load_halves, prefetch, repeat, store};
use crate::activations::{Activations, GroupScale};
use crate::disjoint::Disjoint;
use crate::format::{GROUP, Kind, Matrix, PANEL};

/// The most tokens that are multiplied with unpacked weights: what 16 registers hold.
pub(super) const MAX_TOKENS: usize = 4;

/// # Safety
/// The CPU has the instructions of `D`.
#[target_feature(enable = "avx2,fma,f16c")]
pub(crate) unsafe fn gemv<D: Dots>(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &mut [f32]) {
    let first = panels.start;
    let mut put = |_, panel: usize, rows: &[f32; PANEL]| {
        let y = &mut y[(panel - first) * PANEL..];
        let n = PANEL.min(y.len());
        y[..n].copy_from_slice(&rows[..n]);
    };
    // SAFETY: the caller's contract.
    unsafe { stream::<D, 1>(w, a, panels, &mut put) };
}

/// For at most [`MAX_TOKENS`].
///
/// # Safety
/// The CPU has the instructions of `D`, and no other thread writes the rows of the same panels.
#[target_feature(enable = "avx2,fma,f16c")]
pub(super) unsafe fn gemm<D: Dots>(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &Disjoint<'_, f32>) {
    let mut put = |token: usize, panel: usize, rows: &[f32; PANEL]| {
        let n = PANEL.min(w.rows() - panel * PANEL);
        let start = token * w.rows() + panel * PANEL;
        // SAFETY: these are rows of the caller's panels.
        unsafe { y.part(start..start + n) }.copy_from_slice(&rows[..n]);
    };
    // SAFETY: the caller's contract.
    unsafe {
        match a.tokens() {
            0 | 1 => stream::<D, 1>(w, a, panels, &mut put),
            2 => stream::<D, 2>(w, a, panels, &mut put),
            3 => stream::<D, 3>(w, a, panels, &mut put),
            _ => stream::<D, MAX_TOKENS>(w, a, panels, &mut put),
        }
    }
}

/// The integers, by fours, and the scales of the groups of one token.
pub(super) type Token<'a> = (&'a [[[i8; 4]; GROUP / 4]], &'a [GroupScale]);

/// Takes the outputs of one token and panel.
type Put<'a> = &'a mut dyn FnMut(usize, usize, &[f32; PANEL]);

/// # Safety
/// The CPU has the instructions of `D`.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn stream<D: Dots, const T: usize>(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, put: Put<'_>) {
    // SAFETY: the caller's contract.
    unsafe {
        match w.kind() {
            Kind::Q4 => stream_of::<D, Q4, { Kind::Q4.group_bytes() }, T>(w, a, panels, put),
            Kind::Q4m => stream_of::<D, Q4M, { Kind::Q4m.group_bytes() }, T>(w, a, panels, put),
            Kind::Q8 => stream_of::<D, Q8, { Kind::Q8.group_bytes() }, T>(w, a, panels, put),
        }
    }
}

/// # Safety
/// The CPU has the instructions of `D`.
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn stream_of<D: Dots, const KIND: u8, const BYTES: usize, const T: usize>(
    w: &Matrix<'_>,
    a: &Activations,
    panels: Range<usize>,
    put: Put<'_>,
) {
    let mut tokens: [Token<'_>; T] = [(&[], &[]); T];
    for (t, token) in tokens.iter_mut().enumerate() {
        *token = (a.quants(t).as_chunks().0.as_chunks().0, a.scales(t));
        assert!(token.0.len() >= w.groups() && token.1.len() >= w.groups());
    }
    for panel in panels {
        let mut sums = [_mm256_setzero_ps(); T];
        for (g, group) in w.packed(panel).as_chunks::<BYTES>().0.iter().enumerate().take(w.groups()) {
            prefetch(group);
            // SAFETY: the caller's contract; the group is below the lengths asserted above.
            unsafe { add_group::<D, KIND, BYTES, T>(group, &tokens, g, &mut sums) };
        }
        for (token, sum) in sums.into_iter().enumerate() {
            let mut rows = [0.0; PANEL];
            store(&mut rows, sum);
            put(token, panel, &rows);
        }
    }
}

/// # Safety
/// The CPU has the instructions of `D`, and each token has more groups than `g`.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn add_group<D: Dots, const KIND: u8, const BYTES: usize, const T: usize>(
    group: &[u8; BYTES],
    tokens: &[Token<'_>; T],
    g: usize,
    sums: &mut [__m256; T],
) {
    let header = if KIND == Q4M { 32 } else { 16 };
    let mut dots = [_mm256_setzero_si256(); T];
    for t in 0..T {
        // SAFETY: the caller's contract.
        dots[t] = unsafe { D::start::<KIND>(tokens[t].1.get_unchecked(g)) };
    }
    for v in 0..(BYTES - header) / 32 {
        let at = header + 32 * v;
        assert!(at + 32 <= BYTES);
        // SAFETY: as asserted.
        let vector = unsafe { _mm256_loadu_si256(group.as_ptr().add(at).cast()) };
        if KIND == Q8 {
            let flipped = _mm256_xor_si256(vector, _mm256_set1_epi8(D::FLIPPED));
            for t in 0..T {
                // SAFETY: the caller's contract.
                dots[t] = unsafe { D::add::<KIND>(dots[t], flipped, repeat(tokens[t].0.get_unchecked(g)[v])) };
            }
        } else {
            let low = _mm256_and_si256(vector, _mm256_set1_epi8(15));
            let high = _mm256_and_si256(_mm256_srli_epi16::<4>(vector), _mm256_set1_epi8(15));
            for t in 0..T {
                // SAFETY: the caller's contract.
                unsafe {
                    let quants = tokens[t].0.get_unchecked(g);
                    dots[t] = D::add::<KIND>(dots[t], low, repeat(quants[2 * v]));
                    dots[t] = D::add::<KIND>(dots[t], high, repeat(quants[2 * v + 1]));
                }
            }
        }
    }
    let (halves, _) = group.as_chunks::<16>();
    let scale = load_halves(&halves[0]);
    for t in 0..T {
        // SAFETY: the caller's contract.
        let (dots, a) = unsafe { (D::finish::<KIND>(dots[t]), tokens[t].1.get_unchecked(g)) };
        let factor = _mm256_mul_ps(scale, _mm256_set1_ps(a.scale));
        sums[t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots), factor, sums[t]);
        if KIND == Q4M {
            sums[t] = _mm256_fmadd_ps(load_halves(&halves[1]), _mm256_set1_ps(a.offset), sums[t]);
        }
    }
}
