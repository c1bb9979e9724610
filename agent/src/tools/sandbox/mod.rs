//! What servers and packs may reach of the machine: files, sockets, system calls.
//!
//! Landlock bounds files (and TCP, and signals), seccomp sockets and the system calls that no tool needs. Both bind the thread that
//! asks for them and all that it starts, for ever: the guardian starts a server from such a thread, and a call of a pack runs in
//! one of its own. Nothing here needs privileges.
//!
//! [`SandboxMode::Auto`] takes what the kernel has and says what it lacks; [`SandboxMode::On`] refuses to go on without all of it.

mod grants;
mod kernel;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

pub(crate) use grants::for_server;
pub(crate) use kernel::confine_this_thread;

/// How much of a sandbox there has to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SandboxMode {
    /// None.
    Off,
    /// What the kernel has; what it lacks is said.
    #[default]
    Auto,
    /// All of it, or nothing runs.
    On,
}

/// Which sockets may be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Sockets {
    Any,
    /// Those that ask the kernel about its network interfaces.
    Netlink,
    None,
}

/// What somebody may reach; a folder stands for all that lies below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confinement {
    /// Files that may be read and, where `programs` says so, run.
    pub(crate) read: Vec<PathBuf>,
    /// Files that may be read and changed.
    pub(crate) write: Vec<PathBuf>,
    pub(crate) sockets: Sockets,
    /// Whether other programs may be started.
    pub(crate) programs: bool,
    /// Whether it is all or nothing.
    pub(crate) strict: bool,
}

/// The packs that take paths, and are held to the folders that a person named.
const PATH_PACKS: [&str; 2] = ["fs", "data"];

/// The pack that works on mote's own store.
const STORE_PACK: &str = "notes";

/// What a call of `pack` may reach; `None` for one that is not confined.
pub(crate) fn for_pack(
    pack: &str,
    mode: SandboxMode,
    working_dir: &Path,
    readable: &[PathBuf],
    writable: &[PathBuf],
) -> Option<Confinement> {
    if mode == SandboxMode::Off || pack == STORE_PACK {
        return None;
    }
    let held = PATH_PACKS.contains(&pack);
    let below = |folders: &[PathBuf]| folders.iter().map(|folder| working_dir.join(folder)).collect();
    Some(Confinement {
        read: if held && !readable.is_empty() { below(readable) } else { vec![PathBuf::from("/")] },
        write: if held { below(writable) } else { Vec::new() },
        sockets: Sockets::Netlink,
        programs: false,
        strict: mode == SandboxMode::On,
    })
}

/// What this kernel lacks for a whole sandbox, each with what it means; empty if nothing.
pub fn lacking() -> Vec<String> {
    let probe = std::thread::Builder::new().name("mote-probe".to_owned()).spawn(kernel::lacking);
    match probe.map(std::thread::JoinHandle::join) {
        Ok(Ok(lacking)) => lacking,
        Ok(Err(_)) | Err(_) => vec!["it could not be tried what the kernel has".to_owned()],
    }
}

/// Finds out whether `mode` can be had; gives what a person should know.
///
/// # Errors
/// [`ErrorKind::Configuration`] in mode `on` where something is lacking.
pub(crate) fn open(mode: SandboxMode) -> Result<Option<String>> {
    let lacking = if mode == SandboxMode::Off { Vec::new() } else { lacking() };
    match mode {
        _ if lacking.is_empty() => Ok(None),
        SandboxMode::On => {
            Err(Error::new(ErrorKind::Configuration, format!("there is no whole sandbox here: {}", lacking.join("; ")))
                .with_hint("`--sandbox auto` goes on with what there is"))
        }
        _ => Ok(Some(format!("the sandbox is not whole: {}", lacking.join("; ")))),
    }
}
