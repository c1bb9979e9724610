//! Matmul: exact integer dot products of groups, summed in f32 from left to right.

use std::ops::Range;

use crate::Activations;
use crate::disjoint::Disjoint;
use crate::format::{GROUP, Group, Matrix, PANEL};

pub(super) fn gemv(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &mut [f32]) {
    for (panel, y) in panels.zip(y.chunks_mut(PANEL)) {
        add_groups(&unpacked(w, panel), a, 0, y);
    }
}

/// # Safety
/// No other thread writes the rows of the same panels.
pub(super) unsafe fn gemm(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &Disjoint<'_, f32>) {
    for panel in panels {
        let groups = unpacked(w, panel);
        for token in 0..a.tokens() {
            let start = token * w.rows() + panel * PANEL;
            // SAFETY: these are rows of this panel, which the caller keeps to this thread.
            let y = unsafe { y.part(start..start + PANEL.min(w.rows() - panel * PANEL)) };
            add_groups(&groups, a, token, y);
        }
    }
}

/// One group of a panel with a byte a weight.
struct Unpacked {
    integers: [[i8; GROUP]; PANEL],
    scales: [f32; PANEL],
    mins: [f32; PANEL],
}

fn unpacked(w: &Matrix<'_>, panel: usize) -> Vec<Unpacked> {
    let unpack = |group: Group<'_>| Unpacked {
        integers: group.integers(),
        scales: std::array::from_fn(|row| group.scale(row)),
        mins: std::array::from_fn(|row| group.min(row)),
    };
    w.panel(panel).map(unpack).collect()
}

fn add_groups(groups: &[Unpacked], a: &Activations, token: usize, y: &mut [f32]) {
    y.fill(0.0);
    let quants = a.quants(token).as_chunks::<GROUP>().0;
    for (w, (quants, a)) in groups.iter().zip(quants.iter().zip(a.scales(token))) {
        for (row, y) in y.iter_mut().enumerate() {
            *y += dot(&w.integers[row], quants) as f32 * (w.scales[row] * a.scale) + w.mins[row] * a.offset;
        }
    }
}

fn dot(w: &[i8; GROUP], a: &[i8; GROUP]) -> i32 {
    w.iter().zip(a).map(|(w, a)| i32::from(*w) * i32::from(*a)).sum()
}
