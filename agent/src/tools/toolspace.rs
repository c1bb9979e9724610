//! Toolspaces on disk: catalogues and queries as JSON Lines, to measure retrieval on.
//!
//! `NAME.catalogue.jsonl` has one tool a line (`server`, `tool`, `description`, `parameters`); every other `NAME.*.jsonl` has one query a
//! line (`query`, `gold`: a list of `server.tool`, optionally `split`). Nothing here is ever called.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::catalogue::{Catalogue, Server, ServerKind, ServerState, ToolDescription, ToolId, unique};
use crate::error::{Error, ErrorKind, Result};

const CATALOGUE_ENDING: &str = ".catalogue.jsonl";

/// Bytes of one file: a hundred thousand tools or a quarter million queries.
const MAX_FILE_BYTES: u64 = 64 << 20;

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
        for name in names.iter().filter_map(|name| name.strip_suffix(CATALOGUE_ENDING)) {
            let beside = names.iter().filter(|file| {
                file.strip_prefix(name)
                    .is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".jsonl") && rest != CATALOGUE_ENDING)
            });
            let query_files = beside.map(|file| folder.join(file)).collect();
            let tools = lines(&folder.join(format!("{name}{CATALOGUE_ENDING}")))?;
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

    /// Its catalogue, filled up with the tools of `others` and then with made-up ones to `n_tools`.
    pub fn load(&self, others: &[Toolspace], n_tools: usize) -> Loaded {
        let n_wanted = n_tools.saturating_sub(self.tools.len());
        let others = others.iter().filter(|other| other.name != self.name);
        let mut more: Vec<Tool> = others.flat_map(|other| &other.tools).cloned().collect();
        for idx in 0..n_wanted.saturating_sub(more.len()) {
            match made_up(&more, more.len() - idx, idx) {
                Some(tool) => more.push(tool),
                None => break,
            }
        }
        more.truncate(n_wanted);
        catalogue(self.tools.iter().chain(&more))
    }
}

/// The name of one tool, the server of a second, and half the description of it and of a third.
fn made_up(tools: &[Tool], n_real: usize, idx: usize) -> Option<Tool> {
    let [first, second, third] = STEPS.map(|step| tools.get((idx * step).checked_rem(n_real)?));
    let (first, second, third) = (first?, second?, third?);
    let (text, other): (Vec<&str>, Vec<&str>) =
        (first.description.split_whitespace().collect(), third.description.split_whitespace().collect());
    let description = [&text[..text.len() / 2], &other[other.len() / 2..]].concat().join(" ");
    Some(Tool { server: format!("{}_{idx}", second.server), description, ..first.clone() })
}

fn catalogue<'a>(tools: impl Iterator<Item = &'a Tool>) -> Loaded {
    let mut by_server: BTreeMap<&str, Vec<ToolDescription>> = BTreeMap::new();
    for tool in tools {
        by_server.entry(&tool.server).or_default().push(ToolDescription {
            name: tool.tool.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
            read_only_hint: false,
        });
    }
    let (mut taken, mut servers, mut notices) = (HashSet::new(), Vec::new(), Vec::new());
    for (wire_name, descriptions) in by_server {
        let mut server = Server {
            name: unique(mote_script::identifier(wire_name), &mut taken),
            wire_name: wire_name.to_owned(),
            summary: String::new(),
            kind: ServerKind::Mcp { command: String::new() },
            state: ServerState::Known,
            tools: Vec::new(),
        };
        notices.extend(server.describe("", descriptions, &|_| true));
        servers.push(server);
    }
    let names = |server: &Server| -> Vec<_> {
        server.tools.iter().map(|tool| (format!("{}.{}", server.wire_name, tool.wire_name), tool.id.clone())).collect()
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
        let own = one.load(&all, 0);
        assert_eq!(own.by_name.get("a-b.getIt").map(ToString::to_string), Some("a_b.get_it".to_owned()));
        assert_eq!(own.by_name.get("a.b.x").map(ToString::to_string), Some("a_b_2.x".to_owned()));
        let filled = one.load(&all, 9);
        assert_eq!((own.catalogue.n_tools(), filled.catalogue.n_tools(), filled.notices.len()), (2, 9, 0));
        assert_eq!(one.load(std::slice::from_ref(&one), 9).catalogue.n_tools(), 2);
    }

    #[test]
    fn a_bad_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Toolspace::all(folder.path()).unwrap_err().kind(), ErrorKind::Usage);
        std::fs::write(folder.path().join("a.catalogue.jsonl"), "\n{\"server\": 1}\n").unwrap();
        let error = Toolspace::all(folder.path()).unwrap_err();
        assert!(error.to_string().contains("a.catalogue.jsonl: line 2: invalid type"), "{error}");
    }
}
