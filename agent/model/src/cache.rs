//! The KV cache of one conversation: f16 keys and values of every layer, of fixed capacity.
//!
//! Each layer's buffer is `[kv_heads, capacity, head_dim]`. It is allocated zeroed at once, so the system gives memory only
//! to positions that were written. Shortening sets the length; what lies behind it is overwritten later.

use mote_kernels::CacheKind;

use crate::error::{Error, ErrorKind, Result};
use crate::manifest::Architecture;

/// More cache than any target of mote has memory.
const MAX_CACHE_BYTES: usize = 64 << 30;

/// How keys and values are stored.
pub(crate) const KIND: CacheKind = CacheKind::F16;

/// Keys and values of one layer.
pub(crate) struct LayerCache {
    pub(crate) keys: Vec<u8>,
    pub(crate) values: Vec<u8>,
}

/// The cache of all layers.
pub(crate) struct KvCache {
    pub(crate) layers: Vec<LayerCache>,
    capacity: usize,
    len: usize,
}

impl KvCache {
    pub(crate) fn new(a: &Architecture, capacity: usize) -> Result<KvCache> {
        let layer_bytes = a.kv_heads * capacity * KIND.row_bytes(a.head_dim);
        let bytes = cache_bytes(a, capacity);
        if bytes > MAX_CACHE_BYTES {
            let message = format!("the kv cache is larger than {MAX_CACHE_BYTES} bytes: {bytes}");
            return Err(Error::new(ErrorKind::Shape, message).hint("ask for a smaller context"));
        }
        let layer = |_| LayerCache { keys: vec![0; layer_bytes], values: vec![0; layer_bytes] };
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
    a.layers * a.kv_heads * capacity * 2 * KIND.row_bytes(a.head_dim)
}
