//! Durable notes: text under a key.

use rusqlite::OptionalExtension;

use super::Store;
use crate::error::{Error, ErrorKind, Result};

/// The longest key and the longest text, in bytes, and the most notes: together they stay below what a board can spare.
pub(super) const KEY_BYTES_MAX: usize = 200;
/// See [`KEY_BYTES_MAX`].
pub(super) const TEXT_BYTES_MAX: usize = 64 << 10;
/// See [`KEY_BYTES_MAX`].
pub(super) const NOTES_MAX: usize = 1_000;

/// The durable notes.
#[derive(Debug, Clone)]
pub struct Notes {
    store: Store,
}

impl Notes {
    pub(super) fn new(store: Store) -> Notes {
        Notes { store }
    }

    /// Remembers `text` under `key`, in place of what was there; durable when it returns.
    ///
    /// # Errors
    /// `Failed` with limit and used for a key, a text or a number of notes above its limit; else as the store's.
    pub fn put(&self, key: &str, text: &str) -> Result<()> {
        limited("bytes of a note's key", KEY_BYTES_MAX, key.len())?;
        limited("bytes of a note", TEXT_BYTES_MAX, text.len())?;
        let others = self.store.run(|connection| {
            connection.query_row("SELECT count(*) FROM notes WHERE key <> ?1", [key], |row| row.get::<_, i64>(0))
        })?;
        limited("notes", NOTES_MAX, usize::try_from(others).unwrap_or(usize::MAX).saturating_add(1))?;
        self.store
            .run(|connection| connection.execute("INSERT OR REPLACE INTO notes VALUES (?1, ?2)", [key, text]).map(drop))
    }

    /// The text under `key`.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn get(&self, key: &str) -> Result<Option<String>> {
        self.store.run(|connection| {
            connection.query_row("SELECT text FROM notes WHERE key = ?1", [key], |row| row.get(0)).optional()
        })
    }

    /// At most `limit` notes, key and text, that contain `query` in any case, all when it is empty, in order of key.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn search(&self, query: &str, limit: usize) -> Result<Vec<(String, String)>> {
        let query = query.to_lowercase();
        let mut found = Vec::new();
        self.store.run(|connection| {
            let mut statement = connection.prepare("SELECT key, text FROM notes ORDER BY key")?;
            let mut rows = statement.query([])?;
            while found.len() < limit
                && let Some(row) = rows.next()?
            {
                let (key, text): (String, String) = (row.get(0)?, row.get(1)?);
                if key.to_lowercase().contains(&query) || text.to_lowercase().contains(&query) {
                    found.push((key, text));
                }
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Forgets `key`; whether it was there.
    ///
    /// # Errors
    /// If the store cannot be written.
    pub fn delete(&self, key: &str) -> Result<bool> {
        self.store.run(|connection| Ok(connection.execute("DELETE FROM notes WHERE key = ?1", [key])? > 0))
    }
}

fn limited(what: &str, limit: usize, used: usize) -> Result<()> {
    if used > limit {
        return Err(Error::new(ErrorKind::Failed, format!("too many {what}: limit {limit}, used {used}"))
            .with_hint("delete or shorten notes"));
    }
    Ok(())
}
