//! `search`: lines of the files below a folder.

use super::walk::{NamePattern, shown, walk};
use crate::arguments::Arguments;
use crate::bounds::{Rows, counted, shorten};
use crate::context::Call;
use crate::files::{Lines, MAX_READ_BYTES, resolve};
use crate::{Error, ErrorKind, matcher};
use regex::Regex;
use serde_json::{Value, json};
use std::path::Path;

const MAX_MATCH_CHARS: usize = 300;

pub(super) fn search(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let (pattern, path) = (arguments.str("pattern")?, arguments.path("path")?);
    let (regex, names) =
        (matcher::compile(pattern, arguments.flag("regex")?, true)?, NamePattern::new(arguments.str("files")?)?);
    let mut found =
        Found { rows: Rows::new(call, usize::MAX), n_files: 0, n_skipped: 0, bytes_read: 0, full: false, cut: false };
    let place = resolve(call, path);
    let mut truncated = false;
    if std::fs::metadata(&place).map_err(|e| Error::io("read", path, &e))?.is_dir() {
        let mut paths = Vec::new();
        let visible = |entry: &walkdir::DirEntry| !entry.file_name().to_string_lossy().starts_with('.');
        truncated = walk(call, path, true, visible, |entry| {
            if entry.file_type().is_file() && names.matches(entry) {
                paths.push((shown(path, entry), entry.path().to_owned()));
            }
            Ok(paths.len() < MAX_FILES)
        })?
        .truncated;
        paths.sort();
        for (shown, place) in &paths {
            found.search_file(call, &regex, place, shown)?;
            if found.full {
                break;
            }
        }
    } else {
        found.lines(call, &regex, Lines::open(&place, path)?, path)?;
    }
    found.rows.cut_if(truncated || found.full || found.cut);
    let (count, truncated) = (found.rows.len(), found.rows.truncated());
    let (matches, text) = found.rows.finish(|| {
        format!("no line with {} in {path}, searched {}", shorten(pattern, 100), counted(found.n_files, "file"))
    });
    let mut result = json!({
        "pattern": pattern, "count": count, "matches": matches, "files_searched": found.n_files,
        "truncated": truncated, "text": text,
    });
    if found.n_skipped > 0 {
        result["files_skipped"] = found.n_skipped.into();
    }
    Ok(result)
}

/// Files one search opens.
const MAX_FILES: usize = 50_000;

struct Found {
    rows: Rows,
    n_files: usize,
    /// Binary or unreadable ones.
    n_skipped: usize,
    bytes_read: u64,
    full: bool,
    /// The end of a line that is too long was not searched.
    cut: bool,
}

impl Found {
    fn search_file(&mut self, call: &Call<'_>, regex: &Regex, place: &Path, shown: &str) -> Result<(), Error> {
        match Lines::open(place, shown).and_then(|lines| self.lines(call, regex, lines, shown)) {
            Ok(()) => Ok(()),
            Err(e) if matches!(e.kind(), ErrorKind::Limit { .. }) => {
                self.full = true;
                Ok(())
            }
            Err(e) if e.kind() == ErrorKind::Cancelled => Err(e),
            Err(_) => {
                self.n_skipped += 1;
                Ok(())
            }
        }
    }

    fn lines(
        &mut self,
        call: &Call<'_>,
        regex: &Regex,
        mut lines: Lines<std::fs::File>,
        shown: &str,
    ) -> Result<(), Error> {
        self.n_files += 1;
        let mut line_no = 0_u64;
        while let Some(line) = lines.next(call)? {
            line_no += 1;
            self.cut |= lines.cut();
            if regex.is_match(&line) {
                let text = shorten(line.trim(), MAX_MATCH_CHARS);
                let row = format!("{shown} line {line_no}: {text}");
                if !self.rows.push(json!({"path": shown, "line": line_no, "text": text}), &row) {
                    self.full = true;
                    break;
                }
            }
        }
        self.bytes_read += lines.bytes_read();
        if self.bytes_read > MAX_READ_BYTES {
            self.full = true;
        }
        Ok(())
    }
}
