//! `mote tools add` and `mote tools test`: servers into `mcp.json`, and whether they can be used.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use super::{SourceFlags, ToolFlags, open, tell};
use crate::cli::Globals;
use crate::error::{Error, ErrorKind, Result};
use crate::text_file::TextFile;
use crate::tools::{ServerKind, mcp};

/// What an existing `mcp.json` may take.
const SERVERS: TextFile =
    TextFile { what: "the servers' file", max_bytes: 1 << 20, kind: ErrorKind::Configuration, hint: None };

#[derive(Args, Debug)]
pub(crate) struct AddArgs {
    /// What to call it; it is also the part before the dot in programs
    name: String,
    /// The program and its arguments, best after --
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// A variable of its environment; "${TOKEN}" is taken from ours when it starts
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Tools that change nothing: "get_*"; may be given several times
    #[arg(long, value_name = "PATTERN")]
    reads: Vec<String>,
    /// Believe what the server says of which tools change nothing
    #[arg(long)]
    trusted: bool,
    /// Replace an entry of this name
    #[arg(long)]
    replace: bool,
    /// The file of MCP servers [default: mcp.json in the configuration folder]
    #[arg(long, value_name = "FILE")]
    mcp: Option<PathBuf>,
}

pub(super) fn add(args: &AddArgs, globals: &Globals) -> Result<u8> {
    let path = args.mcp.clone().unwrap_or_else(|| globals.home.mcp_json());
    let mut file = match path.try_exists() {
        Ok(true) => {
            let text = SERVERS.read(&path, &globals.cancel)?;
            serde_json::from_str(text.trim_start_matches('\u{feff}'))
                .map_err(|error| broken(&path, &format!("it does not parse: {error}")))?
        }
        _ => json!({}),
    };
    let servers = file
        .as_object_mut()
        .map(|file| file.entry("mcpServers").or_insert_with(|| json!({})))
        .and_then(Value::as_object_mut)
        .ok_or_else(|| broken(&path, "mcpServers is no object"))?;
    if servers.contains_key(&args.name) && !args.replace {
        return Err(Error::new(ErrorKind::Usage, format!("there is a server of this name: {}", args.name))
            .with_hint("choose another name, or give --replace"));
    }
    servers.insert(args.name.clone(), entry(args)?);
    let text = format!("{file:#}\n");
    mcp::parse(&text, &|name| std::env::var(name).ok())?;
    write(&path, &text)?;
    let name = mote_script::identifier(&args.name);
    test(Some(&name), SourceFlags { mcp: Some(path), ..SourceFlags::default() }, globals)
}

fn entry(args: &AddArgs) -> Result<Value> {
    let mut env = Map::new();
    for pair in &args.env {
        let (name, value) = pair
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| Error::new(ErrorKind::Usage, format!("not of the form NAME=VALUE: {pair}")))?;
        env.insert(name.to_owned(), Value::from(value));
    }
    let (command, arguments) = args.command.split_first().ok_or_else(|| Error::new(ErrorKind::Usage, "no command"))?;
    let mut entry = Map::from_iter([("command".to_owned(), json!(command)), ("args".to_owned(), json!(arguments))]);
    if !env.is_empty() {
        entry.insert("env".into(), Value::Object(env));
    }
    if !args.reads.is_empty() {
        entry.insert("reads".into(), json!(args.reads));
    }
    if args.trusted {
        entry.insert("trusted".into(), json!(true));
    }
    Ok(Value::Object(entry))
}

/// Replaces the file whole, behind a link if it is one; readable by its owner only where it is new, since it may hold secrets.
fn write(path: &Path, text: &str) -> Result<()> {
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = fs::create_dir_all(folder).and_then(|()| {
        let fresh = tempfile::NamedTempFile::new_in(folder)?;
        fs::write(fresh.path(), text)?;
        if let Ok(old) = fs::metadata(&place) {
            fs::set_permissions(fresh.path(), old.permissions())?;
        }
        fresh.as_file().sync_all()?;
        fresh.persist(&place).map_err(|error| error.error)?;
        Ok(())
    });
    written.map_err(|error| broken(path, &format!("it cannot be written: {error}")))
}

fn broken(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Configuration, format!("the servers' file cannot be changed ({why}): {}", path.display()))
}

/// Starts a server, or each, asks for its tools and stops it again; exit code 1 if one of them cannot be used.
pub(super) fn test(name: Option<&str>, sources: SourceFlags, globals: &Globals) -> Result<u8> {
    let out = &globals.out;
    let mut runtime = open(ToolFlags { sources, ..ToolFlags::default() }, globals)?;
    let all = runtime.catalogue().servers().iter();
    let names: Vec<(String, bool)> = all
        .filter(|server| name.is_none_or(|name| server.name == name || server.wire_name == name))
        .map(|server| (server.name.clone(), server.kind == ServerKind::Pack))
        .collect();
    if names.is_empty() {
        return Err(Error::new(ErrorKind::Usage, format!("no such server: {}", name.unwrap_or("-")))
            .with_hint("see what there is: mote tools list"));
    }
    let mut n_failed = 0;
    for (name, is_pack) in names {
        let tested = if is_pack { Ok(Duration::ZERO) } else { runtime.probe(&name) };
        tell(&mut runtime, out);
        let n_tools = runtime.catalogue().server(&name).map_or(0, crate::tools::Server::n_tools);
        let ms = tested.as_ref().map_or(0, |took| took.as_millis());
        n_failed += u8::from(tested.is_err());
        let why = tested.err();
        if out.json() {
            out.object(&json!({"server": name, "ok": why.is_none(), "tools": n_tools, "ms": ms, "why": why}))?;
        } else if let Some(why) = why {
            out.line(&format!("{name}: cannot be used: {why}"))?;
        } else if is_pack {
            out.line(&format!("{name}: built in, {n_tools} tools"))?;
        } else {
            out.line(&format!("{name}: ok, {n_tools} tools, answered in {ms} ms"))?;
        }
        if globals.cancel.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled"));
        }
    }
    Ok(u8::from(n_failed > 0))
}
