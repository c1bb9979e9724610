//! Rules of tool calls and moves: real names in declared order, literals as the schema says, any other expression too.

use super::{Grammar, alternatives, quoted};
use crate::error::Error;
use crate::schema::{JsonText, Property, Schema, literal};
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
            self.rule("tool::_", "\"print(\" e2args \")\"");
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
        self.rule("tool::_", &calls.join("\n    | "));
        Ok(())
    }

    /// Required arguments, then optional ones, each in declared order.
    fn arguments(&mut self, params: &[Param]) -> String {
        let mut first = Vec::new();
        let mut later = Vec::new();
        for param in params {
            let value = value(&param.schema, 0);
            let value = self.shared(format!("{value} | n2::_"));
            first.push(self.shared(format!("{} {value}", quoted(&format!("{}=", param.name)))));
            later.push(self.shared(format!("{} {value}", quoted(&format!(", {}=", param.name)))));
        }
        let n_required = params.iter().filter(|p| p.required).count();
        let optional = |from: usize| later.iter().skip(from).map(|p| format!(" {p}?")).collect::<String>();
        if n_required > 0 {
            let required = later.iter().take(n_required).skip(1).map(|p| format!(" {p}")).collect::<String>();
            return format!("{}{required}{}", first.first().map_or("", String::as_str), optional(n_required));
        }
        let mut rest = String::new();
        let mut starts = Vec::new();
        for (first, later) in first.iter().zip(&later).rev() {
            starts.push(format!("{first}{}", if rest.is_empty() { String::new() } else { format!(" {rest}") }));
            rest = self.shared(if rest.is_empty() { format!("{later}?") } else { format!("{later}? {rest}") });
        }
        starts.reverse();
        if starts.is_empty() { "\"\"".to_owned() } else { format!("({})?", starts.join(" | ")) }
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

/// What a literal argument may be.
fn value(schema: &Schema, depth: u32) -> String {
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
        Schema::Enum(choices) => choice(choices),
        Schema::Array(items) => {
            let item = format!("({} | n2::_)", value(items, depth + 1));
            format!("\"[\" ({item} (\", \" {item}){{0,{MOST_ITEMS}}})? \"]\"")
        }
        Schema::Object { properties, .. } if properties.is_empty() => "e2list".to_owned(),
        Schema::Object { properties, .. } => object(properties, depth),
        Schema::Union(parts) => parts.iter().map(|part| value(part, depth)).collect::<Vec<_>>().join(" | "),
    }
}

fn choice(choices: &[JsonText]) -> String {
    alternatives(choices.iter().map(|choice| literal(&choice.0)))
}

/// A dict with its keys in declared order; required ones come first, so that a comma always has something before it.
fn object(properties: &[Property], depth: u32) -> String {
    let part = |property: &Property| {
        let key = format!("{}: ", serde_json::Value::from(property.name.as_str()));
        format!("{} ({} | n2::_)", quoted(&key), value(&property.schema, depth + 1))
    };
    let required: Vec<String> = properties.iter().filter(|p| p.required).map(part).collect();
    let optional: Vec<String> = properties.iter().filter(|p| !p.required).map(part).collect();
    let body = if required.is_empty() {
        let one = optional.join(" | ");
        format!("(({one}) (\", \" ({one})){{0,{}}})?", optional.len().saturating_sub(1))
    } else {
        let rest: Vec<String> = optional.iter().map(|part| format!("(\", \" {part})?")).collect();
        format!("{} {}", required.join(" \", \" "), rest.join(" "))
    };
    format!("\"{{\" {body} \"}}\"")
}
