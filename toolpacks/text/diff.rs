//! `diff`: what changed between two files or texts.

use crate::Error;
use crate::arguments::Arguments;
use crate::bounds::fit;
use crate::context::Call;
use crate::files::read_whole;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

const MAX_SIDE_BYTES: u64 = 4 << 20;
const MAX_DIFF_TIME: Duration = Duration::from_secs(2);
const CONTEXT_LINES: usize = 3;

pub(super) fn diff(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let (old, new) = (side(arguments, call, "path_a", "text_a")?, side(arguments, call, "path_b", "text_b")?);
    let diff = TextDiff::configure().timeout(MAX_DIFF_TIME.min(call.context.limits.timeout)).diff_lines(&old, &new);
    call.check()?;
    let (mut added, mut removed) = (0_usize, 0_usize);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => added += 1,
            ChangeTag::Delete => removed += 1,
            ChangeTag::Equal => {}
        }
    }
    let same = old == new;
    let mut text = String::new();
    let mut truncated = false;
    for hunk in diff.unified_diff().context_radius(CONTEXT_LINES).iter_hunks() {
        call.check()?;
        text.push_str(&hunk.to_string());
        truncated = fit(&text, call.max_body_bytes()).1;
        if truncated {
            break;
        }
    }
    let text = if same { "they are the same" } else { fit(text.trim_end(), call.max_body_bytes()).0 };
    Ok(json!({"same": same, "added": added, "removed": removed, "truncated": truncated, "text": text}))
}

fn side(arguments: &Arguments, call: &Call<'_>, path: &str, text: &str) -> Result<String, Error> {
    match (arguments.opt_str(path), arguments.opt_str(text)) {
        (Some(_), None) => {
            let bytes = read_whole(call, arguments.path(path)?, MAX_SIDE_BYTES)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        (None, Some(text)) => Ok(text.to_owned()),
        _ => Err(Error::invalid(format!("needs either {path} or {text}"))),
    }
}
