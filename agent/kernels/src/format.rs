//! The block formats of `docs/bundle.md`: sizes, and a checked view on the packed bytes of one matrix.
//!
//! A matrix is panels of [`PANEL`] rows, a panel is groups of [`GROUP`] columns, a group holds its scales and then its
//! quants. Only lengths are checked: any content is a valid matrix, of whatever values.

use crate::{Adapter, Error};
use half::f16;

/// Columns that share one scale.
pub const GROUP: usize = 32;

/// Rows that are interleaved.
pub const PANEL: usize = 8;

/// Bytes of the f16 scales (or minimums) of one group of a panel.
pub(crate) const SCALE_BYTES: usize = PANEL * 2;

/// A block format of `docs/bundle.md`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// 4 bits, symmetric: `(n - 8) * scale`.
    Q4,
    /// 4 bits with a minimum: `n * scale + min`.
    Q4m,
    /// 8 bits, symmetric: `i * scale`.
    Q8,
}

impl Kind {
    /// Bytes in front of the quants of one group of a panel.
    pub(crate) const fn header_bytes(self) -> usize {
        match self {
            Self::Q4 | Self::Q8 => SCALE_BYTES,
            Self::Q4m => 2 * SCALE_BYTES,
        }
    }

    /// Bytes of one group of a panel.
    pub(crate) const fn group_bytes(self) -> usize {
        match self {
            Self::Q4 | Self::Q4m => self.header_bytes() + PANEL * GROUP / 2,
            Self::Q8 => self.header_bytes() + PANEL * GROUP,
        }
    }

    /// What the stored integers are above the weights' integers.
    pub(crate) const fn zero_point(self) -> i8 {
        match self {
            Self::Q4 => 8,
            Self::Q4m | Self::Q8 => 0,
        }
    }
}

const _: () = assert!(Kind::Q4.group_bytes() == 144 && Kind::Q4m.group_bytes() == 160 && Kind::Q8.group_bytes() == 272);

/// Bytes of a packed matrix, or `usize::MAX` where [`checked_matrix_bytes`] has none: no slice is that long.
pub const fn matrix_bytes(kind: Kind, rows: usize, cols: usize) -> usize {
    match checked_matrix_bytes(kind, rows, cols) {
        Some(bytes) => bytes,
        None => usize::MAX,
    }
}

/// Bytes of a packed matrix; none if `cols` is not a multiple of [`GROUP`] or the size does not fit a `usize`.
pub const fn checked_matrix_bytes(kind: Kind, rows: usize, cols: usize) -> Option<usize> {
    if !cols.is_multiple_of(GROUP) {
        return None;
    }
    match (cols / GROUP).checked_mul(kind.group_bytes()) {
        Some(panel_bytes) => rows.div_ceil(PANEL).checked_mul(panel_bytes),
        None => None,
    }
}

/// A packed matrix `[rows, cols]`, usually a slice of a mapped file. Cheap to make and to copy.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    kind: Kind,
    rows: usize,
    cols: usize,
    bytes: &'a [u8],
    adapter: Option<Adapter<'a>>,
}

impl<'a> Matrix<'a> {
    /// Views `bytes` as a matrix. `cols` must be a positive multiple of [`GROUP`], the length exactly [`matrix_bytes`].
    pub fn new(kind: Kind, rows: usize, cols: usize, bytes: &'a [u8]) -> Result<Self, Error> {
        Error::check_multiple("matrix columns", GROUP, cols)?;
        Error::check_length("matrix bytes", matrix_bytes(kind, rows, cols), bytes.len())?;
        Ok(Self { kind, rows, cols, bytes, adapter: None })
    }

    /// The same matrix with an adapter of its shape, which every matmul adds: one that was there is replaced.
    pub fn with_adapter(self, adapter: Adapter<'a>) -> Result<Self, Error> {
        Error::check_length("adapter rows", self.rows, adapter.rows())?;
        Error::check_length("adapter columns", self.cols, adapter.cols())?;
        Ok(Self { adapter: Some(adapter), ..self })
    }

    /// The adapter, if there is one.
    pub fn adapter(&self) -> Option<&Adapter<'a>> {
        self.adapter.as_ref()
    }

    /// The block format.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Rows: the outputs of a matmul.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns: the inputs of a matmul.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The packed bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Writes the values of one row without the adapter, as for an embedding lookup. `out` has [`Self::cols`] elements.
    pub fn row_to_f32(&self, row: usize, out: &mut [f32]) -> Result<(), Error> {
        Error::check_limit("matrix row", self.rows.saturating_sub(1), row)?;
        Error::check_length("matrix row", self.cols, out.len())?;
        if self.rows == 0 {
            return Err(Error::Limit { what: "matrix row", limit: 0, used: row });
        }
        let r = row % PANEL;
        for (group, out) in self.panel(row / PANEL).zip(out.chunks_exact_mut(GROUP)) {
            let (scale, min) = (group.scale(r), group.min(r));
            for (out, integer) in out.iter_mut().zip(group.integers()[r]) {
                *out = f32::from(integer) * scale + min;
            }
        }
        Ok(())
    }

    pub(crate) fn panels(&self) -> usize {
        self.rows.div_ceil(PANEL)
    }

    pub(crate) fn groups(&self) -> usize {
        self.cols / GROUP
    }

    pub(crate) fn panel_bytes(&self) -> usize {
        self.groups() * self.kind.group_bytes()
    }

    /// The packed bytes of one panel.
    pub(crate) fn packed(&self, panel: usize) -> &'a [u8] {
        &self.bytes[panel * self.panel_bytes()..][..self.panel_bytes()]
    }

    /// The groups of one panel, left to right.
    pub(crate) fn panel(&self, panel: usize) -> impl Iterator<Item = Group<'a>> + use<'a> {
        let kind = self.kind;
        self.packed(panel).chunks_exact(kind.group_bytes()).map(move |bytes| Group { kind, bytes })
    }
}

/// One group of a panel.
#[derive(Clone, Copy)]
pub(crate) struct Group<'a> {
    kind: Kind,
    bytes: &'a [u8],
}

impl Group<'_> {
    /// The scale of a row of the panel.
    pub(crate) fn scale(&self, row: usize) -> f32 {
        self.half(row)
    }

    /// The minimum of a row of the panel, zero if the kind has none.
    pub(crate) fn min(&self, row: usize) -> f32 {
        if self.kind == Kind::Q4m { self.half(PANEL + row) } else { 0.0 }
    }

    /// The integers of the weights `[row][column]`, the zero point taken off.
    pub(crate) fn integers(&self) -> [[i8; GROUP]; PANEL] {
        let mut out = [[0; GROUP]; PANEL];
        let zero_point = self.kind.zero_point();
        let (vectors, _) = self.bytes[self.kind.header_bytes()..].as_chunks::<32>();
        for (v, vector) in vectors.iter().enumerate() {
            for (out, bytes) in out.iter_mut().zip(vector.as_chunks::<4>().0) {
                for (j, byte) in bytes.iter().enumerate() {
                    if self.kind == Kind::Q8 {
                        out[4 * v + j] = *byte as i8;
                    } else {
                        out[8 * v + j] = (byte & 15) as i8 - zero_point;
                        out[8 * v + 4 + j] = (byte >> 4) as i8 - zero_point;
                    }
                }
            }
        }
        out
    }

    fn half(&self, index: usize) -> f32 {
        f16::from_le_bytes([self.bytes[2 * index], self.bytes[2 * index + 1]]).to_f32()
    }
}
