//! The loaded tools: those that the grammar offers and a program may call.
//!
//! Bounded; when it is full the tool that was used least recently leaves, said aloud by the caller.

use mote_script::Signature;

use crate::tools::{Catalogue, ToolEntry, ToolId};

/// Loaded tools at a time; the grammar and the VM's table grow with them.
pub(super) const MAX_LOADED: usize = 24;

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

/// The tools that a program names and the catalogue knows, at most [`MAX_LOADED`]: every `server.tool` in its text.
pub(super) fn named_in(source: &str, catalogue: &Catalogue) -> Vec<ToolId> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (dot, _) in source.match_indices('.') {
        let before = &source[..dot];
        let server = &before[before
            .rfind(|c| !is_name(c))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8))..];
        let after = &source[dot + 1..];
        let tool = &after[..after.find(|c| !is_name(c)).unwrap_or(after.len())];
        if let Some(entry) = catalogue.tool(server, tool) {
            let id = ToolId { server: entry.signature.server.clone(), tool: entry.signature.name.clone() };
            if !found.contains(&id) && found.len() < MAX_LOADED {
                found.push(id);
            }
        }
    }
    found
}
