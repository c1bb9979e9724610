//! Methods of strings, lists, dicts, sets and `json`.

mod text;

pub(crate) use text::is_space;

use crate::args::Args;
use crate::ast::BinOp;
use crate::error::nearest;
use crate::heap::{Heap, Object, Outcome, Trap, bytes_of, corrupt, raise, raise_with};
use crate::value::{Builtin, Class, Id, Value};
use std::cmp::Ordering;

const LIST: &[&str] =
    &["append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort"];
const TUPLE: &[&str] = &["count", "index"];
const DICT: &[&str] =
    &["clear", "copy", "fromkeys", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"];
const SET: &[&str] = &[
    "add",
    "clear",
    "copy",
    "difference",
    "discard",
    "intersection",
    "isdisjoint",
    "issubset",
    "issuperset",
    "pop",
    "remove",
    "symmetric_difference",
    "union",
    "update",
];
const JSON: &[&str] = &["dumps", "loads"];
const FLOAT: &[&str] = &["is_integer"];

/// The methods of a type.
pub(crate) fn of(type_name: &str) -> &'static [&'static str] {
    match type_name {
        "str" => text::NAMES,
        "list" => LIST,
        "tuple" => TUPLE,
        "dict" => DICT,
        "set" => SET,
        "json" => JSON,
        "float" => FLOAT,
        _ => &[],
    }
}

pub(crate) fn has(type_name: &str, name: &str) -> bool {
    of(type_name).contains(&name)
}

impl Heap {
    /// Calls a method that [`has`] knows. `list.sort` with a key is done by the VM.
    pub(crate) fn call_method(&mut self, receiver: Value, name: &str, mut args: Args) -> Outcome<Value> {
        if let Value::Builtin(builtin) = receiver {
            return self.call_on_type(builtin, name, args);
        }
        match (receiver, self.object(receiver)) {
            (_, Some(Object::Str(_))) => text::call(self, receiver, name, args),
            (Value::Object(id), Some(Object::List(_))) => self.list_method(id, receiver, name, args),
            (_, Some(Object::Tuple(_))) => self.sequence_method(receiver, name, &args),
            (Value::Object(id), Some(Object::Dict(_))) => self.dict_method(id, receiver, name, args),
            (Value::Object(id), Some(Object::Set(_))) => self.set_method(id, receiver, name, &args),
            (Value::Json, _) => self.json_method(name, &mut args),
            (Value::Float(n), _) => Ok(Value::Bool(n.fract() == 0.0)),
            _ => self.no_attr(receiver, name),
        }
    }

    /// `str.lower(text)`: the first argument is the receiver.
    fn call_on_type(&mut self, builtin: Builtin, name: &str, mut args: Args) -> Outcome<Value> {
        if (builtin, name) == (Builtin::Dict, "fromkeys") {
            let [keys, value] = args.bind("fromkeys", ["iterable", "value"], 1)?;
            let value = if value == Value::Unbound { Value::None } else { value };
            let keys = self.collected(keys)?;
            let table = self.table(keys.into_iter().map(|key| (key, value)))?;
            return self.dict(table);
        }
        if args.plain.is_empty() {
            return raise(Class::TypeError, format!("{}.{name}() needs an argument", builtin.name()));
        }
        let receiver = args.plain.remove(0);
        if self.type_name(receiver) != builtin.name() {
            let (wanted, found) = (builtin.name(), self.type_name(receiver));
            return raise(
                Class::TypeError,
                format!("descriptor '{name}' for '{wanted}' objects doesn't apply to a '{found}' object"),
            );
        }
        self.call_method(receiver, name, args)
    }

    fn sequence_method(&mut self, receiver: Value, name: &str, args: &Args) -> Outcome<Value> {
        let [value] = args.bind(name, ["value"], 1)?;
        let items = self.items(receiver).ok_or_else(corrupt)?;
        let mut n = 0i64;
        for (i, item) in items.iter().enumerate() {
            if self.equal(*item, value)? {
                if name == "index" {
                    return Ok(Value::Int(i as i64));
                }
                n = n.saturating_add(1);
            }
        }
        if name == "count" {
            return Ok(Value::Int(n));
        }
        let shown = self.brief(value)?;
        raise_with(Class::ValueError, format!("{shown} is not in list"), "check first: if x in xs")
    }

    fn list_method(&mut self, id: Id, receiver: Value, name: &str, mut args: Args) -> Outcome<Value> {
        let len = self.items(receiver).map_or(0, <[Value]>::len);
        match name {
            "count" | "index" => return self.sequence_method(receiver, name, &args),
            "append" => {
                let [value] = args.bind(name, ["value"], 1)?;
                self.change_list(id, 1, |items| items.push(value))?;
            }
            "extend" => {
                let [values] = args.bind(name, ["values"], 1)?;
                let values = self.collected(values)?;
                self.change_list(id, values.len(), |items| items.extend(values))?;
            }
            "insert" => {
                let [index, value] = args.bind(name, ["index", "value"], 2)?;
                let n = self.int_arg("index", index)?;
                let at = if n < 0 { n.saturating_add(len as i64).max(0) } else { n.min(len as i64) } as usize;
                self.work(len as u64 / 64)?;
                self.change_list(id, 1, |items| items.insert(at, value))?;
            }
            "pop" => {
                let [index] = args.bind(name, ["index"], 0)?;
                if len == 0 {
                    return raise_with(Class::IndexError, "pop from empty list", "check first: if xs");
                }
                let n = if index == Value::Unbound { -1 } else { self.int_arg("index", index)? };
                let at = if n < 0 { n.saturating_add(len as i64) } else { n };
                return match usize::try_from(at).ok().filter(|at| *at < len) {
                    Some(at) => {
                        self.work(len.saturating_sub(at) as u64 / 64)?;
                        self.change_list(id, 0, |items| items.remove(at))
                    }
                    None => raise(Class::IndexError, "pop index out of range"),
                };
            }
            "remove" => {
                let [value] = args.bind(name, ["value"], 1)?;
                let found =
                    match self.sequence_method(receiver, "index", &Args { plain: vec![value], named: Vec::new() }) {
                        Ok(Value::Int(at)) => at as usize,
                        Ok(_) => return Err(corrupt()),
                        Err(Trap::Raise(_)) => {
                            return raise_with(
                                Class::ValueError,
                                "list.remove(x): x not in list",
                                "check first: if x in xs",
                            );
                        }
                        Err(other) => return Err(other),
                    };
                self.change_list(id, 0, |items| items.remove(found))?;
            }
            "clear" => {
                args.bind::<0>(name, [], 0)?;
                self.change_list(id, 0, Vec::clear)?;
            }
            "reverse" => {
                self.work(len as u64 / 8)?;
                self.change_list(id, 0, |items| items.reverse())?;
            }
            "copy" => {
                let items = self.collected(receiver)?;
                return self.list(items);
            }
            "sort" => {
                let reverse = args.take("reverse").is_some_and(|v| self.truthy(v));
                let items = self.collected(receiver)?;
                let sorted = self.sorted(&items, &items, reverse)?;
                self.replace_items(id, &sorted)?;
            }
            _ => return self.no_attr(receiver, name),
        }
        Ok(Value::None)
    }

    /// `items` in the order of `keys`, stable; work is charged for each comparison.
    pub(crate) fn sorted(&mut self, items: &[Value], keys: &[Value], reverse: bool) -> Outcome<Vec<Value>> {
        let n = items.len().min(keys.len());
        let mut order: Vec<usize> = self.vec(n)?;
        order.extend(0..n);
        let mut merged: Vec<usize> = self.vec(n)?;
        let key = |at: usize| keys.get(at).copied().unwrap_or(Value::None);
        let goes_first = |a: usize, b: usize| {
            let (a, b) = if reverse { (b, a) } else { (a, b) };
            Ok(self.order(key(a), key(b), "<")? == Some(Ordering::Less))
        };
        // The sort of the standard library panics where there is no total order: with NaN, or with an error half way.
        let mut run = 1;
        while run < n {
            for pair in order.chunks(run.saturating_mul(2)) {
                merge(pair.split_at(run.min(pair.len())), &mut merged, goes_first)?;
            }
            std::mem::swap(&mut order, &mut merged);
            merged.clear();
            run = run.saturating_mul(2);
        }
        let mut out = self.vec(n)?;
        out.extend(order.into_iter().filter_map(|at| items.get(at).copied()));
        Ok(out)
    }

    /// Puts as many items in place of those of a list, or of what is left of it.
    pub(crate) fn replace_items(&mut self, id: Id, new: &[Value]) -> Outcome<()> {
        let Object::List(items) = self.get(id)? else { return Err(corrupt()) };
        let more = new.len().saturating_sub(items.len());
        self.change_list(id, more, |items| {
            items.clear();
            items.extend_from_slice(new);
        })
    }

    fn dict_method(&mut self, id: Id, receiver: Value, name: &str, mut args: Args) -> Outcome<Value> {
        let or_none = |value| if value == Value::Unbound { Value::None } else { value };
        match name {
            "get" => {
                let [key, default] = args.bind(name, ["key", "default"], 1)?;
                Ok(self.lookup(id, key)?.unwrap_or(or_none(default)))
            }
            "setdefault" => {
                let [key, default] = args.bind(name, ["key", "default"], 1)?;
                if let Some(found) = self.lookup(id, key)? {
                    return Ok(found);
                }
                self.insert(id, key, or_none(default))?;
                Ok(or_none(default))
            }
            "pop" => {
                let [key, default] = args.bind(name, ["key", "default"], 1)?;
                match (self.lookup(id, key)?, default) {
                    (Some(found), _) => {
                        self.delete_item(receiver, key)?;
                        Ok(found)
                    }
                    (None, Value::Unbound) => self.missing_key(receiver, key),
                    (None, default) => Ok(default),
                }
            }
            "popitem" => {
                let slot = match self.get(id)? {
                    Object::Dict(table) => table.last_slot(),
                    _ => None,
                };
                let Some(slot) = slot else { return raise(Class::KeyError, "'popitem(): dictionary is empty'") };
                match self.remove_slot(id, slot)? {
                    Some((key, value)) => self.tuple_of(&[key, value]),
                    None => Err(corrupt()),
                }
            }
            "keys" | "values" | "items" | "copy" | "clear" => {
                args.bind::<0>(name, [], 0)?;
                let n = self.length(receiver).unwrap_or(0);
                self.work(n)?;
                if name == "clear" {
                    self.clear_table(id)?;
                    return Ok(Value::None);
                }
                let pairs = self.pairs(receiver)?;
                if name == "copy" {
                    let table = self.table(pairs)?;
                    return self.dict(table);
                }
                let mut items = self.vec(pairs.len())?;
                for (key, value) in pairs {
                    items.push(match name {
                        "keys" => key,
                        "values" => value,
                        _ => self.tuple_of(&[key, value])?,
                    });
                }
                self.list(items)
            }
            "update" => {
                let named = std::mem::take(&mut args.named);
                let [other] = args.bind(name, ["other"], 0)?;
                if other != Value::Unbound {
                    self.merge(id, other)?;
                }
                for (key, value) in named {
                    let key = self.str(&key)?;
                    self.insert(id, key, value)?;
                }
                Ok(Value::None)
            }
            _ => self.no_attr(receiver, name),
        }
    }

    pub(crate) fn lookup(&self, id: Id, key: Value) -> Outcome<Option<Value>> {
        match self.get(id)? {
            Object::Dict(table) => Ok(self.find_in(table, key)?.and_then(|slot| table.value_at(slot))),
            _ => Err(corrupt()),
        }
    }

    /// Puts the entries of a dict, or pairs, into a dict.
    pub(crate) fn merge(&mut self, id: Id, other: Value) -> Outcome<()> {
        if matches!(self.object(other), Some(Object::Dict(_))) {
            for (key, value) in self.pairs(other)? {
                self.insert(id, key, value)?;
            }
            return Ok(());
        }
        for pair in self.collected(other)? {
            let pair = self.unpack(pair, 2)?;
            let [key, value] = *pair.as_slice() else { return Err(corrupt()) };
            self.release(bytes_of::<Value>(pair.capacity()));
            self.insert(id, key, value)?;
        }
        Ok(())
    }

    fn set_method(&mut self, id: Id, receiver: Value, name: &str, args: &Args) -> Outcome<Value> {
        let operation = match name {
            "union" | "update" => Some(BinOp::Or),
            "intersection" => Some(BinOp::And),
            "difference" => Some(BinOp::Sub),
            "symmetric_difference" => Some(BinOp::Xor),
            _ => None,
        };
        if let Some(op) = operation {
            let mut result = receiver;
            for other in &args.plain {
                let other = self.as_set(*other)?;
                result = self.binary(op, result, other)?;
            }
            if name != "update" {
                return if result == receiver { self.copied_set(receiver) } else { Ok(result) };
            }
            for (key, value) in self.pairs(result)? {
                self.insert(id, key, value)?;
            }
            return Ok(Value::None);
        }
        match name {
            "add" => {
                let [value] = args.bind(name, ["value"], 1)?;
                self.insert(id, value, Value::None)?;
                Ok(Value::None)
            }
            "remove" | "discard" => {
                let [value] = args.bind(name, ["value"], 1)?;
                let Object::Set(table) = self.get(id)? else { return Err(corrupt()) };
                match self.find_in(table, value)? {
                    Some(slot) => {
                        self.remove_slot(id, slot)?;
                        Ok(Value::None)
                    }
                    None if name == "discard" => Ok(Value::None),
                    None => {
                        let error = self.exception(Class::KeyError, vec![value], None, String::new())?;
                        Err(Trap::Thrown(error))
                    }
                }
            }
            "issubset" | "issuperset" | "isdisjoint" => {
                let [other] = args.bind(name, ["other"], 1)?;
                let other = self.as_set(other)?;
                match name {
                    "issubset" => self.compare(crate::ast::CmpOp::Le, receiver, other).map(Value::Bool),
                    "issuperset" => self.compare(crate::ast::CmpOp::Ge, receiver, other).map(Value::Bool),
                    _ => {
                        let both = self.binary(BinOp::And, receiver, other)?;
                        Ok(Value::Bool(!self.truthy(both)))
                    }
                }
            }
            "copy" => self.copied_set(receiver),
            "clear" => {
                self.clear_table(id)?;
                Ok(Value::None)
            }
            "pop" => {
                let Object::Set(table) = self.get(id)? else { return Err(corrupt()) };
                let Some((next, ..)) = table.next_from(0) else {
                    return raise(Class::KeyError, "'pop from an empty set'");
                };
                match self.remove_slot(id, next.saturating_sub(1))? {
                    Some((key, _)) => Ok(key),
                    None => Err(corrupt()),
                }
            }
            _ => self.no_attr(receiver, name),
        }
    }

    fn copied_set(&mut self, value: Value) -> Outcome<Value> {
        let table = self.table(self.pairs(value)?)?;
        self.set(table)
    }

    pub(crate) fn as_set(&mut self, value: Value) -> Outcome<Value> {
        if matches!(self.object(value), Some(Object::Set(_))) {
            return Ok(value);
        }
        let items = self.collected(value)?;
        let table = self.table(items.into_iter().map(|item| (item, Value::None)))?;
        self.set(table)
    }

    fn json_method(&mut self, name: &str, args: &mut Args) -> Outcome<Value> {
        match name {
            "loads" => {
                let [text] = args.bind(name, ["s"], 1)?;
                let text = self.text_arg("the JSON text", text)?;
                self.work(text.len() as u64 / 4)?;
                let text = self.copied_text(text)?;
                self.of_json_text(&text)
            }
            "dumps" => {
                args.take("ensure_ascii");
                args.take("default");
                let sort = args.take("sort_keys").is_some_and(|v| self.truthy(v));
                let [value, indent] = args.bind(name, ["obj", "indent"], 1)?;
                let indent = match indent {
                    Value::Unbound | Value::None => None,
                    other => Some(self.int_arg("indent", other)?.clamp(0, 16) as usize),
                };
                let text = self.json_text(value, indent, sort)?;
                self.string(text)
            }
            _ => {
                let hint = nearest(name, JSON.iter().copied()).unwrap_or("dumps");
                raise_with(
                    Class::AttributeError,
                    format!("module 'json' has no attribute '{name}'"),
                    format!("write json.{hint}(..)"),
                )
            }
        }
    }
}

/// Adds two sorted runs to `out`, the left one first where neither goes first.
fn merge(
    (left, right): (&[usize], &[usize]),
    out: &mut Vec<usize>,
    goes_first: impl Fn(usize, usize) -> Outcome<bool>,
) -> Outcome<()> {
    let (mut left, mut right) = (left.iter().copied().peekable(), right.iter().copied().peekable());
    while let (Some(&a), Some(&b)) = (left.peek(), right.peek()) {
        if goes_first(b, a)? {
            out.extend(right.next());
        } else {
            out.extend(left.next());
        }
    }
    out.extend(left);
    out.extend(right);
    Ok(())
}
