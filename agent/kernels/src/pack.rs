//! The reference packer: f32 weights to the packed form, scales from the largest value of a group.
//!
//! For tests, fixtures and synthetic models. The quantizer that minimizes the error lives in model-export.

use crate::Error;
use crate::format::{GROUP, Kind, PANEL, checked_matrix_bytes};
use half::f16;

/// Packs the row-major weights `[rows, cols]`. A short last panel is filled with rows whose scales are zero.
pub fn pack(kind: Kind, rows: usize, cols: usize, w: &[f32]) -> Result<Vec<u8>, Error> {
    Error::check_multiple("matrix columns", GROUP, cols)?;
    let bytes = checked_matrix_bytes(kind, rows, cols);
    let bytes = bytes.ok_or(Error::Limit { what: "matrix rows", limit: usize::MAX / cols, used: rows })?;
    Error::check_length("weights", rows.saturating_mul(cols), w.len())?;
    let mut out = vec![0; bytes];
    for (index, group) in out.chunks_exact_mut(kind.group_bytes()).enumerate() {
        let (panel, column) = (index / (cols / GROUP), index % (cols / GROUP) * GROUP);
        for r in 0..PANEL.min(rows - panel * PANEL) {
            let weights = &w[(panel * PANEL + r) * cols + column..][..GROUP];
            pack_row(kind, r, weights, group);
        }
    }
    Ok(out)
}

fn pack_row(kind: Kind, r: usize, weights: &[f32], group: &mut [u8]) {
    let (low, high) = weights.iter().fold((f32::MAX, f32::MIN), |(low, high), &v| (low.min(v), high.max(v)));
    let extreme = if -low > high { low } else { high };
    let (scale, min) = match kind {
        Kind::Q4 => (extreme / -8.0, 0.0),
        Kind::Q4m => ((high - low) / 15.0, low),
        Kind::Q8 => (extreme.abs() / 127.0, 0.0),
    };
    let (scale, min) = (f16::from_f32(scale), f16::from_f32(min));
    group[2 * r..][..2].copy_from_slice(&scale.to_le_bytes());
    if kind == Kind::Q4m {
        group[2 * (PANEL + r)..][..2].copy_from_slice(&min.to_le_bytes());
    }
    let inverse = if scale.to_f32() == 0.0 { 0.0 } else { 1.0 / scale.to_f32() };
    let quants = &mut group[kind.header_bytes()..];
    for (column, &weight) in weights.iter().enumerate() {
        let steps = ((weight - min.to_f32()) * inverse).round_ties_even() as i32;
        if kind == Kind::Q8 {
            quants[column / 4 * 32 + 4 * r + column % 4] = steps.clamp(-127, 127) as i8 as u8;
        } else {
            let nibble = steps.saturating_add(kind.zero_point().into()).clamp(0, 15) as u8;
            let shift = if column % 8 < 4 { 0 } else { 4 };
            quants[column / 8 * 32 + 4 * r + column % 4] |= nibble << shift;
        }
    }
}
