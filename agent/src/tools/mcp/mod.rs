//! MCP servers: how they are configured, started, guarded, asked and ended.
//!
//! The only place that starts processes. What a server's tools mean to a session is decided above, in the runtime.

mod client;
mod configuration;
mod fleet;
mod guard;
mod manifest;
mod stream;

pub use configuration::{McpConfiguration, McpServer, parse, read};
pub use guard::{NOT_STARTED, run_if_asked as guard_if_asked};

pub(crate) use client::Listing;
pub(crate) use fleet::{Answered, Fleet, Found, Ground, Line};
pub(crate) use guard::program as guardian;
pub(crate) use manifest::Manifests;
