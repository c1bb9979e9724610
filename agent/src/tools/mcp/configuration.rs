//! `mcp.json`, read as other clients read it, with a few keys of ours.
//!
//! ```json
//! {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"], "env": {"KEY": "${KEY}"}, "reads": ["*"]}}}
//! ```
//! Unknown keys are left alone, ours are optional: `enabled`, `keep` (not stopped when idle), `trusted` (its `readOnlyHint`s are
//! believed), `reads` (patterns of tools that change nothing), `startup_timeout_secs`, `tool_timeout_secs`, `idle_timeout_secs`,
//! `max_memory_mib`, `sandbox` (what it may reach beside its own). `${NAME}`, `${NAME:-default}` and `${env:NAME}` in strings are taken from our environment, `${file:PATH}` from a
//! file, so that no secret need stand here; what is known to be a secret is never shown. A server that cannot be used (a `url`, a
//! missing variable) is left out with a notice; a file that does not parse is an error, because nothing in it can be believed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::secret::{self, Secret};
use crate::cancel::Cancel;
use crate::error::{Error, ErrorKind, Result};
use crate::text_file::TextFile;

/// A configuration is written by people; no honest one comes near this size.
const SERVERS: TextFile = TextFile {
    what: "the servers' file",
    max_bytes: 1 << 20,
    kind: ErrorKind::Configuration,
    hint: Some("such a file has {\"mcpServers\": {\"NAME\": {\"command\": \"PROGRAM\", \"args\": []}}}"),
};

/// Servers in one file.
const MAX_SERVERS: usize = 512;

/// One server as configured, ready to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServer {
    /// The key under `mcpServers`.
    pub name: String,
    /// The program, looked up in `PATH`.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// What it gets of an environment beside the few variables that every server gets.
    pub env: BTreeMap<String, String>,
    /// Where it runs; the working folder of mote if not given.
    pub cwd: Option<PathBuf>,
    /// Whether it stays alive when idle.
    pub keep: bool,
    /// Whether its `readOnlyHint` is believed.
    pub trusted: bool,
    /// Patterns of tools that change nothing, as the person says: `"*"` or `"get_*"`.
    pub reads: Vec<String>,
    /// How long it may take until it is ready.
    pub startup_timeout_secs: Option<u64>,
    /// How long one call may take.
    pub tool_timeout_secs: Option<u64>,
    /// How long it may be of no use before it is stopped.
    pub idle_timeout_secs: Option<u64>,
    /// What it and all that it starts may take of the machine's memory.
    pub max_memory_mib: Option<u64>,
    /// What it may reach beside what it takes to run.
    pub sandbox: SandboxEntry,
    /// What is never shown, and what is shown in its place.
    pub secrets: Vec<Secret>,
}

/// What a server may reach beside what it takes to run: paths from the folder in which it runs, `~/` is the home folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxEntry {
    /// Folders and files that it may read.
    pub read: Vec<String>,
    /// Folders and files that it may change.
    pub write: Vec<String>,
    /// Whether it may open sockets; if not given, in mode `auto` only.
    pub network: Option<bool>,
}

/// What a file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpConfiguration {
    /// The usable servers, in the order of the file.
    pub servers: Vec<McpServer>,
    /// What was left out, and why.
    pub notices: Vec<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with the key mcpServers")]
struct FileEntry {
    #[serde(rename = "mcpServers")]
    servers: serde_json::Map<String, serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with the key mcpServers")]
struct FileShape {
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, ServerEntry>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object with the key command")]
struct ServerEntry {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    enabled: Option<bool>,
    disabled: Option<bool>,
    #[serde(default)]
    keep: bool,
    #[serde(default)]
    trusted: bool,
    #[serde(default)]
    reads: Vec<String>,
    startup_timeout_secs: Option<u64>,
    tool_timeout_secs: Option<u64>,
    idle_timeout_secs: Option<u64>,
    max_memory_mib: Option<u64>,
    #[serde(default)]
    sandbox: SandboxEntry,
}

/// Reads a file.
///
/// # Errors
/// [`ErrorKind::Configuration`] with line and column when it cannot be read, is over a megabyte, does not parse, or an entry has the
/// wrong shape; `Cancelled`.
pub fn read(path: &Path, cancel: &Cancel) -> Result<McpConfiguration> {
    let text = SERVERS.read(path, cancel)?;
    parse(&text, &|name| std::env::var(name).ok())
        .map_err(|error| error.with_hint(format!("correct {} and try again", path.display())))
}

/// Parses the text of a file; `variable` gives the values of environment variables.
///
/// # Errors
/// As [`read`], without the path.
pub fn parse(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<McpConfiguration> {
    let text = text.trim_start_matches('\u{feff}');
    let broken = |error: serde_json::Error| {
        let cause = error.to_string();
        let cause = cause.split(" at line ").next().unwrap_or_default();
        configuration(format!(
            "the servers' file does not parse, line {}, column {}: {cause}",
            error.line(),
            error.column()
        ))
    };
    let shape: FileShape = serde_json::from_str(text).map_err(broken)?;
    let order: FileEntry = serde_json::from_str(text).map_err(broken)?;
    if shape.servers.len() > MAX_SERVERS {
        let message = format!("too many servers in the file: limit {MAX_SERVERS}, used {}", shape.servers.len());
        return Err(configuration(message));
    }
    let mut entries = shape.servers;
    let mut configuration = McpConfiguration::default();
    for name in order.servers.keys() {
        let Some(entry) = entries.remove(name) else { continue };
        if entry.enabled == Some(false) || entry.disabled == Some(true) {
            continue;
        }
        match entry.build(name, variable) {
            Ok(server) => configuration.servers.push(server),
            Err(why) => configuration.notices.push(format!("server {name} is left out: {why}")),
        }
    }
    Ok(configuration)
}

impl ServerEntry {
    fn build(self, name: &str, variable: &dyn Fn(&str) -> Option<String>) -> std::result::Result<McpServer, String> {
        if let Some(url) = self.url {
            return Err(format!("servers behind a url are not supported yet, only a command: {url}"));
        }
        let mut secrets = Vec::new();
        let mut expand = |text: String| expand(&text, variable, &mut secrets);
        let command = self.command.filter(|command| !command.trim().is_empty()).ok_or("it has no command")?;
        let command = expand(command)?;
        let args = self.args.into_iter().map(&mut expand).collect::<Expanded<_>>()?;
        let cwd = self.cwd.map(&mut expand).transpose()?.map(PathBuf::from);
        let env = self.env.into_iter().map(|(key, value)| Ok((key, expand(value)?)));
        let env: BTreeMap<String, String> = env.collect::<Expanded<_>>()?;
        if let Some(key) = env.keys().find(|key| key.is_empty() || key.contains(['=', '\0'])) {
            return Err(format!("it sets what can be no variable: {key:?}"));
        }
        secrets.extend(
            env.iter().filter(|(key, _)| secret::is_secret_name(key)).map(|(key, value)| Secret::new(value, key)),
        );
        Ok(McpServer {
            name: name.to_owned(),
            command,
            args,
            env,
            cwd,
            keep: self.keep,
            trusted: self.trusted,
            reads: self.reads,
            startup_timeout_secs: self.startup_timeout_secs,
            tool_timeout_secs: self.tool_timeout_secs,
            idle_timeout_secs: self.idle_timeout_secs,
            max_memory_mib: self.max_memory_mib,
            sandbox: self.sandbox,
            secrets: secrets.into_iter().flatten().collect(),
        })
    }
}

impl McpServer {
    /// `text` with the names of secrets in their places.
    pub(crate) fn without_secrets(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| secret.hide(&text))
    }
}

type Expanded<T> = std::result::Result<T, String>;

/// Puts the values of variables and files in; what only looks like one (`${`) is left as it is. What is a secret is noted.
fn expand(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
    secrets: &mut Vec<Option<Secret>>,
) -> Expanded<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, behind)) = after.split_once('}') else { break };
        let (name, default) = inside.split_once(":-").map_or((inside, None), |(name, default)| (name, Some(default)));
        let name = name.strip_prefix("env:").unwrap_or(name);
        let value = match name.strip_prefix("file:") {
            Some(path) => Some(secret::read(path)?),
            None => variable(name),
        };
        out.push_str(before);
        match (value, default) {
            (Some(value), _) => {
                out.push_str(&value);
                if name.starts_with("file:") || secret::is_secret_name(name) {
                    secrets.push(Secret::new(&value, name));
                }
            }
            (None, Some(default)) => out.push_str(default),
            (None, None) => return Err(format!("a variable that it needs is not set: {name}")),
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

fn configuration(message: String) -> Error {
    Error::new(ErrorKind::Configuration, message)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: Expect) {
        let variable = |name: &str| (name == "KEY").then(|| "a secret".to_owned());
        let shown = match parse(text, &variable) {
            Ok(configuration) => format!("{configuration:#?}"),
            Err(error) => format!("exit {}: {error}", error.exit_code()),
        };
        expected.assert_eq(&shown);
    }

    #[test]
    fn a_file_of_another_client_is_read() {
        let text = "\u{feff}{\"mcpServers\": {
            \"zulu\": {\"type\": \"stdio\", \"command\": \"uvx\", \"args\": [\"a\", \"${HOME_OF_ZULU:-/tmp}/x\"], \"env\": {\"K\": \"${env:KEY}\"}},
            \"alpha\": {\"command\": \"b\", \"reads\": [\"*\"], \"trusted\": true, \"keep\": true, \"tool_timeout_secs\": 3, \"cwd\": \"/tmp\", \"alwaysAllow\": []},
            \"off\": {\"command\": \"c\", \"disabled\": true},
            \"web\": {\"url\": \"https://example.org/mcp\"},
            \"poor\": {\"command\": \"d\", \"env\": {\"K\": \"${MISSING}\"}},
            \"empty\": {}
        }, \"other\": 1}";
        check(
            text,
            expect![[r#"
                McpConfiguration {
                    servers: [
                        McpServer {
                            name: "zulu",
                            command: "uvx",
                            args: [
                                "a",
                                "/tmp/x",
                            ],
                            env: {
                                "K": "a secret",
                            },
                            cwd: None,
                            keep: false,
                            trusted: false,
                            reads: [],
                            startup_timeout_secs: None,
                            tool_timeout_secs: None,
                            idle_timeout_secs: None,
                            max_memory_mib: None,
                            sandbox: SandboxEntry {
                                read: [],
                                write: [],
                                network: None,
                            },
                            secrets: [
                                ${KEY},
                            ],
                        },
                        McpServer {
                            name: "alpha",
                            command: "b",
                            args: [],
                            env: {},
                            cwd: Some(
                                "/tmp",
                            ),
                            keep: true,
                            trusted: true,
                            reads: [
                                "*",
                            ],
                            startup_timeout_secs: None,
                            tool_timeout_secs: Some(
                                3,
                            ),
                            idle_timeout_secs: None,
                            max_memory_mib: None,
                            sandbox: SandboxEntry {
                                read: [],
                                write: [],
                                network: None,
                            },
                            secrets: [],
                        },
                    ],
                    notices: [
                        "server web is left out: servers behind a url are not supported yet, only a command: https://example.org/mcp",
                        "server poor is left out: a variable that it needs is not set: MISSING",
                        "server empty is left out: it has no command",
                    ],
                }"#]],
        );
    }

    #[test]
    fn what_does_not_parse_names_the_place() {
        check("", expect!["exit 78: the servers' file does not parse, line 1, column 0: EOF while parsing a value"]);
        check(
            "{\"mcpServers\": {\"a\": {\"command\": \"b\",}}}",
            expect!["exit 78: the servers' file does not parse, line 1, column 38: trailing comma"],
        );
        check(
            "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"b\", \"args\": [1]}\n  }\n}",
            expect![
                "exit 78: the servers' file does not parse, line 3, column 36: invalid type: integer `1`, expected a string"
            ],
        );
        check(
            "{\"servers\": {}}",
            expect!["exit 78: the servers' file does not parse, line 1, column 15: missing field `mcpServers`"],
        );
        check(
            "[]",
            expect![
                "exit 78: the servers' file does not parse, line 1, column 2: invalid length 0, expected an object with the key mcpServers"
            ],
        );
        check(
            "{\"mcpServers\": {\"a\": {\"command\": \"b\"",
            expect!["exit 78: the servers' file does not parse, line 1, column 36: EOF while parsing an object"],
        );
        check(
            &"[".repeat(100_000),
            expect![
                "exit 78: the servers' file does not parse, line 1, column 1: invalid type: sequence, expected a map"
            ],
        );
    }
}
