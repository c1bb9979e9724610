//! `mote queue`: what was recorded, for people and for the trainer.

mod show;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use mote_trajectory::Trajectory;
use serde::Serialize;

use crate::cli::Globals;
use crate::cli::out::plain;
use crate::error::{Error, ErrorKind, Result};
use crate::store::{Counts, Entry, Limits, Queue, State, Store, Verification};

/// The exit code when something in the queue cannot be read.
const DAMAGED: u8 = 1;
/// Characters of a task in a list.
const TASK_CHARS: usize = 60;

#[derive(Subcommand, Debug)]
pub(crate) enum QueueCommand {
    /// List trajectories, the newest first
    List {
        /// List at most N
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Show a trajectory step by step
    Show {
        /// `last`, or the first characters of an id
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Print all trajectories as JSON Lines, the oldest first
    Export {
        /// Write to FILE instead of standard output
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Count what the queue holds
    Status,
    /// Check every record, and tell what is damaged
    Verify,
}

pub(crate) fn run(command: &QueueCommand, globals: &Globals) -> Result<u8> {
    match command {
        QueueCommand::List { limit } => list(globals, *limit),
        QueueCommand::Show { id } => show(globals, id),
        QueueCommand::Export { out } => export(globals, out.as_deref()),
        QueueCommand::Status => status(globals),
        QueueCommand::Verify => verify(globals),
    }
}

/// The queue, if anything was ever recorded: looking makes no file.
fn open(globals: &Globals) -> Result<Option<Queue>> {
    let path = globals.home.store();
    if !path.exists() {
        return Ok(None);
    }
    let store = Store::open(&path)?;
    store.notices().iter().for_each(|notice| globals.out.message(&format!("mote: {notice}")));
    Ok(Some(store.queue()))
}

/// The queue and what it holds, if it holds anything.
fn open_filled(globals: &Globals) -> Result<Option<(Queue, Vec<Entry>)>> {
    let Some(queue) = open(globals)? else { return Ok(None) };
    let entries = queue.list()?;
    Ok((!entries.is_empty()).then_some((queue, entries)))
}

fn empty() -> Error {
    Error::new(ErrorKind::Failed, "queue is empty").with_hint("run a task: mote run \"..\"")
}

/// A line of the list; what could not be read is null.
#[derive(Serialize)]
struct Row {
    #[serde(flatten)]
    entry: Entry,
    created_at: Option<String>,
    status: Option<&'static str>,
    success: Option<bool>,
    turns: Option<usize>,
    calls: Option<usize>,
    task: Option<String>,
}

impl Row {
    fn new(entry: Entry, trajectory: Option<&Trajectory>) -> Row {
        Row {
            entry,
            created_at: trajectory.map(|trajectory| trajectory.header.created_at.to_string()),
            status: trajectory
                .filter(|_| entry.state == State::Sealed)
                .map(|trajectory| show::status(&trajectory.outcome)),
            success: trajectory.and_then(|trajectory| trajectory.outcome.success.value().copied()),
            turns: trajectory.map(|trajectory| trajectory.turns.len()),
            calls: trajectory.map(|trajectory| trajectory.turns.iter().map(|turn| turn.calls.len()).sum()),
            task: trajectory.map(|trajectory| trajectory.header.task.query.clone()),
        }
    }

    fn line(&self) -> String {
        let status = match (self.entry.state, self.status) {
            (State::Open, _) => "running",
            (State::Crashed, _) => "crashed",
            (State::Sealed, Some(status)) => status,
            (State::Sealed, None) => "damaged",
        };
        let count = |n: Option<usize>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
        let when = self.created_at.as_deref().and_then(|at| at.get(..16)).unwrap_or("-").replace('T', " ");
        let task = plain(self.task.as_deref().unwrap_or("-")).replace(['\n', '\t'], " ");
        let mut short: String = task.chars().take(TASK_CHARS).collect();
        if short.len() < task.len() {
            short.push_str("..");
        }
        let (turns, calls) = (count(self.turns), count(self.calls));
        format!("{}  {when:<16}  {status:<10}  {turns:>5}  {calls:>5}  {short}", self.entry.id)
    }
}

const TITLES: &str = "ID                          WHEN (UTC)        STATUS      TURNS  CALLS  TASK";

fn list(globals: &Globals, limit: usize) -> Result<u8> {
    let Some((queue, entries)) = open_filled(globals)? else {
        globals.out.message(&format!("mote: {}", empty()));
        return Ok(0);
    };
    if !globals.out.json() {
        globals.out.line(TITLES)?;
    }
    for &entry in entries.iter().take(limit) {
        let trajectory = queue.load(entry.id);
        if let Err(error) = &trajectory {
            globals.out.message(&format!("mote: {error}"));
        }
        let row = Row::new(entry, trajectory.as_ref().ok());
        if globals.out.json() {
            globals.out.object(&row)?;
        } else {
            globals.out.line(&row.line())?;
        }
    }
    if entries.len() > limit && !globals.out.json() {
        globals.out.message(&format!("{} more: mote queue list --limit {}", entries.len() - limit, entries.len()));
    }
    Ok(0)
}

/// A trajectory by `last` or the beginning of its id.
pub(super) fn load(id: &str, globals: &Globals) -> Result<Trajectory> {
    let (queue, _) = open_filled(globals)?.ok_or_else(empty)?;
    queue.load(queue.find(id)?)
}

fn show(globals: &Globals, id: &str) -> Result<u8> {
    let trajectory = load(id, globals)?;
    if globals.out.json() {
        globals.out.object(&trajectory)?;
    } else {
        globals.out.line(show::text(&trajectory).trim_end())?;
    }
    Ok(0)
}

fn export(globals: &Globals, out: Option<&Path>) -> Result<u8> {
    let queue = open(globals)?;
    let recorded = queue.as_ref().map(Queue::export).transpose()?;
    let mut code = 0;
    let mut whole = recorded.into_iter().flatten().filter_map(|trajectory| {
        trajectory
            .map_err(|error| {
                globals.out.message(&format!("mote: {error}"));
                code = DAMAGED;
            })
            .ok()
    });
    match out {
        None => whole.try_for_each(|trajectory| globals.out.object(&trajectory))?,
        Some(path) => write_file(path, whole).map_err(|error| {
            Error::new(ErrorKind::Failed, format!("cannot write the export: {}: {error}", path.display()))
                .with_hint("choose another file with --out, or free some space")
        })?,
    }
    Ok(code)
}

/// Writes `trajectories` to the file at `path`, which appears whole or not at all.
fn write_file(path: &Path, trajectories: impl Iterator<Item = Trajectory>) -> std::io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let write = || {
        let mut file = BufWriter::new(File::create(&partial)?);
        for trajectory in trajectories {
            serde_json::to_writer(&mut file, &trajectory)?;
            file.write_all(b"\n")?;
        }
        file.into_inner()?.sync_all()?;
        fs::rename(&partial, path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&partial)))
}

fn status(globals: &Globals) -> Result<u8> {
    let counts = match open(globals)? {
        Some(queue) => queue.counts()?,
        None => Counts { quota_bytes: Limits::default().quota_bytes, ..Counts::default() },
    };
    if globals.out.json() {
        globals.out.object(&counts)?;
    } else {
        globals.out.line(&counted(&counts))?;
    }
    Ok(0)
}

fn counted(counts: &Counts) -> String {
    let Counts { open, sealed, crashed, dropped, n_bytes, quota_bytes } = counts;
    format!(
        "{sealed} sealed, {open} running, {crashed} crashed, {dropped} dropped\n{:.1} of {:.0} MiB used",
        mebibytes(*n_bytes),
        mebibytes(*quota_bytes)
    )
}

fn mebibytes(n_bytes: u64) -> f64 {
    n_bytes as f64 / f64::from(1 << 20)
}

fn verify(globals: &Globals) -> Result<u8> {
    let found = match open(globals)? {
        Some(queue) => queue.verify()?,
        None => Verification::default(),
    };
    if globals.out.json() {
        globals.out.object(&found)?;
    } else {
        globals.out.line(&verified(&found))?;
    }
    Ok(if found.n_damages == 0 { 0 } else { DAMAGED })
}

fn verified(found: &Verification) -> String {
    let Verification { trajectories, records, n_damages, damages } = found;
    let mut text = format!("{trajectories} trajectories, {records} records, {n_damages} damages");
    for damage in damages {
        let place = match (&damage.trajectory, damage.record) {
            (Some(id), Some(record)) => format!("{id} record {record}"),
            (Some(id), None) => id.clone(),
            _ => "file".to_owned(),
        };
        text.push_str(&format!("\n  {place}: {}", damage.what));
    }
    text
}
