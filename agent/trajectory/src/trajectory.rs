//! A whole trajectory, put together from its records, and its JSON form.
//!
//! Putting together is tolerant: a task that a crash cut short is incomplete by `crash`, a record whose bytes were
//! damaged or whose turn is missing leaves a [`Gap`], and a record with an index seen before replaces the older one,
//! because a resumed task writes its last step again.

use serde::ser::Error as _;
use serde::{Serialize, Serializer};

use crate::json::lift;
use crate::{
    CallEnd, Chain, Device, Error, Feedback, Header, Judge, Judgement, Mode, Outcome, Policy, Privacy, Reason, Record,
    Recorded, Recording, Reward, Rubric, Sampling, Selection, Stage, StageEnd, Task, Timestamp, Toolspace,
    TrajectoryId, Turn,
};

/// The version of the JSON form.
pub const SCHEMA: u32 = 1;

/// One task, whole. Serialize it to get its JSON form, one object; `docs/trajectory.md` describes the fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Trajectory {
    /// What was known when it was opened.
    pub header: Header,
    /// Its stages, by index.
    pub stages: Vec<Stage>,
    /// Its turns, by index, with their calls.
    pub turns: Vec<Turn>,
    /// The choices among tools, in order.
    pub selections: Vec<Selection>,
    /// The criteria it was judged by; empty until it is.
    pub rubric: Vec<Rubric>,
    /// Who judged it.
    pub judge: Recorded<Judge>,
    /// What it earned.
    pub reward: Recorded<Reward>,
    /// How it ended.
    pub outcome: Outcome,
    /// What people said of it.
    pub feedback: Vec<Feedback>,
    /// What may leave, and what was taken out.
    pub privacy: Privacy,
    /// Its link to the one before; absent as `crash` until sealed.
    pub chain: Recorded<Chain>,
    /// Records that are missing from the above.
    pub gaps: Vec<Gap>,
}

/// A record that could not be put in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// Its position in the sequence.
    pub record: u64,
    /// Why it could not.
    pub reason: GapReason,
}

/// Why a record could not be put in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GapReason {
    /// Its bytes were damaged.
    Corrupt,
    /// The record that it belongs to is missing.
    Orphan,
}

impl Trajectory {
    /// Puts `records` together, in the order in which they were appended.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NoHeader`] if none of them is a header.
    pub fn assemble(records: impl IntoIterator<Item = Record>) -> Result<Self, Error> {
        let mut assembler = Assembler::default();
        for record in records {
            assembler.push(record);
        }
        assembler.finish()
    }

    /// Whether its outcome was recorded; if not it is still running, or a crash ended it.
    pub fn is_sealed(&self) -> bool {
        self.chain.value().is_some()
    }
}

/// Puts records together one by one, for a reader that may find damaged ones between them.
#[derive(Debug, Default)]
pub struct Assembler {
    n_records: u64,
    header: Option<Header>,
    stages: Vec<Stage>,
    turns: Vec<Turn>,
    selections: Vec<Selection>,
    judgement: Option<Judgement>,
    sealed: Option<(Outcome, Chain)>,
    feedback: Vec<Feedback>,
    privacy: Privacy,
    gaps: Vec<Gap>,
}

impl Assembler {
    /// Takes in the next record.
    pub fn push(&mut self, record: Record) {
        let placed = self.place(record);
        if placed.is_none() {
            self.gap(GapReason::Orphan);
        } else {
            self.n_records += 1;
        }
    }

    /// Notes that the next record cannot be read.
    pub fn push_corrupt(&mut self) {
        self.gap(GapReason::Corrupt);
    }

    /// The trajectory, as far as its records go.
    ///
    /// # Errors
    /// [`crate::ErrorKind::NoHeader`] if no header was among them.
    pub fn finish(self) -> Result<Trajectory, Error> {
        let header = self.header.ok_or(Error::NoHeader)?;
        let n_calls = self.turns.iter().map(|turn| turn.calls.len()).sum::<usize>();
        let (outcome, chain) = match self.sealed {
            Some((outcome, chain)) => (outcome, Recorded::Value(chain)),
            None => (Outcome::crashed(u32::try_from(n_calls).unwrap_or(u32::MAX)), Recorded::Absent(Reason::Crash)),
        };
        let (rubric, judge, reward) = match self.judgement {
            Some(Judgement { rubric, judge, reward }) => (rubric, Recorded::Value(judge), Recorded::Value(reward)),
            None => (Vec::new(), Recorded::Absent(Reason::NotJudged), Recorded::Absent(Reason::NotJudged)),
        };
        Ok(Trajectory {
            privacy: Privacy { consent: header.consent, ..self.privacy },
            header,
            stages: self.stages,
            turns: self.turns,
            selections: self.selections,
            rubric,
            judge,
            reward,
            outcome,
            feedback: self.feedback,
            chain,
            gaps: self.gaps,
        })
    }

    fn gap(&mut self, reason: GapReason) {
        self.gaps.push(Gap { record: self.n_records, reason });
        self.n_records += 1;
    }

    fn place(&mut self, record: Record) -> Option<()> {
        match record {
            Record::Opened(header) => self.header = Some(header),
            Record::Stage(stage) => put(&mut self.stages, stage, |stage| stage.i),
            Record::Turn(turn) => put(&mut self.turns, turn, |turn| turn.i),
            Record::CallIntent { turn, call } => put(&mut self.turn(turn)?.calls, call, |call| call.call_id),
            Record::CallResult(CallEnd { turn, call_id, error_class, latency_ms, result, proof_sha256 }) => {
                let calls = &mut self.turn(turn)?.calls;
                let at = calls.binary_search_by_key(&call_id, |call| call.call_id).ok()?;
                let call = &mut calls[at];
                call.error_class = error_class;
                call.latency_ms = Recorded::Value(latency_ms);
                call.result = result;
                call.proof_sha256 = proof_sha256;
            }
            Record::ProgramEnd(end) => self.turn(end.turn)?.vm = Recorded::Value(end.vm),
            Record::Selection(selection) => self.selections.push(selection),
            Record::StageEnd(StageEnd { i, ended_by, summary, request }) => {
                let at = self.stages.binary_search_by_key(&i, |stage| stage.i).ok()?;
                let stage = &mut self.stages[at];
                stage.ended_by = ended_by;
                stage.summary = summary;
                stage.request = request;
            }
            Record::Sealed { outcome, chain } => self.sealed = Some((outcome, chain)),
            Record::Feedback(feedback) => self.feedback.push(feedback),
            Record::Judged(judgement) => self.judgement = Some(judgement),
            Record::Redacted(redaction) => self.privacy.redactions.push(redaction),
        }
        Some(())
    }

    fn turn(&mut self, i: u32) -> Option<&mut Turn> {
        let at = self.turns.binary_search_by_key(&i, |turn| turn.i).ok()?;
        self.turns.get_mut(at)
    }
}

/// Puts `item` in its order, in the place of one with the same index.
fn put<T>(items: &mut Vec<T>, item: T, index: impl Fn(&T) -> u32) {
    match items.binary_search_by_key(&index(&item), &index) {
        Ok(at) => items[at] = item,
        Err(at) => items.insert(at, item),
    }
}

impl Serialize for Trajectory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let header = &self.header;
        let form = Form {
            schema: SCHEMA,
            traj_id: header.traj_id,
            task_id: &header.task_id,
            group_id: header.group_id.as_deref(),
            created_at: header.created_at,
            clock_trusted: header.clock_trusted,
            device: &header.device,
            policy: &header.policy,
            sampling: &header.sampling,
            recording: header.recording,
            toolspace: &header.toolspace,
            mode: header.mode,
            task: &header.task,
            stages: &self.stages,
            turns: &self.turns,
            selections: &self.selections,
            rubric: &self.rubric,
            judge: &self.judge,
            reward: &self.reward,
            outcome: &self.outcome,
            feedback: &self.feedback,
            privacy: &self.privacy,
            chain: &self.chain,
            gaps: &self.gaps,
        };
        serde_json::to_value(form).and_then(lift).map_err(S::Error::custom)?.serialize(serializer)
    }
}

/// The JSON form, field by field in the order of `docs/trajectory.md`.
#[derive(Serialize)]
struct Form<'a> {
    schema: u32,
    traj_id: TrajectoryId,
    task_id: &'a str,
    group_id: Option<&'a str>,
    created_at: Timestamp,
    clock_trusted: bool,
    device: &'a Device,
    policy: &'a Recorded<Policy>,
    sampling: &'a Recorded<Sampling>,
    recording: Recording,
    toolspace: &'a Toolspace,
    mode: Mode,
    task: &'a Task,
    stages: &'a [Stage],
    turns: &'a [Turn],
    selections: &'a [Selection],
    rubric: &'a [Rubric],
    judge: &'a Recorded<Judge>,
    reward: &'a Recorded<Reward>,
    outcome: &'a Outcome,
    feedback: &'a [Feedback],
    privacy: &'a Privacy,
    chain: &'a Recorded<Chain>,
    gaps: &'a [Gap],
}
