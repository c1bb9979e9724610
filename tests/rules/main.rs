//! The rules of this repository, as tests: who may import whom, who may do what, how big a file may be, and that
//! documents and manifests say what is there. ARCHITECTURE.md states the rules; a boundary moves there and here together.
//!
//! A rule looks at the tokens of a file, so comments and strings never break one. Code under `#[cfg(test)]` and below a
//! `tests` folder may do what the program may not.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a rule that cannot be read is a failed test")]

mod capabilities;
mod documents;
mod imports;
mod sizes;
mod source;
mod tree;
