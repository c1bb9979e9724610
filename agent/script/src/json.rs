//! JSON to values and back.

use crate::display;
use crate::error::Error;
use crate::heap::{HEADER_BYTES, Heap, ITEM_BYTES, Object, Outcome, Trap, raise, raise_with};
use crate::ops::check_depth;
use crate::value::{Class, Value};
use serde_json::{Map, Number as JsonNumber, Value as Json};

impl Heap {
    /// Values of a JSON document; charged before each is made. Whole numbers beyond 64 bits become floats.
    pub(crate) fn of_json(&mut self, json: &Json) -> Outcome<Value> {
        self.of_json_at(json, 0)
    }

    fn of_json_at(&mut self, json: &Json, depth: u32) -> Outcome<Value> {
        self.work(1)?;
        Ok(match json {
            Json::Null => Value::None,
            Json::Bool(b) => Value::Bool(*b),
            Json::Number(n) => match n.as_i64() {
                Some(n) => Value::Int(n),
                None => Value::Float(n.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => self.str(text)?,
            Json::Array(items) => {
                check_depth(self, depth)?;
                self.room(items.len())?;
                let mut out = Vec::with_capacity(items.len());
                for item in items {
                    out.push(self.of_json_at(item, depth.saturating_add(1))?);
                }
                self.list(out)?
            }
            Json::Object(map) => {
                check_depth(self, depth)?;
                let mut pairs = Vec::new();
                for (key, value) in map {
                    self.room(pairs.len().saturating_mul(2).saturating_add(2))?;
                    let key = self.str(key)?;
                    pairs.push((key, self.of_json_at(value, depth.saturating_add(1))?));
                }
                let table = self.table(pairs)?;
                self.store(Object::Dict(Box::new(table)))?
            }
        })
    }

    /// A value as JSON, for the host: tuples and sets become arrays, keys become strings.
    pub(crate) fn to_json(&self, value: Value) -> Outcome<Json> {
        let mut bytes = 0;
        self.to_json_at(value, 0, &mut bytes)
    }

    fn to_json_at(&self, value: Value, depth: u32, bytes: &mut u64) -> Outcome<Json> {
        self.work(1)?;
        *bytes = bytes.saturating_add(HEADER_BYTES);
        self.would_fit(*bytes)?;
        Ok(match value {
            Value::None => Json::Null,
            Value::Bool(b) => Json::Bool(b),
            Value::Int(n) => Json::from(n),
            Value::Float(n) => match JsonNumber::from_f64(n) {
                Some(n) => Json::Number(n),
                None => {
                    let message = format!("no JSON number: {}", display::float(n));
                    return raise_with(Class::ValueError, message, "check for nan and inf first");
                }
            },
            _ => match self.object(value) {
                Some(Object::Str(text)) => {
                    *bytes = bytes.saturating_add(text.text.len() as u64);
                    self.would_fit(*bytes)?;
                    Json::String(text.text.clone())
                }
                Some(Object::List(items) | Object::Tuple(items)) => {
                    self.json_depth(depth)?;
                    let mut out = Vec::new();
                    for item in items {
                        *bytes = bytes.saturating_add(ITEM_BYTES);
                        out.push(self.to_json_at(*item, depth.saturating_add(1), bytes)?);
                    }
                    Json::Array(out)
                }
                Some(Object::Set(table)) => {
                    self.json_depth(depth)?;
                    let mut out = Vec::new();
                    for (item, _) in table.iter() {
                        out.push(self.to_json_at(item, depth.saturating_add(1), bytes)?);
                    }
                    Json::Array(out)
                }
                Some(Object::Dict(table)) => {
                    self.json_depth(depth)?;
                    let mut map = Map::new();
                    for (key, value) in table.iter() {
                        let key = self.json_key(key)?;
                        *bytes = bytes.saturating_add(key.len() as u64).saturating_add(ITEM_BYTES);
                        map.insert(key, self.to_json_at(value, depth.saturating_add(1), bytes)?);
                    }
                    Json::Object(map)
                }
                Some(Object::Exception { .. }) => Json::String(self.display(value)?),
                Some(
                    Object::Range { .. }
                    | Object::Iter { .. }
                    | Object::Function { .. }
                    | Object::Method { .. }
                    | Object::Pending(_),
                )
                | None => {
                    let name = self.type_name(value);
                    return raise_with(
                        Class::TypeError,
                        format!("Object of type {name} is not JSON serializable"),
                        if name == "range" {
                            "make a list first: list(r)"
                        } else {
                            "pass its result: call it with parentheses"
                        },
                    );
                }
            },
        })
    }

    fn json_depth(&self, depth: u32) -> Outcome<()> {
        if depth >= self.nesting {
            let limit = u64::from(self.nesting);
            let error = Error::over("nesting of values", limit, u64::from(depth).saturating_add(1))
                .with_hint("the value may contain itself");
            return Err(Trap::Fatal(Box::new(error)));
        }
        Ok(())
    }

    fn json_key(&self, key: Value) -> Outcome<String> {
        match key {
            Value::None => Ok("null".to_owned()),
            Value::Bool(b) => Ok(b.to_string()),
            Value::Int(_) | Value::Float(_) => self.repr(key),
            _ => match self.text(key) {
                Some(text) => Ok(text.to_owned()),
                None => raise(
                    Class::TypeError,
                    format!("keys must be str, int, float, bool or None, not {}", self.type_name(key)),
                ),
            },
        }
    }

    /// `json.dumps`, with Python's separators.
    pub(crate) fn json_text(&self, value: Value, indent: Option<usize>, sort: bool) -> Outcome<String> {
        let json = self.to_json(value)?;
        let mut writer = Writer { heap: self, out: String::new(), indent, sort };
        writer.write(&json, 0)?;
        Ok(writer.out)
    }
}

/// What the arguments of a call take, counted as [`Heap::to_json`] does.
pub(crate) fn weight(arguments: &Map<String, Json>) -> u64 {
    let of =
        |(key, value): (&String, &Json)| ITEM_BYTES.saturating_add(key.len() as u64).saturating_add(weight_of(value));
    arguments.iter().map(of).sum()
}

fn weight_of(json: &Json) -> u64 {
    HEADER_BYTES.saturating_add(match json {
        Json::String(text) => text.len() as u64,
        Json::Array(items) => items.iter().map(|item| weight_of(item).saturating_add(ITEM_BYTES)).sum(),
        Json::Object(map) => weight(map),
        _ => 0,
    })
}

struct Writer<'a> {
    heap: &'a Heap,
    out: String,
    indent: Option<usize>,
    sort: bool,
}

impl Writer<'_> {
    fn push(&mut self, text: &str) -> Outcome<()> {
        self.heap.would_fit(self.out.len().saturating_add(text.len()) as u64)?;
        self.heap.work((text.len() as u64 / 64).saturating_add(1))?;
        self.out.push_str(text);
        Ok(())
    }

    fn line(&mut self, depth: usize) -> Outcome<()> {
        match self.indent {
            Some(indent) => self.push(&format!("\n{}", " ".repeat(indent.saturating_mul(depth)))),
            None => Ok(()),
        }
    }

    fn comma(&mut self) -> Outcome<()> {
        self.push(if self.indent.is_some() { "," } else { ", " })
    }

    fn write(&mut self, json: &Json, depth: usize) -> Outcome<()> {
        match json {
            Json::Number(n) if n.is_f64() => self.push(&display::float(n.as_f64().unwrap_or(0.0))),
            Json::Array(items) if items.is_empty() => self.push("[]"),
            Json::Object(map) if map.is_empty() => self.push("{}"),
            Json::Array(items) => {
                self.push("[")?;
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        self.comma()?;
                    }
                    self.line(depth.saturating_add(1))?;
                    self.write(item, depth.saturating_add(1))?;
                }
                self.line(depth)?;
                self.push("]")
            }
            Json::Object(map) => {
                let mut pairs: Vec<(&String, &Json)> = map.iter().collect();
                if self.sort {
                    pairs.sort_by_key(|(key, _)| *key);
                }
                self.push("{")?;
                for (i, (key, value)) in pairs.into_iter().enumerate() {
                    if i > 0 {
                        self.comma()?;
                    }
                    self.line(depth.saturating_add(1))?;
                    self.push(&Json::String(key.clone()).to_string())?;
                    self.push(": ")?;
                    self.write(value, depth.saturating_add(1))?;
                }
                self.line(depth)?;
                self.push("}")
            }
            other => self.push(&other.to_string()),
        }
    }
}
