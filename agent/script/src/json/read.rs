//! `json.loads`: values are made while the text is read, so that no document stands between them.

use crate::heap::{Heap, Outcome, Trap, raise};
use crate::ops::check_depth;
use crate::value::{Class, Value};
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

impl Heap {
    /// The value of a JSON text, which must not lie in the heap.
    pub(crate) fn of_json_text(&mut self, text: &str) -> Outcome<Value> {
        if text.contains('\\') {
            self.scratch((text.len() as u64).saturating_mul(3))?;
        }
        let mut trap = None;
        let mut reader = serde_json::Deserializer::from_str(text);
        let value = Reader { heap: self, trap: &mut trap, depth: 0 }.deserialize(&mut reader);
        match (trap, value.and_then(|value| reader.end().map(|()| value))) {
            (Some(trap), _) => Err(trap),
            (None, Ok(value)) => Ok(value),
            (None, Err(error)) => raise(Class::ValueError, format!("malformed JSON: {error}")),
        }
    }
}

struct Reader<'a> {
    heap: &'a mut Heap,
    /// Why reading stopped, where it was not for the text.
    trap: &'a mut Option<Trap>,
    depth: u32,
}

impl Reader<'_> {
    fn inner(&mut self) -> Reader<'_> {
        Reader { heap: self.heap, trap: self.trap, depth: self.depth.saturating_add(1) }
    }

    fn done<T, E: serde::de::Error>(&mut self, outcome: Outcome<T>) -> Result<T, E> {
        outcome.map_err(|trap| {
            *self.trap = Some(trap);
            E::custom("stopped")
        })
    }
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
        Ok(Value::Bool(b))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Value, E> {
        Ok(Value::Int(n))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Value, E> {
        Ok(i64::try_from(n).map_or(Value::Float(n as f64), Value::Int))
    }

    fn visit_f64<E>(self, n: f64) -> Result<Value, E> {
        Ok(Value::Float(n))
    }

    fn visit_str<E: serde::de::Error>(mut self, text: &str) -> Result<Value, E> {
        let made = self.heap.work(1).and_then(|()| self.heap.str(text));
        self.done(made)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let deep = check_depth(self.heap, self.depth);
        self.done(deep)?;
        let mut out = Vec::new();
        while let Some(item) = items.next_element_seed(self.inner())? {
            let grown = self.heap.grow(&mut out, item);
            self.done(grown)?;
        }
        let list = self.heap.list(out);
        self.done(list)
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        let deep = check_depth(self.heap, self.depth);
        self.done(deep)?;
        let mut pairs = Vec::new();
        while let Some(key) = entries.next_key_seed(self.inner())? {
            let value = entries.next_value_seed(self.inner())?;
            let grown = self.heap.grow(&mut pairs, (key, value));
            self.done(grown)?;
        }
        let dict = self.heap.dict_of(pairs);
        self.done(dict)
    }
}
