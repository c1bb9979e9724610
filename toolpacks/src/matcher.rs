//! A text or regular expression looked for in lines.

use crate::Error;
use regex::{Regex, RegexBuilder};

/// A compiled pattern takes at most this much memory.
const MAX_COMPILED_BYTES: usize = 1 << 20;
const MAX_NESTING: u32 = 64;
const MAX_PATTERN_BYTES: usize = 4096;

/// `pattern` as it stands, or as a regular expression, in any case or as written.
pub(crate) fn compile(pattern: &str, is_regex: bool, any_case: bool) -> Result<Regex, Error> {
    if pattern.is_empty() {
        return Err(Error::invalid("the pattern is empty").with_hint("say what to look for"));
    }
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(Error::limit("pattern in bytes", MAX_PATTERN_BYTES as u64, pattern.len() as u64));
    }
    let source = if is_regex { pattern.to_owned() } else { regex::escape(pattern) };
    RegexBuilder::new(&source)
        .case_insensitive(any_case)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_COMPILED_BYTES)
        .nest_limit(MAX_NESTING)
        .build()
        .map_err(|e| {
            let reason = e.to_string();
            let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").trim_end_matches('.');
            Error::invalid(format!("regular expression is not valid ({reason}): {pattern}"))
                .with_hint("leave regex out to look for plain text")
        })
}
