//! What one task leaves behind: the records of its steps, and the trajectory put together from them.
//!
//! A trajectory is written as a sequence of [`Record`]s, each appended before its effect is reported. [`encode`] and
//! [`decode`] give a record its bytes (a version byte, then postcard), the same on disk and on the wire;
//! [`Trajectory::assemble`] puts records together, also those of a task that a crash cut short; serializing a
//! [`Trajectory`] gives its JSON form, whose fields `docs/trajectory.md` describes.
//!
//! Invariants: bytes from anywhere are refused or decoded, never a panic, and never more memory than a multiple of
//! [`MAX_RECORD_BYTES`]; a field that could not be recorded says why ([`Recorded`]); no number is NaN or infinite.
//!
//! This crate stores nothing, sends nothing and redacts nothing.

mod chain;
mod error;
mod header;
mod json;
mod outcome;
mod proof;
mod rebuild;
mod record;
mod step;
mod text;
mod trajectory;
mod values;
mod view;

pub use chain::{ChainHasher, verify};
pub use error::{Error, ErrorKind};
pub use header::{Device, Header, Mode, Policy, Recording, Sampling, Task, TaskSource, Toolspace};
pub use outcome::{
    Chain, Feedback, Judge, Judgement, LabelSource, Outcome, Privacy, Redaction, Reward, Rubric, Status, Verdict,
};
pub use proof::{ProofState, call_proof, first_proof};
pub use record::{FORMAT_VERSION, MAX_RECORD_BYTES, Record, decode, encode};
pub use step::{
    Call, CallEnd, CallResult, Configuration, Context, ContextMode, EndedBy, ErrorClass, Fragment, ProgramEnd, Request,
    Role, Selection, SelectionSource, Span, SpanKind, Stage, StageEnd, Turn, TurnKind, VmUse,
};
pub use text::Text;
pub use trajectory::{Assembler, Gap, GapReason, SCHEMA, Trajectory};
pub use values::{Finite, JsonText, Reason, Recorded, Sha256, Timestamp, TrajectoryId};
pub use view::View;
