//! Ctrl-C: the first asks the running work to stop, the second ends the process at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::cancel::Cancel;
use crate::error::{Error, ErrorKind, Result};

/// The exit code of a process that was interrupted.
const INTERRUPTED: i32 = 130;

/// Lets an interrupt or a request to terminate set `cancel`; one that finds it set already ends the process with 130.
///
/// # Errors
/// `Failed` if the operating system refuses the handler.
pub(crate) fn install(cancel: &Cancel) -> Result<()> {
    let asked: Arc<AtomicBool> = cancel.flag();
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&asked))
            .and_then(|_| flag::register(signal, Arc::clone(&asked)))
            .map_err(|error| Error::new(ErrorKind::Failed, format!("cannot listen for ctrl-c: {error}")))?;
    }
    Ok(())
}
