//! The hash table of dicts and sets: insertion order, fixed hash seed, so that equal programs give equal states.
//!
//! The table compares keys through a closure, because strings lie in the heap. Hashes are computed in `ops`.

use crate::value::Value;
use hashbrown::HashTable;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Entry {
    hash: u64,
    key: Value,
    value: Value,
}

/// Keys and values in the order in which the keys came.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    entries: Vec<Option<Entry>>,
    index: HashTable<u32>,
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Entries held, removed ones that are not yet swept included.
    pub(crate) fn slots(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (Value, Value)> + '_ {
        self.entries.iter().flatten().map(|e| (e.key, e.value))
    }

    /// The first entry at or after slot `at`, and the slot after it.
    pub(crate) fn next_from(&self, at: usize) -> Option<(usize, Value, Value)> {
        let (idx, entry) = self.entries.iter().enumerate().skip(at).find_map(|(i, e)| e.map(|e| (i, e)))?;
        Some((idx.saturating_add(1), entry.key, entry.value))
    }

    pub(crate) fn find(&self, hash: u64, same: impl Fn(Value) -> bool) -> Option<usize> {
        let is =
            |slot: &u32| matches!(self.entries.get(*slot as usize), Some(Some(e)) if e.hash == hash && same(e.key));
        self.index.find(hash, is).map(|slot| *slot as usize)
    }

    pub(crate) fn value_at(&self, slot: usize) -> Option<Value> {
        self.entries.get(slot).copied().flatten().map(|e| e.value)
    }

    pub(crate) fn set_at(&mut self, slot: usize, value: Value) {
        if let Some(Some(entry)) = self.entries.get_mut(slot) {
            entry.value = value;
        }
    }

    /// Adds a key that [`Table::find`] did not find.
    pub(crate) fn push(&mut self, hash: u64, key: Value, value: Value) {
        let slot = self.entries.len() as u32;
        self.entries.push(Some(Entry { hash, key, value }));
        let entries = &self.entries;
        self.index
            .insert_unique(hash, slot, |slot| entries.get(*slot as usize).copied().flatten().map_or(0, |e| e.hash));
    }

    pub(crate) fn remove_at(&mut self, slot: usize) -> Option<(Value, Value)> {
        let entry = self.entries.get_mut(slot)?.take()?;
        if let Ok(found) = self.index.find_entry(entry.hash, |s| *s as usize == slot) {
            found.remove();
        }
        while matches!(self.entries.last(), Some(None)) {
            self.entries.pop();
        }
        if self.entries.len() > self.index.len().saturating_mul(2).saturating_add(8) {
            self.sweep();
        }
        Some((entry.key, entry.value))
    }

    pub(crate) fn last_slot(&self) -> Option<usize> {
        self.entries.iter().rposition(Option::is_some)
    }

    fn sweep(&mut self) {
        self.entries.retain(Option::is_some);
        self.reindex();
    }

    fn reindex(&mut self) {
        self.index = HashTable::with_capacity(self.entries.len());
        for (slot, entry) in self.entries.iter().enumerate() {
            if let Some(entry) = entry {
                let entries = &self.entries;
                let hash_of = |slot: &u32| entries.get(*slot as usize).copied().flatten().map_or(0, |e| e.hash);
                self.index.insert_unique(entry.hash, slot as u32, hash_of);
            }
        }
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Table) -> bool {
        self.entries == other.entries
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.entries.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Table, D::Error> {
        let mut table = Table { entries: Vec::deserialize(deserializer)?, index: HashTable::new() };
        table.reindex();
        Ok(table)
    }
}
