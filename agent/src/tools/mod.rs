//! Servers and tools: the catalogue, retrieval, policy, and the calls themselves.
//!
//! The way in is [`ToolRuntime`]. MCP servers are processes behind a guardian, so that nothing of them outlives us.

mod calls;
mod catalogue;
mod example;
mod learn;
mod retrieval;

mod policy;
mod result;
mod runtime;
mod spill;

pub mod mcp;
pub mod sandbox;
pub mod toolspace;

pub use calls::{MAX_SIDE_BY_SIDE, ToolRequest};
pub use catalogue::{Catalogue, Example, Server, ServerKind, ServerState, ToolDescription, ToolEntry, ToolId};
pub use learn::Learned;
pub use policy::{Answer, Decision, Effect, Policy};
pub use result::{MAX_RESULT_BYTES, ToolFailure, ToolOutcome};
pub use retrieval::{Anchor, Candidate, Comparison, Index, Ranking};
pub use runtime::{Asker, ToolOptions, ToolRuntime};
