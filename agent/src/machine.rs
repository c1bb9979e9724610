//! What the machine has, read from the kernel's own files: memory, free disk, the memory of this process.
//!
//! A figure that the machine does not give is `None`, never a guess.

use std::fs;
use std::path::Path;

/// Memory in bytes that can be had without swapping.
pub fn available_memory() -> Option<u64> {
    kib_field(&fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")
}

/// Bytes that an ordinary user may still write on the file system that holds `path`.
pub fn free_disk(path: &Path) -> Option<u64> {
    let status = rustix::fs::statvfs(path).ok()?;
    status.f_bavail.checked_mul(status.f_frsize)
}

/// The resident memory of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessMemory {
    /// Bytes of its own: heap and stacks.
    pub anonymous: u64,
    /// Bytes of mapped files, which the kernel may drop and read again.
    pub mapped: u64,
}

/// What this process holds in memory now.
pub fn process_memory() -> Option<ProcessMemory> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    Some(ProcessMemory { anonymous: kib_field(&text, "RssAnon")?, mapped: kib_field(&text, "RssFile")? })
}

/// The value of `name: 123 kB` in bytes.
fn kib_field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_what_is_odd_is_none() {
        let text = "MemTotal:  5 kB\nMemAvailable:     1234 kB\nBroken: x kB\nHuge: 18446744073709551615 kB\n";
        assert_eq!(kib_field(text, "MemAvailable"), Some(1234 * 1024));
        assert_eq!(kib_field(text, "MemAvail"), None);
        assert_eq!(kib_field(text, "Broken"), None);
        assert_eq!(kib_field(text, "Huge"), None);
    }

    #[test]
    fn this_machine_answers() {
        assert!(available_memory().unwrap() > 0);
        assert!(free_disk(Path::new("/")).is_some());
        assert!(process_memory().unwrap().anonymous > 0);
    }
}
