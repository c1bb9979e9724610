//! Rules of tool calls and moves: real names in declared order, literals as the schema says, any other expression too.

use super::{Grammar, alternatives, quoted};
use crate::error::Error;
use crate::schema::{Property, Schema, literal};
use crate::signature::{Param, Signature};

/// Whole numbers of a bounded parameter that are listed one by one.
const MOST_LISTED: i64 = 64;
/// Items of an argument that is a list.
const MOST_ITEMS: usize = 16;
/// How deep the schema of an argument is followed.
const DEEPEST: u32 = 4;

impl Grammar {
    pub(super) fn tools(&mut self, tools: &[&Signature]) -> Result<(), Error> {
        let servers = self.servers.clone();
        if servers.is_empty() {
            self.rule("tool", "\"print(\" e2args \")\"");
            return Ok(());
        }
        let mut calls = Vec::new();
        for server in &servers {
            let mut of_server = Vec::new();
            for tool in tools.iter().filter(|t| t.server == *server) {
                of_server.push(format!("{} \"(\" {} \")\"", quoted(&tool.name), self.arguments(&tool.params)));
                if self.out.len() > super::MOST_BYTES {
                    return Err(Error::over("grammar size", super::MOST_BYTES as u64, self.out.len() as u64));
                }
            }
            calls.push(format!("{} \".\" ({})", quoted(server), of_server.join(" | ")));
        }
        let name = if self.nested { "tool::_" } else { "tool" };
        self.rule(name, &calls.join("\n    | "));
        Ok(())
    }

    /// Required arguments, then optional ones, each in declared order.
    fn arguments(&mut self, params: &[Param]) -> String {
        let parts = params.iter().map(|p| (format!("{}=", p.name), &p.schema, p.required)).collect();
        self.listed(parts, 0)
    }

    /// Keys with their values, separated by commas: required ones, then any of the others, in this order.
    fn listed(&mut self, parts: Vec<(String, &Schema, bool)>, depth: u32) -> String {
        let n_required = parts.iter().filter(|(.., required)| *required).count();
        let mut first = Vec::new();
        let mut later = Vec::new();
        for (key, schema, _) in parts {
            let value = self.value(schema, depth);
            let value = self.shared(format!("{value} | n2::_"));
            first.push(self.shared(format!("{} {value}", quoted(&key))));
            later.push(self.shared(format!("{} {value}", quoted(&format!(", {key}")))));
        }
        let optional = |from: usize| later.iter().skip(from).map(|p| format!(" {p}?")).collect::<String>();
        if n_required > 0 {
            let required = later.iter().take(n_required).skip(1).map(|p| format!(" {p}")).collect::<String>();
            return format!("{}{required}{}", first.first().map_or("", String::as_str), optional(n_required));
        }
        let mut rest = String::new();
        let mut starts = Vec::new();
        for (first, later) in first.iter().zip(&later).rev() {
            starts.push(format!("{first} {rest}"));
            rest = self.shared(format!("{later}? {rest}"));
        }
        starts.reverse();
        if starts.is_empty() { "\"\"".to_owned() } else { format!("({})?", starts.join(" | ")) }
    }

    /// What a literal argument may be.
    fn value(&mut self, schema: &Schema, depth: u32) -> String {
        if depth > DEEPEST {
            return "e1".to_owned();
        }
        match schema {
            Schema::Any if depth == 0 => "e2".to_owned(),
            Schema::Any => "e1".to_owned(),
            Schema::Null => "\"None\"".to_owned(),
            Schema::Bool => "\"True\" | \"False\"".to_owned(),
            Schema::Integer { least: Some(least), most: Some(most) }
                if most >= least && most.saturating_sub(*least) < MOST_LISTED =>
            {
                alternatives((*least..=*most).map(|n| n.to_string()))
            }
            Schema::Integer { least: Some(0..), .. } => "INT".to_owned(),
            Schema::Integer { .. } => "\"-\"? INT".to_owned(),
            Schema::Number => "\"-\"? (INT | FLOAT)".to_owned(),
            Schema::String => "STRING | fstring".to_owned(),
            Schema::Enum(choices) => alternatives(choices.iter().map(|choice| literal(&choice.0))),
            Schema::Array(items) => {
                let item = self.value(items, depth.saturating_add(1));
                let item = self.shared(format!("{item} | n2::_"));
                format!("\"[\" ({item} (\", \" {item}){{0,{MOST_ITEMS}}})? \"]\"")
            }
            Schema::Object { properties, .. } if properties.is_empty() => "e2list".to_owned(),
            Schema::Object { properties, .. } => {
                let key = |p: &Property| format!("{}: ", serde_json::Value::from(p.name.as_str()));
                let mut parts: Vec<_> = properties.iter().map(|p| (key(p), &p.schema, p.required)).collect();
                parts.sort_by_key(|(.., required)| !required);
                format!("\"{{\" {} \"}}\"", self.listed(parts, depth.saturating_add(1)))
            }
            Schema::Union(parts) => parts.iter().map(|part| self.value(part, depth)).collect::<Vec<_>>().join(" | "),
        }
    }

    pub(super) fn moves(&mut self) {
        self.rule("move", "answer_move | other_move");
        let statuses = alternatives(["\"complete\"", "\"partial\"", "\"incomplete\""]);
        self.rule("answer_move", &format!("\"answer(\" x3 (\", status=\" ({statuses}))? \")\""));
        let stage = ["goal", "strategy", "tools", "knowledge", "context", "why", "summary"];
        let parts: Vec<String> = stage
            .iter()
            .map(|name| {
                let value =
                    if *name == "tools" { "\"[\" (STRING (\", \" STRING){0,32})? \"]\"" } else { "STRING | fstring" };
                format!("(\", {name}=\" ({value}))?")
            })
            .skip(1)
            .collect();
        self.rule(
            "other_move",
            &format!(
                "\"load(\" STRING \")\" | \"show(\" STRING (\", \" STRING){{0,15}} \")\" | \"find(\" STRING \")\" \
                 | \"reconfigure(goal=\" (STRING | fstring) {} \")\"",
                parts.join(" ")
            ),
        );
    }
}
