//! The one error of this crate.

use std::fmt;

const MAX_MESSAGE_CHARS: usize = 400;

/// Why a tool could not do what it was asked.
///
/// Each error is an observation for the model: one message and, where there is a next step, a hint on its own line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
}

/// What went wrong, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A `toolpack.toml` does not parse or does not hold together.
    InvalidManifest,
    /// No built-in pack or tool has this name.
    UnknownTool,
    /// An argument is missing, unknown, of the wrong type or out of range.
    InvalidArgument,
    /// What the arguments name does not exist.
    NotFound,
    /// The operating system or the list of writable folders refuses.
    Permission,
    /// A bound was reached.
    Limit {
        /// The bound.
        limit: u64,
        /// What was asked for or already used.
        used: u64,
    },
    /// Reading or writing failed.
    Io,
    /// This machine or this build cannot do it.
    Unsupported,
    /// The caller cancelled the call.
    Cancelled,
}

impl Error {
    /// An error of `kind`; a message longer than 400 characters is cut.
    pub fn new(kind: ErrorKind, message: impl AsRef<str>) -> Self {
        Self { kind, message: cut(message.as_ref()), hint: None }
    }

    /// A bound was reached; `what` names it and its unit, as in `file size in bytes`.
    pub fn limit(what: &str, limit: u64, used: u64) -> Self {
        Self::new(ErrorKind::Limit { limit, used }, format!("limit reached, {what}: limit {limit}, used {used}"))
    }

    /// The same error with a next step.
    #[must_use]
    pub fn with_hint(mut self, hint: impl AsRef<str>) -> Self {
        self.hint = Some(cut(hint.as_ref()));
        self
    }

    /// What went wrong, for programs.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What went wrong, for people and models: lower case, no full stop, the value last.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The next step, where there is one.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub(crate) fn invalid(message: impl AsRef<str>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    pub(crate) fn io(doing: &str, what: impl fmt::Display, cause: &std::io::Error) -> Self {
        let kind = match cause.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::NotFound,
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Permission,
            _ => ErrorKind::Io,
        };
        match kind {
            ErrorKind::NotFound => Self::new(kind, format!("no such file or folder: {what}"))
                .with_hint("list the folder first with fs.list(path=..)"),
            ErrorKind::Permission => Self::new(kind, format!("may not {doing}: {what}")),
            _ => Self::new(kind, format!("cannot {doing} ({cause}): {what}")),
        }
    }
}

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

fn cut(message: &str) -> String {
    match message.char_indices().nth(MAX_MESSAGE_CHARS) {
        Some((end, _)) => format!("{}..", &message[..end]),
        None => message.to_owned(),
    }
}
