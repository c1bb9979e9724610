//! The loaded tools: those that the grammar offers and a program may call.
//!
//! Bounded; when it is full the tool that was used least recently leaves, said aloud by the caller.

use mote_script::Signature;

use crate::tools::{Catalogue, ToolEntry, ToolId};

/// Loaded tools at a time; the grammar and the VM's table grow with them.
pub(super) const MAX_LOADED: usize = 24;

/// Tools that the VM gets to know beside the loaded ones.
const MAX_NEIGHBOURS: usize = 200;

/// The loaded tools of a stage, least recently used first.
#[derive(Clone, Debug, Default)]
pub(super) struct Toolbox {
    loaded: Vec<ToolId>,
}

impl Toolbox {
    /// A toolbox with the best of `ranked`, of which the first is the best.
    pub(super) fn new(ranked: &[ToolId]) -> Toolbox {
        let mut loaded: Vec<ToolId> = ranked.iter().take(MAX_LOADED).cloned().collect();
        loaded.reverse();
        Toolbox { loaded }
    }

    /// Loads a tool or marks it as used; gives the tool that had to leave.
    pub(super) fn load(&mut self, tool: &ToolId) -> Option<ToolId> {
        self.loaded.retain(|other| other != tool);
        let left = if self.loaded.len() >= MAX_LOADED { Some(self.loaded.remove(0)) } else { None };
        self.loaded.push(tool.clone());
        left
    }

    /// The signatures of the loaded tools, in an order that does not depend on their use.
    pub(super) fn signatures(&self, catalogue: &Catalogue) -> Vec<Signature> {
        let mut entries: Vec<&ToolEntry> =
            self.loaded.iter().filter_map(|id| catalogue.tool(&id.server, &id.tool)).collect();
        entries.sort_by(|a, b| (&a.signature.server, &a.signature.name).cmp(&(&b.signature.server, &b.signature.name)));
        entries.into_iter().map(|entry| entry.signature.clone()).collect()
    }
}

/// The tools that a program names and the catalogue knows, at most [`MAX_LOADED`].
pub(super) fn named_in(source: &str, catalogue: &Catalogue) -> Vec<ToolId> {
    let mut found = Vec::new();
    for (server, tool) in dotted(source) {
        if let Some(entry) = catalogue.tool(server, tool)
            && !found.contains(&entry.id)
            && found.len() < MAX_LOADED
        {
            found.push(entry.id.clone());
        }
    }
    found
}

/// The other tools of the servers that a program names, at most [`MAX_NEIGHBOURS`]: the VM has to know them to say what a
/// wrong name should have been.
pub(super) fn neighbours(source: &str, known: &[Signature], catalogue: &Catalogue) -> Vec<Signature> {
    let named: Vec<&str> = dotted(source).map(|(server, _)| server).collect();
    let servers = catalogue.servers().iter().filter(|server| named.contains(&server.name.as_str()));
    let tools = servers.flat_map(|server| &server.tools).map(|tool| &tool.signature);
    let new = |tool: &&Signature| !known.iter().any(|other| (&other.server, &other.name) == (&tool.server, &tool.name));
    tools.filter(new).take(MAX_NEIGHBOURS).cloned().collect()
}

/// Every `name.name` in a text.
fn dotted(source: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    source.match_indices('.').map(move |(dot, _)| {
        let (before, after) = (&source[..dot], &source[dot + 1..]);
        let start = before.trim_end_matches(is_name).len();
        let end = after.len() - after.trim_start_matches(is_name).len();
        (&before[start..], &after[..end])
    })
}
