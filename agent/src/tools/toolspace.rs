//! Toolspaces on disk: catalogues and queries as JSON Lines, to measure retrieval on.
//!
//! `NAME.catalogue.jsonl` has one tool a line (`server`, `tool`, `description`, `parameters`); every other `NAME.*.jsonl` has one query a
//! line (`query`, `gold`: a list of `server.tool`, optionally `split`). `packs.*.jsonl` asks for tools of the built-in packs. Nothing here
//! is ever called.

mod made_up;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::catalogue::{Catalogue, Said, Server, ServerKind, ToolDescription, ToolId, unique};
use super::learn::Results;
use super::mcp::{self, Listing, Manifests};
use super::retrieval::Anchor;
use crate::cancel::Cancel;
use crate::error::{Error, ErrorKind, Result};
use crate::home::Home;

const CATALOGUE_ENDING: &str = ".catalogue.jsonl";

/// The toolspace whose catalogue is the built-in packs: it needs no file of one.
const PACKS: &str = "packs";

/// Tools of a made-up machine.
const TOOLS_OF_A_MACHINE: usize = 33;

/// Bytes of one file: a hundred thousand tools or a quarter million queries.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Tools that one server of a made-up toolspace is to have at most: that of a catalogue.
const MAX_PER_SERVER: usize = 1000;

/// Steps through the real tools by which made-up ones are put together.
const STEPS: [usize; 3] = [7919, 104_729, 1_299_709];

/// A tool of a catalogue file.
#[derive(Clone, Debug, Deserialize)]
pub struct Tool {
    server: String,
    tool: String,
    description: String,
    parameters: Value,
}

/// What a catalogue is filled up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filling {
    /// The tools of the other toolspaces, then ones mixed from them: many of them answer the queries, too.
    Public,
    /// Made-up machines: none of them answers a query.
    Machines,
}

/// A query and what it wants.
#[derive(Clone, Debug, Deserialize)]
pub struct Query {
    /// As a person asks.
    pub query: String,
    /// The tools that are wanted, `server.tool` as in the catalogue.
    pub gold: Vec<String>,
    /// Which part of the queries it belongs to, if they are divided.
    pub split: Option<String>,
}

/// A catalogue file and the query files beside it.
#[derive(Clone, Debug)]
pub struct Toolspace {
    /// The beginning of its files' names.
    pub name: String,
    tools: Vec<Tool>,
    query_files: Vec<PathBuf>,
}

/// A catalogue made of a file, with the tools by their names in that file.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The catalogue.
    pub catalogue: Catalogue,
    /// Its tools by `server.tool` of the file.
    pub by_name: HashMap<String, ToolId>,
    /// What was left out.
    pub notices: Vec<String>,
}

impl Toolspace {
    /// Every toolspace of a folder, by name.
    ///
    /// # Errors
    /// `Usage` if the folder cannot be read, has no catalogue, or a line is not of the form above.
    pub fn all(folder: &Path) -> Result<Vec<Toolspace>> {
        let cannot =
            |error| Error::new(ErrorKind::Usage, format!("the folder cannot be read: {}: {error}", folder.display()));
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(cannot)? {
            names.extend(entry.map_err(cannot)?.file_name().into_string());
        }
        names.sort();
        let mut found = Vec::new();
        let packs = names.iter().any(|name| name.starts_with(&format!("{PACKS}."))).then_some(PACKS);
        for name in names.iter().filter_map(|name| name.strip_suffix(CATALOGUE_ENDING)).chain(packs) {
            let beside = names.iter().filter(|file| {
                file.strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".jsonl") && rest != CATALOGUE_ENDING)
            });
            let query_files = beside.map(|file| folder.join(file)).collect();
            let catalogue = folder.join(format!("{name}{CATALOGUE_ENDING}"));
            let tools = if name == PACKS { Vec::new() } else { lines(&catalogue)? };
            found.push(Toolspace { name: name.to_owned(), tools, query_files });
        }
        if found.is_empty() {
            let message = format!("no file ends in {CATALOGUE_ENDING}: {}", folder.display());
            return Err(Error::new(ErrorKind::Usage, message));
        }
        Ok(found)
    }

    /// The queries of each file, by the file's name.
    ///
    /// # Errors
    /// `Usage` if a file cannot be read.
    pub fn queries(&self) -> Result<Vec<(String, Vec<Query>)>> {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.query_files.iter().map(|path| Ok((name(path), lines(path)?))).collect()
    }

    /// Its catalogue, filled up to `n_tools`.
    pub fn load(&self, others: &[Toolspace], n_tools: usize, filling: Filling, anchor: Option<&Anchor>) -> Loaded {
        let n_wanted = n_tools.saturating_sub(self.tools.len());
        let mut more: Vec<Tool> = match filling {
            Filling::Machines => made_up::tools(n_wanted.div_ceil(TOOLS_OF_A_MACHINE), n_wanted),
            Filling::Public => {
                let others = others.iter().filter(|other| other.name != self.name);
                others.flat_map(|other| &other.tools).cloned().collect()
            }
        };
        for idx in 0..n_wanted.saturating_sub(more.len()) {
            match mixed(&more, more.len() - idx, idx) {
                Some(tool) => more.push(tool),
                None => break,
            }
        }
        more.truncate(n_wanted);
        catalogue(self.packs(anchor), self.tools.iter().chain(&more), anchor)
    }

    /// The built-in packs, for their own toolspace.
    fn packs(&self, anchor: Option<&Anchor>) -> Vec<Server> {
        let packs = if self.name == PACKS { mote_toolpacks::builtin().unwrap_or_default() } else { Vec::new() };
        packs.into_iter().filter_map(|pack| Server::from_pack(pack, anchor).ok()).collect()
    }
}

/// Writes a made-up toolspace into a home folder: an `mcp.json` of `n_servers` servers, which are never started, and what each is
/// remembered to offer, `n_tools` in all.
///
/// # Errors
/// `Usage` if a server would have too many tools, `Failed` if the folder cannot be written.
pub fn generate(home: &Home, n_servers: usize, n_tools: usize, cancel: &Cancel) -> Result<()> {
    if n_servers == 0 || n_tools.div_ceil(n_servers) > MAX_PER_SERVER {
        let used = n_tools.checked_div(n_servers).unwrap_or(n_tools);
        return Err(Error::new(
            ErrorKind::Usage,
            format!("too many tools for one server: limit {MAX_PER_SERVER}, used {used}"),
        ));
    }
    let cannot =
        |error: std::io::Error| Error::new(ErrorKind::Failed, format!("the toolspace cannot be written: {error}"));
    let mut by_server: BTreeMap<String, Vec<ToolDescription>> = BTreeMap::new();
    for tool in made_up::tools(n_servers, n_tools) {
        by_server.entry(tool.server.clone()).or_default().push(tool.said());
    }
    let entry = |name: &String| (name.clone(), serde_json::json!({"command": "mote-made-up-server", "args": [name]}));
    let entries: serde_json::Map<String, Value> = by_server.keys().map(entry).collect();
    std::fs::create_dir_all(home.cache()).map_err(cannot)?;
    std::fs::write(home.mcp_json(), serde_json::json!({"mcpServers": entries}).to_string()).map_err(cannot)?;
    let manifests = Manifests::below(home.cache());
    for server in mcp::read(&home.mcp_json(), cancel)?.servers {
        let tools = by_server.remove(&server.name).unwrap_or_default();
        let listing = Listing { summary: format!("controls of {}", server.name), tools };
        manifests.save(&mote_script::identifier(&server.name), &server, &listing).map_err(cannot)?;
    }
    Ok(())
}

impl Tool {
    fn said(&self) -> ToolDescription {
        ToolDescription {
            name: self.tool.clone(),
            description: self.description.clone(),
            parameters: self.parameters.clone(),
            read_only_hint: false,
        }
    }
}

/// The name of one tool, the server of a second, and half the description of it and of a third.
fn mixed(tools: &[Tool], n_real: usize, idx: usize) -> Option<Tool> {
    let [first, second, third] = STEPS.map(|step| tools.get((idx * step).checked_rem(n_real)?));
    let (first, second, third) = (first?, second?, third?);
    let (text, other): (Vec<&str>, Vec<&str>) =
        (first.description.split_whitespace().collect(), third.description.split_whitespace().collect());
    let description = [&text[..text.len() / 2], &other[other.len() / 2..]].concat().join(" ");
    Some(Tool { server: format!("{}_{idx}", second.server), description, ..first.clone() })
}

fn catalogue<'a>(mut servers: Vec<Server>, tools: impl Iterator<Item = &'a Tool>, anchor: Option<&Anchor>) -> Loaded {
    let mut by_server: BTreeMap<&str, Vec<ToolDescription>> = BTreeMap::new();
    for tool in tools {
        by_server.entry(&tool.server).or_default().push(tool.said());
    }
    let mut taken: HashSet<String> = servers.iter().map(|server| server.name.clone()).collect();
    let mut notices = Vec::new();
    for (wire_name, descriptions) in by_server {
        let name = unique(mote_script::identifier(wire_name), &mut taken);
        let mut server = Server::new(name, wire_name, ServerKind::Mcp { command: String::new() });
        notices.extend(server.describe(
            Said { summary: "", tools: descriptions, learned: &Results::default() },
            anchor,
            &|_| true,
        ));
        servers.push(server);
    }
    let names = |server: &Server| -> Vec<_> {
        server.tools().map(|tool| (format!("{}.{}", server.wire_name, tool.wire_name), tool.id)).collect()
    };
    let by_name = servers.iter().flat_map(names).collect();
    Loaded { catalogue: Catalogue::new(servers), by_name, notices }
}

fn lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>> {
    let usage = |what: String| Error::new(ErrorKind::Usage, format!("{}: {what}", path.display()));
    let mut text = String::new();
    let file = File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text));
    file.map_err(|error| usage(format!("it cannot be read: {error}")))?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(usage(format!("the file is too big, in bytes: limit {MAX_FILE_BYTES}, used more")));
    }
    let parse = |(idx, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| usage(format!("line {}: {error}", idx + 1)))
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(server: &str, name: &str) -> Tool {
        Tool {
            server: server.into(),
            tool: name.into(),
            description: format!("{name} it well"),
            parameters: Value::Null,
        }
    }

    fn space(name: &str, tools: Vec<Tool>) -> Toolspace {
        Toolspace { name: name.into(), tools, query_files: Vec::new() }
    }

    #[test]
    fn a_toolspace_is_filled_up() {
        let (one, two) =
            (space("one", vec![tool("a-b", "getIt"), tool("a.b", "x")]), space("two", vec![tool("c", "y")]));
        let all = [one.clone(), two];
        let own = one.load(&all, 0, Filling::Public, None);
        assert_eq!(own.by_name.get("a-b.getIt").map(ToString::to_string), Some("a_b.get_it".to_owned()));
        assert_eq!(own.by_name.get("a.b.x").map(ToString::to_string), Some("a_b_2.x".to_owned()));
        let filled = one.load(&all, 9, Filling::Public, None);
        assert_eq!((own.catalogue.n_tools(), filled.catalogue.n_tools(), filled.notices.len()), (2, 9, 0));
        assert_eq!(one.load(std::slice::from_ref(&one), 9, Filling::Public, None).catalogue.n_tools(), 2);
    }

    #[test]
    fn a_bad_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Toolspace::all(folder.path()).unwrap_err().kind(), ErrorKind::Usage);
        std::fs::write(folder.path().join("a.catalogue.jsonl"), "\n{\"server\": 1}\n").unwrap();
        let error = Toolspace::all(folder.path()).unwrap_err();
        assert!(error.to_string().contains("a.catalogue.jsonl: line 2: invalid type"), "{error}");
    }

    #[test]
    fn a_made_up_toolspace_has_what_was_asked_for() {
        let tools = made_up::tools(300, 10_000);
        let names: HashSet<String> = tools.iter().map(|tool| format!("{}.{}", tool.server, tool.tool)).collect();
        assert_eq!((names.len(), tools.iter().map(|tool| &tool.server).collect::<HashSet<_>>().len()), (10_000, 300));
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        generate(&home, 3, 10, &Cancel::default()).unwrap();
        assert_eq!(std::fs::read_dir(home.cache().join("servers")).unwrap().count(), 3);
        assert_eq!(generate(&home, 3, 10_000, &Cancel::default()).unwrap_err().kind(), ErrorKind::Usage);
        let filled = space("one", vec![tool("a", "b")]).load(&[], 100, Filling::Machines, None);
        assert_eq!((filled.catalogue.n_tools(), filled.notices), (100, vec![]));
    }
}
