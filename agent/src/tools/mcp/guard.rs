//! The guardian: `mote guard TERMS -- COMMAND ARGS..`, a process between mote and a server.
//!
//! Invariants:
//! - Its standard input is a pipe that only mote holds. When the pipe closes, because mote let go of the server or died in
//!   whatever way, the server's whole process group is told to end and, after [`GRACE`] twice, killed.
//! - The server leads its own process group and dies with its guardian; a grandchild that leaves the group or loses its parent
//!   falls to the guardian, which kills it before it ends.
//! - The server is confined as its terms say, from its first instruction on; the guardian itself is not.
//! - A server that is over its [`Caps`] is killed with all that it started; what ends while it runs is reaped.
//! - The guardian ends with the server's exit code, or 128 and the signal's number.
//!
//! It does not look into what passes: requests are copied from its input, answers go past it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions, getpid, set_child_subreaper, waitid};
use serde::{Deserialize, Serialize};

use super::caps::{Caps, LOOK_EVERY, MEMORY_MIB};
use super::configuration::McpServer;
use super::process::Ground;
use crate::os;
use crate::tools::sandbox::{self, Confinement};

/// How long a server may take to end when its input closes, and again when it is asked to terminate.
pub(crate) const GRACE: Duration = Duration::from_millis(400);

/// Rounds of killing orphans: each round takes one generation, and a server that breeds faster is left to its fate.
const MAX_ORPHAN_ROUNDS: usize = 64;

/// The name of the hidden subcommand.
pub(crate) const SUBCOMMAND: &str = "guard";

/// Names the program that understands [`SUBCOMMAND`] where it is not the running one, as in tests of the library.
const PROGRAM_VARIABLE: &str = "MOTE_GUARD_EXE";

/// Names the folder of temporary files.
const TEMPORARY: &str = "TMPDIR";

/// The running program, whatever happened to its file.
const THIS_PROGRAM: &str = "/proc/self/exe";

static THIS_IS_MOTE: std::sync::OnceLock<()> = std::sync::OnceLock::new();

/// The terms on which a server runs, as mote hands them to the guardian.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Terms {
    caps: Caps,
    confinement: Option<Confinement>,
    /// Whether the server gets a temporary folder of its own.
    temporary: bool,
}

impl Terms {
    pub(super) fn of(server: &McpServer, ground: &Ground) -> Terms {
        let confinement = sandbox::for_server(server, ground.folder(server), ground.sandbox);
        Terms {
            caps: Caps { memory_mib: server.max_memory_mib.unwrap_or(MEMORY_MIB).max(1) },
            temporary: confinement.is_some() && !server.env.contains_key(TEMPORARY),
            confinement,
        }
    }
}

/// Why a guardian did not end with its server's exit code.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// What to say on standard error.
    pub why: String,
}

impl From<String> for Failure {
    fn from(why: String) -> Failure {
        Failure { code: NOT_STARTED, why }
    }
}

#[derive(PartialEq)]
enum Event {
    ServerEnded,
    MoteGone,
}

/// Runs as guardian if the command line says so, and gives the exit code or why there is none; the command line calls it first,
/// before anything else is set up.
///
/// A process that got past this call is mote itself, so that it may start itself as guardian.
pub fn run_if_asked() -> Option<Result<u8, Failure>> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(SUBCOMMAND.as_ref()) {
        let _ = THIS_IS_MOTE.set(());
        return None;
    }
    let terms = arguments.next().and_then(|terms| serde_json::from_str(terms.to_str()?).ok());
    Some(match terms {
        Some(terms) => guard(&terms, &arguments.skip_while(|argument| argument == "--").collect::<Vec<_>>()),
        None => Err("no terms to guard on".to_owned().into()),
    })
}

/// The exit code of a guardian that could not start its server, as shells have it.
const NOT_STARTED: u8 = 127;

/// The exit code of a guardian that killed its server, as shells have it.
const KILLED: u8 = 128 + 9;

/// The program to start as guardian: the one that options name, the one that `MOTE_GUARD_EXE` names, or mote itself.
pub(crate) fn program(option: Option<PathBuf>) -> Option<PathBuf> {
    option
        .or_else(|| std::env::var_os(PROGRAM_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from))
        .or_else(|| THIS_IS_MOTE.get().map(|()| PathBuf::from(THIS_PROGRAM)))
}

fn guard(terms: &Terms, command: &[OsString]) -> Result<u8, Failure> {
    let (program, arguments) = command.split_first().ok_or_else(|| "no command to guard".to_owned())?;
    set_child_subreaper(Some(getpid())).map_err(|error| format!("cannot adopt orphans: {error}"))?;
    terms.caps.impose()?;
    let mut confinement = terms.confinement.clone();
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).process_group(0);
    os::die_with_parent(&mut command);
    let temporary = terms.temporary.then(|| tempfile::Builder::new().prefix("mote-server-").tempdir()).transpose();
    let temporary = temporary.map_err(|error| format!("cannot make a temporary folder: {error}"))?;
    if let (Some(folder), Some(confinement)) = (&temporary, &mut confinement) {
        command.env(TEMPORARY, folder.path());
        confinement.write.push(folder.path().to_path_buf());
    }
    let (mut server, _starter) = start(command, confinement)?;
    let events = watch(&mut server);
    let excess = end(&server, terms.caps, &events);
    let status = server.wait();
    kill_orphans();
    match excess {
        Some(why) => Err(Failure { code: KILLED, why }),
        None => Ok(status.map_or(NOT_STARTED, exit_code)),
    }
}

/// Starts the server from a thread that is confined as the server is to be. The kernel ends the server when that thread ends, which it
/// does when the sender is dropped.
fn start(mut command: Command, confinement: Option<Confinement>) -> Result<(Child, Sender<()>), String> {
    let (started, server) = channel();
    let (starter, until) = channel::<()>();
    let start = move || {
        let confined = confinement.map_or(Ok(()), |confinement| sandbox::confine_this_thread(&confinement));
        let spawned = confined.and_then(|()| {
            let program = command.get_program().to_string_lossy().into_owned();
            command.spawn().map_err(|error| format!("cannot start ({error}): {program}"))
        });
        drop(started.send(spawned));
        let _ = until.recv();
    };
    let thread = thread::Builder::new().name("mote-start".to_owned()).spawn(start);
    thread.map_err(|error| format!("cannot start a thread: {error}"))?;
    let server = server.recv().unwrap_or_else(|_| Err("the thread that starts the server ended".to_owned()))?;
    Ok((server, starter))
}

/// Starts the threads that copy requests, wait for the server and wait for mote's end.
fn watch(server: &mut Child) -> Receiver<Event> {
    let (sender, events) = channel();
    let input = server.stdin.take();
    thread::spawn(move || {
        let Some(mut input) = input else { return };
        drop(io::copy(&mut io::stdin().lock(), &mut input));
    });
    let id = os::pid(server.id());
    let ended: Sender<Event> = sender.clone();
    thread::spawn(move || {
        if let Some(id) = id {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(id), options), Err(Errno::INTR)) {}
        }
        drop(ended.send(Event::ServerEnded));
    });
    thread::spawn(move || {
        let stdin = io::stdin();
        while poll(&mut [PollFd::new(&stdin, PollFlags::empty())], None) == Err(Errno::INTR) {}
        drop(sender.send(Event::MoteGone));
    });
    events
}

/// Returns when the server has ended, by itself or by force; it is not reaped yet, so that its group's id is still its own. Gives the
/// cap that it was over, if that was why.
fn end(server: &Child, caps: Caps, events: &Receiver<Event>) -> Option<String> {
    let mut excess = None;
    loop {
        match events.recv_timeout(LOOK_EVERY) {
            Err(RecvTimeoutError::Timeout) => {
                os::reap_children_but(server.id());
                excess = caps.exceeded();
                if excess.is_some() {
                    break;
                }
            }
            Ok(Event::MoteGone) => {
                ask_to_end(server, events);
                break;
            }
            Ok(Event::ServerEnded) | Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    os::signal_group(server.id(), Signal::KILL);
    excess
}

/// Gives the server the time to end when its input closes, and again when it is told to.
fn ask_to_end(server: &Child, events: &Receiver<Event>) {
    for signal in [None, Some(Signal::TERM)] {
        if let Some(signal) = signal {
            os::signal_group(server.id(), signal);
        }
        if events.recv_timeout(GRACE) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Kills what was left behind by the server and came to us, generation by generation.
fn kill_orphans() {
    let this = std::process::id();
    for _ in 0..MAX_ORPHAN_ROUNDS {
        let orphans = os::children_of(this);
        if orphans.is_empty() {
            return;
        }
        for orphan in orphans {
            os::kill(orphan);
            if let Some(id) = os::pid(orphan) {
                let _ = waitid(WaitId::Pid(id), WaitIdOptions::EXITED);
            }
        }
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(NOT_STARTED)
}
