//! The gated activation of the feed-forward layer: `silu(gate) * up`.

use crate::disjoint::Disjoint;
use crate::dispatch::{Dispatch, dispatch};
use crate::{Error, Pool};

/// Elements that one chunk computes: some microseconds of work.
const CHUNK_ELEMENTS: usize = 4 * 1024;

/// `gate_up` is `[tokens, 2 * ffn]`, the gate first in each row; `out` is `[tokens, ffn]`.
pub fn swiglu(pool: &Pool, gate_up: &[f32], ffn: usize, out: &mut [f32]) -> Result<(), Error> {
    swiglu_by(dispatch(), pool, gate_up, ffn, out)
}

pub(crate) fn swiglu_by(by: &Dispatch, pool: &Pool, gate_up: &[f32], ffn: usize, out: &mut [f32]) -> Result<(), Error> {
    if out.is_empty() && gate_up.is_empty() {
        return Ok(());
    }
    Error::check_multiple("swiglu output", ffn, out.len())?;
    Error::check_length("gate and up", out.len().saturating_mul(2), gate_up.len())?;
    let chunks_per_row = ffn.div_ceil(CHUNK_ELEMENTS);
    let out_parts = Disjoint::new(out);
    pool.run(gate_up.len() / (2 * ffn) * chunks_per_row, &|chunk, _| {
        let (token, first) = (chunk / chunks_per_row, chunk % chunks_per_row * CHUNK_ELEMENTS);
        let n = CHUNK_ELEMENTS.min(ffn - first);
        let (gate, up) = gate_up[token * 2 * ffn..][..2 * ffn].split_at(ffn);
        // SAFETY: each chunk is run once and has its own elements of its own row.
        let out = unsafe { out_parts.part(token * ffn + first..token * ffn + first + n) };
        by.swiglu(&gate[first..first + n], &up[first..first + n], out);
    });
    Ok(())
}
