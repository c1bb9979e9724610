//! Values as text: `str`, `repr`, the shape that the prompt shows, and floats as Python writes them.

use crate::heap::{Heap, Object, Outcome, corrupt};
use crate::limits::Limits;
use crate::ops::check_depth;
use crate::value::{Class, Id, Value};

/// Text under construction, charged as scratch.
struct Out<'a> {
    heap: &'a Heap,
    text: String,
    /// What is being written, outermost first: the nesting of values bounds it.
    open: heapless::Vec<Id, { Limits::CEILING.nesting as usize }>,
}

impl Out<'_> {
    fn push(&mut self, piece: &str) -> Outcome<()> {
        self.heap.work(1)?;
        self.heap.write(&mut self.text, piece)
    }

    /// A string in quotes, as Python's `repr` writes it.
    fn quoted(&mut self, text: &str) -> Outcome<()> {
        let quote = quote_of(text);
        self.push(quote)?;
        let mut rest = text;
        while let Some((at, c, escape)) = rest.char_indices().find_map(|(at, c)| Some((at, c, escape(c, quote)?))) {
            self.push(rest.get(..at).unwrap_or(""))?;
            self.push(&escape)?;
            rest = rest.get(at.saturating_add(c.len_utf8())..).unwrap_or("");
        }
        self.push(rest)?;
        self.push(quote)
    }

    fn repr(&mut self, value: Value) -> Outcome<()> {
        let Value::Object(id) = value else { return self.push(&plain(value)) };
        match self.heap.get(id)? {
            Object::Str(text) => self.quoted(&text.text),
            Object::Range { start, stop, step: 1 } => self.push(&format!("range({start}, {stop})")),
            Object::Range { start, stop, step } => self.push(&format!("range({start}, {stop}, {step})")),
            Object::Iter { .. } => self.push("<iterator>"),
            Object::Function { .. } => self.push("<function>"),
            Object::Method { name, .. } => self.push(&format!("<method {name}>")),
            Object::Pending(_) => self.push("<call>"),
            Object::Exception { class, args, .. } => {
                self.push(class.name())?;
                self.nested(id, "(", args.iter().copied(), ")")
            }
            Object::List(items) => self.nested(id, "[", items.iter().copied(), "]"),
            Object::Tuple(items) if items.len() == 1 => self.nested(id, "(", items.iter().copied(), ",)"),
            Object::Tuple(items) => self.nested(id, "(", items.iter().copied(), ")"),
            Object::Set(table) if table.len() == 0 => self.push("set()"),
            Object::Set(table) => self.nested(id, "{", table.iter().map(|(key, _)| key), "}"),
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

    fn nested(&mut self, id: Id, open: &str, items: impl Iterator<Item = Value>, close: &str) -> Outcome<()> {
        if self.opened(id)? {
            return self.push(&format!("{open}...{close}"));
        }
        self.push(open)?;
        for (i, item) in items.enumerate() {
            if i > 0 {
                self.push(", ")?;
            }
            self.repr(item)?;
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
        self.open.push(id).map_err(|_| corrupt())?;
        Ok(false)
    }
}

impl Heap {
    pub(crate) fn repr(&self, value: Value) -> Outcome<String> {
        let mut out = Out { heap: self, text: String::new(), open: heapless::Vec::new() };
        out.repr(value)?;
        Ok(out.text)
    }

    /// As [`Heap::repr`], cut where it is too long for a message.
    pub(crate) fn brief(&self, value: Value) -> Outcome<String> {
        const SHOWN: usize = 200;
        let text = self.repr(value)?;
        Ok(cut(&text, SHOWN))
    }

    /// What `str(value)` and `print` give.
    pub(crate) fn display(&self, value: Value) -> Outcome<String> {
        match self.object(value) {
            Some(Object::Str(text)) => self.copied_text(&text.text),
            Some(Object::Exception { class, args, .. }) => match args.as_slice() {
                [] => Ok(String::new()),
                [one] if *class == Class::KeyError => self.repr(*one),
                [one] if matches!(self.object(*one), Some(Object::Exception { .. })) => self.repr(*one),
                [one] => self.display(*one),
                many => {
                    let mut out = Out { heap: self, text: String::new(), open: heapless::Vec::new() };
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
        const SHOWN: usize = 600;
        let mut out = String::new();
        self.shape_at(value, 0, &mut out);
        cut(&out, SHOWN)
    }

    fn shape_at(&self, value: Value, depth: u32, out: &mut String) {
        const DEEPEST: u32 = 3;
        const KEYS: usize = 12;
        const ENOUGH: usize = 800;
        if out.len() > ENOUGH {
            return;
        }
        let inner = depth.saturating_add(1);
        match self.object(value) {
            Some(Object::List(items)) => {
                out.push_str(&format!("list[{}]", items.len()));
                if let Some(first) = items.first()
                    && depth < DEEPEST
                {
                    out.push_str(" of ");
                    let mixed = items.iter().take(50).any(|item| self.type_name(*item) != self.type_name(*first));
                    if mixed { out.push_str("mixed") } else { self.shape_at(*first, inner, out) }
                }
            }
            Some(Object::Tuple(items)) if depth < DEEPEST && items.len() <= 6 => {
                out.push('(');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    self.shape_at(*item, inner, out);
                }
                out.push(')');
            }
            Some(Object::Tuple(items)) => out.push_str(&format!("tuple[{}]", items.len())),
            Some(Object::Set(table)) => out.push_str(&format!("set[{}]", table.len())),
            Some(Object::Dict(table)) => {
                let named = |key| self.text(key).is_some_and(|key| key.len() <= 160 && key.chars().count() <= 40);
                if depth >= DEEPEST && table.len() > 0 || !table.iter().take(KEYS).all(|(key, _)| named(key)) {
                    out.push_str(&format!("dict[{}]", table.len()));
                    return;
                }
                out.push('{');
                for (i, (key, value)) in table.iter().take(KEYS).enumerate() {
                    out.push_str(if i > 0 { ", " } else { "" });
                    out.push_str(self.text(key).unwrap_or(""));
                    out.push_str(": ");
                    self.shape_at(value, inner, out);
                }
                out.push_str(if table.len() > KEYS { ", ..}" } else { "}" });
            }
            Some(Object::Str(text)) if depth == 0 => out.push_str(&format!("str[{}]", text.n_chars)),
            _ if value == Value::None => out.push_str("None"),
            _ => out.push_str(self.type_name(value)),
        }
    }
}

/// The start of a text that is too long for a message, with a mark.
pub(crate) fn cut(text: &str, shown: usize) -> String {
    match text.get(..text.floor_char_boundary(shown)) {
        Some(start) if start.len() < text.len() => format!("{start}.."),
        _ => text.to_owned(),
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

fn quote_of(text: &str) -> &'static str {
    if text.contains('\'') && !text.contains('"') { "\"" } else { "'" }
}

/// How `repr` writes a character that it does not write as it is.
fn escape(c: char, quote: &str) -> Option<String> {
    let code = u32::from(c);
    Some(match c {
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c if quote.starts_with(c) => format!("\\{c}"),
        _ if code < 0x20 || (0x7f..0xa1).contains(&code) || code == 0xad => format!("\\x{code:02x}"),
        c if c.is_whitespace() && c != ' ' => format!("\\u{code:04x}"),
        _ => return None,
    })
}

/// A short text in quotes, cut where it is too long for a message.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 200;
    let (text, quote) = (cut(text, SHOWN), quote_of(text));
    let inner: String = text.chars().map(|c| escape(c, quote).unwrap_or_else(|| c.to_string())).collect();
    format!("{quote}{inner}{quote}")
}
