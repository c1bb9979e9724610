//! Attention: an online softmax, one query and one position after the other.

use crate::MAX_HEAD_DIM;
use crate::attention::{Partial, ROWS, Tile};

pub(super) fn attend(tile: &Tile<'_>, partials: &mut [Partial]) {
    let (mut key, mut value) = ([0.0; MAX_HEAD_DIM], [0.0; MAX_HEAD_DIM]);
    let (key, value) = (&mut key[..tile.head_dim], &mut value[..tile.head_dim]);
    let cached = tile.keys.chunks_exact(tile.row_bytes()).zip(tile.values.chunks_exact(tile.row_bytes()));
    for (position, (keys, values)) in cached.enumerate() {
        tile.cache.load_row(keys, key);
        tile.cache.load_row(values, value);
        for (r, q) in tile.q.iter().enumerate().filter(|(r, _)| position < tile.visible[*r]) {
            let (partial, r) = (&mut partials[r / ROWS], r % ROWS);
            let weighted = &mut partial.weighted[r][..tile.head_dim];
            let score = tile.scale * q.iter().zip(&*key).map(|(q, k)| q * k).sum::<f32>();
            let max = partial.max[r].max(score);
            let (shrink, weight) = ((partial.max[r] - max).exp(), (score - max).exp());
            partial.max[r] = max;
            partial.sum[r] = partial.sum[r] * shrink + weight;
            for (sum, v) in weighted.iter_mut().zip(&*value) {
                *sum = *sum * shrink + weight * v;
            }
        }
    }
}
