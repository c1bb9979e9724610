//! `mote`: everything that touches the outside world.
//!
//! The library behind the thin binary. Who may import whom is stated in ARCHITECTURE.md and held by a test:
//! only `cli` prints, only `store` speaks SQL, only `tools` starts processes.

#![deny(unsafe_code)]

pub mod bundles;
pub mod cancel;
pub mod cli;
pub mod context;
pub mod doctor;
pub mod error;
pub mod home;
pub mod machine;
pub mod os;
pub mod session;
pub mod store;
pub mod text_file;
pub mod tools;

pub use error::{Error, ErrorKind, Result};
