//! `mote script`: the action language without a model.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use mote_script::{Call, CallError, Limits, Signature, Step, Vm};
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

#[derive(Subcommand, Debug)]
pub(crate) enum ScriptCommand {
    /// Compile a program and show its error, if it has one
    Check {
        /// The program; `-` reads standard input
        file: PathBuf,
    },
    /// Run a program with tools and print what it prints
    Run(RunArgs),
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The program; `-` reads standard input
    file: PathBuf,
    #[command(flatten)]
    tools: ToolFlags,
}

pub(crate) fn run(command: ScriptCommand, globals: &Globals) -> Result<u8> {
    match command {
        ScriptCommand::Check { file } => check(&file, globals),
        ScriptCommand::Run(arguments) => run_program(arguments, globals),
    }
}

fn check(file: &Path, globals: &Globals) -> Result<u8> {
    let source = read_source(file)?;
    match mote_script::compile(&source, &Limits::default()) {
        Ok(_) if globals.out.json() => globals.out.object(&json!({ "ok": true })).map(|()| 0),
        Ok(_) => Ok(0),
        Err(error) => failed(&error, &source, String::new(), globals),
    }
}

fn run_program(arguments: RunArgs, globals: &Globals) -> Result<u8> {
    let source = read_source(&arguments.file)?;
    let limits = Limits::default();
    let program = match mote_script::compile(&source, &limits) {
        Ok(program) => program,
        Err(error) => return failed(&error, &source, String::new(), globals),
    };
    let mut tools = tools::open(arguments.tools, globals)?;
    let signatures: Vec<Signature> = tools.catalogue().tools().map(|tool| tool.signature.clone()).collect();
    let mut vm = Vm::new(limits);
    let mut printed = String::new();
    let mut answer = None;
    let mut step = vm.start(program, &signatures);
    loop {
        let new = vm.take_printed();
        if !globals.out.json() {
            globals.out.text(&new)?;
        }
        printed.push_str(&new);
        if globals.cancel.is_cancelled() {
            return Err(cancelled());
        }
        match step {
            Step::Done => break,
            Step::Failed(error) => return failed(&error, &source, printed, globals),
            Step::Call(call) if call.server.is_empty() && call.tool == "answer" => {
                answer = call.arguments.get("x").cloned();
                break;
            }
            Step::Call(call) => step = vm.resume(result_of(&call, &mut tools)),
            Step::Calls(calls) => step = vm.resume_all(results_of(&calls, &mut tools)),
        }
    }
    if globals.out.json() {
        globals.out.object(&json!({ "ok": true, "printed": printed, "answer": answer }))?;
    }
    Ok(0)
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
        globals.out.object(&json!({
            "ok": false, "printed": printed,
            "error": {
                "kind": format!("{:?}", error.kind()).to_lowercase(), "exception": error.exception(), "line": error.line(),
                "column": error.column(), "message": error.message(), "hint": error.hint(),
                "limit": error.limit(), "used": error.used()
            }
        }))?;
    }
    Ok(FAILED)
}

fn read_source(file: &Path) -> Result<String> {
    let unreadable =
        |why: &str| Error::new(ErrorKind::Usage, format!("cannot read the program ({why}): {}", file.display()));
    let mut source = String::new();
    let read = if file == Path::new("-") {
        io::stdin().lock().take(MAX_SOURCE_BYTES + 1).read_to_string(&mut source)
    } else {
        File::open(file).and_then(|file| file.take(MAX_SOURCE_BYTES + 1).read_to_string(&mut source))
    };
    read.map_err(|error| unreadable(&error.to_string()))?;
    if source.len() as u64 > MAX_SOURCE_BYTES {
        return Err(unreadable(&format!("longer than its limit of {MAX_SOURCE_BYTES} bytes")));
    }
    Ok(source)
}
