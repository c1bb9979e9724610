//! The command line: one file a command, and the only place that prints.

mod bench;
mod doctor;
mod eval;
mod generate;
mod interrupt;
mod load;
mod model;
mod out;
mod progress;
mod queue;
mod run;
mod script;
#[cfg(test)]
mod tests;
pub(crate) mod tools;
mod why;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde_json::json;

use crate::cancel::Cancel;
use crate::error::Result;
use crate::home::Home;
use crate::tools::mcp::guard_if_asked;

pub use out::Out;

/// Agent firmware for edge devices: a local 4-bit model acts through tools by writing small programs.
#[derive(Parser, Debug)]
#[command(name = "mote", version, about, long_about = None, arg_required_else_help = true, after_help = EXAMPLES)]
struct Cli {
    /// Print JSON on stdout: one object, or JSON Lines where things stream
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
State lies under MOTE_HOME if it is set, else under the XDG folders.
Exit codes: 0 done, 1 failed, 2 usage, 75 try again later, 78 bad configuration, 130 cancelled.";

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a task: the model writes programs that call tools until it is answered
    Run(Box<run::Args>),
    /// Import, list, verify and try models
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Write, check, explain and run programs of the action language, without a model
    Script(Box<script::ScriptArgs>),
    /// Measure load, prefill and decode of a model
    Bench(bench::BenchArgs),
    /// Check what this machine has and lacks, with what mends it
    Doctor,
    /// Measure how well tools are found
    #[command(subcommand)]
    Eval(eval::EvalCommand),
    /// Look at what was recorded
    #[command(subcommand)]
    Queue(queue::QueueCommand),
    /// See, find and call tools
    #[command(subcommand)]
    Tools(tools::ToolsCommand),
    /// Show which tools a recorded task was shown, chose, skipped and called, and what each cost
    Why {
        /// `last`, or the first characters of an id
        #[arg(value_name = "ID", default_value = "last")]
        id: String,
    },
}

/// What every command gets.
pub struct Globals {
    /// Where state lies.
    pub home: Home,
    /// Where output goes.
    pub out: Out,
    /// Set by Ctrl-C: whatever waits or loops looks at it.
    pub cancel: Cancel,
}

/// Parses the arguments, runs the command and turns its result into an exit code.
pub fn main() -> ExitCode {
    if let Some(guarded) = guard_if_asked() {
        return ExitCode::from(guarded.unwrap_or_else(|failure| {
            Out::new(false).message(&format!("mote guard: {}", failure.why));
            failure.code
        }));
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let code = if error.use_stderr() { 2 } else { 0 };
            let mut options = std::env::args_os().take_while(|argument| argument != "--");
            if error.use_stderr() && options.any(|argument| argument == "--json") {
                let message = error.to_string();
                let message = message.lines().next().unwrap_or_default().trim_start_matches("error: ");
                drop(Out::new(true).object(&json!({ "error": {"kind": "usage", "message": message, "hint": null} })));
            }
            return if error.print().is_ok() { ExitCode::from(code) } else { ExitCode::from(1) };
        }
    };
    let mut out = Out::new(cli.json);
    let start = || {
        let globals = Globals { home: Home::from_environment()?, out: Out::new(cli.json), cancel: Cancel::default() };
        interrupt::install(&globals.cancel)?;
        run(cli.command, &globals)
    };
    match start() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            out.error(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(command: Command, globals: &Globals) -> Result<u8> {
    match command {
        Command::Run(arguments) => run::run(&arguments, globals),
        Command::Model(command) => model::run(command, globals),
        Command::Script(arguments) => script::run(*arguments, globals),
        Command::Bench(arguments) => bench::run(&arguments, globals),
        Command::Doctor => doctor::run(globals),
        Command::Eval(command) => eval::run(&command, globals),
        Command::Queue(command) => queue::run(&command, globals),
        Command::Tools(command) => tools::run(command, globals),
        Command::Why { id } => why::run(&id, globals),
    }
}
