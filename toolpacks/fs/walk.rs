//! Walking a folder: bounded, in no order, never through a symbolic link. What was seen until a bound, of time too, is kept.

use crate::context::Call;
use crate::{Error, ErrorKind, files};
use glob::{MatchOptions, Pattern};
use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

/// Entries one call looks at; a bigger tree is cut and the result says so.
const MAX_VISITED: usize = 200_000;
const MAX_DEPTH: usize = 64;
const MAX_PATTERN_BYTES: usize = 1024;
/// Folders held open at once by a walk.
const MAX_OPEN: usize = 16;

/// What a walk found besides what it handed out.
#[derive(Default)]
pub(crate) struct Walked {
    /// Not everything was looked at.
    pub(crate) truncated: bool,
    /// Folders and files that could not be read.
    pub(crate) n_unreadable: usize,
}

/// Hands every entry below `path` to `visit` until it returns `false`; `enter` says into which folders to go.
pub(crate) fn walk(
    call: &Call<'_>,
    path: &str,
    recursive: bool,
    enter: impl Fn(&DirEntry) -> bool,
    mut visit: impl FnMut(&DirEntry) -> Result<bool, Error>,
) -> Result<Walked, Error> {
    let root = files::resolve(call, path);
    let metadata = std::fs::metadata(&root).map_err(|e| Error::io("read", path, &e))?;
    if !metadata.is_dir() {
        return Err(Error::invalid(format!("is not a folder: {path}")).with_hint("read it with fs.read(path=..)"));
    }
    std::fs::read_dir(&root).map_err(|e| Error::io("read", path, &e))?;
    let depth = if recursive { MAX_DEPTH } else { 1 };
    let mut walked = Walked::default();
    let entries = WalkDir::new(&root)
        .min_depth(1)
        .max_depth(depth)
        .max_open(MAX_OPEN)
        .follow_links(false)
        .follow_root_links(true)
        .into_iter()
        .filter_entry(|entry| entry.depth() == 0 || enter(entry));
    for (n_visited, entry) in entries.enumerate() {
        match call.check() {
            Err(e) if e.kind() == ErrorKind::Cancelled => return Err(e),
            Ok(()) if n_visited < MAX_VISITED => {}
            _ => {
                walked.truncated = true;
                break;
            }
        }
        match entry {
            Ok(entry) => {
                walked.truncated |= recursive && entry.depth() == MAX_DEPTH && entry.file_type().is_dir();
                if !visit(&entry)? {
                    walked.truncated = true;
                    break;
                }
            }
            Err(_) => walked.n_unreadable += 1,
        }
    }
    Ok(walked)
}

/// `entry` as a path that the next call can use: the walked `path` and what lies below it.
pub(crate) fn shown(path: &str, entry: &DirEntry) -> String {
    let below: PathBuf = below(entry);
    let base = path.strip_prefix("./").unwrap_or(path);
    if base.is_empty() || base == "." {
        return below.to_string_lossy().into_owned();
    }
    Path::new(base).join(below).to_string_lossy().into_owned()
}

/// `entry` seen from the walked folder.
pub(crate) fn below(entry: &DirEntry) -> PathBuf {
    let parts: Vec<_> = entry.path().components().rev().take(entry.depth()).collect();
    parts.into_iter().rev().collect()
}

/// A file name pattern: `*`, `?` and `[a-z]`, in any case.
pub(crate) struct NamePattern(Pattern);

impl NamePattern {
    pub(crate) fn new(pattern: &str) -> Result<Self, Error> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(Error::limit("pattern in bytes", MAX_PATTERN_BYTES as u64, pattern.len() as u64));
        }
        let name = pattern.trim_start_matches("**/");
        if name.contains('/') {
            return Err(Error::new(ErrorKind::InvalidArgument, format!("a name pattern holds no /: {pattern}"))
                .with_hint("give the folder as path, the file name as pattern"));
        }
        Pattern::new(name).map(Self).map_err(|e| Error::invalid(format!("pattern is not valid ({}): {pattern}", e.msg)))
    }

    pub(crate) fn matches(&self, entry: &DirEntry) -> bool {
        let options = MatchOptions {
            case_sensitive: false,
            require_literal_separator: false,
            require_literal_leading_dot: false,
        };
        self.0.matches_with(&entry.file_name().to_string_lossy(), options)
    }
}
