//! `text`: lines and parts of a file or of a given text.
//!
//! A file is read line by line and never held whole, except by `diff`, which takes only small ones.

mod diff;
mod extract;

use crate::arguments::Arguments;
use crate::bounds::{Rows, counted, shorten};
use crate::context::Call;
use crate::files::{Lines, resolve};
use crate::{Error, catalogue, matcher};
use serde_json::{Value, json};
use std::io::Read;

const MAX_MATCH_CHARS: usize = 300;

pub(crate) fn call(tool: &str, arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    match tool {
        "grep" => grep(arguments, call),
        "count" => count(arguments, call),
        "split" => split(arguments, call),
        "extract" => extract::extract(arguments, call),
        "diff" => diff::diff(arguments, call),
        _ => Err(catalogue::not_built(tool)),
    }
}

/// The lines of `path` or of `text`, whichever is given.
fn source<'a>(arguments: &'a Arguments, call: &Call<'_>) -> Result<Lines<Box<dyn Read + 'a>>, Error> {
    match (arguments.opt_str("path"), arguments.opt_str("text")) {
        (Some(_), None) => {
            let path = arguments.path("path")?;
            Ok(Lines::open(&resolve(call, path), path)?.boxed())
        }
        (None, Some(text)) => Ok(Lines::new(text.as_bytes(), "text").boxed()),
        _ => Err(Error::invalid("needs either path or text").with_hint("give path=\"..\" for a file")),
    }
}

fn shown_source(arguments: &Arguments) -> &str {
    arguments.opt_str("path").unwrap_or("the text")
}

fn grep(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let pattern = arguments.str("pattern")?;
    let regex = matcher::compile(pattern, arguments.flag("regex")?, true)?;
    let (mut lines, shown) = (source(arguments, call)?, shown_source(arguments));
    let place = arguments.opt_str("path").map_or(String::new(), |path| format!("{path} "));
    let mut rows = Rows::new(call, usize::MAX);
    let (mut line_no, mut count, mut first, mut cut) = (0_u64, 0_u64, None, false);
    while let Some(line) = lines.next(call)? {
        line_no += 1;
        cut |= lines.cut();
        if regex.is_match(&line) {
            count += 1;
            first = first.or(Some(line_no));
            let text = shorten(line.trim(), MAX_MATCH_CHARS);
            let row = format!("{place}line {line_no}: {text}");
            rows.push(json!({"line": line_no, "text": text}), &row);
        }
    }
    rows.cut_if(cut);
    let truncated = rows.truncated();
    let (matches, text) = rows.finish(|| format!("{shown} has no line with {}", shorten(pattern, 100)));
    Ok(json!({
        "pattern": pattern, "path": shown, "count": count, "line": first, "matches": matches,
        "truncated": truncated, "text": text,
    }))
}

fn count(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let mut lines = source(arguments, call)?;
    let (mut n_lines, mut n_words, mut n_characters, mut truncated) = (0_usize, 0_usize, 0_usize, false);
    while let Some(line) = lines.next(call)? {
        n_lines += 1;
        truncated |= lines.cut();
        n_words += line.split_whitespace().count();
        n_characters += line.chars().count();
    }
    n_characters += lines.n_line_ends();
    let path = shown_source(arguments);
    let at_least = if truncated { "at least " } else { "" };
    Ok(json!({
        "path": path, "lines": n_lines, "words": n_words, "characters": n_characters, "truncated": truncated,
        "text": format!(
            "{path} has {}, {at_least}{} and {at_least}{}",
            counted(n_lines, "line"),
            counted(n_words, "word"),
            counted(n_characters, "character")
        ),
    }))
}

fn split(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let (text, separator) = (arguments.str("text")?, arguments.str("separator")?);
    let parts: Box<dyn Iterator<Item = &str>> = match separator {
        "" => return Err(Error::invalid("the separator is empty").with_hint("a space splits at words")),
        " " => Box::new(text.split_whitespace()),
        separator => Box::new(text.split(separator).map(str::trim)),
    };
    let mut rows = Rows::new(call, usize::MAX);
    for part in parts {
        call.check()?;
        if !rows.push(part.into(), part) {
            break;
        }
    }
    let (count, truncated) = (rows.len(), rows.truncated());
    let (parts, text) = rows.finish(String::new);
    Ok(json!({"count": count, "parts": parts, "truncated": truncated, "text": text}))
}
