//! What a run tells while it goes on; `cli` shows it, as text or as JSON Lines.

use serde::Serialize;
use serde_json::{Map, Value};

/// One event. Serialized it is the line that CLI.md describes.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Prompt tokens are being prefilled.
    Prefill {
        /// Tokens done.
        done: usize,
        /// Tokens in all.
        total: usize,
    },
    /// The model has written a piece of a program.
    Token {
        /// The piece.
        text: String,
    },
    /// A program is complete.
    Program {
        /// The turn, from 0.
        turn: u32,
        /// The source.
        text: String,
    },
    /// A tool is about to be called.
    Call {
        /// The call's number in the run.
        id: u32,
        /// `server.tool`.
        tool: String,
        /// Arguments by their wire names.
        arguments: Map<String, Value>,
    },
    /// A call has ended.
    Result {
        /// The call's number in the run.
        id: u32,
        /// Whether the tool gave a result.
        ok: bool,
        /// The size of the whole result.
        bytes: u64,
        /// How long it took.
        ms: u64,
        /// What went wrong, if something did.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// What the model will see of the program's run.
    Observation {
        /// The turn, from 0.
        turn: u32,
        /// The text.
        text: String,
    },
    /// A stage begins.
    Stage {
        /// The stage, from 0.
        stage: u32,
        /// Its sub-goal.
        goal: String,
        /// The tools that the prompt shows.
        tools: Vec<String>,
    },
    /// Something a person should know.
    Notice {
        /// The text.
        text: String,
    },
}
