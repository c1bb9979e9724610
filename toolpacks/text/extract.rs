//! `extract`: all numbers, addresses, links, dates or regex matches.

use crate::arguments::Arguments;
use crate::bounds::Rows;
use crate::context::Call;
use crate::{Error, matcher};
use serde_json::{Value, json};

pub(super) fn extract(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let given = arguments.opt_str("regex");
    let kind = if given.is_some() { "regex" } else { arguments.str("kind")? };
    let pattern = match kind {
        "number" => r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?",
        "email" => r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+",
        "url" => r#"https?://[^\s<>"'\)\]]*[^\s<>"'\)\].,;:!?]"#,
        "date" => r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}[./]\d{1,2}[./]\d{4}\b",
        "ip" => r"\b(?:\d{1,3}\.){3}\d{1,3}\b|\b(?:[0-9a-fA-F]{1,4}:){2,7}:?[0-9a-fA-F]{1,4}\b",
        _ => given.ok_or_else(|| Error::invalid("kind regex needs the argument: regex"))?,
    };
    let regex = matcher::compile(pattern, true, false)?;
    let mut lines = super::source(arguments, call)?;
    let mut rows = Rows::new(call, usize::MAX);
    let mut cut = false;
    'lines: while let Some(line) = lines.next(call)? {
        cut |= lines.cut();
        for found in regex.captures_iter(&line) {
            call.check()?;
            let Some(text) = found.get(1).or_else(|| found.get(0)).map(|m| m.as_str()) else { continue };
            let fits = match (kind, text.parse::<i64>(), text.parse::<f64>()) {
                ("number", Ok(n), _) => rows.push(n.into(), text),
                ("number", _, Ok(x)) if x.is_finite() => rows.push(x.into(), text),
                _ => rows.push(text.into(), text),
            };
            if !fits {
                break 'lines;
            }
        }
    }
    rows.cut_if(cut);
    let (count, truncated) = (rows.len(), rows.truncated());
    let (found, text) = rows.finish(|| format!("there is no {kind} in {}", super::shown_source(arguments)));
    Ok(json!({"kind": kind, "count": count, "found": found, "truncated": truncated, "text": text}))
}
