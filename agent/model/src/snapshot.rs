//! Conversations on disk: the tokens and the KV cache, in a form that is mapped back without a copy.
//!
//! A snapshot holds a header of one page, the tokens, and the memory of the cache as it is, of which only the rows in use
//! are written; the rest of the file is a hole. Mapped privately it is the cache itself, once the checksum has read the rows
//! in use: pages are copied when they are written. A model with another context window copies the rows instead. The form is described
//! in `docs/bundle.md`. What it does not do: find, name or delete snapshots.

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use crate::adapter::Adapter;
use crate::cache::{Base, KvCache, KvKind, Layout};
use crate::conversation::Conversation;
use crate::error::{Error, ErrorKind, Result};
use crate::map::FileMap;
use crate::model::Model;
use crate::regular;

const MAGIC: &[u8; 8] = b"MOTEKVS\0";
const SNAPSHOT_VERSION: u32 = 1;
const PAGE: usize = 4096;
/// What the checksum is computed over begins here.
const CHECKED_FROM: usize = 16;

impl Conversation {
    /// Writes the tokens that are evaluated, and their part of the KV cache, to a file, which appears whole or not at all.
    ///
    /// # Errors
    /// `Argument` if nothing is evaluated yet, `Io`.
    pub fn snapshot(&mut self, path: &Path) -> Result<()> {
        self.forget_draft();
        let cache = &self.workspace.cache;
        let tokens = self.tokens().get(..cache.len()).unwrap_or_default();
        if tokens.is_empty() {
            return Err(Error::new(ErrorKind::Argument, "nothing to keep: no token is evaluated"));
        }
        let failed = |e: io::Error| Error::new(ErrorKind::Io, format!("cannot write ({e}): {}", path.display()));
        write(path, &self.identity(), cache, tokens).map_err(failed)
    }

    fn identity(&self) -> Identity {
        Identity::new(self.model(), self.adapter_id())
    }
}

impl Model {
    /// A conversation that goes on where the one in the file was.
    ///
    /// # Errors
    /// `Missing`, `Version`, `Truncated`, `Format` or `HashMismatch` for a file that is no whole snapshot; `Mismatch` for one of
    /// another bundle, adapter, kind of KV cache or kernels; `ContextFull` if it does not fit the window.
    pub fn restore(&self, path: &Path, adapter: Option<&Adapter>) -> Result<Conversation> {
        let file = regular::open(path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => Error::new(ErrorKind::Missing, format!("no such file: {}", path.display())),
            _ => Error::new(ErrorKind::Io, format!("cannot read ({e}): {}", path.display())),
        })?;
        let map = FileMap::open(&file).map_err(|e| fault(ErrorKind::Truncated, format!("cannot be mapped: {e}")))?;
        let identity = Identity::new(self, adapter.map(Adapter::id));
        let header = Header::read(&map, &identity, self)?;
        let (limit, used) = (self.context(), header.n_tokens);
        if used > limit {
            let message = format!("the context window of {limit} tokens is too small for the snapshot: {used}");
            return Err(Error::new(ErrorKind::ContextFull { limit, used }, message)
                .hint("load the model with a larger context"));
        }
        let architecture = &self.bundle().manifest().architecture;
        let cache = if header.layout.capacity == limit {
            let base = Base { file: Arc::new(file), offset: header.cache.start, len: used };
            KvCache::over(architecture, identity.kind, limit, base)?
        } else {
            let mut cache = KvCache::new(architecture, identity.kind, limit)?;
            cache.copy_rows(&map[header.cache.clone()], &header.layout, 0..used);
            cache
        };
        let mut conversation = self.conversation_over(cache)?;
        conversation.resume(header.tokens(&map), adapter);
        Ok(conversation)
    }
}

/// What a snapshot must agree in with the model that takes it.
struct Identity {
    bundle: String,
    adapter: String,
    kind: KvKind,
    kernels: &'static str,
}

impl Identity {
    fn new(model: &Model, adapter: Option<&str>) -> Identity {
        Identity {
            bundle: model.bundle().id().to_owned(),
            adapter: adapter.unwrap_or_default().to_owned(),
            kind: model.memory().kv_kind,
            kernels: mote_kernels::dispatch().name(),
        }
    }

    /// The texts of the header with their places.
    fn fields(&self) -> [(&'static str, Range<usize>, String); 4] {
        [
            ("bundle", 16..80, self.bundle.clone()),
            ("adapter", 80..144, self.adapter.clone()),
            ("kv cache", 144..160, self.kind.to_string()),
            ("kernels", 160..176, self.kernels.to_owned()),
        ]
    }
}

struct Header {
    n_tokens: usize,
    layout: Layout,
    cache: Range<usize>,
}

/// The places of the header's numbers, each a u64.
const NUMBERS: Range<usize> = 176..232;

impl Header {
    fn new(layout: &Layout, n_tokens: usize) -> Header {
        let start = (PAGE + 4 * n_tokens).next_multiple_of(PAGE);
        Header { n_tokens, layout: *layout, cache: start..start + layout.bytes() as usize }
    }

    fn numbers(&self) -> [u64; 7] {
        let Layout { layers, kv_heads, row_bytes, capacity } = self.layout;
        [self.n_tokens, layers, kv_heads, row_bytes, capacity, self.cache.start, self.cache.end].map(|n| n as u64)
    }

    fn page(&self, identity: &Identity) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        page[..8].copy_from_slice(MAGIC);
        page[8..12].copy_from_slice(&SNAPSHOT_VERSION.to_le_bytes());
        for (_, at, text) in identity.fields() {
            let n = text.len().min(at.len());
            page[at.start..at.start + n].copy_from_slice(&text.as_bytes()[..n]);
        }
        for (number, at) in self.numbers().iter().zip(page[NUMBERS].as_chunks_mut::<8>().0) {
            *at = number.to_le_bytes();
        }
        page
    }

    /// Reads and checks a whole file for a model.
    fn read(file: &[u8], identity: &Identity, model: &Model) -> Result<Header> {
        let page = file
            .get(..PAGE)
            .ok_or_else(|| fault(ErrorKind::Truncated, format!("the header needs {PAGE} bytes: {}", file.len())))?;
        if &page[..8] != MAGIC {
            return Err(fault(ErrorKind::Format, "header: no magic MOTEKVS"));
        }
        let u32_at = |at: usize| u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
        let found = u32_at(8);
        if found != SNAPSHOT_VERSION {
            let kind = ErrorKind::Version { found, supported: SNAPSHOT_VERSION };
            return Err(fault(kind, format!("version is not {SNAPSHOT_VERSION}: {found}")));
        }
        for (name, at, expected) in identity.fields() {
            let found = page[at].iter().take_while(|&&b| b != 0).map(|&b| char::from(b)).collect::<String>();
            if found != expected {
                let or_none = |text: &str| if text.is_empty() { "none" } else { text }.to_owned();
                let (found, expected) = (or_none(&found.escape_default().to_string()), or_none(&expected));
                return Err(fault(ErrorKind::Mismatch, format!("made with another {name} than {expected}: {found}"))
                    .hint("make it again with this model"));
            }
        }
        let numbers: Vec<u64> = page[NUMBERS].as_chunks::<8>().0.iter().map(|b| u64::from_le_bytes(*b)).collect();
        let (n_tokens, capacity) = (numbers[0], numbers[4]);
        let manifest = model.bundle().manifest();
        for (field, value) in [("tokens", n_tokens), ("capacity", capacity)] {
            if value == 0 || value > manifest.context_length as u64 {
                let limit = manifest.context_length;
                return Err(fault(ErrorKind::Shape, format!("header: {field} is outside 1 to {limit}: {value}")));
            }
        }
        let layout = Layout::new(&manifest.architecture, identity.kind, capacity as usize);
        let header = Header::new(&layout, n_tokens as usize);
        if n_tokens > capacity || header.numbers().as_slice() != numbers {
            return Err(fault(ErrorKind::Shape, format!("header: the sizes do not fit the model: {numbers:?}")));
        }
        if file.len() != header.cache.end {
            let kind = if file.len() < header.cache.end { ErrorKind::Truncated } else { ErrorKind::Format };
            return Err(fault(kind, format!("the header says {} bytes: {}", header.cache.end, file.len())));
        }
        if header.checksum(&page[CHECKED_FROM..], header.token_bytes(file), &file[header.cache.clone()]) != u32_at(12) {
            return Err(fault(ErrorKind::HashMismatch, "the checksum is not that of its content"));
        }
        let n_vocab = model.tokenizer().n_vocab();
        match header.tokens(file).iter().find(|&&id| id as usize >= n_vocab) {
            Some(id) => Err(fault(ErrorKind::Shape, format!("token id outside the vocabulary of {n_vocab}: {id}"))),
            None => Ok(header),
        }
    }

    fn token_bytes<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        &file[PAGE..PAGE + 4 * self.n_tokens]
    }

    fn tokens(&self, file: &[u8]) -> Vec<u32> {
        self.token_bytes(file).as_chunks::<4>().0.iter().map(|b| u32::from_le_bytes(*b)).collect()
    }

    /// CRC-32 of the header behind the checksum, the tokens, and the rows in use.
    fn checksum(&self, header: &[u8], tokens: &[u8], cache: &[u8]) -> u32 {
        let mut crc = crc32fast::Hasher::new();
        crc.update(header);
        crc.update(tokens);
        self.layout.parts(0..self.n_tokens).for_each(|part| crc.update(&cache[part]));
        crc.finalize()
    }
}

fn write(path: &Path, identity: &Identity, cache: &KvCache, tokens: &[u32]) -> io::Result<()> {
    let header = Header::new(cache.layout(), tokens.len());
    let token_bytes: Vec<u8> = tokens.iter().flat_map(|id| id.to_le_bytes()).collect();
    let mut page = header.page(identity);
    let checksum = header.checksum(&page[CHECKED_FROM..], &token_bytes, cache.bytes());
    page[12..16].copy_from_slice(&checksum.to_le_bytes());

    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&page)?;
    file.write_all(&token_bytes)?;
    file.as_file().set_len(header.cache.end as u64)?;
    for part in header.layout.parts(0..tokens.len()) {
        file.as_file().write_all_at(&cache.bytes()[part.clone()], (header.cache.start + part.start) as u64)?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|e| e.error)?;
    File::open(folder)?.sync_all()
}

fn fault(kind: ErrorKind, message: impl std::fmt::Display) -> Error {
    Error::new(kind, format!("snapshot: {message}")).hint("delete the file; it is made again from the text")
}
