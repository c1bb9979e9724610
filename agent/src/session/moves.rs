//! The agent's own moves, which a program calls like tools: load, show, find, reconfigure, answer.

use mote_script::{Call, CallError};
use mote_trajectory::{EndedBy, Mode, Request, SelectionSource};
use serde_json::{Map, Value, json};

use super::Session;
use super::Status;
use super::answer::{Answered, readable};
use super::run::{Ended, Reply};
use crate::context::described;
use crate::error::Result;
use crate::tools::{ToolEntry, ToolId};

/// Names that one answer of `load`, and candidates that one answer of `find`, may hold.
const MAX_LISTED: usize = 40;
const MAX_FOUND: usize = 5;

impl Session<'_> {
    pub(super) fn make_move(&mut self, call: &Call) -> Result<Reply> {
        if call.tool != "answer" {
            self.tools.refresh();
        }
        Ok(match call.tool.as_str() {
            "answer" => self.answer(&call.arguments),
            "load" => Reply::Resume(self.load_server(&text(&call.arguments, "server"))),
            "show" => Reply::Resume(self.show(&call.arguments)),
            "find" => Reply::Resume(self.find(&text(&call.arguments, "why"))?),
            "reconfigure" => self.reconfigure(&call.arguments)?,
            other => Reply::Resume(Err(name_error(format!("no such move: {other}")))),
        })
    }

    fn answer(&self, arguments: &Map<String, Value>) -> Reply {
        let status = match arguments.get("status").and_then(Value::as_str) {
            None | Some("complete") => Status::Complete,
            Some("partial") => Status::Partial,
            Some(_) => Status::Incomplete,
        };
        let text = readable(arguments.get("x").unwrap_or(&Value::Null));
        Reply::End(Ended::Answered(Answered { status, text }))
    }

    fn load_server(&mut self, server: &str) -> std::result::Result<Value, CallError> {
        let catalogue = self.tools.catalogue();
        let Some(found) = catalogue.servers().iter().find(|other| other.name == server) else {
            let names: Vec<&str> =
                catalogue.servers().iter().map(|server| server.name.as_str()).take(MAX_LISTED).collect();
            return Err(name_error(format!("no such server: {server}; there are: {}", names.join(", "))));
        };
        let names: Vec<String> = found.tool_names().take(MAX_LISTED).map(str::to_owned).collect();
        let summary = found.summary.clone();
        if self.options.mode != Mode::Isl {
            return Ok(json!({"server": server, "summary": summary, "tools": names}));
        }
        let tools: Vec<ToolEntry> = found.tools().take(MAX_LISTED).collect();
        let lines: Vec<String> = tools.iter().map(|tool| self.described(tool)).collect();
        tools.iter().for_each(|tool| self.load(&tool.id));
        Ok(json!({"server": server, "summary": summary, "tools": lines}))
    }

    fn show(&mut self, arguments: &Map<String, Value>) -> std::result::Result<Value, CallError> {
        let names = arguments.values().flat_map(|value| match value {
            Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Value::String(name) => vec![name.clone()],
            _ => Vec::new(),
        });
        let mut lines = Vec::new();
        for name in names.take(MAX_LISTED) {
            let id = ToolId::parse(&name).ok_or_else(|| name_error(format!("not of the form server.tool: {name}")))?;
            let entry = self.tools.catalogue().tool(&id.server, &id.tool);
            lines.push(self.described(&entry.ok_or_else(|| name_error(format!("no such tool: {name}")))?));
            self.load(&id);
        }
        Ok(json!(lines))
    }

    /// A tool as the prompt shows it.
    fn described(&self, entry: &ToolEntry) -> String {
        described(entry, &|text| self.count(text))
    }

    fn find(&mut self, why: &str) -> Result<std::result::Result<Value, CallError>> {
        let candidates = self.tools.index().search(why, MAX_FOUND);
        let Some(best) = candidates.first() else {
            return Ok(Err(name_error(format!("no tool matches: {why}"))));
        };
        let best = best.tool.clone();
        self.recorder.selected(SelectionSource::Find, why, &candidates, std::slice::from_ref(&best))?;
        self.load(&best);
        let entry = self.tools.catalogue().tool(&best.server, &best.tool);
        let others: Vec<String> = candidates.iter().skip(1).map(|candidate| candidate.tool.to_string()).collect();
        Ok(Ok(json!({
            "tool": best.to_string(),
            "signature": entry.as_ref().map(|entry| self.described(entry)),
            "example": entry.as_ref().and_then(|entry| entry.examples.first()).map(|example| &example.program),
            "others": others,
        })))
    }

    fn reconfigure(&mut self, arguments: &Map<String, Value>) -> Result<Reply> {
        if self.spent.stages >= self.options.budgets.stages {
            return Ok(Reply::Resume(Err(CallError {
                kind: "LimitError".into(),
                message: format!(
                    "no more stages in this task: {} of {}",
                    self.spent.stages, self.options.budgets.stages
                ),
            })));
        }
        let or = |name: &str, old: &str| match text(arguments, name) {
            new if new.is_empty() => old.to_owned(),
            new => new,
        };
        let goal = or("goal", self.configuration.goal());
        let tools = match arguments.get("tools") {
            Some(Value::Array(names)) => {
                let mut tools = Vec::new();
                for name in names.iter().filter_map(Value::as_str).take(MAX_LISTED) {
                    match ToolId::parse(name) {
                        Some(id) if self.tools.catalogue().has(&id) => tools.push(id),
                        _ => return Ok(Reply::Resume(Err(name_error(format!("no such tool: {name}"))))),
                    }
                }
                tools
            }
            _ => {
                let found = self.tools.index().search(&goal, self.options.shortlist.tools);
                found.into_iter().map(|candidate| candidate.tool).collect()
            }
        };
        let knowledge = or("knowledge", self.configuration.knowledge());
        let next = self.configuration.next(goal, or("strategy", self.configuration.strategy()), tools, knowledge);
        if !next.differs(&self.configuration) {
            return Ok(Reply::Resume(Err(CallError {
                kind: "ValueError".into(),
                message: "this reconfiguration changes nothing; change the goal, strategy, tools or knowledge".into(),
            })));
        }
        let request = Request { why: text(arguments, "why"), requirements: next.goal().to_owned() };
        self.recorder.end_stage(EndedBy::Reconfigure, Some(&text(arguments, "summary")), Some(request))?;
        Ok(Reply::End(Ended::Reconfigured(Box::new(next))))
    }
}

fn text(arguments: &Map<String, Value>, name: &str) -> String {
    match arguments.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(value) => readable(value),
    }
}

fn name_error(message: String) -> CallError {
    CallError { kind: "NameError".into(), message }
}
