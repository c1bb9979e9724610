//! Iteration, items, slices and attributes of values.

use crate::display::cut;
use crate::error::{Pos, nearest};
use crate::heap::{Detail, Heap, Object, Outcome, corrupt, raise, raise_with};
use crate::methods;
use crate::ops::{index_of, range_len};
use crate::substitutes;
use crate::value::{Class, Id, Value};

impl Heap {
    /// All elements of an iterable.
    pub(crate) fn collected(&mut self, value: Value) -> Outcome<Vec<Value>> {
        if let Some(items) = self.items(value) {
            self.work(items.len() as u64 / 8)?;
            return self.copied(items);
        }
        let iter = self.iterate(value)?;
        let mut out = Vec::new();
        while let Some(next) = self.advance(iter)? {
            self.grow(&mut out, next)?;
        }
        Ok(out)
    }

    pub(crate) fn iterate(&mut self, value: Value) -> Outcome<Value> {
        let size = match self.object(value) {
            Some(Object::Iter { .. }) => return Ok(value),
            Some(Object::Str(_) | Object::List(_) | Object::Tuple(_)) => 0,
            Some(Object::Range { start, stop, step }) => range_len(*start, *stop, *step),
            Some(Object::Dict(table) | Object::Set(table)) => table.len() as u64,
            _ => {
                let name = self.type_name(value);
                let message = format!("'{name}' object is not iterable");
                return match name {
                    "int" => raise_with(Class::TypeError, message, "write range(n) to count"),
                    "NoneType" => {
                        raise_with(Class::TypeError, message, "the value is None: check what the call returned")
                    }
                    _ => raise(Class::TypeError, message),
                };
            }
        };
        self.store(Object::Iter { source: value, at: 0, size })
    }

    pub(crate) fn advance(&mut self, iter: Value) -> Outcome<Option<Value>> {
        let Value::Object(id) = iter else { return Err(corrupt()) };
        let Object::Iter { source, at, size } = *self.get(id)? else { return Err(corrupt()) };
        if source == Value::None {
            return Ok(None);
        }
        let (value, next) = match self.object(source).ok_or_else(corrupt)? {
            Object::List(items) | Object::Tuple(items) => match items.get(at as usize) {
                Some(value) => (*value, at.saturating_add(1)),
                None => return self.exhaust(id),
            },
            Object::Range { start, step, .. } => {
                if at >= size {
                    return self.exhaust(id);
                }
                (Value::Int(start.wrapping_add(step.wrapping_mul(at as i64))), at.saturating_add(1))
            }
            Object::Str(text) => {
                let Some(c) = text.text.get(at as usize..).and_then(|rest| rest.chars().next()) else {
                    return self.exhaust(id);
                };
                (self.character(c)?, at.saturating_add(c.len_utf8() as u64))
            }
            Object::Dict(table) | Object::Set(table) => {
                if table.len() as u64 != size {
                    let name = self.type_name(source);
                    let message = if name == "dict" { "dictionary" } else { "Set" };
                    return raise_with(
                        Class::RuntimeError,
                        format!("{message} changed size during iteration"),
                        "loop over a copy: for x in list(d)",
                    );
                }
                match table.next_from(at as usize) {
                    Some((next, key, _)) => (key, next as u64),
                    None => return self.exhaust(id),
                }
            }
            _ => return Err(corrupt()),
        };
        if let Object::Iter { at, .. } = self.get_mut(id)? {
            *at = next;
        }
        Ok(Some(value))
    }

    /// An iterator that has ended stays ended, whatever becomes of its source.
    fn exhaust(&mut self, id: Id) -> Outcome<Option<Value>> {
        *self.get_mut(id)? = Object::Iter { source: Value::None, at: 0, size: 0 };
        Ok(None)
    }

    /// Where an index points, counted from the end if it is negative.
    fn position(&self, what: &str, index: Value, len: usize) -> Outcome<usize> {
        let Some(n) = index_of(index) else {
            let message = format!("{what} indices must be integers or slices, not {}", self.type_name(index));
            return match self.text(index) {
                Some(key) if what == "list" => raise_with(
                    Class::TypeError,
                    message,
                    format!("it is a list: take an item first, such as xs[0][\"{}\"], or loop over it", cut(key, 60)),
                ),
                Some(_) => raise_with(Class::TypeError, message, "it holds items by number: xs[0]"),
                None => raise(Class::TypeError, message),
            };
        };
        let at = if n < 0 { n.checked_add(len as i64) } else { Some(n) };
        match at.and_then(|at| usize::try_from(at).ok()).filter(|at| *at < len) {
            Some(at) => Ok(at),
            None => {
                let what = if what == "str" { "string" } else { what };
                let message = format!("{what} index out of range");
                raise_with(Class::IndexError, message, format!("the index is {n}, the length is {len}"))
            }
        }
    }

    pub(crate) fn get_item(&mut self, value: Value, index: Value) -> Outcome<Value> {
        match self.object(value) {
            Some(Object::List(items)) => {
                items.get(self.position("list", index, items.len())?).copied().ok_or_else(corrupt)
            }
            Some(Object::Tuple(items)) => {
                items.get(self.position("tuple", index, items.len())?).copied().ok_or_else(corrupt)
            }
            Some(Object::Str(text)) => {
                let at = self.position("str", index, text.n_chars as usize)?;
                let c = if text.text.len() as u64 == text.n_chars {
                    text.text.get(at..).and_then(|rest| rest.chars().next())
                } else {
                    self.work(at as u64 / 16)?;
                    text.text.chars().nth(at)
                };
                self.work(1)?;
                self.character(c.ok_or_else(corrupt)?)
            }
            Some(Object::Dict(table)) => match self.find_in(table, index)?.and_then(|slot| table.value_at(slot)) {
                Some(found) => Ok(found),
                None => self.missing_key(value, index),
            },
            Some(Object::Range { start, stop, step }) => {
                let (start, stop, step) = (*start, *stop, *step);
                let len = usize::try_from(range_len(start, stop, step)).unwrap_or(usize::MAX);
                let at = self.position("range object", index, len)?;
                Ok(Value::Int(start.wrapping_add(step.wrapping_mul(at as i64))))
            }
            _ => {
                let name = self.type_name(value);
                let message = format!("'{name}' object is not subscriptable");
                match value {
                    Value::None => {
                        raise_with(Class::TypeError, message, "the value is None: check what the call returned")
                    }
                    Value::Tool(_) => raise_with(Class::TypeError, message, "call it with parentheses"),
                    _ => raise_with(Class::TypeError, message, format!("its shape is {}", self.shape(value))),
                }
            }
        }
    }

    /// Raises what a key that is not there raises, with the shape of the value and its nearest key.
    pub(crate) fn missing_key<T>(&mut self, dict: Value, key: Value) -> Outcome<T> {
        let mut hint = self.keys_hint(dict, self.text(key));
        hint.truncate(hint.floor_char_boundary(600));
        let error = self.exception(Class::KeyError, vec![key], Some(hint), String::new())?;
        Err(crate::heap::Trap::Thrown(error))
    }

    /// "did you mean `x`; the keys are .." for a dict.
    pub(crate) fn keys_hint(&self, dict: Value, wanted: Option<&str>) -> String {
        const SHOWN: usize = 20;
        const LONGEST: usize = 60;
        let Some(Object::Dict(table)) = self.object(dict) else { return String::new() };
        let keys = || table.iter().take(200).filter_map(|(key, _)| self.text(key));
        let mut hint = String::new();
        if let Some(near) = wanted.and_then(|wanted| nearest(wanted, keys())) {
            hint.push_str(&format!("did you mean \"{}\"? ", cut(near, LONGEST)));
        }
        let shown: Vec<String> = keys().take(SHOWN).map(|key| format!("\"{}\"", cut(key, LONGEST))).collect();
        let more = if table.len() > SHOWN { ", .." } else { "" };
        if table.len() == 0 {
            hint.push_str("the dict is empty");
        } else if shown.is_empty() {
            hint.push_str(&format!("its shape is {}", self.shape(dict)));
        } else {
            hint.push_str(&format!("the keys are {}{more}", shown.join(", ")));
        }
        hint
    }

    fn character(&mut self, c: char) -> Outcome<Value> {
        self.scratch(c.len_utf8() as u64)?;
        let mut text = String::with_capacity(c.len_utf8());
        text.push(c);
        self.counted_string(text, 1)
    }

    pub(crate) fn exception(
        &mut self,
        class: Class,
        args: Vec<Value>,
        hint: Option<String>,
        kind: String,
    ) -> Outcome<Value> {
        self.store(Object::Exception { class, args, detail: Box::new(Detail { hint, kind, pos: Pos::default() }) })
    }

    pub(crate) fn set_item(&mut self, value: Value, index: Value, new: Value) -> Outcome<()> {
        let Value::Object(id) = value else { return self.no_item_change(value, "assignment") };
        match self.get(id)? {
            Object::List(items) => {
                let n = items.len();
                let at = self.position("list", index, n).map_err(|trap| match trap {
                    crate::heap::Trap::Raise(mut raise) if raise.class == Class::IndexError => {
                        raise.message = "list assignment index out of range".to_owned();
                        raise.hint = Some("write xs.append(x) to add at the end".to_owned());
                        crate::heap::Trap::Raise(raise)
                    }
                    other => other,
                })?;
                self.change_list(id, 0, |items| {
                    if let Some(place) = items.get_mut(at) {
                        *place = new;
                    }
                })
            }
            Object::Dict(_) => self.insert(id, index, new),
            _ => self.no_item_change(value, "assignment"),
        }
    }

    fn no_item_change<T>(&self, value: Value, what: &str) -> Outcome<T> {
        let message = format!("'{}' object does not support item {what}", self.type_name(value));
        match self.object(value) {
            Some(Object::Str(_)) => raise_with(Class::TypeError, message, "build a new string: s.replace(a, b)"),
            Some(Object::Tuple(_)) => raise_with(Class::TypeError, message, "use a list: list(t)"),
            _ => raise(Class::TypeError, message),
        }
    }

    pub(crate) fn delete_item(&mut self, value: Value, index: Value) -> Outcome<()> {
        let Value::Object(id) = value else { return self.no_item_change(value, "deletion") };
        match self.get(id)? {
            Object::List(items) => {
                let n = items.len();
                let at = self.position("list", index, n)?;
                self.work(n as u64 / 64)?;
                self.change_list(id, 0, |items| items.remove(at))?;
                Ok(())
            }
            Object::Dict(table) => match self.find_in(table, index)? {
                Some(slot) => {
                    self.remove_slot(id, slot)?;
                    Ok(())
                }
                None => self.missing_key(value, index),
            },
            _ => self.no_item_change(value, "deletion"),
        }
    }

    /// Start, stop and step of a slice over `len` elements, as CPython's `PySlice_AdjustIndices` has them.
    fn bounds(&self, parts: [Value; 3], len: usize) -> Outcome<(i64, i64, i64)> {
        let mut numbers = [None; 3];
        for (number, part) in numbers.iter_mut().zip(parts) {
            *number = match (part, index_of(part)) {
                (Value::None, _) => None,
                (_, Some(n)) => Some(n),
                _ => {
                    return raise_with(
                        Class::TypeError,
                        "slice indices must be integers or None",
                        format!("it is a {}", self.type_name(part)),
                    );
                }
            };
        }
        let len = len as i64;
        let step = numbers[2].unwrap_or(1).max(-i64::MAX);
        if step == 0 {
            return raise(Class::ValueError, "slice step cannot be zero");
        }
        let (low, high) = if step < 0 { (-1, len.saturating_sub(1)) } else { (0, len) };
        let clamp = |n: i64| if n < 0 { n.saturating_add(len).max(low) } else { n.min(high) };
        let start = numbers[0].map_or(if step < 0 { high } else { low }, clamp);
        let stop = numbers[1].map_or(if step < 0 { low } else { high }, clamp);
        Ok((start, stop, step))
    }

    pub(crate) fn get_slice(&mut self, value: Value, parts: [Value; 3]) -> Outcome<Value> {
        let Some(len) = self.length(value) else {
            return raise(Class::TypeError, format!("'{}' object is not subscriptable", self.type_name(value)));
        };
        let (start, stop, step) = self.bounds(parts, usize::try_from(len).unwrap_or(usize::MAX))?;
        let n = usize::try_from(range_len(start, stop, step)).unwrap_or(usize::MAX);
        self.work(n as u64 / 8)?;
        let at = |i: usize| start.wrapping_add(step.wrapping_mul(i as i64)) as usize;
        match self.object(value) {
            Some(Object::Str(text)) => {
                let ascii = text.text.len() as u64 == text.n_chars;
                let part = if ascii && step == 1 {
                    self.copied_text(text.text.get(at(0)..at(0).saturating_add(n)).unwrap_or(""))?
                } else if step == 1 {
                    self.work(len / 16)?;
                    let mut ends = text.text.char_indices().map(|(at, _)| at).chain([text.text.len()]).skip(at(0));
                    let start = ends.next().unwrap_or(0);
                    let stop = if n == 0 { start } else { ends.nth(n.saturating_sub(1)).unwrap_or(start) };
                    self.copied_text(text.text.get(start..stop).unwrap_or(""))?
                } else {
                    self.work(len)?;
                    let mut chars = self.vec(len as usize)?;
                    chars.extend(text.text.chars());
                    let picked = || (0..n).filter_map(|i| chars.get(at(i)));
                    let n_bytes = picked().fold(0usize, |sum, c| sum.saturating_add(c.len_utf8()));
                    let mut part = String::new();
                    self.room_in_text(&mut part, n_bytes)?;
                    picked().for_each(|c| part.push(*c));
                    part
                };
                self.string(part)
            }
            Some(Object::List(items) | Object::Tuple(items)) => {
                let mut part = self.vec(n)?;
                part.extend((0..n).filter_map(|i| items.get(at(i)).copied()));
                match self.object(value) {
                    Some(Object::List(_)) => self.list(part),
                    _ => self.tuple(part),
                }
            }
            Some(Object::Range { .. }) => {
                let items = self.collected(value)?;
                let list = self.list(items)?;
                self.get_slice(list, parts)
            }
            _ => raise_with(
                Class::TypeError,
                format!("'{}' object cannot be sliced", self.type_name(value)),
                "make a list first: list(d.items())[:3]",
            ),
        }
    }

    /// Replaces a slice of a list; `new` is None to delete it.
    pub(crate) fn set_slice(&mut self, value: Value, parts: [Value; 3], new: Option<Value>) -> Outcome<()> {
        let (Value::Object(id), Some(Object::List(items))) = (value, self.object(value)) else {
            return self.no_item_change(value, if new.is_some() { "assignment" } else { "deletion" });
        };
        let len = items.len();
        let (start, stop, step) = self.bounds(parts, len)?;
        let new = match new {
            Some(new) => Some(self.collected(new)?),
            None => None,
        };
        self.work(len.saturating_add(new.as_ref().map_or(0, Vec::len)) as u64 / 8)?;
        if step == 1 {
            let (start, stop) = (start as usize, stop.max(start) as usize);
            let new = new.unwrap_or_default();
            self.change_list(id, new.len(), |items| {
                items.splice(start..stop, new);
            })?;
            return Ok(());
        }
        let n = range_len(start, stop, step) as usize;
        let mut at: Vec<usize> = self.vec(n)?;
        at.extend((0..n).map(|i| start.wrapping_add(step.wrapping_mul(i as i64)) as usize));
        if let Some(new) = new {
            if new.len() != n {
                let message = format!("attempt to assign sequence of size {} to extended slice of size {n}", new.len());
                return raise_with(Class::ValueError, message, "give as many items as the slice has");
            }
            return self.change_list(id, 0, |items| {
                for (at, value) in at.into_iter().zip(new) {
                    if let Some(place) = items.get_mut(at) {
                        *place = value;
                    }
                }
            });
        }
        at.sort_unstable();
        let mut idx = 0usize;
        self.change_list(id, 0, |items| {
            items.retain(|_| {
                idx = idx.saturating_add(1);
                at.binary_search(&idx.saturating_sub(1)).is_err()
            });
        })?;
        Ok(())
    }

    /// An attribute read without a call: the key of a dict, else a method.
    pub(crate) fn get_attr(&mut self, value: Value, name: &str) -> Outcome<Value> {
        if let Some(found) = self.key(value, name)? {
            return Ok(found);
        }
        if let Some(found) = self.plain_attr(value, name)? {
            return Ok(found);
        }
        if methods::has(self.method_type(value), name) {
            return self.store(Object::Method { receiver: value, name: name.to_owned() });
        }
        self.no_attr(value, name)
    }

    /// The value of a dict's key that is a name.
    pub(crate) fn key(&mut self, value: Value, name: &str) -> Outcome<Option<Value>> {
        if !matches!(self.object(value), Some(Object::Dict(_))) {
            return Ok(None);
        }
        let key = self.str(name)?;
        match self.object(value) {
            Some(Object::Dict(table)) => Ok(self.find_in(table, key)?.and_then(|slot| table.value_at(slot))),
            _ => Ok(None),
        }
    }

    fn plain_attr(&mut self, value: Value, name: &str) -> Outcome<Option<Value>> {
        if let Some(Object::Exception { args, detail, .. }) = self.object(value) {
            return match name {
                "args" => {
                    let args = self.copied(args)?;
                    self.tuple(args).map(Some)
                }
                "kind" => {
                    let kind = self.copied_text(&detail.kind)?;
                    self.string(kind).map(Some)
                }
                "message" => {
                    let text = self.display(value)?;
                    self.string(text).map(Some)
                }
                _ => Ok(None),
            };
        }
        let of_type = match value {
            Value::Builtin(b) => b.name(),
            Value::Class(c) => c.name(),
            Value::Type(t) => t.name(),
            _ => return Ok(None),
        };
        if name == "__name__" { self.str(of_type).map(Some) } else { Ok(None) }
    }

    /// The type whose methods a receiver has: a type itself stands for its values.
    pub(crate) fn method_type(&self, value: Value) -> &'static str {
        match value {
            Value::Builtin(b) => b.name(),
            Value::Json => "json",
            _ => self.type_name(value),
        }
    }

    pub(crate) fn no_attr<T>(&self, value: Value, name: &str) -> Outcome<T> {
        let type_name = self.method_type(value);
        let message = format!("'{}' object has no attribute '{}'", self.type_name(value), cut(name, 60));
        let hint = match self.object(value) {
            Some(Object::Dict(_)) => {
                let keys = self.keys_hint(value, Some(name));
                match substitutes::attribute(name).filter(|_| !keys.starts_with("did you mean")) {
                    Some(substitute) => format!("{substitute}; {keys}"),
                    None => keys,
                }
            }
            Some(Object::List(items))
                if items.first().is_some_and(|first| matches!(self.object(*first), Some(Object::Dict(_)))) =>
            {
                let shape = self.shape(value);
                format!("it is a list: loop over it, for x in xs: x.{}; its shape is {shape}", cut(name, 60))
            }
            _ if value == Value::None => "the value is None: check what the call returned".to_owned(),
            _ => match (substitutes::attribute(name), nearest(name, methods::of(type_name).iter().copied())) {
                (Some(substitute), _) => substitute.to_owned(),
                (None, Some(near)) => format!("did you mean `{near}`?"),
                (None, None) => format!("its shape is {}", self.shape(value)),
            },
        };
        raise_with(Class::AttributeError, message, hint)
    }

    pub(crate) fn set_attr(&mut self, value: Value, name: &str, new: Value) -> Outcome<()> {
        match (value, self.object(value)) {
            (Value::Object(id), Some(Object::Dict(_))) => {
                let key = self.str(name)?;
                self.insert(id, key, new)
            }
            _ => raise_with(
                Class::AttributeError,
                format!("'{}' object has no attribute '{}' to assign", self.type_name(value), cut(name, 60)),
                "only a dict takes new attributes",
            ),
        }
    }

    pub(crate) fn unpack(&mut self, value: Value, n: usize) -> Outcome<Vec<Value>> {
        let items = self.unpackable(value)?;
        if items.len() != n {
            let message = if items.len() > n {
                format!("too many values to unpack (expected {n})")
            } else {
                format!("not enough values to unpack (expected {n}, got {})", items.len())
            };
            return raise_with(
                Class::ValueError,
                message,
                format!("the value has {} items; its shape is {}", items.len(), self.shape(value)),
            );
        }
        Ok(items)
    }

    pub(crate) fn unpack_rest(&mut self, value: Value, before: usize, after: usize) -> Outcome<Vec<Value>> {
        let items = self.unpackable(value)?;
        let least = before.saturating_add(after);
        if items.len() < least {
            let message = format!("not enough values to unpack (expected at least {least}, got {})", items.len());
            return raise(Class::ValueError, message);
        }
        let end = items.len().saturating_sub(after);
        let rest = self.copied(items.get(before..end).unwrap_or(&[]))?;
        let rest = self.list(rest)?;
        let mut out = self.vec(least.saturating_add(1))?;
        out.extend_from_slice(items.get(..before).unwrap_or(&[]));
        out.push(rest);
        out.extend_from_slice(items.get(end..).unwrap_or(&[]));
        Ok(out)
    }

    fn unpackable(&mut self, value: Value) -> Outcome<Vec<Value>> {
        if self.length(value).is_none() && !matches!(self.object(value), Some(Object::Iter { .. })) {
            return raise_with(
                Class::TypeError,
                format!("cannot unpack non-iterable {} object", self.type_name(value)),
                format!("its shape is {}", self.shape(value)),
            );
        }
        self.collected(value)
    }
}
