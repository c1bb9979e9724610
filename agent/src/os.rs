//! What the operating system offers only through `unsafe`, and what is done with processes without it.
//!
//! The `unsafe` blocks of the `mote` package lie here. It does not start processes: `tools` does.

#![expect(unsafe_code, reason = "a parent-death signal can only be set between fork and exec, a map needs a promise")]

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;

use memmap2::Mmap;
use rustix::param::page_size;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, set_parent_process_death_signal, waitid,
};

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

/// Maps a whole file, to be read. The file is to be one that is only ever replaced by another under its name.
///
/// # Errors
/// Those of the system; an empty file cannot be mapped.
pub fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the map is read-only and private; the catalogue's file is written beside its place and renamed, never in place, so the
    // bytes behind the slice do not change while it is borrowed.
    unsafe { Mmap::map(file) }
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

/// The ids of the processes below `ancestor`, at most `limit`; one that comes or goes meanwhile may be missed.
pub fn descendants_of(ancestor: u32, limit: usize) -> Vec<u32> {
    let mut found = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        let children = listed_children(parent).unwrap_or_else(|| children_of(parent));
        let room = limit.saturating_sub(found.len());
        found.extend(children.iter().take(room));
        parents.extend(children.iter().take(room));
    }
    found
}

/// Reaps the children of this process that have ended, but for `kept`, for which another thread waits.
pub fn reap_children_but(kept: u32) {
    let children = listed_children(std::process::id()).unwrap_or_else(|| children_of(std::process::id()));
    for id in children.into_iter().filter(|child| *child != kept).filter_map(pid) {
        let _ = waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }
}

/// The memory of a process that is backed by no file, in bytes; 0 for one that is gone.
pub fn anonymous_bytes(process: u32) -> u64 {
    let pages = |text: String| {
        let mut fields = text.split_whitespace().skip(1).map(|field| field.parse::<u64>().unwrap_or(0));
        Some(fields.next()?.saturating_sub(fields.next()?))
    };
    let text = std::fs::read_to_string(format!("/proc/{process}/statm"));
    text.ok().and_then(pages).unwrap_or(0).saturating_mul(u64::try_from(page_size()).unwrap_or(4096))
}

/// The children as the kernel lists them for each thread; `None` where it does not.
fn listed_children(parent: u32) -> Option<Vec<u32>> {
    let mut ids = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{parent}/task")).ok()?.flatten() {
        let text = std::fs::read_to_string(thread.path().join("children")).ok()?;
        ids.extend(text.split_whitespace().filter_map(|id| id.parse::<u32>().ok()));
    }
    Some(ids)
}

/// The second field after the command name in `/proc/ID/stat`; the name may hold anything, so the last `)` is looked for.
fn parent_of(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
