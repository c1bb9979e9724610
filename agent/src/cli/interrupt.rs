//! Ctrl-C: the first asks the running work to stop, the second ends the process at once.

use std::process;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::cancel::{Cancel, POLL};
use crate::error::{Error, ErrorKind, Result};

/// The exit code of a process that was interrupted.
const INTERRUPTED: i32 = 130;

/// How long work may take to end by itself before the process ends: a person calls a quarter of a second "at once".
const GRACE: Duration = Duration::from_millis(250);

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

/// Ends the process shortly after `cancel` is set, for work that has nothing to lose: a step of a big model may take seconds
/// and cannot be broken off in its middle.
///
/// # Errors
/// `Failed` if no thread can be started.
pub(crate) fn end_soon_after(cancel: &Cancel) -> Result<()> {
    let cancel = cancel.clone();
    let wait = move || {
        while !cancel.is_cancelled() {
            thread::sleep(POLL);
        }
        thread::sleep(GRACE);
        process::exit(INTERRUPTED);
    };
    thread::Builder::new()
        .name("interrupt".to_owned())
        .spawn(wait)
        .map(drop)
        .map_err(|error| Error::new(ErrorKind::Failed, format!("cannot start a thread: {error}")))
}
