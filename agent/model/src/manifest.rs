//! `manifest.json`: what the model is, in numbers that are checked before anything is sized by them.
//!
//! Invariant: a [`Manifest`] from [`Manifest::parse`] has a known family, sizes within the limits below, heads that divide,
//! and token ids inside the vocabulary. It says nothing yet about the other files.

use std::collections::BTreeMap;

use mote_kernels::MAX_HEAD_DIM;
use serde::{Deserialize, Serialize};

use crate::bundle::{GRAPH, TOKENIZER, WEIGHTS};
use crate::error::{Error, ErrorKind, Result};

/// The version of the bundle format that this build reads.
pub const FORMAT_VERSION: u32 = 1;

/// Larger than any chat template seen in the field by a factor of a hundred.
pub(crate) const MAX_MANIFEST_BYTES: u64 = 4 << 20;
const MAX_WIDTH: usize = 1 << 18;
const MAX_LAYERS: usize = 512;
const MAX_HEADS: usize = 1024;
const MAX_VOCAB: usize = 1 << 20;
const MAX_CONTEXT: usize = 1 << 20;
const MAX_STOP_TOKENS: usize = 64;

/// The shape of the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Architecture {
    /// `llama` or `qwen3`.
    pub family: String,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Number of transformer layers.
    pub layers: usize,
    /// Number of query heads.
    pub heads: usize,
    /// Number of key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of a head.
    pub head_dim: usize,
    /// Width of the feed-forward network.
    pub ffn: usize,
    /// Rows of the embedding.
    pub vocab: usize,
    /// Base of the rotary embedding.
    pub rope_theta: f32,
    /// Added to the mean square in every norm.
    pub norm_eps: f32,
    /// Whether the output matrix is the embedding.
    pub tied_embeddings: bool,
    /// Whether query and key heads are normalized before rotation.
    pub qk_norm: bool,
}

/// Size and hash of a file of the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256 in lower-case hex.
    pub sha256: String,
}

/// Token ids with a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecialTokens {
    /// Opens a text.
    pub bos: Option<u32>,
    /// Closes a text.
    pub eos: Option<u32>,
    /// Fills a batch.
    pub pad: Option<u32>,
    /// Each of these ends a completion.
    pub stop: Vec<u32>,
}

/// The form in which the model writes programs best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptStyle {
    /// A pattern `Task: .. Program: ..` that goes on.
    Completion,
    /// The turns of the chat template.
    Chat,
}

/// `manifest.json` of a bundle, field by field as in `docs/bundle.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always `mote-bundle`.
    pub format: String,
    /// See [`FORMAT_VERSION`].
    pub format_version: u32,
    /// Name of the bundle.
    pub name: String,
    /// Licence of the weights, an SPDX expression in lower case.
    pub license: String,
    /// The checkpoint it was made from.
    pub source: String,
    /// The shape of the network.
    pub architecture: Architecture,
    /// Tokens the model was trained to attend to.
    pub context_length: usize,
    /// How the matrices are quantized, as a label.
    pub quantization: String,
    /// The other files.
    pub files: BTreeMap<String, FileRecord>,
    /// Token ids with a role.
    pub special_tokens: SpecialTokens,
    /// Whether a prompt begins with `bos`.
    pub add_bos: bool,
    /// The source's Jinja text.
    pub chat_template: Option<String>,
    /// The form in which this model writes programs best.
    pub prompt_style: PromptStyle,
}

#[derive(Deserialize)]
struct Preamble {
    format: String,
    format_version: u32,
}

impl Manifest {
    /// Reads and checks the text of `manifest.json`.
    ///
    /// # Errors
    /// `Format` if it is no manifest, `Version` if it is of another version (looked at before any other field),
    /// `UnknownArchitecture`, and `Shape` for numbers out of range; the message names the field.
    pub fn parse(text: &[u8]) -> Result<Manifest> {
        let preamble: Preamble = from_json(text)?;
        if preamble.format != "mote-bundle" {
            return Err(Error::bundle(
                ErrorKind::Format,
                format!("manifest.json: format is not mote-bundle: {}", shorten(&preamble.format)),
            ));
        }
        if preamble.format_version != FORMAT_VERSION {
            let kind = ErrorKind::Version { found: preamble.format_version, supported: FORMAT_VERSION };
            return Err(version_error(kind, "manifest.json: format_version", preamble.format_version, FORMAT_VERSION));
        }
        let manifest: Manifest = from_json(text)?;
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<()> {
        if let Some(name) = self.files.keys().find(|name| ![GRAPH, WEIGHTS, TOKENIZER].contains(&name.as_str())) {
            let message = format!("manifest.json: files has an unknown name: {}", shorten(name));
            return Err(Error::bundle(ErrorKind::Format, message));
        }
        let a = &self.architecture;
        if a.family != "llama" && a.family != "qwen3" {
            let message = format!("manifest.json: architecture.family is unknown: {}", shorten(&a.family));
            return Err(Error::new(ErrorKind::UnknownArchitecture, message)
                .hint("this build runs the families llama and qwen3"));
        }
        in_range("architecture.hidden", a.hidden, MAX_WIDTH)?;
        in_range("architecture.layers", a.layers, MAX_LAYERS)?;
        in_range("architecture.heads", a.heads, MAX_HEADS)?;
        in_range("architecture.kv_heads", a.kv_heads, a.heads)?;
        in_range("architecture.head_dim", a.head_dim, MAX_HEAD_DIM)?;
        in_range("architecture.ffn", a.ffn, MAX_WIDTH)?;
        in_range("architecture.vocab", a.vocab, MAX_VOCAB)?;
        in_range("context_length", self.context_length, MAX_CONTEXT)?;
        for (field, width) in [("hidden", a.hidden), ("ffn", a.ffn), ("heads * head_dim", a.heads * a.head_dim)] {
            require(width.is_multiple_of(32), || format!("architecture.{field} is not a multiple of 32: {width}"))?;
        }
        require(a.heads.is_multiple_of(a.kv_heads), || {
            format!("architecture.kv_heads does not divide heads: {}", a.kv_heads)
        })?;
        require(a.head_dim.is_multiple_of(8), || {
            format!("architecture.head_dim is not a multiple of 8: {}", a.head_dim)
        })?;
        require(a.rope_theta.is_finite() && a.rope_theta > 0.0, || {
            format!("architecture.rope_theta is not positive: {}", a.rope_theta)
        })?;
        require(a.norm_eps.is_finite() && a.norm_eps >= 0.0, || {
            format!("architecture.norm_eps is negative: {}", a.norm_eps)
        })?;
        let special = &self.special_tokens;
        require(special.stop.len() <= MAX_STOP_TOKENS, || {
            format!("special_tokens.stop has more than {MAX_STOP_TOKENS} ids: {}", special.stop.len())
        })?;
        let ids = special.stop.iter().chain(&special.bos).chain(&special.eos).chain(&special.pad);
        for &id in ids {
            require((id as usize) < a.vocab, || {
                format!("special_tokens: id outside the vocabulary of {}: {id}", a.vocab)
            })?;
        }
        Ok(())
    }
}

fn from_json<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T> {
    serde_json::from_slice(text).map_err(|e| {
        let kind = if e.is_eof() { ErrorKind::Truncated } else { ErrorKind::Format };
        Error::bundle(kind, format!("manifest.json cannot be read: {e}"))
    })
}

fn in_range(field: &str, value: usize, limit: usize) -> Result<()> {
    require(value >= 1 && value <= limit, || format!("{field} is outside 1 to {limit}: {value}"))
}

fn require(holds: bool, message: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::bundle(ErrorKind::Shape, format!("manifest.json: {}", message()))) }
}

pub(crate) fn version_error(kind: ErrorKind, what: &str, found: u32, supported: u32) -> Error {
    let hint = if found > supported {
        "a newer mote reads this bundle"
    } else {
        "export the bundle again with this version's model-export"
    };
    Error::new(kind, format!("{what} is not {supported}: {found}")).hint(hint)
}

/// Hostile text in a message stays short.
pub(crate) fn shorten(text: &str) -> String {
    const MAX_SHOWN_CHARS: usize = 80;
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_SHOWN_CHARS).collect()
}
