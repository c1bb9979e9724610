//! One file: `read`, `stat`.

use super::list::kind_of;
use crate::Error;
use crate::arguments::Arguments;
use crate::bounds::{fit, human_size, json_bytes};
use crate::context::Call;
use crate::files::{Lines, resolve};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt;

pub(super) fn read(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    range(arguments.path("path")?, arguments.count("start")?, arguments.count("lines")?, call)
}

pub(super) fn head(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    range(arguments.path("path")?, 1, arguments.count("lines")?, call)
}

/// The file is read twice: once to count its lines.
pub(super) fn tail(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let (path, n_wanted) = (arguments.path("path")?, arguments.count("lines")?);
    let mut lines = Lines::open(&resolve(call, path), path)?;
    let mut n_lines = 0_usize;
    while lines.next(call)?.is_some() {
        n_lines += 1;
    }
    range(path, n_lines.saturating_sub(n_wanted) + 1, n_wanted, call)
}

fn range(path: &str, start: usize, n_wanted: usize, call: &Call<'_>) -> Result<Value, Error> {
    let mut lines = Lines::open(&resolve(call, path), path)?;
    let (mut text, mut n_lines, mut line_no, mut truncated) = (String::new(), 0, 0, false);
    let mut bytes_left = call.max_body_bytes();
    while let Some(line) = lines.next(call)? {
        line_no += 1;
        if line_no < start {
            continue;
        }
        if n_lines == n_wanted {
            truncated = true;
            break;
        }
        let (part, cut) = fit(&line, bytes_left.saturating_sub(2));
        if n_lines > 0 {
            text.push('\n');
        }
        text.push_str(part);
        n_lines += 1;
        truncated |= lines.cut();
        bytes_left = bytes_left.saturating_sub(json_bytes(&part));
        if cut {
            truncated = true;
            break;
        }
    }
    if n_lines == 0 && start > 1 {
        return Err(Error::invalid(format!("{path} has {line_no} lines, start is after them: {start}")));
    }
    Ok(json!({
        "path": path, "first_line": start, "last_line": start + n_lines.max(1) - 1, "n_lines": n_lines,
        "truncated": truncated, "text": text,
    }))
}

pub(super) fn stat(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let path = arguments.path("path")?;
    let place = resolve(call, path);
    let metadata = std::fs::symlink_metadata(&place).map_err(|e| Error::io("read", path, &e))?;
    let kind = kind_of(metadata.file_type());
    let size = human_size(metadata.len());
    let modified = metadata
        .modified()
        .ok()
        .and_then(|time| Timestamp::try_from(time).ok())
        .map(|time| time.to_zoned_datetime(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string());
    let what = match kind {
        "file" => format!("a file of {size}"),
        "folder" => "a folder".to_owned(),
        "link" => "a symbolic link".to_owned(),
        _ => "a device, pipe or socket".to_owned(),
    };
    let when = modified.as_deref().unwrap_or("at an unknown time");
    let mut result = json!({
        "path": path, "kind": kind, "size_bytes": metadata.len(), "size": size, "modified": modified,
        "mode": mode_letters(metadata.mode()), "owner_id": metadata.uid(),
        "text": format!("{path} is {what}, last changed {when}"),
    });
    if kind == "link"
        && let Ok(target) = std::fs::read_link(&place)
    {
        result["target"] = target.to_string_lossy().into();
    }
    Ok(result)
}

/// `rwxr-xr-x`, as `ls` writes it.
fn mode_letters(mode: u32) -> String {
    let letter = |bit: u32| match (mode & (1 << bit) != 0, bit % 3) {
        (false, _) => '-',
        (true, 2) => 'r',
        (true, 1) => 'w',
        (true, _) => 'x',
    };
    (0..9).rev().map(letter).collect()
}
