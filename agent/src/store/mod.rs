//! The only place that speaks SQL: the queue of trajectories and the notes, in one SQLite file.
//!
//! Promise: what an append or a put acknowledged survives `kill -9` and power loss (WAL, `synchronous=FULL`). A file that is
//! damaged, or of a version this binary does not know, is set aside with a notice and a fresh one made, so that the
//! agent starts all the same; nothing is deleted. No call waits for another process beyond [`BUSY_TIMEOUT`].
//! After an I/O failure every call is refused until the store is opened again.
//!
//! It does not send, redact or judge anything.

mod file;
mod notes;
mod owner;
mod queue;
mod quota;
mod record;
#[cfg(test)]
pub(crate) mod tests;
mod verify;
mod writer;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use crate::error::{Error, ErrorKind, Result};

pub use notes::{LazyNotes, Notes};
pub use queue::{Counts, Entry, Limits, Queue, State};
pub use verify::{Damage, Verification};
pub use writer::Writer;

/// The longest that a call waits for another process that holds the file.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The file of queue and notes, opened. Clones share the connection.
#[derive(Clone, Debug)]
pub struct Store(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    connection: Mutex<Connection>,
    failed: AtomicBool,
    notices: Vec<String>,
    _lock: File,
}

impl Store {
    /// Opens the file at `path`, made with its folder if it is not there.
    ///
    /// # Errors
    /// `Configuration` if the folder or file cannot be written, `TryAgain` if the disk is full or another process keeps
    /// the file too long.
    pub fn open(path: &Path) -> Result<Store> {
        let (connection, lock, notices) = file::open(path)?;
        Ok(Store(Arc::new(Shared {
            path: path.to_owned(),
            connection: Mutex::new(connection),
            failed: AtomicBool::new(false),
            notices,
            _lock: lock,
        })))
    }

    /// What a person should know about the opening: a file that was set aside.
    pub fn notices(&self) -> &[String] {
        &self.0.notices
    }

    /// The queue of trajectories, within the default limits.
    pub fn queue(&self) -> Queue {
        self.queue_within(Limits::default())
    }

    /// The queue of trajectories, within `limits`.
    pub fn queue_within(&self, limits: Limits) -> Queue {
        Queue::new(self.clone(), limits)
    }

    /// The durable notes.
    pub fn notes(&self) -> Notes {
        Notes::new(self.clone())
    }

    fn run<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T> {
        let shared = &self.0;
        if shared.failed.load(Ordering::Acquire) {
            return Err(Error::new(
                ErrorKind::Failed,
                format!("store closed after a failure: {}", shared.path.display()),
            )
            .with_hint("look at the first message; then start again"));
        }
        let mut connection = shared.connection.lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut connection).map_err(|error| {
            let is_damage = is_damage(&error);
            if is_damage {
                file::suspect(&shared.path);
            }
            if is_damage || error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) {
                shared.failed.store(true, Ordering::Release);
            }
            explain(&shared.path, &error)
        })
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// What an error of SQLite means to a person, and the next step.
fn explain(path: &Path, error: &rusqlite::Error) -> Error {
    let path = path.display();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Error::new(ErrorKind::TryAgain, format!("no space left for the store: {path}"))
            .with_hint("free some space and try again; what was reported before is kept. `mote run --no-record` records nothing"),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            not_writable(&path.to_string())
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            Error::new(ErrorKind::TryAgain, format!("store in use by another process for too long: {path}"))
                .with_hint("wait for the other mote to end, then try again")
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Error::new(ErrorKind::Configuration, format!("store is damaged: {path}"))
                .with_hint("start again: a damaged file is set aside and a fresh one made")
        }
        Some(ErrorCode::SystemIoFailure) => {
            Error::new(ErrorKind::Failed, format!("cannot read or write the store: {path}: {error}"))
                .with_hint("check the disk (dmesg, free space), then start again")
        }
        _ => Error::new(ErrorKind::Failed, format!("store failed: {path}: {error}")),
    }
}

fn not_writable(path: &str) -> Error {
    Error::new(ErrorKind::Configuration, format!("store cannot be written: {path}"))
        .with_hint("make the folder writable, or set MOTE_HOME to one that is; `mote run --no-record` records nothing")
}
