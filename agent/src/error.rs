//! The one error of the `mote` package: a kind that decides the exit code, a message, and a hint with the next step.

use std::fmt;

/// The result of everything fallible here.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, by what the caller can do about it; each kind has its exit code (CLI.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The work was done as asked and failed.
    Failed,
    /// The command line asks for something that does not exist or does not fit.
    Usage,
    /// A resource is busy or a limit is reached for now.
    TryAgain,
    /// A configuration, a bundle or the state folder is missing, damaged or not ours to use.
    Configuration,
    /// The person cancelled.
    Cancelled,
    /// Whoever read our output has gone away: `mote queue export | head -1` ends so, and has what it wants.
    Closed,
}

/// An error with the next step in it.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
}

impl Error {
    /// Makes an error; `message` is lower case, without a full stop, with the value last after a colon.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into(), hint: None }
    }

    /// Adds the next step, shown on a line of its own.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message without the hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The next step, if there is one.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The process exit code of this kind.
    pub fn exit_code(&self) -> u8 {
        match self.kind {
            ErrorKind::Failed => 1,
            ErrorKind::Usage => 2,
            ErrorKind::TryAgain => 75,
            ErrorKind::Configuration => 78,
            ErrorKind::Cancelled => 130,
            ErrorKind::Closed => 0,
        }
    }
}

impl From<mote_model::Error> for Error {
    fn from(error: mote_model::Error) -> Error {
        use mote_model::ErrorKind as Model;
        let kind = match error.kind() {
            Model::Missing
            | Model::Truncated
            | Model::Format
            | Model::Version { .. }
            | Model::HashMismatch
            | Model::UnknownArchitecture
            | Model::Shape
            | Model::Tokenizer
            | Model::Mismatch
            | Model::Io => ErrorKind::Configuration,
            Model::ContextFull { .. } | Model::Argument => ErrorKind::Usage,
            Model::MemoryBudget { .. } => ErrorKind::Configuration,
            Model::Cancelled => ErrorKind::Cancelled,
            Model::Grammar | Model::Runtime => ErrorKind::Failed,
        };
        Error { kind, message: error.message().to_owned(), hint: error.next_step().map(str::to_owned) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  hint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
