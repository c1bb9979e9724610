//! What can go wrong, told to two readers: the model (line, column, what was found, what to write instead) and the
//! harness ([`Kind`], limit, used).
//!
//! An `Error` never holds a reference to the source; [`Error::report`] draws the caret when the source is given.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A place in the source: both counted from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Pos {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// The class of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Kind {
    /// The source is no program of the language.
    Syntax,
    /// The source is Python that the language leaves out; the hint says what to write.
    Unsupported,
    /// The program raised an exception that nothing caught; see [`Error::exception`].
    Exception,
    /// A bound was reached; see [`Error::limit`] and [`Error::used`].
    Limit,
    /// Bytes are no state of a VM, or the VM was driven out of order.
    State,
    /// A JSON Schema is no schema of a tool's arguments.
    Schema,
}

/// A failure of compiling, running, decoding or reading a schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Error {
    kind: Kind,
    message: String,
    exception: Option<String>,
    pos: Pos,
    hint: Option<String>,
    bound: Option<(u64, u64)>,
}

impl Error {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), exception: None, pos: Pos::default(), hint: None, bound: None }
    }

    pub(crate) fn syntax(pos: Pos, message: impl Into<String>) -> Error {
        Error::new(Kind::Syntax, message).at(pos)
    }

    pub(crate) fn unsupported(pos: Pos, message: impl Into<String>, substitute: impl Into<String>) -> Error {
        Error::new(Kind::Unsupported, message).at(pos).with_hint(substitute)
    }

    pub(crate) fn over(what: &str, limit: u64, used: u64) -> Error {
        let mut error = Error::new(Kind::Limit, format!("{what} limit reached: {used} of {limit}"));
        error.bound = Some((limit, used));
        error
    }

    pub(crate) fn raised(exception: &str, message: impl Into<String>) -> Error {
        let mut error = Error::new(Kind::Exception, message);
        error.exception = Some(exception.to_owned());
        error
    }

    pub(crate) fn at(mut self, pos: Pos) -> Error {
        if self.pos.line == 0 {
            self.pos = pos;
        }
        self
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// What class of failure this is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The message alone, without place and hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The name of the exception that ended the program, as `except` would name it.
    pub fn exception(&self) -> Option<&str> {
        self.exception.as_deref()
    }

    /// The line, counted from 1; 0 where there is no source.
    pub fn line(&self) -> u32 {
        self.pos.line
    }

    /// The column in characters, counted from 1; 0 where there is no source.
    pub fn column(&self) -> u32 {
        self.pos.column
    }

    /// What to write instead, if it is known.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The bound that was reached, for [`Kind::Limit`].
    pub fn limit(&self) -> Option<u64> {
        self.bound.map(|(limit, _)| limit)
    }

    /// What was used or asked for when the bound was reached, for [`Kind::Limit`].
    pub fn used(&self) -> Option<u64> {
        self.bound.map(|(_, used)| used)
    }

    /// The message with the source line, a caret under the place, and the hint on its own line.
    pub fn report(&self, source: &str) -> String {
        const SHOWN: usize = 120;
        let mut out = self.to_string();
        if let Some(line) = (self.pos.line as usize).checked_sub(1).and_then(|idx| source.lines().nth(idx)) {
            let column = (self.pos.column as usize).saturating_sub(1);
            let skipped = column.saturating_add(20).saturating_sub(SHOWN);
            let shown: String =
                line.chars().skip(skipped).take(SHOWN).map(|c| if c.is_control() { ' ' } else { c }).collect();
            out.push_str(&format!("\n    {}\n    {}^", shown.trim_end(), " ".repeat(column.saturating_sub(skipped))));
        }
        if let Some(hint) = &self.hint {
            out.push_str("\nhint: ");
            out.push_str(hint);
        }
        out
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pos.line > 0 {
            write!(f, "line {}: ", self.pos.line)?;
        }
        match &self.exception {
            Some(name) if self.message.is_empty() => f.write_str(name),
            Some(name) => write!(f, "{name}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Error {}

/// The candidate nearest to `name`, if one is near enough to be what was meant.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 64;
    let name: Vec<char> = name.to_lowercase().chars().take(LONGEST).collect();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let other: Vec<char> = candidate.to_lowercase().chars().take(LONGEST).collect();
        let distance = if other.len() > 3 && name.len() > 3 && (other.starts_with(&name) || name.starts_with(&other)) {
            1
        } else {
            edit_distance(&name, &other)
        };
        let near = distance <= name.len().max(other.len()) / 3;
        if near && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = (0..=b.len()).collect();
    let mut two_before = before.clone();
    let at = |row: &[usize], idx: usize| row.get(idx).copied().unwrap_or(usize::MAX);
    let mut last_of_a = None;
    for (i, x) in a.iter().enumerate() {
        let mut left = i.saturating_add(1);
        let mut row = vec![left];
        let mut last_of_b = None;
        for (j, y) in b.iter().enumerate() {
            let replaced = at(&before, j).saturating_add(usize::from(x != y));
            let mut cost = at(&before, j.saturating_add(1)).min(left).saturating_add(1).min(replaced);
            if last_of_b == Some(x) && last_of_a == Some(y) {
                cost = cost.min(at(&two_before, j.saturating_sub(1)).saturating_add(1));
            }
            row.push(cost);
            left = cost;
            last_of_b = Some(y);
        }
        two_before = std::mem::replace(&mut before, row);
        last_of_a = Some(x);
    }
    at(&before, b.len())
}
