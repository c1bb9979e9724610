//! The MCP servers of one session: found once, started on first call, stopped when idle.
//!
//! Invariants: at most [`MAX_ALIVE`] servers that were started for a call live at a time, `keep` or not, and [`MAX_DISCOVERING`] more
//! while they are asked for their tools; one that is idle stops by itself; a server that fails [`MAX_FAILURES`] times in a row is not started again; every wait ends when the session is
//! cancelled. The fleet knows processes, not tools: what a listing means is decided by the runtime above it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rmcp::model::{CallToolResult, JsonObject};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};

use super::client::{CallError, Client, Listing};
use super::configuration::McpServer;
use super::process::Ground;
use crate::cancel::{Cancel, POLL};
use crate::error::{Error, ErrorKind, Result};
use crate::tools::result::ToolFailure;

/// Servers alive at a time: each is a Python or Node process of some 50 MB.
const MAX_ALIVE: usize = 8;

/// Servers asked for their tools at a time.
const MAX_DISCOVERING: usize = 8;

/// Failed starts, crashes and hangs in a row, after which a server stays stopped for this session.
const MAX_FAILURES: u32 = 3;

/// The first wait before a server that failed is started again; it doubles each time.
const BACKOFF: Duration = Duration::from_millis(100);

/// A server and what it said, or why it did not.
pub(crate) type Found = (String, std::result::Result<Listing, String>);

/// The servers.
pub(crate) struct Fleet {
    runtime: Runtime,
    ground: Ground,
    members: Vec<Member>,
    cancel: Cancel,
    found: Receiver<Found>,
    finder: Sender<Found>,
    /// Who was asked and has not answered, and until when it is waited for.
    asked: Vec<(String, Instant)>,
    /// Tells those who are asked that nobody waits any more.
    closing: watch::Sender<bool>,
}

struct Member {
    name: String,
    server: McpServer,
    client: Option<Client>,
    n_failures: u32,
}

impl Fleet {
    /// A fleet of servers by their names in the action language; starts none.
    pub(crate) fn new(servers: Vec<(String, McpServer)>, ground: Ground, cancel: Cancel) -> Result<Fleet> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).thread_name("mote-mcp").enable_all().build();
        let runtime = runtime
            .map_err(|error| Error::new(ErrorKind::Failed, format!("cannot start the thread for servers: {error}")))?;
        let member = |(name, server)| Member { name, server, client: None, n_failures: 0 };
        let (finder, found) = channel();
        let members = servers.into_iter().map(member).collect();
        let closing = watch::Sender::new(false);
        Ok(Fleet { runtime, ground, members, cancel, found, finder, asked: Vec::new(), closing })
    }

    /// How the server of this name is configured.
    pub(crate) fn server(&self, name: &str) -> Option<&McpServer> {
        self.members.iter().find(|member| member.name == name).map(|member| &member.server)
    }

    /// Asks servers for their tools in the background: starts each, lists, stops it again. Each has a time for which
    /// [`Fleet::found`] waits for it.
    pub(crate) fn discover(&mut self, servers: &[(String, Duration)]) {
        let permits = Arc::new(Semaphore::new(MAX_DISCOVERING));
        for (name, limit) in servers {
            let Some(member) = self.members.iter().find(|member| member.name == *name) else { continue };
            let (name, server, ground) = (name.clone(), member.server.clone(), self.ground.clone());
            let (finder, permits) = (self.finder.clone(), permits.clone());
            self.asked.push((name.clone(), Instant::now() + *limit));
            let mut closing = self.closing.subscribe();
            self.runtime.spawn(async move {
                let _permit = permits.acquire().await;
                tokio::select! {
                    listing = ask(&server, &ground) => drop(finder.send((name, listing))),
                    _ = closing.wait_for(|closing| *closing) => {}
                }
            });
        }
    }

    /// What was found since the last time; waits until each has answered or its time is over, or the session is cancelled.
    pub(crate) fn found(&mut self) -> Vec<Found> {
        let mut all = Vec::new();
        while let Some(deadline) = self.asked.iter().map(|(_, deadline)| *deadline).max() {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.found.recv_timeout(left.min(POLL)) {
                Ok(found) => {
                    self.asked.retain(|(name, _)| *name != found.0);
                    all.push(found);
                }
                Err(RecvTimeoutError::Timeout) if !left.is_zero() && !self.cancel.is_cancelled() => {}
                Err(_) => break,
            }
        }
        all
    }

    /// Who was asked and has not answered.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &str> {
        self.asked.iter().map(|(name, _)| name.as_str())
    }

    /// Makes sure that the server runs; gives what it says of itself if it had to be started or has said that it is not the same.
    pub(crate) fn start(&mut self, name: &str) -> std::result::Result<Option<Listing>, ToolFailure> {
        self.make_room(name);
        let Fleet { runtime, ground, members, cancel, .. } = self;
        let member = member(members, name)?;
        if let Some(client) = member.client.take_if(|client| client.is_gone()) {
            runtime.block_on(client.stop());
        }
        if let Some(client) = member.client.as_mut() {
            client.touch();
            if !client.tools_changed() {
                return Ok(None);
            }
            return match runtime.block_on(unless(cancel, client.list())) {
                Some(listing) => listing.map(Some).map_err(|why| {
                    ToolFailure::new("server", format!("the server {name} does not list its tools: {why}"))
                }),
                None => Err(cancelled()),
            };
        }
        if member.n_failures >= MAX_FAILURES {
            return Err(ToolFailure::new("server", format!("the server failed too often and stays stopped: {name}"))
                .with_hint("do without it, or look into it by hand: mote tools call"));
        }
        let wait = BACKOFF * (1 << member.n_failures) * u32::from(member.n_failures > 0);
        let started = runtime.block_on(unless(cancel, async {
            tokio::time::sleep(wait).await;
            let mut client = Client::start(&member.server, ground).await?;
            match client.list().await {
                Ok(listing) => Ok((client, listing)),
                Err(why) => {
                    client.stop().await;
                    Err(why)
                }
            }
        }));
        match started {
            None => Err(cancelled()),
            Some(Ok((client, listing))) => {
                member.client = Some(client);
                Ok(Some(listing))
            }
            Some(Err(why)) => {
                member.n_failures += 1;
                Err(ToolFailure::new("server", format!("the server {name} cannot be used: {why}")))
            }
        }
    }

    /// The line to a server, if it runs: calls over it may be made side by side, from any thread.
    pub(crate) fn line(&self, name: &str) -> Option<Line<'_>> {
        let client = self.members.iter().find(|member| member.name == name)?.client.as_ref()?;
        Some(Line { runtime: &self.runtime, cancel: &self.cancel, client })
    }

    /// What came of a call of [`Line::call`] by the tool's name on the wire. A server that hung or broke is ended.
    pub(crate) fn settle(
        &mut self,
        name: &str,
        tool: &str,
        answered: Answered,
    ) -> std::result::Result<CallToolResult, ToolFailure> {
        let Fleet { runtime, members, .. } = self;
        let member = member(members, name)?;
        let failure = match answered {
            Some(Ok(result)) => {
                member.n_failures = 0;
                return Ok(result);
            }
            Some(Err(CallError::Refused(why))) => return Err(ToolFailure::new("tool", why)),
            Some(Err(CallError::Timeout { limit, lives })) => {
                let end = if lives { "was cancelled" } else { "was stopped" };
                let message = format!("{name}.{tool} does not answer and {end}, in seconds: limit {}", limit.as_secs());
                let failure = ToolFailure::new("timeout", message)
                    .with_hint("ask for less, or give the server a longer tool_timeout_secs in its file");
                if lives {
                    return Err(failure);
                }
                failure
            }
            Some(Err(CallError::Broken)) => {
                let why = match member.client.as_mut() {
                    Some(client) => runtime.block_on(client.explain()),
                    None => "it ended during another call".to_owned(),
                };
                let why = member.server.without_secrets(&why);
                ToolFailure::new("server", format!("the server {name} broke: {why}"))
            }
            None => cancelled(),
        };
        if let Some(client) = member.client.take() {
            member.n_failures += 1;
            runtime.block_on(client.stop());
        }
        Err(failure)
    }

    /// Stops the server that was least recently used if there are too many to start another than `next`; one that is `keep` only
    /// if all others are, too.
    fn make_room(&mut self, next: &str) {
        let alive = |member: &&mut Member| member.name != next && member.client.is_some();
        if self.members.iter_mut().filter(alive).count() < MAX_ALIVE {
            return;
        }
        let order = |member: &&mut Member| (member.server.keep, member.client.as_ref().map(Client::last_used));
        let oldest = self.members.iter_mut().filter(alive).min_by_key(order);
        if let Some(client) = oldest.and_then(|member| member.client.take()) {
            self.runtime.block_on(client.stop());
        }
    }
}

/// What a call over a [`Line`] gave; nothing if the session was cancelled first.
pub(crate) type Answered = Option<std::result::Result<CallToolResult, CallError>>;

/// The way to a running server.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    runtime: &'a Runtime,
    cancel: &'a Cancel,
    client: &'a Client,
}

impl Line<'_> {
    /// Calls a tool by its name on the wire and waits; [`Fleet::settle`] has to hear what it gave.
    pub(crate) fn call(&self, tool: &str, arguments: &JsonObject) -> Answered {
        self.runtime.block_on(unless(self.cancel, self.client.call(tool, arguments)))
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let clients: Vec<Client> = self.members.iter_mut().filter_map(|member| member.client.take()).collect();
        self.closing.send_replace(true);
        self.runtime.block_on(async {
            stop_all(clients).await;
            self.ground.all_ended().await;
        });
    }
}

/// Starts a server, asks it for its tools and stops it.
async fn ask(server: &McpServer, ground: &Ground) -> std::result::Result<Listing, String> {
    let mut client = Client::start(server, ground).await?;
    let listing = client.list().await;
    client.stop().await;
    listing
}

/// Stops servers side by side.
async fn stop_all(clients: Vec<Client>) {
    let stops: Vec<_> = clients.into_iter().map(|client| tokio::spawn(client.stop())).collect();
    for stop in stops {
        drop(stop.await);
    }
}

fn member<'a>(members: &'a mut [Member], name: &str) -> std::result::Result<&'a mut Member, ToolFailure> {
    let found = members.iter_mut().find(|member| member.name == name);
    found.ok_or_else(|| ToolFailure::new("server", format!("no such server: {name}")))
}

/// The future's result, or nothing if the session is cancelled first.
async fn unless<T>(cancel: &Cancel, future: impl Future<Output = T>) -> Option<T> {
    let cancelled = async {
        while !cancel.is_cancelled() {
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::select! {
        result = future => Some(result),
        () = cancelled => None,
    }
}

fn cancelled() -> ToolFailure {
    ToolFailure::new("cancelled", "the call was cancelled")
}
