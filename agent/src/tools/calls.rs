//! One call, or several side by side: permission and start in written order, then the calls, then what came of them in order.
//!
//! Invariants: whoever is asked is asked for one call after another, before any of them is made; at most [`MAX_SIDE_BY_SIDE`]
//! are under way at a time, those of one server too; results stand in the order of the requests, and every call has ended
//! when the first result is looked at. A server that had to make room for another one of the same requests is called last.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mote_toolpacks::{CallContext, Notes};
use serde_json::{Map, Value};

use super::mcp::{Answered, Line};
use super::result::{MAX_RESULT_BYTES, ToolFailure, ToolOutcome, bound, value_of};
use super::runtime::{ToolRuntime, pack_kind};
use super::sandbox::{self, Confinement, SandboxMode};
use crate::cancel::Cancel;

/// Calls under way at a time: each takes a thread and may hold a result of some megabytes.
pub const MAX_SIDE_BY_SIDE: usize = 8;

/// What is to be called with what.
#[derive(Clone, Copy, Debug)]
pub struct ToolRequest<'a> {
    /// The server's name in the action language.
    pub server: &'a str,
    /// The tool's name in the action language.
    pub tool: &'a str,
    /// The arguments by their names on the wire.
    pub arguments: &'a Map<String, Value>,
}

/// A call that is allowed, and whose server runs.
pub(super) struct Permitted {
    pub(super) server: String,
    pub(super) wire_name: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) is_pack: bool,
}

/// What a call gave before the runtime has seen it.
enum Given {
    Pack(std::result::Result<Value, ToolFailure>),
    Server(Answered),
    /// The server made room for another one.
    Stopped,
}

type Timed<T> = (T, Duration);

impl ToolRuntime {
    /// Calls a tool and waits for what becomes of it.
    pub fn call(&mut self, server: &str, tool: &str, arguments: &Map<String, Value>) -> ToolOutcome {
        let started = Instant::now();
        let request = ToolRequest { server, tool, arguments };
        let result = self.run(&request);
        self.outcome(&request, result, started.elapsed())
    }

    /// Calls tools side by side and waits for all; outcomes stand in the order of the requests.
    pub fn call_all(&mut self, requests: &[ToolRequest<'_>]) -> Vec<ToolOutcome> {
        let mut permitted = Vec::new();
        for request in requests {
            let started = Instant::now();
            permitted.push((self.permitted(request), started.elapsed()));
        }
        let given = self.give(&permitted);
        let mut outcomes = Vec::new();
        for ((request, (permitted, waited)), (given, took)) in requests.iter().zip(permitted).zip(given) {
            let started = Instant::now();
            let result = match (permitted, given) {
                (Ok(_), Some(Given::Stopped)) => self.run(request),
                (Ok(permitted), Some(given)) => self.settle(&permitted, given),
                (Ok(_), None) => Err(ToolFailure::new("failed", "the call was not made")),
                (Err(failure), _) => Err(failure),
            };
            outcomes.push(self.outcome(request, result, waited + took + started.elapsed()));
        }
        outcomes
    }

    fn run(&mut self, request: &ToolRequest<'_>) -> std::result::Result<Value, ToolFailure> {
        let permitted = self.permitted(request)?;
        let given = self.hands().call(&permitted, self.line(&permitted));
        self.settle(&permitted, given)
    }

    fn give(&self, permitted: &[Timed<std::result::Result<Permitted, ToolFailure>>]) -> Vec<Timed<Option<Given>>> {
        let ways: Vec<_> =
            permitted.iter().map(|(p, _)| p.as_ref().ok().map(|permitted| (permitted, self.line(permitted)))).collect();
        let hands = self.hands();
        side_by_side(&ways, |way| {
            let started = Instant::now();
            (way.map(|(permitted, line)| hands.call(permitted, line)), started.elapsed())
        })
    }

    fn settle(&mut self, permitted: &Permitted, given: Given) -> std::result::Result<Value, ToolFailure> {
        let answered = match given {
            Given::Pack(result) => return result,
            Given::Server(answered) => answered,
            Given::Stopped => {
                return Err(ToolFailure::new("server", format!("the server does not run: {}", permitted.server)));
            }
        };
        let spill = self.spill.clone();
        let fleet = self.fleet(&permitted.server)?;
        let given = fleet.settle(&permitted.server, &permitted.wire_name, answered);
        let mut result = given.and_then(|given| value_of(given, &spill));
        if let Some(server) = fleet.server(&permitted.server) {
            match &mut result {
                Ok(value) => server.secrets.iter().for_each(|secret| secret.hide_in(value)),
                Err(failure) => failure.message = server.without_secrets(&failure.message),
            }
        }
        result
    }

    fn line(&self, permitted: &Permitted) -> Option<Line<'_>> {
        self.fleet.as_ref().filter(|_| !permitted.is_pack)?.line(&permitted.server)
    }

    fn hands(&self) -> Hands<'_> {
        Hands {
            working_dir: &self.working_dir,
            writable: &self.writable,
            readable: &self.readable,
            sandbox: self.sandbox,
            notes: self.notes.as_ref(),
            cancel: &self.cancel,
        }
    }

    fn outcome(
        &self,
        request: &ToolRequest<'_>,
        result: std::result::Result<Value, ToolFailure>,
        took: Duration,
    ) -> ToolOutcome {
        let mutating = self.catalogue().tool(request.server, request.tool).is_some_and(|entry| entry.writes);
        let (result, bytes, truncated) = match result {
            Ok(value) => bound(value, MAX_RESULT_BYTES),
            Err(failure) => (Err(failure), 0, false),
        };
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        ToolOutcome { result, bytes, truncated, ms, mutating }
    }
}

/// What a thread needs to make a call.
#[derive(Clone, Copy)]
struct Hands<'a> {
    working_dir: &'a Path,
    writable: &'a [PathBuf],
    readable: &'a [PathBuf],
    sandbox: SandboxMode,
    notes: &'a dyn Notes,
    cancel: &'a Cancel,
}

impl Hands<'_> {
    fn call(&self, permitted: &Permitted, line: Option<Line<'_>>) -> Given {
        let Permitted { server, wire_name, arguments, is_pack } = permitted;
        if !is_pack {
            return line.map_or(Given::Stopped, |line| Given::Server(line.call(wire_name, arguments)));
        }
        let confinement = sandbox::for_pack(server, self.sandbox, self.working_dir, self.readable, self.writable);
        Given::Pack(match confinement {
            Some(confinement) => confined(&confinement, || self.call_pack(permitted)),
            None => self.call_pack(permitted),
        })
    }

    fn call_pack(&self, permitted: &Permitted) -> std::result::Result<Value, ToolFailure> {
        let Permitted { server, wire_name, arguments, .. } = permitted;
        let cancelled = || self.cancel.is_cancelled();
        let mut context = CallContext::new(self.working_dir, self.notes);
        context.writable = self.writable;
        context.cancelled = &cancelled;
        mote_toolpacks::call(server, wire_name, arguments, &context).map_err(|error| ToolFailure {
            kind: pack_kind(error.kind()).to_owned(),
            message: error.message().to_owned(),
            hint: error.hint().map(str::to_owned),
        })
    }
}

/// What `work` gives on a thread of its own that is confined.
fn confined(
    confinement: &Confinement,
    work: impl FnOnce() -> std::result::Result<Value, ToolFailure> + Send,
) -> std::result::Result<Value, ToolFailure> {
    let failure = |why: &str| ToolFailure::new("sandbox", format!("the call was not made: {why}"));
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("mote-pack".to_owned()).spawn_scoped(scope, || {
            sandbox::confine_this_thread(confinement).map_err(|why| failure(&why))?;
            work()
        });
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(failure(&format!("there is no thread for it: {error}"))),
        }
    })
}

/// Does the jobs, [`MAX_SIDE_BY_SIDE`] at a time; results stand in the order of the jobs. Where no thread can be had, those that
/// there are do the work, this one at least.
fn side_by_side<J: Sync, R: Send>(jobs: &[J], work: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { return done };
            done.push((at, work(job)));
        }
    };
    let mut done = std::thread::scope(|scope| {
        let threads: Vec<_> = (1..jobs.len().min(MAX_SIDE_BY_SIDE))
            .filter_map(|_| std::thread::Builder::new().name("mote-call".to_owned()).spawn_scoped(scope, worker).ok())
            .collect();
        let mut done = worker();
        for thread in threads {
            match thread.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
