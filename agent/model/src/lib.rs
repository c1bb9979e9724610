//! The model runtime of mote: a bundle on disk, its graph in tract, a conversation with a KV cache, and completions.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use mote_model::{Bundle, GenerateOptions, LoadOptions, Model};
//!
//! # fn main() -> Result<(), mote_model::Error> {
//! let model = Model::load(Bundle::open("bundle".as_ref())?, &LoadOptions::default())?;
//! let mut conversation = model.conversation()?;
//! let prompt = model.tokenizer().encode_prompt("The capital of France is")?;
//! conversation.prefill(&prompt, &mut |_done, _total| ControlFlow::Continue(()))?;
//! let completion = conversation.generate(&GenerateOptions::default(), None, &mut |_event| ControlFlow::Continue(()))?;
//! # let _ = completion.text;
//! # Ok(())
//! # }
//! ```
//!
//! Invariants: this is the only crate that knows tract; weights are mapped and never copied; nothing that comes from a file
//! or a caller can panic it. What it does not do: find or store bundles, assemble prompts, write grammars.

mod error;

mod bundle;
mod embedding;
mod manifest;
mod map;
mod regular;
mod tokenizer;
mod vocabulary;
mod weights;
mod well_formed;

mod adapter;
mod graph;
mod memory;
mod model;
mod ops;
mod threads;

mod cache;
mod conversation;
mod logits;
mod snapshot;

mod generate;
mod grammar;
mod sampler;
mod speculate;

pub use adapter::Adapter;
pub use bundle::Bundle;
pub use cache::KvKind;
pub use conversation::Conversation;
pub use embedding::EmbeddingTable;
pub use error::{Error, ErrorKind, Result};
pub use generate::{Completion, GenerateOptions, Speculate, Stop, TokenEvent};
pub use grammar::Grammar;
pub use manifest::{Architecture, FORMAT_VERSION, FileRecord, Manifest, PromptStyle, SpecialTokens};
pub use map::LOST_FILE_EXIT_CODE;
pub use memory::MemoryNeed;
pub use model::{LoadOptions, Model};
pub use sampler::Sampling;
pub use tokenizer::Tokenizer;
