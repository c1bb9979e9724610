//! The tool trait and the built-in toolpacks.
//!
//! A *toolpack* is a folder with a `toolpack.toml` (what the tools are called, what they take, worked examples) and, when it is
//! built in, a Rust module beside it. [`builtin`] gives the descriptions, [`call`] runs a tool.
//!
//! Invariants:
//! - A call never panics, never follows a symbolic link out of a writable folder, and starts no process.
//! - Arguments are checked against the tool's schema before the tool runs.
//! - A result is at most [`CallLimits::max_result_bytes`] of JSON. Lists are cut with `truncated: true`; what cannot be cut is
//!   an [`ErrorKind::Limit`].
//! - A result is a small object with a `text` field that can be put in an answer as it is. The functions which Python has
//!   (`math.sqrt`) give a number, as in Python.
//!
//! It does not decide who may call what: policy, journal and retrieval belong to the agent.

#![forbid(unsafe_code)]

mod context;
mod error;
mod pack;

mod arguments;
mod bounds;
mod catalogue;
mod files;
mod matcher;

#[path = "../data/mod.rs"]
mod data;
#[path = "../fs/mod.rs"]
mod fs;
#[path = "../math/mod.rs"]
mod math;
#[path = "../notes/mod.rs"]
mod notes;
#[path = "../system/mod.rs"]
mod system;
#[path = "../text/mod.rs"]
mod text;
#[path = "../time/mod.rs"]
mod time;

pub use catalogue::{builtin, call};
pub use context::{CallContext, CallLimits, MemoryNotes, Note, Notes};
pub use error::{Error, ErrorKind};
pub use pack::{Example, Pack, Tool};
