//! `mote.KvAttention`: norm and rotation of query and key heads, append to the cache, causal attention over it.
//!
//! The batch stands behind what the cache holds; the caller has made sure that there is room, and counts the positions once
//! all layers are done. Keys and values are read back from the cache as they are stored there, so that a token sees the same
//! numbers whether its predecessors came in the same batch or in an earlier one.

use mote_kernels::{AttentionArgs, attention, rms_norm, rope};
use tract_core::internal::*;

use super::{RowOp, Workspace};

#[derive(Debug)]
pub(crate) struct KvAttention {
    pub(crate) layer: usize,
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) head_dim: usize,
    pub(crate) norm_eps: f32,
    pub(crate) q_norm: Option<Vec<f32>>,
    pub(crate) k_norm: Option<Vec<f32>>,
}

impl KvAttention {
    fn turn(&self, head: &mut [f32], norm: Option<&Vec<f32>>, rope_row: &[f32]) -> TractResult<()> {
        if let Some(weight) = norm {
            rms_norm(head, weight, self.norm_eps)?;
        }
        Ok(rope(head, rope_row)?)
    }
}

impl RowOp for KvAttention {
    fn name(&self) -> &'static str {
        "KvAttention"
    }

    fn begins_layer(&self) -> bool {
        true
    }

    fn input_width(&self) -> Option<usize> {
        Some((self.heads + 2 * self.kv_heads) * self.head_dim)
    }

    fn width(&self) -> usize {
        self.heads * self.head_dim
    }

    fn eval(&self, workspace: &mut Workspace, input: &Tensor, output: &mut [f32]) -> TractResult<()> {
        let Workspace { pool, rope_table, cache, queries, .. } = workspace;
        let (head_dim, tokens) = (self.head_dim, input.shape()[0]);
        let (position, capacity) = (cache.len(), cache.capacity());
        let (rows_kind, row_bytes) = (cache.kind().rows(), cache.layout().row_bytes);
        ensure!(position + tokens <= capacity, "no room in the kv cache of {capacity}: {}", position + tokens);
        let layer = cache.layer_mut(self.layer);
        let (keys, values) = layer.with_context(|| format!("no cache for layer {}", self.layer))?;
        let mut key = vec![0.0; head_dim];
        queries.clear();
        let rows = input.try_as_plain_ram()?;
        let rows = rows.as_slice::<f32>()?;
        for (token, row) in rows.chunks_exact(self.width() + 2 * self.kv_heads * head_dim).enumerate() {
            let at = position + token;
            let rope_row = &rope_table[at * head_dim..][..head_dim];
            let (q, kv) = row.split_at(self.width());
            let (k, v) = kv.split_at(self.kv_heads * head_dim);
            queries.extend_from_slice(q);
            for head in queries[token * self.width()..].chunks_exact_mut(head_dim) {
                self.turn(head, self.q_norm.as_ref(), rope_row)?;
            }
            for (kv_head, (k, value)) in k.chunks_exact(head_dim).zip(v.chunks_exact(head_dim)).enumerate() {
                key.copy_from_slice(k);
                self.turn(&mut key, self.k_norm.as_ref(), rope_row)?;
                let slot = (kv_head * capacity + at) * row_bytes..(kv_head * capacity + at + 1) * row_bytes;
                rows_kind.store(&key, &mut keys[slot.clone()])?;
                rows_kind.store(value, &mut values[slot])?;
            }
        }
        let args = AttentionArgs {
            q: queries,
            cache: rows_kind,
            k_cache: keys,
            v_cache: values,
            position,
            tokens,
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim,
            capacity,
        };
        Ok(attention(pool, &args, output)?)
    }
}
