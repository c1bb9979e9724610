//! What lies in a folder: `list`, `largest`, `usage`.

use super::walk::{NamePattern, Walked, below, shown, walk};
use crate::arguments::Arguments;
use crate::bounds::{Rows, counted, human_size};
use crate::context::Call;
use crate::{Error, bounds};
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::FileType;

/// Entries kept for sorting before the list is cut; one takes about 200 bytes.
const MAX_SORTED: usize = 20_000;

pub(super) fn list(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let (path, recursive) = (arguments.path("path")?, arguments.flag("recursive")?);
    let (pattern, wanted) = (NamePattern::new(arguments.str("pattern")?)?, arguments.str("kind")?);
    let mut found = Vec::new();
    let walked = walk(
        call,
        path,
        recursive,
        |_| true,
        |entry| {
            let kind = kind_of(entry.file_type());
            if pattern.matches(entry) && (wanted == "any" || wanted == kind) {
                let size = if kind == "file" { entry.metadata().map_or(0, |m| m.len()) } else { 0 };
                found.push((below(entry).to_string_lossy().into_owned(), shown(path, entry), kind, size));
            }
            Ok(found.len() < MAX_SORTED)
        },
    )?;
    found.sort();
    let total = found.len();
    let mut rows = Rows::new(call, usize::MAX);
    for (name, path, kind, size_bytes) in found {
        let line = if kind == "folder" { format!("{name}/") } else { name.clone() };
        let item =
            json!({"name": name, "path": path, "kind": kind, "size_bytes": size_bytes, "size": human_size(size_bytes)});
        if !rows.push(item, &line) {
            break;
        }
    }
    rows.cut_if(walked.truncated);
    let truncated = rows.truncated();
    let (entries, text) = rows.finish(|| match (wanted, arguments.str("pattern")) {
        ("any", Ok("*")) => format!("{path} is empty"),
        (_, Ok(pattern)) => format!("nothing in {path} matches {}", bounds::shorten(pattern, 100)),
        _ => format!("nothing in {path}"),
    });
    Ok(with_unreadable(
        json!({"path": path, "count": total, "entries": entries, "truncated": truncated, "text": text}),
        &walked,
    ))
}

pub(super) fn largest(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let (path, limit) = (arguments.path("path")?, arguments.count("limit")?);
    let limit = limit.min(call.context.limits.max_entries);
    let mut heap = BinaryHeap::new();
    let walked = walk(
        call,
        path,
        true,
        |_| true,
        |entry| {
            if entry.file_type().is_file() {
                let size = entry.metadata().map_or(0, |m| m.len());
                heap.push((Reverse(size), shown(path, entry)));
                if heap.len() > limit {
                    heap.pop();
                }
            }
            Ok(true)
        },
    )?;
    let mut rows = Rows::new(call, limit);
    for (Reverse(size_bytes), path) in heap.into_sorted_vec() {
        let size = human_size(size_bytes);
        let line = format!("{path}: {size}");
        if !rows.push(json!({"path": path, "size_bytes": size_bytes, "size": size}), &line) {
            break;
        }
    }
    rows.cut_if(walked.truncated);
    let (count, truncated) = (rows.len(), rows.truncated());
    let (files, text) = rows.finish(|| format!("there are no files under {path}"));
    Ok(with_unreadable(
        json!({"path": path, "count": count, "files": files, "truncated": truncated, "text": text}),
        &walked,
    ))
}

pub(super) fn usage(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let path = arguments.path("path")?;
    let (mut size_bytes, mut n_files, mut n_folders) = (0_u64, 0_usize, 1_usize);
    let walked = walk(
        call,
        path,
        true,
        |_| true,
        |entry| {
            if entry.file_type().is_dir() {
                n_folders += 1;
            } else {
                n_files += 1;
                size_bytes = size_bytes.saturating_add(entry.metadata().map_or(0, |m| m.len()));
            }
            Ok(true)
        },
    )?;
    let size = human_size(size_bytes);
    let at_least = if walked.truncated { "at least " } else { "" };
    let text =
        format!("{path} takes {at_least}{size}: {} in {}", counted(n_files, "file"), counted(n_folders, "folder"));
    Ok(with_unreadable(
        json!({
            "path": path, "size_bytes": size_bytes, "size": size, "n_files": n_files, "n_folders": n_folders,
            "truncated": walked.truncated, "text": text,
        }),
        &walked,
    ))
}

pub(super) fn kind_of(kind: FileType) -> &'static str {
    match kind {
        kind if kind.is_file() => "file",
        kind if kind.is_dir() => "folder",
        kind if kind.is_symlink() => "link",
        _ => "other",
    }
}

/// Says how many entries could not be looked at, when there are any.
fn with_unreadable(mut result: Value, walked: &Walked) -> Value {
    if walked.n_unreadable > 0 {
        result["n_unreadable"] = walked.n_unreadable.into();
    }
    result
}
