//! A bundle on disk, opened and checked.
//!
//! Opening reads the manifest, checks every file's size, the hashes of the small files (graph and tokenizer, which parsers
//! read) and the whole structure of the weights. The weights' own hash takes a read of the whole file: [`Bundle::verify`].

use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use mote_kernels::Matrix;
use sha2::{Digest, Sha256};

use crate::embedding::EmbeddingTable;
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{FileRecord, MAX_MANIFEST_BYTES, Manifest, shorten};
use crate::regular;
use crate::tokenizer::Tokenizer;
use crate::weights::Weights;

const MANIFEST: &str = "manifest.json";
pub(crate) const GRAPH: &str = "model.onnx";
pub(crate) const WEIGHTS: &str = "weights.bin";
pub(crate) const TOKENIZER: &str = "tokenizer.json";
/// The graph holds structure and norms: some hundred kilobytes.
const MAX_GRAPH_BYTES: u64 = 64 << 20;
/// The tokenizer of a vocabulary of a quarter million is about 20 MB.
const MAX_TOKENIZER_BYTES: u64 = 256 << 20;
const HASH_CHUNK_BYTES: usize = 1 << 20;

/// An opened bundle: manifest, mapped weights, and the bytes of the graph and of the tokenizer.
#[derive(Debug)]
pub struct Bundle {
    dir: PathBuf,
    id: String,
    manifest: Manifest,
    pub(crate) weights: Weights,
    pub(crate) graph: Vec<u8>,
    pub(crate) tokenizer: Tokenizer,
}

impl Bundle {
    /// Opens the bundle in `dir`.
    ///
    /// # Errors
    /// `Missing`, `Truncated`, `Format`, `Version`, `HashMismatch`, `UnknownArchitecture`, `Shape` or `Tokenizer`; the message
    /// names the file and the field.
    pub fn open(dir: &Path) -> Result<Bundle> {
        let text = read_limited(dir, MANIFEST, MAX_MANIFEST_BYTES)?;
        let manifest = Manifest::parse(&text)?;
        let weights = Weights::open(&open_checked(dir, &manifest, WEIGHTS)?)?;
        weights.check_shapes(&manifest.architecture)?;
        let graph = read_checked(dir, &manifest, GRAPH, MAX_GRAPH_BYTES)?;
        let tokenizer = Tokenizer::read(read_checked(dir, &manifest, TOKENIZER, MAX_TOKENIZER_BYTES)?, &manifest)?;
        Ok(Bundle { dir: dir.to_path_buf(), id: hex(Sha256::digest(&text)), manifest, weights, graph, tokenizer })
    }

    /// What the model is.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// SHA-256 of `manifest.json` in hex: it names the bundle, since the manifest holds the hashes of the other files.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The folder it was opened from.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Its embedding layer.
    ///
    /// # Errors
    /// `Format` if the weights have none, which [`Bundle::open`] has excluded.
    pub fn embedding_table(&self) -> Result<EmbeddingTable> {
        Ok(EmbeddingTable { weight: self.weights.get("embed")?.clone() })
    }

    /// The packed matrices that a decoded token reads from end to end, in the order of a forward pass.
    ///
    /// # Errors
    /// `Format` if one is missing or no matrix, which [`Bundle::open`] has excluded.
    pub fn decode_matrices(&self) -> Result<Vec<Matrix<'_>>> {
        let architecture = &self.manifest.architecture;
        let layers = (0..architecture.layers).flat_map(|layer| {
            ["qkv", "o", "gate_up", "down"].into_iter().map(move |matrix| format!("l{layer}.{matrix}"))
        });
        let output = if architecture.tied_embeddings { "embed" } else { "output" };
        layers.chain([output.to_owned()]).map(|name| self.weights.get(&name)?.matrix()).collect()
    }

    /// Hashes every file and looks at every scale; `progress` hears bytes done and total and may break off.
    ///
    /// # Errors
    /// `HashMismatch` naming the file, `Format` naming the tensor with a scale that is not finite, `Cancelled`, `Io`.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>) -> Result<()> {
        let total: u64 = self.manifest.files.values().map(|f| f.bytes).sum();
        let mut done = 0;
        let mut chunk = vec![0; HASH_CHUNK_BYTES];
        for (name, record) in &self.manifest.files {
            let mut file = open_checked(&self.dir, &self.manifest, name)?;
            let mut hash = Sha256::new();
            loop {
                let n = file.read(&mut chunk).map_err(|e| io_error(name, &e))?;
                if n == 0 {
                    break;
                }
                hash.update(&chunk[..n]);
                done += n as u64;
                if progress(done, total).is_break() {
                    return Err(Error::cancelled());
                }
            }
            check_hash(name, record, &hex(hash.finalize()))?;
        }
        self.weights.check_scales(&mut || progress(total, total))
    }
}

impl Manifest {
    /// Reads the manifest of the bundle in `dir`, and none of its other files.
    ///
    /// # Errors
    /// `Missing`, `Io`, and those of [`Manifest::parse`].
    pub fn read(dir: &Path) -> Result<Manifest> {
        Manifest::parse(&read_limited(dir, MANIFEST, MAX_MANIFEST_BYTES)?)
    }
}

/// Opens a file and compares its size with the manifest's.
fn open_checked(dir: &Path, manifest: &Manifest, name: &str) -> Result<File> {
    let record = record(manifest, name)?;
    let (file, bytes) = open(dir, name)?;
    if bytes < record.bytes {
        return Err(Error::bundle(
            ErrorKind::Truncated,
            format!("{name}: the manifest says {} bytes: {bytes}", record.bytes),
        ));
    }
    if bytes > record.bytes {
        return Err(Error::bundle(
            ErrorKind::Format,
            format!("{name}: longer than the {} bytes of the manifest: {bytes}", record.bytes),
        ));
    }
    Ok(file)
}

fn read_checked(dir: &Path, manifest: &Manifest, name: &str, limit: u64) -> Result<Vec<u8>> {
    open_checked(dir, manifest, name)?;
    let bytes = read_limited(dir, name, limit)?;
    check_hash(name, record(manifest, name)?, &hex(Sha256::digest(&bytes)))?;
    Ok(bytes)
}

fn record<'a>(manifest: &'a Manifest, name: &str) -> Result<&'a FileRecord> {
    let missing = || Error::bundle(ErrorKind::Format, format!("manifest.json: files has no entry: {name}"));
    manifest.files.get(name).ok_or_else(missing)
}

fn check_hash(name: &str, record: &FileRecord, found: &str) -> Result<()> {
    if record.sha256 == found {
        return Ok(());
    }
    Err(Error::bundle(ErrorKind::HashMismatch, format!("{name}: sha256 is not {}: {found}", shorten(&record.sha256))))
}

fn read_limited(dir: &Path, name: &str, limit: u64) -> Result<Vec<u8>> {
    let (file, bytes) = open(dir, name)?;
    if bytes > limit {
        return Err(Error::bundle(ErrorKind::Shape, format!("{name}: more than {limit} bytes: {bytes}")));
    }
    let mut text = Vec::with_capacity(bytes as usize);
    file.take(limit).read_to_end(&mut text).map_err(|e| io_error(name, &e))?;
    Ok(text)
}

fn open(dir: &Path, name: &str) -> Result<(File, u64)> {
    let path = dir.join(name);
    let file = regular::open(&path).map_err(|e| match e.kind() {
        io::ErrorKind::InvalidInput => {
            Error::bundle(ErrorKind::Format, format!("not a regular file: {}", path.display()))
        }
        io::ErrorKind::NotFound => Error::new(ErrorKind::Missing, format!("no such file: {}", path.display()))
            .hint("list the bundles there are with: mote model list"),
        _ => io_error(name, &e),
    })?;
    let metadata = file.metadata().map_err(|e| io_error(name, &e))?;
    Ok((file, metadata.len()))
}

fn io_error(name: &str, e: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{name} cannot be read: {e}"))
}

pub(crate) fn hex(digest: impl AsRef<[u8]>) -> String {
    digest.as_ref().iter().map(|b| format!("{b:02x}")).collect()
}
