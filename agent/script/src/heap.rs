//! The arena of objects.
//!
//! Invariants: an object is charged by what it has allocated, with its place in the arena, before it is stored, and
//! discharged when it is collected; see `meter`. Nothing is collected while an instruction runs. Ids are reused, lowest free
//! id first, so that two equal runs give equal heaps.

mod meter;
mod rooms;

pub(crate) use meter::{RESERVE_BYTES, bytes_of, chunked};
pub(crate) use rooms::Rooms;

use crate::error::{Error, Pos};
use crate::limits::Limits;
use crate::table::{self, Table};
use crate::value::{Class, Id, Value};
use serde::{Deserialize, Serialize};
use std::cell::Cell;

/// A place in the arena, with the mark and the place in line that a collection needs for it.
const SLOT_BYTES: u64 = (size_of::<Option<Object>>() + size_of::<bool>() + size_of::<Id>()) as u64;

/// What interrupts an instruction.
#[derive(Debug)]
pub(crate) enum Trap {
    /// An exception that is not yet an object.
    Raise(Box<Raise>),
    /// An exception object.
    Thrown(Value),
    /// What no `except` catches: a limit or a corrupt state.
    Fatal(Box<Error>),
}

#[derive(Debug)]
pub(crate) struct Raise {
    pub(crate) class: Class,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

pub(crate) type Outcome<T> = Result<T, Trap>;

pub(crate) fn raise<T>(class: Class, message: impl Into<String>) -> Outcome<T> {
    Err(Trap::Raise(Box::new(Raise { class, message: message.into(), hint: None })))
}

pub(crate) fn raise_with<T>(class: Class, message: impl Into<String>, hint: impl Into<String>) -> Outcome<T> {
    Err(Trap::Raise(Box::new(Raise { class, message: message.into(), hint: Some(hint.into()) })))
}

pub(crate) fn corrupt() -> Trap {
    Trap::Fatal(Box::new(Error::new(crate::error::Kind::State, "state is corrupt")))
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Object {
    Str(Text),
    List(Vec<Value>),
    Tuple(Vec<Value>),
    Dict(Box<Table>),
    Set(Box<Table>),
    Range {
        start: i64,
        stop: i64,
        step: i64,
    },
    Iter {
        source: Value,
        at: u64,
        size: u64,
    },
    Function {
        code: u32,
        bound: Box<Bound>,
    },
    /// A method of a value, or of a type where the receiver is the built-in that makes it.
    Method {
        receiver: Value,
        name: String,
    },
    Exception {
        class: Class,
        args: Vec<Value>,
        detail: Box<Detail>,
    },
    /// A tool call in the arguments of `gather`, which makes it. No name ever holds one.
    Pending(Box<Pending>),
}

/// A tool call that is still to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pending {
    pub(crate) tool: u32,
    pub(crate) plain: Vec<Value>,
    pub(crate) named: Vec<(String, Value)>,
    pub(crate) line: u32,
}

/// What a function takes with it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Bound {
    pub(crate) defaults: Vec<Value>,
    pub(crate) captured: Vec<Value>,
}

/// What an exception says beside its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Detail {
    pub(crate) hint: Option<String>,
    /// The kind of a failed tool call.
    pub(crate) kind: String,
    pub(crate) pos: Pos,
}

/// A string that knows its length in characters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) n_chars: u64,
}

impl Object {
    /// What the object has allocated, its place in the arena apart.
    fn bytes(&self) -> u64 {
        let sum = |parts: &[u64]| parts.iter().fold(0u64, |sum, part| sum.saturating_add(*part));
        let items = |values: &Vec<Value>| bytes_of::<Value>(values.capacity());
        match self {
            Object::Str(text) => text.text.capacity() as u64,
            Object::List(values) | Object::Tuple(values) => items(values),
            Object::Dict(table) | Object::Set(table) => sum(&[bytes_of::<Table>(1), table.bytes()]),
            Object::Range { .. } | Object::Iter { .. } => 0,
            Object::Function { bound, .. } => {
                sum(&[bytes_of::<Bound>(1), items(&bound.defaults), items(&bound.captured)])
            }
            Object::Method { name, .. } => name.capacity() as u64,
            Object::Exception { args, detail, .. } => sum(&[
                bytes_of::<Detail>(1),
                items(args),
                detail.hint.as_ref().map_or(0, String::capacity) as u64,
                detail.kind.capacity() as u64,
            ]),
            Object::Pending(call) => {
                let names = call.named.iter().map(|(name, _)| name.capacity() as u64).sum();
                let named = bytes_of::<(String, Value)>(call.named.capacity());
                sum(&[bytes_of::<Pending>(1), items(&call.plain), named, names])
            }
        }
    }

    /// Drops the spare capacity of everything that does not grow.
    fn trim(&mut self) {
        match self {
            Object::Str(text) => text.text.shrink_to_fit(),
            Object::List(values) | Object::Tuple(values) => values.shrink_to_fit(),
            Object::Dict(_) | Object::Set(_) | Object::Range { .. } | Object::Iter { .. } => {}
            Object::Function { bound, .. } => {
                bound.defaults.shrink_to_fit();
                bound.captured.shrink_to_fit();
            }
            Object::Method { name, .. } => name.shrink_to_fit(),
            Object::Exception { args, detail, .. } => {
                args.shrink_to_fit();
                detail.kind.shrink_to_fit();
                if let Some(hint) = &mut detail.hint {
                    hint.shrink_to_fit();
                }
            }
            Object::Pending(call) => {
                call.plain.shrink_to_fit();
                call.named.shrink_to_fit();
                call.named.iter_mut().for_each(|(name, _)| name.shrink_to_fit());
            }
        }
    }

    fn children(&self, mut visit: impl FnMut(Value)) {
        match self {
            Object::Str(_) | Object::Range { .. } => {}
            Object::List(items) | Object::Tuple(items) | Object::Exception { args: items, .. } => {
                items.iter().copied().for_each(visit);
            }
            Object::Dict(table) | Object::Set(table) => table.iter().for_each(|(key, value)| {
                visit(key);
                visit(value);
            }),
            Object::Iter { source, .. } => visit(*source),
            Object::Function { bound, .. } => bound.defaults.iter().chain(&bound.captured).copied().for_each(visit),
            Object::Method { receiver, .. } => visit(*receiver),
            Object::Pending(call) => {
                call.plain.iter().copied().chain(call.named.iter().map(|(_, value)| *value)).for_each(visit);
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Heap {
    objects: Vec<Option<Object>>,
    used: u64,
    #[serde(skip)]
    scratch: Cell<u64>,
    /// Collect when `used` reaches this.
    collect_at: u64,
    pub(crate) limit: u64,
    pub(crate) fuel_limit: u64,
    pub(crate) fuel: Cell<u64>,
    /// How deep values may nest that are compared, printed or converted.
    pub(crate) nesting: u32,
    lowest_free: u32,
    n_free: u32,
    /// The length of a full arena that was collected in vain before it grew.
    collected_full: u32,
}

fn slots_bytes(n: usize) -> u64 {
    (n as u64).saturating_mul(SLOT_BYTES)
}

fn larger_arena(n: usize) -> usize {
    const LEAST: usize = 16;
    n.saturating_add(n / 2).max(LEAST)
}

impl Heap {
    pub(crate) fn new(limits: &Limits) -> Heap {
        Heap {
            objects: Vec::new(),
            used: RESERVE_BYTES,
            scratch: Cell::new(0),
            collect_at: limits.bytes / 2,
            limit: limits.bytes,
            fuel_limit: limits.fuel,
            fuel: Cell::new(0),
            nesting: limits.nesting,
            lowest_free: 0,
            n_free: 0,
            collected_full: 0,
        }
    }

    pub(crate) fn restrict(&mut self, limits: &Limits) {
        self.limit = limits.bytes;
        self.fuel_limit = limits.fuel;
        self.nesting = limits.nesting;
        self.collect_at = self.collect_at.min(limits.bytes);
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Stores an object of which nothing is charged yet. What it has allocated must be small, or checked by
    /// [`Heap::would_fit`] before.
    pub(crate) fn store(&mut self, mut object: Object) -> Outcome<Value> {
        self.slot_room()?;
        object.trim();
        self.charge(object.bytes())?;
        self.place(object)
    }

    /// Stores an object all of whose allocations were charged as scratch.
    fn keep(&mut self, object: Object) -> Outcome<Value> {
        self.slot_room()?;
        let bytes = object.bytes();
        self.release(bytes);
        self.charge(bytes)?;
        self.place(object)
    }

    fn slot_room(&mut self) -> Outcome<()> {
        if self.n_free > 0 || self.objects.len() < self.objects.capacity() {
            return Ok(());
        }
        let n = self.objects.len();
        let mut capacity = larger_arena(n);
        if !self.grows() {
            capacity = n.saturating_add(n / 8).saturating_add(1);
            self.work(n as u64 / 8)?;
            self.would_fit(slots_bytes(capacity))?;
        }
        self.objects.reserve_exact(capacity.saturating_sub(n));
        self.discharge(slots_bytes(n));
        self.used = self.used.saturating_add(slots_bytes(self.objects.capacity()));
        Ok(())
    }

    fn place(&mut self, object: Object) -> Outcome<Value> {
        if self.n_free > 0 {
            let first = self.lowest_free as usize;
            if let Some(idx) =
                self.objects.iter().skip(first).position(Option::is_none).map(|i| i.saturating_add(first))
            {
                *self.objects.get_mut(idx).ok_or_else(corrupt)? = Some(object);
                self.lowest_free = (idx as u32).saturating_add(1);
                self.n_free = self.n_free.saturating_sub(1);
                return Ok(Value::Object(Id(idx as u32)));
            }
            return Err(corrupt());
        }
        let id = u32::try_from(self.objects.len()).map_err(|_| corrupt())?;
        self.objects.push(Some(object));
        Ok(Value::Object(Id(id)))
    }

    pub(crate) fn get(&self, id: Id) -> Outcome<&Object> {
        self.objects.get(id.0 as usize).and_then(Option::as_ref).ok_or_else(corrupt)
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> Outcome<&mut Object> {
        self.objects.get_mut(id.0 as usize).and_then(Option::as_mut).ok_or_else(corrupt)
    }

    /// The object of a value, where it has one.
    pub(crate) fn object(&self, value: Value) -> Option<&Object> {
        match value {
            Value::Object(id) | Value::Growing(id, _) => self.objects.get(id.0 as usize).and_then(Option::as_ref),
            _ => None,
        }
    }

    pub(crate) fn str(&mut self, text: &str) -> Outcome<Value> {
        let text = self.copied_text(text)?;
        self.string(text)
    }

    /// Stores a string whose capacity was charged as scratch.
    pub(crate) fn string(&mut self, text: String) -> Outcome<Value> {
        let n_chars = if text.is_ascii() { text.len() } else { text.chars().count() } as u64;
        self.counted_string(text, n_chars)
    }

    /// As [`Heap::string`], for a text whose characters are counted already.
    pub(crate) fn counted_string(&mut self, mut text: String, n_chars: u64) -> Outcome<Value> {
        let spare = text.capacity().saturating_sub(text.len());
        if spare > text.len() / 2 && self.fits(text.len() as u64) {
            let before = text.capacity() as u64;
            text.shrink_to_fit();
            self.release(before.saturating_sub(text.capacity() as u64));
        }
        self.keep(Object::Str(Text { text, n_chars }))
    }

    /// Stores a string that is small by design, and not charged yet.
    pub(crate) fn short_string(&mut self, text: String) -> Outcome<Value> {
        self.scratch(text.capacity() as u64)?;
        self.string(text)
    }

    /// Appends a string to one that nothing but its variable refers to, and gives its new length; None where either is no
    /// string, or the length does not fit.
    pub(crate) fn append(&mut self, id: Id, part_value: Value) -> Outcome<Option<u32>> {
        let Some(Object::Str(part)) = self.object(part_value) else { return Ok(None) };
        let (n, n_chars) = (part.text.len(), part.n_chars);
        let Some(Object::Str(text)) = self.object(Value::Object(id)) else { return Ok(None) };
        let Ok(new_len) = u32::try_from(text.text.len().saturating_add(n)) else { return Ok(None) };
        self.work(n as u64 / 64)?;
        let Object::Str(text) = self.get_mut(id)? else { return Err(corrupt()) };
        let mut grown = std::mem::take(&mut text.text);
        let room = self.kept_text_room(&mut grown, n);
        if room.is_ok()
            && let Some(Object::Str(part)) = self.object(part_value)
        {
            grown.push_str(&part.text);
        }
        let Object::Str(text) = self.get_mut(id)? else { return Err(corrupt()) };
        text.text = grown;
        room?;
        text.n_chars = text.n_chars.saturating_add(n_chars);
        Ok(Some(new_len))
    }

    /// A string of the first bytes of one that has grown since.
    pub(crate) fn prefix(&mut self, id: Id, len: u32) -> Outcome<Value> {
        let Object::Str(text) = self.get(id)? else { return Err(corrupt()) };
        let text = text.text.get(..len as usize).ok_or_else(corrupt)?;
        let text = self.copied_text(text)?;
        self.string(text)
    }

    /// Stores a list whose capacity was charged as scratch.
    pub(crate) fn list(&mut self, items: Vec<Value>) -> Outcome<Value> {
        self.keep(Object::List(items))
    }

    /// Stores a tuple whose capacity was charged as scratch.
    pub(crate) fn tuple(&mut self, mut items: Vec<Value>) -> Outcome<Value> {
        if items.capacity() > items.len() {
            self.would_fit(bytes_of::<Value>(items.len()))?;
            let before = bytes_of::<Value>(items.capacity());
            items.shrink_to_fit();
            self.release(before.saturating_sub(bytes_of::<Value>(items.capacity())));
        }
        self.keep(Object::Tuple(items))
    }

    /// A tuple of few values.
    pub(crate) fn tuple_of(&mut self, values: &[Value]) -> Outcome<Value> {
        let items = self.copied(values)?;
        self.tuple(items)
    }

    /// Stores a dict whose table was charged as scratch.
    pub(crate) fn dict(&mut self, table: Table) -> Outcome<Value> {
        self.scratch(bytes_of::<Table>(1))?;
        self.keep(Object::Dict(Box::new(table)))
    }

    /// Stores a set whose table was charged as scratch.
    pub(crate) fn set(&mut self, table: Table) -> Outcome<Value> {
        self.scratch(bytes_of::<Table>(1))?;
        self.keep(Object::Set(Box::new(table)))
    }

    pub(crate) fn text(&self, value: Value) -> Option<&str> {
        match self.object(value) {
            Some(Object::Str(text)) => Some(&text.text),
            _ => None,
        }
    }

    /// The items of a list or tuple.
    pub(crate) fn items(&self, value: Value) -> Option<&[Value]> {
        match self.object(value) {
            Some(Object::List(items) | Object::Tuple(items)) => Some(items),
            _ => None,
        }
    }

    /// Runs `change` on the items of a list, to which it may add `n` items, and must not give another capacity.
    pub(crate) fn change_list<T>(&mut self, id: Id, n: usize, change: impl FnOnce(&mut Vec<Value>) -> T) -> Outcome<T> {
        let Object::List(items) = self.get_mut(id)? else { return Err(corrupt()) };
        if items.capacity().saturating_sub(items.len()) >= n {
            let result = change(items);
            if items.capacity() > items.len().saturating_mul(4).saturating_add(16) {
                let mut taken = std::mem::take(items);
                self.kept_shrink(&mut taken);
                let Object::List(items) = self.get_mut(id)? else { return Err(corrupt()) };
                *items = taken;
            }
            return Ok(result);
        }
        let mut taken = std::mem::take(items);
        let result = self.kept_room(&mut taken, n).map(|()| change(&mut taken));
        let Object::List(items) = self.get_mut(id)? else { return Err(corrupt()) };
        *items = taken;
        result
    }

    /// Makes room for one more entry of a dict or set.
    pub(crate) fn table_room(&mut self, id: Id) -> Outcome<()> {
        let (Object::Dict(table) | Object::Set(table)) = self.get(id)? else { return Err(corrupt()) };
        let Some(room) = table.needs_room() else { return Ok(()) };
        let (before, after) = (table.bytes(), table::bytes_of_room(room));
        self.work(table.len() as u64 / 8)?;
        self.would_fit(after)?;
        self.table_mut(id)?.rebuild(room);
        self.discharge(before);
        self.used = self.used.saturating_add(after);
        Ok(())
    }

    /// The table of a dict or set. What is done with it must not change its room.
    pub(crate) fn table_mut(&mut self, id: Id) -> Outcome<&mut Table> {
        match self.get_mut(id)? {
            Object::Dict(table) | Object::Set(table) => Ok(table),
            _ => Err(corrupt()),
        }
    }

    /// Takes an entry out of a dict or set, and gives room back that it has not used for long.
    pub(crate) fn remove_slot(&mut self, id: Id, slot: usize) -> Outcome<Option<(Value, Value)>> {
        let table = self.table_mut(id)?;
        let removed = table.remove_at(slot);
        let (n, before) = (table.len(), table.bytes());
        if table.room() > n.saturating_mul(8).saturating_add(32) {
            let room = Table::room_for(n.saturating_mul(2));
            if self.fits(table::bytes_of_room(room)) {
                self.table_mut(id)?.rebuild(room);
                self.discharge(before);
                self.used = self.used.saturating_add(table::bytes_of_room(room));
            }
        }
        Ok(removed)
    }

    /// Empties a dict or set.
    pub(crate) fn clear_table(&mut self, id: Id) -> Outcome<()> {
        let before = std::mem::take(self.table_mut(id)?).bytes();
        self.discharge(before);
        Ok(())
    }

    /// Whether much was made since the last collection, or the arena is full and hard to enlarge.
    pub(crate) fn wants_collection(&self) -> bool {
        self.used >= self.collect_at
            || (self.is_full() && self.objects.len() as u32 != self.collected_full && !self.grows())
    }

    fn is_full(&self) -> bool {
        self.n_free == 0 && self.objects.len() == self.objects.capacity()
    }

    /// Whether the arena can be enlarged by half.
    fn grows(&self) -> bool {
        self.fits(slots_bytes(larger_arena(self.objects.len())))
    }

    /// Drops what no root reaches. Work is bounded by the number of objects, which bytes bound.
    pub(crate) fn collect(&mut self, roots: impl Iterator<Item = Value>) {
        let mut marked = vec![false; self.objects.len()];
        let mut pending: Vec<Id> = Vec::with_capacity(self.objects.len());
        let visit = |value: Value, marked: &mut Vec<bool>, pending: &mut Vec<Id>| {
            if let Value::Object(id) | Value::Growing(id, _) = value
                && let Some(mark) = marked.get_mut(id.0 as usize)
                && !std::mem::replace(mark, true)
            {
                pending.push(id);
            }
        };
        roots.for_each(|value| visit(value, &mut marked, &mut pending));
        while let Some(id) = pending.pop() {
            if let Some(Some(object)) = self.objects.get(id.0 as usize) {
                object.children(|value| visit(value, &mut marked, &mut pending));
            }
        }
        let mut freed = 0u64;
        for (slot, marked) in self.objects.iter_mut().zip(&marked) {
            if !marked && let Some(object) = slot.take() {
                freed = freed.saturating_add(object.bytes());
            }
        }
        while matches!(self.objects.last(), Some(None)) {
            self.objects.pop();
        }
        drop((marked, pending));
        self.discharge(freed);
        self.shrink_arena();
        self.lowest_free = 0;
        self.n_free = self.objects.iter().filter(|slot| slot.is_none()).count() as u32;
        self.collected_full = if self.is_full() { self.objects.len() as u32 } else { 0 };
        let room = self.limit.saturating_sub(self.used);
        self.collect_at = self.used.saturating_add((room / 2).max(self.limit / 32));
    }

    fn shrink_arena(&mut self) {
        let (before, wanted) = (self.objects.capacity(), self.objects.len().saturating_add(self.objects.len() / 4));
        if before > self.objects.len().saturating_mul(2).saturating_add(16) && self.fits(slots_bytes(wanted)) {
            self.objects.shrink_to(wanted);
            self.discharge(slots_bytes(before));
            self.used = self.used.saturating_add(slots_bytes(self.objects.capacity()));
        }
    }

    /// The codes that functions in the heap run.
    pub(crate) fn codes_in_use(&self) -> impl Iterator<Item = u32> + '_ {
        self.objects.iter().flatten().filter_map(|object| match object {
            Object::Function { code, .. } => Some(*code),
            _ => None,
        })
    }
}
