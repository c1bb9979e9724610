//! The KV cache of one conversation: keys and values of every layer, of fixed capacity.
//!
//! All of it is one piece of memory: for each layer the keys, then the values, each `[kv_heads, capacity]` rows of
//! [`CacheKind::row_bytes`]. The system gives memory only to pages that were written. Shortening sets the length; what lies
//! behind it is overwritten later. It may lie over a file of the same layout (see `snapshot`), whose pages are then copied when
//! they are first written.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use mote_kernels::CacheKind;

use crate::error::{Error, ErrorKind, Result};
use crate::manifest::Architecture;
use crate::map::Memory;

/// More cache than any target of mote has memory.
const MAX_CACHE_BYTES: u64 = 64 << 30;

/// What the KV cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KvKind {
    /// Half-precision floats.
    F16,
    /// Bytes, with a half-precision scale for 32 of them.
    Int8,
}

impl KvKind {
    /// Bytes of a full cache of so many tokens.
    pub(crate) fn cache_bytes(self, a: &Architecture, capacity: usize) -> u64 {
        Layout::new(a, self, capacity).bytes()
    }

    pub(crate) fn rows(self) -> CacheKind {
        match self {
            KvKind::F16 => CacheKind::F16,
            KvKind::Int8 => CacheKind::I8,
        }
    }
}

/// As the command line writes it.
impl fmt::Display for KvKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KvKind::F16 => "f16",
            KvKind::Int8 => "int8",
        })
    }
}

/// Where in the memory of a cache a row lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) layers: usize,
    pub(crate) kv_heads: usize,
    pub(crate) row_bytes: usize,
    pub(crate) capacity: usize,
}

impl Layout {
    pub(crate) fn new(a: &Architecture, kind: KvKind, capacity: usize) -> Layout {
        Layout { layers: a.layers, kv_heads: a.kv_heads, row_bytes: kind.rows().row_bytes(a.head_dim), capacity }
    }

    pub(crate) fn bytes(&self) -> u64 {
        (2 * self.layers * self.kv_heads) as u64 * (self.capacity as u64 * self.row_bytes as u64)
    }

    /// Bytes of the keys of one layer; the values have as many.
    fn half(&self) -> usize {
        self.kv_heads * self.capacity * self.row_bytes
    }

    /// Where the rows of some positions lie: a part for each head of keys and values of each layer.
    pub(crate) fn parts(self, positions: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        (0..2 * self.layers * self.kv_heads).map(move |head| {
            let start = head * self.capacity;
            (start + positions.start) * self.row_bytes..(start + positions.end) * self.row_bytes
        })
    }
}

/// A file that a cache lies over.
#[derive(Clone)]
pub(crate) struct Base {
    pub(crate) file: Arc<File>,
    /// Where in the file the cache begins.
    pub(crate) offset: usize,
    /// Positions that are as in the file.
    pub(crate) len: usize,
}

/// The cache of all layers.
pub(crate) struct KvCache {
    kind: KvKind,
    layout: Layout,
    memory: Memory,
    base: Option<Base>,
    len: usize,
}

impl KvCache {
    pub(crate) fn new(a: &Architecture, kind: KvKind, capacity: usize) -> Result<KvCache> {
        let layout = Layout::new(a, kind, capacity);
        let bytes = layout.bytes();
        let limit = MAX_CACHE_BYTES.min(isize::MAX as u64);
        if bytes > limit {
            let message = format!("the kv cache is larger than {limit} bytes: {bytes}");
            return Err(Error::new(ErrorKind::Shape, message).hint("ask for a smaller context"));
        }
        let memory = Memory::zeroed(bytes as usize)
            .map_err(|e| Error::new(ErrorKind::Runtime, format!("no memory for the kv cache of {bytes} bytes: {e}")))?;
        Ok(KvCache { kind, layout, memory, base: None, len: 0 })
    }

    /// A cache over a file, which holds its first positions.
    pub(crate) fn over(a: &Architecture, kind: KvKind, capacity: usize, base: Base) -> Result<KvCache> {
        let layout = Layout::new(a, kind, capacity);
        let memory = Memory::of_file(&base.file, base.offset..base.offset + layout.bytes() as usize)
            .map_err(|e| Error::new(ErrorKind::Io, format!("the snapshot cannot be mapped: {e}")))?;
        let len = base.len;
        Ok(KvCache { kind, layout, memory, base: Some(base), len })
    }

    /// The same positions again; what lies as it is in a file is shared, the rest copied.
    pub(crate) fn fork(&self, a: &Architecture) -> Result<KvCache> {
        let mut fork = match &self.base {
            Some(base) => KvCache::over(a, self.kind, self.layout.capacity, base.clone())?,
            None => KvCache::new(a, self.kind, self.layout.capacity)?,
        };
        let shared = fork.len;
        fork.copy_rows(self.bytes(), &self.layout, shared..self.len);
        Ok(fork)
    }

    /// Takes over the rows of some positions, which follow those that are there, from the memory of another cache.
    pub(crate) fn copy_rows(&mut self, from: &[u8], layout: &Layout, positions: Range<usize>) {
        let to = self.memory.bytes_mut();
        for (from_part, to_part) in layout.parts(positions.clone()).zip(self.layout.parts(positions.clone())) {
            to[to_part].copy_from_slice(&from[from_part]);
        }
        self.len = positions.end;
    }

    pub(crate) fn kind(&self) -> KvKind {
        self.kind
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }

    /// Keys and values of a layer; none if there is no such layer.
    pub(crate) fn layer_mut(&mut self, layer: usize) -> Option<(&mut [u8], &mut [u8])> {
        let half = self.layout.half();
        let both = self.memory.bytes_mut().get_mut(layer * 2 * half..(layer + 1) * 2 * half)?;
        Some(both.split_at_mut(half))
    }

    /// Positions there is room for.
    pub(crate) fn capacity(&self) -> usize {
        self.layout.capacity
    }

    /// Positions that are filled.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Counts positions that every layer has written.
    pub(crate) fn advance(&mut self, n_tokens: usize) {
        self.len = self.layout.capacity.min(self.len + n_tokens);
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
        if let Some(base) = &mut self.base {
            base.len = base.len.min(len);
        }
    }
}
