//! `weights.bin`: packed weights, mapped read-only and never copied.
//!
//! Invariants: every [`Weight`] lies inside the map, starts at a multiple of a page and has exactly the bytes of its kind
//! and shape; no two overlap. The map is shared; it lives as long as any weight.
//! What it does not do: hash the file or look at the scales (see `Bundle::verify`).

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use mote_kernels::{Kind, Matrix};
use serde::Deserialize;

use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{Architecture, shorten, version_error};
use crate::map::FileMap;

const MAGIC: &[u8; 8] = b"MOTEWTS\0";
const WEIGHTS_VERSION: u32 = 1;
const PAGE: u64 = 4096;
const GROUP: u64 = 32;
const PANEL_ROWS: u64 = 8;
/// Rows and columns of one tensor: the largest vocabulary and the widest feed-forward network, doubled.
const MAX_DIM: u64 = 1 << 20;
/// Weights a model may have: 512 layers of 8.
const MAX_TENSORS: usize = 4096;
const MAX_INDEX_BYTES: u64 = 4 << 20;

/// One tensor of the file.
#[derive(Clone)]
pub(crate) struct Weight {
    map: Arc<FileMap>,
    bytes: Range<usize>,
    name: Arc<str>,
    kind: WeightKind,
    rows: usize,
    cols: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WeightKind {
    F32,
    Q4,
    Q4m,
    Q8,
}

#[derive(Deserialize)]
struct IndexEntry {
    name: String,
    kind: WeightKind,
    rows: u64,
    cols: u64,
    group: u64,
    offset: u64,
    bytes: u64,
}

/// The file, its index checked.
pub(crate) struct Weights {
    by_name: HashMap<Arc<str>, Weight>,
    map: Arc<FileMap>,
}

impl Weights {
    /// Maps the file and checks header and index against each other and against the file's size.
    pub(crate) fn open(file: &File) -> Result<Weights> {
        let map =
            FileMap::open(file).map_err(|e| Error::new(ErrorKind::Io, format!("weights.bin cannot be mapped: {e}")))?;
        let map = Arc::new(map);
        let entries = read_index(&map)?;
        let mut by_name = HashMap::with_capacity(entries.len());
        for entry in entries {
            let name: Arc<str> = entry.name.into();
            let weight = Weight {
                map: map.clone(),
                bytes: entry.offset as usize..(entry.offset + entry.bytes) as usize,
                name: name.clone(),
                kind: entry.kind,
                rows: entry.rows as usize,
                cols: entry.cols as usize,
            };
            if by_name.insert(name, weight).is_some() {
                return Err(format_error("index: a name is there twice"));
            }
        }
        Ok(Weights { by_name, map })
    }

    /// The tensor of that name.
    pub(crate) fn get(&self, name: &str) -> Result<&Weight> {
        self.by_name.get(name).ok_or_else(|| format_error(format!("index: no such tensor: {}", shorten(name))))
    }

    pub(crate) fn map(&self) -> &Arc<FileMap> {
        &self.map
    }

    /// Rows and columns of the packed matrix of that name.
    pub(crate) fn matrix_shape(&self, name: &str) -> Option<(usize, usize)> {
        self.by_name.get(name).filter(|weight| weight.kind != WeightKind::F32).map(|w| (w.rows, w.cols))
    }

    /// Every scale and minimum of every matrix is finite.
    pub(crate) fn check_scales(&self, go_on: &mut dyn FnMut() -> ControlFlow<()>) -> Result<()> {
        for weight in self.by_name.values() {
            if go_on().is_break() {
                return Err(Error::cancelled());
            }
            weight.check_scales()?;
        }
        Ok(())
    }

    /// Every matrix the architecture needs is there in the right shape.
    pub(crate) fn check_shapes(&self, a: &Architecture) -> Result<()> {
        let attention = a.heads * a.head_dim;
        self.expect("embed", a.vocab, a.hidden)?;
        if !a.tied_embeddings {
            self.expect("output", a.vocab, a.hidden)?;
        }
        for layer in 0..a.layers {
            self.expect(&format!("l{layer}.qkv"), attention + 2 * a.kv_heads * a.head_dim, a.hidden)?;
            self.expect(&format!("l{layer}.o"), a.hidden, attention)?;
            self.expect(&format!("l{layer}.gate_up"), 2 * a.ffn, a.hidden)?;
            self.expect(&format!("l{layer}.down"), a.hidden, a.ffn)?;
            if a.qk_norm {
                self.expect(&format!("l{layer}.q_norm"), 1, a.head_dim)?;
                self.expect(&format!("l{layer}.k_norm"), 1, a.head_dim)?;
            }
        }
        Ok(())
    }

    fn expect(&self, name: &str, rows: usize, cols: usize) -> Result<()> {
        let weight = self.get(name)?;
        if (weight.rows, weight.cols) == (rows, cols) {
            return Ok(());
        }
        let message = format!("weights.bin: {name} should be {rows} x {cols}: {} x {}", weight.rows, weight.cols);
        Err(Error::bundle(ErrorKind::Shape, message))
    }
}

impl Weight {
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn check_scales(&self) -> Result<()> {
        let (group_bytes, scale_bytes) = match self.kind {
            WeightKind::F32 => return Ok(()),
            WeightKind::Q4 => (16 + GROUP * 4, 16),
            WeightKind::Q4m => (32 + GROUP * 4, 32),
            WeightKind::Q8 => (16 + GROUP * 8, 16),
        };
        let groups = self.map[self.bytes.clone()].chunks_exact(group_bytes as usize);
        let is_finite = |half: &[u8; 2]| u16::from_le_bytes(*half) & 0x7c00 != 0x7c00;
        let bad = groups
            .map(|group| &group[..scale_bytes])
            .position(|halves| !halves.as_chunks::<2>().0.iter().all(is_finite));
        match bad {
            Some(group) => Err(format_error(format!("{}: a scale is not finite in group: {group}", self.name))),
            None => Ok(()),
        }
    }

    /// The packed matrix, borrowed from the map.
    pub(crate) fn matrix(&self) -> Result<Matrix<'_>> {
        let kind = match self.kind {
            WeightKind::Q4 => Kind::Q4,
            WeightKind::Q4m => Kind::Q4m,
            WeightKind::Q8 => Kind::Q8,
            WeightKind::F32 => return Err(format_error(format!("{}: a matrix cannot be of kind f32", self.name))),
        };
        Matrix::new(kind, self.rows, self.cols, &self.map[self.bytes.clone()])
            .map_err(|e| format_error(format!("{}: {e}", self.name)))
    }

    /// A vector of finite floats, copied out: norms are small.
    pub(crate) fn vector(&self) -> Result<Vec<f32>> {
        if self.kind != WeightKind::F32 || self.rows != 1 {
            return Err(format_error(format!("{}: not a vector of f32", self.name)));
        }
        let bytes = &self.map[self.bytes.clone()];
        let values: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        match values.iter().all(|v| v.is_finite()) {
            true => Ok(values),
            false => Err(format_error(format!("{}: a value is not finite", self.name))),
        }
    }
}

impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tensors", self.by_name.len())
    }
}

impl fmt::Debug for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}x{} {:?}", self.name, self.rows, self.cols, self.kind)
    }
}

fn read_index(file: &[u8]) -> Result<Vec<IndexEntry>> {
    let size = file.len() as u64;
    let header =
        file.get(..PAGE as usize).ok_or_else(|| truncated(format!("the header needs {PAGE} bytes: {size}")))?;
    if &header[..8] != MAGIC {
        return Err(format_error("header: no magic MOTEWTS"));
    }
    let version = u32_at(header, 8);
    if version != WEIGHTS_VERSION {
        let kind = ErrorKind::Version { found: version, supported: WEIGHTS_VERSION };
        return Err(version_error(kind, "weights.bin: version", version, WEIGHTS_VERSION));
    }
    let n_tensors = u32_at(header, 12) as usize;
    let (index_offset, index_bytes, file_bytes) = (u64_at(header, 16), u64_at(header, 24), u64_at(header, 32));
    if file_bytes > size {
        return Err(truncated(format!("the header says {file_bytes} bytes: {size}")));
    }
    if file_bytes < size {
        return Err(format_error(format!("longer than the {file_bytes} bytes its header says: {size}")));
    }
    if header[40..].iter().any(|&b| b != 0) {
        return Err(format_error("header: bytes 40 to 4096 are not zero"));
    }
    if n_tensors > MAX_TENSORS {
        return Err(shape_error(format!("header: more than {MAX_TENSORS} tensors: {n_tensors}")));
    }
    if index_bytes > MAX_INDEX_BYTES {
        return Err(shape_error(format!("header: index longer than {MAX_INDEX_BYTES} bytes: {index_bytes}")));
    }
    let index_end = index_offset.checked_add(index_bytes).filter(|&end| index_offset >= PAGE && end <= size);
    let Some(index_end) = index_end else {
        return Err(format_error(format!("header: index lies outside the file: {index_offset} + {index_bytes}")));
    };
    let entries: Vec<IndexEntry> = serde_json::from_slice(&file[index_offset as usize..index_end as usize])
        .map_err(|e| format_error(format!("index cannot be read: {e}")))?;
    if entries.len() != n_tensors {
        return Err(format_error(format!("index: the header says {n_tensors} tensors: {}", entries.len())));
    }
    let mut end = PAGE;
    for entry in &entries {
        end = check_entry(entry, end, index_offset)?;
    }
    Ok(entries)
}

/// Checks one entry that must start at or after `free` and end before `limit`; gives its end.
fn check_entry(entry: &IndexEntry, free: u64, limit: u64) -> Result<u64> {
    let name = shorten(&entry.name);
    let (rows, cols) = (entry.rows, entry.cols);
    for (field, value) in [("rows", rows), ("cols", cols)] {
        if value == 0 || value > MAX_DIM {
            return Err(shape_error(format!("{name}: {field} is outside 1 to {MAX_DIM}: {value}")));
        }
    }
    let group = if entry.kind == WeightKind::F32 { 0 } else { GROUP };
    if entry.group != group {
        return Err(shape_error(format!("{name}: group is not {group}: {}", entry.group)));
    }
    if group > 0 && !cols.is_multiple_of(group) {
        return Err(shape_error(format!("{name}: cols is not a multiple of {group}: {cols}")));
    }
    let panels = rows.div_ceil(PANEL_ROWS) * (cols / GROUP);
    let bytes = match entry.kind {
        WeightKind::F32 => rows * cols * 4,
        WeightKind::Q4 => panels * (16 + GROUP * 4),
        WeightKind::Q4m => panels * (32 + GROUP * 4),
        WeightKind::Q8 => panels * (16 + GROUP * 8),
    };
    if entry.bytes != bytes {
        return Err(shape_error(format!("{name}: bytes should be {bytes}: {}", entry.bytes)));
    }
    if !entry.offset.is_multiple_of(PAGE) {
        return Err(format_error(format!("{name}: offset is not a multiple of {PAGE}: {}", entry.offset)));
    }
    if entry.offset < free {
        return Err(format_error(format!("{name}: overlaps what ends at {free}: {}", entry.offset)));
    }
    match entry.offset.checked_add(bytes).filter(|&end| end <= limit) {
        Some(end) => Ok(end),
        None => Err(format_error(format!("{name}: reaches past the index at {limit}: {} + {bytes}", entry.offset))),
    }
}

fn u32_at(header: &[u8], at: usize) -> u32 {
    (0..4).fold(0, |n, i| n | u32::from(header[at + i]) << (8 * i))
}

fn u64_at(header: &[u8], at: usize) -> u64 {
    u64::from(u32_at(header, at)) | u64::from(u32_at(header, at + 4)) << 32
}

fn format_error(message: impl fmt::Display) -> Error {
    Error::bundle(ErrorKind::Format, format!("weights.bin: {message}"))
}

fn shape_error(message: impl fmt::Display) -> Error {
    Error::bundle(ErrorKind::Shape, format!("weights.bin: {message}"))
}

fn truncated(message: impl fmt::Display) -> Error {
    Error::bundle(ErrorKind::Truncated, format!("weights.bin: {message}"))
}
