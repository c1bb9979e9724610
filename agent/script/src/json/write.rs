//! `json.dumps`, with Python's separators.

use crate::display;
use crate::heap::{Heap, Object, Outcome};
use crate::value::Value;

impl Heap {
    /// A value as JSON text, charged as scratch.
    pub(crate) fn json_text(&self, value: Value, indent: Option<usize>, sort: bool) -> Outcome<String> {
        let mut writer = Writer { heap: self, out: String::new(), indent, sort };
        writer.value(value, 0)?;
        Ok(writer.out)
    }
}

struct Writer<'a> {
    heap: &'a Heap,
    out: String,
    indent: Option<usize>,
    sort: bool,
}

impl Writer<'_> {
    fn push(&mut self, text: &str) -> Outcome<()> {
        self.heap.work(1)?;
        self.heap.write(&mut self.out, text)
    }

    fn line(&mut self, depth: u32) -> Outcome<()> {
        const SPACES: &str = "                ";
        let Some(indent) = self.indent else { return Ok(()) };
        self.push("\n")?;
        for _ in 0..depth {
            self.push(SPACES.get(..indent).unwrap_or(SPACES))?;
        }
        Ok(())
    }

    /// What stands before the `i`-th part of an array or object.
    fn before(&mut self, i: usize, depth: u32) -> Outcome<()> {
        if i > 0 {
            self.push(if self.indent.is_some() { "," } else { ", " })?;
        }
        self.line(depth.saturating_add(1))
    }

    fn value(&mut self, value: Value, depth: u32) -> Outcome<()> {
        self.heap.work(1)?;
        match value {
            Value::None => self.push("null"),
            Value::Bool(true) => self.push("true"),
            Value::Bool(false) => self.push("false"),
            Value::Int(n) => self.push(&n.to_string()),
            Value::Float(n) => {
                self.heap.json_float(n)?;
                self.push(&display::float(n))
            }
            _ => match self.heap.object(value) {
                Some(Object::Str(text)) => self.string(&text.text),
                Some(Object::List(items) | Object::Tuple(items)) => self.array(items.iter().copied(), depth),
                Some(Object::Set(table)) => self.array(table.iter().map(|(key, _)| key), depth),
                Some(Object::Dict(table)) if self.sort => {
                    let mut pairs = self.heap.vec(table.len())?;
                    for (key, value) in table.iter() {
                        pairs.push((self.heap.json_key(key)?, value));
                    }
                    pairs.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
                    self.object(pairs.into_iter().map(Ok), depth)
                }
                Some(Object::Dict(table)) => {
                    let heap = self.heap;
                    self.object(table.iter().map(|(key, value)| Ok((heap.json_key(key)?, value))), depth)
                }
                Some(Object::Exception { .. }) => {
                    let text = self.heap.display(value)?;
                    self.string(&text)
                }
                _ => self.heap.no_json(value),
            },
        }
    }

    fn array(&mut self, items: impl Iterator<Item = Value>, depth: u32) -> Outcome<()> {
        self.heap.json_depth(depth)?;
        self.push("[")?;
        let mut any = false;
        for (i, item) in items.enumerate() {
            any = true;
            self.before(i, depth)?;
            self.value(item, depth.saturating_add(1))?;
        }
        if any {
            self.line(depth)?;
        }
        self.push("]")
    }

    fn object(&mut self, pairs: impl Iterator<Item = Outcome<(String, Value)>>, depth: u32) -> Outcome<()> {
        self.heap.json_depth(depth)?;
        self.push("{")?;
        let mut any = false;
        for (i, pair) in pairs.enumerate() {
            let (key, value) = pair?;
            any = true;
            self.before(i, depth)?;
            self.string(&key)?;
            self.heap.release(key.capacity() as u64);
            self.push(": ")?;
            self.value(value, depth.saturating_add(1))?;
        }
        if any {
            self.line(depth)?;
        }
        self.push("}")
    }

    fn string(&mut self, text: &str) -> Outcome<()> {
        self.push("\"")?;
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
            let (plain, from) = rest.split_at(at);
            self.push(plain)?;
            let c = from.chars().next().unwrap_or(' ');
            match c {
                '"' => self.push("\\\"")?,
                '\\' => self.push("\\\\")?,
                '\n' => self.push("\\n")?,
                '\r' => self.push("\\r")?,
                '\t' => self.push("\\t")?,
                '\u{8}' => self.push("\\b")?,
                '\u{c}' => self.push("\\f")?,
                c => self.push(&format!("\\u{:04x}", u32::from(c)))?,
            }
            rest = from.get(c.len_utf8()..).unwrap_or("");
        }
        self.push(rest)?;
        self.push("\"")
    }
}
