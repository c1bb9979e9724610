//! The formats of a KV cache: what one head's key or value at one position is stored as.
//!
//! | kind | bytes of a row | value of element `c` |
//! |---|---|---|
//! | `F16` | f16 of each element | the f16 |
//! | `I8` | f16 scale of each group of 32 elements (the last may be shorter), then an i8 of each element | `i * scale[c / 32]` |
//!
//! Everything is little-endian and of any alignment. The caller owns the memory of a cache: `[kv_heads, capacity]` rows.

use half::f16;

use crate::format::GROUP;
use crate::{Error, f32_to_f16};

/// The largest head.
pub const MAX_HEAD_DIM: usize = 256;

/// The largest integer of a row of 8 bits.
const LARGEST: f32 = 127.0;

/// How keys and values are stored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum CacheKind {
    /// f16 each.
    #[default]
    F16,
    /// i8 each, with an f16 scale for each 32.
    I8,
}

impl CacheKind {
    /// Bytes of one head's key or value at one position.
    pub const fn row_bytes(self, head_dim: usize) -> usize {
        match self {
            Self::F16 => head_dim.saturating_mul(2),
            Self::I8 => head_dim.saturating_add(scale_bytes(head_dim)),
        }
    }

    /// Stores one head's key (rotated) or value. `row` has [`Self::row_bytes`].
    ///
    /// An integer is `round_half_even(x / scale)` with `scale` the f16 nearest to `amax / 127`. A group with an element that
    /// is not finite has the scale NaN; one whose scale rounds to zero is zero.
    pub fn store(self, head: &[f32], row: &mut [u8]) -> Result<(), Error> {
        Error::check_limit("head_dim", MAX_HEAD_DIM, head.len())?;
        Error::check_length("cache row", self.row_bytes(head.len()), row.len())?;
        match self {
            Self::F16 => {
                let mut bits = [0; MAX_HEAD_DIM];
                let bits = &mut bits[..head.len()];
                f32_to_f16(head, bits)?;
                for (out, bits) in row.as_chunks_mut().0.iter_mut().zip(bits) {
                    *out = bits.to_le_bytes();
                }
            }
            Self::I8 => {
                let (scales, quants) = row.split_at_mut(scale_bytes(head.len()));
                let groups = head.chunks(GROUP).zip(quants.chunks_mut(GROUP));
                for ((head, quants), scale) in groups.zip(scales.as_chunks_mut().0) {
                    *scale = store_group(head, quants).to_le_bytes();
                }
            }
        }
        Ok(())
    }

    /// Reads a row back.
    pub fn load(self, row: &[u8], head: &mut [f32]) -> Result<(), Error> {
        Error::check_limit("head_dim", MAX_HEAD_DIM, head.len())?;
        Error::check_length("cache row", self.row_bytes(head.len()), row.len())?;
        self.load_row(row, head);
        Ok(())
    }

    /// As [`Self::load`], of as many elements as both have.
    pub(crate) fn load_row(self, row: &[u8], head: &mut [f32]) {
        match self {
            Self::F16 => {
                for (out, bits) in head.iter_mut().zip(row.as_chunks().0) {
                    *out = f16::from_le_bytes(*bits).to_f32();
                }
            }
            Self::I8 => {
                let (scales, quants) = row.split_at(scale_bytes(head.len()));
                let groups = head.chunks_mut(GROUP).zip(quants.chunks(GROUP));
                for ((head, quants), scale) in groups.zip(scales.as_chunks().0) {
                    let scale = f16::from_le_bytes(*scale).to_f32();
                    for (out, quant) in head.iter_mut().zip(quants) {
                        *out = f32::from(*quant as i8) * scale;
                    }
                }
            }
        }
    }
}

/// Bytes of the scales in front of a row of 8 bits.
pub(crate) const fn scale_bytes(head_dim: usize) -> usize {
    2 * head_dim.div_ceil(GROUP)
}

fn store_group(head: &[f32], quants: &mut [u8]) -> f16 {
    let largest = head.iter().map(|v| v.abs().to_bits()).max().map_or(0.0, f32::from_bits);
    if !largest.is_finite() {
        quants.fill(0);
        return f16::NAN;
    }
    let scale = f16::from_f32(largest / LARGEST);
    let factor = if scale == f16::ZERO { 0.0 } else { 1.0 / scale.to_f32() };
    for (quant, x) in quants.iter_mut().zip(head) {
        *quant = (x * factor).round_ties_even().clamp(-LARGEST, LARGEST) as i8 as u8;
    }
    scale
}
