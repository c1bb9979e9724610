//! Every text of a record that a person, a model or a tool wrote, with its place: what a redaction has to look at.
//!
//! The structures are taken apart without `..`, so that a field added later does not compile until somebody has decided
//! whether it can hold such text. Names of tools, kinds and digests hold none.

use crate::{
    Call, CallEnd, CallResult, Configuration, Feedback, Header, JsonText, Judge, Judgement, Outcome, Record, Recorded,
    Redaction, Request, Rubric, Selection, Stage, StageEnd, Task, Turn,
};

/// A text that may be replaced.
#[derive(Debug)]
pub enum Text<'a> {
    /// Words.
    Plain(&'a mut String),
    /// A JSON value kept as text.
    Json(&'a mut JsonText),
}

impl Record {
    /// Hands every text of the record to `visit`, with its place as a JSON pointer into the trajectory.
    pub fn texts(&mut self, visit: &mut dyn FnMut(&str, Text<'_>)) {
        match self {
            Record::Opened(header) => of_header(header, visit),
            Record::Stage(stage) => of_stage(stage, visit),
            Record::Turn(turn) => of_turn(turn, visit),
            Record::CallIntent { turn, call } => of_call(&format!("/turns/{turn}"), call, visit),
            Record::CallResult(CallEnd { turn, call_id, error_class: _, latency_ms: _, result, proof_sha256: _ }) => {
                of_result(&format!("/turns/{turn}/calls/{call_id}"), result, visit)
            }
            Record::ProgramEnd(_) => {}
            Record::Selection(Selection {
                turn,
                query_text,
                rationale,
                candidates: _,
                scores: _,
                source: _,
                chosen: _,
                gold: _,
                reward: _,
            }) => {
                visit(&format!("/selections/{turn}/query_text"), Text::Plain(query_text));
                optional(&format!("/selections/{turn}/rationale"), rationale, visit);
            }
            Record::StageEnd(StageEnd { i, ended_by: _, summary, request }) => {
                recorded(&format!("/stages/{i}/summary"), summary, visit);
                of_request(*i, request, visit);
            }
            Record::Sealed { outcome, chain: _ } => of_outcome(outcome, visit),
            Record::Feedback(Feedback { at: _, verdict: _, text }) => optional("/feedback/text", text, visit),
            Record::Judged(judgement) => of_judgement(judgement, visit),
            Record::Redacted(Redaction { place: _, kind: _, n: _ }) => {}
        }
    }
}

fn of_header(header: &mut Header, visit: &mut dyn FnMut(&str, Text<'_>)) {
    let Header {
        traj_id: _,
        task_id,
        group_id,
        created_at: _,
        clock_trusted: _,
        device: _,
        policy: _,
        sampling: _,
        recording: _,
        toolspace: _,
        mode: _,
        task,
        consent: _,
    } = header;
    let Task { query, source: _, reference, checker } = task;
    visit("/task_id", Text::Plain(task_id));
    optional("/group_id", group_id, visit);
    visit("/task/query", Text::Plain(query));
    optional("/task/reference", reference, visit);
    optional("/task/checker", checker, visit);
}

fn of_stage(stage: &mut Stage, visit: &mut dyn FnMut(&str, Text<'_>)) {
    let Stage { i, configuration, first_turn: _, ended_by: _, summary, request } = stage;
    let Configuration { q, sigma, tools: _, knowledge, context_mode: _ } = configuration;
    for (name, text) in [("q", q), ("sigma", sigma), ("knowledge", knowledge)] {
        visit(&format!("/stages/{i}/configuration/{name}"), Text::Plain(text));
    }
    recorded(&format!("/stages/{i}/summary"), summary, visit);
    of_request(*i, request, visit);
}

fn of_request(i: u32, request: &mut Option<Request>, visit: &mut dyn FnMut(&str, Text<'_>)) {
    if let Some(Request { why, requirements }) = request {
        visit(&format!("/stages/{i}/request/why"), Text::Plain(why));
        visit(&format!("/stages/{i}/request/requirements"), Text::Plain(requirements));
    }
}

fn of_turn(turn: &mut Turn, visit: &mut dyn FnMut(&str, Text<'_>)) {
    let Turn {
        i,
        stage: _,
        role: _,
        content,
        kind: _,
        spans: _,
        prompt_delta_ids: _,
        mark: _,
        token_ids: _,
        forced: _,
        logprobs: _,
        logprobs_free: _,
        grammar_sha256: _,
        loss: _,
        context: _,
        calls,
        vm: _,
        prefill_ms: _,
        decode_ms: _,
    } = turn;
    let place = format!("/turns/{i}");
    visit(&format!("{place}/content"), Text::Plain(content));
    calls.iter_mut().for_each(|call| of_call(&place, call, visit));
}

fn of_call(turn: &str, call: &mut Call, visit: &mut dyn FnMut(&str, Text<'_>)) {
    let Call {
        call_id,
        parent: _,
        server: _,
        tool: _,
        arguments,
        valid: _,
        error_class: _,
        started_at: _,
        latency_ms: _,
        result,
        mutating: _,
        proof_sha256: _,
    } = call;
    let place = format!("{turn}/calls/{call_id}");
    visit(&format!("{place}/arguments"), Text::Json(arguments));
    of_result(&place, result, visit);
}

fn of_result(place: &str, result: &mut Recorded<CallResult>, visit: &mut dyn FnMut(&str, Text<'_>)) {
    if let Recorded::Value(CallResult { ok: _, bytes: _, truncated: _, sha256: _, excerpt, simulated: _ }) = result {
        visit(&format!("{place}/result/excerpt"), Text::Plain(excerpt));
    }
}

fn of_outcome(outcome: &mut Outcome, visit: &mut dyn FnMut(&str, Text<'_>)) {
    let Outcome {
        status: _,
        success: _,
        label_source: _,
        answer,
        n_calls: _,
        n_prompt_tokens: _,
        n_new_tokens: _,
        wall_ms: _,
        bytes_written: _,
    } = outcome;
    recorded("/outcome/answer", answer, visit);
}

fn of_judgement(judgement: &mut Judgement, visit: &mut dyn FnMut(&str, Text<'_>)) {
    let Judgement { rubric, judge, reward: _ } = judgement;
    for (i, Rubric { criteria_name, criteria_description, weight: _ }) in rubric.iter_mut().enumerate() {
        visit(&format!("/rubric/{i}/criteria_name"), Text::Plain(criteria_name));
        visit(&format!("/rubric/{i}/criteria_description"), Text::Plain(criteria_description));
    }
    let Judge { model, prompt_sha256: _, scores: _ } = judge;
    visit("/judge/model", Text::Plain(model));
}

fn optional(place: &str, text: &mut Option<String>, visit: &mut dyn FnMut(&str, Text<'_>)) {
    if let Some(text) = text {
        visit(place, Text::Plain(text));
    }
}

fn recorded(place: &str, text: &mut Recorded<String>, visit: &mut dyn FnMut(&str, Text<'_>)) {
    if let Recorded::Value(text) = text {
        visit(place, Text::Plain(text));
    }
}
