//! What this machine has and lacks for `mote`: each check says what it found, how bad that is, and what mends it.
//!
//! Looking changes nothing: a file that is made to try whether a folder can be written is gone at once. Only a store that is
//! there is opened, which mends it as every open does.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use mote_model::{Bundle, KvKind, MemoryNeed};
use serde::Serialize;

use crate::bundles;
use crate::cancel::Cancel;
use crate::home::Home;
use crate::machine;
use crate::store::Store;
use crate::tools::{mcp, sandbox};

/// Less free disk than this stops imports and soon the queue, in bytes.
const LOW_DISK_BYTES: u64 = 256 << 20;

/// Less free disk than this stops nearly everything, in bytes.
const NO_DISK_BYTES: u64 = 8 << 20;

/// The context window that commands take by default, in tokens.
const MEMORY_CONTEXT: usize = 4096;

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
pub fn examine(home: &Home, cancel: &Cancel) -> Vec<Check> {
    let mut checks = vec![state_folder(home), disk(home), store(home), clock(SystemTime::now()), threads(), kernels()];
    checks.extend(model(home));
    checks.push(servers(home, cancel));
    checks.push(sandbox());
    checks
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

fn store(home: &Home) -> Check {
    const NAME: &str = "store";
    let file = home.store();
    if !file.exists() {
        return Check::ok(NAME, format!("{} (made when first needed)", file.display()));
    }
    match Store::open(&file) {
        Ok(store) if store.notices().is_empty() => Check::ok(NAME, file.display().to_string()),
        Ok(store) => Check::warning(NAME, store.notices().join("; "), "look with `mote queue status`"),
        Err(error) => {
            Check::error(NAME, error.message(), error.hint().unwrap_or("look with `mote queue verify`").to_owned())
        }
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

fn kernels() -> Check {
    const NAME: &str = "kernels";
    let chosen = mote_kernels::dispatch().name();
    let available: Vec<_> = mote_kernels::Dispatch::available().map(|backend| backend.name()).collect();
    match std::env::var(mote_kernels::KERNELS_VARIABLE) {
        Ok(wanted) if wanted != chosen => Check::warning(
            NAME,
            format!("{chosen}, though {} asks for: {wanted}", mote_kernels::KERNELS_VARIABLE),
            format!("choose one of: {}", available.join(", ")),
        ),
        _ if available.len() == 1 => Check::warning(
            NAME,
            format!("{chosen}: no faster ones for this CPU"),
            "a CPU with AVX2 and FMA runs models several times as fast",
        ),
        _ => Check::ok(NAME, format!("{chosen} (available: {})", available.join(", "))),
    }
}

/// The default bundle, and the memory that it needs.
fn model(home: &Home) -> Vec<Check> {
    const NAME: &str = "default model";
    let opened = bundles::resolve(home, None).and_then(|folder| Ok(Bundle::open(&folder)?));
    let bundle = match opened {
        Ok(bundle) => bundle,
        Err(error) => {
            return vec![Check::error(NAME, error.message(), error.hint().unwrap_or("import a bundle").to_owned())];
        }
    };
    let manifest = bundle.manifest();
    let need = manifest.memory_need(MEMORY_CONTEXT.min(manifest.context_length), KvKind::F16);
    vec![Check::ok(NAME, manifest.name.clone()), memory(&need, machine::available_memory())]
}

/// Weights are mapped, so that too little memory makes them be read again and again, and slow.
fn memory(need: &MemoryNeed, available: Option<u64>) -> Check {
    const NAME: &str = "memory";
    const FIX: &str = "stop other programs, pass --kv int8 or a smaller --context, or import a smaller model";
    match available {
        Some(available) if available < need.total() => {
            Check::warning(NAME, format!("{} available, the model takes {need}", mib(available)), FIX)
        }
        Some(available) => Check::ok(NAME, format!("{} available, the model takes {need}", mib(available))),
        None => Check::warning(NAME, format!("unknown, the model takes {need}"), "look with `free`"),
    }
}

/// `mcp.json`, and whether the commands in it are there.
fn servers(home: &Home, cancel: &Cancel) -> Check {
    const NAME: &str = "mcp servers";
    let file = home.mcp_json();
    if !file.exists() {
        return Check::ok(NAME, format!("none: no {}", file.display()));
    }
    let configuration = match mcp::read(&file, cancel) {
        Ok(configuration) => configuration,
        Err(error) => {
            return Check::error(NAME, error.message(), error.hint().unwrap_or("correct the file").to_owned());
        }
    };
    let absent = configuration.servers.iter().filter(|server| !is_program(&server.command));
    let absent = absent.map(|server| format!("server {}: no such program: {}", server.name, server.command));
    let faults: Vec<String> = configuration.notices.iter().cloned().chain(absent).collect();
    if faults.is_empty() {
        return Check::ok(NAME, format!("{} in {}", configuration.servers.len(), file.display()));
    }
    Check::warning(NAME, faults.join("; "), format!("install what is missing, or correct {}", file.display()))
}

/// Whether servers and packs can be confined.
fn sandbox() -> Check {
    const NAME: &str = "sandbox";
    let lacking = sandbox::lacking();
    if lacking.is_empty() {
        return Check::ok(NAME, "landlock and seccomp");
    }
    Check::warning(
        NAME,
        lacking.join("; "),
        "use a kernel with landlock (5.19 or later, `lsm=landlock,..` at boot) and seccomp",
    )
}

/// Whether a command names a file, itself or in a folder of `PATH`.
fn is_program(command: &str) -> bool {
    if command.contains('/') {
        return Path::new(command).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(command).is_file())
}

fn nearest_existing(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|part| part.exists()).map(Path::to_path_buf)
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_mote_is_not_trusted() {
        let at = |seconds| clock(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).status;
        assert_eq!(
            (at(0), at(EARLIEST_CLOCK_S - 1), at(EARLIEST_CLOCK_S)),
            (Level::Warning, Level::Warning, Level::Ok)
        );
    }

    #[test]
    fn memory_is_compared_with_what_the_model_takes() {
        let need = MemoryNeed {
            weights: 60 << 20,
            kv: 10 << 20,
            scratch: 10 << 20,
            tokenizer: 10 << 20,
            program: 10 << 20,
            context: 4096,
            kv_kind: KvKind::F16,
        };
        let at = |available| memory(&need, available).status;
        assert_eq!((at(Some(99 << 20)), at(Some(100 << 20)), at(None)), (Level::Warning, Level::Ok, Level::Warning));
    }
}
