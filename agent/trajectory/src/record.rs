//! The records that a trajectory is written in, and their bytes: a version byte, then postcard.
//!
//! Variants, and fields within them, keep their order forever: postcard knows them by position. A new variant goes
//! last; a changed one needs a new [`FORMAT_VERSION`], and [`decode`] goes on reading the old.

use serde::{Deserialize, Serialize};

use crate::{
    Call, CallEnd, Chain, Error, Feedback, Header, Judgement, Outcome, ProgramEnd, Redaction, Selection, Stage,
    StageEnd, Turn,
};

/// The first byte of every record.
pub const FORMAT_VERSION: u8 = 1;

/// The most bytes of one record, so that reading one needs bounded memory: it holds the text of a whole 32k-token
/// context with token ids and both log-probabilities.
pub const MAX_RECORD_BYTES: usize = 1 << 20;

/// One step, as it is appended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Record {
    /// The first record.
    Opened(Header),
    /// A stage begins.
    Stage(Stage),
    /// A turn is in the context.
    Turn(Turn),
    /// A call is about to be made.
    CallIntent {
        /// The turn whose program makes it.
        turn: u32,
        /// The call, without its result.
        call: Call,
    },
    /// A call has ended.
    CallResult(CallEnd),
    /// A turn's program has ended.
    ProgramEnd(ProgramEnd),
    /// Tools were chosen.
    Selection(Selection),
    /// A stage has ended.
    StageEnd(StageEnd),
    /// The task has ended.
    Sealed {
        /// How.
        outcome: Outcome,
        /// Its link to the trajectory before.
        chain: Chain,
    },
    /// A person judged the answer.
    Feedback(Feedback),
    /// The trainer judged the trajectory.
    Judged(Judgement),
    /// Something was taken out before it left the device.
    Redacted(Redaction),
}

/// The bytes of `record`.
///
/// # Errors
/// [`crate::ErrorKind::TooLarge`] above [`MAX_RECORD_BYTES`]; the caller shortens the record and tries again.
pub fn encode(record: &Record) -> Result<Vec<u8>, Error> {
    let bytes = postcard::to_extend(record, vec![FORMAT_VERSION])?;
    check_size(&bytes)?;
    Ok(bytes)
}

/// The record that `bytes` hold, whoever wrote them.
///
/// # Errors
/// [`crate::ErrorKind::TooLarge`], [`crate::ErrorKind::Version`], or [`crate::ErrorKind::Malformed`] for bytes that are
/// no record or go on after it.
pub fn decode(bytes: &[u8]) -> Result<Record, Error> {
    check_size(bytes)?;
    let (&version, payload) = bytes.split_first().ok_or(Error::Shape("no bytes"))?;
    if version != FORMAT_VERSION {
        return Err(Error::Version { found: version, supported: FORMAT_VERSION });
    }
    match postcard::take_from_bytes(payload)? {
        (record, []) => Ok(record),
        _ => Err(Error::Shape("bytes after its end")),
    }
}

fn check_size(bytes: &[u8]) -> Result<(), Error> {
    match bytes.len() {
        used if used > MAX_RECORD_BYTES => Err(Error::TooLarge { limit: MAX_RECORD_BYTES, used }),
        _ => Ok(()),
    }
}
