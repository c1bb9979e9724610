//! `mote why`: which tools a task was shown, which were chosen, skipped and called, what each cost, and whether that is proven.

use std::fmt::Write;

use mote_trajectory::{ProofState, Trajectory, TurnKind};
use serde::Serialize;

use super::Globals;
use super::queue;
use crate::error::Result;

/// The kind of the fragment that shows tools.
const SHORTLIST: &str = "shortlist";

/// Characters of a task that are shown.
const TASK_CHARS: usize = 200;

/// One tool that was seen or called.
#[derive(Default, Serialize)]
struct Seen {
    tool: String,
    /// The best score that it was given.
    score: Option<f32>,
    /// The turn before which it was first in question.
    turn: Option<u32>,
    by: Option<String>,
    chosen: bool,
    calls: usize,
    failed: usize,
    ms: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Called {
    id: u32,
    turn: u32,
    tool: String,
    ok: Option<bool>,
    error: Option<String>,
    ms: Option<u64>,
    bytes: Option<u64>,
    writes: bool,
    proof: Option<String>,
    /// Whether the proof holds; null where there is none.
    proof_holds: Option<bool>,
}

#[derive(Serialize)]
struct Cost {
    turns: usize,
    calls: usize,
    call_ms: u64,
    /// Tokens that show tools, of the longest prompt's.
    tool_tokens: Option<u32>,
    prompt_tokens: Option<u32>,
    new_tokens: Option<u64>,
}

#[derive(Serialize)]
struct Why<'a> {
    trajectory: String,
    task: &'a str,
    n_servers: u32,
    n_tools: u32,
    tools: Vec<Seen>,
    calls: Vec<Called>,
    cost: Cost,
}

pub(super) fn run(id: &str, globals: &Globals) -> Result<u8> {
    let trajectory = queue::load(id, globals)?;
    let why = Why::of(&trajectory);
    if globals.out.json() {
        globals.out.object(&why)?;
    } else {
        globals.out.line(why.text().trim_end())?;
    }
    Ok(u8::from(why.calls.iter().any(|call| call.proof_holds == Some(false))))
}

impl Why<'_> {
    fn of(trajectory: &Trajectory) -> Why<'_> {
        let header = &trajectory.header;
        let calls = called(trajectory);
        let contexts = trajectory.turns.iter().filter_map(|turn| turn.context.value());
        let longest = contexts.max_by_key(|context| context.n_tokens.value());
        let tools = longest.into_iter().flat_map(|context| &context.fragments);
        let tools =
            tools.filter(|fragment| fragment.kind == SHORTLIST).filter_map(|fragment| fragment.n_tokens.value());
        Why {
            trajectory: header.traj_id.to_string(),
            task: &header.task.query,
            n_servers: header.toolspace.n_servers,
            n_tools: header.toolspace.n_tools,
            tools: seen(trajectory, &calls),
            cost: Cost {
                turns: trajectory.turns.iter().filter(|turn| turn.kind == TurnKind::Program).count(),
                calls: calls.len(),
                call_ms: calls.iter().filter_map(|call| call.ms).sum(),
                tool_tokens: tools.copied().reduce(|a, b| a + b),
                prompt_tokens: longest.and_then(|context| context.n_tokens.value().copied()),
                new_tokens: trajectory.outcome.n_new_tokens.value().copied(),
            },
            calls,
        }
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name:<12} {value}");
        };
        let task: String = self.task.chars().take(TASK_CHARS).collect();
        line("task", &task.replace('\n', " "));
        line("trajectory", &self.trajectory);
        let in_all = format!("{} of {} tools on {} servers", self.tools.len(), self.n_tools, self.n_servers);
        line("seen", &in_all);
        for seen in &self.tools {
            let score = seen.score.map_or("     -".to_owned(), |score| format!("{score:6.2}"));
            line("", &format!("{score}  {}: {}", seen.tool, seen.fate()));
        }
        for call in &self.calls {
            line(&format!("call {}", call.id), &call.text());
        }
        let cost = &self.cost;
        let mut words =
            vec![counted(cost.turns, "turn"), counted(cost.calls, "call"), format!("{} ms in tools", cost.call_ms)];
        if let (Some(tools), Some(prompt)) = (cost.tool_tokens, cost.prompt_tokens) {
            words.push(format!("{tools} of {prompt} prompt tokens show tools"));
        }
        words.extend(cost.new_tokens.map(|n| format!("{n} new tokens")));
        line("cost", &words.join(", "));
        text
    }
}

impl Seen {
    fn fate(&self) -> String {
        let by =
            self.by.as_ref().map(|by| format!(" by {by} before turn {}", self.turn.unwrap_or(0))).unwrap_or_default();
        let chosen = match (self.chosen, self.by.is_some()) {
            (true, _) => format!("chosen{by}"),
            (false, true) => format!("skipped{by}"),
            (false, false) => "named by the program itself".to_owned(),
        };
        if self.calls == 0 {
            return if self.chosen { format!("{chosen}, never called") } else { chosen };
        }
        let failed = if self.failed > 0 { format!(" ({} failed)", self.failed) } else { String::new() };
        format!("{chosen}, {}{failed}, {} ms, {} bytes", counted(self.calls, "call"), self.ms, self.bytes)
    }
}

impl Called {
    fn text(&self) -> String {
        let how = match (self.ok, &self.error) {
            (Some(true), _) => "ok".to_owned(),
            (Some(false), Some(error)) => format!("failed ({error})"),
            (Some(false), None) => "failed".to_owned(),
            (None, _) => "never ended".to_owned(),
        };
        let cost = self.ms.map_or(String::new(), |ms| format!(", {ms} ms, {} bytes", self.bytes.unwrap_or(0)));
        let writes = if self.writes { ", may write" } else { "" };
        let proof = match (self.proof_holds, &self.proof) {
            (Some(true), Some(proof)) => format!("proof {} holds", proof.get(..12).unwrap_or(proof)),
            (Some(_), _) => "PROOF BROKEN: this is not what was recorded".to_owned(),
            (None, _) => "no proof".to_owned(),
        };
        format!("{} in turn {}: {how}{cost}{writes}; {proof}", self.tool, self.turn)
    }
}

fn called(trajectory: &Trajectory) -> Vec<Called> {
    let proofs = trajectory.proofs();
    let state = |id: u32| proofs.iter().find(|(call, _)| *call == id).map(|(_, state)| *state);
    let calls = trajectory.turns.iter().flat_map(|turn| turn.calls.iter().map(move |call| (turn.i, call)));
    let calls = calls.map(|(turn, call)| Called {
        id: call.call_id,
        turn,
        tool: format!("{}.{}", call.server, call.tool),
        ok: call.result.value().map(|result| result.ok),
        error: call.error_class.and_then(word),
        ms: call.latency_ms.value().copied(),
        bytes: call.result.value().map(|result| result.bytes),
        writes: call.mutating,
        proof: call.proof_sha256.value().map(ToString::to_string),
        proof_holds: state(call.call_id)
            .filter(|state| *state != ProofState::Absent)
            .map(|state| state == ProofState::Holds),
    });
    calls.collect()
}

/// Every tool that was in question, in the order in which it first was, and then those that were only called.
fn seen(trajectory: &Trajectory, calls: &[Called]) -> Vec<Seen> {
    let mut all: Vec<Seen> = Vec::new();
    for selection in &trajectory.selections {
        let scores = selection.candidates.iter().zip(&selection.scores).map(|(tool, score)| (tool, Some(score.get())));
        let opened =
            selection.chosen.iter().filter(|tool| !selection.candidates.contains(tool)).map(|tool| (tool, None));
        for (tool, score) in scores.chain(opened) {
            let at = all.iter().position(|seen| seen.tool == *tool).unwrap_or_else(|| {
                all.push(Seen {
                    tool: tool.clone(),
                    turn: Some(selection.turn),
                    by: word(selection.source),
                    ..Seen::default()
                });
                all.len() - 1
            });
            let Some(seen) = all.get_mut(at) else { continue };
            seen.score = score.into_iter().chain(seen.score).reduce(f32::max);
            seen.chosen |= selection.chosen.contains(tool);
        }
    }
    for call in calls {
        let at = all.iter().position(|seen| seen.tool == call.tool).unwrap_or_else(|| {
            all.push(Seen { tool: call.tool.clone(), ..Seen::default() });
            all.len() - 1
        });
        let Some(seen) = all.get_mut(at) else { continue };
        seen.calls += 1;
        seen.failed += usize::from(call.ok == Some(false));
        seen.ms += call.ms.unwrap_or(0);
        seen.bytes += call.bytes.unwrap_or(0);
    }
    all
}

/// The word that the JSON form has for a value.
fn word(value: impl Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(|word| word.replace('_', " "))
}

fn counted(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}
