//! Methods of strings.

use crate::args::Args;
use crate::heap::{Heap, Outcome, raise, raise_with};
use crate::value::{Class, Value};

pub(super) const NAMES: &[&str] = &[
    "capitalize",
    "casefold",
    "center",
    "count",
    "encode",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "upper",
    "zfill",
];

pub(super) fn call(heap: &mut Heap, receiver: Value, name: &str, args: Args) -> Outcome<Value> {
    let text = heap.text_arg("the receiver", receiver)?;
    let text = heap.copied_text(text)?;
    heap.work((text.len() as u64 / 32).saturating_add(1))?;
    match name {
        "lower" | "casefold" | "upper" | "capitalize" | "title" | "swapcase" => {
            none(&args, name)?;
            cased(heap, &text, name)
        }
        "strip" | "lstrip" | "rstrip" => {
            let [chars] = args.bind(name, ["chars"], 0)?;
            let set = match chars {
                Value::Unbound | Value::None => None,
                chars => Some(heap.text_arg("the argument of strip", chars)?),
            };
            let strips = |c: char| set.map_or_else(|| is_space(c), |set| set.contains(c));
            let mut part = text.as_str();
            if name != "rstrip" {
                part = part.trim_start_matches(strips);
            }
            if name != "lstrip" {
                part = part.trim_end_matches(strips);
            }
            heap.str(part)
        }
        "split" | "rsplit" => split(heap, &text, name, &args),
        "splitlines" => {
            let [keep] = args.bind(name, ["keepends"], 0)?;
            let keep = heap.truthy(keep);
            strings(heap, Lines { rest: &text, keep })
        }
        "join" => join(heap, &text, &args),
        "replace" => replace(heap, &text, &args),
        "startswith" | "endswith" => {
            let [parts, start, end] = args.bind(name, ["prefix", "start", "end"], 1)?;
            let text = if start == Value::Unbound { text } else { sliced(heap, receiver, start, end)? };
            heap.work(1)?;
            let tests = |part: &str| if name == "startswith" { text.starts_with(part) } else { text.ends_with(part) };
            if let (Some(parts), "tuple") = (heap.items(parts), heap.type_name(parts)) {
                for part in parts {
                    heap.work(1)?;
                    if tests(heap.text_arg("the argument", *part)?) {
                        return Ok(Value::Bool(true));
                    }
                }
                return Ok(Value::Bool(false));
            }
            Ok(Value::Bool(tests(heap.text_arg("the argument", parts)?)))
        }
        "removeprefix" | "removesuffix" => {
            let [part] = args.bind(name, ["part"], 1)?;
            let part = heap.text_arg("the argument", part)?;
            let rest = if name == "removeprefix" { text.strip_prefix(part) } else { text.strip_suffix(part) };
            heap.str(rest.unwrap_or(&text))
        }
        "find" | "rfind" | "index" | "rindex" => find(heap, receiver, &text, name, &args),
        "count" => {
            let [part, start, end] = args.bind(name, ["sub", "start", "end"], 1)?;
            let text = if start == Value::Unbound { text } else { sliced(heap, receiver, start, end)? };
            let part = heap.text_arg("the argument", part)?;
            let n = if part.is_empty() { text.chars().count().saturating_add(1) } else { text.matches(part).count() };
            Ok(Value::Int(n as i64))
        }
        "partition" | "rpartition" => {
            let [part] = args.bind(name, ["sep"], 1)?;
            let part = heap.copied_text(heap.text_arg("the argument", part)?)?;
            if part.is_empty() {
                return raise(Class::ValueError, "empty separator");
            }
            let found = if name == "partition" { text.split_once(&*part) } else { text.rsplit_once(&*part) };
            let parts = match found {
                Some((before, after)) => [before, &part, after],
                None if name == "partition" => [text.as_str(), "", ""],
                None => ["", "", text.as_str()],
            };
            let mut items = heap.vec(parts.len())?;
            for part in parts {
                items.push(heap.str(part)?);
            }
            heap.tuple(items)
        }
        "center" | "ljust" | "rjust" | "zfill" => pad(heap, &text, name, &args),
        "expandtabs" => {
            let [size] = args.bind(name, ["tabsize"], 0)?;
            let size = if size == Value::Unbound { 8 } else { heap.int_arg("tabsize", size)?.clamp(0, 64) as usize };
            heap.work(text.len() as u64 / 4)?;
            let expanded = expand_tabs(heap, &text, size)?;
            heap.string(expanded)
        }
        "format" => {
            let text = heap.brace_format(&text, &args)?;
            heap.string(text)
        }
        "encode" => {
            raise_with(Class::AttributeError, "bytes are not part of the language", "work with the string itself")
        }
        _ => {
            none(&args, name)?;
            Ok(Value::Bool(test(&text, name)))
        }
    }
}

fn none(args: &Args, name: &str) -> Outcome<()> {
    args.bind::<0>(name, [], 0).map(|_| ())
}

/// What Python's `str.isspace` calls space.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn test(text: &str, name: &str) -> bool {
    let all = |f: fn(char) -> bool| !text.is_empty() && text.chars().all(f);
    match name {
        "isdigit" | "isdecimal" | "isnumeric" => all(char::is_numeric),
        "isalpha" => all(char::is_alphabetic),
        "isalnum" => all(char::is_alphanumeric),
        "isspace" => all(is_space),
        "isascii" => text.is_ascii(),
        "isidentifier" => {
            text.chars().all(|c| c == '_' || c.is_alphanumeric())
                && text.chars().next().is_some_and(|c| c == '_' || c.is_alphabetic())
        }
        "islower" => text.chars().any(char::is_lowercase) && !text.chars().any(char::is_uppercase),
        "isupper" => text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase),
        "istitle" => text.chars().any(char::is_alphabetic) && titled(text).eq(text.chars()),
        _ => false,
    }
}

/// A text in another case. Its length is known before it is made.
fn cased(heap: &mut Heap, text: &str, name: &str) -> Outcome<Value> {
    if text.is_ascii() || !matches!(name, "lower" | "casefold") {
        return collected(heap, || cased_chars(text, name));
    }
    heap.scratch((text.len() as u64).saturating_mul(6))?;
    heap.str(&text.to_lowercase())
}

fn cased_chars<'a>(text: &'a str, name: &str) -> Box<dyn Iterator<Item = char> + 'a> {
    match name {
        "upper" => Box::new(text.chars().flat_map(char::to_uppercase)),
        "title" => Box::new(titled(text)),
        "capitalize" => Box::new(text.char_indices().flat_map(|(at, c)| match at {
            0 => Cased::Title(title_case(c)),
            _ => Cased::Lower(c.to_lowercase()),
        })),
        "swapcase" => Box::new(text.chars().flat_map(|c| match c.is_uppercase() {
            true => Cased::Title(c.to_lowercase()),
            false => Cased::Upper(c.to_uppercase()),
        })),
        _ => Box::new(text.chars().flat_map(char::to_lowercase)),
    }
}

/// Stores the characters that `chars` gives, each time the same.
fn collected<I: Iterator<Item = char>>(heap: &mut Heap, chars: impl Fn() -> I) -> Outcome<Value> {
    let n_bytes = chars().fold(0usize, |sum, c| sum.saturating_add(c.len_utf8()));
    heap.scratch(n_bytes as u64)?;
    let mut out = String::with_capacity(n_bytes);
    chars().for_each(|c| out.push(c));
    heap.string(out)
}

/// The case changes of one character.
enum Cased<T> {
    Lower(std::char::ToLowercase),
    Upper(std::char::ToUppercase),
    Title(T),
}

impl<T: Iterator<Item = char>> Iterator for Cased<T> {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self {
            Cased::Lower(chars) => chars.next(),
            Cased::Upper(chars) => chars.next(),
            Cased::Title(chars) => chars.next(),
        }
    }
}

fn titled(text: &str) -> impl Iterator<Item = char> + '_ {
    let mut inside = false;
    text.chars().flat_map(move |c| {
        let first = !std::mem::replace(&mut inside, c.is_lowercase() || c.is_uppercase());
        if first { Cased::Title(title_case(c)) } else { Cased::Lower(c.to_lowercase()) }
    })
}

/// Of a character whose upper case is several, only the first stays upper.
fn title_case(c: char) -> impl Iterator<Item = char> {
    let mut upper = c.to_uppercase();
    upper.next().into_iter().chain(upper.flat_map(char::to_lowercase))
}

fn expand_tabs(heap: &Heap, text: &str, size: usize) -> Outcome<String> {
    const SPACES: &str = "                                                                ";
    let mut out = String::new();
    let mut column = 0usize;
    for line in text.split_inclusive(['\n', '\r', '\t']) {
        let body = line.trim_end_matches('\t');
        heap.work(1)?;
        heap.write(&mut out, body)?;
        column = if body.ends_with(['\n', '\r']) { 0 } else { column.saturating_add(body.chars().count()) };
        if body.len() < line.len() {
            let n = if size == 0 { 0 } else { size.saturating_sub(column.checked_rem(size).unwrap_or(0)) };
            heap.write(&mut out, SPACES.get(..n).unwrap_or(SPACES))?;
            column = column.saturating_add(n);
        }
    }
    Ok(out)
}

/// The lines of a text, with what ends them where they `keep` it.
struct Lines<'a> {
    rest: &'a str,
    keep: bool,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        const ENDS: [char; 10] =
            ['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];
        if self.rest.is_empty() {
            return None;
        }
        let Some(end) = self.rest.find(ENDS) else { return Some(std::mem::take(&mut self.rest)) };
        let (line, after) = self.rest.split_at(end);
        let width = if after.starts_with("\r\n") { 2 } else { after.chars().next().map_or(1, char::len_utf8) };
        let kept = self.rest.get(..end.saturating_add(width)).unwrap_or(line);
        self.rest = after.get(width..).unwrap_or("");
        Some(if self.keep { kept } else { line })
    }
}

/// A list of the parts.
fn strings<'a>(heap: &mut Heap, parts: impl Iterator<Item = &'a str>) -> Outcome<Value> {
    let mut items = Vec::new();
    for part in parts {
        let part = heap.str(part)?;
        heap.grow(&mut items, part)?;
    }
    heap.list(items)
}

/// As [`strings`], in reverse: what splits from the right gives its last part first.
fn reversed_strings<'a>(heap: &mut Heap, parts: impl Iterator<Item = &'a str>) -> Outcome<Value> {
    let mut items = Vec::new();
    for part in parts {
        let part = heap.str(part)?;
        heap.grow(&mut items, part)?;
    }
    items.reverse();
    heap.list(items)
}

fn split(heap: &mut Heap, text: &str, name: &str, args: &Args) -> Outcome<Value> {
    let [sep, most] = args.bind(name, ["sep", "maxsplit"], 0)?;
    let most = if most == Value::Unbound { -1 } else { heap.int_arg("maxsplit", most)? };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let right = name == "rsplit";
    if let Value::Unbound | Value::None = sep {
        let rest = if right { text.trim_end_matches(is_space) } else { text.trim_start_matches(is_space) };
        let words = Words { rest, most, right };
        return if right { reversed_strings(heap, words) } else { strings(heap, words) };
    }
    let sep = heap.text_arg("the separator", sep)?;
    if sep.is_empty() {
        return raise_with(Class::ValueError, "empty separator", "write list(text) for its characters");
    }
    let sep = heap.copied_text(sep)?;
    let n = most.saturating_add(1);
    if right { reversed_strings(heap, text.rsplitn(n, &*sep)) } else { strings(heap, text.splitn(n, &*sep)) }
}

/// What stands between white space: at most so many parts, and the rest as it is.
struct Words<'a> {
    rest: &'a str,
    most: usize,
    right: bool,
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let cut = match (self.most, self.right) {
            (0, _) => None,
            (_, true) => self.rest.rfind(is_space),
            (_, false) => self.rest.find(is_space),
        };
        let Some(at) = cut else { return Some(std::mem::take(&mut self.rest)) };
        self.most = self.most.saturating_sub(1);
        let (before, from) = self.rest.split_at(at);
        let after = from.get(from.chars().next().map_or(1, char::len_utf8)..).unwrap_or("");
        if self.right {
            self.rest = before.trim_end_matches(is_space);
            Some(after)
        } else {
            self.rest = after.trim_start_matches(is_space);
            Some(before)
        }
    }
}

fn join(heap: &mut Heap, sep: &str, args: &Args) -> Outcome<Value> {
    let [items] = args.bind("join", ["iterable"], 1)?;
    let items = heap.collected(items)?;
    let mut out = String::new();
    for (i, item) in items.iter().enumerate() {
        let Some(piece) = heap.text(*item) else {
            let message = format!("sequence item {i}: expected str instance, {} found", heap.type_name(*item));
            return raise_with(Class::TypeError, message, "write sep.join(str(x) for x in xs)");
        };
        heap.work(1)?;
        if i > 0 {
            heap.write(&mut out, sep)?;
        }
        heap.write(&mut out, piece)?;
    }
    heap.string(out)
}

fn replace(heap: &mut Heap, text: &str, args: &Args) -> Outcome<Value> {
    let [old, new, count] = args.bind("replace", ["old", "new", "count"], 2)?;
    let most = if count == Value::Unbound { -1 } else { heap.int_arg("count", count)? };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let (old, new) = (heap.text_arg("the old text", old)?, heap.text_arg("the new text", new)?);
    let n_found = if old.is_empty() { text.chars().count().saturating_add(1) } else { text.matches(old).count() };
    let n_found = n_found.min(most);
    let longer = n_found.saturating_mul(new.len()).saturating_add(text.len());
    let bytes = longer.saturating_sub(n_found.saturating_mul(old.len()));
    heap.work(bytes as u64 / 32)?;
    let mut out = String::new();
    heap.room_in_text(&mut out, bytes)?;
    let mut done = 0;
    for (at, found) in text.match_indices(old).take(n_found) {
        out.push_str(text.get(done..at).unwrap_or(""));
        out.push_str(new);
        done = at.saturating_add(found.len());
    }
    out.push_str(text.get(done..).unwrap_or(""));
    heap.string(out)
}

fn sliced(heap: &mut Heap, receiver: Value, start: Value, end: Value) -> Outcome<String> {
    let end = if end == Value::Unbound { Value::None } else { end };
    let part = heap.get_slice(receiver, [start, end, Value::None])?;
    heap.copied_text(heap.text(part).unwrap_or(""))
}

fn find(heap: &mut Heap, receiver: Value, text: &str, name: &str, args: &Args) -> Outcome<Value> {
    let [part, start, end] = args.bind(name, ["sub", "start", "end"], 1)?;
    let mut offset = 0;
    let text = if start == Value::Unbound {
        heap.copied_text(text)?
    } else {
        let len = text.chars().count() as i64;
        let n = heap.int_arg("start", start)?;
        offset = if n < 0 { n.saturating_add(len).max(0) } else { n };
        sliced(heap, receiver, start, end)?
    };
    let part = heap.text_arg("the argument", part)?;
    let at = if name.starts_with('r') { text.rfind(part) } else { text.find(part) };
    match at.and_then(|at| text.get(..at)) {
        Some(before) => Ok(Value::Int((before.chars().count() as i64).saturating_add(offset))),
        None if name.ends_with("find") => Ok(Value::Int(-1)),
        None => raise_with(Class::ValueError, "substring not found", "write text.find(x), which gives -1"),
    }
}

fn pad(heap: &mut Heap, text: &str, name: &str, args: &Args) -> Outcome<Value> {
    let [width, fill] = args.bind(name, ["width", "fillchar"], 1)?;
    let width = usize::try_from(heap.int_arg("width", width)?).unwrap_or(0);
    let fill = match fill {
        Value::Unbound if name == "zfill" => '0',
        Value::Unbound => ' ',
        fill => {
            let mut chars = heap.text_arg("the fill character", fill)?.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => c,
                _ => return raise(Class::TypeError, "the fill character must be exactly one character long"),
            }
        }
    };
    let missing = width.saturating_sub(text.chars().count());
    let bytes = missing.saturating_mul(fill.len_utf8()).saturating_add(text.len());
    heap.work(missing as u64 / 64)?;
    let mut out = String::new();
    heap.room_in_text(&mut out, bytes)?;
    let (sign, body) = text.split_at(if name == "zfill" && text.starts_with(['-', '+']) { 1 } else { 0 });
    let left = match name {
        "ljust" => 0,
        "rjust" | "zfill" => missing,
        _ => (missing / 2).saturating_add(missing & width & 1),
    };
    out.push_str(sign);
    out.extend(std::iter::repeat_n(fill, left));
    out.push_str(body);
    out.extend(std::iter::repeat_n(fill, missing.saturating_sub(left)));
    heap.string(out)
}
