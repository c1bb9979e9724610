//! The crate's one error: a kind to act on, a message to read, a hint that names the next step.

use std::fmt;

/// What went wrong, for a caller that acts on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// A file of the bundle does not exist or cannot be opened.
    Missing,
    /// A file is shorter than its manifest or header says.
    Truncated,
    /// A file does not have the form of `docs/bundle.md`.
    Format,
    /// A file is of a format version this build does not read.
    Version {
        /// The version the file states.
        found: u32,
        /// The version this build reads.
        supported: u32,
    },
    /// The content of a file is not what the manifest's hash says.
    HashMismatch,
    /// The model family is not one this build runs.
    UnknownArchitecture,
    /// A size is absurd, or two parts of the bundle disagree on one.
    Shape,
    /// The tokenizer cannot be read, or does not belong to this model.
    Tokenizer,
    /// A snapshot or an adapter belongs to another model.
    Mismatch,
    /// The tokens do not fit into the context window.
    ContextFull {
        /// Tokens the window holds.
        limit: usize,
        /// Tokens that were asked for.
        used: usize,
    },
    /// The model does not fit the memory it may take, in bytes.
    MemoryBudget {
        /// The budget.
        limit: u64,
        /// What the model would take.
        used: u64,
    },
    /// The caller broke off.
    Cancelled,
    /// The grammar does not compile, or became too complex while decoding.
    Grammar,
    /// The caller's options make no sense.
    Argument,
    /// The computation failed.
    Runtime,
    /// The operating system refused to read.
    Io,
}

/// An error of the model runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
}

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// A fault of the bundle that exporting or importing it anew repairs.
    pub(crate) fn bundle(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::new(kind, message)
            .hint("export the bundle again with model-export, or import a good copy with: mote model import PATH")
    }

    pub(crate) fn cancelled() -> Error {
        Error::new(ErrorKind::Cancelled, "cancelled")
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The message without its hint.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The next step for the reader, where there is one.
    pub fn next_step(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

/// The message, then the hint on a line of its own.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
