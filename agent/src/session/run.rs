//! Running one program: the VM stops at each call, the call is recorded and made, the VM goes on with the result.

use mote_script::{Call, CallError, Error as ScriptError, Step, compile, moves};
use serde_json::Value;

use super::answer::{Answered, Source, readable};
use super::configuration::Configuration;
use super::event::Event;
use super::{Session, observation, toolbox};
use crate::error::{Error, ErrorKind, Result};
use crate::tools::{ToolFailure, ToolId};

/// What a program's run left behind.
pub(super) struct Ran {
    pub(super) printed: String,
    pub(super) error: Option<ScriptError>,
    pub(super) ended: Ended,
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
            Err(error) => return Ok(Ran { printed: String::new(), error: Some(error), ended: Ended::Finished }),
        };
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
                    Reply::Resume(result) => step = self.vm.resume(result),
                    Reply::End(ended) => break (None, ended),
                },
            }
        };
        let usage = self.vm.usage();
        self.spent.invalid_calls += usize::try_from(usage.invalid_calls).unwrap_or(usize::MAX);
        self.recorder.program_end(usage)?;
        Ok(Ran { printed: self.vm.take_printed(), error, ended })
    }

    fn reply(&mut self, call: &Call) -> Result<Reply> {
        if self.cancel.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled"));
        }
        if call.server.is_empty() && call.tool == "answer" {
            return self.make_move(call);
        }
        let limit = self.options.budgets.calls;
        if self.spent.calls >= limit {
            return Ok(Reply::Resume(Err(CallError {
                kind: "LimitError".into(),
                message: format!("no more tool calls in this task: {limit} of {limit} are used"),
            })));
        }
        self.spent.calls += 1;
        if call.server.is_empty() { self.make_move(call) } else { self.call_tool(call).map(Reply::Resume) }
    }

    fn call_tool(&mut self, call: &Call) -> Result<std::result::Result<Value, CallError>> {
        self.n_calls += 1;
        let id = self.n_calls;
        let tool = ToolId { server: call.server.clone(), tool: call.tool.clone() };
        let mutating = self.tools.catalogue().tool(&tool.server, &tool.tool).is_none_or(|entry| entry.writes);
        self.recorder.call_intent(id, &tool, &call.arguments, mutating)?;
        (self.emit)(&Event::Call { id, tool: tool.to_string(), arguments: call.arguments.clone() });
        let outcome = self.tools.call(&tool.server, &tool.tool, &call.arguments);
        self.recorder.call_result(id, &outcome)?;
        let result = match outcome.result {
            Ok(value) => {
                self.found = Some(found(&value));
                self.sources.push(Source { id, tool: tool.to_string(), arguments: call.arguments.clone() });
                Ok(value)
            }
            Err(failure) => Err(failure),
        };
        (self.emit)(&Event::Result {
            id,
            ok: result.is_ok(),
            bytes: u64::try_from(outcome.bytes).unwrap_or(u64::MAX),
            ms: outcome.ms,
            error: result.as_ref().err().map(failure_text),
        });
        if self.cancel.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled"));
        }
        Ok(result.map_err(|failure| CallError { kind: failure.kind.clone(), message: failure_text(&failure) }))
    }

    /// Loads a tool and says which one had to leave.
    pub(super) fn load(&mut self, tool: &ToolId) {
        if let Some(left) = self.toolbox.load(tool) {
            (self.emit)(&Event::Notice { text: format!("unloaded to make room for {tool}: {left}") });
        }
    }
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
