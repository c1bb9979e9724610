//! Values as text: `str`, `repr`, the shape that the prompt shows, and floats as Python writes them.

use crate::heap::{Heap, Object, Outcome};
use crate::ops::check_depth;
use crate::value::{Class, Id, Value};

/// Text under construction, checked against the byte limit before it grows.
struct Out<'a> {
    heap: &'a Heap,
    text: String,
    open: Vec<Id>,
}

impl Out<'_> {
    fn push(&mut self, piece: &str) -> Outcome<()> {
        self.heap.would_fit(self.text.len().saturating_add(piece.len()) as u64)?;
        self.heap.work((piece.len() as u64 / 64).saturating_add(1))?;
        self.text.push_str(piece);
        Ok(())
    }

    fn repr(&mut self, value: Value) -> Outcome<()> {
        let Value::Object(id) = value else { return self.push(&plain(value)) };
        match self.heap.get(id)? {
            Object::Str(text) => {
                self.heap.would_fit((text.text.len() as u64).saturating_mul(4))?;
                self.push(&quoted(&text.text))
            }
            Object::Range { start, stop, step: 1 } => self.push(&format!("range({start}, {stop})")),
            Object::Range { start, stop, step } => self.push(&format!("range({start}, {stop}, {step})")),
            Object::Iter { .. } => self.push("<iterator>"),
            Object::Function { .. } => self.push("<function>"),
            Object::Method { name, .. } => self.push(&format!("<method {name}>")),
            Object::Pending(_) => self.push("<call>"),
            Object::Exception { class, args, .. } => {
                self.push(class.name())?;
                self.nested(id, "(", args, ")")
            }
            Object::List(items) => self.nested(id, "[", items, "]"),
            Object::Tuple(items) if items.len() == 1 => self.nested(id, "(", items, ",)"),
            Object::Tuple(items) => self.nested(id, "(", items, ")"),
            Object::Set(table) if table.len() == 0 => self.push("set()"),
            Object::Set(table) => {
                let items: Vec<Value> = table.iter().map(|(key, _)| key).collect();
                self.nested(id, "{", &items, "}")
            }
            Object::Dict(table) => {
                if self.opened(id)? {
                    return self.push("{...}");
                }
                self.push("{")?;
                for (i, (key, value)) in table.iter().enumerate() {
                    if i > 0 {
                        self.push(", ")?;
                    }
                    self.repr(key)?;
                    self.push(": ")?;
                    self.repr(value)?;
                }
                self.open.pop();
                self.push("}")
            }
        }
    }

    fn nested(&mut self, id: Id, open: &str, items: &[Value], close: &str) -> Outcome<()> {
        if self.opened(id)? {
            return self.push(&format!("{open}...{close}"));
        }
        self.push(open)?;
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.push(", ")?;
            }
            self.repr(*item)?;
        }
        self.open.pop();
        self.push(close)
    }

    /// Whether the object contains itself; if not, it is now open.
    fn opened(&mut self, id: Id) -> Outcome<bool> {
        if self.open.contains(&id) {
            return Ok(true);
        }
        check_depth(self.heap, self.open.len() as u32)?;
        self.open.push(id);
        Ok(false)
    }
}

impl Heap {
    pub(crate) fn repr(&self, value: Value) -> Outcome<String> {
        let mut out = Out { heap: self, text: String::new(), open: Vec::new() };
        out.repr(value)?;
        Ok(out.text)
    }

    /// What `str(value)` and `print` give.
    pub(crate) fn display(&self, value: Value) -> Outcome<String> {
        match self.object(value) {
            Some(Object::Str(text)) => {
                self.would_fit(text.text.len() as u64)?;
                self.work(text.text.len() as u64 / 64)?;
                Ok(text.text.clone())
            }
            Some(Object::Exception { class, args, .. }) => match args.as_slice() {
                [] => Ok(String::new()),
                [one] if *class == Class::KeyError => self.repr(*one),
                [one] if matches!(self.object(*one), Some(Object::Exception { .. })) => self.repr(*one),
                [one] => self.display(*one),
                many => {
                    let mut out = Out { heap: self, text: String::new(), open: Vec::new() };
                    out.push("(")?;
                    for (i, arg) in many.iter().enumerate() {
                        if i > 0 {
                            out.push(", ")?;
                        }
                        out.repr(*arg)?;
                    }
                    out.push(")")?;
                    Ok(out.text)
                }
            },
            _ => self.repr(value),
        }
    }

    /// A short description such as `list[12] of {name: str, size: int}`.
    pub(crate) fn shape(&self, value: Value) -> String {
        self.shape_at(value, 0)
    }

    fn shape_at(&self, value: Value, depth: u32) -> String {
        const DEEPEST: u32 = 3;
        const KEYS: usize = 12;
        match self.object(value) {
            Some(Object::List(items)) => match items.first() {
                Some(first) if depth < DEEPEST => {
                    let mixed = items.iter().take(50).any(|item| self.type_name(*item) != self.type_name(*first));
                    let of = if mixed { "mixed".to_owned() } else { self.shape_at(*first, depth.saturating_add(1)) };
                    format!("list[{}] of {of}", items.len())
                }
                _ => format!("list[{}]", items.len()),
            },
            Some(Object::Tuple(items)) if depth < DEEPEST && items.len() <= 6 => {
                let parts: Vec<String> =
                    items.iter().map(|item| self.shape_at(*item, depth.saturating_add(1))).collect();
                format!("({})", parts.join(", "))
            }
            Some(Object::Tuple(items)) => format!("tuple[{}]", items.len()),
            Some(Object::Set(table)) => format!("set[{}]", table.len()),
            Some(Object::Dict(table)) => {
                let mut parts = Vec::new();
                for (key, value) in table.iter().take(KEYS) {
                    match self.text(key) {
                        Some(key) if key.chars().count() <= 40 && depth < DEEPEST => {
                            parts.push(format!("{key}: {}", self.shape_at(value, depth.saturating_add(1))));
                        }
                        _ => return format!("dict[{}]", table.len()),
                    }
                }
                if table.len() > KEYS {
                    parts.push("..".to_owned());
                }
                format!("{{{}}}", parts.join(", "))
            }
            Some(Object::Str(text)) if depth == 0 => format!("str[{}]", text.n_chars),
            _ if value == Value::None => "None".to_owned(),
            _ => self.type_name(value).to_owned(),
        }
    }
}

fn plain(value: Value) -> String {
    match value {
        Value::Unbound | Value::None => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Int(n) => n.to_string(),
        Value::Float(n) => float(n),
        Value::Builtin(b) if crate::ops::is_type(b) => format!("<class '{}'>", b.name()),
        Value::Builtin(b) => format!("<built-in function {}>", b.name()),
        Value::Class(c) => format!("<class '{}'>", c.name()),
        Value::Type(t) => format!("<class '{}'>", t.name()),
        Value::Json => "<module 'json'>".to_owned(),
        Value::Server(_) => "<server>".to_owned(),
        Value::Tool(_) => "<tool>".to_owned(),
        Value::Object(_) | Value::Growing(..) => String::new(),
    }
}

/// A float as Python's `repr` writes it: the shortest digits that read back the same.
pub(crate) fn float(n: f64) -> String {
    if n.is_nan() {
        return "nan".to_owned();
    }
    if n.is_infinite() {
        return if n > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{n:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let text = format!("{n}");
        return if text.contains('.') { text } else { text + ".0" };
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// A string in quotes, as Python's `repr` writes it.
pub(crate) fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len().saturating_add(2));
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if (c as u32) < 0x20 || c as u32 == 0x7f || (0x80..0xa1).contains(&(c as u32)) || c as u32 == 0xad => {
                out.push_str(&format!("\\x{:02x}", c as u32));
            }
            c if c.is_whitespace() && c != ' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}
