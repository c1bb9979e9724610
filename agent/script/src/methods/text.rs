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
    let text = heap.text_arg("the receiver", receiver)?.to_owned();
    heap.work((text.len() as u64 / 32).saturating_add(1))?;
    heap.would_fit((text.len() as u64).saturating_mul(4))?;
    match name {
        "lower" | "casefold" => none(&args, name).and_then(|()| heap.string(text.to_lowercase())),
        "upper" => none(&args, name).and_then(|()| heap.string(text.to_uppercase())),
        "capitalize" => {
            let mut chars = text.chars();
            let first: String = chars.next().map(|c| title_case(c).collect()).unwrap_or_default();
            heap.string(first + &chars.as_str().to_lowercase())
        }
        "title" => heap.string(title(&text)),
        "swapcase" => {
            let swapped = text.chars().flat_map(|c| -> Vec<char> {
                if c.is_uppercase() { c.to_lowercase().collect() } else { c.to_uppercase().collect() }
            });
            let swapped = swapped.collect();
            heap.string(swapped)
        }
        "strip" | "lstrip" | "rstrip" => {
            let [chars] = args.bind(name, ["chars"], 0)?;
            let set: Option<Vec<char>> = match chars {
                Value::Unbound | Value::None => None,
                chars => Some(heap.text_arg("the argument of strip", chars)?.chars().collect()),
            };
            let strips = |c: char| set.as_ref().map_or_else(|| is_space(c), |set| set.contains(&c));
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
            let lines = lines(&text, keep, heap.room_for_strings());
            strings(heap, &lines)
        }
        "join" => join(heap, &text, &args),
        "replace" => replace(heap, &text, &args),
        "startswith" | "endswith" => {
            let [parts, start, end] = args.bind(name, ["prefix", "start", "end"], 1)?;
            let text = if start == Value::Unbound { text } else { sliced(heap, receiver, start, end)? };
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
            let rest = rest.unwrap_or(&text).to_owned();
            heap.string(rest)
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
            let part = heap.text_arg("the argument", part)?.to_owned();
            if part.is_empty() {
                return raise(Class::ValueError, "empty separator");
            }
            let found = if name == "partition" { text.split_once(&*part) } else { text.rsplit_once(&*part) };
            let parts = match found {
                Some((before, after)) => [before, &part, after],
                None if name == "partition" => [text.as_str(), "", ""],
                None => ["", "", text.as_str()],
            };
            let mut items = Vec::new();
            for part in parts {
                items.push(heap.str(part)?);
            }
            heap.tuple(items)
        }
        "center" | "ljust" | "rjust" | "zfill" => pad(heap, &text, name, &args),
        "expandtabs" => {
            let [size] = args.bind(name, ["tabsize"], 0)?;
            let size = if size == Value::Unbound { 8 } else { heap.int_arg("tabsize", size)?.clamp(0, 64) as usize };
            heap.would_fit((text.len() as u64).saturating_mul(size.max(1) as u64))?;
            heap.work(text.len() as u64 / 4)?;
            heap.string(expand_tabs(&text, size))
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
        "istitle" => text.chars().any(char::is_alphabetic) && title(text) == text,
        _ => false,
    }
}

fn title(text: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in text.chars() {
        let cased = c.is_lowercase() || c.is_uppercase();
        if inside {
            out.extend(c.to_lowercase());
        } else {
            out.extend(title_case(c));
        }
        inside = cased;
    }
    out
}

/// Of a character whose upper case is several, only the first stays upper.
fn title_case(c: char) -> impl Iterator<Item = char> {
    let mut upper = c.to_uppercase();
    upper.next().into_iter().chain(upper.flat_map(char::to_lowercase))
}

fn expand_tabs(text: &str, size: usize) -> String {
    let mut out = String::new();
    let mut column = 0usize;
    for c in text.chars() {
        match c {
            '\t' if size == 0 => {}
            '\t' => {
                let n = size.saturating_sub(column.checked_rem(size).unwrap_or(0));
                out.extend(std::iter::repeat_n(' ', n));
                column = column.saturating_add(n);
            }
            '\n' | '\r' => {
                out.push(c);
                column = 0;
            }
            _ => {
                out.push(c);
                column = column.saturating_add(1);
            }
        }
    }
    out
}

fn lines(text: &str, keep: bool, room: usize) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = text;
    while !rest.is_empty() && out.len() <= room {
        let end =
            rest.find(['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}']);
        let Some(end) = end else {
            out.push(rest);
            break;
        };
        let after = rest.get(end..).unwrap_or("");
        let width = if after.starts_with("\r\n") { 2 } else { after.chars().next().map_or(1, char::len_utf8) };
        out.push(rest.get(..if keep { end.saturating_add(width) } else { end }).unwrap_or(""));
        rest = rest.get(end.saturating_add(width)..).unwrap_or("");
    }
    out
}

/// A list of the parts. One part more than [`Heap::room_for_strings`] is enough to fail here.
fn strings(heap: &mut Heap, parts: &[&str]) -> Outcome<Value> {
    let mut items = Vec::new();
    for part in parts {
        let part = heap.str(part)?;
        heap.grow(&mut items, part)?;
    }
    heap.list(items)
}

fn split(heap: &mut Heap, text: &str, name: &str, args: &Args) -> Outcome<Value> {
    let [sep, most] = args.bind(name, ["sep", "maxsplit"], 0)?;
    let most = if most == Value::Unbound { -1 } else { heap.int_arg("maxsplit", most)? };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let room = heap.room_for_strings();
    let right = name == "rsplit";
    let parts: Vec<&str> = match sep {
        Value::Unbound | Value::None => split_space(text, most, right, room),
        sep => {
            let sep = heap.text_arg("the separator", sep)?;
            if sep.is_empty() {
                return raise_with(Class::ValueError, "empty separator", "write list(text) for its characters");
            }
            if right {
                let mut parts: Vec<&str> =
                    text.rsplitn(most.saturating_add(1), sep).take(room.saturating_add(1)).collect();
                parts.reverse();
                parts
            } else {
                text.splitn(most.saturating_add(1), sep).take(room.saturating_add(1)).collect()
            }
        }
    };
    strings(heap, &parts)
}

fn split_space(text: &str, most: usize, right: bool, room: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = if right { text.trim_end_matches(is_space) } else { text.trim_start_matches(is_space) };
    while !rest.is_empty() && parts.len() <= room {
        let cut = if parts.len() >= most {
            None
        } else if right {
            rest.rfind(is_space)
        } else {
            rest.find(is_space)
        };
        let Some(at) = cut else {
            parts.push(rest);
            break;
        };
        let width = rest.get(at..).and_then(|r| r.chars().next()).map_or(1, char::len_utf8);
        let (before, after) = (rest.get(..at).unwrap_or(""), rest.get(at.saturating_add(width)..).unwrap_or(""));
        if right {
            parts.push(after);
            rest = before.trim_end_matches(is_space);
        } else {
            parts.push(before);
            rest = after.trim_start_matches(is_space);
        }
    }
    if right {
        parts.reverse();
    }
    parts
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
        heap.would_fit(out.len().saturating_add(sep.len()).saturating_add(piece.len()) as u64)?;
        heap.work((sep.len().saturating_add(piece.len()) as u64 / 64).saturating_add(1))?;
        if i > 0 {
            out.push_str(sep);
        }
        out.push_str(piece);
    }
    heap.string(out)
}

fn replace(heap: &mut Heap, text: &str, args: &Args) -> Outcome<Value> {
    let [old, new, count] = args.bind("replace", ["old", "new", "count"], 2)?;
    let most = if count == Value::Unbound { -1 } else { heap.int_arg("count", count)? };
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let (old, new) = (heap.text_arg("the old text", old)?, heap.text_arg("the new text", new)?);
    let n_found = if old.is_empty() { text.chars().count().saturating_add(1) } else { text.matches(old).count() };
    let bytes = (n_found.min(most) as u64).saturating_mul(new.len() as u64).saturating_add(text.len() as u64);
    heap.would_fit(bytes)?;
    heap.work(bytes / 32)?;
    let replaced = text.replacen(old, new, most);
    heap.string(replaced)
}

fn sliced(heap: &mut Heap, receiver: Value, start: Value, end: Value) -> Outcome<String> {
    let end = if end == Value::Unbound { Value::None } else { end };
    let part = heap.get_slice(receiver, [start, end, Value::None])?;
    Ok(heap.text(part).unwrap_or("").to_owned())
}

fn find(heap: &mut Heap, receiver: Value, text: &str, name: &str, args: &Args) -> Outcome<Value> {
    let [part, start, end] = args.bind(name, ["sub", "start", "end"], 1)?;
    let mut offset = 0;
    let text = if start == Value::Unbound {
        text.to_owned()
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
    heap.would_fit((missing as u64).saturating_mul(fill.len_utf8() as u64).saturating_add(text.len() as u64))?;
    heap.work(missing as u64 / 64)?;
    let run = |n: usize| -> String { std::iter::repeat_n(fill, n).collect() };
    let padded = match name {
        "ljust" => format!("{text}{}", run(missing)),
        "rjust" => format!("{}{text}", run(missing)),
        "zfill" => match text.strip_prefix(['-', '+']) {
            Some(rest) => format!("{}{}{rest}", text.get(..1).unwrap_or(""), run(missing)),
            None => format!("{}{text}", run(missing)),
        },
        _ => {
            let left = (missing / 2).saturating_add(missing & width & 1);
            format!("{}{text}{}", run(left), run(missing.saturating_sub(left)))
        }
    };
    heap.string(padded)
}
