//! How the catalogue follows what configured servers offer: from the catalogue's file, from what they said when they were asked,
//! and anew when they start or change.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::{LATE_SHARE, ToolRuntime, VERSION, names};
use crate::error::{Error, ErrorKind, Result};
use crate::tools::catalogue::{
    Kept, Key, Said, Server, ServerKind, ServerState, ToolDescription, ToolEntry, sha256, unique,
};
use crate::tools::mcp::{Fleet, Found, Ground, Listing, McpServer};
use crate::tools::policy::matches;
use crate::tools::result::ToolFailure;
use crate::tools::retrieval::Anchor;

impl ToolRuntime {
    /// Puts a pack back whose name was taken by a server that does not run.
    pub(super) fn restore_pack(&mut self, name: &str, failure: ToolFailure) -> ToolFailure {
        let replaced = self.replaced.iter().position(|pack| pack.name == name);
        let (Some(at), Some(server)) = (replaced, self.catalogue.server_mut(name)) else { return failure };
        *server = self.replaced.remove(at);
        self.notices.push(format!("{}; the pack of this name is back in its place", failure.message));
        let tools = self.catalogue.server(name).into_iter().flat_map(Server::tool_names);
        let hint = format!("the pack {name} is back in its place: {}", names(tools));
        failure.with_hint(hint)
    }

    pub(super) fn changes(&self, server: &str, listing: &Listing) -> Vec<String> {
        let known: Vec<_> = self.catalogue.server(server).into_iter().flat_map(Server::tools).collect();
        let new = |said: &&ToolDescription| {
            !known.iter().any(|tool| tool.wire_name == said.name && tool.schema_sha256 == said.sha256())
        };
        let gone = known.iter().filter(|tool| !listing.tools.iter().any(|said| said.name == tool.wire_name));
        let mut changes: Vec<String> = listing.tools.iter().filter(new).map(|said| said.name.clone()).collect();
        changes.extend(gone.map(|tool| format!("{} is gone", tool.wire_name)));
        changes
    }

    /// Sets up the fleet, takes in what is remembered and asks the rest.
    pub(super) fn muster(
        &mut self,
        members: Vec<(String, McpServer)>,
        mut kept: BTreeMap<String, Kept>,
        guardian: Option<PathBuf>,
        limit: Duration,
    ) -> Result<()> {
        let guardian = guardian.ok_or_else(|| {
            Error::new(ErrorKind::Configuration, "no program that can guard servers")
                .with_hint("set MOTE_GUARD_EXE to the mote binary where mote is used as a library")
        })?;
        let ground = Ground::new(guardian, self.working_dir.clone(), self.sandbox);
        let (mut known, mut new) = (Vec::new(), Vec::new());
        for (name, server) in &members {
            let key = self.key(name, server);
            let found = key.and_then(|key| taken(&mut kept, name, key, &mut self.is_new, self.anchor.as_ref()));
            if let Some(found) = found {
                known.push((name.clone(), Known::Kept(found)));
                continue;
            }
            match self.manifests.load(name, server) {
                Some(listing) => known.push((name.clone(), Known::Said(listing))),
                None if self.manifests.was_late(name, server) => new.push((name.clone(), limit / LATE_SHARE)),
                None => new.push((name.clone(), limit)),
            }
        }
        let mut fleet = Fleet::new(members, ground, self.cancel.clone())?;
        fleet.discover(&new);
        let found = fleet.found();
        for name in fleet.unanswered() {
            if let Some(server) = fleet.server(name) {
                self.manifests.mark_late(name, server);
            }
            self.notices
                .push(format!("server {name} has not said yet what tools it has; it is asked on in the background"));
        }
        self.fleet = Some(fleet);
        for (name, known) in known {
            match known {
                Known::Said(listing) => self.describe(&name, &listing),
                Known::Kept(kept) => self.restore(&name, kept),
            }
        }
        self.take_in(found);
        Ok(())
    }

    /// Takes in what servers said when they were asked, and remembers it.
    pub(super) fn take_in(&mut self, found: Vec<Found>) {
        for (name, listing) in found {
            match listing {
                Ok(listing) => {
                    let server = self.fleet.as_ref().and_then(|fleet| fleet.server(&name));
                    let saved = server.map_or(Ok(()), |server| self.manifests.save(&name, server, &listing));
                    if let Err(error) = saved {
                        self.notices.push(format!("what server {name} offers cannot be remembered: {error}"));
                    }
                    self.describe(&name, &listing);
                }
                Err(why) => match self.catalogue.server(&name) {
                    Some(Server { kind: ServerKind::Pack, .. }) => self
                        .notices
                        .push(format!("server {name} cannot be used, the pack of this name stays in its place: {why}")),
                    _ => {
                        self.notices.push(format!("server {name} cannot be used: {why}"));
                        self.set_state(&name, ServerState::Failed(why));
                    }
                },
            }
        }
    }

    fn describe(&mut self, name: &str, listing: &Listing) {
        let Some(configured) = self.fleet.as_ref().and_then(|fleet| fleet.server(name)).cloned() else { return };
        let reads = |said: &ToolDescription| {
            let listed = configured.reads.iter().any(|pattern| matches(pattern, &said.name));
            listed || (configured.trusted && said.read_only_hint)
        };
        let key = self.key(name, &configured);
        let anchor = self.anchor.take();
        let learned = self.lessons.load(name);
        if let Some(server) = self.room_for(name) {
            let said = Said { summary: &listing.summary, tools: listing.tools.clone(), learned: &learned };
            let notices = server.describe(said, anchor.as_ref(), &|said| !reads(said));
            server.key = key;
            self.notices.extend(notices);
            self.is_new = true;
        }
        self.anchor = anchor;
    }

    fn restore(&mut self, name: &str, kept: Kept) {
        let anchor = self.anchor.take();
        if let Some(server) = self.room_for(name) {
            server.restore(kept, anchor.as_ref());
        }
        self.anchor = anchor;
    }

    /// Starts a configured server, takes in what it offers now and leaves it to be stopped when idle.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn probe(&mut self, name: &str) -> std::result::Result<Duration, String> {
        let started = Instant::now();
        let fleet = self.fleet(name).map_err(|failure| failure.message)?;
        let listing = fleet.start(name).map_err(|failure| failure.message)?;
        let took = started.elapsed();
        if let Some(listing) = listing {
            self.take_in(vec![(name.to_owned(), Ok(listing))]);
            self.keep();
        }
        Ok(took)
    }

    /// Takes in what was learned of a server.
    pub(in crate::tools) fn relearn(&mut self, name: &str) {
        let Some(server) = self.fleet.as_ref().and_then(|fleet| fleet.server(name)).cloned() else { return };
        let (learned, key, anchor) = (self.lessons.load(name), self.key(name, &server), self.anchor.take());
        if let Some(server) = self.catalogue.server_mut(name) {
            let mut tools: Vec<ToolEntry> = server.tools().collect();
            tools.iter_mut().for_each(|tool| learned.apply(tool));
            server.set(&tools, anchor.as_ref());
            server.key = key;
        }
        self.anchor = anchor;
        self.is_new = true;
        self.keep();
    }

    /// The server of this name in the catalogue; a pack that has the name is put aside, which is said aloud.
    fn room_for(&mut self, name: &str) -> Option<&mut Server> {
        let configured = self.fleet.as_ref().and_then(|fleet| fleet.server(name))?;
        let server = self.catalogue.server_mut(name)?;
        if server.kind == ServerKind::Pack {
            self.replaced.push(std::mem::replace(server, undiscovered(name, configured)));
            self.notices.push(format!("the pack {name} is replaced by the configured server of this name"));
        }
        Some(server)
    }

    /// A hash over all that the tools of a server are made of: what it said, and what its entry says of them.
    fn key(&self, name: &str, server: &McpServer) -> Option<Key> {
        let (said, learned) = (self.manifests.stamp(name, server)?, self.lessons.stamp(name));
        let trusted = if server.trusted { "trusted" } else { "" };
        let reads = server.reads.iter().map(String::as_bytes);
        Some(sha256(
            [VERSION, name, &server.name, &said, &learned, trusted].map(str::as_bytes).into_iter().chain(reads),
        ))
    }
}

/// What is known of a server before it is started.
enum Known {
    /// In the catalogue's file.
    Kept(Kept),
    /// What it said when it was asked.
    Said(Listing),
}

/// What was kept under this name, if it was made of the same; what has to be made or embedded anew is new.
pub(super) fn taken(
    kept: &mut BTreeMap<String, Kept>,
    name: &str,
    key: Key,
    is_new: &mut bool,
    anchor: Option<&Anchor>,
) -> Option<Kept> {
    let found = kept.remove(name).filter(|kept| kept.key == key);
    let is_embedded = |kept: &Kept| anchor.is_none_or(|anchor| kept.anchor == Some(*anchor.sha256()));
    *is_new |= !found.as_ref().is_some_and(is_embedded);
    found
}

/// Names in the action language for configured servers.
pub(super) fn named(servers: Vec<McpServer>) -> Vec<(String, McpServer)> {
    let mut taken = HashSet::new();
    servers.into_iter().map(|server| (unique(mote_script::identifier(&server.name), &mut taken), server)).collect()
}

pub(super) fn undiscovered(name: &str, server: &McpServer) -> Server {
    let command = std::iter::once(&server.command).chain(&server.args).cloned().collect::<Vec<_>>().join(" ");
    Server::new(name, &server.name, ServerKind::Mcp { command: server.without_secrets(&command) })
}
