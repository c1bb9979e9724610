//! The loaded tools: those that the grammar offers and a program may call.
//!
//! Bounded in number and in the tokens of their signatures, which the next stage's prompt has to hold. When it is full the least useful
//! tool leaves: one that was never called before one that was, and of those the one that was loaded or called longest ago. It is
//! out of the grammar at once and out of the prompt at the next stage; the caller says so aloud.

use mote_script::Signature;

use crate::tools::{Catalogue, Server, ToolEntry, ToolId};

/// Loaded tools at a time; the grammar and the VM's table grow with them.
pub(super) const MAX_LOADED: usize = 24;

/// Tools that the VM gets to know beside the loaded ones.
const MAX_NEIGHBOURS: usize = 200;

/// How many tools may be loaded, and how many tokens their signatures may have together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) tools: usize,
    pub(super) tokens: usize,
}

/// The loaded tools of a stage, least recently loaded or called first.
#[derive(Clone, Debug)]
pub(super) struct Toolbox {
    loaded: Vec<Loaded>,
    room: Room,
}

#[derive(Clone, Debug)]
struct Loaded {
    id: ToolId,
    tokens: usize,
    n_calls: usize,
}

impl Toolbox {
    /// A toolbox with the best of `ranked`, of which the first is the best; each with the tokens of its signature.
    pub(super) fn new(ranked: &[(ToolId, usize)], room: Room) -> Toolbox {
        let mut toolbox = Toolbox { loaded: Vec::new(), room };
        let mut left = room.tokens;
        for (id, tokens) in ranked.iter().take(room.tools) {
            if *tokens <= left {
                left -= tokens;
                toolbox.loaded.insert(0, Loaded { id: id.clone(), tokens: *tokens, n_calls: 0 });
            }
        }
        toolbox
    }

    /// Loads a tool whose signature has so many tokens; gives those that had to leave.
    pub(super) fn load(&mut self, tool: &ToolId, tokens: usize) -> Vec<ToolId> {
        let n_calls = self.take(tool).map_or(0, |loaded| loaded.n_calls);
        let mut left = Vec::new();
        while self.loaded.len() >= self.room.tools || self.tokens() + tokens > self.room.tokens {
            let Some(at) = (0..self.loaded.len()).min_by_key(|at| self.loaded[*at].n_calls) else { break };
            left.push(self.loaded.remove(at).id);
        }
        self.loaded.push(Loaded { id: tool.clone(), tokens, n_calls });
        left
    }

    /// Counts a call of a tool.
    pub(super) fn called(&mut self, tool: &ToolId) {
        if let Some(mut loaded) = self.take(tool) {
            loaded.n_calls += 1;
            self.loaded.push(loaded);
        }
    }

    /// Whether a tool is loaded.
    pub(super) fn has(&self, tool: &ToolId) -> bool {
        self.loaded.iter().any(|loaded| loaded.id == *tool)
    }

    /// Drops tools that the catalogue no longer has; gives them.
    pub(super) fn drop_unknown(&mut self, catalogue: &Catalogue) -> Vec<ToolId> {
        let gone: Vec<ToolId> =
            self.loaded.iter().map(|loaded| &loaded.id).filter(|id| !catalogue.has(id)).cloned().collect();
        self.loaded.retain(|loaded| !gone.contains(&loaded.id));
        gone
    }

    /// The signatures of the loaded tools, in an order that does not depend on their use.
    pub(super) fn signatures(&self, catalogue: &Catalogue) -> Vec<Signature> {
        let mut entries: Vec<ToolEntry> =
            self.loaded.iter().filter_map(|loaded| catalogue.tool(&loaded.id.server, &loaded.id.tool)).collect();
        entries.sort_by(|a, b| (&a.signature.server, &a.signature.name).cmp(&(&b.signature.server, &b.signature.name)));
        entries.into_iter().map(|entry| entry.signature).collect()
    }

    fn tokens(&self) -> usize {
        self.loaded.iter().map(|loaded| loaded.tokens).sum()
    }

    fn take(&mut self, tool: &ToolId) -> Option<Loaded> {
        let at = self.loaded.iter().position(|loaded| loaded.id == *tool)?;
        Some(self.loaded.remove(at))
    }
}

/// The tools that a program names and the catalogue knows, at most [`MAX_LOADED`].
pub(super) fn named_in(source: &str, catalogue: &Catalogue) -> Vec<ToolId> {
    let mut found = Vec::new();
    for (server, tool) in dotted(source) {
        let id = ToolId::new(server, tool);
        if found.len() < MAX_LOADED && !found.contains(&id) && catalogue.has(&id) {
            found.push(id);
        }
    }
    found
}

/// The other tools of the servers that a program names, at most [`MAX_NEIGHBOURS`]: the VM has to know them to say what a
/// wrong name should have been.
pub(super) fn neighbours(source: &str, known: &[Signature], catalogue: &Catalogue) -> Vec<Signature> {
    let named: Vec<&str> = dotted(source).map(|(server, _)| server).collect();
    let servers = catalogue.servers().iter().filter(|server| named.contains(&server.name.as_str()));
    let tools = servers.flat_map(Server::tools).map(|tool| tool.signature);
    let new = |tool: &Signature| !known.iter().any(|other| (&other.server, &other.name) == (&tool.server, &tool.name));
    tools.filter(new).take(MAX_NEIGHBOURS).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_useful_tool_leaves_when_there_is_no_room() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|tool| ToolId::new("s", tool));
        let ranked = [(a.clone(), 40), (b.clone(), 40), (c.clone(), 40)];
        let mut toolbox = Toolbox::new(&ranked, Room { tools: 9, tokens: 100 });
        assert!(toolbox.has(&a) && toolbox.has(&b) && !toolbox.has(&c), "the third has no room");
        toolbox.called(&b);
        assert_eq!(toolbox.load(&c, 40), std::slice::from_ref(&a), "the other one was called");
        assert_eq!(toolbox.load(&d, 90), [c.clone(), b.clone()]);
        assert_eq!(toolbox.load(&d, 90), []);
        assert_eq!(toolbox.load(&a, 1000), [d], "one tool is loaded, whatever it takes");
        let mut few = Toolbox::new(&ranked, Room { tools: 2, tokens: 1000 });
        assert_eq!(few.load(&c, 1), [b]);
        assert_eq!(few.drop_unknown(&Catalogue::default()), [a, c]);
    }
}
