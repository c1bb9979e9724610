//! Matmul: exact integer dot products of groups, summed in f32 from left to right.

use std::ops::Range;

use crate::Activations;
use crate::disjoint::Disjoint;
use crate::format::{GROUP, Group, Matrix, PANEL};

pub(crate) fn gemv(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &mut [f32]) {
    for (panel, y) in panels.zip(y.chunks_mut(PANEL)) {
        panel_rows(w, a, panel, 0, y);
    }
}

/// # Safety
/// No other thread writes the rows of the same panels.
pub(crate) unsafe fn gemm(w: &Matrix<'_>, a: &Activations, panels: Range<usize>, y: &Disjoint<'_, f32>) {
    for panel in panels {
        for token in 0..a.tokens() {
            let start = token * w.rows() + panel * PANEL;
            // SAFETY: these are rows of this panel, which the caller keeps to this thread.
            let y = unsafe { y.part(start..start + PANEL.min(w.rows() - panel * PANEL)) };
            panel_rows(w, a, panel, token, y);
        }
    }
}

fn panel_rows(w: &Matrix<'_>, a: &Activations, panel: usize, token: usize, y: &mut [f32]) {
    y.fill(0.0);
    let quants = a.quants(token).chunks_exact(GROUP);
    for (group, (quants, a)) in w.panel(panel).zip(quants.zip(a.scales(token))) {
        for (row, y) in y.iter_mut().enumerate() {
            let dot = dot(&group, row, quants) as f32;
            *y += dot * (group.scale(row) * a.scale) + group.min(row) * a.offset;
        }
    }
}

fn dot(group: &Group<'_>, row: usize, quants: &[i8]) -> i32 {
    quants.iter().enumerate().map(|(column, &q)| group.weight(row, column) * i32::from(q)).sum()
}
