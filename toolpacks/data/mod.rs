//! `data`: tables and values in files, read-only.

mod csv;
mod json;
mod sqlite;

use crate::arguments::Arguments;
use crate::context::Call;
use crate::files::read_whole;
use crate::{Error, bounds, catalogue};
use serde_json::{Map, Value};
use std::borrow::Cow;

pub(crate) fn call(tool: &str, arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    match tool {
        "csv" => csv::csv(arguments, call),
        "json" => json::json(arguments, call),
        "sqlite" => sqlite::query(arguments, call),
        "tables" => sqlite::tables(arguments, call),
        _ => Err(catalogue::not_built(tool)),
    }
}

/// The bytes of `path` or of `text`, whichever is given.
fn source<'a>(arguments: &'a Arguments, call: &Call<'_>, max_bytes: u64) -> Result<Cow<'a, [u8]>, Error> {
    match (arguments.opt_str("path"), arguments.opt_str("text")) {
        (Some(_), None) => Ok(read_whole(call, arguments.path("path")?, max_bytes)?.into()),
        (None, Some(text)) => Ok(text.as_bytes().into()),
        _ => Err(Error::invalid("needs either path or text").with_hint("give path=\"..\" for a file")),
    }
}

/// A row as a line of an answer: `name=fern, height=30`.
fn row_line(row: &Map<String, Value>) -> String {
    const MAX_CELL_CHARS: usize = 100;
    let cell = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}={}", bounds::shorten(text, MAX_CELL_CHARS)),
        value => format!("{name}={value}"),
    };
    row.iter().map(cell).collect::<Vec<_>>().join(", ")
}
