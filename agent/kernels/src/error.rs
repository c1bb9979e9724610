//! The one error of this crate: shapes that do not fit, limits, and threads the system refuses.

/// What kind of fault an [`Error`] is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// Lengths or shapes do not fit together.
    Shape,
    /// A stated limit would be exceeded.
    Limit,
    /// The operating system refused a thread.
    System,
}

/// Why a kernel was not run. Nothing was written when one of these is returned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A slice has another length than the shapes ask for.
    #[error("wrong length of {what}, expected {expected}: {found}")]
    Length {
        /// Which argument.
        what: &'static str,
        /// The length that the shapes ask for.
        expected: usize,
        /// The length that was given.
        found: usize,
    },
    /// A size is not a positive multiple of what the format or kernel works in.
    #[error("{what} must be a positive multiple of {of}: {found}")]
    Multiple {
        /// Which size.
        what: &'static str,
        /// The unit.
        of: usize,
        /// The size that was given.
        found: usize,
    },
    /// A size or index is over its limit.
    #[error("{what} is over its limit of {limit}: {used}")]
    Limit {
        /// Which size.
        what: &'static str,
        /// The largest value allowed.
        limit: usize,
        /// The value that was given.
        used: usize,
    },
    /// A worker thread could not be started.
    #[error("cannot start a worker thread: {0}")]
    Thread(std::io::Error),
}

impl Error {
    /// What kind of fault this is.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Length { .. } | Self::Multiple { .. } => ErrorKind::Shape,
            Self::Limit { .. } => ErrorKind::Limit,
            Self::Thread(_) => ErrorKind::System,
        }
    }

    pub(crate) fn check_length(what: &'static str, expected: usize, found: usize) -> Result<(), Self> {
        if expected == found { Ok(()) } else { Err(Self::Length { what, expected, found }) }
    }

    pub(crate) fn check_multiple(what: &'static str, of: usize, found: usize) -> Result<(), Self> {
        if found != 0 && found.checked_rem(of) == Some(0) { Ok(()) } else { Err(Self::Multiple { what, of, found }) }
    }

    pub(crate) fn check_limit(what: &'static str, limit: usize, used: usize) -> Result<(), Self> {
        if used <= limit { Ok(()) } else { Err(Self::Limit { what, limit, used }) }
    }
}
