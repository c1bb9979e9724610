//! Where output goes: stdout carries the answer or JSON, stderr carries progress and messages.

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

    /// Writes text and a line end to stdout.
    pub fn line(&self, text: &str) -> Result<()> {
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(closed)
    }

    /// Writes text without a line end to stdout, at once.
    pub fn text(&self, text: &str) -> Result<()> {
        let mut stdout = io::stdout().lock();
        write!(stdout, "{text}").and_then(|()| stdout.flush()).map_err(closed)
    }

    /// Writes one JSON object and a line end to stdout.
    pub fn object(&self, value: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string(value)
            .map_err(|error| Error::new(ErrorKind::Failed, format!("cannot write as json: {error}")))?;
        self.line(&text)
    }

    /// Writes a message to stderr; a stderr that is gone is nobody's loss.
    pub fn message(&self, text: &str) {
        drop(writeln!(io::stderr().lock(), "{text}"));
    }

    /// Writes text without a line end to stderr.
    pub fn partial(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        drop(write!(stderr, "{text}").and_then(|()| stderr.flush()));
    }

    /// Reports an error: to stderr for people, as an object on stdout as well for programs.
    pub fn error(&mut self, error: &Error) {
        self.message(&format!("mote: {error}"));
        if self.json {
            let object = serde_json::json!({
                "error": {"kind": format!("{:?}", error.kind()).to_lowercase(), "message": error.message(), "hint": error.hint()}
            });
            drop(self.object(&object));
        }
    }
}

fn closed(error: io::Error) -> Error {
    Error::new(ErrorKind::Failed, format!("cannot write to standard output: {error}"))
}
