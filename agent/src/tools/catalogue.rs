//! Everything known: servers, their tools, and what a prompt, a grammar and a policy need to know of them.
//!
//! Invariants: the names here are identifiers of the action language, unique within their scope; the names on the wire are kept beside
//! them. What a stranger wrote (names, descriptions, schemas) is bounded before it comes in. The catalogue starts nothing and calls
//! nothing; it is the same whether a server runs or not. A server's tools are one [`Segment`], made in memory or mapped from the
//! catalogue's file; a [`ToolEntry`] is read from it when it is asked for, so that ten thousand tools cost nothing until they are used.

mod entry;
mod file;
mod segment;

use std::collections::HashSet;

pub use entry::{Example, ToolDescription, ToolEntry, ToolId};
pub(crate) use entry::{paragraph, sha256, sha256_hex, unique};
pub(crate) use file::{Kept, Key, open, write};
pub(crate) use segment::{Document, Segment};

use super::learn::Results;
use super::retrieval::{Anchor, documents};

/// Tools of one server; more are left out with a notice.
const MAX_TOOLS: usize = 1000;

/// Characters of the line that says what a server is good for.
const MAX_SUMMARY_CHARS: usize = 200;

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

/// What is known of a server's tools when they are taken in.
pub(crate) struct Said<'a> {
    /// Its own line.
    pub(crate) summary: &'a str,
    /// Its tools, in its order.
    pub(crate) tools: Vec<ToolDescription>,
    /// What was learned of their results.
    pub(crate) learned: &'a Results,
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
    /// Of what its tools were made, if they may be kept; and by which anchor they were embedded.
    pub(crate) key: Option<Key>,
    pub(crate) anchor: Option<Key>,
    tools: Segment,
}

impl Server {
    /// A server that has not said yet what tools it has.
    pub fn new(name: impl Into<String>, wire_name: impl Into<String>, kind: ServerKind) -> Server {
        Server {
            name: name.into(),
            wire_name: wire_name.into(),
            summary: String::new(),
            kind,
            state: ServerState::Discovering,
            key: None,
            anchor: None,
            tools: Segment::default(),
        }
    }

    /// A server from a built-in pack.
    pub(crate) fn from_pack(pack: mote_toolpacks::Pack, anchor: Option<&Anchor>) -> Result<Server, String> {
        let mut server = Server::new(&pack.name, &pack.name, ServerKind::Pack);
        server.summary = pack.summary;
        let tools = pack.tools.into_iter().map(|tool| pack_tool(&pack.name, tool)).collect::<Result<Vec<_>, _>>()?;
        server.set(&tools, anchor);
        Ok(server)
    }

    /// Takes over what an MCP server says of itself; gives notices of what was left out. `writes` decides over each tool.
    pub(crate) fn describe(
        &mut self,
        said: Said<'_>,
        anchor: Option<&Anchor>,
        writes: &dyn Fn(&ToolDescription) -> bool,
    ) -> Vec<String> {
        let Said { summary, tools: descriptions, learned } = said;
        let mut notices = Vec::new();
        let mut taken = HashSet::new();
        let n_tools = descriptions.len();
        if n_tools > MAX_TOOLS {
            notices.push(format!("server {} has too many tools: limit {MAX_TOOLS}, used {n_tools}", self.name));
        }
        let mut tools = Vec::new();
        for said in descriptions.into_iter().take(MAX_TOOLS) {
            let writes = writes(&said);
            match ToolEntry::of(&self.name, said, writes, &mut taken) {
                Ok(mut tool) => {
                    learned.apply(&mut tool);
                    if !tool.wire_name.is_ascii() {
                        let called =
                            format!("a tool of server {} has other letters than programs can write", self.name);
                        notices.push(format!("{called} and is called {}: {}", tool.id, paragraph(&tool.wire_name)));
                    }
                    tools.push(tool);
                }
                Err(why) => notices.push(format!("a tool of server {} is left out: {why}", self.name)),
            }
        }
        self.set(&tools, anchor);
        self.summary = paragraph(summary).chars().take(MAX_SUMMARY_CHARS).collect();
        if self.summary.is_empty() {
            const MAX_NAMES: usize = 8;
            self.summary = self.tool_names().take(MAX_NAMES).collect::<Vec<_>>().join(", ");
        }
        self.state = ServerState::Known;
        notices
    }

    /// Takes over what was kept of it.
    pub(crate) fn restore(&mut self, kept: Kept, anchor: Option<&Anchor>) {
        self.summary = kept.summary;
        (self.anchor, self.tools) = (kept.anchor, kept.segment);
        self.state = ServerState::Known;
        self.key = Some(kept.key);
        if anchor.is_some_and(|anchor| self.anchor != Some(*anchor.sha256())) {
            let tools: Vec<ToolEntry> = self.tools().collect();
            self.set(&tools, anchor);
        }
    }

    /// What is to be kept of it; nothing if it may not.
    pub(crate) fn kept(&self) -> Option<Kept> {
        let (summary, segment) = (self.summary.clone(), self.tools.clone());
        Some(Kept { key: self.key?, anchor: self.anchor, summary, segment })
    }

    /// Replaces its tools, such as with ones that know more of themselves.
    pub(crate) fn set(&mut self, tools: &[ToolEntry], anchor: Option<&Anchor>) {
        self.tools = Segment::encode(tools, &documents(&self.wire_name, tools, anchor));
        self.anchor = anchor.filter(|anchor| self.tools.dim() == anchor.dim()).map(|anchor| *anchor.sha256());
    }

    /// How many tools it has.
    pub fn n_tools(&self) -> usize {
        self.tools.n_tools()
    }

    /// The names of its tools in the action language, in its order.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        (0..self.n_tools()).map(|idx| self.tools.name(idx))
    }

    /// Its tools, in its order; one whose record is damaged is left out.
    pub fn tools(&self) -> impl Iterator<Item = ToolEntry> {
        (0..self.n_tools()).filter_map(|idx| self.tools.entry(&self.name, idx))
    }

    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<ToolEntry> {
        self.tools.entry(&self.name, self.tools.position(name)?)
    }

    /// What is searched.
    pub(crate) fn segment(&self) -> &Segment {
        &self.tools
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
    pub fn tool(&self, server: &str, tool: &str) -> Option<ToolEntry> {
        self.server(server)?.tool(tool)
    }

    /// Whether there is a tool of this name.
    pub fn has(&self, id: &ToolId) -> bool {
        self.server(&id.server).is_some_and(|server| server.segment().position(&id.tool).is_some())
    }

    /// Every tool, server by server.
    pub fn tools(&self) -> impl Iterator<Item = ToolEntry> {
        self.servers.iter().flat_map(Server::tools)
    }

    /// How many tools there are.
    pub fn n_tools(&self) -> usize {
        self.servers.iter().map(Server::n_tools).sum()
    }

    /// The hash of all names, schemas and rights: equal catalogues offer equal tools.
    pub fn sha256(&self) -> String {
        sha256_hex(self.servers.iter().flat_map(|server| [server.name.as_bytes(), server.tools.offer()]))
    }
}

fn pack_tool(pack: &str, tool: mote_toolpacks::Tool) -> Result<ToolEntry, String> {
    let said = ToolDescription {
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters,
        read_only_hint: !tool.writes,
    };
    let mut entry = ToolEntry::of(pack, said, tool.writes, &mut HashSet::new())?;
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

#[cfg(test)]
mod tests;
