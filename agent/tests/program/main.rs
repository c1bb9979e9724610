//! The program as a person or a script sees it: the real binary, its output, its exit codes.

#![expect(clippy::unwrap_used, reason = "what a test cannot set up is a failed test")]

mod doctor;
mod program;
mod queue;
mod tasks;
mod usage;
