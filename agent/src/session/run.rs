//! Running one program: the VM stops at each call, the call is recorded and made, the VM goes on with the result.

use mote_script::{Call, CallError, Error as ScriptError, Step, Vm, compile, moves};
use mote_trajectory::Mode;
use serde_json::Value;

use super::answer::{Answered, Source, readable};
use super::configuration::Configuration;
use super::event::Event;
use super::{Session, observation, toolbox};
use crate::error::{Error, ErrorKind, Result};
use crate::tools::{ToolFailure, ToolId, ToolOutcome, ToolRequest};

/// What a program's run left behind.
pub(super) struct Ran {
    pub(super) printed: String,
    pub(super) error: Option<ScriptError>,
    pub(super) ended: Ended,
    /// What was refused to the program, if that is what stopped it.
    pub(super) refused: Option<String>,
    /// The tools that gave it a result.
    pub(super) called: Vec<ToolId>,
}

/// How a program's run ended.
pub(super) enum Ended {
    /// It ran out, or an error stopped it.
    Finished,
    /// It answered the task.
    Answered(Answered),
    /// It asked for another configuration.
    Reconfigured(Box<Configuration>),
}

/// What a call means for the program.
pub(super) enum Reply {
    /// The program goes on with a result or an exception.
    Resume(std::result::Result<Value, CallError>),
    /// The program is over.
    End(Ended),
}

impl Session<'_> {
    pub(super) fn run_program(&mut self, source: &str) -> Result<Ran> {
        let program = match compile(source, &self.options.limits) {
            Ok(program) => program,
            Err(error) => {
                let printed = String::new();
                let (ended, called) = (Ended::Finished, Vec::new());
                return Ok(Ran { printed, error: Some(error), ended, refused: None, called });
            }
        };
        self.refused = None;
        let n_sources = self.sources.len();
        let mut only = None;
        for id in toolbox::named_in(source, self.tools.catalogue()) {
            self.load(&id);
        }
        let mut signatures = self.toolbox.signatures(self.tools.catalogue());
        signatures.extend(toolbox::neighbours(source, &signatures, self.tools.catalogue()));
        signatures.extend(moves());
        let mut step = self.vm.start(program, &signatures);
        let (error, ended) = loop {
            match step {
                Step::Done => break (None, Ended::Finished),
                Step::Failed(error) => break (Some(error), Ended::Finished),
                Step::Call(call) => match self.reply(&call)? {
                    Reply::Resume(result) if self.one_action() => {
                        only = Some(result);
                        break (None, Ended::Finished);
                    }
                    Reply::Resume(result) => step = self.vm.resume(result),
                    Reply::End(ended) => break (None, ended),
                },
                Step::Calls(calls) if self.one_action() => {
                    only = self.call_tools(&calls[..calls.len().min(1)])?.pop();
                    break (None, Ended::Finished);
                }
                Step::Calls(calls) => {
                    let results = self.call_tools(&calls)?;
                    step = self.vm.resume_all(results);
                }
            }
        };
        let usage = self.vm.usage();
        self.spent.invalid_calls += usize::try_from(usage.invalid_calls).unwrap_or(usize::MAX);
        self.recorder.program_end(usage)?;
        let stopped_by = |refused: &String| error.as_ref().is_some_and(|error| error.message().contains(refused));
        let refused = self.refused.take().filter(stopped_by);
        let mut printed = self.vm.take_printed();
        if self.one_action() {
            self.vm = Vm::new(self.options.limits);
        }
        match only {
            Some(Ok(value)) => printed.push_str(&readable(&value)),
            Some(Err(error)) => printed.push_str(&format!("{}: {}", error.kind, error.message)),
            None => {}
        }
        let mut called = Vec::new();
        for source in self.sources.iter().skip(n_sources) {
            called.extend(ToolId::parse(&source.tool).filter(|id| !called.contains(id)));
        }
        Ok(Ran { printed, error, ended, refused, called })
    }

    /// Whether a turn is one action whose result goes into the prompt, as ATLAS has it without programs.
    fn one_action(&self) -> bool {
        matches!(self.options.mode, Mode::Isl | Mode::Itl)
    }

    fn reply(&mut self, call: &Call) -> Result<Reply> {
        if self.cancel.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled"));
        }
        if call.server.is_empty() && call.tool == "answer" {
            return self.make_move(call);
        }
        if call.server.is_empty() {
            return match self.spend_call() {
                Ok(()) => self.make_move(call),
                Err(spent) => Ok(Reply::Resume(Err(spent))),
            };
        }
        let mut results = self.call_tools(std::slice::from_ref(call))?;
        Ok(Reply::Resume(results.pop().unwrap_or_else(|| Err(no_result()))))
    }

    /// Counts a call against the budget of the task.
    fn spend_call(&mut self) -> std::result::Result<(), CallError> {
        let limit = self.options.budgets.calls;
        if self.spent.calls >= limit {
            return Err(CallError {
                kind: "LimitError".into(),
                message: format!("no more tool calls in this task: {limit} of {limit} are used"),
            });
        }
        self.spent.calls += 1;
        Ok(())
    }

    /// Makes calls side by side: all are recorded before the first is made, and their results in the same order.
    fn call_tools(&mut self, calls: &[Call]) -> Result<Vec<std::result::Result<Value, CallError>>> {
        if self.cancel.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled"));
        }
        let mut begun = Vec::new();
        for call in calls {
            begun.push(match self.spend_call() {
                Ok(()) => Ok(self.begin_call(call)?),
                Err(spent) => Err(spent),
            });
        }
        let made = calls.iter().zip(&begun).filter(|(_, begun)| begun.is_ok());
        let requests =
            made.map(|(call, _)| ToolRequest { server: &call.server, tool: &call.tool, arguments: &call.arguments });
        let mut outcomes = self.tools.call_all(&requests.collect::<Vec<_>>()).into_iter();
        let mut results = Vec::new();
        for (call, begun) in calls.iter().zip(begun) {
            results.push(match begun.map(|id| (id, outcomes.next())) {
                Ok((id, Some(outcome))) => self.end_call(id, call, outcome)?,
                Ok((_, None)) => Err(no_result()),
                Err(spent) => Err(spent),
            });
        }
        if self.cancel.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled"));
        }
        Ok(results)
    }

    fn begin_call(&mut self, call: &Call) -> Result<u32> {
        self.n_calls += 1;
        let id = self.n_calls;
        let tool = ToolId { server: call.server.clone(), tool: call.tool.clone() };
        let mutating = self.tools.catalogue().tool(&tool.server, &tool.tool).is_none_or(|entry| entry.writes);
        self.recorder.call_intent(id, &tool, &call.arguments, mutating)?;
        (self.emit)(&Event::Call { id, tool: tool.to_string(), arguments: call.arguments.clone() });
        Ok(id)
    }

    fn end_call(
        &mut self,
        id: u32,
        call: &Call,
        outcome: ToolOutcome,
    ) -> Result<std::result::Result<Value, CallError>> {
        self.recorder.call_result(id, &outcome)?;
        match &outcome.result {
            Ok(value) => {
                self.found = Some(found(value));
                let tool = ToolId { server: call.server.clone(), tool: call.tool.clone() };
                self.toolbox.called(&tool);
                self.sources.push(Source { id, tool: tool.to_string(), arguments: call.arguments.clone() });
            }
            Err(failure) if is_refusal(failure, outcome.mutating) => self.refused = Some(failure_text(failure)),
            Err(_) => {}
        }
        (self.emit)(&Event::Result {
            id,
            ok: outcome.result.is_ok(),
            bytes: u64::try_from(outcome.bytes).unwrap_or(u64::MAX),
            ms: outcome.ms,
            error: outcome.result.as_ref().err().map(failure_text),
        });
        Ok(outcome.result.map_err(|failure| CallError { kind: failure.kind.clone(), message: failure_text(&failure) }))
    }

    /// Loads a tool and says which one had to leave.
    pub(super) fn load(&mut self, tool: &ToolId) {
        if self.toolbox.has(tool) {
            return;
        }
        let entry = self.tools.catalogue().tool(&tool.server, &tool.tool);
        let tokens = entry.map_or(0, |entry| self.count(&entry.signature.line()));
        for left in self.toolbox.load(tool, tokens) {
            self.aside(format!("unloaded to make room for {tool}: {left}"));
        }
    }
}

/// A call without an outcome, which the tools never leave.
fn no_result() -> CallError {
    CallError { kind: "failed".into(), message: "the call was not made".into() }
}

/// Whether a person has to allow something before this can work: another program can't.
fn is_refusal(failure: &ToolFailure, mutating: bool) -> bool {
    failure.kind == "denied" || (mutating && failure.kind == "permission")
}

/// What a person would want of a result if the task is never answered.
fn found(value: &Value) -> String {
    const MAX_BYTES: usize = 1_000;
    let text = value.get("text").and_then(Value::as_str).map_or_else(|| readable(value), str::to_owned);
    observation::bounded(&text, MAX_BYTES).0
}

/// A failure as the model reads it.
pub(super) fn failure_text(failure: &ToolFailure) -> String {
    match &failure.hint {
        Some(hint) => format!("{}; {hint}", failure.message),
        None => failure.message.clone(),
    }
}
