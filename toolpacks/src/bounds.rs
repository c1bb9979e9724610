//! Keeping results small: what JSON takes, texts cut to fit, lists that stop.

use crate::Error;
use crate::context::Call;
use serde::Serialize;
use serde_json::Value;
use std::io::Write;

/// Bytes of `value` as JSON, counted without building it.
pub(crate) fn json_bytes(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.saturating_add(bytes.len());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => usize::MAX,
    }
}

/// The longest beginning of `text` that takes at most `max_bytes` inside a JSON string, and whether that is less than all.
pub(crate) fn fit(text: &str, max_bytes: usize) -> (&str, bool) {
    let mut used = 0;
    for (at, letter) in text.char_indices() {
        used += match letter {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            '\0'..='\u{1f}' => 6,
            _ => letter.len_utf8(),
        };
        if used > max_bytes {
            return (&text[..at], true);
        }
    }
    (text, false)
}

/// `text` cut to `max_chars` characters, with `..` where something is left out.
pub(crate) fn shorten(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text.to_owned(),
    }
}

/// A list of a result, and the lines of `text` that say the same: both stop at their bounds.
pub(crate) struct Rows {
    items: Vec<Value>,
    lines: String,
    max_items: usize,
    bytes_left: usize,
    truncated: bool,
}

impl Rows {
    pub(crate) fn new(call: &Call<'_>, max_items: usize) -> Self {
        Self {
            items: Vec::new(),
            lines: String::new(),
            max_items: max_items.min(call.context.limits.max_entries),
            bytes_left: call.max_body_bytes(),
            truncated: false,
        }
    }

    /// Adds one item and its line; `false` when it does not fit and no further one will.
    pub(crate) fn push(&mut self, item: Value, line: &str) -> bool {
        let bytes = json_bytes(&item).saturating_add(1).saturating_add(json_bytes(&line));
        if self.truncated || self.items.len() >= self.max_items || bytes > self.bytes_left {
            self.truncated = true;
            return false;
        }
        self.bytes_left -= bytes;
        if !self.items.is_empty() {
            self.lines.push('\n');
        }
        self.items.push(item);
        self.lines.push_str(line);
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn truncated(&self) -> bool {
        self.truncated
    }

    /// Says that something was left out before it came here.
    pub(crate) fn cut_if(&mut self, left_out: bool) {
        self.truncated |= left_out;
    }

    /// The items and the text, which says when something was left out; `empty` is the text of an empty list.
    pub(crate) fn finish(self, empty: impl FnOnce() -> String) -> (Vec<Value>, String) {
        let mut text = if self.items.is_empty() { empty() } else { self.lines };
        if self.truncated {
            text.push_str("\n(there is more)");
        }
        (self.items, text)
    }
}

/// A size as people write it: `12.3 GB`, powers of 1000 as disks are sold.
pub(crate) fn human_size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return counted(bytes as usize, "byte");
    }
    let mut size = bytes as f64 / 1000.0;
    let mut unit = 0;
    while size >= 999.95 && unit + 1 < UNITS.len() {
        size /= 1000.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// `3 files`, `1 file`.
pub(crate) fn counted(n: usize, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

/// The backstop: no result leaves bigger than the limit.
pub(crate) fn check_result(call: &Call<'_>, result: Value) -> Result<Value, Error> {
    let (limit, used) = (call.context.limits.max_result_bytes, json_bytes(&result));
    if used > limit {
        return Err(Error::limit("result in bytes", limit as u64, used as u64).with_hint("ask for less"));
    }
    Ok(result)
}
