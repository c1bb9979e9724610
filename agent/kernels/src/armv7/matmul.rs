//! Matmul by widening multiplies: eight products of bytes to 16 bits an instruction.
//!
//! A `q` register holds 4 columns of 4 rows; the 4 activations are repeated for each row. A lane of 16 bits sums up one
//! column in 4 of a row, so that no product is moved before the end of a group. With many tokens, a panel is multiplied by
//! each while it lies in the cache.

use std::arch::asm;
use std::ops::Range;

use crate::Activations;
use crate::activations::GroupScale;
use crate::disjoint::Disjoint;
use crate::format::{GROUP, Kind, Matrix, PANEL};

/// # Safety
/// The CPU has NEON and VFPv4.
pub(super) unsafe fn gemv(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &mut [f32]) {
    for (panel, y) in panels.zip(y.chunks_mut(PANEL)) {
        // SAFETY: the caller's contract.
        unsafe { multiply(w, a, panel, 0, y) };
    }
}

/// # Safety
/// The CPU has NEON and VFPv4, and no other thread writes the rows of the same panels.
pub(super) unsafe fn gemm(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &Disjoint<'_, f32>) {
    for panel in panels {
        for token in 0..a.tokens() {
            let start = token * w.rows() + panel * PANEL;
            // SAFETY: the caller's contract; these are rows of this panel, and each part ends before the next begins.
            unsafe { multiply(w, a, panel, token, y.part(start..start + PANEL.min(w.rows() - panel * PANEL))) };
        }
    }
}

/// # Safety
/// The CPU has NEON and VFPv4.
unsafe fn multiply(w: &Matrix<'_>, a: &Activations, panel: usize, token: usize, y: &mut [f32]) {
    let quants = a.quants(token).as_chunks::<GROUP>().0.iter().zip(a.scales(token));
    let packed = w.packed(panel);
    let mut rows = [0.0; PANEL];
    // SAFETY: the caller's contract; the arrays have the kind's length.
    unsafe {
        match w.kind() {
            Kind::Q4 => {
                for (group, (quants, a)) in packed.as_chunks().0.iter().zip(quants) {
                    add_q4(group, quants, a, &mut rows);
                }
            }
            Kind::Q4m => {
                for (group, (quants, a)) in packed.as_chunks().0.iter().zip(quants) {
                    add_q4m(group, quants, a, &mut rows);
                }
            }
            Kind::Q8 => {
                for (group, (quants, a)) in packed.as_chunks().0.iter().zip(quants) {
                    add_q8(group, quants, a, &mut rows);
                }
            }
        }
    }
    y.copy_from_slice(&rows[..y.len()]);
}

/// Eight columns of nibbles at `r0`, times the activations in a `d` register: at most `8 * 15 * 127` in size, all products
/// of a group fit 16 bits.
macro_rules! nibbles {
    ($quants:literal) => {
        concat!(
            "vld1.8 {{d8-d11}}, [r0]!\n",
            concat!("vdup.32 d24, ", $quants, "[0]\n"),
            concat!("vdup.32 d25, ", $quants, "[1]\n"),
            "vand q6, q4, q15\n",
            "vand q7, q5, q15\n",
            "vshr.u8 q4, q4, #4\n",
            "vshr.u8 q5, q5, #4\n",
            "vmlal.s8 q8, d12, d24\n",
            "vmlal.s8 q9, d13, d24\n",
            "vmlal.s8 q10, d14, d24\n",
            "vmlal.s8 q11, d15, d24\n",
            "vmlal.s8 q8, d8, d25\n",
            "vmlal.s8 q9, d9, d25\n",
            "vmlal.s8 q10, d10, d25\n",
            "vmlal.s8 q11, d11, d25",
        )
    };
}

/// Eight columns of bytes: two products, at most `2 * 128 * 127` in size, fit 16 bits, four do not.
macro_rules! bytes {
    ($quants:literal) => {
        concat!(
            "vld1.8 {{d8-d11}}, [r0]!\n",
            "vld1.8 {{d12-d15}}, [r0]!\n",
            concat!("vdup.32 d24, ", $quants, "[0]\n"),
            concat!("vdup.32 d25, ", $quants, "[1]\n"),
            "vmull.s8 q13, d8, d24\n",
            "vmull.s8 q14, d9, d24\n",
            "vmlal.s8 q13, d12, d25\n",
            "vmlal.s8 q14, d13, d25\n",
            "vpadal.s16 q8, q13\n",
            "vpadal.s16 q9, q14\n",
            "vmull.s8 q13, d10, d24\n",
            "vmull.s8 q14, d11, d24\n",
            "vmlal.s8 q13, d14, d25\n",
            "vmlal.s8 q14, d15, d25\n",
            "vpadal.s16 q10, q13\n",
            "vpadal.s16 q11, q14",
        )
    };
}

/// Adds one group of a panel to its rows; `r0` is at the quants, `r1` at the scales. `$lanes_to_pairs` turns `q8`..`q11` into
/// two sums of 32 bits for each row.
macro_rules! add_group {
    ($name:ident, $kind:expr, $columns:ident, [$($lanes_to_pairs:literal),*], [$($min:literal),*]) => {
        /// # Safety
        /// The CPU has NEON and VFPv4.
        unsafe fn $name(group: &[u8; $kind.group_bytes()], quants: &[i8; GROUP], a: &GroupScale, rows: &mut [f32; PANEL]) {
            let zero_point = i32::from($kind.zero_point()) * (i32::from(a.sums[0]) + i32::from(a.sums[1]));
            // SAFETY: only the arrays are read and written, `rows` alone is written; the caller has the instructions.
            unsafe {
                asm!(
                    ".fpu neon-vfpv4",
                    "vld1.8 {{d0-d3}}, [{quants}]",
                    "vmov.i8 q15, #15",
                    "vmov.i32 q8, #0",
                    "vmov.i32 q9, #0",
                    "vmov.i32 q10, #0",
                    "vmov.i32 q11, #0",
                    $columns!("d0"),
                    $columns!("d1"),
                    $columns!("d2"),
                    $columns!("d3"),
                    $($lanes_to_pairs,)*
                    "vpadd.i32 d16, d16, d17",
                    "vpadd.i32 d17, d18, d19",
                    "vpadd.i32 d18, d20, d21",
                    "vpadd.i32 d19, d22, d23",
                    "vdup.32 q10, {zero_point}",
                    "vsub.i32 q8, q8, q10",
                    "vsub.i32 q9, q9, q10",
                    "vcvt.f32.s32 q8, q8",
                    "vcvt.f32.s32 q9, q9",
                    "vld1.32 {{d0-d3}}, [{rows}]",
                    "vld1.16 {{d20-d21}}, [r1]!",
                    "vld1.32 {{d26[], d27[]}}, [r2]!",
                    "vcvt.f32.f16 q11, d20",
                    "vcvt.f32.f16 q12, d21",
                    "vmul.f32 q11, q11, q13",
                    "vmul.f32 q12, q12, q13",
                    "vfma.f32 q0, q8, q11",
                    "vfma.f32 q1, q9, q12",
                    $($min,)*
                    "vst1.32 {{d0-d3}}, [{rows}]",
                    inout("r0") group.as_ptr().add($kind.header_bytes()) => _,
                    inout("r1") group.as_ptr() => _,
                    inout("r2") std::ptr::from_ref(a) => _,
                    quants = in(reg) quants.as_ptr(),
                    rows = in(reg) rows.as_mut_ptr(),
                    zero_point = in(reg) zero_point,
                    out("d8") _, out("d9") _, out("d10") _, out("d11") _,
                    out("d12") _, out("d13") _, out("d14") _, out("d15") _,
                    clobber_abi("C"),
                    options(nostack, preserves_flags),
                );
            }
        }
    };
}

add_group!(
    add_q4,
    Kind::Q4,
    nibbles,
    ["vpaddl.s16 q8, q8", "vpaddl.s16 q9, q9", "vpaddl.s16 q10, q10", "vpaddl.s16 q11, q11"],
    []
);
add_group!(
    add_q4m,
    Kind::Q4m,
    nibbles,
    ["vpaddl.s16 q8, q8", "vpaddl.s16 q9, q9", "vpaddl.s16 q10, q10", "vpaddl.s16 q11, q11"],
    [
        "vld1.16 {{d20-d21}}, [r1]",
        "vld1.32 {{d26[], d27[]}}, [r2]",
        "vcvt.f32.f16 q11, d20",
        "vcvt.f32.f16 q12, d21",
        "vfma.f32 q0, q11, q13",
        "vfma.f32 q1, q12, q13"
    ]
);
add_group!(add_q8, Kind::Q8, bytes, [], []);
