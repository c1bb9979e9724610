//! `disk`, `disks`: space on file systems.

use super::{percent, short_text};
use crate::Error;
use crate::arguments::Arguments;
use crate::bounds::{Rows, human_size};
use crate::context::Call;
use crate::files::resolve;
use rustix::fs::{StatVfs, statvfs};
use serde_json::{Value, json};

struct Space {
    total: u64,
    used: u64,
    /// What a program without privilege may still use.
    free: u64,
}

impl Space {
    fn of(found: &StatVfs) -> Self {
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Self {
            total: bytes(found.f_blocks),
            used: bytes(found.f_blocks.saturating_sub(found.f_bfree)),
            free: bytes(found.f_bavail),
        }
    }

    /// As `df` counts: of what is used or free, without the part reserved for root.
    fn used_percent(&self) -> f64 {
        percent(self.used, self.used.saturating_add(self.free))
    }
}

pub(super) fn disk(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let path = arguments.path("path")?;
    let found = statvfs(resolve(call, path)).map_err(|e| Error::io("look at", path, &e.into()))?;
    let space = Space::of(&found);
    let (total, free, used_percent) = (human_size(space.total), human_size(space.free), space.used_percent());
    Ok(json!({
        "path": path, "total_bytes": space.total, "used_bytes": space.used, "free_bytes": space.free,
        "total": total, "used": human_size(space.used), "free": free, "used_percent": used_percent,
        "text": format!("{free} of {total} are free on {path}, {used_percent}% is used"),
    }))
}

/// Only file systems on a device of this machine: asking a dead network mount would hang.
pub(super) fn disks(call: &Call<'_>) -> Result<Value, Error> {
    let mounts = short_text(call, "/proc/self/mounts").unwrap_or_default();
    let mut rows = Rows::new(call, usize::MAX);
    let mut seen = Vec::new();
    for line in mounts.lines() {
        call.check()?;
        let mut words = line.split(' ').map(unescaped);
        let (Some(device), Some(path), Some(kind)) = (words.next(), words.next(), words.next()) else { continue };
        if !device.starts_with("/dev/") || seen.contains(&device) {
            continue;
        }
        let Ok(found) = statvfs(super::place(call, &path)) else { continue };
        seen.push(device.clone());
        let space = Space::of(&found);
        let (total, free) = (human_size(space.total), human_size(space.free));
        let line = format!("{path}: {free} of {total} free");
        let row = json!({
            "path": path, "device": device, "kind": kind, "total_bytes": space.total, "free_bytes": space.free,
            "total": total, "free": free, "used_percent": space.used_percent(),
        });
        if !rows.push(row, &line) {
            break;
        }
    }
    let (count, truncated) = (rows.len(), rows.truncated());
    let (disks, text) = rows.finish(|| "no disk is mounted here; ask with system.disk(path=\"/\")".to_owned());
    Ok(json!({"count": count, "disks": disks, "truncated": truncated, "text": text}))
}

/// `/proc/mounts` writes a space as `\040`.
fn unescaped(word: &str) -> String {
    word.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}
