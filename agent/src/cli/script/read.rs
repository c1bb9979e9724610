//! Reading a program: a file, a pipe, or standard input, which Ctrl-C ends even where nobody writes to it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;

use super::MAX_SOURCE_BYTES;
use crate::cancel::{Cancel, POLL};
use crate::cli::model::cancelled;
use crate::error::{Error, ErrorKind, Result};

/// The program in `file`, or on standard input for `-`.
pub(super) fn source(file: &Path, cancel: &Cancel) -> Result<String> {
    let (sender, receiver) = sync_channel(1);
    let path = file.to_owned();
    background(move || drop(sender.send(read(&path))))?;
    receive(&receiver, cancel)?.unwrap_or_else(|| Err(unreadable(file, "the reader has ended")))
}

/// Runs what may block for ever on a thread of its own, which ends with the process.
pub(super) fn background(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let started = thread::Builder::new().name("read".to_owned()).spawn(work);
    started.map(drop).map_err(|error| Error::new(ErrorKind::Failed, format!("cannot start a thread: {error}")))
}

/// The next thing that comes; none if nothing will.
pub(super) fn receive<T>(receiver: &Receiver<T>, cancel: &Cancel) -> Result<Option<T>> {
    loop {
        match receiver.recv_timeout(POLL) {
            Ok(received) => return Ok(Some(received)),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) if cancel.is_cancelled() => return Err(cancelled()),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

fn read(file: &PathBuf) -> Result<String> {
    let mut source = String::new();
    let read = if file == Path::new("-") {
        io::stdin().lock().take(MAX_SOURCE_BYTES + 1).read_to_string(&mut source)
    } else {
        File::open(file).and_then(|file| file.take(MAX_SOURCE_BYTES + 1).read_to_string(&mut source))
    };
    read.map_err(|error| unreadable(file, &error.to_string()))?;
    if source.len() as u64 > MAX_SOURCE_BYTES {
        return Err(unreadable(file, &format!("longer than its limit of {MAX_SOURCE_BYTES} bytes")));
    }
    Ok(source)
}

fn unreadable(file: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Usage, format!("cannot read the program ({why}): {}", file.display()))
}
