//! Hashing of keys, and the dicts and sets that rest on it.

use super::{Number, check_depth, whole};
use crate::heap::{Heap, Object, Outcome, raise_with};
use crate::table::{Table, bytes_of_room};
use crate::value::{Class, Id, Value};
use std::cell::Cell;
use std::cmp::Ordering;

/// 2^64 over the golden ratio, which spreads what differs in few bits.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

impl Heap {
    /// A multiplicative hash of eight bytes at a time. It must stay as it is: decoded states hold it.
    pub(crate) fn hash(&self, value: Value) -> Outcome<u64> {
        let mut state = 0xcbf2_9ce4_8422_2325;
        self.hash_into(value, &mut state, 0)?;
        state ^= state >> 32;
        Ok(state.wrapping_mul(MIX))
    }

    fn hash_into(&self, value: Value, state: &mut u64, depth: u32) -> Outcome<()> {
        self.work(1)?;
        let mut feed = |bytes: &[u8]| {
            for chunk in bytes.chunks(8) {
                let mut word = [0; 8];
                for (to, from) in word.iter_mut().zip(chunk) {
                    *to = *from;
                }
                *state = (*state ^ u64::from_le_bytes(word)).wrapping_mul(MIX);
                *state ^= *state >> 29;
            }
            *state = state.wrapping_add(bytes.len() as u64);
        };
        match value {
            Value::None | Value::Unbound => feed(b"n"),
            Value::Bool(b) => feed(&i64::from(b).to_le_bytes()),
            Value::Int(n) => feed(&n.to_le_bytes()),
            Value::Float(n) => match whole(n) {
                Some(n) => feed(&n.to_le_bytes()),
                None => feed(&n.to_bits().to_le_bytes()),
            },
            Value::Builtin(b) => feed(b.name().as_bytes()),
            Value::Class(c) => feed(c.name().as_bytes()),
            Value::Type(t) => feed(t.name().as_bytes()),
            Value::Json => feed(b"json"),
            Value::Server(n) | Value::Tool(n) => feed(&n.to_le_bytes()),
            Value::Object(id) | Value::Growing(id, _) => match self.get(id)? {
                Object::Str(text) => {
                    self.work(text.text.len() as u64 / 64)?;
                    feed(text.text.as_bytes());
                }
                Object::Tuple(items) => {
                    check_depth(self, depth)?;
                    feed(b"(");
                    for item in items {
                        self.hash_into(*item, state, depth.saturating_add(1))?;
                    }
                }
                Object::List(_) | Object::Dict(_) | Object::Set(_) => {
                    let message = format!("unhashable type: '{}'", self.type_name(value));
                    return raise_with(Class::TypeError, message, "use a str, a number or a tuple as key");
                }
                _ => feed(&id.0.to_le_bytes()),
            },
        }
        Ok(())
    }

    /// The slot of a key. Charges each comparison, so that colliding keys cost fuel.
    pub(crate) fn find_in(&self, table: &Table, key: Value) -> Outcome<Option<usize>> {
        self.find_hashed(table, self.hash(key)?, key)
    }

    pub(crate) fn find_hashed(&self, table: &Table, hash: u64, key: Value) -> Outcome<Option<usize>> {
        let n_compared = Cell::new(0u64);
        let found = table.find(hash, |other| {
            n_compared.set(n_compared.get().saturating_add(1));
            self.same_key(key, other, 0)
        });
        self.work(n_compared.get())?;
        Ok(found)
    }

    fn same_key(&self, a: Value, b: Value, depth: u32) -> bool {
        if let (Some(x), Some(y)) = (Number::of(a), Number::of(b)) {
            return x.order(y) == Some(Ordering::Equal);
        }
        match (self.object(a), self.object(b)) {
            (Some(Object::Str(x)), Some(Object::Str(y))) => x.text == y.text,
            (Some(Object::Tuple(x)), Some(Object::Tuple(y))) => {
                depth < self.nesting
                    && x.len() == y.len()
                    && x.iter().zip(y).all(|(x, y)| self.same_key(*x, *y, depth.saturating_add(1)))
            }
            _ => a == b,
        }
    }

    /// Sets a key of a dict, or adds an element to a set.
    pub(crate) fn insert(&mut self, id: Id, key: Value, value: Value) -> Outcome<()> {
        let hash = self.hash(key)?;
        let (Object::Dict(table) | Object::Set(table)) = self.get(id)? else { return Err(crate::heap::corrupt()) };
        let found = self.find_hashed(table, hash, key)?;
        match found {
            Some(slot) => self.table_mut(id)?.set_at(slot, value),
            None => {
                self.table_room(id)?;
                self.table_mut(id)?.push(hash, key, value);
            }
        }
        Ok(())
    }

    /// The table of distinct keys, each with its value; later values win. It is charged as scratch.
    pub(crate) fn table(&self, pairs: impl IntoIterator<Item = (Value, Value)>) -> Outcome<Table> {
        let mut table = Table::default();
        for (key, value) in pairs {
            let hash = self.hash(key)?;
            match self.find_hashed(&table, hash, key)? {
                Some(slot) => table.set_at(slot, value),
                None => {
                    if let Some(room) = table.needs_room() {
                        let before = table.bytes();
                        self.scratch(bytes_of_room(room))?;
                        table.rebuild(room);
                        self.release(before);
                    }
                    table.push(hash, key, value);
                }
            }
        }
        Ok(table)
    }
}
