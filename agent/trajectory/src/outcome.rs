//! How a task ended, and what others said of it.

use serde::{Deserialize, Serialize};

use crate::{Finite, Reason, Recorded, Sha256, Timestamp};

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// How complete the answer claims to be.
    pub status: Status,
    /// Whether it was right, as `label_source` says.
    pub success: Recorded<bool>,
    /// Who labelled it.
    pub label_source: LabelSource,
    /// The answer.
    pub answer: Recorded<String>,
    /// Tool calls made.
    pub n_calls: u32,
    /// Prompt tokens prefilled.
    pub n_prompt_tokens: Recorded<u64>,
    /// Tokens generated.
    pub n_new_tokens: Recorded<u64>,
    /// Time from opening to sealing.
    pub wall_ms: Recorded<u64>,
    /// Bytes of records written for it; the queue fills it in.
    pub bytes_written: Recorded<u64>,
}

impl Outcome {
    /// The outcome of a task that nobody ended: what is not known says `crash`.
    pub fn crashed(n_calls: u32) -> Self {
        let crash = Reason::Crash;
        Self {
            status: Status::Incomplete,
            success: Recorded::Absent(crash),
            label_source: LabelSource::None,
            answer: Recorded::Absent(crash),
            n_calls,
            n_prompt_tokens: Recorded::Absent(crash),
            n_new_tokens: Recorded::Absent(crash),
            wall_ms: Recorded::Absent(crash),
            bytes_written: Recorded::Absent(crash),
        }
    }
}

/// How complete an answer claims to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// All of the task.
    Complete,
    /// A part of it.
    Partial,
    /// None of it, or nobody knows.
    Incomplete,
}

/// Who said whether a task succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabelSource {
    /// The task's own check.
    Checker,
    /// A judging model.
    Judge,
    /// A person.
    Person,
    /// Nobody.
    None,
}

/// Links a trajectory to the one sealed before it on the same device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// `self_digest` of the one before; all zero for the first.
    pub prev_digest: Sha256,
    /// The digest over `prev_digest`, the digests of the records and that of the outcome.
    pub self_digest: Sha256,
}

/// What a person said of the answer, at any time after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feedback {
    /// When.
    pub at: Timestamp,
    /// What they think.
    pub verdict: Verdict,
    /// In their words.
    pub text: Option<String>,
}

/// What a person thinks of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was good.
    Good,
    /// It was bad.
    Bad,
    /// Neither; see the text.
    Note,
}

/// A rubric, its judge's scores and the reward made of them: the trainer's, appended when it has judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The criteria.
    pub rubric: Vec<Rubric>,
    /// Who judged by them.
    pub judge: Judge,
    /// What that makes.
    pub reward: Reward,
}

/// One criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rubric {
    /// Its name.
    pub criteria_name: String,
    /// What is asked.
    pub criteria_description: String,
    /// Its weight, 1 to 10.
    pub weight: u8,
}

/// Who judged, and the scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Judge {
    /// The judging model.
    pub model: String,
    /// Digest of its prompt.
    pub prompt_sha256: Sha256,
    /// One score in 0..1 a criterion.
    pub scores: Vec<Finite>,
}

/// The reward by category, and in all.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Reward {
    /// Task fulfilment.
    pub fulfillment: Finite,
    /// Tool appropriateness.
    pub appropriateness: Finite,
    /// Tool grounding.
    pub grounding: Finite,
    /// Parameter accuracy.
    pub parameters: Finite,
    /// The weight of each category, in the order above.
    pub alpha: [Finite; 4],
    /// The weighted sum.
    pub total: Finite,
}

/// What may leave the device, and what was taken out before it did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Privacy {
    /// Whether the trajectory may leave.
    pub consent: bool,
    /// What was taken out.
    pub redactions: Vec<Redaction>,
}

/// One kind of thing taken out of one field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redaction {
    /// The field, as a JSON pointer.
    #[serde(rename = "where")]
    pub place: String,
    /// What kind of thing.
    pub kind: String,
    /// How many.
    pub n: u32,
}
