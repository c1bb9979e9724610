//! What a call is given: where it works, how much it may use, where notes live.

use crate::{Error, ErrorKind};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How much one call may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallLimits {
    /// Bytes of JSON of a result.
    pub max_result_bytes: usize,
    /// Entries of a list in a result: files, lines, rows, processes.
    pub max_entries: usize,
    /// Wall time.
    pub timeout: Duration,
}

impl Default for CallLimits {
    /// 64 KiB, 1,000 entries and 10 seconds: far above what a prompt holds, far below the memory of a board.
    fn default() -> Self {
        Self { max_result_bytes: 64 << 10, max_entries: 1000, timeout: Duration::from_secs(10) }
    }
}

/// The surroundings of one call.
#[derive(Clone, Copy)]
pub struct CallContext<'a> {
    /// Relative paths start here.
    pub working_dir: &'a Path,
    /// How much the call may use.
    pub limits: CallLimits,
    /// Folders under which `fs.write` may write; none when empty. Relative ones start at `working_dir`.
    pub writable: &'a [PathBuf],
    /// The durable memory behind the `notes` pack.
    pub notes: &'a dyn Notes,
    /// Asked at short intervals; `true` ends the call with [`ErrorKind::Cancelled`].
    pub cancelled: &'a dyn Fn() -> bool,
    /// Where `/proc`, `/sys`, `/var/log` and `/dev/kmsg` are found: `/`, or a folder that simulates a machine.
    pub system_root: &'a Path,
}

impl<'a> CallContext<'a> {
    /// Default limits, nothing writable, never cancelled, the real machine.
    pub fn new(working_dir: &'a Path, notes: &'a dyn Notes) -> Self {
        Self {
            working_dir,
            limits: CallLimits::default(),
            writable: &[],
            notes,
            cancelled: &|| false,
            system_root: Path::new("/"),
        }
    }
}

/// One running call: its context and when it must end.
pub(crate) struct Call<'a> {
    pub(crate) context: &'a CallContext<'a>,
    started: Instant,
}

impl<'a> Call<'a> {
    pub(crate) fn start(context: &'a CallContext<'a>) -> Self {
        Self { context, started: Instant::now() }
    }

    /// An error once the call is cancelled or out of time; to be asked in every loop.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if (self.context.cancelled)() {
            return Err(Error::new(ErrorKind::Cancelled, "the call was cancelled"));
        }
        let (limit, used) = (self.context.limits.timeout, self.started.elapsed());
        if used > limit {
            return Err(Error::limit("time in milliseconds", millis(limit), millis(used))
                .with_hint("ask for less: a smaller folder, file or query"));
        }
        Ok(())
    }

    /// Bytes of JSON which the list and the text of a result may take together.
    pub(crate) fn max_body_bytes(&self) -> usize {
        self.context.limits.max_result_bytes.saturating_sub(RESULT_FRAME_BYTES)
    }
}

/// Room kept for keys, counts and echoed arguments around the lists and texts of a result.
const RESULT_FRAME_BYTES: usize = 512;

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A remembered text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Its name.
    pub key: String,
    /// What was remembered.
    pub text: String,
}

/// Durable memory; the agent's store implements it.
pub trait Notes: Sync {
    /// Remembers `text` under `key`, in place of what was there.
    fn put(&self, key: &str, text: &str) -> Result<(), Error>;
    /// The text under `key`.
    fn get(&self, key: &str) -> Result<Option<String>, Error>;
    /// At most `limit` notes whose key or text contains `query` in any case, all when it is empty, in order of key.
    fn search(&self, query: &str, limit: usize) -> Result<Vec<Note>, Error>;
    /// Forgets `key`; whether it was there.
    fn delete(&self, key: &str) -> Result<bool, Error>;
}

/// Notes that live as long as the process, for tests.
#[derive(Debug, Default)]
pub struct MemoryNotes(Mutex<BTreeMap<String, String>>);

impl Notes for MemoryNotes {
    fn put(&self, key: &str, text: &str) -> Result<(), Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), text.to_owned());
        Ok(())
    }

    fn get(&self, key: &str) -> Result<Option<String>, Error> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }

    fn search(&self, query: &str, limit: usize) -> Result<Vec<Note>, Error> {
        let query = query.to_lowercase();
        let notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = notes
            .iter()
            .filter(|(key, text)| key.to_lowercase().contains(&query) || text.to_lowercase().contains(&query));
        Ok(found.take(limit).map(|(key, text)| Note { key: key.clone(), text: text.clone() }).collect())
    }

    fn delete(&self, key: &str) -> Result<bool, Error> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key).is_some())
    }
}
