//! The action language: source to tokens to tree to program to bounded VM, and the grammar that decodes it.
//!
//! Pure: no I/O, no clock, no randomness; two equal runs give equal states. [`compile`] makes a [`Program`], [`Vm`] runs
//! it until the first tool call, hands out the call as [`Step::Call`] and goes on with [`Vm::resume`]. At that point the
//! state may be stored with [`Vm::encode`]. Everything is bounded by [`Limits`].
//!
//! Of `std` it uses what `alloc` has, and floats' powers and rounding; `docs/language.md` says why it is not `no_std`.
//!
//! It does not call tools, ask policy or know a model: the session does.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::arithmetic_side_effects,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod args;
mod ast;
mod builtins;
mod canonical;
mod code;
mod collections;
mod compiler;
mod display;
mod error;
mod explain;
mod format;
pub mod grammar;
mod heap;
mod input;
mod json;
mod lexer;
mod limits;
mod methods;
mod ops;
mod parser;
mod reference;
mod schema;
mod signature;
mod substitutes;
mod table;
mod value;
mod vm;

pub use canonical::canonical;
pub use code::Program;
pub use compiler::compile;
pub use error::{Error, Kind};
pub use explain::{Explanation, Reached, ToolUse, UnsetName, explain};
pub use input::{Input, continues_block, input};
pub use limits::{Limits, Usage};
pub use reference::{Entry, lookup, nearest_entry, reference, reference_page};
pub use schema::{JsonText, Property, Schema};
pub use signature::{Param, Signature, identifier, moves, number_collisions};
pub use vm::{Call, CallError, Step, Variable, Vm};
