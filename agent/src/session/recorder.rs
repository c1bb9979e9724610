//! Writes every step of a session into the queue, in the form of docs/trajectory.md, before its effect is reported.
//!
//! What a step cannot know is recorded as absent with its reason. A session without a store records nothing and says
//! so where it was asked to.

use mote_script::Usage;
use mote_trajectory::{
    Call, CallEnd, CallResult, Configuration as RecordedConfiguration, Context, ContextMode, Device, EndedBy,
    ErrorClass, Finite, Fragment, Header, JsonText, LabelSource, Mode, Outcome, Policy, ProgramEnd, Reason, Record,
    Recorded, Recording, Request, Role, Sampling, Selection, SelectionSource, Sha256, Span, SpanKind, Stage, StageEnd,
    Task, TaskSource, Timestamp, Toolspace, TrajectoryId, Turn, TurnKind, VmUse, call_proof, first_proof,
};
use serde_json::{Map, Value};

use super::author::Written;
use super::budget::Spent;
use super::configuration::Configuration;
use super::run::failure_text;
use super::{Status, observation};
use crate::context::Prompt;
use crate::error::Result;
use crate::store::{Queue, Writer};
use crate::tools::{Candidate, Catalogue, ToolId, ToolOutcome};

/// Bytes of a tool result that a trajectory keeps; its digest is over the whole.
const MAX_EXCERPT_BYTES: usize = 2_000;
/// Candidates of a selection that a trajectory keeps.
const MAX_CANDIDATES: usize = 32;

/// Who decides, on what machine.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The machine.
    pub device: Device,
    /// The model; absent as `scripted` for a script.
    pub policy: Recorded<Policy>,
    /// How tokens are drawn.
    pub sampling: Recorded<Sampling>,
    /// How much is recorded of each token.
    pub recording: Recording,
    /// Who asked.
    pub source: TaskSource,
}

/// Records one session.
pub struct Recorder {
    identity: Identity,
    queue: Option<Queue>,
    writer: Option<Writer>,
    n_stages: u32,
    n_turns: u32,
    n_calls: u32,
    program_turn: u32,
    /// Calls that have begun and not ended.
    begun: Vec<Call>,
    proof: Sha256,
}

impl Recorder {
    /// A recorder; without a queue nothing is kept.
    pub fn new(identity: Identity, queue: Option<Queue>) -> Recorder {
        Recorder {
            identity,
            queue,
            writer: None,
            n_stages: 0,
            n_turns: 0,
            n_calls: 0,
            program_turn: 0,
            begun: Vec::new(),
            proof: Sha256([0; 32]),
        }
    }

    fn append(&mut self, record: &Record) -> Result<()> {
        match &mut self.writer {
            Some(writer) => writer.append(record),
            None => Ok(()),
        }
    }

    fn absent(&self) -> Reason {
        if self.identity.policy.value().is_some() { Reason::NotGenerated } else { Reason::Scripted }
    }

    pub(super) fn open(&mut self, task: &str, mode: Mode, catalogue: &Catalogue) -> Result<()> {
        let header = Header {
            traj_id: TrajectoryId::generate(),
            task_id: Sha256::of(task.as_bytes()).to_string()[..16].to_owned(),
            group_id: None,
            created_at: Timestamp::now(),
            clock_trusted: clock_is_plausible(),
            device: self.identity.device.clone(),
            policy: self.identity.policy.clone(),
            sampling: self.identity.sampling,
            recording: self.identity.recording,
            toolspace: Toolspace {
                catalogue_sha256: Recorded::or_absent(catalogue.sha256().parse().ok(), Reason::NotMeasured),
                n_servers: count(catalogue.servers().len()),
                n_tools: count(catalogue.n_tools()),
            },
            mode,
            task: Task { query: task.to_owned(), source: self.identity.source, reference: None, checker: None },
            consent: false,
        };
        self.proof = first_proof(header.traj_id);
        self.writer = self.queue.as_ref().map(|queue| queue.begin(header)).transpose()?;
        Ok(())
    }

    pub(super) fn selected(
        &mut self,
        source: SelectionSource,
        query: &str,
        candidates: &[Candidate],
        chosen: &[ToolId],
    ) -> Result<()> {
        let candidates = &candidates[..candidates.len().min(MAX_CANDIDATES)];
        let selection = Selection {
            turn: self.n_turns,
            query_text: query.to_owned(),
            rationale: (source == SelectionSource::Find).then(|| query.to_owned()),
            candidates: candidates.iter().map(|candidate| candidate.tool.to_string()).collect(),
            scores: candidates.iter().map(|candidate| Finite::new(candidate.score).unwrap_or_default()).collect(),
            source,
            chosen: chosen.iter().map(ToString::to_string).collect(),
            gold: None,
            reward: None,
        };
        self.append(&Record::Selection(selection))
    }

    /// Records a stage, and its fixed part of the prompt as a turn.
    pub(super) fn begin_stage(&mut self, configuration: &Configuration, prompt: &Prompt) -> Result<()> {
        let recorded = RecordedConfiguration {
            q: configuration.goal().to_owned(),
            sigma: configuration.strategy().to_owned(),
            tools: configuration.tools().iter().map(ToString::to_string).collect(),
            knowledge: configuration.knowledge().to_owned(),
            context_mode: ContextMode::Full,
        };
        let stage = Stage::new(self.n_stages, recorded, self.n_turns);
        self.n_stages += 1;
        self.append(&Record::Stage(stage))?;
        let turn = self.turn(Role::System, TurnKind::Configuration, &prompt.text());
        self.append(&Record::Turn(turn))
    }

    pub(super) fn end_stage(
        &mut self,
        ended_by: EndedBy,
        summary: Option<&str>,
        request: Option<Request>,
    ) -> Result<()> {
        self.append(&Record::StageEnd(StageEnd {
            i: self.n_stages.saturating_sub(1),
            ended_by,
            summary: Recorded::or_absent(summary.map(str::to_owned), Reason::None),
            request,
        }))
    }

    fn turn(&mut self, role: Role, kind: TurnKind, content: &str) -> Turn {
        let turn = Turn::new(self.n_turns, self.n_stages.saturating_sub(1), role, kind, content, self.absent());
        self.n_turns += 1;
        turn
    }

    /// Records a program with all that decoding left behind; gives the index of its turn.
    pub(super) fn program(&mut self, written: &Written, prompt: &Prompt, grammar: &str) -> Result<u32> {
        let mut turn = self.turn(Role::Assistant, TurnKind::Program, &written.program);
        turn.spans = spans(&written.program);
        turn.loss = written.decoded.is_some();
        let n_cached = written.decoded.as_ref().map(|decoded| count(decoded.n_cached));
        turn.context = Recorded::Value(Context {
            n_tokens: Recorded::or_absent(
                written.decoded.as_ref().map(|decoded| count(decoded.n_prompt)),
                Reason::Scripted,
            ),
            n_cached: Recorded::or_absent(n_cached, Reason::Scripted),
            prompt_sha256: Sha256(prompt.sha256()),
            fragments: prompt
                .fragments()
                .iter()
                .map(|fragment| Fragment {
                    kind: fragment.kind.name().to_owned(),
                    n_tokens: Recorded::or_absent(fragment.ids.as_ref().map(|ids| count(ids.len())), Reason::Scripted),
                    dropped: count(fragment.dropped),
                    elided: count(fragment.elided),
                })
                .collect(),
        });
        if let (Some(decoded), Some(ids)) = (&written.decoded, prompt.ids()) {
            turn.prompt_delta_ids = Recorded::Value(ids[decoded.n_cached.min(ids.len())..].to_vec());
            turn.mark = decoded.mark.map(count);
            turn.token_ids = Recorded::Value(decoded.ids.clone());
            let forced = decoded.forced.iter().enumerate().filter(|&(_, &forced)| forced).map(|(at, _)| count(at));
            turn.forced = Recorded::Value(forced.collect());
            turn.logprobs = Finite::all(&decoded.logprobs);
            turn.logprobs_free = match &decoded.logprobs_free {
                Some(logprobs) => Finite::all(logprobs),
                None => Recorded::Absent(Reason::Masked),
            };
            turn.grammar_sha256 = Recorded::Value(Sha256::of(grammar.as_bytes()));
            turn.prefill_ms = Recorded::Value(decoded.prefill_ms);
            turn.decode_ms = Recorded::Value(decoded.decode_ms);
        }
        self.program_turn = turn.i;
        let index = turn.i;
        self.append(&Record::Turn(turn))?;
        Ok(index)
    }

    pub(super) fn program_end(&mut self, usage: Usage) -> Result<()> {
        let vm = VmUse { fuel: usage.fuel, bytes: usage.bytes, suspensions: usage.suspensions };
        self.append(&Record::ProgramEnd(ProgramEnd { turn: self.program_turn, vm }))
    }

    pub(super) fn observation(&mut self, text: &str) -> Result<u32> {
        let turn = self.turn(Role::Tool, TurnKind::Observation, text);
        let index = turn.i;
        self.append(&Record::Turn(turn))?;
        Ok(index)
    }

    pub(super) fn answer(&mut self, text: &str) -> Result<()> {
        let turn = self.turn(Role::Assistant, TurnKind::Answer, text);
        self.append(&Record::Turn(turn))?;
        self.end_stage(EndedBy::Answer, None, None)
    }

    pub(super) fn call_intent(
        &mut self,
        call_id: u32,
        tool: &ToolId,
        arguments: &Map<String, Value>,
        mutating: bool,
    ) -> Result<()> {
        self.n_calls += 1;
        let call = Call {
            call_id,
            parent: None,
            server: tool.server.clone(),
            tool: tool.tool.clone(),
            arguments: JsonText::from(&Value::Object(arguments.clone())),
            valid: true,
            error_class: None,
            started_at: Timestamp::now(),
            latency_ms: Recorded::default(),
            result: Recorded::default(),
            mutating,
            proof_sha256: Recorded::default(),
        };
        self.begun.push(call.clone());
        self.append(&Record::CallIntent { turn: self.program_turn, call })
    }

    /// Ends the chain of proofs with this call.
    fn prove(&mut self, end: &CallEnd) -> Recorded<Sha256> {
        let Some(at) = self.begun.iter().position(|call| call.call_id == end.call_id) else {
            return Recorded::Absent(Reason::NotMeasured);
        };
        let mut call = self.begun.remove(at);
        call.error_class = end.error_class;
        call.latency_ms = Recorded::Value(end.latency_ms);
        call.result = end.result.clone();
        let proof = call_proof(self.proof, end.turn, &call).ok();
        self.proof = proof.unwrap_or(self.proof);
        Recorded::or_absent(proof, Reason::NotMeasured)
    }

    pub(super) fn call_result(&mut self, call_id: u32, outcome: &ToolOutcome) -> Result<()> {
        let (ok, whole) = match &outcome.result {
            Ok(value) => (true, value.to_string()),
            Err(failure) => (false, failure_text(failure)),
        };
        let error_class = outcome.result.as_ref().err().map(|failure| error_class(&failure.kind));
        let mut end = CallEnd {
            turn: self.program_turn,
            call_id,
            error_class,
            latency_ms: outcome.ms,
            result: Recorded::Value(CallResult {
                ok,
                bytes: u64::try_from(outcome.bytes).unwrap_or(u64::MAX),
                truncated: outcome.truncated,
                sha256: Sha256::of(whole.as_bytes()),
                excerpt: observation::bounded(&whole, MAX_EXCERPT_BYTES).0,
                simulated: false,
            }),
            proof_sha256: Recorded::default(),
        };
        end.proof_sha256 = self.prove(&end);
        self.append(&Record::CallResult(end))
    }

    /// Seals the trajectory; gives its id if it was recorded.
    pub(super) fn seal(&mut self, status: Status, answer: Option<&str>, spent: &Spent) -> Result<Option<String>> {
        let counted = |n: usize| match self.identity.policy.value() {
            Some(_) => Recorded::Value(u64::try_from(n).unwrap_or(u64::MAX)),
            None => Recorded::Absent(Reason::Scripted),
        };
        let outcome = Outcome {
            status: match status {
                Status::Complete => mote_trajectory::Status::Complete,
                Status::Partial => mote_trajectory::Status::Partial,
                Status::Incomplete | Status::Failed => mote_trajectory::Status::Incomplete,
            },
            success: Recorded::Absent(Reason::NotJudged),
            label_source: LabelSource::None,
            answer: Recorded::or_absent(answer.map(str::to_owned), Reason::None),
            n_calls: self.n_calls,
            n_prompt_tokens: counted(spent.prefilled_tokens),
            n_new_tokens: counted(spent.tokens),
            wall_ms: Recorded::Value(u64::try_from(spent.elapsed().as_millis()).unwrap_or(u64::MAX)),
            bytes_written: Recorded::Absent(Reason::NotMeasured),
        };
        match self.writer.take() {
            Some(mut writer) => {
                writer.seal(outcome)?;
                Ok(Some(writer.id().to_string()))
            }
            None => Ok(None),
        }
    }
}

/// The comment lines that open a program are its reason, the rest is its act.
fn spans(program: &str) -> Vec<Span> {
    let reason: usize = program.split_inclusive('\n').take_while(|line| line.starts_with('#')).map(str::len).sum();
    [(SpanKind::Reason, 0, reason), (SpanKind::Act, reason, program.len())]
        .into_iter()
        .filter(|(_, start, end)| start < end)
        .map(|(kind, start, end)| Span { kind, start: count(start), end: count(end) })
        .collect()
}

fn error_class(kind: &str) -> ErrorClass {
    match kind {
        "unknown_tool" => ErrorClass::UnknownTool,
        "invalid_arguments" => ErrorClass::InvalidArguments,
        "denied" => ErrorClass::Denied,
        "timeout" => ErrorClass::Timeout,
        "server" => ErrorClass::Died,
        "schema_changed" => ErrorClass::Protocol,
        "limit" => ErrorClass::Limit,
        "cancelled" => ErrorClass::Cancelled,
        _ => ErrorClass::Tool,
    }
}

/// Whether the clock shows a time after this program was made; a board without a battery starts in the past.
fn clock_is_plausible() -> bool {
    const START_OF_2026_MS: i64 = 1_767_225_600_000;
    Timestamp::now().unix_ms() >= START_OF_2026_MS
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
