//! Attention: an online softmax, one query and one position after the other.

use half::f16;

use crate::attention::{Partial, Tile};

pub(super) fn attend(tile: &Tile<'_>, partial: &mut Partial) {
    let head_dim = tile.head_dim;
    for (r, q) in tile.q.iter().enumerate() {
        let weighted = &mut partial.weighted[r][..head_dim];
        let cached = tile.keys.chunks_exact(head_dim).zip(tile.values.chunks_exact(head_dim));
        for (key, value) in cached.take(tile.visible[r]) {
            let score = tile.scale * q.iter().zip(key).map(|(q, &k)| q * f16::from_bits(k).to_f32()).sum::<f32>();
            let max = partial.max[r].max(score);
            let (shrink, weight) = ((partial.max[r] - max).exp(), (score - max).exp());
            partial.max[r] = max;
            partial.sum[r] = partial.sum[r] * shrink + weight;
            for (sum, &v) in weighted.iter_mut().zip(value) {
                *sum = *sum * shrink + weight * f16::from_bits(v).to_f32();
            }
        }
    }
}
