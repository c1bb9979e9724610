//! Quantized matmul: cuts a matrix into chunks of panels and hands them to the pool.

use crate::disjoint::Disjoint;
use crate::dispatch::{Dispatch, dispatch};
use crate::format::{Matrix, PANEL};
use crate::{Activations, Error, Pool};

/// Bytes of weights in one chunk of a decode: long enough that a claim costs nothing, short enough that the last one
/// is not waited for.
const GEMV_CHUNK_BYTES: usize = 128 * 1024;

/// Bytes of weights below which a decode chunk costs more to share than to do.
const GEMV_SMALLEST_CHUNK_BYTES: usize = 32 * 1024;

/// Panels in one chunk of a prefill.
const GEMM_CHUNK_PANELS: usize = 8;

/// Panels that a prefill kernel takes together.
const GEMM_TILE_PANELS: usize = 2;

/// Chunks a thread should find, so that the last ones even out.
const CHUNKS_PER_THREAD: usize = 4;

/// `y = a * w^T`: `y` is token-major `[a.tokens(), w.rows()]`. One token is a GEMV bound by memory, more a blocked GEMM.
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
    if a.tokens() > 0 {
        Error::check_length("activation columns", w.cols(), a.cols())?;
    }
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
            by.gemv(w, a, panels, y);
        });
    } else {
        // SAFETY: each chunk is run once and has its own panels.
        pool.run(panels.div_ceil(per_chunk), &|chunk, _| unsafe { by.gemm(w, a, range(chunk), &y) });
    }
    Ok(())
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
