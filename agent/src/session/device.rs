//! Which machine this is, as a trajectory says it.

use mote_trajectory::{Device, Sha256};

/// The machine's id files, in the order in which they are tried.
const ID_FILES: [&str; 2] = ["/etc/machine-id", "/proc/sys/kernel/random/boot_id"];

/// This machine. The id is a digest of the operating system's own, mixed with our name so that it matches nobody else's;
/// without one it holds for the current boot only.
pub fn this_device() -> Device {
    let id = ID_FILES.iter().find_map(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    Device {
        id_hash: Sha256::of(format!("mote device {}", id.trim()).as_bytes()),
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        arch: std::env::consts::ARCH.to_owned(),
        os: std::env::consts::OS.to_owned(),
        binary_version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}
