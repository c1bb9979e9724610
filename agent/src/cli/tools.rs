//! `mote tools`: what tools there are, which fit a task, what one takes, and calling one without a model.

mod add;
mod learn;
mod stats;

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use mote_model::Bundle;
use serde_json::{Map, Value, json};

use self::add::AddArgs;
use crate::bundles;
use crate::cli::out::plain;
use crate::cli::{Globals, Out};
use crate::error::{Error, ErrorKind, Result};
use crate::tools::sandbox::SandboxMode;
use crate::tools::{
    Anchor, Answer, Asker, Catalogue, Server, ServerKind, ServerState, ToolEntry, ToolFailure, ToolId, ToolOptions,
    ToolRuntime,
};

/// Who asks for tools wants to see those of new servers, too.
const DISCOVERY: Duration = Duration::from_secs(30);

/// Where tools come from.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct SourceFlags {
    /// The file of MCP servers [default: mcp.json in the configuration folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp: Option<PathBuf>,
    /// Use only this built-in pack; may be given several times
    #[arg(long, value_name = "PACK")]
    pub(crate) pack: Vec<String>,
    /// Confine servers and packs: `auto` takes what the kernel has, `on` goes on only with all of it
    #[arg(long, value_enum, value_name = "MODE", default_value_t)]
    pub(crate) sandbox: SandboxArg,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum SandboxArg {
    Off,
    #[default]
    Auto,
    On,
}

impl From<SandboxArg> for SandboxMode {
    fn from(mode: SandboxArg) -> SandboxMode {
        match mode {
            SandboxArg::Off => SandboxMode::Off,
            SandboxArg::Auto => SandboxMode::Auto,
            SandboxArg::On => SandboxMode::On,
        }
    }
}

/// Which tools a session may use and how; the same for every command that calls tools.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ToolFlags {
    #[command(flatten)]
    pub(crate) sources: SourceFlags,
    /// Ask before tools that fit the pattern run, also where they only read
    #[arg(long, value_name = "PATTERN")]
    pub(crate) ask: Vec<String>,
    /// Let tools that fit the pattern run without asking: "fs.write", "git.*"
    #[arg(long, value_name = "PATTERN")]
    pub(crate) allow: Vec<String>,
    /// Never run tools that fit the pattern
    #[arg(long, value_name = "PATTERN")]
    pub(crate) deny: Vec<String>,
    /// Let packs write below this folder; may be given several times
    #[arg(long, value_name = "FOLDER")]
    pub(crate) writable: Vec<PathBuf>,
    /// Let packs read only below this folder; may be given several times
    #[arg(long, value_name = "FOLDER")]
    pub(crate) readable: Vec<PathBuf>,
}

impl ToolFlags {
    /// Options of a session in the current folder; a person at a terminal is asked.
    pub(crate) fn options(self) -> Result<ToolOptions> {
        let working_dir = std::env::current_dir()
            .map_err(|error| Error::new(ErrorKind::Failed, format!("the current folder cannot be used: {error}")))?;
        let ToolFlags { sources: SourceFlags { mcp, pack, sandbox }, ask, allow, deny, writable, readable } = self;
        Ok(ToolOptions {
            packs: (!pack.is_empty()).then_some(pack),
            mcp,
            working_dir,
            writable,
            readable,
            sandbox: sandbox.into(),
            ask,
            allow,
            deny,
            asker: asker(),
            ..ToolOptions::default()
        })
    }
}

#[derive(Subcommand, Debug)]
pub(crate) enum ToolsCommand {
    /// List servers and their tools
    List {
        #[command(flatten)]
        sources: SourceFlags,
    },
    /// Find tools for a task
    Search {
        /// The task, in your words
        query: String,
        /// How many tools to show
        #[arg(short = 'k', long, default_value_t = 5)]
        count: usize,
        /// The bundle in whose embedding layer tools are compared; the default bundle, if there is one
        #[arg(long, value_name = "BUNDLE")]
        model: Option<String>,
        #[command(flatten)]
        sources: SourceFlags,
    },
    /// Show what a tool takes and gives
    Show {
        /// Its name: server.tool
        tool: String,
        #[command(flatten)]
        sources: SourceFlags,
    },
    /// Call a tool, without any model
    Call {
        /// Its name: server.tool
        tool: String,
        /// Its arguments as a JSON object
        #[arg(value_name = "JSON", default_value = "{}")]
        arguments: String,
        #[command(flatten)]
        flags: ToolFlags,
    },
    /// Add an MCP server to mcp.json and ask it for its tools
    #[command(after_help = "\
Examples:
  mote tools add time --reads '*' -- uvx mcp-server-time
  mote tools add git --trusted -- mcp-server-git --repository .")]
    Add(AddArgs),
    /// Start servers and ask for their tools; exit code 1 if one cannot be used
    Test {
        /// One server; all if not given
        server: Option<String>,
        #[command(flatten)]
        sources: SourceFlags,
    },
    /// Call the reading tools of a server once and keep an example of what each gives
    Learn {
        /// The server
        server: String,
        #[command(flatten)]
        sources: SourceFlags,
    },
    /// Show what each server's tools would cost a prompt
    Stats {
        /// The bundle whose tokens are counted; the default bundle, if there is one
        #[arg(long, value_name = "BUNDLE")]
        model: Option<String>,
        #[command(flatten)]
        sources: SourceFlags,
    },
}

pub(crate) fn run(command: ToolsCommand, globals: &Globals) -> Result<u8> {
    let out = &globals.out;
    let open = |sources| open(ToolFlags { sources, ..ToolFlags::default() }, globals);
    match command {
        ToolsCommand::List { sources } => list(open(sources)?.catalogue(), out),
        ToolsCommand::Search { query, count, model, sources } => {
            let anchor = anchor(model.as_deref(), globals)?;
            let runtime = open_with(ToolFlags { sources, ..ToolFlags::default() }, anchor, globals)?;
            search(&runtime, &query, count, out)
        }
        ToolsCommand::Show { tool, sources } => show(&find(open(sources)?.catalogue(), &tool)?, out),
        ToolsCommand::Call { tool, arguments, flags } => call(&tool, &arguments, flags, globals),
        ToolsCommand::Add(args) => add::add(&args, globals),
        ToolsCommand::Test { server, sources } => add::test(server.as_deref(), sources, globals),
        ToolsCommand::Learn { server, sources } => learn::learn(&server, sources, globals),
        ToolsCommand::Stats { model, sources } => stats::stats(model.as_deref(), sources, globals),
    }
}

/// Opens the tools that `flags` name, and tells what a person should know about them.
pub(crate) fn open(flags: ToolFlags, globals: &Globals) -> Result<ToolRuntime> {
    open_with(flags, None, globals)
}

fn open_with(flags: ToolFlags, anchor: Option<Anchor>, globals: &Globals) -> Result<ToolRuntime> {
    let options = ToolOptions { discovery: DISCOVERY, anchor, ..flags.options()? };
    let mut runtime = ToolRuntime::open(&globals.home, options, globals.cancel.clone())?;
    tell(&mut runtime, &globals.out);
    Ok(runtime)
}

/// The anchor of the bundle, without the model around it; none if no bundle is named and none is the default, or if it has none.
pub(crate) fn anchor(model: Option<&str>, globals: &Globals) -> Result<Option<Anchor>> {
    if model.is_none() && bundles::default_name(&globals.home)?.is_none() {
        return Ok(None);
    }
    let bundle = Bundle::open(&bundles::resolve(&globals.home, model)?)?;
    let anchor = Anchor::of(&bundle)?;
    if anchor.is_none() {
        globals.out.message(&format!("mote: no anchor is trained for this bundle: {}", bundle.manifest().name));
    }
    Ok(anchor)
}

fn call(tool: &str, arguments: &str, flags: ToolFlags, globals: &Globals) -> Result<u8> {
    let arguments = object(arguments)?;
    let mut runtime = open(flags, globals)?;
    let id = find(runtime.catalogue(), tool)?.id;
    let outcome = runtime.call(&id.server, &id.tool, &arguments);
    tell(&mut runtime, &globals.out);
    if outcome.truncated {
        globals.out.message(&format!("mote: the result was cut, in bytes: {}", outcome.bytes));
    }
    show_value(&outcome.result.map_err(error)?, &globals.out)
}

fn tell(runtime: &mut ToolRuntime, out: &Out) {
    for notice in runtime.notices() {
        out.message(&format!("mote: {notice}"));
    }
}

fn list(catalogue: &Catalogue, out: &Out) -> Result<u8> {
    if out.json() {
        let servers: Vec<Value> = catalogue.servers().iter().map(server_json).collect();
        out.object(&json!({"servers": servers, "n_tools": catalogue.n_tools(), "sha256": catalogue.sha256()}))?;
        return Ok(0);
    }
    let servers = catalogue.servers();
    let width = servers.iter().map(|server| server.name.len()).max().unwrap_or_default();
    for server in servers {
        let summary = if server.summary.is_empty() { &server.wire_name } else { &server.summary };
        out.line(&format!("{:width$}  {:>3} tools  {}{summary}", server.name, server.n_tools(), state(server)))?;
    }
    for server in servers.iter().filter(|server| server.n_tools() > 0) {
        out.line("")?;
        for tool in server.tools() {
            let mark = if tool.writes { " (writes)" } else { "" };
            out.line(&format!("{}{mark}: {}", tool.signature.line(), first_line(&tool.description)))?;
        }
    }
    Ok(0)
}

fn search(runtime: &ToolRuntime, query: &str, count: usize, out: &Out) -> Result<u8> {
    let candidates = runtime.index().search(query, count);
    if out.json() {
        let found: Vec<Value> =
            candidates.iter().map(|found| json!({"tool": found.tool.to_string(), "score": found.score})).collect();
        out.object(&found)?;
        return Ok(0);
    }
    if candidates.is_empty() {
        out.message("mote: no tool fits this");
    }
    for found in candidates {
        let tool = runtime.catalogue().tool(&found.tool.server, &found.tool.tool);
        let description = tool.as_ref().map(|tool| first_line(&tool.description)).unwrap_or_default();
        out.line(&format!("{:6.2}  {}: {description}", found.score, found.tool))?;
    }
    Ok(0)
}

fn show(tool: &ToolEntry, out: &Out) -> Result<u8> {
    if out.json() {
        let mut value = tool_json(tool);
        value["parameters"] = tool.parameters.clone();
        value["examples"] = tool
            .examples
            .iter()
            .map(|example| json!({"task": example.task, "program": example.program, "generated": example.generated}))
            .collect();
        value["result"] = tool.result_example.clone().unwrap_or_default();
        out.object(&value)?;
        return Ok(0);
    }
    out.line(&tool.signature.line())?;
    out.line(&tool.description)?;
    out.line(if tool.writes { "it may change something: asks before it runs" } else { "it only reads" })?;
    for param in &tool.signature.params {
        let said = tool.parameters.pointer(&format!("/properties/{}/description", param.wire_name));
        let need = if param.required { "" } else { " (optional)" };
        out.line(&format!("  {}{need}: {}", param.name, said.and_then(Value::as_str).unwrap_or("-")))?;
    }
    for example in &tool.examples {
        let origin = if example.generated { " (made from the schema)" } else { "" };
        out.line(&format!("\nTask{origin}: {}\n{}", example.task, example.program))?;
    }
    if let Some(result) = &tool.result_example {
        out.line(&format!("\nResult: {result}"))?;
    }
    Ok(0)
}

fn show_value(value: &Value, out: &Out) -> Result<u8> {
    match value {
        Value::String(text) if !out.json() => out.line(text)?,
        value if out.json() => out.object(value)?,
        value => out.line(&format!("{value:#}"))?,
    }
    Ok(0)
}

fn find(catalogue: &Catalogue, name: &str) -> Result<ToolEntry> {
    let found = ToolId::parse(name).and_then(|id| catalogue.tool(&id.server, &id.tool));
    found.ok_or_else(|| {
        Error::new(ErrorKind::Usage, format!("no such tool: {name}")).with_hint("see what there is: mote tools list")
    })
}

fn object(text: &str) -> Result<Map<String, Value>> {
    serde_json::from_str(text).map_err(|error| {
        Error::new(ErrorKind::Usage, format!("the arguments are no JSON object: {error}"))
            .with_hint("such as '{\"path\": \".\"}'")
    })
}

fn error(failure: ToolFailure) -> Error {
    let kind = if failure.kind == "cancelled" { ErrorKind::Cancelled } else { ErrorKind::Failed };
    let error = Error::new(kind, failure.message);
    match failure.hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

fn server_json(server: &Server) -> Value {
    let (state, why) = match &server.state {
        ServerState::Known => ("known", None),
        ServerState::Discovering => ("discovering", None),
        ServerState::Started => ("started", None),
        ServerState::Failed(why) => ("failed", Some(why)),
    };
    let command = match &server.kind {
        ServerKind::Pack => None,
        ServerKind::Mcp { command } => Some(command),
    };
    json!({
        "name": server.name, "wire_name": server.wire_name, "kind": if command.is_some() { "mcp" } else { "pack" },
        "command": command, "summary": server.summary, "state": state, "why": why,
        "tools": server.tools().map(|tool| tool_json(&tool)).collect::<Vec<_>>(),
    })
}

fn tool_json(tool: &ToolEntry) -> Value {
    json!({
        "tool": tool.id(), "wire_name": tool.wire_name, "signature": tool.signature.line(), "description": tool.description,
        "writes": tool.writes, "schema_sha256": tool.schema_sha256,
    })
}

fn state(server: &Server) -> &'static str {
    match server.state {
        ServerState::Discovering => "(not answered yet) ",
        ServerState::Failed(_) => "(cannot be used) ",
        ServerState::Known | ServerState::Started => "",
    }
}

fn first_line(text: &str) -> String {
    const MAX_CHARS: usize = 100;
    let mut chars = text.chars();
    let line: String = chars.by_ref().take(MAX_CHARS).collect();
    if chars.next().is_some() { format!("{line}..") } else { line }
}

/// Asks on the terminal; nobody is there to ask if either side is none.
pub(crate) fn asker() -> Option<Asker> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return None;
    }
    Some(Box::new(|question| {
        Out::new(false).partial(&format!("{} [y]es, [N]o, [a]lways, ne[v]er: ", plain(question)));
        let mut answer = String::new();
        if io::stdin().lock().read_line(&mut answer).is_err() {
            return Answer::No;
        }
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => Answer::Yes,
            "a" | "always" => Answer::Always,
            "v" | "never" => Answer::Never,
            _ => Answer::No,
        }
    }))
}
