//! Who writes the programs: the model, or a script in its place.

mod card;
mod model;
mod scripted;

use std::ops::ControlFlow;

use crate::context::{Piece, Prompt};
use crate::error::Result;

pub use model::{ModelAuthor, ModelAuthorOptions};
pub use scripted::ScriptedAuthor;

/// What an author tells while it works.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// Prompt tokens done, and in all.
    Prefill(usize, usize),
    /// A piece of the program.
    Token(&'a str),
}

/// What an author is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The whole prompt of this turn.
    pub prompt: &'a Prompt,
    /// The grammar of a program with the tools that are loaded, in Lark's form.
    pub grammar: &'a str,
    /// The most tokens of the program.
    pub max_tokens: usize,
}

/// A program and how it came about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Written {
    /// The source.
    pub program: String,
    /// What decoding left behind; `None` from a script.
    pub decoded: Option<Decoded>,
}

/// What decoding left behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// The tokens of the program.
    pub ids: Vec<u32>,
    /// Which of them the grammar forced.
    pub forced: Vec<bool>,
    /// Log-probabilities as sampled, under the mask.
    pub logprobs: Vec<f32>,
    /// Log-probabilities without the mask; `None` in recording `light`.
    pub logprobs_free: Option<Vec<f32>>,
    /// Prompt tokens kept from the turn before.
    pub n_cached: usize,
    /// Prompt tokens in all.
    pub n_prompt: usize,
    /// Where the context was rewound to, if a token that was in it had to go.
    pub mark: Option<usize>,
    /// Whether the token budget of the program cut it.
    pub cut: bool,
    /// Time to prefill.
    pub prefill_ms: u64,
    /// Time to decode.
    pub decode_ms: u64,
}

/// Writes programs.
pub trait Author {
    /// The token ids of a fragment; `None` without a tokenizer.
    fn encode(&self, pieces: &[Piece]) -> Result<Option<Vec<u32>>>;

    /// The most tokens that the prompt and a program may have together; `None` without a window.
    fn window(&self) -> Option<usize>;

    /// Writes the next program. `Break` from `progress` cancels.
    fn write(
        &mut self,
        request: Request<'_>,
        progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Written>;
}
