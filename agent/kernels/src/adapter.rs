//! Low-rank adapters in f16: a matmul with one gives `y = x * w^T + scale * (x * a^T) * b^T`.
//!
//! The first product is made once a matmul ([`crate::Activations::quantize_for`]), the second within the same join as the
//! quantized one: each chunk of rows adds its own rows of `b`.

use crate::Error;

/// The most rows of `a`; what is trained has 8 to 64.
pub const MAX_RANK: usize = 64;

/// A low-rank addition to a matrix, usually slices of a mapped file. Cheap to make and to copy.
#[derive(Clone, Copy, Debug)]
pub struct Adapter<'a> {
    rank: usize,
    cols: usize,
    rows: usize,
    a: &'a [u8],
    b: &'a [u8],
    scale: f32,
}

impl<'a> Adapter<'a> {
    /// An adapter of `rank` in 1..=[`MAX_RANK`] for a matrix `[rows, cols]`: `a` is `[rank, cols]`, `b` is `[rows, rank]`,
    /// both little-endian f16 of any alignment.
    pub fn new(rank: usize, [rows, cols]: [usize; 2], a: &'a [u8], b: &'a [u8], scale: f32) -> Result<Self, Error> {
        Error::check_multiple("adapter rank", 1, rank)?;
        Error::check_limit("adapter rank", MAX_RANK, rank)?;
        Error::check_length("bytes of adapter a", cols.saturating_mul(2 * rank), a.len())?;
        Error::check_length("bytes of adapter b", rows.saturating_mul(2 * rank), b.len())?;
        Ok(Self { rank, cols, rows, a, b, scale })
    }

    /// Rows of `a`, columns of `b`.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Columns of the matrix that it is for.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Rows of the matrix that it is for.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// What the second product is multiplied by.
    pub(crate) fn scale(&self) -> f32 {
        self.scale
    }

    /// The rows of `a` from `first`, at most `n`.
    pub(crate) fn a_rows(&self, first: usize, n: usize) -> &'a [u8] {
        rows(self.a, 2 * self.cols, first, n)
    }

    /// The rows of `b` from `first`, at most `n`.
    pub(crate) fn b_rows(&self, first: usize, n: usize) -> &'a [u8] {
        rows(self.b, 2 * self.rank, first, n)
    }
}

fn rows(bytes: &[u8], row_bytes: usize, first: usize, n: usize) -> &[u8] {
    let start = bytes.len().min(first * row_bytes);
    &bytes[start..bytes.len().min(start + n * row_bytes)]
}
