//! The arena of objects, and the meter that charges for them.
//!
//! Invariants: an object is charged before it is stored and discharged when it is collected; the sum is `used`. A list
//! costs its length, twice over for the room a `Vec` keeps. Nothing is collected while an instruction runs. Ids are
//! reused, lowest free id first, so that two equal runs give equal heaps.

use crate::error::{Error, Pos};
use crate::limits::Limits;
use crate::table::Table;
use crate::value::{Class, Id, Value};
use serde::{Deserialize, Serialize};
use std::cell::Cell;

/// What every object costs beside its contents: its place in the arena, twice over for the room a `Vec` keeps.
pub(crate) const HEADER_BYTES: u64 = 96;
/// What one value in a list costs, with the room that `Vec` keeps for growth.
pub(crate) const ITEM_BYTES: u64 = 2 * size_of::<Value>() as u64;
/// What one entry of a dict or set costs, with its hash and its place in the index.
pub(crate) const ENTRY_BYTES: u64 = 128;

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

const _: () = assert!(2 * size_of::<Option<Object>>() as u64 <= HEADER_BYTES);

/// A string that knows its length in characters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) n_chars: u64,
    /// Bytes that are charged beside those of the text, and kept for growth.
    pub(crate) room: u64,
}

impl Object {
    fn bytes(&self) -> u64 {
        let items = |n: usize| (n as u64).saturating_mul(ITEM_BYTES);
        let contents = match self {
            Object::Str(text) => (text.text.len() as u64).saturating_add(text.room),
            Object::List(values) | Object::Tuple(values) => items(values.len()),
            Object::Dict(table) | Object::Set(table) => (table.slots() as u64).saturating_mul(ENTRY_BYTES),
            Object::Range { .. } | Object::Iter { .. } => 0,
            Object::Function { bound, .. } => items(bound.defaults.len()).saturating_add(items(bound.captured.len())),
            Object::Method { name, .. } => name.len() as u64,
            Object::Exception { args, detail, .. } => items(args.len())
                .saturating_add(detail.hint.as_ref().map_or(0, |hint| hint.len() as u64))
                .saturating_add(detail.kind.len() as u64),
            Object::Pending(call) => {
                let names: u64 = call.named.iter().map(|(name, _)| name.len() as u64).sum();
                let n = call.plain.len().saturating_add(call.named.len().saturating_mul(3));
                HEADER_BYTES.saturating_add(names).saturating_add(items(n))
            }
        };
        HEADER_BYTES.saturating_add(contents)
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
    /// Collect when `used` reaches this.
    collect_at: u64,
    pub(crate) limit: u64,
    pub(crate) fuel_limit: u64,
    pub(crate) fuel: Cell<u64>,
    /// How deep values may nest that are compared, printed or converted.
    pub(crate) nesting: u32,
    lowest_free: u32,
    n_free: u32,
}

impl Heap {
    pub(crate) fn new(limits: &Limits) -> Heap {
        Heap {
            objects: Vec::new(),
            used: 0,
            collect_at: limits.bytes / 2,
            limit: limits.bytes,
            fuel_limit: limits.fuel,
            fuel: Cell::new(0),
            nesting: limits.nesting,
            lowest_free: 0,
            n_free: 0,
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

    /// Charges work: one instruction, or one element handled inside a built-in.
    #[inline]
    pub(crate) fn work(&self, n: u64) -> Outcome<()> {
        let fuel = self.fuel.get().saturating_add(n);
        if fuel > self.fuel_limit {
            return Err(self.out_of_fuel(fuel));
        }
        self.fuel.set(fuel);
        Ok(())
    }

    #[cold]
    fn out_of_fuel(&self, fuel: u64) -> Trap {
        self.fuel.set(self.fuel_limit);
        let error = Error::over("fuel", self.fuel_limit, fuel).with_hint("loop over fewer items");
        Trap::Fatal(Box::new(error))
    }

    /// Refuses what would not fit beside all values held; charges nothing.
    pub(crate) fn would_fit(&self, bytes: u64) -> Outcome<()> {
        let used = self.used.saturating_add(bytes);
        if used > self.limit {
            let error = Error::over("memory", self.limit, used).with_hint("keep fewer or smaller values");
            return Err(Trap::Fatal(Box::new(error)));
        }
        Ok(())
    }

    pub(crate) fn charge(&mut self, bytes: u64) -> Outcome<()> {
        self.would_fit(bytes)?;
        self.used = self.used.saturating_add(bytes);
        Ok(())
    }

    pub(crate) fn discharge(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// Refuses a list of `n` values that would not fit.
    pub(crate) fn room(&self, n: usize) -> Outcome<()> {
        self.would_fit((n as u64).saturating_mul(ITEM_BYTES))
    }

    /// How many strings, each in a list, still fit.
    pub(crate) fn room_for_strings(&self) -> usize {
        usize::try_from(self.limit.saturating_sub(self.used) / (HEADER_BYTES + ITEM_BYTES)).unwrap_or(usize::MAX)
    }

    /// Adds a value to a list under construction, after checking that the list still fits.
    pub(crate) fn grow(&self, items: &mut Vec<Value>, value: Value) -> Outcome<()> {
        self.room(items.len().saturating_add(1))?;
        self.work(1)?;
        items.push(value);
        Ok(())
    }

    pub(crate) fn store(&mut self, object: Object) -> Outcome<Value> {
        self.charge(object.bytes())?;
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
            self.n_free = 0;
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
        self.would_fit(HEADER_BYTES.saturating_add(text.len() as u64))?;
        self.work(text.len() as u64 / 64)?;
        self.string(text.to_owned())
    }

    /// Stores a string that was built under [`Heap::would_fit`].
    pub(crate) fn string(&mut self, text: String) -> Outcome<Value> {
        let n_chars = if text.is_ascii() { text.len() } else { text.chars().count() } as u64;
        self.counted_string(text, n_chars)
    }

    /// As [`Heap::string`], for a text whose characters are counted already.
    pub(crate) fn counted_string(&mut self, text: String, n_chars: u64) -> Outcome<Value> {
        self.store(Object::Str(Text { text, n_chars, room: 0 }))
    }

    /// Appends a string to one that nothing but its variable refers to, and gives its new length; None where either is no
    /// string, or the length does not fit. Room is kept for half of the length, where that fits.
    pub(crate) fn append(&mut self, id: Id, part_value: Value) -> Outcome<Option<u32>> {
        let Some(Object::Str(Text { text: part, n_chars, .. })) = self.object(part_value) else { return Ok(None) };
        let (n, n_chars) = (part.len() as u64, *n_chars);
        let Some(Object::Str(text)) = self.object(Value::Object(id)) else { return Ok(None) };
        let before = (text.text.len() as u64).saturating_add(text.room);
        let len = (text.text.len() as u64).saturating_add(n);
        let Ok(new_len) = u32::try_from(len) else { return Ok(None) };
        self.work(n / 64)?;
        let mut capacity = before;
        if len > before {
            capacity = len.saturating_add(len / 2);
            if self.would_fit(capacity).is_err() {
                capacity = len;
                self.would_fit(capacity)?;
            }
        }
        let Object::Str(text) = self.get_mut(id)? else { return Err(corrupt()) };
        let mut grown = std::mem::take(&mut text.text);
        grown.reserve_exact(capacity.saturating_sub(grown.len() as u64) as usize);
        if let Some(Object::Str(part)) = self.object(part_value) {
            grown.push_str(&part.text);
        }
        let Object::Str(text) = self.get_mut(id)? else { return Err(corrupt()) };
        text.room = capacity.saturating_sub(grown.len() as u64);
        text.text = grown;
        text.n_chars = text.n_chars.saturating_add(n_chars);
        self.discharge(before);
        self.used = self.used.saturating_add(capacity);
        Ok(Some(new_len))
    }

    /// A string of the first bytes of one that has grown since.
    pub(crate) fn prefix(&mut self, id: Id, len: u32) -> Outcome<Value> {
        let Object::Str(text) = self.get(id)? else { return Err(corrupt()) };
        let text = text.text.get(..len as usize).ok_or_else(corrupt)?.to_owned();
        self.str(&text)
    }

    pub(crate) fn list(&mut self, items: Vec<Value>) -> Outcome<Value> {
        self.store(Object::List(items))
    }

    pub(crate) fn tuple(&mut self, items: Vec<Value>) -> Outcome<Value> {
        self.store(Object::Tuple(items))
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

    /// Runs `change` on the items of a list and settles what the list costs; `most` is the number of items that it may add.
    pub(crate) fn change_list<T>(
        &mut self,
        id: Id,
        most: usize,
        change: impl FnOnce(&mut Vec<Value>) -> T,
    ) -> Outcome<T> {
        self.room(most)?;
        let Object::List(items) = self.get_mut(id)? else { return Err(corrupt()) };
        let before = items.len() as u64;
        let result = change(items);
        let after = items.len() as u64;
        if items.capacity() > items.len().saturating_mul(4).saturating_add(16) {
            items.shrink_to(items.len().saturating_mul(2));
        }
        self.discharge(before.saturating_mul(ITEM_BYTES));
        self.used = self.used.saturating_add(after.saturating_mul(ITEM_BYTES));
        Ok(result)
    }

    /// Runs `change` on the table of a dict or set and settles what it costs; it may add one entry.
    pub(crate) fn change_table<T>(&mut self, id: Id, change: impl FnOnce(&mut Table) -> T) -> Outcome<T> {
        self.would_fit(ENTRY_BYTES)?;
        let (Object::Dict(table) | Object::Set(table)) = self.get_mut(id)? else { return Err(corrupt()) };
        let before = table.slots() as u64;
        let result = change(table);
        let after = table.slots() as u64;
        self.discharge(before.saturating_mul(ENTRY_BYTES));
        self.used = self.used.saturating_add(after.saturating_mul(ENTRY_BYTES));
        Ok(result)
    }

    pub(crate) fn wants_collection(&self) -> bool {
        self.used >= self.collect_at
    }

    /// Drops what no root reaches. Work is bounded by the number of objects, which bytes bound.
    pub(crate) fn collect(&mut self, roots: impl Iterator<Item = Value>) {
        let mut marked = vec![false; self.objects.len()];
        let mut pending: Vec<Id> = Vec::new();
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
        if self.objects.capacity() > self.objects.len().saturating_mul(2).saturating_add(16) {
            self.objects.shrink_to_fit();
        }
        self.discharge(freed);
        self.lowest_free = 0;
        self.n_free = self.objects.iter().filter(|slot| slot.is_none()).count() as u32;
        let room = self.limit.saturating_sub(self.used);
        self.collect_at = self.used.saturating_add((room / 2).max(self.limit / 32));
    }

    /// The codes that functions in the heap run.
    pub(crate) fn codes_in_use(&self) -> impl Iterator<Item = u32> + '_ {
        self.objects.iter().flatten().filter_map(|object| match object {
            Object::Function { code, .. } => Some(*code),
            _ => None,
        })
    }

    /// Recounts a decoded heap and rebuilds what is not stored. `base` is what is charged for other things.
    pub(crate) fn restore(&mut self, base: u64) -> Outcome<()> {
        let sum: u64 = self.objects.iter().flatten().map(Object::bytes).sum();
        let miscounted = self.objects.iter().flatten().any(|object| match object {
            Object::Str(text) => text.n_chars != text.text.chars().count() as u64,
            Object::Range { step, .. } => *step == 0,
            _ => false,
        });
        if miscounted || self.used != sum.saturating_add(base) || self.used > self.limit {
            return Err(corrupt());
        }
        self.n_free = self.objects.iter().filter(|slot| slot.is_none()).count() as u32;
        self.lowest_free = self.lowest_free.min(self.objects.len() as u32);
        Ok(())
    }
}
