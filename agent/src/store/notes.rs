//! Durable notes, as the `notes` pack wants them; what was put is on disk when `put` returns.

use std::path::PathBuf;
use std::sync::OnceLock;

use mote_toolpacks::{Error, ErrorKind, Note};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::Store;

/// The longest key.
const KEY_BYTES_MAX: usize = 200;
/// The longest text: as much as one tool result may hold.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// The most notes: with the longest texts they stay as small as the queue.
const NOTES_MAX: i64 = 1_000;

/// The durable notes.
#[derive(Debug, Clone)]
pub struct Notes {
    store: Store,
}

impl Notes {
    pub(super) fn new(store: Store) -> Notes {
        Notes { store }
    }

    fn run<T>(&self, work: impl FnOnce(&mut Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        self.store.run(work).map_err(observed)
    }
}

/// The notes of a store that is opened when they are first asked for: calls of other tools do without it.
#[derive(Debug)]
pub struct LazyNotes {
    path: PathBuf,
    notes: OnceLock<Result<Notes, Error>>,
}

impl LazyNotes {
    /// Those of the store at `path`.
    pub fn at(path: PathBuf) -> LazyNotes {
        LazyNotes { path, notes: OnceLock::new() }
    }

    fn notes(&self) -> Result<&Notes, Error> {
        let opened = self.notes.get_or_init(|| Store::open(&self.path).map(|store| store.notes()).map_err(observed));
        opened.as_ref().map_err(Error::clone)
    }
}

impl mote_toolpacks::Notes for LazyNotes {
    fn put(&self, key: &str, text: &str) -> Result<(), Error> {
        self.notes()?.put(key, text)
    }

    fn get(&self, key: &str) -> Result<Option<String>, Error> {
        self.notes()?.get(key)
    }

    fn search(&self, query: &str, limit: usize) -> Result<Vec<Note>, Error> {
        self.notes()?.search(query, limit)
    }

    fn delete(&self, key: &str) -> Result<bool, Error> {
        self.notes()?.delete(key)
    }
}

/// An error of the store as a tool's.
fn observed(error: crate::error::Error) -> Error {
    let observed = Error::new(ErrorKind::Io, error.message());
    error.hint().map_or(observed.clone(), |hint| observed.with_hint(hint))
}

impl mote_toolpacks::Notes for Notes {
    fn put(&self, key: &str, text: &str) -> Result<(), Error> {
        limited("bytes of a note's key", KEY_BYTES_MAX, key.len())?;
        limited("bytes of a note", TEXT_BYTES_MAX, text.len())?;
        let n_notes = self.run(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute("INSERT OR REPLACE INTO notes VALUES (?1, ?2)", [key, text])?;
            let n_notes = transaction.query_row("SELECT count(*) FROM notes", [], |row| row.get(0))?;
            if n_notes <= NOTES_MAX {
                transaction.commit()?;
            }
            Ok(n_notes)
        })?;
        limited("notes", NOTES_MAX, n_notes)
    }

    fn get(&self, key: &str) -> Result<Option<String>, Error> {
        self.run(|connection| {
            connection.query_row("SELECT text FROM notes WHERE key = ?1", [key], |row| row.get(0)).optional()
        })
    }

    fn search(&self, query: &str, limit: usize) -> Result<Vec<Note>, Error> {
        let query = query.to_lowercase();
        let mut found = Vec::new();
        self.run(|connection| {
            let mut statement = connection.prepare("SELECT key, text FROM notes ORDER BY key")?;
            let mut rows = statement.query([])?;
            while found.len() < limit
                && let Some(row) = rows.next()?
            {
                let note = Note { key: row.get(0)?, text: row.get(1)? };
                if note.key.to_lowercase().contains(&query) || note.text.to_lowercase().contains(&query) {
                    found.push(note);
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn delete(&self, key: &str) -> Result<bool, Error> {
        self.run(|connection| Ok(connection.execute("DELETE FROM notes WHERE key = ?1", [key])? > 0))
    }
}

fn limited<N: PartialOrd + TryInto<u64>>(what: &str, limit: N, used: N) -> Result<(), Error> {
    if used <= limit {
        return Ok(());
    }
    let number = |n: N| n.try_into().unwrap_or(u64::MAX);
    Err(Error::limit(what, number(limit), number(used)).with_hint("shorten it, or delete notes that are not needed"))
}
