//! The guardian: `mote guard -- COMMAND ARGS..`, a process between mote and a server.
//!
//! Invariants:
//! - Its standard input is a pipe that only mote holds. When the pipe closes, because mote let go of the server or died in
//!   whatever way, the server's whole process group is told to end and, after [`GRACE`] twice, killed.
//! - The server leads its own process group and dies with its guardian; a grandchild that leaves the group or loses its parent
//!   falls to the guardian, which kills it before it ends.
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

use crate::os;

/// How long a server may take to end when its input closes, and again when it is asked to terminate.
pub(crate) const GRACE: Duration = Duration::from_millis(400);

/// Rounds of killing orphans: each round takes one generation, and a server that breeds faster is left to its fate.
const MAX_ORPHAN_ROUNDS: usize = 64;

/// The name of the hidden subcommand.
pub(crate) const SUBCOMMAND: &str = "guard";

/// Names the program that understands [`SUBCOMMAND`] where it is not the running one, as in tests of the library.
const PROGRAM_VARIABLE: &str = "MOTE_GUARD_EXE";

/// The running program, whatever happened to its file.
const THIS_PROGRAM: &str = "/proc/self/exe";

static THIS_IS_MOTE: std::sync::OnceLock<()> = std::sync::OnceLock::new();

#[derive(PartialEq)]
enum Event {
    ServerEnded,
    MoteGone,
}

/// Runs as guardian if the command line says so, and gives the exit code or why there is none; the command line calls it first,
/// before anything else is set up.
///
/// A process that got past this call is mote itself, so that it may start itself as guardian.
pub fn run_if_asked() -> Option<Result<u8, String>> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(SUBCOMMAND.as_ref()) {
        let _ = THIS_IS_MOTE.set(());
        return None;
    }
    Some(guard(&arguments.skip_while(|argument| argument == "--").collect::<Vec<_>>()))
}

/// The exit code of a guardian that could not start its server, as shells have it.
pub const NOT_STARTED: u8 = 127;

/// The program to start as guardian: the one that options name, the one that `MOTE_GUARD_EXE` names, or mote itself.
pub(crate) fn program(option: Option<PathBuf>) -> Option<PathBuf> {
    option
        .or_else(|| std::env::var_os(PROGRAM_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from))
        .or_else(|| THIS_IS_MOTE.get().map(|()| PathBuf::from(THIS_PROGRAM)))
}

fn guard(command: &[OsString]) -> Result<u8, String> {
    let (program, arguments) = command.split_first().ok_or("no command to guard")?;
    set_child_subreaper(Some(getpid())).map_err(|error| format!("cannot adopt orphans: {error}"))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).process_group(0);
    os::die_with_parent(&mut command);
    let mut server =
        command.spawn().map_err(|error| format!("cannot start ({error}): {}", program.to_string_lossy()))?;
    let events = watch(&mut server);
    end(&server, &events);
    let status = server.wait();
    kill_orphans();
    Ok(status.map_or(NOT_STARTED, exit_code))
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

/// Returns when the server has ended, by itself or by force; it is not reaped yet, so that its group's id is still its own.
fn end(server: &Child, events: &Receiver<Event>) {
    if matches!(events.recv(), Ok(Event::MoteGone)) {
        for signal in [None, Some(Signal::TERM), Some(Signal::KILL)] {
            if let Some(signal) = signal {
                os::signal_group(server.id(), signal);
            }
            if events.recv_timeout(GRACE) != Err(RecvTimeoutError::Timeout) {
                break;
            }
        }
    }
    os::signal_group(server.id(), Signal::KILL);
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
