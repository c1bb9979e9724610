//! The embeddings of a catalogue: made once, kept on disk by the hash of their text, compared with a query in one pass.
//!
//! A pass over ten thousand tools reads 2.5 MB in order, which takes less time than any index over them would save. The file in the
//! cache is only a shortcut: one that is missing, damaged or of another anchor is made anew.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::anchor::{Anchor, Embedding, KnownWords};
use crate::error::Result;

const MAGIC: &[u8; 8] = b"MOTEEMB\x01";

/// Tools whose embeddings are kept on disk; at 292 bytes each.
const MAX_KEPT: usize = 50_000;

type Key = [u8; 32];

/// One embedding a tool, in the order of the catalogue.
#[derive(Clone, Debug)]
pub(super) struct Embeddings {
    dim: usize,
    scales: Vec<f32>,
    values: Vec<i8>,
}

impl Embeddings {
    /// Embeds the texts of each tool, or takes what `cache` remembers; what is new is remembered.
    ///
    /// # Errors
    /// Those of the tokenizer. A cache that cannot be read or written is left alone.
    pub(super) fn of(tools: &[Vec<String>], anchor: &Anchor, cache: Option<&Path>) -> Result<Embeddings> {
        let mut kept = cache.and_then(|path| read(path, anchor)).unwrap_or_default();
        let n_kept = kept.len();
        let mut known = KnownWords::new();
        let mut all = Embeddings { dim: anchor.dim(), scales: Vec::new(), values: Vec::new() };
        for texts in tools {
            let key = key(texts);
            let embedding = match kept.remove(&key) {
                Some(embedding) => embedding,
                None => anchor.embed(texts.iter().map(String::as_str), &mut known)?,
            };
            all.scales.push(embedding.scale);
            all.values.extend(&embedding.values);
            kept.insert(key, embedding);
        }
        if kept.len() != n_kept
            && let Some(path) = cache
            && let Err(error) = write(path, anchor, &kept)
        {
            tracing::debug!("embeddings are not kept: {}: {error}", path.display());
        }
        Ok(all)
    }

    /// The cosine between `query` and each tool.
    pub(super) fn cosines(&self, query: &Embedding) -> Vec<f32> {
        let dot = |values: &[i8]| -> i32 {
            values.iter().zip(&query.values).map(|(&a, &b)| i32::from(i16::from(a) * i16::from(b))).sum()
        };
        let dots = self.values.chunks_exact(self.dim.max(1)).map(dot);
        dots.zip(&self.scales).map(|(dot, scale)| dot as f32 * scale * query.scale).collect()
    }
}

fn key(texts: &[String]) -> Key {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    hash.finalize().into()
}

fn entry_bytes(anchor: &Anchor) -> usize {
    size_of::<Key>() + 4 + anchor.dim()
}

fn read(path: &Path, anchor: &Anchor) -> Option<HashMap<Key, Embedding>> {
    let limit = (MAGIC.len() + 32 + MAX_KEPT * entry_bytes(anchor)) as u64;
    let mut file = Vec::new();
    File::open(path).ok()?.take(limit + 1).read_to_end(&mut file).ok()?;
    let entries = file.strip_prefix(MAGIC)?.strip_prefix(anchor.sha256())?.chunks_exact(entry_bytes(anchor));
    if file.len() as u64 > limit || !entries.remainder().is_empty() {
        return None;
    }
    let entry = |bytes: &[u8]| {
        let (key, rest) = bytes.split_first_chunk::<32>()?;
        let (scale, values) = rest.split_first_chunk::<4>()?;
        let scale = Some(f32::from_le_bytes(*scale)).filter(|scale| scale.is_finite())?;
        Some((*key, Embedding { scale, values: values.iter().map(|&byte| byte as i8).collect() }))
    };
    entries.map(entry).collect()
}

fn write(path: &Path, anchor: &Anchor, kept: &HashMap<Key, Embedding>) -> io::Result<()> {
    let mut bytes = [MAGIC.as_slice(), anchor.sha256()].concat();
    for (key, embedding) in kept.iter().take(MAX_KEPT) {
        bytes.extend(key);
        bytes.extend(embedding.scale.to_le_bytes());
        bytes.extend(embedding.values.iter().map(|&value| value as u8));
    }
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    let written = File::create(&fresh).and_then(|mut file| {
        file.write_all(&bytes)?;
        file.sync_all()
    });
    written.and_then(|()| fs::rename(&fresh, path)).inspect_err(|_| drop(fs::remove_file(&fresh)))
}
