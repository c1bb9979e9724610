//! One running MCP server: a process over stdio, through rmcp, behind a guardian.
//!
//! Invariants: everything that waits has a limit of time, everything that is read a limit of bytes. The server gets the few variables of
//! [`PASSED_ON`] and its own, nothing else of our environment. Letting go of a [`Client`], in whatever way, closes the guardian's input,
//! and the guardian ends the server with all its descendants. What a server asks of us (sampling, roots, elicitation) is refused.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientConfig, Implementation, JsonObject,
    PaginatedRequestParams, ProtocolVersion, Tool,
};
use rmcp::service::{ClientInitializeError, RoleClient, RunningService, ServiceError, serve_client};
use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::io::AsyncWrite;
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::configuration::McpServer;
use super::guard;
use super::stream::{BoundedReader, MAX_MESSAGE_BYTES, StreamState, drain};
use crate::tools::catalogue::ToolDescription;

/// What every server gets of our environment.
const PASSED_ON: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// How long a server may take to say that it is ready; `npx` and `uvx` may fetch it first.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a server may take to list its tools.
const LIST_TIMEOUT: Duration = Duration::from_secs(15);

/// How long one call may take if `tool_timeout_secs` does not say.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Pages of a list of tools: a server that always has a next page is not believed.
const MAX_PAGES: usize = 64;

/// Tools of all pages together; the catalogue takes fewer.
const MAX_LISTED_TOOLS: usize = 4096;

/// How long we wait for the guardian to be done: its two periods of grace and some room.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// How long after the end of a stream we wait to learn how the process ended.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

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
    /// It took longer than it may; the server is to be stopped.
    Timeout(Duration),
    /// It died or does not speak the protocol; the server is to be stopped.
    Broken,
}

/// A running server.
#[derive(Debug)]
pub(crate) struct Client {
    service: RunningService<RoleClient, ClientConfig>,
    input: Input,
    process: Process,
    call_timeout: Duration,
    /// When it was last of use.
    pub(crate) last_used: Instant,
}

impl Client {
    /// Starts the server and greets it. When this fails or is dropped, nothing of it is left behind.
    pub(crate) async fn start(server: &McpServer, guardian: &Path, working_dir: &Path) -> Result<Client, String> {
        let mut command = Command::new(guardian);
        command.arg(guard::SUBCOMMAND).arg("--").arg(&server.command).args(&server.args);
        command
            .env_clear()
            .envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .envs(&server.env);
        command.current_dir(server.cwd.as_deref().unwrap_or(working_dir));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut guardian = command.spawn().map_err(|error| format!("cannot start its guardian: {error}"))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (guardian.stdin.take(), guardian.stdout.take(), guardian.stderr.take())
        else {
            return Err("its guardian has no pipes".to_owned());
        };
        let stream = Arc::new(StreamState::default());
        let tail = Arc::new(Mutex::new(Vec::new()));
        let drained = tokio::spawn(drain(stderr, tail.clone()));
        let mut process = Process { guardian, stream: stream.clone(), stderr: tail, drained };
        let input = Input::new(stdin);
        let transport = AsyncRwTransport::new_client(BoundedReader::new(stdout, stream), input.clone())
            .with_max_line_length(MAX_MESSAGE_BYTES);
        let start_timeout = seconds(server.startup_timeout_secs, START_TIMEOUT);
        let greeted = timeout(start_timeout, serve_client(identity(), transport)).await;
        let why = match greeted {
            Ok(Ok(service)) => {
                let call_timeout = seconds(server.tool_timeout_secs, CALL_TIMEOUT);
                let last_used = Instant::now();
                return Ok(Client { service, input, process, call_timeout, last_used });
            }
            Ok(Err(error)) => why_not_greeted(&error),
            Err(_) => format!("it does not answer, in seconds: limit {}", start_timeout.as_secs()),
        };
        let why = process.explain(&why).await;
        input.close();
        Err(why)
    }

    /// Asks for all tools, page by page.
    pub(crate) async fn list(&mut self) -> Result<Listing, String> {
        self.process.stream.begin();
        match timeout(LIST_TIMEOUT, self.pages()).await {
            Ok(Ok(tools)) => {
                Ok(Listing { summary: self.summary(), tools: tools.into_iter().map(description).collect() })
            }
            Ok(Err(CallError::Refused(why))) => Err(why),
            Ok(Err(_)) => Err(self.process.explain("it ended while it listed its tools").await),
            Err(_) => Err(format!("it does not list its tools, in seconds: limit {}", LIST_TIMEOUT.as_secs())),
        }
    }

    /// Calls a tool by its name on the wire; several calls may be under way. [`Client::explain`] says why it broke.
    pub(crate) async fn call(&self, tool: &str, arguments: &JsonObject) -> Result<CallToolResult, CallError> {
        self.process.stream.begin();
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
        match timeout(self.call_timeout, self.service.call_tool_once(request)).await {
            Ok(Ok(CallToolResponse::Complete(result))) => Ok(result),
            Ok(Ok(_)) => {
                Err(CallError::Refused("it wants more from us than arguments, which is not supported yet".to_owned()))
            }
            Ok(Err(error)) => Err(refusal(error).map_or(CallError::Broken, CallError::Refused)),
            Err(_) => Err(CallError::Timeout(self.call_timeout)),
        }
    }

    /// What is known of why a call broke.
    pub(crate) async fn explain(&mut self) -> String {
        self.process.explain("it ended during the call").await
    }

    /// Whether its stream has ended.
    pub(crate) fn is_gone(&self) -> bool {
        self.service.is_transport_closed()
    }

    /// Ends the server and waits until nothing of it is left.
    pub(crate) async fn stop(mut self) {
        self.input.close();
        if timeout(STOP_TIMEOUT, self.process.guardian.wait()).await.is_err() {
            drop(self.process.guardian.kill().await);
        }
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

fn identity() -> ClientConfig {
    let mut config = ClientConfig::default();
    config.client_info = Implementation::new("mote", env!("CARGO_PKG_VERSION"));
    config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
    config
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
fn refusal(error: ServiceError) -> Option<String> {
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

/// The guardian and what is known of the server behind it.
#[derive(Debug)]
struct Process {
    guardian: Child,
    stream: Arc<StreamState>,
    stderr: Arc<Mutex<Vec<u8>>>,
    drained: JoinHandle<()>,
}

impl Process {
    /// `what` happened, with what the server left: how it ended, what it printed, its last words.
    async fn explain(&mut self, what: &str) -> String {
        const MAX_LINE_CHARS: usize = 300;
        if let Some(overflow) = self.stream.overflow() {
            return overflow;
        }
        let mut text = what.to_owned();
        for detail in [self.exited().await, self.stream.stray()].into_iter().flatten() {
            text.push_str(&format!("; {detail}"));
        }
        let tail = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = String::from_utf8_lossy(&tail);
        if let Some(line) = tail.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
            text.push_str(&format!("; it says: {}", line.chars().take(MAX_LINE_CHARS).collect::<String>()));
        }
        text
    }

    /// How the guardian ended, which is how the server ended; `None` if it still runs. All that it said is read by then.
    async fn exited(&mut self) -> Option<String> {
        let status = timeout(EXIT_TIMEOUT, self.guardian.wait()).await.ok()?.ok()?;
        if !self.drained.is_finished() {
            drop(timeout(EXIT_TIMEOUT, &mut self.drained).await);
        }
        Some(match status.code() {
            Some(code) if code > 128 => format!("signal {}", code - 128),
            Some(code) => format!("exit code {code}"),
            None => "its guardian was killed".to_owned(),
        })
    }
}

/// The guardian's input, which can be closed while a write into it is stuck.
#[derive(Clone, Debug)]
struct Input(Arc<Mutex<Option<ChildStdin>>>);

impl Input {
    fn new(stdin: ChildStdin) -> Input {
        Input(Arc::new(Mutex::new(Some(stdin))))
    }

    fn close(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn with<T>(&self, then: impl FnOnce(Pin<&mut ChildStdin>) -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(stdin) => then(Pin::new(stdin)),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }
}

impl AsyncWrite for Input {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.with(|stdin| stdin.poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stdin| stdin.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.input.close();
    }
}
