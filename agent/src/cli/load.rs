//! How a model is loaded: the same options for every command that does.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use mote_kernels::MAX_THREADS;
use mote_model::{Adapter, Conversation, KvKind, LoadOptions, Manifest, MemoryNeed, Model, Speculate};
use serde_json::json;

use crate::bundles;
use crate::cli::Globals;
use crate::error::{Error, ErrorKind, Result};

/// The memory budget where `--memory-budget` gives none.
const BUDGET_VARIABLE: &str = "MOTE_MEMORY_BUDGET";

#[derive(Args, Debug)]
pub(crate) struct LoadArgs {
    /// Name of an imported bundle, or path of a folder; the default bundle if not given
    #[arg(long, value_name = "BUNDLE")]
    pub(crate) model: Option<String>,
    /// Threads that compute; 0 takes the physical cores
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(..=MAX_THREADS as u64))]
    threads: usize,
    /// The context window, in tokens; the default is 4096, or the model's if that is less; 0 takes all that the model has
    #[arg(long, value_name = "TOKENS")]
    context: Option<usize>,
    /// What the KV cache holds; the default is f16, or int8 where only that fits the memory budget
    #[arg(long, value_enum)]
    kv: Option<KvArg>,
    /// Refuse a model that takes more memory in all, such as 3GiB or 900M; the default is MOTE_MEMORY_BUDGET, or none
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory_budget: Option<u64>,
    /// A low-rank adapter for this model, in safetensors form
    #[arg(long, value_name = "FILE")]
    adapter: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KvArg {
    F16,
    Int8,
}

/// Whether the decode loop works ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpeculateArg {
    Auto,
    Off,
}

impl From<SpeculateArg> for Speculate {
    fn from(argument: SpeculateArg) -> Speculate {
        match argument {
            SpeculateArg::Auto => Speculate::Auto,
            SpeculateArg::Off => Speculate::Off,
        }
    }
}

/// The context window where nobody asks for another, in tokens: its cache fits a small board.
const DEFAULT_CONTEXT: usize = 4096;

impl LoadArgs {
    pub(crate) fn load(&self, globals: &Globals) -> Result<Model> {
        let folder = self.folder(globals)?;
        let options = self.options(&Manifest::read(&folder)?)?;
        Ok(Model::open(&folder, &options)?)
    }

    /// The adapter, opened for the model.
    pub(crate) fn adapter(&self, model: &Model) -> Result<Option<Adapter>> {
        Ok(self.adapter.as_ref().map(|path| Adapter::open(path, model.bundle())).transpose()?)
    }

    /// A conversation with the adapter.
    pub(crate) fn conversation(&self, model: &Model) -> Result<Conversation> {
        let mut conversation = model.conversation()?;
        conversation.set_adapter(self.adapter(model)?.as_ref())?;
        Ok(conversation)
    }

    /// The folder of the bundle.
    pub(crate) fn folder(&self, globals: &Globals) -> Result<PathBuf> {
        bundles::resolve(&globals.home, self.model.as_deref())
    }

    /// The options for a model of this manifest.
    pub(crate) fn options(&self, manifest: &Manifest) -> Result<LoadOptions> {
        Ok(LoadOptions {
            threads: self.threads,
            context: self.context.unwrap_or_else(|| DEFAULT_CONTEXT.min(manifest.context_length)),
            kv: self.kv.map(|kv| match kv {
                KvArg::F16 => KvKind::F16,
                KvArg::Int8 => KvKind::Int8,
            }),
            memory_budget: match self.memory_budget {
                Some(budget) => Some(budget),
                None => budget_from_environment()?,
            },
        })
    }
}

fn budget_from_environment() -> Result<Option<u64>> {
    let Some(value) = std::env::var_os(BUDGET_VARIABLE).filter(|value| !value.is_empty()) else { return Ok(None) };
    let text = value.to_string_lossy();
    size(&text).map(Some).map_err(|why| {
        Error::new(ErrorKind::Configuration, format!("{BUDGET_VARIABLE} is {why}: {text}"))
            .with_hint("set it to a size such as 3GiB or 900M, or unset it")
    })
}

/// Reads a size in bytes; K, M and G with or without iB are powers of 1024.
fn size(text: &str) -> std::result::Result<u64, &'static str> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].trim() {
        "" | "B" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return Err("not a size such as 3GiB or 900M"),
    };
    let number = digits.parse::<u64>().map_err(|_| "not a size such as 3GiB or 900M")?;
    number.checked_mul(1 << shift).filter(|&bytes| bytes > 0).ok_or("out of range")
}

/// The sum for programs, in bytes.
pub(crate) fn memory_json(need: &MemoryNeed) -> serde_json::Value {
    json!({
        "weights": need.weights, "kv": need.kv, "scratch": need.scratch, "tokenizer": need.tokenizer,
        "program": need.program, "total": need.total(), "context": need.context, "kv_kind": need.kv_kind.to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_units() {
        let ok = [("1", 1), ("3GiB", 3 << 30), ("900M", 900 << 20), ("2 K", 2 << 10), ("16B", 16)];
        ok.iter().for_each(|(text, bytes)| assert_eq!(size(text), Ok(*bytes), "{text}"));
        for text in ["", "GiB", "3 TiB", "-1", "1.5G", "0", "99999999999G"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
