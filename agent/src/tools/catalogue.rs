//! Everything known: servers, their tools, and what a prompt, a grammar and a policy need to know of them.
//!
//! Invariants: the names here are identifiers of the action language, unique within their scope; the names on the wire are kept beside
//! them. What a stranger wrote (names, descriptions, schemas) is bounded before it comes in. The catalogue starts nothing and calls
//! nothing; it is the same whether a server runs or not.

use std::collections::HashSet;
use std::fmt;

use mote_script::Signature;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::example;

/// Tools of one server; more are left out with a notice.
const MAX_TOOLS: usize = 1000;

/// Characters of a description that are kept.
const MAX_DESCRIPTION_CHARS: usize = 1000;

/// Bytes of a JSON Schema: a bigger one has no place in a small prompt.
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// Characters of a name on the wire.
const MAX_NAME_CHARS: usize = 128;

/// A tool's name in the action language, `server.tool`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ToolId {
    /// The part before the dot.
    pub server: String,
    /// The part after the dot.
    pub tool: String,
}

impl ToolId {
    /// An id from its parts.
    pub fn new(server: impl Into<String>, tool: impl Into<String>) -> ToolId {
        ToolId { server: server.into(), tool: tool.into() }
    }

    /// Takes `server.tool` apart; the wire's `server__tool` is understood too.
    pub fn parse(text: &str) -> Option<ToolId> {
        let (server, tool) = text.split_once('.').or_else(|| text.split_once("__"))?;
        (!server.is_empty() && !tool.is_empty()).then(|| ToolId::new(server, tool))
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.server, self.tool)
    }
}

/// A worked example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// As a person would ask.
    pub task: String,
    /// In the action language, ending in `answer(..)`.
    pub program: String,
    /// Made from the schema, because nobody wrote one.
    pub generated: bool,
}

/// What a server says of one of its tools; the form in which it is cached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDescription {
    /// The name on the wire.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
    /// The server's word that it changes nothing.
    pub read_only_hint: bool,
}

impl ToolDescription {
    /// The hash of all that a server says of the tool and that is shown of it: what changes it, changes the tool.
    pub fn sha256(&self) -> String {
        let hint = if self.read_only_hint { "reads" } else { "" };
        let description = paragraph(&self.description);
        sha256_hex([&self.name, &description, &self.parameters.to_string(), hint].map(str::as_bytes))
    }
}

/// One tool.
#[derive(Clone, Debug)]
pub struct ToolEntry {
    /// Its name in the action language.
    pub id: ToolId,
    /// Its name for its server.
    pub wire_name: String,
    /// Its arguments, as the action language has them.
    pub signature: Signature,
    /// What it does, in one paragraph.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
    /// Whether a call changes anything outside the program, as far as can be trusted.
    pub writes: bool,
    /// Worked examples, the most typical first; at least one.
    pub examples: Vec<Example>,
    /// A result as the tool gives it.
    pub result_example: Option<Value>,
    /// The hash of what its server says of it.
    pub schema_sha256: String,
}

impl ToolEntry {
    /// `server.tool`.
    pub fn id(&self) -> String {
        self.id.to_string()
    }

    /// What is said of its parameters, in order, where something is.
    pub fn parameter_descriptions(&self) -> Vec<&str> {
        let properties = self.parameters.get("properties").and_then(Value::as_object);
        properties.into_iter().flat_map(|all| all.values()).filter_map(|one| one.get("description")?.as_str()).collect()
    }

    /// The names of its parameters, in order.
    pub fn parameter_names(&self) -> Vec<&str> {
        let properties = self.parameters.get("properties").and_then(Value::as_object);
        properties.map(|properties| properties.keys().map(String::as_str).collect()).unwrap_or_default()
    }
}

/// What stands behind a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// A pack built into mote.
    Pack,
    /// A process that speaks MCP.
    Mcp {
        /// The command line, for people.
        command: String,
    },
}

/// How far a server has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// Its tools are known; it need not run.
    Known,
    /// It has not said yet what tools it has.
    Discovering,
    /// It runs.
    Started,
    /// It can't be used; why.
    Failed(String),
}

/// One server with its tools.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its name in the action language.
    pub name: String,
    /// Its name in `mcp.json`, or of the pack.
    pub wire_name: String,
    /// One line: what it is good for.
    pub summary: String,
    /// What stands behind it.
    pub kind: ServerKind,
    /// How far it has come.
    pub state: ServerState,
    /// Its tools, in its order.
    pub tools: Vec<ToolEntry>,
}

impl Server {
    /// A server from a built-in pack.
    pub(crate) fn from_pack(pack: mote_toolpacks::Pack) -> Result<Server, String> {
        let tools = pack.tools.into_iter().map(|tool| pack_tool(&pack.name, tool)).collect::<Result<_, _>>()?;
        let (kind, state) = (ServerKind::Pack, ServerState::Known);
        Ok(Server { wire_name: pack.name.clone(), name: pack.name, summary: pack.summary, kind, state, tools })
    }

    /// Takes over what an MCP server says of itself; gives notices of what was left out. `writes` decides over each tool.
    pub(crate) fn describe(
        &mut self,
        summary: &str,
        descriptions: Vec<ToolDescription>,
        writes: &dyn Fn(&ToolDescription) -> bool,
    ) -> Vec<String> {
        let mut notices = Vec::new();
        let mut taken = HashSet::new();
        let n_tools = descriptions.len();
        if n_tools > MAX_TOOLS {
            notices.push(format!("server {} has too many tools: limit {MAX_TOOLS}, used {n_tools}", self.name));
        }
        self.tools.clear();
        for description in descriptions.into_iter().take(MAX_TOOLS) {
            match bounded(description).and_then(|said| Ok((signature(&self.name, &said)?, said))) {
                Ok((mut signature, said)) => {
                    signature.name = unique(signature.name, &mut taken);
                    let writes = writes(&said);
                    self.tools.push(entry(signature, said, writes));
                }
                Err(why) => notices.push(format!("a tool of server {} is left out: {why}", self.name)),
            }
        }
        self.summary = if summary.is_empty() { self.tool_names() } else { summary.to_owned() };
        self.state = ServerState::Known;
        notices
    }

    fn tool_names(&self) -> String {
        const MAX_NAMES: usize = 8;
        let names: Vec<&str> = self.tools.iter().take(MAX_NAMES).map(|tool| tool.id.tool.as_str()).collect();
        names.join(", ")
    }
}

/// Every server that mote knows.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    servers: Vec<Server>,
}

impl Catalogue {
    /// A catalogue of these servers; their names are to be unique.
    pub fn new(servers: Vec<Server>) -> Catalogue {
        Catalogue { servers }
    }

    /// The servers: packs first, then those of `mcp.json` in its order.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The server of this name.
    pub fn server(&self, name: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.name == name)
    }

    pub(crate) fn server_mut(&mut self, name: &str) -> Option<&mut Server> {
        self.servers.iter_mut().find(|server| server.name == name)
    }

    /// The tool of this name.
    pub fn tool(&self, server: &str, tool: &str) -> Option<&ToolEntry> {
        self.server(server)?.tools.iter().find(|entry| entry.id.tool == tool)
    }

    /// Every tool, server by server.
    pub fn tools(&self) -> impl Iterator<Item = &ToolEntry> {
        self.servers.iter().flat_map(|server| &server.tools)
    }

    /// How many tools there are.
    pub fn n_tools(&self) -> usize {
        self.servers.iter().map(|server| server.tools.len()).sum()
    }

    /// The hash of all names and schemas: equal catalogues offer equal tools.
    pub fn sha256(&self) -> String {
        let tools: Vec<String> =
            self.tools().map(|tool| format!("{} {} {}", tool.id, tool.schema_sha256, tool.writes)).collect();
        sha256_hex(tools.iter().map(String::as_bytes))
    }
}

/// SHA-256 over parts, each preceded by its length so that no two lists of parts give the same input.
pub(crate) fn sha256_hex<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `name`, or `name_2` and so on if it is taken.
pub(crate) fn unique(name: String, taken: &mut HashSet<String>) -> String {
    let mut candidate = name.clone();
    let mut number = 2usize;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{name}_{number}");
        number += 1;
    }
    candidate
}

fn pack_tool(pack: &str, tool: mote_toolpacks::Tool) -> Result<ToolEntry, String> {
    let said = ToolDescription {
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters,
        read_only_hint: !tool.writes,
    };
    let mut entry = entry(signature(pack, &said)?, said, tool.writes);
    if !tool.examples.is_empty() {
        let written = |example: mote_toolpacks::Example| Example {
            task: example.task,
            program: example.program,
            generated: false,
        };
        entry.examples = tool.examples.into_iter().map(written).collect();
    }
    entry.result_example = tool.result;
    Ok(entry)
}

fn signature(server: &str, said: &ToolDescription) -> Result<Signature, String> {
    Signature::from_json_schema(server, &said.name, &said.description, &said.parameters)
        .map_err(|error| error.to_string())
}

fn entry(signature: Signature, said: ToolDescription, writes: bool) -> ToolEntry {
    let schema_sha256 = said.sha256();
    let examples = vec![example::generate(&signature, &said)];
    let id = ToolId::new(&signature.server, &signature.name);
    let ToolDescription { name, description, parameters, .. } = said;
    ToolEntry {
        id,
        wire_name: name,
        signature,
        description,
        parameters,
        writes,
        examples,
        result_example: None,
        schema_sha256,
    }
}

/// Refuses what is too big to be of use and makes a description one bounded paragraph.
fn bounded(mut said: ToolDescription) -> Result<ToolDescription, String> {
    let n_chars = said.name.chars().count();
    if n_chars == 0 || n_chars > MAX_NAME_CHARS {
        return Err(format!(
            "its name has a length that cannot be used, in characters: limit {MAX_NAME_CHARS}, used {n_chars}"
        ));
    }
    let n_bytes = said.parameters.to_string().len();
    if n_bytes > MAX_SCHEMA_BYTES {
        return Err(format!(
            "the schema of {} is too big, in bytes: limit {MAX_SCHEMA_BYTES}, used {n_bytes}",
            said.name
        ));
    }
    said.description = paragraph(&said.description);
    Ok(said)
}

/// A description as one bounded paragraph.
fn paragraph(description: &str) -> String {
    let words: Vec<&str> =
        description.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(MAX_DESCRIPTION_CHARS).collect()
}
