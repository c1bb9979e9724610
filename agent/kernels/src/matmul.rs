//! Quantized matmul: cuts a matrix into chunks of panels and hands them to the pool.

use crate::disjoint::Disjoint;
use crate::dispatch::{Dispatch, dispatch};
use crate::format::{Matrix, PANEL};
use crate::prefetch::prefetch;
use crate::{Activations, Error, Pool};

/// Bytes of weights in one chunk of a decode: long enough that a claim costs nothing, short enough that the last one
/// is not waited for.
const GEMV_CHUNK_BYTES: usize = 128 * 1024;

/// Bytes of weights below which a decode chunk costs more to share than to do.
const GEMV_SMALLEST_CHUNK_BYTES: usize = 32 * 1024;

/// Panels in one chunk of a prefill.
const GEMM_CHUNK_PANELS: usize = 16;

/// Panels that a prefill kernel takes together.
const GEMM_TILE_PANELS: usize = 2;

/// Chunks a thread should find, so that the last ones even out.
const CHUNKS_PER_THREAD: usize = 4;

/// `y = a * w^T`: `y` is token-major `[a.tokens(), w.rows()]`. One token is a GEMV bound by memory, more a blocked GEMM.
/// If `w` has an adapter, `a` must come from [`Activations::quantize_for`].
pub fn matmul(pool: &Pool, w: &Matrix<'_>, a: &Activations, y: &mut [f32]) -> Result<(), Error> {
    matmul_by(dispatch(), pool, w, a, y)
}

pub(crate) fn matmul_by(
    by: &Dispatch,
    pool: &Pool,
    w: &Matrix<'_>,
    a: &Activations,
    y: &mut [f32],
) -> Result<(), Error> {
    check_activations(w, a)?;
    Error::check_length("matmul output", w.rows().saturating_mul(a.tokens()), y.len())?;
    if y.is_empty() {
        return Ok(());
    }
    let panels = w.panels();
    let per_chunk = chunk_panels(pool.threads(), w, a.tokens());
    let range = |chunk: usize| chunk * per_chunk..panels.min((chunk + 1) * per_chunk);
    let y = Disjoint::new(y);
    if a.tokens() == 1 {
        pool.run(panels.div_ceil(per_chunk), &|chunk, _| {
            let panels = range(chunk);
            // SAFETY: each chunk is run once and has its own panels, so its own rows.
            let y = unsafe { y.part(panels.start * PANEL..panels.end * PANEL) };
            // The rows of the adapter lie elsewhere and are too few for the CPU to foresee.
            prefetch(w.adapter().map_or(&[], |adapter| adapter.b_rows(panels.start * PANEL, y.len())), 0);
            by.gemv(w, a, panels.clone(), y);
            add_adapter(by, w, a, 0, panels.start * PANEL, y);
        });
    } else {
        pool.run(panels.div_ceil(per_chunk), &|chunk, _| {
            let panels = range(chunk);
            // SAFETY: each chunk is run once and has its own panels.
            unsafe { by.gemm(w, a, panels.clone(), &y) };
            let (first, end) = (panels.start * PANEL, w.rows().min(panels.end * PANEL));
            for token in 0..w.adapter().map_or(0, |_| a.tokens()) {
                // SAFETY: as before.
                let y = unsafe { y.part(token * w.rows() + first..token * w.rows() + end) };
                add_adapter(by, w, a, token, first, y);
            }
        });
    }
    Ok(())
}

/// The outputs of one token for chosen rows only: `y[i]` is, bit for bit, what [`matmul`] gives for row `rows[i]`. Whole
/// panels are computed, once for rows of one panel that stand together, so an ascending list is the quickest.
pub fn matmul_rows(pool: &Pool, w: &Matrix<'_>, a: &Activations, rows: &[u32], y: &mut [f32]) -> Result<(), Error> {
    matmul_rows_by(dispatch(), pool, w, a, rows, y)
}

pub(crate) fn matmul_rows_by(
    by: &Dispatch,
    pool: &Pool,
    w: &Matrix<'_>,
    a: &Activations,
    rows: &[u32],
    y: &mut [f32],
) -> Result<(), Error> {
    check_activations(w, a)?;
    Error::check_length("tokens of selected rows", 1, a.tokens())?;
    Error::check_length("matmul output", rows.len(), y.len())?;
    let Some(&last) = rows.iter().max() else { return Ok(()) };
    if last as usize >= w.rows() {
        return Err(Error::Limit { what: "matrix row", limit: w.rows().saturating_sub(1), used: last as usize });
    }
    let per_chunk = GEMV_SMALLEST_CHUNK_BYTES.div_ceil(w.panel_bytes());
    let y = Disjoint::new(y);
    pool.run(rows.len().div_ceil(per_chunk), &|chunk, _| {
        let rows = &rows[chunk * per_chunk..];
        let rows = &rows[..rows.len().min(per_chunk)];
        // SAFETY: each chunk is run once and has its own outputs.
        let y = unsafe { y.part(chunk * per_chunk..(chunk + 1) * per_chunk) };
        let mut done = 0;
        for same_panel in rows.chunk_by(|a, b| *a as usize / PANEL == *b as usize / PANEL) {
            let panel = same_panel[0] as usize / PANEL;
            let mut outputs = [0.0; PANEL];
            by.gemv(w, a, panel..panel + 1, &mut outputs[..PANEL.min(w.rows() - panel * PANEL)]);
            for (row, y) in same_panel.iter().zip(&mut y[done..]) {
                *y = outputs[*row as usize % PANEL];
                add_adapter(by, w, a, 0, *row as usize, std::slice::from_mut(y));
            }
            done += same_panel.len();
        }
    });
    Ok(())
}

fn check_activations(w: &Matrix<'_>, a: &Activations) -> Result<(), Error> {
    if a.tokens() == 0 {
        return Ok(());
    }
    Error::check_length("activation columns", w.cols(), a.cols())?;
    w.adapter().map_or(Ok(()), |adapter| Error::check_length("activations for an adapter", adapter.rank(), a.rank()))
}

/// Adds the second product of the adapter to the outputs of one token from row `first`.
fn add_adapter(by: &Dispatch, w: &Matrix<'_>, a: &Activations, token: usize, first: usize, y: &mut [f32]) {
    if let Some(adapter) = w.adapter() {
        by.add_halves(adapter.b_rows(first, y.len()), a.projected(token), y);
    }
}

/// As few chunks as the sizes allow, but some for each thread, and as many for each.
fn chunk_panels(threads: usize, w: &Matrix<'_>, tokens: usize) -> usize {
    let in_bytes = |bytes: usize| bytes.div_ceil(w.panel_bytes());
    let (smallest, largest) = if tokens == 1 {
        (in_bytes(GEMV_SMALLEST_CHUNK_BYTES), in_bytes(GEMV_CHUNK_BYTES))
    } else {
        (GEMM_TILE_PANELS, GEMM_CHUNK_PANELS)
    };
    let panels = w.panels();
    if panels <= smallest {
        return panels;
    }
    let wanted = (threads * CHUNKS_PER_THREAD).min(panels / smallest);
    let chunks = panels.div_ceil(largest).max(wanted).next_multiple_of(threads);
    let per_chunk = panels.div_ceil(chunks);
    if tokens == 1 { per_chunk } else { per_chunk.next_multiple_of(GEMM_TILE_PANELS) }
}
