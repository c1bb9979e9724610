//! The catalogue's file: every server's segment, found by name and key, mapped at start.
//!
//! A shortcut and nothing else: a file that is missing, truncated, damaged, of another version or made by someone else's hand gives
//! nothing, and what it would have held is made anew from packs and from what servers said. It is written beside its place and renamed,
//! never in place, so that a map of it stays whole. A segment whose key is not the one that is asked for is not taken. The layout is in
//! docs/catalogue.md.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::segment::Segment;
use crate::os;

const MAGIC: &[u8; 8] = b"MOTECAT\0";
const VERSION: u32 = 1;

/// The header takes one, each segment begins at a multiple.
const PAGE: usize = 4096;

/// Bytes of the header that carry something; their CRC follows.
const HEADER_BYTES: usize = 32;

/// A file of a hundred thousand tools; more is not ours.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Servers in a file; of those that a session does not have, the first by name stay.
const MAX_SERVERS: usize = 4096;

/// What must be equal for a segment to be taken: a hash over all that it was made of.
pub(crate) type Key = [u8; 32];

/// One server as the file has it.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Of what it was made.
    pub(crate) key: Key,
    /// The anchor of its embeddings, if it has some.
    pub(crate) anchor: Option<Key>,
    /// One line: what it is good for.
    pub(crate) summary: String,
    /// Its tools.
    pub(crate) segment: Segment,
}

#[derive(Serialize, Deserialize)]
struct Row {
    name: String,
    key: Key,
    anchor: Option<Key>,
    summary: String,
    at: u64,
    len: u64,
    front_crc: u32,
}

/// Every server of the file by its name; nothing if the file is not whole.
pub(crate) fn open(path: &Path) -> Option<BTreeMap<String, Kept>> {
    let file = File::open(path).ok()?;
    if file.metadata().ok()?.len() > MAX_FILE_BYTES {
        return None;
    }
    let map = Arc::new(os::map(&file).ok()?);
    let header = map.get(..HEADER_BYTES)?;
    let crc = u32::from_le_bytes(*map.get(HEADER_BYTES..)?.first_chunk()?);
    let number = |at: usize| header.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    let version = u32::from_le_bytes(*header.get(8..)?.first_chunk()?);
    let is_ours = header.starts_with(MAGIC) && version == VERSION && crc == crc32fast::hash(header);
    if !is_ours || number(16)? != map.len() as u64 {
        return None;
    }
    let table_crc = u32::from_le_bytes(*header.get(12..)?.first_chunk()?);
    let table = map.get(PAGE..)?.get(..usize::try_from(number(24)?).ok()?)?;
    if crc32fast::hash(table) != table_crc {
        return None;
    }
    let rows: Vec<Row> = postcard::from_bytes(table).ok()?;
    let kept = |row: Row| {
        let start = usize::try_from(row.at).ok()?;
        let segment = Segment::mapped(&map, start..start.checked_add(usize::try_from(row.len).ok()?)?)?;
        let whole = crc32fast::hash(segment.front()) == row.front_crc;
        whole.then_some((row.name, Kept { key: row.key, anchor: row.anchor, summary: row.summary, segment }))
    };
    rows.into_iter().map(kept).collect()
}

/// Writes the servers of a session, and those that the file had beside them.
///
/// # Errors
/// Those of the file system; the old file stays.
pub(crate) fn write(path: &Path, mut servers: BTreeMap<String, Kept>) -> io::Result<()> {
    for (name, kept) in open(path).unwrap_or_default() {
        if servers.len() < MAX_SERVERS {
            servers.entry(name).or_insert(kept);
        }
    }
    let mut rows: Vec<Row> = servers
        .iter()
        .map(|(name, kept)| Row {
            name: name.clone(),
            key: kept.key,
            anchor: kept.anchor,
            summary: kept.summary.clone(),
            at: u64::MAX,
            len: kept.segment.bytes().len() as u64,
            front_crc: crc32fast::hash(kept.segment.front()),
        })
        .collect();
    let cannot = |error: postcard::Error| io::Error::other(error);
    let mut at = PAGE + postcard::to_stdvec(&rows).map_err(cannot)?.len();
    for row in &mut rows {
        at = at.next_multiple_of(PAGE);
        row.at = at as u64;
        at += row.len as usize;
    }
    let table = postcard::to_stdvec(&rows).map_err(cannot)?;
    let mut header = Vec::from(*MAGIC);
    header.extend(VERSION.to_le_bytes());
    header.extend(crc32fast::hash(&table).to_le_bytes());
    header.extend((at as u64).to_le_bytes());
    header.extend((table.len() as u64).to_le_bytes());
    header.extend(crc32fast::hash(&header).to_le_bytes());
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    let written = File::create(&fresh).and_then(|file| {
        let mut file = Padded { file: io::BufWriter::new(file), at: 0 };
        file.put(0, &header)?;
        file.put(PAGE, &table)?;
        for (row, kept) in rows.iter().zip(servers.values()) {
            file.put(row.at as usize, kept.segment.bytes())?;
        }
        file.file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    });
    written.and_then(|()| fs::rename(&fresh, path)).inspect_err(|_| drop(fs::remove_file(&fresh)))
}

/// A file that is written front to back, with zeros between its parts.
struct Padded {
    file: io::BufWriter<File>,
    at: usize,
}

impl Padded {
    fn put(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        io::copy(&mut io::repeat(0).take(at.saturating_sub(self.at) as u64), &mut self.file)?;
        self.file.write_all(bytes)?;
        self.at = at + bytes.len();
        Ok(())
    }
}
