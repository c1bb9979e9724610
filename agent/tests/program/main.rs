//! The program as a person or a script sees it: the real binary, its output, its exit codes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what a test cannot set up is a failed test")]

mod bundles;
mod cancel;
mod disk;
mod doctor;
mod gather;
mod language;
mod model;
mod program;
mod queue;
mod run;
mod script;
mod settings;
mod tasks;
mod toolspace;
mod usage;
mod why;
