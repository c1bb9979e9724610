//! MCP servers as real processes: how they fail, what they may use, and that nothing of them survives.

#![expect(clippy::unwrap_used, reason = "what a test cannot set up is a failed test")]

mod faults;
mod ground;
mod processes;
mod sandbox;
