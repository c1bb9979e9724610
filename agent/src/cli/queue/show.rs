//! One trajectory as text, step by step.

use std::fmt::Write;

use mote_trajectory::{
    Call, ErrorClass, LabelSource, Outcome, Reason, Recorded, Selection, Status, Trajectory, Turn, TurnKind, Verdict,
};
use serde::Serialize;

use crate::cli::out::plain;

/// Characters of arguments and results shown of one call; `--json` has the whole.
const CALL_CHARS: usize = 400;

/// The word for how a task ended, the same that `mote run` has: one that was not answered has failed.
pub(super) fn status(outcome: &Outcome) -> &'static str {
    match outcome.status {
        Status::Complete => "complete",
        Status::Partial => "partial",
        Status::Incomplete if outcome.answer == Recorded::Absent(Reason::None) => "failed",
        Status::Incomplete => "incomplete",
    }
}

/// The whole trajectory.
pub(super) fn text(trajectory: &Trajectory) -> String {
    let mut text = String::new();
    let header = &trajectory.header;
    let mut head = |name: &str, value: &str| line(&mut text, name, value);
    head("trajectory", &header.traj_id.to_string());
    head("task", &header.task.query);
    let trusted = if header.clock_trusted { "" } else { " (clock not trusted)" };
    head("when", &format!("{}{trusted}", header.created_at));
    match &header.policy {
        Recorded::Value(policy) => {
            let bundle: String = policy.bundle_sha256.to_string().chars().take(12).collect();
            head("policy", &format!("bundle {bundle}, {}, version {}", policy.quantization, policy.policy_version));
        }
        Recorded::Absent(reason) => head("policy", &format!("none: {}", word(reason))),
    }
    let space = &header.toolspace;
    head("tools", &format!("{} servers, {} tools, mode {}", space.n_servers, space.n_tools, word(&header.mode)));

    let mut stages = trajectory.stages.iter().peekable();
    for turn in &trajectory.turns {
        while let Some(stage) = stages.next_if(|stage| stage.i <= turn.stage) {
            text.push('\n');
            line(&mut text, &format!("stage {}", stage.i), &stage.configuration.q);
        }
        for selection in trajectory.selections.iter().filter(|selection| selection.turn == turn.i) {
            line(&mut text, "  selected", &selected(selection));
        }
        turn_text(&mut text, turn);
    }
    text.push('\n');
    outcome_text(&mut text, trajectory);
    for feedback in &trajectory.feedback {
        let verdict = match feedback.verdict {
            Verdict::Good => "good",
            Verdict::Bad => "bad",
            Verdict::Note => "note",
        };
        line(&mut text, "feedback", &format!("{verdict}: {}", feedback.text.as_deref().unwrap_or("-")));
    }
    for gap in &trajectory.gaps {
        line(&mut text, "missing", &format!("record {}: {}", gap.record, word(&gap.reason)));
    }
    text
}

fn turn_text(text: &mut String, turn: &Turn) {
    text.push('\n');
    line(text, &format!("turn {}", turn.i), &format!("{}{}", word(&turn.kind), cost(turn)));
    for content in plain(&turn.content).lines() {
        let _ = writeln!(text, "    | {content}");
    }
    turn.calls.iter().for_each(|call| call_text(text, call));
    if let Recorded::Value(vm) = &turn.vm {
        let suspensions = counted(vm.suspensions.into(), "suspension");
        line(text, "  used", &format!("{} fuel, {}, {suspensions}", vm.fuel, counted(vm.bytes, "byte")));
    } else if turn.kind == TurnKind::Program {
        line(text, "  used", "unknown: the program did not end");
    }
}

fn cost(turn: &Turn) -> String {
    let mut parts = Vec::new();
    if let Some(context) = turn.context.value()
        && let (Some(n_tokens), Some(n_cached)) = (context.n_tokens.value(), context.n_cached.value())
    {
        parts.push(format!("{}, {n_cached} cached", counted((*n_tokens).into(), "prompt token")));
    }
    if let Some(ids) = turn.token_ids.value() {
        parts.push(format!("{} new", ids.len()));
    }
    if let (Some(prefill), Some(decode)) = (turn.prefill_ms.value(), turn.decode_ms.value()) {
        parts.push(format!("prefill {prefill} ms, decode {decode} ms"));
    }
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join("; ")) }
}

fn call_text(text: &mut String, call: &Call) {
    let name = format!("  call {}", call.call_id);
    line(text, &name, &format!("{}.{} {}", call.server, call.tool, short(call.arguments.as_str())));
    let error = call.error_class.map_or(String::new(), |class: ErrorClass| format!(" ({})", word(&class)));
    let after = call.latency_ms.value().map_or(String::new(), |ms| format!(" after {ms} ms"));
    let said = match &call.result {
        Recorded::Value(result) => {
            let ok = if result.ok { "ok" } else { "failed" };
            let cut = if result.truncated { ", truncated" } else { "" };
            format!("{ok}{error}{after}, {}{cut}: {}", counted(result.bytes, "byte"), short(&result.excerpt))
        }
        Recorded::Absent(reason) => format!("no result: {}{error}{after}", word(reason)),
    };
    line(text, "    ->", &said);
}

fn selected(selection: &Selection) -> String {
    let scores = selection.candidates.iter().zip(&selection.scores);
    let candidates: Vec<String> = scores.map(|(name, score)| format!("{name} {:.2}", score.get())).collect();
    format!("{} (by {}, of {})", selection.chosen.join(", "), word(&selection.source), candidates.join(", "))
}

fn outcome_text(text: &mut String, trajectory: &Trajectory) {
    let outcome = &trajectory.outcome;
    let label = match (outcome.success.value(), outcome.label_source) {
        (Some(true), source @ (LabelSource::Checker | LabelSource::Judge | LabelSource::Person)) => {
            format!(", right says the {}", word(&source))
        }
        (Some(false), source @ (LabelSource::Checker | LabelSource::Judge | LabelSource::Person)) => {
            format!(", wrong says the {}", word(&source))
        }
        (Some(true), LabelSource::None) => ", right".to_owned(),
        (Some(false), LabelSource::None) => ", wrong".to_owned(),
        (None, _) => String::new(),
    };
    let answer = match &outcome.answer {
        Recorded::Value(answer) => answer.clone(),
        Recorded::Absent(_) if !trajectory.is_sealed() => "not sealed, it is running or has crashed".to_owned(),
        Recorded::Absent(Reason::None) => {
            let why = trajectory.stages.last().and_then(|stage| stage.summary.value());
            format!("no answer: {}", why.map_or("the reason was not recorded", String::as_str))
        }
        Recorded::Absent(reason) => format!("no answer: {}", word(reason)),
    };
    line(text, "outcome", &format!("{}{label}: {answer}", status(outcome)));
    let mut cost = vec![counted(outcome.n_calls.into(), "call")];
    for (n, what) in [
        (&outcome.n_prompt_tokens, "prompt token"),
        (&outcome.n_new_tokens, "new token"),
        (&outcome.wall_ms, "millisecond"),
        (&outcome.bytes_written, "byte"),
    ] {
        cost.extend(n.value().map(|&n| counted(n, what)));
    }
    line(text, "cost", &cost.join(", "));
}

fn counted(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn line(text: &mut String, name: &str, value: &str) {
    let value = plain(value).replace('\n', "\n             ");
    let _ = writeln!(text, "{name:<12} {value}");
}

fn short(text: &str) -> String {
    let text = plain(text);
    match text.char_indices().nth(CALL_CHARS) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text,
    }
}

/// The word that the JSON form has for a value.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word.replace('_', " "),
        _ => "unknown".to_owned(),
    }
}
