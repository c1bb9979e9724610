//! `write`: atomic, and only below the writable folders.
//!
//! The way from the writable folder to the file is walked one folder at a time with `O_NOFOLLOW`, so that neither `..` nor a
//! symbolic link, not even one put there meanwhile, leads out. The text is written beside the target, flushed to the disk and
//! renamed over it: after a power cut there is the old file or the new one.

use crate::arguments::Arguments;
use crate::context::Call;
use crate::files::resolve;
use crate::{Error, ErrorKind};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fsync, mkdirat, open, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Appending reads the file first: it must stay small enough for that.
const MAX_APPENDED_BYTES: u64 = 16 << 20;
const MAX_TEMPORARY_NAMES: usize = 100;

pub(super) fn write(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let (path, text) = (arguments.path("path")?, arguments.str("text")?);
    let (root, below) = writable_root(call, path)?;
    let failed = |e: Errno| match e {
        Errno::LOOP | Errno::NOTDIR => {
            Error::new(ErrorKind::Permission, format!("a symbolic link or file is in the way: {path}"))
        }
        e => Error::io("write", path, &e.into()),
    };
    let (name, folders) = below.split_last().ok_or_else(|| is_folder(path))?;
    let mut folder = open(&root, FOLDER & !OFlags::NOFOLLOW, Mode::empty()).map_err(failed)?;
    for part in folders {
        folder = enter(&folder, part).map_err(failed)?;
    }
    let (old_mode, created) = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => (Some(Mode::from_raw_mode(stat.st_mode)), false),
            FileType::Directory => return Err(is_folder(path)),
            _ => return Err(failed(Errno::LOOP)),
        },
        Err(Errno::NOENT) => (None, true),
        Err(e) => return Err(failed(e)),
    };
    let mut bytes = Vec::new();
    if arguments.flag("append")? && !created {
        bytes = read_old(&folder, name, path)?;
    }
    bytes.extend_from_slice(text.as_bytes());
    replace(&folder, name, &bytes, old_mode).map_err(|e| Error::io("write", path, &e))?;
    Ok(json!({
        "path": path, "bytes_written": text.len(), "size_bytes": bytes.len(), "created": created,
        "text": format!("wrote {} to {path}", crate::bounds::counted(text.len(), "byte")),
    }))
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The writable folder that holds `path`, and the names from there to it.
fn writable_root(call: &Call<'_>, path: &str) -> Result<(PathBuf, Vec<OsString>), Error> {
    let writable = call.context.writable;
    let target = plain(&resolve(call, path));
    let real_target = std::fs::canonicalize(call.context.working_dir).ok().map(|dir| plain(&dir.join(path)));
    for root in writable {
        let root = call.context.working_dir.join(root);
        let real_root = std::fs::canonicalize(&root).unwrap_or_else(|_| root.clone());
        let below = target
            .strip_prefix(plain(&root))
            .ok()
            .or_else(|| real_target.as_ref().and_then(|target| target.strip_prefix(&real_root).ok()))
            .or_else(|| target.strip_prefix(&real_root).ok());
        if let Some(below) = below {
            return Ok((real_root, below.components().map(|part| part.as_os_str().to_owned()).collect()));
        }
    }
    let error = Error::new(ErrorKind::Permission, format!("may not write here: {path}"));
    Err(match writable.first() {
        Some(folder) => error.with_hint(format!("writable: {}", folder.display())),
        None => error.with_hint("no folder is writable in this session"),
    })
}

/// `path` without `.` and `..`, which are taken back by name.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// Opens the folder `name` in `folder`, made when it is missing.
fn enter(folder: &OwnedFd, name: &OsString) -> Result<OwnedFd, Errno> {
    match openat(folder, name, FOLDER, Mode::empty()) {
        Err(Errno::NOENT) => {
            mkdirat(folder, name, Mode::from_raw_mode(0o777))?;
            fsync(folder)?;
            openat(folder, name, FOLDER, Mode::empty())
        }
        other => other,
    }
}

fn read_old(folder: &OwnedFd, name: &OsString, path: &str) -> Result<Vec<u8>, Error> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, name, flags, Mode::empty()).map_err(|e| Error::io("read", path, &e.into()))?);
    let mut bytes = Vec::new();
    file.take(MAX_APPENDED_BYTES + 1).read_to_end(&mut bytes).map_err(|e| Error::io("read", path, &e))?;
    if bytes.len() as u64 > MAX_APPENDED_BYTES {
        return Err(Error::limit("file to append to in bytes", MAX_APPENDED_BYTES, bytes.len() as u64));
    }
    Ok(bytes)
}

/// Puts `bytes` in place of `name` at once.
fn replace(folder: &OwnedFd, name: &OsString, bytes: &[u8], mode: Option<Mode>) -> std::io::Result<()> {
    let (temporary, mut file) = temporary_file(folder)?;
    let mut write = || -> std::io::Result<()> {
        file.write_all(bytes)?;
        if let Some(mode) = mode {
            rustix::fs::fchmod(file.as_fd(), mode)?;
        }
        file.sync_all()?;
        renameat(folder, &temporary, folder, name)?;
        Ok(())
    };
    if let Err(e) = write() {
        // The first failure is the one to report; a temporary file that cannot be removed changes nothing about it.
        let _ = unlinkat(folder, &temporary, AtFlags::empty());
        return Err(e);
    }
    Ok(fsync(folder)?)
}

fn temporary_file(folder: &OwnedFd) -> std::io::Result<(String, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for _ in 0..MAX_TEMPORARY_NAMES {
        let name = format!(".mote-{}-{}.tmp", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        match openat(folder, &name, flags, Mode::from_raw_mode(0o666)) {
            Ok(file) => return Ok((name, File::from(file))),
            Err(Errno::EXIST) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(std::io::Error::other("no free name for a temporary file"))
}

fn is_folder(path: &str) -> Error {
    Error::invalid(format!("is a folder: {path}")).with_hint("give the name of a file in it")
}
