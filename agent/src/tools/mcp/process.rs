//! The process of a server over stdio, as mote sees it: its guardian, its pipes, and how it ended.
//!
//! Invariants: the guardian is waited for from the moment it starts, so that it never stays behind as a zombie; letting go of a
//! [`Process`], in whatever way, closes the guardian's input, and the guardian ends the server with all its descendants.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::configuration::McpServer;
use super::guard::{self, Terms};
use super::stream::{BoundedReader, StreamState, drain};
use crate::tools::sandbox::SandboxMode;

/// What every server gets of our environment.
const PASSED_ON: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// How long we wait for the guardian to be done: its two periods of grace and some room.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// How long after the end of a stream we wait to learn how the process ended.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);

/// Where servers run.
#[derive(Clone, Debug)]
pub(crate) struct Ground {
    /// The program that is started as guardian.
    pub(crate) guardian: PathBuf,
    /// The folder of servers that name none.
    pub(crate) working_dir: PathBuf,
    /// How they are confined.
    pub(crate) sandbox: SandboxMode,
    /// Who waits for the guardians.
    waiters: Arc<Mutex<JoinSet<()>>>,
}

impl Ground {
    pub(crate) fn new(guardian: PathBuf, working_dir: PathBuf, sandbox: SandboxMode) -> Ground {
        Ground { guardian, working_dir, sandbox, waiters: Arc::default() }
    }

    /// The folder in which a server runs.
    pub(crate) fn folder<'a>(&'a self, server: &'a McpServer) -> &'a Path {
        server.cwd.as_deref().unwrap_or(&self.working_dir)
    }

    /// Waits until no guardian is left, for as long as one may take.
    pub(crate) async fn all_ended(&self) {
        let mut waiters = std::mem::take(&mut *self.waiters.lock().unwrap_or_else(PoisonError::into_inner));
        drop(timeout(STOP_TIMEOUT, async { while waiters.join_next().await.is_some() {} }).await);
    }

    fn wait_for(&self, waiter: impl Future<Output = ()> + Send + 'static) {
        let mut waiters = self.waiters.lock().unwrap_or_else(PoisonError::into_inner);
        while waiters.try_join_next().is_some() {}
        waiters.spawn(waiter);
    }
}

/// The guardian and what is known of the server behind it.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) stream: Arc<StreamState>,
    pub(super) input: Input,
    ended: watch::Receiver<Option<ExitStatus>>,
    kill: Arc<Notify>,
    stderr: Arc<Mutex<Vec<u8>>>,
    drained: JoinHandle<()>,
}

impl Process {
    /// Starts a server behind its guardian; gives what it writes, too.
    pub(super) fn start(server: &McpServer, ground: &Ground) -> Result<(Process, BoundedReader<ChildStdout>), String> {
        let terms = serde_json::to_string(&Terms::of(server, ground)).map_err(|error| error.to_string())?;
        let mut command = Command::new(&ground.guardian);
        command.arg(guard::SUBCOMMAND).arg(terms).arg("--").arg(&server.command).args(&server.args);
        command
            .env_clear()
            .envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .envs(&server.env);
        command.current_dir(ground.folder(server));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let mut guardian = command.spawn().map_err(|error| format!("cannot start its guardian: {error}"))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (guardian.stdin.take(), guardian.stdout.take(), guardian.stderr.take())
        else {
            return Err("its guardian has no pipes".to_owned());
        };
        let (ends, ended) = watch::channel(None);
        let kill = Arc::new(Notify::new());
        let killed = kill.clone();
        ground.wait_for(async move {
            let status = tokio::select! {
                status = guardian.wait() => status,
                () = killed.notified() => {
                    drop(guardian.kill().await);
                    guardian.wait().await
                }
            };
            ends.send_replace(Some(status.unwrap_or_else(|_| ExitStatus::from_raw(0))));
        });
        let stream = Arc::new(StreamState::default());
        let tail = Arc::new(Mutex::new(Vec::new()));
        let drained = tokio::spawn(drain(stderr, tail.clone()));
        let reader = BoundedReader::new(stdout, stream.clone());
        Ok((Process { stream, input: Input::new(stdin), ended, kill, stderr: tail, drained }, reader))
    }

    /// Whether it was told to end, or has ended.
    pub(super) fn is_ending(&self) -> bool {
        self.ended.borrow().is_some() || self.input.is_closed()
    }

    /// Ends the server and waits until nothing of it is left.
    pub(super) async fn stop(&mut self) {
        self.input.close();
        if timeout(STOP_TIMEOUT, self.ended.wait_for(Option::is_some)).await.is_err() {
            self.kill.notify_one();
            drop(timeout(STOP_TIMEOUT, self.ended.wait_for(Option::is_some)).await);
        }
    }

    /// `what` happened, with what the server left: how it ended, what it printed, its last words.
    pub(super) async fn explain(&mut self, what: &str) -> String {
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
        let status = *timeout(EXIT_TIMEOUT, self.ended.wait_for(Option::is_some)).await.ok()?.ok()?;
        if !self.drained.is_finished() {
            drop(timeout(EXIT_TIMEOUT, &mut self.drained).await);
        }
        Some(match status?.code() {
            Some(code) if code > 128 => format!("signal {}", code - 128),
            Some(code) => format!("exit code {code}"),
            None => "its guardian was killed".to_owned(),
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.input.close();
    }
}

/// The guardian's input, which can be closed while a write into it is stuck.
#[derive(Clone, Debug)]
pub(super) struct Input(Arc<Mutex<Option<ChildStdin>>>);

impl Input {
    fn new(stdin: ChildStdin) -> Input {
        Input(Arc::new(Mutex::new(Some(stdin))))
    }

    pub(super) fn close(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn is_closed(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_none()
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
