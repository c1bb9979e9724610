//! `mote script explain`: what a program does and may do, before it runs.

use std::path::PathBuf;

use clap::Args;
use mote_script::{Explanation, Limits, Reached, Signature, ToolUse};
use serde_json::{Value, json};

use super::{failed, read};
use crate::cli::Globals;
use crate::cli::tools::{self, ToolFlags};
use crate::error::Result;
use crate::tools::{Catalogue, Decision, Policy, ServerKind};

#[derive(Args, Debug)]
pub(super) struct ExplainArgs {
    /// The program; `-` reads standard input
    file: PathBuf,
    /// List the instructions, too
    #[arg(long)]
    bytecode: bool,
    #[command(flatten)]
    tools: ToolFlags,
}

/// What a call may do outside of the program.
struct Effect {
    words: String,
    writes: bool,
    decision: Decision,
    command: Option<String>,
}

pub(super) fn run(arguments: ExplainArgs, globals: &Globals) -> Result<u8> {
    let source = read::source(&arguments.file, &globals.cancel)?;
    let limits = Limits::default();
    if let Err(error) = mote_script::compile(&source, &limits) {
        return failed(&error, &source, String::new(), globals);
    }
    let runtime = tools::open(arguments.tools, globals)?;
    let signatures: Vec<Signature> = runtime.catalogue().tools().map(|tool| tool.signature).collect();
    let explained = mote_script::explain(&source, &limits, &signatures, &[]);
    let found = match explained {
        Ok(found) => found,
        Err(error) => return failed(&error, &source, String::new(), globals),
    };
    let effects: Vec<Option<Effect>> =
        found.calls.iter().map(|call| effect(call, runtime.catalogue(), runtime.policy())).collect();
    let bytecode = match mote_script::compile(&source, &limits) {
        Ok(program) if arguments.bytecode => Some(program.to_string()),
        _ => None,
    };
    if globals.out.json() {
        globals.out.object(&as_json(&found, &effects, bytecode, &limits)?)?;
        return Ok(0);
    }
    globals.out.text(&as_text(&found, &effects, &limits))?;
    if let Some(bytecode) = bytecode {
        globals.out.text(&format!("\nInstructions: line, place, instruction\n{bytecode}"))?;
    }
    Ok(0)
}

fn effect(call: &ToolUse, catalogue: &Catalogue, policy: &Policy) -> Option<Effect> {
    let (server, name) = call.tool.split_once('.')?;
    let tool = catalogue.tool(server, name)?;
    let decision = policy.decide(&call.tool, tool.writes);
    let command = catalogue.servers().iter().find(|s| s.name == server).and_then(|s| match &s.kind {
        ServerKind::Mcp { command } => Some(command.clone()),
        ServerKind::Pack => None,
    });
    let mut words = if tool.writes { "may change something" } else { "only reads" }.to_owned();
    if let Some(command) = &command {
        words.push_str(&format!(", in a process of its own which may use the network ({command})"));
    }
    words.push_str(match decision {
        Decision::Allow => ", runs without asking",
        Decision::Ask => ", asks before it runs, and is denied where nobody can be asked",
        Decision::Deny => ", is denied",
    });
    Some(Effect { words, writes: tool.writes, decision, command })
}

fn as_json(
    found: &Explanation,
    effects: &[Option<Effect>],
    bytecode: Option<String>,
    limits: &Limits,
) -> Result<Value> {
    let unwritable = |error: serde_json::Error| {
        crate::error::Error::new(crate::error::ErrorKind::Failed, format!("cannot write as json: {error}"))
    };
    let mut value = serde_json::to_value(found).map_err(unwritable)?;
    if let Some(calls) = value["calls"].as_array_mut() {
        for (call, effect) in calls.iter_mut().zip(effects) {
            call["effect"] = match effect {
                Some(effect) => json!({
                    "writes": effect.writes, "command": effect.command,
                    "policy": format!("{:?}", effect.decision).to_lowercase(),
                }),
                None => Value::Null,
            };
        }
    }
    value["limits"] = serde_json::to_value(limits).map_err(unwritable)?;
    if let Some(bytecode) = bytecode {
        value["bytecode"] = Value::from(bytecode);
    }
    value["ok"] = Value::from(true);
    Ok(value)
}

fn as_text(found: &Explanation, effects: &[Option<Effect>], limits: &Limits) -> String {
    let mut out = String::new();
    if !found.reason.is_empty() {
        out.push_str(&format!("Why: {}\n", found.reason.join(" ")));
    }
    if found.calls.is_empty() {
        out.push_str("It calls no tool: nothing outside of the program is read or changed\n");
    } else {
        out.push_str("It calls\n");
    }
    for (call, effect) in found.calls.iter().zip(effects) {
        out.push_str(&called(call));
        if let Some(effect) = effect {
            out.push_str(&format!("      {}\n", effect.words));
        }
    }
    if !found.moves.is_empty() {
        out.push_str("Its moves, which only a session of `mote run` acts on, apart from answer\n");
    }
    found.moves.iter().for_each(|call| out.push_str(&called(call)));
    for unset in &found.unset {
        let why = if unset.set_later { "before it is set" } else { "which nothing sets" };
        let near = unset.near.as_ref().map(|near| format!(": did you mean {near}?")).unwrap_or_default();
        out.push_str(&format!("Line {} reads {}, {why}{near}\n", unset.line, unset.name));
    }
    for (what, names) in [("It defines", &found.functions), ("It leaves", &found.sets)] {
        if !names.is_empty() {
            out.push_str(&format!("{what} {}\n", names.join(", ")));
        }
    }
    out.push_str(&match found.most_fuel {
        Some(fuel) => format!("It takes at most {fuel} instructions, the work inside of built-ins apart\n"),
        None => format!("How long it takes depends on its loops; it is ended after {} instructions\n", limits.fuel),
    });
    out.push_str(&format!(
        "Bounds: {} of {} bytes of source, {} of {} instructions, {} MiB of values, {} calls, {} KiB printed\n",
        found.source_bytes,
        limits.source_bytes,
        found.instructions,
        limits.instructions,
        limits.bytes >> 20,
        limits.calls,
        limits.printed_bytes >> 10,
    ));
    if found.cut {
        out.push_str("There is more than can be listed here\n");
    }
    out
}

fn called(call: &ToolUse) -> String {
    let how = match call.reached {
        Reached::Once => "once",
        Reached::Perhaps => "perhaps",
        Reached::Repeatedly => "any number of times",
    };
    let mut out = format!("  {} on line {}, {how}", call.tool, call.line);
    if !call.known {
        out.push_str(": there is no such tool");
    } else if !call.called {
        out.push_str(": handed on as a value");
    } else if !call.given.is_empty() {
        out.push_str(&format!(", with {}", call.given.join(", ")));
    }
    if call.open && call.called {
        out.push_str(", and with what only the run shows");
    }
    out.push('\n');
    for missing in &call.missing {
        out.push_str(&format!("      missing: {missing}\n"));
    }
    for wrong in &call.wrong {
        out.push_str(&format!("      wrong: {wrong}\n"));
    }
    if let Some(hint) = &call.hint {
        out.push_str(&format!("      {hint}\n"));
    }
    out
}
