//! The hash table of dicts and sets: insertion order, fixed hash seed, so that equal programs give equal states.
//!
//! It never allocates by itself: [`Table::needs_room`] says when a push would, and [`Table::rebuild`] takes the room, so that
//! who calls it charges [`Table::bytes`] first. Both follow from the room alone, whatever was removed: removed keys are
//! counted, and a table that has seen too many is rebuilt. The table compares keys through a closure, because strings lie in
//! the heap. Hashes are computed in `ops`.

use crate::heap::bytes_of;
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
    /// Its capacity is the room of the table.
    entries: Vec<Option<Entry>>,
    index: HashTable<u32>,
    /// Keys removed since the index was built: each may block a place in it.
    n_removed: u32,
}

/// Places of an index with room for `n`, a quarter of which stay free.
fn buckets(n: usize) -> usize {
    n.max(3).saturating_mul(4).div_ceil(3).next_power_of_two()
}

/// What a table with so much room takes: its entries, and an index of four bytes and one of control a place, with a group
/// of control bytes more.
pub(crate) fn bytes_of_room(room: usize) -> u64 {
    if room == 0 {
        return 0;
    }
    let index = (buckets(room) as u64).saturating_mul(5).saturating_add(32);
    bytes_of::<Option<Entry>>(room).saturating_add(index)
}

impl Table {
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn room(&self) -> usize {
        self.entries.capacity()
    }

    /// What the table takes beside itself.
    pub(crate) fn bytes(&self) -> u64 {
        bytes_of_room(self.room())
    }

    /// The room that a push needs, where it is another one or the index is worn.
    pub(crate) fn needs_room(&self) -> Option<usize> {
        let buckets = buckets(self.room());
        let places = if buckets <= 8 { buckets.saturating_sub(1) } else { (buckets / 8).saturating_mul(7) };
        let worn = self.len().saturating_add(self.n_removed as usize) >= places;
        let full = self.entries.len() >= self.room();
        (worn || full).then(|| Table::room_for(self.len().saturating_add(self.len() / 2).saturating_add(1)))
    }

    /// The room of a table that holds `n`.
    pub(crate) fn room_for(n: usize) -> usize {
        (buckets(n) / 4).saturating_mul(3)
    }

    /// Takes room for so many, in a new place, and drops what was removed.
    pub(crate) fn rebuild(&mut self, room: usize) {
        let mut entries = Vec::with_capacity(room.max(self.len()));
        entries.extend(self.entries.iter().flatten().map(|entry| Some(*entry)));
        self.entries = entries;
        self.n_removed = 0;
        self.index = HashTable::with_capacity(Table::room_for(self.room()));
        self.reindex();
    }

    /// Takes room for so many after decoding, and leaves the slots as they are.
    pub(crate) fn restore_room(&mut self, room: usize) {
        self.entries.shrink_to_fit();
        self.entries.reserve_exact(room.saturating_sub(self.entries.len()));
        self.index = HashTable::new();
        if self.room() > 0 {
            self.index = HashTable::with_capacity(Table::room_for(self.room()));
        }
        self.reindex();
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

    /// Adds a key that [`Table::find`] did not find, where [`Table::needs_room`] says None.
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
        self.n_removed = self.n_removed.saturating_add(1);
        while matches!(self.entries.last(), Some(None)) {
            self.entries.pop();
        }
        if self.entries.len() > self.index.len().saturating_mul(2).saturating_add(8) {
            self.entries.retain(Option::is_some);
            self.n_removed = 0;
            self.reindex();
        }
        Some((entry.key, entry.value))
    }

    pub(crate) fn last_slot(&self) -> Option<usize> {
        self.entries.iter().rposition(Option::is_some)
    }

    /// Fills the index anew, in its place.
    fn reindex(&mut self) {
        self.index.clear();
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
        (&self.entries, self.n_removed).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Table {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Table, D::Error> {
        let (entries, n_removed) = Deserialize::deserialize(deserializer)?;
        let mut table = Table { entries, index: HashTable::new(), n_removed };
        table.restore_room(0);
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_takes_no_more_than_is_charged_for_it() {
        for n in (0..5_000).chain([10_000, 100_000, 1_000_000]) {
            let mut table = Table::default();
            table.rebuild(Table::room_for(n));
            let index = bytes_of_room(table.room()) - bytes_of::<Option<Entry>>(table.room());
            assert!(table.room() >= n);
            assert!(table.index.allocation_size() as u64 <= index, "{n}: {} of {index}", table.index.allocation_size());
        }
    }

    #[test]
    fn pushes_and_removals_never_allocate_by_themselves() {
        let mut table = Table::default();
        let mut hash = 1u64;
        for round in 0..20_000u64 {
            if let Some(room) = table.needs_room() {
                table.rebuild(room);
            }
            let before = (table.room(), table.index.allocation_size());
            hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17);
            table.push(hash, Value::Int(round as i64), Value::None);
            while round % 7 > 2 && table.len() > (round % 97) as usize {
                let slot = if round % 2 == 0 { table.last_slot().unwrap() } else { table.next_from(0).unwrap().0 - 1 };
                table.remove_at(slot).unwrap();
            }
            assert_eq!(before, (table.room(), table.index.allocation_size()), "round {round}");
        }
    }
}
