//! Low-rank adapters: a small file that changes what a model says, added to its matmuls while it runs.
//!
//! The file is in the safetensors format, described in `docs/bundle.md`. It is mapped, its numbers are read where they lie.
//! Invariant: every pair of an [`Adapter`] has the shapes of the matrix of its name, and finite numbers.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use half::f16;
use mote_kernels::{MAX_RANK, Matrix};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::bundle::{Bundle, hex};
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::shorten;
use crate::map::FileMap;
use crate::regular;

/// A rank of 64 for every matrix of a 4B model is 400 MB.
const MAX_ADAPTER_BYTES: u64 = 2 << 30;
/// The head of an adapter of 512 layers is under 300 kB.
const MAX_HEAD_BYTES: u64 = 4 << 20;
/// The matrix that an adapter may not change: its rows are looked up, too.
const EMBEDDING: &str = "embed";
/// The value of `format` among the file's metadata.
const FORMAT: &str = "mote-adapter-1";

/// An adapter that fits a bundle; clones share it.
#[derive(Clone)]
pub struct Adapter {
    inner: Arc<Inner>,
}

struct Inner {
    map: FileMap,
    id: String,
    bundle_id: String,
    pairs: HashMap<String, Pair>,
}

/// Where the two matrices of one weight lie in the file.
struct Pair {
    rank: usize,
    a: Range<usize>,
    b: Range<usize>,
    scale: f32,
}

impl Adapter {
    /// Opens an adapter for a bundle.
    ///
    /// # Errors
    /// `Missing`, `Io`, `Format` for a file that is not of the form, `Shape` and `Mismatch` for one that does not fit the bundle;
    /// the message names the tensor.
    pub fn open(path: &Path, bundle: &Bundle) -> Result<Adapter> {
        let file = regular::open(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => Error::new(ErrorKind::Missing, format!("no such file: {}", path.display())),
            _ => Error::new(ErrorKind::Io, format!("cannot read ({e}): {}", path.display())),
        })?;
        let map = FileMap::open(&file).map_err(|e| fault(ErrorKind::Format, format!("cannot be mapped: {e}")))?;
        if map.len() as u64 > MAX_ADAPTER_BYTES {
            return Err(fault(ErrorKind::Shape, format!("longer than {MAX_ADAPTER_BYTES} bytes: {}", map.len())));
        }
        let id = hex(Sha256::digest(&*map));
        let pairs = read(&map, bundle)?;
        Ok(Adapter { inner: Arc::new(Inner { map, id, bundle_id: bundle.id().to_owned(), pairs }) })
    }

    /// SHA-256 of the file in hex.
    pub fn id(&self) -> &str {
        &self.inner.id
    }

    /// The identity of the bundle that it was checked against.
    pub(crate) fn bundle_id(&self) -> &str {
        &self.inner.bundle_id
    }

    /// The matrix with what this adapter adds to it.
    pub(crate) fn apply<'a>(&'a self, name: &str, matrix: Matrix<'a>) -> Result<Matrix<'a>> {
        let Some(pair) = self.inner.pairs.get(name) else { return Ok(matrix) };
        let part = |range: &Range<usize>| &self.inner.map[range.clone()];
        let shape = [matrix.rows(), matrix.cols()];
        mote_kernels::Adapter::new(pair.rank, shape, part(&pair.a), part(&pair.b), pair.scale)
            .and_then(|adapter| matrix.with_adapter(adapter))
            .map_err(|e| fault(ErrorKind::Shape, format!("{name}: {e}")))
    }
}

impl std::fmt::Debug for Adapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Adapter").field("id", &self.id()).finish_non_exhaustive()
    }
}

impl PartialEq for Adapter {
    fn eq(&self, other: &Adapter) -> bool {
        self.id() == other.id() && self.bundle_id() == other.bundle_id()
    }
}

/// The JSON text at the head of a safetensors file.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "__metadata__", default)]
    metadata: HashMap<String, String>,
    #[serde(flatten)]
    tensors: HashMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

impl Entry {
    /// Where in the file the halves of a matrix of `shape` lie.
    fn range(&self, name: &str, shape: [usize; 2], data: usize, end: usize) -> Result<Range<usize>> {
        if self.dtype != "F16" {
            return Err(fault(ErrorKind::Format, format!("{name}: not of type F16: {}", shorten(&self.dtype))));
        }
        if self.shape != shape {
            return Err(fault(ErrorKind::Shape, format!("{name}: should be {shape:?}: {:?}", self.shape)));
        }
        let [from, to] = self.data_offsets.map(|offset| data.saturating_add(offset));
        let bytes = shape[0] * shape[1] * size_of::<u16>();
        if from > to || to > end || to - from != bytes {
            let message =
                format!("{name}: data_offsets do not hold {bytes} bytes of the file: {:?}", self.data_offsets);
            return Err(fault(ErrorKind::Format, message));
        }
        Ok(from..to)
    }
}

/// Reads the head; gives it with the place where the data begins.
fn head(file: &[u8]) -> Result<(Head, usize)> {
    let length = file.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
    let length = length.ok_or_else(|| fault(ErrorKind::Truncated, format!("no length of a head: {}", file.len())))?;
    if length > MAX_HEAD_BYTES {
        return Err(fault(ErrorKind::Format, format!("its head is longer than {MAX_HEAD_BYTES} bytes: {length}")));
    }
    let data = 8 + length as usize;
    let text = file
        .get(8..data)
        .ok_or_else(|| fault(ErrorKind::Truncated, format!("its head needs {data} bytes: {}", file.len())))?;
    let head = serde_json::from_slice(text).map_err(|e| fault(ErrorKind::Format, format!("cannot be read: {e}")))?;
    Ok((head, data))
}

fn read(file: &[u8], bundle: &Bundle) -> Result<HashMap<String, Pair>> {
    let (Head { metadata, tensors }, data) = head(file)?;
    let text = |name: &str| metadata.get(name).map(String::as_str);
    if text("format") != Some(FORMAT) {
        let found = shorten(text("format").unwrap_or("none"));
        return Err(fault(ErrorKind::Format, format!("format is not {FORMAT}: {found}")));
    }
    let number = |name: &str| text(name).and_then(|text| text.parse::<f32>().ok()).filter(|n| n.is_finite());
    let missing = |name: &str| fault(ErrorKind::Format, format!("no number in the metadata: {name}"));
    let rank = number("rank").ok_or_else(|| missing("rank"))?;
    let alpha = number("alpha").ok_or_else(|| missing("alpha"))?;
    if rank.fract() != 0.0 || rank < 1.0 || rank > MAX_RANK as f32 {
        return Err(fault(ErrorKind::Shape, format!("rank is outside 1 to {MAX_RANK}: {rank}")));
    }
    let (rank, scale) = (rank as usize, alpha / rank);
    let mut pairs: HashMap<String, Pair> = HashMap::new();
    for (name, entry) in &tensors {
        let shown = shorten(name);
        let half = name.strip_suffix(".a").map(|weight| (weight, true));
        let half = half.or_else(|| name.strip_suffix(".b").map(|weight| (weight, false)));
        let Some((weight, is_a)) = half.filter(|(weight, _)| *weight != EMBEDDING) else {
            return Err(fault(ErrorKind::Format, format!("not the name of a tensor of an adapter: {shown}")));
        };
        let Some((rows, cols)) = bundle.weights.matrix_shape(weight) else {
            return Err(fault(ErrorKind::Mismatch, format!("the model has no such matrix: {}", shorten(weight))));
        };
        let shape = if is_a { [rank, cols] } else { [rows, rank] };
        let range = entry.range(&shown, shape, data, file.len())?;
        if !file[range.clone()].as_chunks::<2>().0.iter().all(|half| f16::from_le_bytes(*half).is_finite()) {
            return Err(fault(ErrorKind::Format, format!("{shown}: a value is not finite")));
        }
        let pair = pairs.entry(weight.to_owned()).or_insert(Pair { rank, a: 0..0, b: 0..0, scale });
        *(if is_a { &mut pair.a } else { &mut pair.b }) = range;
    }
    match pairs.iter().find(|(_, pair)| pair.a.is_empty() || pair.b.is_empty()) {
        Some((name, _)) => Err(fault(ErrorKind::Format, format!("not both tensors a and b of: {}", shorten(name)))),
        None if pairs.is_empty() => Err(fault(ErrorKind::Format, "no tensors")),
        None => Ok(pairs),
    }
}

fn fault(kind: ErrorKind, message: impl std::fmt::Display) -> Error {
    Error::new(kind, format!("adapter: {message}")).hint("train or convert the adapter again for this bundle")
}
