//! Which process writes a trajectory, so that one left behind by a crash is told from one that is being written.
//!
//! A process is named by the boot of its machine, its id and its start; read from `/proc`. Where that is missing, or
//! belongs to another container, a process counts as running: nothing is dropped or resumed by mistake.

use std::fs;

/// The name of this process; empty where there is no `/proc`.
pub(super) fn this_process() -> String {
    named(std::process::id()).unwrap_or_default()
}

/// Whether the process with this name may still be running.
pub(super) fn is_running(owner: &str) -> bool {
    let Some(boot) = boot() else { return true };
    match owner.split_once(' ') {
        None => true,
        Some((its_boot, _)) if its_boot != boot => false,
        Some((_, process)) => {
            let pid = process.split(' ').next().and_then(|pid| pid.parse().ok());
            pid.and_then(named).is_some_and(|name| name == owner)
        }
    }
}

pub(super) fn named(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of the program stands in parentheses and may hold any character; the start is field 22, the 20th after it.
    let start = stat.rsplit_once(") ")?.1.split(' ').nth(19)?;
    Some(format!("{} {pid} {start}", boot()?))
}

fn boot() -> Option<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_runs_and_others_do_not() {
        let name = this_process();
        assert!(is_running(&name), "{name}");
        assert!(!is_running(&format!("{name}0")));
        assert!(!is_running("another-boot 1 1"));
        assert!(is_running(""));
    }
}
