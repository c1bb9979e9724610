//! What the operating system offers only through `unsafe`, and what is done with processes without it.
//!
//! The one `unsafe` block of the `mote` package lies here. It does not start processes: `tools` does.

#![expect(unsafe_code, reason = "a parent-death signal can only be set between fork and exec")]

use std::os::unix::process::CommandExt;

use rustix::process::{Pid, Signal, kill_process, kill_process_group, set_parent_process_death_signal};

/// Asks the kernel to kill the child when the thread that starts it ends, however it ends.
///
/// Start the child from a thread that lives as long as the child should: the main thread of a guardian.
pub fn die_with_parent(command: &mut impl CommandExt) {
    // SAFETY: the closure runs in the forked child before exec; it makes one system call, allocates nothing and takes no lock,
    // so it is async-signal-safe.
    unsafe {
        command.pre_exec(|| set_parent_process_death_signal(Some(Signal::KILL)).map_err(Into::into));
    }
}

/// Sends `signal` to the process group that `leader` leads; a group that is gone is fine.
pub fn signal_group(leader: u32, signal: Signal) {
    if let Some(pid) = pid(leader) {
        let _ = kill_process_group(pid, signal);
    }
}

/// Kills one process; one that is gone is fine.
pub fn kill(process: u32) {
    if let Some(pid) = pid(process) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The process id as rustix wants it; `None` for what can be no process of ours (0 and 1 mean groups and init).
pub fn pid(process: u32) -> Option<Pid> {
    i32::try_from(process).ok().filter(|id| *id > 1).and_then(Pid::from_raw)
}

/// The ids of the processes whose parent is `parent`, from `/proc`; empty where there is none.
pub fn children_of(parent: u32) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| parent_of(*id) == Some(parent)).collect()
}

/// The second field after the command name in `/proc/ID/stat`; the name may hold anything, so the last `)` is looked for.
fn parent_of(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
