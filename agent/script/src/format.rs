//! Format specs (`f"{x:>10.2f}"`), `str.format` and `%`.

use crate::args::Args;
use crate::display;
use crate::heap::{Heap, Outcome, raise, raise_with};
use crate::ops::{Number, truncated};
use crate::value::{Class, Value};

/// Widths and precisions beyond this are refused: no one reads them.
const WIDEST: usize = 10_000;
/// Flags, or digits of a width and precision, in a `%` format.
const MOST_FLAGS: usize = 16;

#[derive(Debug, Default)]
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    zero: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

fn parse(spec: &str) -> Option<Spec> {
    const LONGEST: usize = 64;
    let mut chars: heapless::Vec<char, LONGEST> = heapless::Vec::new();
    for c in spec.chars() {
        chars.push(c).ok()?;
    }
    let mut out = Spec::default();
    let mut at = 0;
    let is_align = |c: Option<&char>| matches!(c, Some('<' | '>' | '^' | '='));
    if is_align(chars.get(1)) {
        out.fill = chars.first().copied();
        out.align = chars.get(1).copied();
        at = 2;
    } else if is_align(chars.first()) {
        out.align = chars.first().copied();
        at = 1;
    }
    let eat = |at: &mut usize, set: &[char]| -> Option<char> {
        let c = chars.get(*at).copied().filter(|c| set.contains(c))?;
        *at = at.saturating_add(1);
        Some(c)
    };
    out.sign = eat(&mut at, &['+', '-', ' ']);
    out.alternate = eat(&mut at, &['#']).is_some();
    out.zero = eat(&mut at, &['0']).is_some();
    let number = |at: &mut usize| -> Option<usize> {
        let mut n: Option<usize> = None;
        while let Some(digit) = chars.get(*at).and_then(|c| c.to_digit(10)) {
            n = Some(n.unwrap_or(0).saturating_mul(10).saturating_add(digit as usize));
            *at = at.saturating_add(1);
        }
        n
    };
    out.width = number(&mut at).unwrap_or(0);
    out.grouping = eat(&mut at, &[',', '_']);
    if eat(&mut at, &['.']).is_some() {
        out.precision = Some(number(&mut at)?);
    }
    out.kind = chars.get(at).copied();
    (at.saturating_add(usize::from(out.kind.is_some())) == chars.len()).then_some(out)
}

impl Heap {
    /// `format(value, spec)`.
    pub(crate) fn format(&self, value: Value, spec: &str) -> Outcome<String> {
        if spec.is_empty() {
            return self.display(value);
        }
        let invalid = || {
            let spec = display::cut(spec, 60);
            let message = format!("Invalid format specifier '{spec}' for object of type '{}'", self.type_name(value));
            raise_with(Class::ValueError, message, "write {x:.2f}, {x:>10}, {x:,} or {x:05d}")
        };
        let Some(parsed) = parse(spec) else { return invalid() };
        if parsed.width > WIDEST || parsed.precision.is_some_and(|p| p > WIDEST) {
            let spec = display::cut(spec, 60);
            return raise(Class::ValueError, format!("format width or precision too large: {spec}"));
        }
        let most = parsed.width.max(parsed.precision.unwrap_or(0)) as u64;
        self.scratch(most.saturating_mul(16))?;
        self.work((parsed.width as u64 / 8).saturating_add(parsed.precision.unwrap_or(0) as u64).saturating_add(1))?;
        let unknown = |kind: char| {
            let message = format!("Unknown format code '{kind}' for object of type '{}'", self.type_name(value));
            match kind {
                'd' => raise_with(Class::ValueError, message, "write int(x) first"),
                'f' | 'e' | 'g' | '%' => raise_with(Class::ValueError, message, "write float(x) first"),
                _ => raise(Class::ValueError, message),
            }
        };
        if let Some(text) = self.text(value) {
            if let Some(kind) = parsed.kind.filter(|k| *k != 's') {
                return unknown(kind);
            }
            if parsed.sign.is_some() || parsed.grouping.is_some() || parsed.align == Some('=') || parsed.alternate {
                return invalid();
            }
            let end = parsed.precision.and_then(|precision| text.char_indices().nth(precision));
            let shown = end.and_then(|(end, _)| text.get(..end)).unwrap_or(text);
            return self.padded(&parsed, "", shown, '<');
        }
        let (number, kind) = match (Number::of(value), parsed.kind) {
            (None, _) => {
                let message = format!("unsupported format string passed to {}.__format__", self.type_name(value));
                return raise_with(Class::TypeError, message, "leave out the part after `:`, or write str(x)");
            }
            (Some(Number::Int(_)), Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%')) => {
                (Number::Float(Number::of(value).map_or(0.0, Number::float)), parsed.kind)
            }
            (Some(number), kind) => (number, kind),
        };
        let (negative, prefix, digits) = match number {
            Number::Int(n) => {
                if parsed.precision.is_some() {
                    return raise(Class::ValueError, "Precision not allowed in integer format specifier");
                }
                let magnitude = n.unsigned_abs();
                let (prefix, digits) = match kind {
                    None | Some('d' | 'n') => ("", magnitude.to_string()),
                    Some('x') => ("0x", format!("{magnitude:x}")),
                    Some('X') => ("0X", format!("{magnitude:X}")),
                    Some('o') => ("0o", format!("{magnitude:o}")),
                    Some('b') => ("0b", format!("{magnitude:b}")),
                    Some('c') => match u32::try_from(n).ok().and_then(char::from_u32) {
                        Some(c) => ("", c.to_string()),
                        None => return raise(Class::OverflowError, "%c arg not in range(0x110000)"),
                    },
                    Some(kind) => return unknown(kind),
                };
                (n < 0, if parsed.alternate { prefix } else { "" }, digits)
            }
            Number::Float(n) => {
                let magnitude = n.abs();
                let precision = parsed.precision.unwrap_or(6);
                let digits = match kind {
                    Some('d' | 'x' | 'X' | 'o' | 'b' | 'c') => return unknown(kind.unwrap_or('d')),
                    _ if !magnitude.is_finite() => display::float(magnitude) + if kind == Some('%') { "%" } else { "" },
                    Some('f' | 'F') => format!("{magnitude:.precision$}"),
                    Some('%') => format!("{:.precision$}%", magnitude * 100.0),
                    Some('e') => exponent(magnitude, precision),
                    Some('E') => exponent(magnitude, precision).to_uppercase(),
                    Some('g' | 'n') => general(magnitude, precision, parsed.alternate),
                    Some('G') => general(magnitude, precision, parsed.alternate).to_uppercase(),
                    None => match parsed.precision {
                        None => display::float(magnitude),
                        Some(precision) => plain_precision(magnitude, precision),
                    },
                    Some(kind) => return unknown(kind),
                };
                (n.is_sign_negative() && !n.is_nan(), "", digits)
            }
        };
        let sign = match (negative, parsed.sign) {
            (true, _) => "-",
            (false, Some('+')) => "+",
            (false, Some(' ')) => " ",
            _ => "",
        };
        let prefix = format!("{sign}{prefix}");
        let digits = match parsed.grouping {
            Some(separator) => grouped(&parsed, &digits, separator, prefix.len(), kind),
            None => digits,
        };
        self.padded(&parsed, &prefix, &digits, '>')
    }

    /// `template.format(..)`.
    pub(crate) fn brace_format(&mut self, template: &str, args: &Args) -> Outcome<String> {
        let mut out = String::new();
        let mut automatic = 0;
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            self.work(1)?;
            self.write(&mut out, before)?;
            if let Some(after) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
                self.write(&mut out, from.get(..1).unwrap_or(""))?;
                rest = after;
                continue;
            }
            let (Some(inner), Some(end)) = (from.strip_prefix('{'), field_end(from)) else {
                return raise_with(
                    Class::ValueError,
                    "Single '}' encountered in format string",
                    "write `}}` for the character",
                );
            };
            let field = inner.get(..end.saturating_sub(1)).unwrap_or("");
            rest = from.get(end.saturating_add(1)..).unwrap_or("");
            let (target, spec) = field.split_once(':').unwrap_or((field, ""));
            let (target, conversion) = target.split_once('!').unwrap_or((target, ""));
            let mut value = self.format_field(target, args, &mut automatic)?;
            let spec = match spec.split_once('{').and_then(|(start, rest)| Some((start, rest.split_once('}')?))) {
                Some((start, (name, end))) => {
                    let inner = self.format_field(name, args, &mut automatic)?;
                    let mut whole = self.copied_text(start)?;
                    let inner = self.display(inner)?;
                    self.write(&mut whole, &inner)?;
                    self.write(&mut whole, end)?;
                    whole
                }
                None => self.copied_text(spec)?,
            };
            if conversion == "r" {
                let text = self.repr(value)?;
                value = self.string(text)?;
            }
            let piece = self.format(value, &spec)?;
            self.write(&mut out, &piece)?;
            self.release((piece.capacity() as u64).saturating_add(spec.capacity() as u64));
        }
        self.write(&mut out, rest)?;
        Ok(out)
    }

    fn format_field(&mut self, target: &str, args: &Args, automatic: &mut usize) -> Outcome<Value> {
        let end = target.find(['.', '[']).unwrap_or(target.len());
        let (name, mut path) = target.split_at(end);
        let found = if name.is_empty() {
            *automatic = automatic.saturating_add(1);
            args.plain.get(automatic.saturating_sub(1)).copied()
        } else if let Ok(at) = name.parse::<usize>() {
            args.plain.get(at).copied()
        } else {
            match args.named.iter().find(|(n, _)| n == name) {
                Some((_, value)) => Some(*value),
                None => {
                    let key = self.str(name)?;
                    let error = self.exception(
                        Class::KeyError,
                        vec![key],
                        Some("pass it by name: text.format(name=x)".to_owned()),
                        String::new(),
                    )?;
                    return Err(crate::heap::Trap::Thrown(error));
                }
            }
        };
        let Some(mut value) = found else {
            return raise(Class::IndexError, "Replacement index out of range for positional args tuple");
        };
        while !path.is_empty() {
            if let Some(rest) = path.strip_prefix('.') {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                let (name, rest) = rest.split_at(end);
                value = self.get_attr(value, name)?;
                path = rest;
            } else if let Some((key, rest)) = path.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
                let key = match key.parse::<i64>() {
                    Ok(n) => Value::Int(n),
                    Err(_) => self.str(key)?,
                };
                value = self.get_item(value, key)?;
                path = rest;
            } else {
                return raise(Class::ValueError, "malformed field in format string");
            }
        }
        Ok(value)
    }

    /// `template % values`.
    pub(crate) fn percent_format(&mut self, template: Value, values: Value) -> Outcome<Value> {
        let text = self.copied_text(self.text(template).unwrap_or(""))?;
        let items = match self.object(values) {
            Some(crate::heap::Object::Tuple(items)) => self.copied(items)?,
            _ => self.copied(&[values])?,
        };
        let mut items = items.into_iter();
        let mut out = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            self.work(1)?;
            self.room_in_text(&mut out, c.len_utf8())?;
            if c != '%' {
                out.push(c);
                continue;
            }
            if chars.next_if_eq(&'%').is_some() {
                out.push('%');
                continue;
            }
            let mut key = None;
            if chars.next_if_eq(&'(').is_some() {
                let mut name = String::new();
                for c in chars.by_ref().take_while(|c| *c != ')') {
                    self.room_in_text(&mut name, c.len_utf8())?;
                    name.push(c);
                }
                key = Some(name);
            }
            let mut flags: heapless::String<MOST_FLAGS> = heapless::String::new();
            let mut size: heapless::String<MOST_FLAGS> = heapless::String::new();
            let too_long = |_| raise(Class::ValueError, "format width or precision too large");
            while let Some(flag) = chars.next_if(|c| "-+ #0".contains(*c)) {
                flags.push(flag).or_else(too_long)?;
            }
            while let Some(digit) = chars.next_if(|c| c.is_ascii_digit() || *c == '.') {
                size.push(digit).or_else(too_long)?;
            }
            let Some(kind) = chars.next() else { return raise(Class::ValueError, "incomplete format") };
            let value = match key {
                Some(key) => {
                    let key = self.str(&key)?;
                    self.get_item(values, key)?
                }
                None => match items.next() {
                    Some(value) => value,
                    None => return raise(Class::TypeError, "not enough arguments for format string"),
                },
            };
            let left = if flags.contains('-') { "<" } else { ">" };
            let sign: String = flags.chars().filter(|c| "+ ".contains(*c)).take(1).collect();
            let zero = if flags.contains('0') && left == ">" { "0" } else { "" };
            let piece = match kind {
                's' | 'r' => {
                    let shown = if kind == 's' { self.display(value)? } else { self.repr(value)? };
                    let shown = self.string(shown)?;
                    self.format(shown, &format!("{left}{size}"))?
                }
                'd' | 'i' | 'u' => {
                    let whole = match Number::of(value) {
                        Some(Number::Int(n)) => n,
                        Some(Number::Float(n)) => truncated(n)?,
                        None => {
                            let message =
                                format!("%{kind} format: a real number is required, not {}", self.type_name(value));
                            return raise_with(Class::TypeError, message, "write int(x) first");
                        }
                    };
                    let align = if zero.is_empty() { left } else { "" };
                    self.format(Value::Int(whole), &format!("{align}{sign}{zero}{size}d"))?
                }
                'f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'x' | 'X' | 'o' => {
                    let needs =
                        if "xXo".contains(kind) { "an integer is required" } else { "a real number is required" };
                    match (Number::of(value), kind) {
                        (Some(Number::Int(_)), _) | (Some(_), 'f' | 'F' | 'e' | 'E' | 'g' | 'G') => {}
                        _ => {
                            let message = format!("%{kind} format: {needs}, not {}", self.type_name(value));
                            return raise_with(Class::TypeError, message, "write int(x) or float(x) first");
                        }
                    }
                    let align = if zero.is_empty() { left } else { "" };
                    self.format(value, &format!("{align}{sign}{zero}{size}{kind}"))?
                }
                other => return raise(Class::ValueError, format!("unsupported format character '{other}'")),
            };
            self.write(&mut out, &piece)?;
            self.release(piece.capacity() as u64);
        }
        if items.next().is_some() && !matches!(self.object(values), Some(crate::heap::Object::Dict(_))) {
            return raise(Class::TypeError, "not all arguments converted during string formatting");
        }
        self.string(out)
    }
}

/// Where the `}` stands that closes the `{` at the start, one level of braces inside allowed.
fn field_end(text: &str) -> Option<usize> {
    let mut depth = 0u32;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth = depth.saturating_add(1),
            '}' if depth == 1 => return Some(at),
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > 2 {
            return None;
        }
    }
    None
}

impl Heap {
    /// Prefix and body, filled up to the width; charged as scratch.
    fn padded(&self, spec: &Spec, prefix: &str, body: &str, default: char) -> Outcome<String> {
        let zero = spec.zero && spec.align.is_none() && default == '>';
        let fill = spec.fill.unwrap_or(if spec.zero { '0' } else { ' ' });
        let missing = spec.width.saturating_sub(prefix.chars().count().saturating_add(body.chars().count()));
        let (before, between) = match spec.align.unwrap_or(if zero { '=' } else { default }) {
            '<' => (0, 0),
            '^' => (missing / 2, 0),
            '=' => (0, missing),
            _ => (missing, 0),
        };
        let mut out = String::new();
        let n = missing.saturating_mul(fill.len_utf8()).saturating_add(prefix.len()).saturating_add(body.len());
        self.room_in_text(&mut out, n)?;
        out.extend(std::iter::repeat_n(fill, before));
        out.push_str(prefix);
        out.extend(std::iter::repeat_n(fill, between));
        out.push_str(body);
        out.extend(std::iter::repeat_n(fill, missing.saturating_sub(before).saturating_sub(between)));
        Ok(out)
    }
}

/// Digits with a separator, and with leading zeros up to the width where the spec asks for them.
fn grouped(spec: &Spec, digits: &str, separator: char, n_prefix: usize, kind: Option<char>) -> String {
    let size = if matches!(kind, Some('x' | 'X' | 'o' | 'b')) { 4usize } else { 3 };
    let end = digits.find(|c: char| !c.is_ascii_hexdigit() || (size == 3 && c == 'e')).unwrap_or(digits.len());
    let (whole, rest) = digits.split_at(end);
    let insert = |whole: &str| {
        let mut out = String::new();
        for (i, c) in whole.chars().enumerate() {
            if i > 0 && whole.len().saturating_sub(i).is_multiple_of(size) {
                out.push(separator);
            }
            out.push(c);
        }
        out
    };
    let wanted = spec.width.saturating_sub(rest.len()).saturating_sub(n_prefix);
    let mut n_digits = whole.len();
    if spec.zero && spec.align.is_none() {
        while n_digits.saturating_add(n_digits.saturating_sub(1).checked_div(size).unwrap_or(0)) < wanted {
            n_digits = n_digits.saturating_add(1);
        }
    }
    insert(&("0".repeat(n_digits.saturating_sub(whole.len())) + whole)) + rest
}

fn exponent(n: f64, precision: usize) -> String {
    let text = format!("{n:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

fn general(n: f64, precision: usize, alternate: bool) -> String {
    let precision = precision.max(1);
    let scientific = exponent(n, precision.saturating_sub(1));
    let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let power: i32 = power.parse().unwrap_or(0);
    let trim = |text: &str| {
        if alternate || !text.contains('.') {
            text.to_owned()
        } else {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    };
    if power < -4 || power >= precision as i32 {
        let sign = if power < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(digits), power.abs());
    }
    let decimals = (precision as i32).saturating_sub(1).saturating_sub(power).max(0) as usize;
    trim(&format!("{n:.decimals$}"))
}

/// A precision without a kind: as `g`, but a float keeps its point.
fn plain_precision(n: f64, precision: usize) -> String {
    let precision = precision.max(1);
    let scientific = exponent(n, precision.saturating_sub(1));
    let power: i32 = scientific.split_once('e').and_then(|(_, p)| p.parse().ok()).unwrap_or(0);
    let text = general(n, precision, false);
    if power == (precision as i32).saturating_sub(1) && !text.contains('e') {
        return exponent_trimmed(&scientific);
    }
    if text.contains(['.', 'e']) { text } else { text + ".0" }
}

fn exponent_trimmed(scientific: &str) -> String {
    let (digits, power) = scientific.split_once('e').unwrap_or((scientific, "+00"));
    let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    format!("{digits}e{power}")
}
