//! `mote script`: the action language without a model.

mod explain;
mod fmt;
mod help;
mod read;
mod repl;
mod typed;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use mote_script::{Call, CallError, Limits, Program, Signature, Step, Vm};
use serde_json::{Value, json};

use crate::cli::Globals;
use crate::cli::model::cancelled;
use crate::cli::tools::{self, ToolFlags};
use crate::error::{Error, ErrorKind, Result};
use crate::tools::{ToolFailure, ToolRequest, ToolRuntime};

/// Programs are written a turn at a time; a longer file is none.
const MAX_SOURCE_BYTES: u64 = 1 << 20;

/// The exit code of a program that does not compile or fails.
const FAILED: u8 = 1;

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct ScriptArgs {
    #[command(subcommand)]
    command: Option<ScriptCommand>,
    #[command(flatten)]
    tools: ToolFlags,
}

#[derive(Subcommand, Debug)]
enum ScriptCommand {
    /// Compile a program and show its error, if it has one
    Check {
        /// The program; `-` reads standard input
        file: PathBuf,
    },
    /// Run a program with tools and print what it prints
    Run(RunArgs),
    /// Write programs in their canonical form
    Fmt(fmt::FmtArgs),
    /// Say what a program does and may do, without running it
    Explain(explain::ExplainArgs),
    /// Type programs line by line; variables live on [default on a terminal]
    Repl {
        #[command(flatten)]
        tools: ToolFlags,
    },
    /// Show what the language has: statements, built-ins, methods, limits, differences to Python
    Help {
        /// A name, such as sorted, str.split or try; the whole list without one
        name: Option<String>,
    },
}

#[derive(Args, Debug)]
struct RunArgs {
    /// The program; `-` reads standard input
    file: PathBuf,
    #[command(flatten)]
    tools: ToolFlags,
}

pub(crate) fn run(arguments: ScriptArgs, globals: &Globals) -> Result<u8> {
    match arguments.command {
        Some(ScriptCommand::Check { file }) => check(&file, globals),
        Some(ScriptCommand::Run(arguments)) => run_program(arguments, globals),
        Some(ScriptCommand::Fmt(arguments)) => fmt::run(&arguments, globals),
        Some(ScriptCommand::Explain(arguments)) => explain::run(arguments, globals),
        Some(ScriptCommand::Repl { tools }) => repl::run(tools, globals),
        Some(ScriptCommand::Help { name }) => help::run(name.as_deref(), &globals.out),
        None if io::stdin().is_terminal() => repl::run(arguments.tools, globals),
        None => Err(Error::new(ErrorKind::Usage, "no command, and no terminal to type programs at")
            .with_hint("run a file: mote script run FILE; read lines from a pipe: mote script repl")),
    }
}

fn check(file: &Path, globals: &Globals) -> Result<u8> {
    let source = read::source(file, &globals.cancel)?;
    match mote_script::compile(&source, &Limits::default()) {
        Ok(_) if globals.out.json() => globals.out.object(&json!({ "ok": true })).map(|()| 0),
        Ok(_) => Ok(0),
        Err(error) => failed(&error, &source, String::new(), globals),
    }
}

fn run_program(arguments: RunArgs, globals: &Globals) -> Result<u8> {
    let source = read::source(&arguments.file, &globals.cancel)?;
    let limits = Limits::default();
    let program = match mote_script::compile(&source, &limits) {
        Ok(program) => program,
        Err(error) => return failed(&error, &source, String::new(), globals),
    };
    let mut tools = tools::open(arguments.tools, globals)?;
    let mut vm = Vm::new(limits);
    let ran = drive(&mut vm, program, &mut tools, globals)?;
    match ran.end {
        End::Cancelled => Err(cancelled()),
        End::Failed(error) => failed(&error, &source, ran.printed, globals),
        End::Done(answer) => {
            if globals.out.json() {
                globals.out.object(&json!({ "ok": true, "printed": ran.printed, "answer": answer }))?;
            }
            Ok(0)
        }
    }
}

/// A program that has ended, and what it printed.
struct Ran {
    end: End,
    printed: String,
}

enum End {
    /// With what it answered, if it did.
    Done(Option<Value>),
    Failed(mote_script::Error),
    Cancelled,
}

/// Runs a program over the machine's variables to its end. What it prints goes to stdout as it comes, but not with `--json`.
fn drive(vm: &mut Vm, program: Program, tools: &mut ToolRuntime, globals: &Globals) -> Result<Ran> {
    let signatures: Vec<Signature> = tools.catalogue().tools().map(|tool| tool.signature).collect();
    let mut printed = String::new();
    let mut step = vm.start(program, &signatures);
    let end = loop {
        let new = vm.take_printed();
        if !globals.out.json() {
            globals.out.text(&new)?;
        }
        printed.push_str(&new);
        if globals.cancel.is_cancelled() {
            break End::Cancelled;
        }
        match step {
            Step::Done => break End::Done(None),
            Step::Failed(error) => break End::Failed(error),
            Step::Call(call) if call.server.is_empty() && call.tool == "answer" => {
                break End::Done(call.arguments.get("x").cloned());
            }
            Step::Call(call) => step = vm.resume(result_of(&call, tools)),
            Step::Calls(calls) => step = vm.resume_all(results_of(&calls, tools)),
        }
    };
    Ok(Ran { end, printed })
}

/// What becomes of a call. A move has no stage here that it could change.
fn result_of(call: &Call, tools: &mut ToolRuntime) -> std::result::Result<Value, CallError> {
    if call.server.is_empty() {
        let message = format!("only `mote run` has a session for this move: {}", call.tool);
        return Err(CallError { kind: "unavailable".to_owned(), message });
    }
    tools.call(&call.server, &call.tool, &call.arguments).result.map_err(call_error)
}

/// What becomes of the calls of one `gather`.
fn results_of(calls: &[Call], tools: &mut ToolRuntime) -> Vec<std::result::Result<Value, CallError>> {
    let requests =
        calls.iter().map(|call| ToolRequest { server: &call.server, tool: &call.tool, arguments: &call.arguments });
    let requests: Vec<ToolRequest<'_>> = requests.collect();
    tools.call_all(&requests).into_iter().map(|outcome| outcome.result.map_err(call_error)).collect()
}

fn call_error(failure: ToolFailure) -> CallError {
    let message = match failure.hint {
        Some(hint) => format!("{}; {hint}", failure.message),
        None => failure.message,
    };
    CallError { kind: failure.kind, message }
}

fn failed(error: &mote_script::Error, source: &str, printed: String, globals: &Globals) -> Result<u8> {
    globals.out.message(error.report(source).trim_end());
    if globals.out.json() {
        globals.out.object(&json!({ "ok": false, "printed": printed, "error": error_json(error) }))?;
    }
    Ok(FAILED)
}

fn error_json(error: &mote_script::Error) -> Value {
    json!({
        "kind": format!("{:?}", error.kind()).to_lowercase(), "exception": error.exception(), "line": error.line(),
        "column": error.column(), "message": error.message(), "hint": error.hint(),
        "limit": error.limit(), "used": error.used()
    })
}
