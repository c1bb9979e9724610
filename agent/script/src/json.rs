//! JSON to values and back. Depth is bounded by the nesting of values, and on the way in by the reader's own bound, too.

mod read;
mod write;

use crate::display;
use crate::error::Error;
use crate::heap::{Heap, Object, Outcome, Trap, bytes_of, raise, raise_with};
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
                let mut out = self.vec(items.len())?;
                for item in items {
                    out.push(self.of_json_at(item, depth.saturating_add(1))?);
                }
                self.list(out)?
            }
            Json::Object(map) => {
                check_depth(self, depth)?;
                let mut pairs = self.vec(map.len())?;
                for (key, value) in map {
                    let key = self.str(key)?;
                    pairs.push((key, self.of_json_at(value, depth.saturating_add(1))?));
                }
                self.dict_of(pairs)?
            }
        })
    }

    /// A dict of pairs that were charged as scratch, and are no longer.
    fn dict_of(&mut self, pairs: Vec<(Value, Value)>) -> Outcome<Value> {
        let bytes = bytes_of::<(Value, Value)>(pairs.capacity());
        let table = self.table(pairs)?;
        self.release(bytes);
        self.dict(table)
    }

    /// A value as JSON, for the host: tuples and sets become arrays, keys become strings. Charged as scratch.
    pub(crate) fn to_json(&self, value: Value) -> Outcome<Json> {
        self.to_json_at(value, 0)
    }

    fn to_json_at(&self, value: Value, depth: u32) -> Outcome<Json> {
        self.work(1)?;
        Ok(match value {
            Value::None => Json::Null,
            Value::Bool(b) => Json::Bool(b),
            Value::Int(n) => Json::from(n),
            Value::Float(n) => Json::Number(self.json_float(n)?),
            _ => match self.object(value) {
                Some(Object::Str(text)) => Json::String(self.copied_text(&text.text)?),
                Some(Object::List(items) | Object::Tuple(items)) => {
                    self.json_array(items.len(), items.iter().copied(), depth)?
                }
                Some(Object::Set(table)) => self.json_array(table.len(), table.iter().map(|(key, _)| key), depth)?,
                Some(Object::Dict(table)) => {
                    self.json_depth(depth)?;
                    let mut map = self.json_map(table.len())?;
                    for (key, value) in table.iter() {
                        let key = self.json_key(key)?;
                        map.insert(key, self.to_json_at(value, depth.saturating_add(1))?);
                    }
                    Json::Object(map)
                }
                Some(Object::Exception { .. }) => Json::String(self.display(value)?),
                _ => return self.no_json(value),
            },
        })
    }

    fn json_array(&self, n: usize, items: impl Iterator<Item = Value>, depth: u32) -> Outcome<Json> {
        self.json_depth(depth)?;
        let mut out = self.vec(n)?;
        for item in items {
            out.push(self.to_json_at(item, depth.saturating_add(1))?);
        }
        Ok(Json::Array(out))
    }

    /// A map with room for `n` keys.
    pub(crate) fn json_map(&self, n: usize) -> Outcome<Map<String, Json>> {
        self.scratch(map_bytes(n))?;
        Ok(Map::with_capacity(n))
    }

    fn json_float(&self, n: f64) -> Outcome<JsonNumber> {
        match JsonNumber::from_f64(n) {
            Some(n) => Ok(n),
            None => {
                let message = format!("no JSON number: {}", display::float(n));
                raise_with(Class::ValueError, message, "check for nan and inf first")
            }
        }
    }

    fn no_json<T>(&self, value: Value) -> Outcome<T> {
        let name = self.type_name(value);
        raise_with(
            Class::TypeError,
            format!("Object of type {name} is not JSON serializable"),
            if name == "range" { "make a list first: list(r)" } else { "pass its result: call it with parentheses" },
        )
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
            Value::None => self.copied_text("null"),
            Value::Bool(b) => self.copied_text(if b { "true" } else { "false" }),
            Value::Int(_) | Value::Float(_) => self.repr(key),
            _ => match self.text(key) {
                Some(text) => self.copied_text(text),
                None => raise(
                    Class::TypeError,
                    format!("keys must be str, int, float, bool or None, not {}", self.type_name(key)),
                ),
            },
        }
    }
}

/// What a map with room for `n` keys takes: hash, key and value each, and an index of eight bytes and one of control a place.
fn map_bytes(n: usize) -> u64 {
    if n == 0 {
        return 0;
    }
    let places = (n as u64).saturating_mul(8).div_ceil(7).saturating_add(1).next_power_of_two().max(4);
    bytes_of::<(u64, String, Json)>(n).saturating_add(places.saturating_mul(9)).saturating_add(32)
}

/// What a document takes, where nothing in it has room to spare.
pub(crate) fn weight(json: &Json) -> u64 {
    match json {
        Json::String(text) => text.len() as u64,
        Json::Array(items) => {
            items.iter().fold(bytes_of::<Json>(items.len()), |sum, item| sum.saturating_add(weight(item)))
        }
        Json::Object(map) => map.iter().fold(map_bytes(map.len()), |sum, (key, value)| {
            sum.saturating_add(key.len() as u64).saturating_add(weight(value))
        }),
        _ => 0,
    }
}
