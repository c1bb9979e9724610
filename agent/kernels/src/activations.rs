//! Activations quantized to i8 per group, the second operand of every matmul (`docs/bundle.md`, Activations).

use crate::disjoint::Disjoint;
use crate::dispatch::{Dispatch, dispatch};
use crate::format::GROUP;
use crate::{Adapter, Error, Matrix, Pool};

/// Elements that one chunk quantizes: some microseconds of work.
const CHUNK_ELEMENTS: usize = 16 * 1024;

/// Rows of an adapter that one chunk multiplies: as many as a kernel takes together.
const PROJECTION_CHUNK_ROWS: usize = 8;

/// Rows of activations `[tokens, cols]` as i8 with a scale and a sum a group. The buffers are reused by each
/// [`Self::quantize`].
///
/// A group with an element that is not finite has the scale NaN, so that all it touches is NaN; one whose largest
/// element is below `127 / f32::MAX` counts as zero.
#[derive(Clone, Debug, Default)]
pub struct Activations {
    tokens: usize,
    cols: usize,
    quants: Vec<i8>,
    scales: Vec<GroupScale>,
    tiles: Vec<u32>,
    rank: usize,
    projected: Vec<f32>,
}

/// Words of a group of one token in a tile.
pub(crate) const TILE_WORDS: usize = GROUP / 4 + 4;

/// How a backend wants many tokens laid out beside their rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiling {
    /// The fewest tokens for which it wants it.
    pub(crate) from: usize,
    /// Tokens of a tile.
    pub(crate) tokens: usize,
}

/// What a kernel needs of a group beside its integers.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct GroupScale {
    /// A value is its integer times this.
    pub(crate) scale: f32,
    /// `scale` times the sum of the integers, which a minimum of the weights is multiplied by.
    pub(crate) offset: f32,
    /// The sums of the integers whose index divided by 4 leaves 0 or 1, and of those that leave 2 or 3: what the two 16-bit
    /// lanes of a row sum up for a weight of one.
    pub(crate) sums: [i16; 2],
    /// The negative sum of all integers, by which a zero point of the weights is taken off.
    pub(crate) negative_sum: i32,
}

impl GroupScale {
    #[inline]
    pub(crate) fn new(scale: f32, sums: [i16; 2]) -> Self {
        let sum = sums[0] + sums[1];
        Self { scale, offset: scale * f32::from(sum), sums, negative_sum: -i32::from(sum) }
    }
}

impl Activations {
    /// No activations yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the activations by `x`, token-major `[tokens, cols]`. `cols` is a positive multiple of [`GROUP`].
    pub fn quantize(&mut self, pool: &Pool, x: &[f32], cols: usize) -> Result<(), Error> {
        self.quantize_by(dispatch(), pool, x, cols)
    }

    /// As [`Self::quantize`] for the columns of `w`; if that has an adapter, its first product is made too.
    pub fn quantize_for(&mut self, pool: &Pool, x: &[f32], w: &Matrix<'_>) -> Result<(), Error> {
        self.quantize_for_by(dispatch(), pool, x, w)
    }

    pub(crate) fn quantize_for_by(
        &mut self,
        by: &Dispatch,
        pool: &Pool,
        x: &[f32],
        w: &Matrix<'_>,
    ) -> Result<(), Error> {
        self.replace(by, pool, x, w.cols(), w.adapter())
    }

    pub(crate) fn quantize_by(&mut self, by: &Dispatch, pool: &Pool, x: &[f32], cols: usize) -> Result<(), Error> {
        self.replace(by, pool, x, cols, None)
    }

    /// Quantizes and, in the same run of the pool, computes `scale * x * a^T` for the adapter.
    fn replace(
        &mut self,
        by: &Dispatch,
        pool: &Pool,
        x: &[f32],
        cols: usize,
        adapter: Option<&Adapter<'_>>,
    ) -> Result<(), Error> {
        Error::check_multiple("activation columns", GROUP, cols)?;
        let (tokens, rank) = (x.len() / cols, adapter.map_or(0, Adapter::rank));
        Error::check_length("activations", tokens * cols, x.len())?;
        (self.tokens, self.cols, self.rank) = (tokens, cols, rank);
        self.quants.resize(x.len(), 0);
        self.scales.resize(x.len() / GROUP, GroupScale::default());
        self.projected.resize(tokens * rank, 0.0);
        let (quants, scales) = (Disjoint::new(&mut self.quants), Disjoint::new(&mut self.scales));
        let projected = Disjoint::new(&mut self.projected);
        let groups = CHUNK_ELEMENTS / GROUP;
        let quantize = |chunk: usize| {
            let x = &x[chunk * CHUNK_ELEMENTS..];
            let x = &x[..x.len().min(CHUNK_ELEMENTS)];
            // SAFETY: each chunk is run once and has its own elements.
            let quants = unsafe { quants.part(chunk * CHUNK_ELEMENTS..(chunk + 1) * CHUNK_ELEMENTS) };
            // SAFETY: and so its own groups.
            let scales = unsafe { scales.part(chunk * groups..(chunk + 1) * groups) };
            by.quantize(x, quants, scales);
        };
        let project = |chunk: usize, adapter: &Adapter<'_>| {
            let first = chunk * PROJECTION_CHUNK_ROWS;
            let n = PROJECTION_CHUNK_ROWS.min(rank - first);
            let rows = adapter.a_rows(first, n);
            for (token, x) in x.chunks_exact(cols).enumerate() {
                let start = token * rank + first;
                // SAFETY: each chunk is run once and has its own rows.
                let out = unsafe { projected.part(start..start + n) };
                out.fill(0.0);
                by.add_halves(rows, x, out);
                out.iter_mut().for_each(|out| *out *= adapter.scale());
            }
        };
        let projections = rank.div_ceil(PROJECTION_CHUNK_ROWS);
        pool.run(projections + x.len().div_ceil(CHUNK_ELEMENTS), &|chunk, _| match adapter {
            Some(adapter) if chunk < projections => project(chunk, adapter),
            _ => quantize(chunk - projections),
        });
        self.tiles.clear();
        if let Some(tiling) = by.tiling.filter(|tiling| tokens >= tiling.from) {
            self.tile(pool, tiling.tokens);
        }
        Ok(())
    }

    /// Lays the tokens out by tiles of `per_tile`, as [`Self::tiles`] gives them.
    fn tile(&mut self, pool: &Pool, per_tile: usize) {
        let groups = self.cols / GROUP;
        let words = groups * TILE_WORDS * per_tile;
        let mut tiles = std::mem::take(&mut self.tiles);
        tiles.resize(self.tokens.div_ceil(per_tile) * words, 0);
        let out = Disjoint::new(&mut tiles);
        pool.run(self.tokens.div_ceil(per_tile), &|tile, _| {
            // SAFETY: each chunk is run once and has its own tile.
            let out = unsafe { out.part(tile * words..(tile + 1) * words) };
            for t in 0..per_tile.min(self.tokens - tile * per_tile) {
                let token = tile * per_tile + t;
                let groups = self.quants(token).as_chunks::<GROUP>().0.iter().zip(self.scales(token));
                for ((quants, scale), out) in groups.zip(out.chunks_exact_mut(TILE_WORDS * per_tile)) {
                    let quads = quants.as_chunks::<4>().0.iter().map(|quad| u32::from_le_bytes(quad.map(|q| q as u8)));
                    let rest = [
                        scale.scale.to_bits(),
                        scale.offset.to_bits(),
                        (scale.negative_sum << 3) as u32,
                        (scale.negative_sum << 7) as u32,
                    ];
                    for (word, out) in quads.chain(rest).zip(out[t..].iter_mut().step_by(per_tile)) {
                        *out = word;
                    }
                }
            }
        });
        self.tiles = tiles;
    }

    /// Rows of activations.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Columns of activations.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The rank of the adapter that [`Self::quantize_for`] was given, 0 without one.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// The first product of the adapter for one token.
    pub(crate) fn projected(&self, token: usize) -> &[f32] {
        &self.projected[token * self.rank..][..self.rank]
    }

    /// The integers of one token, all in -127..=127.
    pub(crate) fn quants(&self, token: usize) -> &[i8] {
        &self.quants[token * self.cols..][..self.cols]
    }

    /// The tokens by tiles, each group by group: for each four columns the integers of all tokens of the tile, four in a
    /// word, then their scales, their offsets, and their negative sums times 8 and times 128, the zero points of weights. What a last tile lacks in tokens is of any value.
    /// Empty where the backend has no [`Tiling`] for so many tokens.
    ///
    /// One pointer with constant distances then reads a whole tile: with one for each token the addresses do not fit in
    /// the registers, which cost a third of the speed.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn tiles(&self) -> &[u32] {
        &self.tiles
    }

    /// The scales of the groups of one token.
    pub(crate) fn scales(&self, token: usize) -> &[GroupScale] {
        let groups = self.cols / GROUP;
        &self.scales[token * groups..][..groups]
    }
}

/// The scale of a group and the factor from values to integers. The magnitude of bits is compared, which puts infinity
/// and NaN above all numbers: such a group gets the scale NaN and, as NaN converts to zero, the integers zero.
pub(crate) fn scale_and_factor(largest: f32) -> (f32, f32) {
    let factor = 127.0 / largest;
    if !largest.is_finite() {
        (f32::NAN, 0.0)
    } else if factor.is_infinite() {
        (0.0, 0.0)
    } else {
        (largest / 127.0, factor)
    }
}
