//! The KV cache of one conversation: f16 keys and values of every layer, of fixed capacity.
//!
//! Each layer's buffer is `[kv_heads, capacity, head_dim]`. It is allocated zeroed at once, so the system gives memory only
//! to positions that were written. Shortening sets the length; what lies behind it is overwritten later.

use crate::error::{Error, ErrorKind, Result};
use crate::manifest::Architecture;

/// More cache than any target of mote has memory.
const MAX_CACHE_BYTES: usize = 64 << 30;

/// Keys and values of one layer as f16 bits.
pub(crate) struct LayerCache {
    pub(crate) keys: Vec<u16>,
    pub(crate) values: Vec<u16>,
}

/// The cache of all layers.
pub(crate) struct KvCache {
    pub(crate) layers: Vec<LayerCache>,
    capacity: usize,
    len: usize,
}

impl KvCache {
    pub(crate) fn new(a: &Architecture, capacity: usize) -> Result<KvCache> {
        let elements = a.kv_heads * a.head_dim * capacity;
        let bytes = cache_bytes(a, capacity);
        if bytes > MAX_CACHE_BYTES {
            let message = format!("the kv cache is larger than {MAX_CACHE_BYTES} bytes: {bytes}");
            return Err(Error::new(ErrorKind::Shape, message).hint("ask for a smaller context"));
        }
        let layer = |_| LayerCache { keys: vec![0; elements], values: vec![0; elements] };
        Ok(KvCache { layers: (0..a.layers).map(layer).collect(), capacity, len: 0 })
    }

    /// Positions there is room for.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Positions that are filled.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Counts positions that every layer has written.
    pub(crate) fn advance(&mut self, n_tokens: usize) {
        self.len = self.capacity.min(self.len + n_tokens);
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

/// Bytes of a full cache.
pub(crate) fn cache_bytes(a: &Architecture, capacity: usize) -> usize {
    a.layers * a.kv_heads * a.head_dim * capacity * 2 * size_of::<u16>()
}
