//! What holds for the whole trajectory and is known when it is opened.

use serde::{Deserialize, Serialize};

use crate::{Finite, Recorded, Sha256, Timestamp, TrajectoryId};

/// The first record: which task, by which device, policy and tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The trajectory's name.
    pub traj_id: TrajectoryId,
    /// The task's name, the same for every attempt at it.
    pub task_id: String,
    /// The group of attempts that are ranked against each other; `None` outside a rollout.
    pub group_id: Option<String>,
    /// When it was opened.
    pub created_at: Timestamp,
    /// Whether the clock was known to be right then.
    pub clock_trusted: bool,
    /// The machine.
    pub device: Device,
    /// The model that decides; absent as `scripted` where a script stands in for it.
    pub policy: Recorded<Policy>,
    /// How tokens are drawn; absent with the policy.
    pub sampling: Recorded<Sampling>,
    /// How much is recorded of each token.
    pub recording: Recording,
    /// The tools that could be found.
    pub toolspace: Toolspace,
    /// How tools are discovered and called.
    pub mode: Mode,
    /// What was asked.
    pub task: Task,
    /// Whether this trajectory may leave the device.
    pub consent: bool,
}

/// The machine a task ran on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Digest of the machine's id; the id itself never leaves it.
    pub id_hash: Sha256,
    /// The target manifest's name.
    pub target: String,
    /// The processor architecture.
    pub arch: String,
    /// The operating system.
    pub os: String,
    /// The version of the binary.
    pub binary_version: String,
}

/// The exact model that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Digest of the bundle.
    pub bundle_sha256: Sha256,
    /// Digest of the adapter; `None` without one.
    pub adapter_sha256: Option<Sha256>,
    /// The quantization of the weights, as the bundle's manifest names it.
    pub quantization: String,
    /// Digest of `tokenizer.json`.
    pub tokenizer_sha256: Sha256,
    /// Digest of the prompt's template.
    pub template_sha256: Recorded<Sha256>,
    /// The signed policy's version counter; 0 for a bundle that was imported by hand.
    pub policy_version: u64,
    /// How often this device has changed its policy: tells two uses of one version on either side of a roll back apart.
    pub generation: u64,
}

/// How tokens are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// Temperature; 0 is greedy.
    pub temperature: Finite,
    /// Nucleus; 1 is off.
    pub top_p: Finite,
    /// Least probability relative to the best token's; 0 is off.
    pub min_p: Finite,
    /// The seed of the draw.
    pub seed: u64,
}

/// How much is recorded of each token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recording {
    /// Every output row is computed, so that log-probabilities without the grammar mask are there.
    Full,
    /// Only what decoding computes anyway.
    Light,
}

/// The tools that could be found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Toolspace {
    /// Digest of the catalogue.
    pub catalogue_sha256: Recorded<Sha256>,
    /// Servers in it.
    pub n_servers: u32,
    /// Tools in it.
    pub n_tools: u32,
}

/// How tools are discovered and called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// Servers on demand.
    Isl,
    /// Names, then schemas on demand.
    Itl,
    /// Programs that call tools.
    Ptc,
    /// Every schema in the prompt.
    Static,
}

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The words.
    pub query: String,
    /// Who asked.
    pub source: TaskSource,
    /// The right answer, where one is known.
    pub reference: Option<String>,
    /// The check of an answer, where there is one.
    pub checker: Option<String>,
}

/// Who asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskSource {
    /// A person.
    Person,
    /// A schedule or a trigger.
    Job,
    /// An evaluation.
    Eval,
}
