//! `json`: a value by its key.

use super::source;
use crate::arguments::Arguments;
use crate::bounds::{fit, json_bytes, shorten};
use crate::context::Call;
use crate::{Error, ErrorKind};
use serde_json::{Value, json};

const MAX_JSON_BYTES: u64 = 16 << 20;
const MAX_KEY_STEPS: usize = 64;
const MAX_NAMED_KEYS: usize = 20;

pub(super) fn json(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let (bytes, key) = (source(arguments, call, MAX_JSON_BYTES)?, arguments.str("key")?);
    let whole: Value =
        serde_json::from_slice(&bytes).map_err(|e| Error::invalid(format!("the JSON does not parse: {e}")))?;
    call.check()?;
    let mut value = &whole;
    for step in steps(key)? {
        value = step_into(value, &step)?;
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    let text = match value {
        Value::String(text) => text.clone(),
        value => serde_json::to_string_pretty(value).map_err(|e| Error::new(ErrorKind::Io, e.to_string()))?,
    };
    let (text, truncated) = fit(&text, call.max_body_bytes() / 2);
    let mut result = json!({
        "path": arguments.opt_str("path").unwrap_or("the text"), "key": key, "value": null, "kind": kind, "text": text,
    });
    if json_bytes(value) <= call.max_body_bytes() / 2 {
        result["value"] = value.clone();
    } else {
        result["truncated"] = true.into();
        result["keys_here"] = names(value).into();
    }
    if truncated {
        result["truncated"] = true.into();
    }
    Ok(result)
}

/// `users[0].name` and `users.0.name` as `users`, `0`, `name`.
fn steps(key: &str) -> Result<Vec<String>, Error> {
    let key = key.trim().trim_start_matches('$');
    let steps: Vec<String> = key
        .split(['.', '[', ']'])
        .map(|step| step.trim_matches(['"', '\'']))
        .filter(|step| !step.is_empty())
        .map(str::to_owned)
        .collect();
    if steps.len() > MAX_KEY_STEPS {
        return Err(Error::limit("steps of a key", MAX_KEY_STEPS as u64, steps.len() as u64));
    }
    Ok(steps)
}

fn step_into<'a>(value: &'a Value, step: &str) -> Result<&'a Value, Error> {
    let found = match value {
        Value::Object(map) => map.get(step),
        Value::Array(items) => step.parse::<i64>().ok().and_then(|idx| {
            let idx = if idx < 0 { i64::try_from(items.len()).ok()?.checked_add(idx)? } else { idx };
            items.get(usize::try_from(idx).ok()?)
        }),
        _ => None,
    };
    found.ok_or_else(|| {
        let error = Error::new(ErrorKind::NotFound, format!("no such key: {}", shorten(step, 100)));
        match names(value) {
            names if names.is_empty() => error,
            names => error.with_hint(format!("there are: {}", names.join(", "))),
        }
    })
}

fn names(value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map.keys().take(MAX_NAMED_KEYS).map(|key| shorten(key, 40)).collect(),
        Value::Array(items) if !items.is_empty() => vec![format!("0 to {}", items.len() - 1)],
        _ => Vec::new(),
    }
}
