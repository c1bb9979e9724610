//! How many threads are worth starting.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use mote_kernels::MAX_THREADS;

/// Physical cores as Linux tells them, or the parallelism the system offers, whichever is less.
pub(crate) fn physical_cores() -> usize {
    let offered = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = sibling_lists(Path::new("/sys/devices/system/cpu"), offered);
    offered.min(if cores == 0 { offered } else { cores }).clamp(1, MAX_THREADS)
}

/// Hardware threads of one core carry the same list of siblings.
fn sibling_lists(root: &Path, n_cpus: usize) -> usize {
    let list = |cpu: usize| fs::read_to_string(root.join(format!("cpu{cpu}/topology/thread_siblings_list"))).ok();
    (0..n_cpus).filter_map(list).collect::<BTreeSet<String>>().len()
}
