//! Reading a program: a file, a pipe, or standard input, which Ctrl-C ends even where nobody writes to it.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;

use super::MAX_SOURCE_BYTES;
use crate::cancel::{Cancel, POLL};
use crate::cli::model::cancelled;
use crate::error::{Error, ErrorKind, Result};
use crate::text_file::TextFile;

const PROGRAM: TextFile =
    TextFile { what: "the program", max_bytes: MAX_SOURCE_BYTES as usize, kind: ErrorKind::Usage, hint: None };

/// The program in `file`, or on standard input for `-`.
pub(super) fn source(file: &Path, cancel: &Cancel) -> Result<String> {
    if file == Path::new("-") { PROGRAM.read_stdin(cancel) } else { PROGRAM.read(file, cancel) }
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
