//! The most memory the process held, by looking again and again: the system keeps no peak of anonymous memory alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::machine::{self, ProcessMemory};

/// Between two looks: a look takes some 30 us, and a layer of a prompt, in which buffers come and go, 20 ms and more.
const EVERY: Duration = Duration::from_millis(20);

/// A thread that looks until this is dropped.
pub(super) struct PeakMemory {
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    anonymous: AtomicU64,
    mapped: AtomicU64,
    stop: AtomicBool,
}

impl PeakMemory {
    /// # Errors
    /// `Failed` if no thread can be started.
    pub(super) fn watch() -> Result<PeakMemory> {
        let seen = Arc::new(Seen::default());
        let looking = Arc::clone(&seen);
        thread::Builder::new()
            .name("mote-memory".to_owned())
            .spawn(move || {
                while !looking.stop.load(Ordering::Relaxed) {
                    looking.look();
                    thread::sleep(EVERY);
                }
            })
            .map_err(|error| Error::new(ErrorKind::Failed, format!("cannot start a thread: {error}")))?;
        Ok(PeakMemory { seen })
    }

    /// The peaks so far; none where the system does not tell.
    pub(super) fn peak(&self) -> Option<ProcessMemory> {
        self.seen.look();
        let peak = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let (anonymous, mapped) = (peak(&self.seen.anonymous), peak(&self.seen.mapped));
        (anonymous > 0).then_some(ProcessMemory { anonymous, mapped })
    }
}

impl Seen {
    fn look(&self) {
        if let Some(now) = machine::process_memory() {
            self.anonymous.fetch_max(now.anonymous, Ordering::Relaxed);
            self.mapped.fetch_max(now.mapped, Ordering::Relaxed);
        }
    }
}

impl Drop for PeakMemory {
    fn drop(&mut self) {
        self.seen.stop.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_freed_again_is_seen() {
        let memory = PeakMemory::watch().unwrap();
        let before = memory.peak().unwrap().anonymous;
        let n_bytes = 64 << 20;
        let buffer = std::hint::black_box(vec![1u8; n_bytes]);
        thread::sleep(10 * EVERY);
        drop(buffer);
        assert!(memory.peak().unwrap().anonymous >= before.max(n_bytes as u64));
    }
}
