//! What a model takes in memory, known from its manifest before anything is loaded, and whether that fits a budget.
//!
//! The sum is an upper estimate: weights are mapped whole, the KV cache is full, every buffer has its largest size. What
//! the pages of a map cost besides depends on the system, and a budget says nothing about other programs.

use std::fmt;

use crate::bundle::WEIGHTS;
use crate::cache::KvKind;
use crate::conversation::BATCH_TOKENS;
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{Architecture, Manifest};

/// The program's code, its threads' stacks, the plan of the graph and the agent's own data.
const PROGRAM_BYTES: u64 = 48 << 20;
/// Memory of the tokenizer and of the vocabulary's trie for every entry of the vocabulary: measured are 670 for 49,152 entries
/// and 680 for 151,936.
const TOKEN_BYTES: u64 = 704;
/// Bytes of logits, candidates and masks for an entry of the vocabulary.
const SAMPLER_BYTES: u64 = 32;
/// Contexts that are offered where a larger one does not fit.
const CONTEXT_STEP: usize = 256;

/// Bytes in memory by what they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryNeed {
    /// Weights, mapped from the file: shared with other processes, and dropped and read again when memory is short.
    pub weights: u64,
    /// The KV cache of one conversation whose window is full.
    pub kv: u64,
    /// Buffers of a batch and of the sampler.
    pub scratch: u64,
    /// Tokenizer and the vocabulary's trie.
    pub tokenizer: u64,
    /// The program itself.
    pub program: u64,
    /// The context window it is for.
    pub context: usize,
    /// What the KV cache holds.
    pub kv_kind: KvKind,
}

impl MemoryNeed {
    /// All of it.
    pub fn total(&self) -> u64 {
        self.weights + self.anonymous()
    }

    /// What is not mapped from a file.
    pub fn anonymous(&self) -> u64 {
        self.kv + self.scratch + self.tokenizer + self.program
    }
}

/// The sum, for people.
impl fmt::Display for MemoryNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "weights {} + {} kv cache of {} tokens {} + scratch {} + tokenizer {} + program {} = {}",
            mib(self.weights),
            self.kv_kind,
            self.context,
            mib(self.kv),
            mib(self.scratch),
            mib(self.tokenizer),
            mib(self.program),
            mib(self.total())
        )
    }
}

impl Manifest {
    /// What a model of this manifest takes with a context window of so many tokens.
    pub fn memory_need(&self, context: usize, kv_kind: KvKind) -> MemoryNeed {
        MemoryNeed {
            weights: self.files.get(WEIGHTS).map_or(0, |file| file.bytes),
            kv: kv_kind.cache_bytes(&self.architecture, context),
            scratch: scratch_bytes(&self.architecture, context),
            tokenizer: self.architecture.vocab as u64 * TOKEN_BYTES,
            program: PROGRAM_BYTES,
            context,
            kv_kind,
        }
    }

    /// The kind of KV cache to take within a budget, and the memory needed with it: the wanted kind, or the first that fits.
    pub(crate) fn fit(&self, context: usize, wanted: Option<KvKind>, budget: Option<u64>) -> Result<MemoryNeed> {
        let kinds = wanted.map_or(vec![KvKind::F16, KvKind::Int8], |kind| vec![kind]);
        let needs: Vec<MemoryNeed> = kinds.iter().map(|&kind| self.memory_need(context, kind)).collect();
        let Some(budget) = budget else { return Ok(needs[0]) };
        match needs.iter().find(|need| need.total() <= budget) {
            Some(need) => Ok(*need),
            None => Err(self.over_budget(&needs[0], budget)),
        }
    }

    fn over_budget(&self, need: &MemoryNeed, budget: u64) -> Error {
        let (limit, used) = (budget, need.total());
        let message = format!("the model does not fit the memory budget of {}: {need}", mib(limit));
        let fits = |kind: KvKind| {
            let contexts = (1..=need.context.saturating_sub(1) / CONTEXT_STEP).rev().map(|n| n * CONTEXT_STEP);
            let mut contexts = std::iter::once(need.context).chain(contexts);
            contexts.find(|&context| self.memory_need(context, kind).total() <= budget)
        };
        let offers: Vec<String> = [KvKind::F16, KvKind::Int8]
            .into_iter()
            .filter_map(|kind| fits(kind).map(|context| format!("--context {context} --kv {kind}")))
            .collect();
        let hint = match offers.is_empty() {
            false => format!("this fits: {}", offers.join(", or ")),
            true => format!(
                "nothing of it fits: give at least {}, or take a smaller model",
                mib(self.memory_need(CONTEXT_STEP.min(need.context), KvKind::Int8).total())
            ),
        };
        Error::new(ErrorKind::MemoryBudget { limit, used }, message).hint(hint)
    }
}

/// The largest buffers of a batch that live at the same time, of the sampler, and of the rotary table.
fn scratch_bytes(a: &Architecture, context: usize) -> u64 {
    let attention = a.heads * a.head_dim;
    let qkv = attention + 2 * a.kv_heads * a.head_dim;
    let row = 4 * (3 * a.hidden + qkv + 2 * attention + 3 * a.ffn) + 4 * a.ffn;
    let batch = BATCH_TOKENS.min(context) * row;
    batch as u64 + a.vocab as u64 * SAMPLER_BYTES + (context * a.head_dim * size_of::<f32>()) as u64
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}
