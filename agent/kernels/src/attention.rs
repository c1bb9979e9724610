//! Causal attention of a batch over the KV cache, with grouped heads and an online softmax.
//!
//! The queries that share a KV head are taken in tiles of [`TILE_ROWS`] rows, each tile over spans of [`SPAN`] cached positions,
//! whose partial results are merged in order. So a token's result does not depend on the batch that it comes in or on the
//! number of threads: a batch has enough tiles for all threads, a decode has few, whose spans are shared.

use crate::disjoint::Disjoint;
use crate::dispatch::{Dispatch, dispatch};
use crate::{CacheKind, Error, MAX_HEAD_DIM, Pool};

/// Query rows whose products are computed together.
pub(crate) const ROWS: usize = 4;

/// Query rows that read the same cached rows one after the other, while these lie in the first cache level.
pub(crate) const TILE_ROWS: usize = 16;

/// Elements of a head that a kernel takes together.
const LANES: usize = 8;

/// Positions of a span: long enough that merging costs nothing, short enough that the spans of a decode are for all threads.
const SPAN: usize = 256;

/// Chunks a thread should find, so that the last ones even out.
const CHUNKS_PER_THREAD: usize = 4;

/// What [`attention`] reads.
#[derive(Clone, Copy, Debug)]
pub struct AttentionArgs<'a> {
    /// Queries `[tokens, heads, head_dim]`, normed and rotated.
    pub q: &'a [f32],
    /// How the caches store their rows.
    pub cache: CacheKind,
    /// Keys `[kv_heads, capacity]` of [`CacheKind::row_bytes`], those of this batch included.
    pub k_cache: &'a [u8],
    /// Values, as the keys.
    pub v_cache: &'a [u8],
    /// Positions in the cache before this batch.
    pub position: usize,
    /// Tokens of this batch.
    pub tokens: usize,
    /// Query heads, a multiple of `kv_heads`.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Elements of a head, a multiple of 8 up to [`MAX_HEAD_DIM`].
    pub head_dim: usize,
    /// Positions that the caches have room for.
    pub capacity: usize,
}

/// Token `t` attends to the positions `0..=position + t`, scaled by `1 / sqrt(head_dim)`. `out` is as `q`.
pub fn attention(pool: &Pool, args: &AttentionArgs<'_>, out: &mut [f32]) -> Result<(), Error> {
    attention_by(dispatch(), pool, args, out)
}

/// Up to [`TILE_ROWS`] queries over one span of positions.
pub(crate) struct Tile<'a> {
    /// The queries; there is at least one.
    pub(crate) q: &'a [&'a [f32]],
    /// How many positions of the span each query sees.
    pub(crate) visible: [usize; TILE_ROWS],
    /// How keys and values are stored.
    pub(crate) cache: CacheKind,
    /// The keys of the span: [`Self::row_bytes`] a position.
    pub(crate) keys: &'a [u8],
    /// The values of the span, as the keys.
    pub(crate) values: &'a [u8],
    /// Elements of a head, a multiple of 8 up to [`MAX_HEAD_DIM`].
    pub(crate) head_dim: usize,
    /// What products are multiplied by.
    pub(crate) scale: f32,
}

impl Tile<'_> {
    /// Bytes of a key or value.
    pub(crate) fn row_bytes(&self) -> usize {
        self.cache.row_bytes(self.head_dim)
    }
}

/// The result of each [`ROWS`] queries of a [`Tile`] before it is normalized. A query that saw no position has the sum 0.
#[derive(Clone)]
pub(crate) struct Partial {
    /// The largest score of each query, finite so that differences to it are.
    pub(crate) max: [f32; ROWS],
    /// The sum of `exp(score - max)`.
    pub(crate) sum: [f32; ROWS],
    /// The sum of `exp(score - max) * value`.
    pub(crate) weighted: [[f32; MAX_HEAD_DIM]; ROWS],
}

impl Partial {
    pub(crate) const fn new() -> Self {
        Self { max: [f32::MIN; ROWS], sum: [0.0; ROWS], weighted: [[0.0; MAX_HEAD_DIM]; ROWS] }
    }
}

/// The kernel of a tile by blocks of positions, each expanded to f32 once: scores, softmax and values of each [`ROWS`] queries.
/// It calls `expand`, `score`, `softmax` and `add_values` of the module that it stands in, within the instructions of the
/// function that it stands in; `$no_scores` is where the scores of a block go.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! attend_by_blocks {
    ($tile:ident, $partials:ident, $no_scores:expr) => {
        let n_partials = $tile.q.len().div_ceil(ROWS);
        let partials = &mut $partials[..n_partials];
        let per_head = $tile.head_dim / 8;
        let mut scaled = [[[[0.0; 8]; ROWS]; MAX_HEAD_DIM / 8]; TILE_ROWS / ROWS];
        for (r, q) in $tile.q.iter().enumerate() {
            for (scaled, q) in scaled[r / ROWS].iter_mut().zip(q.chunks(8)) {
                for (scaled, q) in scaled[r % ROWS].iter_mut().zip(q) {
                    *scaled = q * $tile.scale;
                }
            }
        }
        let block_bytes = BLOCK * $tile.row_bytes();
        let mut expanded = [[0.0; 8]; BLOCK * MAX_HEAD_DIM / 8];
        for (block, (keys, values)) in $tile.keys.chunks(block_bytes).zip($tile.values.chunks(block_bytes)).enumerate()
        {
            let mut scores = [$no_scores; TILE_ROWS / ROWS];
            let mut shrink = [[0.0; ROWS]; TILE_ROWS / ROWS];
            let keys = expand($tile, keys, &mut expanded);
            for (i, partial) in partials.iter_mut().enumerate() {
                let q = &scaled[i][..per_head];
                match $tile.q.len() - ROWS * i {
                    1 => score::<1>(q, keys, &mut scores[i]),
                    2 => score::<2>(q, keys, &mut scores[i]),
                    3 => score::<3>(q, keys, &mut scores[i]),
                    _ => score::<ROWS>(q, keys, &mut scores[i]),
                }
                let mut visible = [0; ROWS];
                for (visible, all) in visible.iter_mut().zip(&$tile.visible[ROWS * i..]) {
                    *visible = all.saturating_sub(block * BLOCK).min(BLOCK) as i32;
                }
                shrink[i] = softmax(&mut scores[i], visible, partial);
            }
            let values = expand($tile, values, &mut expanded);
            for (i, partial) in partials.iter_mut().enumerate() {
                match $tile.q.len() - ROWS * i {
                    1 => add_values::<1>(&scores[i], values, per_head, shrink[i], partial),
                    2 => add_values::<2>(&scores[i], values, per_head, shrink[i], partial),
                    3 => add_values::<3>(&scores[i], values, per_head, shrink[i], partial),
                    _ => add_values::<ROWS>(&scores[i], values, per_head, shrink[i], partial),
                }
            }
        }
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) use attend_by_blocks;

pub(crate) fn attention_by(by: &Dispatch, pool: &Pool, args: &AttentionArgs<'_>, out: &mut [f32]) -> Result<(), Error> {
    check(args, out.len())?;
    if out.is_empty() {
        return Ok(());
    }
    let plan = Plan::new(args);
    let out = Disjoint::new(out);
    let write = |tile: usize, partials: &[Partial]| {
        // SAFETY: each tile is written once and has its own queries.
        unsafe { plan.write(tile, partials, &out) };
    };
    let per_tile = plan.partials_per_tile;
    if plan.spans == 1 {
        pool.run(plan.tiles(), &|tile, _| {
            let mut partials = [const { Partial::new() }; TILE_ROWS / ROWS];
            let partials = &mut partials[..per_tile];
            plan.attend(by, tile, 0, partials);
            write(tile, partials);
        });
    } else if plan.tiles() >= pool.threads() * CHUNKS_PER_THREAD {
        pool.run(plan.tiles(), &|tile, _| {
            let mut partials = vec![Partial::new(); plan.spans * per_tile];
            for (span, partials) in partials.chunks_exact_mut(per_tile).enumerate() {
                plan.attend(by, tile, span, partials);
            }
            write(tile, &partials);
        });
    } else {
        let mut partials = vec![Partial::new(); plan.tiles() * plan.spans * per_tile];
        let parts = Disjoint::new(&mut partials);
        pool.run(plan.tiles() * plan.spans, &|chunk, _| {
            // SAFETY: each chunk is run once and has its own partial results.
            let partials = unsafe { parts.part(chunk * per_tile..(chunk + 1) * per_tile) };
            plan.attend(by, chunk / plan.spans, chunk % plan.spans, partials);
        });
        let tiles = partials.chunks_exact(plan.spans * per_tile).enumerate();
        tiles.for_each(|(tile, partials)| write(tile, partials));
    }
    Ok(())
}

fn check(args: &AttentionArgs<'_>, out: usize) -> Result<(), Error> {
    Error::check_multiple("head_dim", LANES, args.head_dim)?;
    Error::check_limit("head_dim", MAX_HEAD_DIM, args.head_dim)?;
    Error::check_multiple("heads", args.kv_heads, args.heads)?;
    Error::check_limit("cached positions", args.capacity, args.position.saturating_add(args.tokens))?;
    let queries = args.tokens.saturating_mul(args.heads).saturating_mul(args.head_dim);
    Error::check_length("queries", queries, args.q.len())?;
    Error::check_length("attention output", queries, out)?;
    let row_bytes = args.cache.row_bytes(args.head_dim);
    let cache = args.kv_heads.saturating_mul(args.capacity).saturating_mul(row_bytes);
    Error::check_length("key cache", cache, args.k_cache.len())?;
    Error::check_length("value cache", cache, args.v_cache.len())
}

/// How a batch is cut: the queries of one KV head, token by token, in tiles; the positions in spans.
struct Plan<'a> {
    args: &'a AttentionArgs<'a>,
    heads_per_kv: usize,
    rows_per_kv: usize,
    tiles_per_kv: usize,
    partials_per_tile: usize,
    spans: usize,
}

impl<'a> Plan<'a> {
    fn new(args: &'a AttentionArgs<'a>) -> Self {
        let heads_per_kv = args.heads / args.kv_heads;
        let rows_per_kv = args.tokens * heads_per_kv;
        let spans = (args.position + args.tokens).div_ceil(SPAN);
        let tiles_per_kv = rows_per_kv.div_ceil(TILE_ROWS);
        let partials_per_tile = rows_per_kv.min(TILE_ROWS).div_ceil(ROWS);
        Self { args, heads_per_kv, rows_per_kv, tiles_per_kv, partials_per_tile, spans }
    }

    fn tiles(&self) -> usize {
        self.args.kv_heads * self.tiles_per_kv
    }

    /// The KV head of a tile and its queries as (token, offset into the queries).
    fn rows(&self, tile: usize) -> (usize, impl Iterator<Item = (usize, usize)>) {
        let (kv_head, first) = (tile / self.tiles_per_kv, tile % self.tiles_per_kv * TILE_ROWS);
        let (args, heads_per_kv) = (self.args, self.heads_per_kv);
        let rows = (first..self.rows_per_kv.min(first + TILE_ROWS)).map(move |row| {
            let (token, head) = (row / heads_per_kv, kv_head * heads_per_kv + row % heads_per_kv);
            (token, (token * args.heads + head) * args.head_dim)
        });
        (kv_head, rows)
    }

    fn attend(&self, by: &Dispatch, tile: usize, span: usize, partials: &mut [Partial]) {
        let args = self.args;
        let (kv_head, rows) = self.rows(tile);
        let first = span * SPAN;
        let mut q: [&[f32]; TILE_ROWS] = [&[]; TILE_ROWS];
        let mut visible = [0; TILE_ROWS];
        let mut n = 0;
        for (token, offset) in rows {
            q[n] = &args.q[offset..offset + args.head_dim];
            visible[n] = (args.position + token + 1).saturating_sub(first).min(SPAN);
            n += 1;
        }
        let positions = visible.into_iter().max().unwrap_or(0);
        let row_bytes = args.cache.row_bytes(args.head_dim);
        let cached = (kv_head * args.capacity + first) * row_bytes;
        let cached = cached..cached + positions * row_bytes;
        if positions == 0 {
            return;
        }
        let tile = Tile {
            q: &q[..n],
            visible,
            cache: args.cache,
            keys: &args.k_cache[cached.clone()],
            values: &args.v_cache[cached],
            head_dim: args.head_dim,
            scale: 1.0 / (args.head_dim as f32).sqrt(),
        };
        by.attend(&tile, partials);
    }

    /// Merges the spans of one tile, `[span][partial]`, and writes its normalized rows.
    ///
    /// # Safety
    /// No other thread writes the same tile.
    unsafe fn write(&self, tile: usize, partials: &[Partial], out: &Disjoint<'_, f32>) {
        let head_dim = self.args.head_dim;
        for (row, (_, offset)) in self.rows(tile).1.enumerate() {
            let r = row % ROWS;
            let spans = || partials.iter().skip(row / ROWS).step_by(self.partials_per_tile);
            // SAFETY: a query is in one tile only, and the caller gives each tile to one thread.
            let out = unsafe { out.part(offset..offset + head_dim) };
            let max = spans().fold(f32::MIN, |max, span| max.max(span.max[r]));
            let factor = |span: &Partial| if span.sum[r] == 0.0 { 0.0 } else { (span.max[r] - max).exp() };
            let inverse = 1.0 / spans().map(|span| factor(span) * span.sum[r]).sum::<f32>();
            out.fill(0.0);
            for span in spans() {
                let factor = factor(span) * inverse;
                for (out, value) in out.iter_mut().zip(&span.weighted[r]) {
                    *out += factor * value;
                }
            }
        }
    }
}
