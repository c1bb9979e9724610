//! `mote tools stats`: what each server's tools would cost a prompt.

use mote_model::{Bundle, Tokenizer};
use serde_json::{Value, json};

use super::{SourceFlags, ToolFlags, open};
use crate::bundles;
use crate::cli::Globals;
use crate::error::Result;
use crate::tools::{Server, ToolEntry};

/// The cost of one server, or of all.
#[derive(Clone, Copy, Default)]
struct Cost {
    tools: usize,
    writing: usize,
    learned: usize,
    signatures: usize,
    schemas: usize,
}

impl Cost {
    fn add(&mut self, other: Cost) {
        self.tools += other.tools;
        self.writing += other.writing;
        self.learned += other.learned;
        self.signatures += other.signatures;
        self.schemas += other.schemas;
    }

    fn json(self, name: &str) -> Value {
        json!({
            "server": name, "tools": self.tools, "writing": self.writing, "with_result": self.learned,
            "signature_tokens": self.signatures, "schema_tokens": self.schemas,
        })
    }

    fn line(self, name: &str, width: usize) -> String {
        let Cost { tools, writing, learned, signatures, schemas } = self;
        format!("{name:width$} {tools:>6} {writing:>7} {learned:>11} {signatures:>10} {schemas:>8}")
    }
}

pub(super) fn stats(model: Option<&str>, sources: SourceFlags, globals: &Globals) -> Result<u8> {
    let runtime = open(ToolFlags { sources, ..ToolFlags::default() }, globals)?;
    let tokenizer = if model.is_none() && bundles::default_name(&globals.home)?.is_none() {
        None
    } else {
        Some(Bundle::open(&bundles::resolve(&globals.home, model)?)?.tokenizer().clone())
    };
    let servers = runtime.catalogue().servers();
    let mut costs = Vec::new();
    for server in servers {
        costs.push(cost(server, tokenizer.as_ref())?);
    }
    let mut total = Cost::default();
    costs.iter().for_each(|cost| total.add(*cost));
    let out = &globals.out;
    if out.json() {
        let rows: Vec<Value> = servers.iter().zip(&costs).map(|(server, cost)| cost.json(&server.name)).collect();
        out.object(&json!({"servers": rows, "total": total.json("all"), "counted": tokenizer.is_some()}))?;
        return Ok(0);
    }
    let width = servers.iter().map(|server| server.name.len()).max().unwrap_or_default().max(6);
    out.line(&format!(
        "{:width$} {:>6} {:>7} {:>11} {:>10} {:>8}",
        "server", "tools", "writing", "with result", "signatures", "schemas"
    ))?;
    for (server, cost) in servers.iter().zip(&costs) {
        out.line(&cost.line(&server.name, width))?;
    }
    out.line(&total.line("all", width))?;
    let counted = if tokenizer.is_some() { "in tokens" } else { "in tokens, taken as bytes / 4 without a bundle" };
    out.message(&format!("mote: signatures as a prompt shows them, schemas as other clients send them, {counted}"));
    Ok(0)
}

fn cost(server: &Server, tokenizer: Option<&Tokenizer>) -> Result<Cost> {
    let count = |text: &str| match tokenizer {
        Some(tokenizer) => tokenizer.encode_plain(text).map(|ids| ids.len()),
        None => Ok(text.len().div_ceil(4)),
    };
    let mut cost = Cost::default();
    for tool in server.tools() {
        cost.add(Cost {
            tools: 1,
            writing: usize::from(tool.writes),
            learned: usize::from(tool.result_example.is_some()),
            signatures: count(&tool.signature.line())?,
            schemas: count(&schema(&tool))?,
        });
    }
    Ok(cost)
}

fn schema(tool: &ToolEntry) -> String {
    json!({"name": tool.wire_name, "description": tool.description, "inputSchema": tool.parameters}).to_string()
}
