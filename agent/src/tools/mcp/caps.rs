//! What a server may use of the machine: memory and processes, its own and those of all that it starts.
//!
//! Two bounds of memory work together. The kernel lets no single process write to more than [`DATA_FACTOR`] times the cap, at
//! once and without anybody looking; the guardian looks every [`LOOK_EVERY`] at what all of them hold together.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use serde::{Deserialize, Serialize};

use crate::os;

/// How often the guardian looks at what is used.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Memory of a server where its entry does not say, in MiB: a Node or Python server takes 50 to 200.
pub(super) const MEMORY_MIB: u64 = 1024;

/// Processes of one server; those of a browser are some thirty.
const MAX_PROCESSES: usize = 64;

/// What one process may reserve in writable memory, over the cap: stacks of threads and heaps are reserved and never used.
const DATA_FACTOR: u64 = 2;

/// The caps of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Caps {
    pub(super) memory_mib: u64,
}

impl Caps {
    /// Has the kernel bound each process that this one starts; no process of a server leaves a core file.
    pub(super) fn impose(self) -> Result<(), String> {
        let bytes = (self.memory_mib << 20).saturating_mul(DATA_FACTOR);
        for (resource, limit) in [(Resource::Data, bytes), (Resource::Core, 0)] {
            let limit = Rlimit { current: Some(limit), maximum: Some(limit) };
            setrlimit(resource, limit).map_err(|error| format!("cannot bound the server: {error}"))?;
        }
        Ok(())
    }

    /// Which cap the descendants of this process are over, if any.
    pub(super) fn exceeded(self) -> Option<String> {
        let processes = os::descendants_of(std::process::id(), MAX_PROCESSES + 1);
        if processes.len() > MAX_PROCESSES {
            return Some(format!("too many processes of one server: limit {MAX_PROCESSES}, used more"));
        }
        let used = processes.iter().map(|id| os::anonymous_bytes(*id)).sum::<u64>() >> 20;
        (used > self.memory_mib)
            .then(|| format!("the server takes too much memory, in MiB: limit {}, used {used}", self.memory_mib))
    }
}
