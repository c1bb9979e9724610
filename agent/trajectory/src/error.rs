//! The one error type of this crate.

use thiserror::Error;

/// What went wrong, for callers that decide by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A record is larger than [`crate::MAX_RECORD_BYTES`]; the caller shortens it and tries again.
    TooLarge,
    /// The bytes are of a format version that this binary does not read.
    Version,
    /// The bytes are no record, or a value is outside its type.
    Malformed,
    /// The records hold no header, so there is no trajectory to put together.
    NoHeader,
}

/// An error of encoding, decoding or assembling.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A record is larger than a record may be.
    #[error("record too large: limit {limit} bytes, used {used}")]
    TooLarge {
        /// The most bytes a record may have.
        limit: usize,
        /// The bytes it has.
        used: usize,
    },
    /// A format version that this binary does not read.
    #[error(
        "unknown trajectory format version: {found}\nthis binary reads version {supported}; a newer one may read it"
    )]
    Version {
        /// The version found.
        found: u8,
        /// The version that is read and written.
        supported: u8,
    },
    /// Bytes that are no record.
    #[error("malformed record: {0}")]
    Postcard(#[from] postcard::Error),
    /// Bytes that go on after the record's end, or none at all.
    #[error("malformed record: {0}")]
    Shape(&'static str),
    /// A value that its type refuses.
    #[error("malformed {what}: {value}")]
    Value {
        /// What it should have been.
        what: &'static str,
        /// What it was.
        value: String,
    },
    /// Text that is no JSON.
    #[error("malformed json text: {0}")]
    Json(#[from] serde_json::Error),
    /// No header among the records.
    #[error("trajectory without a header record")]
    NoHeader,
}

impl Error {
    /// The cause, for callers that decide by it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::Version { .. } => ErrorKind::Version,
            Self::Postcard(_) | Self::Shape(_) | Self::Value { .. } | Self::Json(_) => ErrorKind::Malformed,
            Self::NoHeader => ErrorKind::NoHeader,
        }
    }
}
