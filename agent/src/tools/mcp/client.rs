//! One running MCP server, through rmcp.
//!
//! Invariants: everything that waits has a limit of time, everything that is read a limit of bytes. The server gets the few variables of
//! our environment that every server gets and its own. Letting go of a [`Client`], in whatever way, ends the server.

use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientRequest, JsonObject, PaginatedRequestParams,
    PingRequest, Tool,
};
use rmcp::service::{ClientInitializeError, RoleClient, RunningService, ServiceError, serve_client};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::time::{sleep, timeout};

use super::configuration::McpServer;
use super::extras;
use super::listener::Listener;
use super::process::{Ground, Input, Process};
use super::stream::MAX_MESSAGE_BYTES;
use crate::tools::catalogue::ToolDescription;

/// How long a server may take to say that it is ready; `npx` and `uvx` may fetch it first.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a server may take to list its tools.
const LIST_TIMEOUT: Duration = Duration::from_secs(15);

/// How long one call may take without a sign of progress if `tool_timeout_secs` does not say.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// How often a call may be given that time again because the server says that it gets on.
const MAX_EXTENSIONS: u32 = 10;

/// How long a server may take to show that it is still there after a call that took too long.
const PING_TIMEOUT: Duration = Duration::from_secs(1);

/// A server that is not `keep` and was of no use for so long is stopped, if `idle_timeout_secs` does not say.
const IDLE: Duration = Duration::from_secs(300);

/// Pages of a list of tools: a server that always has a next page is not believed.
const MAX_PAGES: usize = 64;

/// Tools of all pages together; the catalogue takes fewer.
const MAX_LISTED_TOOLS: usize = 4096;

/// Characters of what a server says of itself that make its summary.
const MAX_SUMMARY_CHARS: usize = 160;

/// What a server says of itself and its tools.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listing {
    pub(crate) summary: String,
    pub(crate) tools: Vec<ToolDescription>,
}

/// Why something did not come back from a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    /// The server refused or misunderstood; it still runs.
    Refused(String),
    /// It took longer than it may; a server that does not live any more is to be stopped.
    Timeout {
        /// How long that was.
        limit: Duration,
        /// Whether it answers otherwise.
        lives: bool,
    },
    /// It died or does not speak the protocol; the server is to be stopped.
    Broken,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Client {
    service: RunningService<RoleClient, Listener>,
    process: Process,
    call_timeout: Duration,
    usage: Usage,
    /// Names of tools that stand for its resources and prompts.
    extras: Vec<String>,
}

impl Client {
    /// Starts the server and greets it. When this fails or is dropped, nothing of it is left behind.
    pub(crate) async fn start(server: &McpServer, ground: &Ground) -> Result<Client, String> {
        let (mut process, reader) = Process::start(server, ground)?;
        let transport =
            AsyncRwTransport::new_client(reader, process.input.clone()).with_max_line_length(MAX_MESSAGE_BYTES);
        let start_timeout = seconds(server.startup_timeout_secs, START_TIMEOUT);
        let greeted = timeout(start_timeout, serve_client(Listener::new(), transport)).await;
        let why = match greeted {
            Ok(Ok(service)) => {
                let usage = Usage::default();
                if !server.keep {
                    tokio::spawn(end_when_idle(
                        usage.clone(),
                        seconds(server.idle_timeout_secs, IDLE),
                        process.input.clone(),
                    ));
                }
                let call_timeout = seconds(server.tool_timeout_secs, CALL_TIMEOUT);
                return Ok(Client { service, process, call_timeout, usage, extras: Vec::new() });
            }
            Ok(Err(error)) => why_not_greeted(&error),
            Err(_) => format!("it does not answer, in seconds: limit {}", start_timeout.as_secs()),
        };
        let why = process.explain(&why).await;
        process.stop().await;
        Err(server.without_secrets(&why))
    }

    /// Asks for all tools, page by page.
    pub(crate) async fn list(&mut self) -> Result<Listing, String> {
        self.process.stream.begin();
        self.service.service().take_tools_changed();
        match timeout(LIST_TIMEOUT, self.pages()).await {
            Ok(Ok(tools)) => {
                let mut tools: Vec<ToolDescription> = tools.into_iter().map(description).collect();
                let info = self.service.peer_info();
                let mut extras = info.map(|info| extras::tools(&info.capabilities)).unwrap_or_default();
                extras.retain(|extra| !tools.iter().any(|tool| tool.name == extra.name));
                self.extras = extras.iter().map(|extra| extra.name.clone()).collect();
                tools.extend(extras);
                Ok(Listing { summary: self.summary(), tools })
            }
            Ok(Err(CallError::Refused(why))) => Err(why),
            Ok(Err(_)) => Err(self.process.explain("it ended while it listed its tools").await),
            Err(_) => Err(format!("it does not list its tools, in seconds: limit {}", LIST_TIMEOUT.as_secs())),
        }
    }

    /// Calls a tool by its name on the wire; several calls may be under way. [`Client::explain`] says why it broke.
    ///
    /// A server that says that it gets on is given its time again, at most [`MAX_EXTENSIONS`] times. One that takes too long is told
    /// that nobody waits any more.
    pub(crate) async fn call(&self, tool: &str, arguments: &JsonObject) -> Result<CallToolResult, CallError> {
        let _in_use = self.usage.begin();
        self.process.stream.begin();
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
        let started = Instant::now();
        let mut progress = self.service.service().progress();
        {
            let mut call = pin!(async {
                if self.extras.iter().any(|name| name == tool) {
                    return extras::call(&self.service, tool, arguments).await;
                }
                answered(self.service.call_tool_once(request).await)
            });
            loop {
                let patient = started.elapsed() < self.call_timeout * MAX_EXTENSIONS;
                tokio::select! {
                    biased;
                    answer = &mut call => return answer,
                    () = sleep(self.call_timeout) => break,
                    Ok(()) = progress.changed(), if patient => {}
                }
            }
        }
        Err(CallError::Timeout { limit: self.call_timeout, lives: self.lives().await })
    }

    /// Whether the server still answers at all.
    async fn lives(&self) -> bool {
        let ping = self.service.send_request(ClientRequest::PingRequest(PingRequest::default()));
        matches!(timeout(PING_TIMEOUT, ping).await, Ok(Ok(_) | Err(ServiceError::McpError(_))))
    }

    /// What is known of why a call broke.
    pub(crate) async fn explain(&mut self) -> String {
        self.process.explain("it ended during the call").await
    }

    /// Whether it has ended or is about to.
    pub(crate) fn is_gone(&self) -> bool {
        self.service.is_transport_closed() || self.process.is_ending()
    }

    /// Whether it has said that its tools are no longer those that it listed.
    pub(crate) fn tools_changed(&self) -> bool {
        self.service.service().tools_changed()
    }

    /// When it was last of use; a server with a call under way is of use now.
    pub(crate) fn last_used(&self) -> Instant {
        self.usage.last_used()
    }

    /// It is about to be of use.
    pub(crate) fn touch(&self) {
        drop(self.usage.begin());
    }

    /// Ends the server and waits until nothing of it is left.
    pub(crate) async fn stop(mut self) {
        self.process.stop().await;
    }

    async fn pages(&self) -> Result<Vec<Tool>, CallError> {
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let request = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.service.list_tools(Some(request)).await;
            let page = page.map_err(|error| refusal(error).map_or(CallError::Broken, CallError::Refused))?;
            tools.extend(page.tools);
            if tools.len() > MAX_LISTED_TOOLS {
                return Err(CallError::Refused(format!(
                    "it has too many tools: limit {MAX_LISTED_TOOLS}, used {}",
                    tools.len()
                )));
            }
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(tools),
            }
        }
        Err(CallError::Refused(format!("its list of tools does not end, in pages: limit {MAX_PAGES}")))
    }

    fn summary(&self) -> String {
        let Some(info) = self.service.peer_info() else { return String::new() };
        let said = info.instructions.clone().unwrap_or_default();
        let words: Vec<&str> = said.split_whitespace().collect();
        words.join(" ").chars().filter(|c| !c.is_control()).take(MAX_SUMMARY_CHARS).collect()
    }
}

/// A configured limit, at least a second and at most a day.
fn seconds(configured: Option<u64>, usual: Duration) -> Duration {
    configured.map_or(usual, |secs| Duration::from_secs(secs.clamp(1, 86_400)))
}

fn answered(answer: Result<CallToolResponse, ServiceError>) -> Result<CallToolResult, CallError> {
    match answer {
        Ok(CallToolResponse::Complete(result)) => Ok(result),
        Ok(_) => Err(CallError::Refused("it wants more from us than arguments, which is not supported yet".to_owned())),
        Err(error) => Err(refusal(error).map_or(CallError::Broken, CallError::Refused)),
    }
}

fn description(tool: Tool) -> ToolDescription {
    let read_only_hint = tool.annotations.and_then(|annotations| annotations.read_only_hint).unwrap_or(false);
    ToolDescription {
        name: tool.name.into_owned(),
        description: tool.description.map(|text| text.into_owned()).or(tool.title).unwrap_or_default(),
        parameters: serde_json::Value::Object(tool.input_schema.as_ref().clone()),
        read_only_hint,
    }
}

/// What the server said if it said no; `None` if it is no longer there.
pub(super) fn refusal(error: ServiceError) -> Option<String> {
    match error {
        ServiceError::McpError(error) => Some(error.message.into_owned()),
        ServiceError::TransportClosed | ServiceError::TransportSend(_) | ServiceError::Cancelled { .. } => None,
        ServiceError::UnexpectedResponse => Some("the server's answer is no result of a tool".to_owned()),
        other => Some(other.to_string()),
    }
}

fn why_not_greeted(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::JsonRpcError(error) => format!("it refuses to start: {}", error.message),
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
            "it ended before it was ready".to_owned()
        }
        _ => "it does not speak the protocol".to_owned(),
    }
}

/// Whether a server is of use, and when it last was; clones share it.
#[derive(Clone, Debug)]
struct Usage(Arc<(AtomicUsize, Mutex<Instant>)>);

impl Default for Usage {
    fn default() -> Usage {
        Usage(Arc::new((AtomicUsize::new(0), Mutex::new(Instant::now()))))
    }
}

impl Usage {
    fn begin(&self) -> InUse<'_> {
        self.0.0.fetch_add(1, Ordering::AcqRel);
        InUse(self)
    }

    fn last_used(&self) -> Instant {
        if self.0.0.load(Ordering::Acquire) > 0 {
            return Instant::now();
        }
        *self.0.1.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call under way.
struct InUse<'a>(&'a Usage);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        *self.0.0.1.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Ends a server that was of no use for `limit`.
async fn end_when_idle(usage: Usage, limit: Duration, input: Input) {
    loop {
        match limit.checked_sub(usage.last_used().elapsed()) {
            Some(left) if !left.is_zero() => sleep(left).await,
            _ => return input.close(),
        }
    }
}
