//! Matmul by `sdot`: sixteen products of bytes to 32 bits an instruction, four a row, which is what the packing is made for.

use std::arch::aarch64::*;
use std::arch::asm;
use std::ops::Range;

use super::gemm::{Expanded, Multiply, Tokens};
use super::gemv::nibbles;
use super::{Q4, Q4M, Q8, Rows, add_scaled, load_bytes, load_quants, load_scales, store_rows, zero_point};
use crate::Activations;
use crate::activations::GroupScale;
use crate::format::{GROUP, Kind, Matrix, PANEL};

#[target_feature(enable = "neon,dotprod")]
pub(super) fn gemv(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &mut [f32]) {
    match w.kind() {
        Kind::Q4 => gemv_of::<Q4, { Kind::Q4.group_bytes() }>(w, a, panels, y),
        Kind::Q4m => gemv_of::<Q4M, { Kind::Q4m.group_bytes() }>(w, a, panels, y),
        Kind::Q8 => gemv_of::<Q8, { Kind::Q8.group_bytes() }>(w, a, panels, y),
    }
}

#[target_feature(enable = "neon,dotprod")]
fn gemv_of<const KIND: u8, const BYTES: usize>(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &mut [f32]) {
    let quants = a.quants(0).as_chunks::<GROUP>().0;
    let scales = a.scales(0);
    for (panel, y) in panels.zip(y.chunks_mut(PANEL)) {
        let groups = w.packed(panel).as_chunks::<BYTES>().0;
        let mut sums = [vdupq_n_f32(0.0); 2];
        for (group, (quants, a)) in groups.iter().zip(quants.iter().zip(scales)) {
            let (vectors, _) = group.as_chunks::<16>();
            let mins = if KIND == Q4M { load_scales(&vectors[1]) } else { [vdupq_n_f32(0.0); 2] };
            let dots = dots::<KIND>(&vectors[if KIND == Q4M { 2 } else { 1 }..], quants, a);
            add_scaled::<KIND>(&mut sums, dots, load_scales(&vectors[0]), mins, a);
        }
        store_rows(y, sums);
    }
}

#[inline]
#[target_feature(enable = "neon,dotprod")]
fn dots<const KIND: u8>(vectors: &[[u8; 16]], quants: &[i8; GROUP], a: &GroupScale) -> [int32x4_t; 2] {
    let mut dots = [vdupq_n_s32(if KIND == Q4 { -zero_point(a) } else { 0 }); 2];
    for (quants, vectors) in halves(quants).into_iter().zip(vectors.chunks_exact(vectors.len() / 2)) {
        for (half, dots) in dots.iter_mut().enumerate() {
            let columns = if KIND == Q8 {
                [0, 2, 4, 6].map(|v| vreinterpretq_s8_u8(load_bytes(&vectors[v + half])))
            } else {
                let ((a, b), (c, d)) = (nibbles(&vectors[half]), nibbles(&vectors[2 + half]));
                [a, b, c, d]
            };
            *dots = add_columns(*dots, columns, quants);
        }
    }
    dots
}

/// The activations of the two halves of a group.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn halves(quants: &[i8; GROUP]) -> [int8x16_t; 2] {
    let (halves, _) = quants.as_chunks::<16>();
    [load_quants(&halves[0]), load_quants(&halves[1])]
}

/// Adds 16 columns of 4 rows, 4 columns a vector.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn add_columns(dots: int32x4_t, [a, b, c, d]: [int8x16_t; 4], quants: int8x16_t) -> int32x4_t {
    sdot::<3>(sdot::<2>(sdot::<1>(sdot::<0>(dots, a, quants), b, quants), c, quants), d, quants)
}

/// Adds the products of each 4 weights with the same 4 activations, the `LANE`th of the vector.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sdot<const LANE: usize>(mut dots: int32x4_t, w: int8x16_t, quants: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction touches the named registers only.
    unsafe {
        asm!(
            "sdot {dots:v}.4s, {w:v}.16b, {quants:v}.4b[{lane}]",
            dots = inout(vreg) dots,
            w = in(vreg) w,
            quants = in(vreg) quants,
            lane = const LANE,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    dots
}

/// Tiles by `sdot`.
pub(super) enum Sdot {}

impl Multiply for Sdot {
    const PAIRED: bool = false;

    #[target_feature(enable = "neon,dotprod")]
    unsafe fn add<const KIND: u8, const T: usize>(panel: &[Expanded], tokens: &Tokens<'_, T>, sums: &mut [Rows; T]) {
        let (tokens, mut of_panel) = (tokens.first(panel.len()), *sums);
        for (g, group) in panel.iter().enumerate() {
            let (quants, scales) = tokens.group(g);
            let quants = quants.map(|quants| halves(quants));
            let mut dots = [[vdupq_n_s32(0); 2]; T];
            for (part, vectors) in group.quants.as_chunks::<8>().0.iter().enumerate() {
                for half in 0..2 {
                    let columns = [0, 2, 4, 6].map(|v| load_quants(&vectors[v + half]));
                    for (dots, quants) in dots.iter_mut().zip(&quants) {
                        dots[half] = add_columns(dots[half], columns, quants[part]);
                    }
                }
            }
            group.add_scaled::<KIND, T>(dots, scales, &mut of_panel);
        }
        *sums = of_panel;
    }
}
