//! `notes`: durable memory, kept by whoever implements [`Notes`](crate::Notes).

use crate::arguments::Arguments;
use crate::bounds::{Rows, fit, shorten};
use crate::context::Call;
use crate::{Error, ErrorKind, catalogue};
use serde_json::{Value, json};

const MAX_KEY_BYTES: usize = 200;
const MAX_NOTE_BYTES: usize = 64 << 10;
const MAX_SHOWN_CHARS: usize = 500;

pub(crate) fn call(tool: &str, arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    match tool {
        "put" => put(arguments, call),
        "get" => get(arguments, call),
        "search" => search(arguments, call),
        "delete" => delete(arguments, call),
        _ => Err(catalogue::not_built(tool)),
    }
}

fn put(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let (key, text) = (key(arguments)?, arguments.str("text")?);
    if text.len() > MAX_NOTE_BYTES {
        return Err(Error::limit("note in bytes", MAX_NOTE_BYTES as u64, text.len() as u64));
    }
    call.context.notes.put(key, text)?;
    Ok(json!({"key": key, "text": format!("remembered {key}")}))
}

fn get(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let key = key(arguments)?;
    let Some(text) = call.context.notes.get(key)? else {
        return Err(no_note(key));
    };
    let (text, truncated) = fit(&text, call.max_body_bytes());
    let mut result = json!({"key": key, "text": text});
    if truncated {
        result["truncated"] = true.into();
    }
    Ok(result)
}

fn search(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let query = arguments.str("query")?;
    if query.len() > MAX_KEY_BYTES {
        return Err(Error::limit("query in bytes", MAX_KEY_BYTES as u64, query.len() as u64));
    }
    let mut rows = Rows::new(call, usize::MAX);
    for note in call.context.notes.search(query, call.context.limits.max_entries.saturating_add(1))? {
        call.check()?;
        let text = shorten(&note.text, MAX_SHOWN_CHARS);
        let line = format!("{}: {text}", note.key);
        if !rows.push(json!({"key": note.key, "text": text}), &line) {
            break;
        }
    }
    let (count, truncated) = (rows.len(), rows.truncated());
    let (notes, text) = rows.finish(|| match query {
        "" => "there are no notes".to_owned(),
        query => format!("no note mentions {query}"),
    });
    Ok(json!({"query": query, "count": count, "notes": notes, "truncated": truncated, "text": text}))
}

fn delete(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let key = key(arguments)?;
    match call.context.notes.delete(key)? {
        true => Ok(json!({"key": key, "text": format!("forgot {key}")})),
        false => Err(no_note(key)),
    }
}

fn key(arguments: &Arguments) -> Result<&str, Error> {
    let key = arguments.str("key")?.trim();
    if key.is_empty() {
        return Err(Error::invalid("the key is empty"));
    }
    if key.len() > MAX_KEY_BYTES {
        return Err(Error::limit("key in bytes", MAX_KEY_BYTES as u64, key.len() as u64));
    }
    Ok(key)
}

fn no_note(key: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("no such note: {key}")).with_hint("list them with notes.search()")
}
