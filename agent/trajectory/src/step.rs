//! The steps of a task: stages, turns, tool calls and selections.
//!
//! A record is written with what is known at that moment; fields known later say `crash` until their own record
//! comes, so that what lies on disk is true at every instant.

use serde::{Deserialize, Serialize, Serializer};

use crate::{Finite, JsonText, Reason, Recorded, Sha256, Timestamp};

/// A stretch of turns under one configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// Its index.
    pub i: u32,
    /// The configuration, fixed for the stage.
    pub configuration: Configuration,
    /// The index of its first turn.
    pub first_turn: u32,
    /// How it ended; `crash` until its end is recorded.
    pub ended_by: EndedBy,
    /// What was done in it.
    pub summary: Recorded<String>,
    /// What asked for the next stage; `None` if nothing did.
    pub request: Option<Request>,
}

impl Stage {
    /// The stage as it begins.
    pub fn new(i: u32, configuration: Configuration, first_turn: u32) -> Self {
        Self { i, configuration, first_turn, ended_by: EndedBy::Crash, summary: Recorded::default(), request: None }
    }
}

/// Sub-goal, strategy, toolbox, carried knowledge and context mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    /// Sub-goal.
    pub q: String,
    /// Strategy.
    pub sigma: String,
    /// Ids of the tools in the toolbox.
    pub tools: Vec<String>,
    /// What is carried over from earlier stages.
    pub knowledge: String,
    /// What happens to old turns.
    pub context_mode: ContextMode,
}

/// What happens to old turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ContextMode {
    /// They stay.
    Full,
    /// Old observations are cut.
    Truncate,
    /// They are summarized.
    Summary,
}

/// How a stage ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EndedBy {
    /// The model chose another configuration.
    Reconfigure,
    /// The task was answered.
    Answer,
    /// A budget was used up.
    Limit,
    /// The process ended.
    #[default]
    Crash,
}

/// What asked for another configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Why the old one did not fit.
    pub why: String,
    /// What the new one must offer.
    pub requirements: String,
}

/// The end of a stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageEnd {
    /// Which stage.
    pub i: u32,
    /// How it ended.
    pub ended_by: EndedBy,
    /// What was done in it.
    pub summary: Recorded<String>,
    /// What asked for the next one, if anything did.
    pub request: Option<Request>,
}

/// One turn: what was added to the context, by whom, and how it was decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    /// Its index.
    pub i: u32,
    /// Its stage.
    pub stage: u32,
    /// Who speaks.
    pub role: Role,
    /// The text.
    pub content: String,
    /// What the text is.
    pub kind: TurnKind,
    /// Parts of the text, as byte offsets.
    pub spans: Vec<Span>,
    /// Token ids put before this turn's own: those appended since the last turn, or since the mark it rewound to.
    pub prompt_delta_ids: Recorded<Vec<u32>>,
    /// Number of tokens kept when the context was rewound before this turn; `None` if it was not.
    pub mark: Option<u32>,
    /// The turn's own token ids.
    pub token_ids: Recorded<Vec<u32>>,
    /// Positions in `token_ids` that were appended without a choice; they carry no policy gradient.
    pub forced: Recorded<Vec<u32>>,
    /// Log-probability of each of `token_ids` as sampled, under the grammar mask.
    pub logprobs: Recorded<Vec<Finite>>,
    /// The same without the grammar mask.
    pub logprobs_free: Recorded<Vec<Finite>>,
    /// Digest of the grammar that masked it.
    pub grammar_sha256: Recorded<Sha256>,
    /// Whether it is trained on.
    #[serde(serialize_with = "zero_or_one")]
    pub loss: bool,
    /// The prompt as the model saw it.
    pub context: Recorded<Context>,
    /// The tool calls of its program, in order; empty in the record, filled by the records of the calls.
    pub calls: Vec<Call>,
    /// What the program used; absent in the record, filled by [`ProgramEnd`].
    pub vm: Recorded<VmUse>,
    /// Time to prefill.
    pub prefill_ms: Recorded<u64>,
    /// Time to decode.
    pub decode_ms: Recorded<u64>,
}

impl Turn {
    /// A turn of which only the text is known; all that a model would have measured is absent for `reason`.
    ///
    /// `vm` is absent by `crash` if the turn is a program, which is going to run, and otherwise by `none`.
    pub fn new(i: u32, stage: u32, role: Role, kind: TurnKind, content: impl Into<String>, reason: Reason) -> Self {
        Self {
            i,
            stage,
            role,
            content: content.into(),
            kind,
            spans: Vec::new(),
            prompt_delta_ids: Recorded::Absent(reason),
            mark: None,
            token_ids: Recorded::Absent(reason),
            forced: Recorded::Absent(reason),
            logprobs: Recorded::Absent(reason),
            logprobs_free: Recorded::Absent(reason),
            grammar_sha256: Recorded::Absent(reason),
            loss: false,
            context: Recorded::Absent(reason),
            calls: Vec::new(),
            vm: Recorded::Absent(if kind == TurnKind::Program { Reason::Crash } else { Reason::None }),
            prefill_ms: Recorded::Absent(reason),
            decode_ms: Recorded::Absent(reason),
        }
    }
}

fn zero_or_one<S: Serializer>(flag: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(u8::from(*flag))
}

/// Who speaks in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// The harness: rules, shortlist, configuration.
    System,
    /// Who asked.
    User,
    /// The model, or the script in its place.
    Assistant,
    /// Tools, through the program that called them.
    Tool,
}

/// What a turn's text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnKind {
    /// A program.
    Program,
    /// What a program printed and its errors.
    Observation,
    /// A configuration.
    Configuration,
    /// The answer.
    Answer,
    /// Reasoning outside a program.
    Thought,
}

/// A part of a turn's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// What the part does.
    pub kind: SpanKind,
    /// Byte offset of its start.
    pub start: u32,
    /// Byte offset after its end.
    pub end: u32,
}

/// What a part of a turn does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SpanKind {
    /// It reasons.
    Reason,
    /// It selects a tool.
    Select,
    /// It acts.
    Act,
}

/// The prompt as the model saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Context {
    /// Tokens in it.
    pub n_tokens: Recorded<u32>,
    /// Of these, tokens that were in the KV cache already.
    pub n_cached: Recorded<u32>,
    /// Digest of the prompt's text.
    pub prompt_sha256: Sha256,
    /// What it was assembled from, in order.
    pub fragments: Vec<Fragment>,
}

/// One fragment of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragment {
    /// What it holds.
    pub kind: String,
    /// Tokens in it.
    pub n_tokens: Recorded<u32>,
    /// Items left out to keep its cap.
    pub dropped: u32,
    /// Lines replaced by a count of them.
    pub elided: u32,
}

/// One tool call. The record of its intent is on disk before the call is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Its name within the trajectory.
    pub call_id: u32,
    /// The call that made it; `None` for a call of the program itself.
    pub parent: Option<u32>,
    /// The server.
    pub server: String,
    /// The tool's name in it.
    pub tool: String,
    /// The arguments, a JSON object.
    pub arguments: JsonText,
    /// Whether name and arguments fit the tool's schema.
    pub valid: bool,
    /// What went wrong; `None` if nothing did.
    pub error_class: Option<ErrorClass>,
    /// When it started.
    pub started_at: Timestamp,
    /// How long it took; absent in the intent.
    pub latency_ms: Recorded<u64>,
    /// What it gave; absent in the intent.
    pub result: Recorded<CallResult>,
    /// Whether the tool may change the world.
    pub mutating: bool,
    /// The call proof's digest.
    pub proof_sha256: Recorded<Sha256>,
}

/// The result of a call: [`Call`]'s fields that are known when it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEnd {
    /// The turn it belongs to.
    pub turn: u32,
    /// Which call.
    pub call_id: u32,
    /// What went wrong; `None` if nothing did.
    pub error_class: Option<ErrorClass>,
    /// How long it took.
    pub latency_ms: u64,
    /// What it gave.
    pub result: Recorded<CallResult>,
    /// The call proof's digest.
    pub proof_sha256: Recorded<Sha256>,
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResult {
    /// Whether the tool said that it succeeded.
    pub ok: bool,
    /// The size of the whole result.
    pub bytes: u64,
    /// Whether the program got less than the whole.
    pub truncated: bool,
    /// Digest of the whole result.
    pub sha256: Sha256,
    /// Its beginning.
    pub excerpt: String,
    /// Whether a stand-in answered in the tool's place.
    pub simulated: bool,
}

/// What went wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorClass {
    /// No such tool, or it is not loaded.
    UnknownTool,
    /// The arguments do not fit the schema.
    InvalidArguments,
    /// Policy refused it.
    Denied,
    /// The tool took too long.
    Timeout,
    /// The server died or could not start.
    Died,
    /// The server sent what is no answer.
    Protocol,
    /// A limit was reached.
    Limit,
    /// The tool said that it failed.
    Tool,
    /// A person stopped it.
    Cancelled,
}

/// The end of a turn's program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramEnd {
    /// The turn it belongs to.
    pub turn: u32,
    /// What it used.
    pub vm: VmUse,
}

/// What a program used of its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmUse {
    /// Fuel.
    pub fuel: u64,
    /// Bytes of its heap.
    pub bytes: u64,
    /// How often it stopped for a call.
    pub suspensions: u32,
}

/// A choice among tools, by the harness before a turn or by the model in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Selection {
    /// The turn that first sees what was chosen.
    pub turn: u32,
    /// What was looked for.
    pub query_text: String,
    /// Why, in the model's words; `None` where the harness chose.
    pub rationale: Option<String>,
    /// Ids of the tools or servers in question, best first.
    pub candidates: Vec<String>,
    /// A score for each candidate.
    pub scores: Vec<Finite>,
    /// Who chose.
    pub source: SelectionSource,
    /// Those that were chosen.
    pub chosen: Vec<String>,
    /// The right choice, where it is known.
    pub gold: Option<Vec<String>>,
    /// What the choice earned, where it was judged.
    pub reward: Option<Finite>,
}

/// Who chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SelectionSource {
    /// The harness, before the turn.
    Harness,
    /// The model, by `find`.
    Find,
    /// The model, by opening a server or a tool: `load` or `show`.
    Open,
}
