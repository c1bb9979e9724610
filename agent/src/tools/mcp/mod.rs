//! MCP servers: how they are configured, started, guarded, asked and ended.
//!
//! The only place that starts processes. What a server's tools mean to a session is decided above, in the runtime.

mod caps;
mod client;
mod configuration;
mod extras;
mod fleet;
mod guard;
mod listener;
mod manifest;
mod process;
mod secret;
mod stream;

pub use configuration::{McpConfiguration, McpServer, SandboxEntry, parse, read};
pub use guard::run_if_asked as guard_if_asked;
pub use secret::Secret;

pub(crate) use client::Listing;
pub(crate) use fleet::{Answered, Fleet, Found, Line};
pub(crate) use guard::program as guardian;
pub(crate) use manifest::Manifests;
pub(crate) use process::Ground;
