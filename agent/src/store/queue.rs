//! The queue of trajectories: beginning, finding and reading them.

use mote_trajectory::{Assembler, ChainHasher, Header, Record, Trajectory, TrajectoryId, encode};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, named_params};
use serde::{Serialize, Serializer};

use super::Store;
use super::owner::{is_running, this_process};
use super::quota::{Teaches, expire};
use super::record::{MAX_PAYLOAD_BYTES, MAX_RECORDS, key, keys, pack, position, read, unpack};
use super::writer::{Writer, insert, inside, refused};
use crate::error::{Error, ErrorKind, Result};

/// How much the queue may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the records of all trajectories that are not open.
    pub quota_bytes: u64,
    /// Bytes of the records of one trajectory.
    pub trajectory_bytes: u64,
}

impl Default for Limits {
    /// A tenth of a gigabyte card's spare room, thousands of tasks; a task of the largest budgets uses a few megabytes.
    fn default() -> Self {
        Limits { quota_bytes: 64 << 20, trajectory_bytes: 16 << 20 }
    }
}

/// How many candidates an ambiguous id lists.
const CANDIDATES_MAX: usize = 5;
/// Where a trajectory stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// A process writes it.
    Open,
    /// Its outcome is recorded.
    Sealed,
    /// The process that wrote it is gone.
    Crashed,
}

/// One trajectory in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// Its name.
    #[serde(serialize_with = "as_text")]
    pub id: TrajectoryId,
    /// Where it stands.
    pub state: State,
    /// Bytes of its records.
    pub n_bytes: u64,
    #[serde(skip)]
    pub(super) n: i64,
}

fn as_text<S: Serializer>(id: &TrajectoryId, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

/// How many there are of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// Trajectories that are being written.
    pub open: u64,
    /// Trajectories whose outcome is recorded.
    pub sealed: u64,
    /// Trajectories whose process is gone.
    pub crashed: u64,
    /// Tombstones of those that were dropped.
    pub dropped: u64,
    /// Bytes of all records.
    pub n_bytes: u64,
    /// The most bytes that those which are not open may have.
    pub quota_bytes: u64,
}

/// The queue of trajectories.
#[derive(Debug, Clone)]
pub struct Queue {
    store: Store,
    limits: Limits,
}

impl Queue {
    pub(super) fn new(store: Store, limits: Limits) -> Queue {
        Queue { store, limits }
    }

    /// Opens a trajectory with its header, dropping what the quota asks for.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub fn begin(&self, header: Header) -> Result<Writer> {
        let id = header.traj_id;
        let bytes = encode(&Record::Opened(header)).map_err(refused)?;
        let (n, n_bytes) = self.store.run(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            expire(&transaction, self.limits.quota_bytes)?;
            let n =
                "SELECT coalesce(max(n), 0) + 1 FROM (SELECT n FROM trajectories UNION ALL SELECT n FROM tombstones)";
            let n: i64 = transaction.query_row(n, [], |row| row.get(0))?;
            let owner = this_process();
            transaction.execute(
                "INSERT INTO trajectories (n, id, owner) VALUES (:n, :id, :owner)",
                named_params! {":n": n, ":id": id.to_bytes(), ":owner": owner},
            )?;
            let key = key(n, 0);
            let (crc, payload) = pack(key, &bytes).map_err(inside)?;
            insert(&transaction, key, crc, &payload)?;
            transaction.commit()?;
            Ok((n, payload.len() as u64))
        })?;
        let mut hasher = ChainHasher::default();
        hasher.push(&bytes);
        Ok(Writer {
            store: self.store.clone(),
            limits: self.limits,
            id,
            n,
            position: 1,
            n_bytes,
            hasher,
            sealed: false,
        })
    }

    /// Goes on with a trajectory whose process is gone.
    ///
    /// # Errors
    /// `Failed` if it is sealed, `TryAgain` if another process writes it.
    pub fn resume(&self, id: TrajectoryId) -> Result<Writer> {
        let entry = self.entry(id)?;
        match entry.state {
            State::Sealed => return Err(Error::new(ErrorKind::Failed, format!("trajectory is sealed already: {id}"))),
            State::Open if !self.is_ours(entry.n)? => {
                return Err(Error::new(ErrorKind::TryAgain, format!("trajectory is written by another process: {id}"))
                    .with_hint("wait for the other mote to end"));
            }
            State::Open | State::Crashed => {}
        }
        let (mut hasher, mut last) = (ChainHasher::default(), 0);
        self.store.run(|connection| {
            connection.execute("UPDATE trajectories SET owner = ?1 WHERE n = ?2", (this_process(), entry.n))?;
            each_record(connection, entry.n, |key, crc, payload| {
                last = position(key);
                if let Some(bytes) = payload.and_then(|payload| unpack(key, crc, payload)) {
                    hasher.push(&bytes);
                }
            })
        })?;
        Ok(Writer {
            store: self.store.clone(),
            limits: self.limits,
            id,
            n: entry.n,
            position: last + 1,
            n_bytes: entry.n_bytes,
            hasher,
            sealed: false,
        })
    }

    /// Adds feedback, a judgement or a redaction to a trajectory that is sealed or crashed.
    ///
    /// # Errors
    /// `Failed` for any other record and for an open trajectory; else as [`Writer::append`].
    pub fn annotate(&self, id: TrajectoryId, record: &Record) -> Result<()> {
        let entry = self.entry(id)?;
        let is_note = matches!(record, Record::Feedback(_) | Record::Judged(_) | Record::Redacted(_));
        if !is_note || entry.state == State::Open {
            return Err(Error::new(ErrorKind::Failed, format!("nothing to add to this trajectory: {id}"))
                .with_hint("feedback is given when the task has ended"));
        }
        let bytes = encode(record).map_err(refused)?;
        let has_feedback = matches!(record, Record::Feedback(_));
        self.store.run(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let (first, last) = keys(entry.n);
            let key = transaction.query_row(
                "SELECT coalesce(max(key) + 1, ?1) FROM records WHERE key BETWEEN ?1 AND ?2",
                (first, last - 1),
                |row| row.get(0),
            )?;
            let (crc, payload) = pack(key, &bytes).map_err(inside)?;
            insert(&transaction, key, crc, &payload)?;
            transaction.execute(
                "UPDATE trajectories SET n_bytes = n_bytes + :n_bytes,
                 teaches = CASE WHEN :feedback AND teaches IS NOT NULL THEN :teaches ELSE teaches END WHERE n = :n",
                named_params! {
                    ":n_bytes": payload.len() as i64,
                    ":feedback": has_feedback,
                    ":teaches": Teaches::Feedback as i64,
                    ":n": entry.n,
                },
            )?;
            transaction.commit()
        })
    }

    /// All trajectories, the newest first.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn list(&self) -> Result<Vec<Entry>> {
        self.store.run(|connection| {
            let mut statement = connection.prepare(&format!("{ENTRIES} ORDER BY n DESC"))?;
            let entries = statement.query_map([MAX_RECORDS], entry)?;
            entries.collect()
        })
    }

    /// The trajectory that a person means: `last`, or the first characters of an id.
    ///
    /// # Errors
    /// `Failed` if there is none, or more than one.
    pub fn find(&self, text: &str) -> Result<TrajectoryId> {
        let ids: Vec<TrajectoryId> = self.list()?.iter().map(|entry| entry.id).collect();
        let Some(&newest) = ids.first() else {
            return Err(Error::new(ErrorKind::Failed, "queue is empty").with_hint("run a task: mote run \"..\""));
        };
        if text == "last" {
            return Ok(newest);
        }
        let prefix = text.to_ascii_uppercase();
        let fits = |id: &TrajectoryId| !prefix.is_empty() && id.to_string().starts_with(&prefix);
        let found: Vec<TrajectoryId> = ids.into_iter().filter(fits).collect();
        match found[..] {
            [id] => Ok(id),
            [] => Err(Error::new(ErrorKind::Failed, format!("no such trajectory: {text}"))
                .with_hint("`mote queue list` shows them; `last` is the newest")),
            _ => {
                let some: Vec<String> = found.iter().take(CANDIDATES_MAX).map(TrajectoryId::to_string).collect();
                let more = if found.len() > CANDIDATES_MAX { ", .." } else { "" };
                Err(Error::new(ErrorKind::Failed, format!("id fits {} trajectories: {text}", found.len()))
                    .with_hint(format!("give more of it: {}{more}", some.join(", "))))
            }
        }
    }

    /// A trajectory, as far as it was written; damaged records are gaps in it.
    ///
    /// # Errors
    /// `Failed` if there is none with this id, or its header is damaged.
    pub fn load(&self, id: TrajectoryId) -> Result<Trajectory> {
        let n = self.entry(id)?.n;
        let mut assembler = Assembler::default();
        let mut next = 0;
        self.store.run(|connection| {
            each_record(connection, n, |key, crc, payload| {
                (next..position(key)).for_each(|_| assembler.push_corrupt());
                next = position(key) + 1;
                match read(key, crc, payload) {
                    Some(record) => assembler.push(record),
                    None => assembler.push_corrupt(),
                }
            })
        })?;
        assembler.finish().map_err(|error| {
            Error::new(ErrorKind::Failed, format!("trajectory cannot be read: {id}: {error}"))
                .with_hint("`mote queue verify` tells what is damaged")
        })
    }

    /// All trajectories but the open ones, the oldest first, each read when it is asked for.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn export(&self) -> Result<impl Iterator<Item = Result<Trajectory>>> {
        let entries = self.list()?.into_iter().rev().filter(|entry| entry.state != State::Open);
        Ok(entries.map(|entry| self.load(entry.id)))
    }

    /// How many there are of what.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn counts(&self) -> Result<Counts> {
        let entries = self.list()?;
        let of = |state| entries.iter().filter(|entry| entry.state == state).count() as u64;
        let dropped = self.store.run(|connection| {
            connection.query_row("SELECT count(*) FROM tombstones", [], |row| row.get::<_, i64>(0))
        })?;
        Ok(Counts {
            open: of(State::Open),
            sealed: of(State::Sealed),
            crashed: of(State::Crashed),
            dropped: dropped.cast_unsigned(),
            n_bytes: entries.iter().map(|entry| entry.n_bytes).sum(),
            quota_bytes: self.limits.quota_bytes,
        })
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    fn entry(&self, id: TrajectoryId) -> Result<Entry> {
        let found = self.store.run(|connection| {
            connection.query_row(&format!("{ENTRIES} WHERE id = ?2"), (MAX_RECORDS, id.to_bytes()), entry).optional()
        })?;
        found.ok_or_else(|| Error::new(ErrorKind::Failed, format!("no such trajectory: {id}")))
    }

    fn is_ours(&self, n: i64) -> Result<bool> {
        self.store.run(|connection| {
            connection
                .query_row("SELECT owner = ?1 FROM trajectories WHERE n = ?2", (this_process(), n), |row| row.get(0))
        })
    }
}

const ENTRIES: &str = "SELECT n, id, owner, teaches IS NOT NULL, CASE WHEN teaches IS NOT NULL THEN n_bytes ELSE
 (SELECT coalesce(sum(length(payload)), 0) FROM records WHERE key BETWEEN n * ?1 AND n * ?1 + ?1 - 1) END
 FROM trajectories";

fn entry(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let owner: String = row.get(2)?;
    let state = match row.get(3)? {
        true => State::Sealed,
        false if is_running(&owner) => State::Open,
        false => State::Crashed,
    };
    let n_bytes: i64 = row.get(4)?;
    Ok(Entry { id: TrajectoryId::from_bytes(row.get(1)?), state, n_bytes: n_bytes.cast_unsigned(), n: row.get(0)? })
}

/// Hands key, checksum and payload of each record of trajectory `n` to `take`, in order; no payload if it is larger than
/// one can be.
pub(super) fn each_record(
    connection: &Connection,
    n: i64,
    mut take: impl FnMut(i64, i64, Option<&[u8]>),
) -> rusqlite::Result<()> {
    let (first, last) = keys(n);
    let mut statement = connection.prepare(
        "SELECT key, crc, CASE WHEN length(payload) <= ?3 THEN payload END FROM records
         WHERE key BETWEEN ?1 AND ?2 ORDER BY key",
    )?;
    let mut rows = statement.query((first, last, MAX_PAYLOAD_BYTES as i64))?;
    while let Some(row) = rows.next()? {
        take(row.get(0)?, row.get(1)?, row.get_ref(2)?.as_blob_or_null()?);
    }
    Ok(())
}
