//! What this machine has and lacks for `mote`: each check says what it found, how bad that is, and what mends it.
//!
//! Looking changes nothing: a file that is made to try whether a folder can be written is gone at once.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::bundles;
use crate::home::Home;
use crate::machine;

/// Less free disk than this stops imports and soon the queue, in bytes.
const LOW_DISK_BYTES: u64 = 256 << 20;

/// Less free disk than this stops nearly everything, in bytes.
const NO_DISK_BYTES: u64 = 8 << 20;

/// A clock before this is wrong, since mote is younger: 2026-01-01 in seconds since 1970.
const EARLIEST_CLOCK_S: u64 = 1_767_225_600;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Something will be slow, missing or soon wrong.
    Warning,
    /// `mote run` cannot work like this.
    Error,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How bad it is.
    pub status: Level,
    /// What was found.
    pub found: String,
    /// What mends it, unless it is as it should be.
    pub fix: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, status: Level::Ok, found: found.into(), fix: None }
    }

    fn warning(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Check {
        Check { name, status: Level::Warning, found: found.into(), fix: Some(fix.into()) }
    }

    fn error(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Check {
        Check { name, status: Level::Error, found: found.into(), fix: Some(fix.into()) }
    }
}

/// Looks at everything, in the order in which things are needed.
pub fn examine(home: &Home) -> Vec<Check> {
    vec![state_folder(home), disk(home), clock(SystemTime::now()), threads(), model(home)]
}

fn state_folder(home: &Home) -> Check {
    const NAME: &str = "state folder";
    let folder = home.data();
    let Some(existing) = nearest_existing(folder) else {
        return Check::error(
            NAME,
            format!("no part of it exists: {}", folder.display()),
            "set MOTE_HOME to a folder that you may write",
        );
    };
    if !existing.is_dir() {
        return Check::error(
            NAME,
            format!("a file stands in its place: {}", existing.display()),
            "move the file away, or set MOTE_HOME to a folder",
        );
    }
    match tempfile::tempfile_in(&existing) {
        Ok(_) if existing == folder => Check::ok(NAME, folder.display().to_string()),
        Ok(_) => Check::ok(NAME, format!("{} (made when first needed)", folder.display())),
        Err(error) => Check::error(
            NAME,
            format!("cannot write ({error}): {}", existing.display()),
            "make the folder writable for this user, or set MOTE_HOME to another one",
        ),
    }
}

fn disk(home: &Home) -> Check {
    const NAME: &str = "free disk";
    const FIX: &str = "delete what is not needed on this file system, or set MOTE_HOME to a folder on another one";
    match nearest_existing(home.data()).and_then(|folder| machine::free_disk(&folder)) {
        Some(bytes) if bytes < NO_DISK_BYTES => Check::error(NAME, mib(bytes), FIX),
        Some(bytes) if bytes < LOW_DISK_BYTES => Check::warning(NAME, mib(bytes), FIX),
        Some(bytes) => Check::ok(NAME, mib(bytes)),
        None => Check::warning(NAME, "unknown: the file system does not say", "look with `df`"),
    }
}

fn clock(now: SystemTime) -> Check {
    const NAME: &str = "clock";
    let earliest = SystemTime::UNIX_EPOCH + Duration::from_secs(EARLIEST_CLOCK_S);
    if now < earliest {
        return Check::warning(
            NAME,
            "earlier than mote itself",
            "set the clock, or start a time service; times in records are marked as not trusted",
        );
    }
    Check::ok(NAME, "plausible")
}

fn threads() -> Check {
    const NAME: &str = "threads";
    match std::thread::available_parallelism() {
        Ok(n_threads) => Check::ok(NAME, n_threads.to_string()),
        Err(error) => Check::warning(NAME, format!("unknown: {error}"), "pass --threads"),
    }
}

fn model(home: &Home) -> Check {
    const NAME: &str = "default model";
    match bundles::resolve(home, None) {
        Ok(folder) => Check::ok(NAME, folder.display().to_string()),
        Err(error) => Check::error(NAME, error.message(), error.hint().unwrap_or("import a bundle").to_owned()),
    }
}

fn nearest_existing(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|part| part.exists()).map(Path::to_path_buf)
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}
