//! Writing one trajectory, record by record.
//!
//! An append that returned is durable. A failed one wrote nothing and may be tried again.

use std::io;

use mote_trajectory::{Chain, ChainHasher, Outcome, Record, Recorded, Sha256, TrajectoryId, encode};
use rusqlite::{Connection, TransactionBehavior, named_params};

use super::Store;
use super::queue::Limits;
use super::quota::Teaches;
use super::record::{MAX_RECORDS, key, pack};
use crate::error::{Error, ErrorKind, Result};

/// Positions kept for what comes after the steps: the seal, feedback, judgements, redactions.
pub(super) const RESERVED_RECORDS: i64 = 1 << 10;

/// Writes one open trajectory.
#[derive(Debug)]
pub struct Writer {
    pub(super) store: Store,
    pub(super) limits: Limits,
    pub(super) id: TrajectoryId,
    pub(super) n: i64,
    pub(super) position: i64,
    pub(super) n_bytes: u64,
    pub(super) hasher: ChainHasher,
    pub(super) sealed: bool,
}

impl Writer {
    /// The trajectory's name.
    pub fn id(&self) -> TrajectoryId {
        self.id
    }

    /// Bytes of records written for it so far.
    pub fn bytes_written(&self) -> u64 {
        self.n_bytes
    }

    /// Appends a step; when this returns it is durable.
    ///
    /// # Errors
    /// `Failed` with limit and used for a record above [`mote_trajectory::MAX_RECORD_BYTES`] (ask
    /// [`mote_trajectory::encode`] beforehand to shorten it) and for a trajectory above its limits; `TryAgain` for a
    /// full disk or a busy file.
    pub fn append(&mut self, record: &Record) -> Result<()> {
        if self.sealed || matches!(record, Record::Opened(_) | Record::Sealed { .. }) {
            return Err(Error::new(ErrorKind::Failed, format!("no step of an open trajectory: {}", self.id)));
        }
        limited("records of a trajectory", MAX_RECORDS - RESERVED_RECORDS, self.position + 1)?;
        let bytes = encode(record).map_err(refused)?;
        let key = key(self.n, self.position);
        let (crc, payload) = pack(key, &bytes).map_err(not_packed)?;
        let n_bytes = self.n_bytes + payload.len() as u64;
        limited("bytes of a trajectory", self.limits.trajectory_bytes, n_bytes)?;
        self.store.run(|connection| insert(connection, key, crc, &payload))?;
        self.hasher.push(&bytes);
        self.position += 1;
        self.n_bytes = n_bytes;
        Ok(())
    }

    /// Ends the trajectory; nothing more can be appended. Fills in `bytes_written`.
    ///
    /// # Errors
    /// As [`Writer::append`]; the trajectory stays open and sealing may be tried again.
    pub fn seal(&mut self, mut outcome: Outcome) -> Result<Chain> {
        if self.sealed {
            return Err(Error::new(ErrorKind::Failed, format!("trajectory is sealed already: {}", self.id)));
        }
        outcome.bytes_written = Recorded::Value(self.n_bytes);
        let teaches = Teaches::of(&outcome);
        let key = key(self.n, self.position);
        let (hasher, n) = (&self.hasher, self.n);
        let blank = Chain { prev_digest: Sha256([0; 32]), self_digest: Sha256([0; 32]) };
        encode(&Record::Sealed { outcome: outcome.clone(), chain: blank }).map_err(refused)?;
        let chain = self.store.run(|connection| {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let head = transaction.query_row("SELECT head FROM chain", [], |row| row.get(0))?;
            let chain = hasher.clone().seal(Sha256(head), &outcome).map_err(inside)?;
            let (crc, payload) = encode(&Record::Sealed { outcome, chain })
                .map_err(inside)
                .and_then(|bytes| pack(key, &bytes).map_err(inside))?;
            insert(&transaction, key, crc, &payload)?;
            transaction.execute(
                "UPDATE trajectories SET teaches = :teaches, n_bytes = :n_bytes, self_digest = :digest WHERE n = :n",
                named_params! {
                    ":teaches": teaches as i64,
                    ":n_bytes": self.n_bytes.cast_signed() + payload.len() as i64,
                    ":digest": chain.self_digest.0,
                    ":n": n,
                },
            )?;
            transaction.execute("UPDATE chain SET head = ?1", [chain.self_digest.0])?;
            transaction.commit()?;
            Ok(chain)
        })?;
        self.sealed = true;
        Ok(chain)
    }
}

pub(super) fn insert(connection: &Connection, key: i64, crc: u32, payload: &[u8]) -> rusqlite::Result<()> {
    let mut statement = connection.prepare("INSERT INTO records VALUES (?1, ?2, ?3)")?;
    statement.execute((key, crc, payload)).map(drop)
}

/// The refusal of a record that does not fit.
pub(super) fn refused(error: mote_trajectory::Error) -> Error {
    Error::new(ErrorKind::Failed, error.to_string())
}

pub(super) fn not_packed(error: io::Error) -> Error {
    Error::new(ErrorKind::Failed, format!("cannot compress a record: {error}"))
}

pub(super) fn inside(error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

fn limited<N: PartialOrd + std::fmt::Display>(what: &str, limit: N, used: N) -> Result<()> {
    if used > limit {
        return Err(Error::new(ErrorKind::Failed, format!("too many {what}: limit {limit}, used {used}"))
            .with_hint("end the task: what was recorded is kept"));
    }
    Ok(())
}
