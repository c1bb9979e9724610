//! Tiles by `smmla`: 8 columns of 2 rows times 8 columns of 2 tokens, 32 products an instruction.

use std::arch::aarch64::*;
use std::arch::asm;

use super::gemm::{Expanded, Multiply, Tokens};
use super::{Rows, load_quants};

/// Tiles by `smmla`.
pub(super) enum Smmla {}

impl Multiply for Smmla {
    const PAIRED: bool = true;

    #[target_feature(enable = "neon,i8mm")]
    unsafe fn add<const KIND: u8, const T: usize>(panel: &[Expanded], tokens: &Tokens<'_, T>, sums: &mut [Rows; T]) {
        let (tokens, mut of_panel) = (tokens.first(panel.len()), *sums);
        for (g, group) in panel.iter().enumerate() {
            let (quants, scales) = tokens.group(g);
            let mut squares = [[vdupq_n_s32(0); 2]; T];
            let (pairs, _) = squares.as_chunks_mut::<2>();
            for (v, vectors) in group.quants.as_chunks::<4>().0.iter().enumerate() {
                let vectors = [0, 1, 2, 3].map(|i| load_quants(&vectors[i]));
                for (pair, quants) in pairs.iter_mut().zip(quants.as_chunks::<2>().0) {
                    let [a, b] = [quants[0].as_chunks::<8>().0, quants[1].as_chunks::<8>().0];
                    let quants = columns(&a[v], &b[v]);
                    for (square, vector) in pair.as_flattened_mut().iter_mut().zip(vectors) {
                        *square = smmla(*square, vector, quants);
                    }
                }
            }
            for pair in pairs {
                let [[a, b], [c, d]] = *pair;
                *pair = [[vuzp1q_s32(a, b), vuzp1q_s32(c, d)], [vuzp2q_s32(a, b), vuzp2q_s32(c, d)]];
            }
            group.add_scaled::<KIND, T>(squares, scales, &mut of_panel);
        }
        *sums = of_panel;
    }
}

/// The same 8 columns of two tokens.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn columns(a: &[i8; 8], b: &[i8; 8]) -> int8x16_t {
    // SAFETY: the arrays are as long as the vectors.
    unsafe { vcombine_s8(vld1_s8(a.as_ptr()), vld1_s8(b.as_ptr())) }
}

/// Adds the products of 2 rows (the halves of `w`) with 2 tokens (the halves of `a`), each row's tokens side by side.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn smmla(mut square: int32x4_t, w: int8x16_t, a: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction touches the named registers only.
    unsafe {
        asm!(
            "smmla {square:v}.4s, {w:v}.16b, {a:v}.16b",
            square = inout(vreg) square,
            w = in(vreg) w,
            a = in(vreg) a,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    square
}
