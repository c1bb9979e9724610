//! Where output goes: stdout carries the answer or JSON, stderr carries progress and messages.
//!
//! What a person reads is [`plain`]: tools, models and file names must not steer a terminal.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use crate::error::{Error, ErrorKind, Result};

/// Writes for people or for programs. A closed pipe is an ordinary error, not a panic.
#[derive(Clone, Copy, Debug)]
pub struct Out {
    json: bool,
}

impl Out {
    /// `json` decides the form of stdout.
    pub fn new(json: bool) -> Out {
        Out { json }
    }

    /// Whether stdout is to carry JSON.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Whether a person watches stderr, so that a progress line may be redrawn.
    pub fn interactive(&self) -> bool {
        io::stderr().is_terminal()
    }

    /// Writes plain text and a line end to stdout.
    pub fn line(&self, text: &str) -> Result<()> {
        write(&format!("{}\n", plain(text)))
    }

    /// Writes text without a line end to stdout, at once: exactly as it is where a program reads it, plain on a terminal.
    pub fn text(&self, text: &str) -> Result<()> {
        if io::stdout().is_terminal() { write(&plain(text)) } else { write(text) }
    }

    /// Writes one JSON object and a line end to stdout.
    pub fn object(&self, value: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(value)
            .map_err(|error| Error::new(ErrorKind::Failed, format!("cannot write as json: {error}")))?;
        write(&format!("{text}\n"))
    }

    /// Writes a plain message to stderr; a stderr that is gone is nobody's loss.
    pub fn message(&self, text: &str) {
        drop(writeln!(io::stderr().lock(), "{}", plain(text)));
    }

    /// Writes text without a line end to stderr, as it is: what comes from outside has to be made plain before.
    pub fn partial(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        drop(write!(stderr, "{text}").and_then(|()| stderr.flush()));
    }

    /// Reports an error: to stderr for people, as an object on stdout as well for programs. That nobody reads any more is no news.
    pub fn error(&mut self, error: &Error) {
        if error.kind() == ErrorKind::Closed {
            return;
        }
        self.message(&format!("mote: {error}"));
        if self.json {
            let object = serde_json::json!({
                "error": {"kind": format!("{:?}", error.kind()).to_lowercase(), "message": error.message(), "hint": error.hint()}
            });
            drop(self.object(&object));
        }
    }
}

fn write(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|error| {
        let kind = if error.kind() == io::ErrorKind::BrokenPipe { ErrorKind::Closed } else { ErrorKind::Failed };
        Error::new(kind, format!("cannot write to standard output: {error}"))
    })
}

/// `text` with what would steer a terminal made visible: control characters other than tabs and line ends, and the marks that turn
/// the direction of writing around.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' | '\t' => plain.push(c),
            '\r' if chars.peek() == Some(&'\n') => {}
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => plain.extend(c.escape_unicode()),
            c if c.is_control() => plain.extend(c.escape_default()),
            c => plain.push(c),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_steer_a_terminal_is_made_visible() {
        let hostile = "a\tb\r\nc\rd\u{1b}[2J\u{7f}\u{9b}31m\u{202e}txt.exe\u{2066} é שלום";
        let shown = plain(hostile);
        assert_eq!(shown, "a\tb\nc\\rd\\u{1b}[2J\\u{7f}\\u{9b}31m\\u{202e}txt.exe\\u{2066} é שלום");
        assert_eq!(plain(&shown), shown);
    }
}
