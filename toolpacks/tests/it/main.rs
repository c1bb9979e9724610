//! The built-in toolpacks through their public door.
#![expect(clippy::unwrap_used, reason = "tests")]

mod fixture;

mod data;
mod examples;
mod fs;
mod hostile;
mod manifests;
mod math;
mod names;
mod notes;
mod system;
mod table;
mod text;
mod time;
