//! A check of everything: the file's own structure, each record's checksum and form, each trajectory's chain and call proofs.

use mote_trajectory::{ChainHasher, ProofState, Record, TrajectoryId, decode};
use serde::Serialize;

use super::queue::{Entry, Queue, each_record};
use super::record::{position, unpack};
use crate::error::Result;

/// How many damages a verification lists; all are counted.
const DAMAGES_MAX: usize = 100;

/// What a check of everything found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Verification {
    /// Trajectories read.
    pub trajectories: u64,
    /// Records read.
    pub records: u64,
    /// Damages found.
    pub n_damages: u64,
    /// The first of them.
    pub damages: Vec<Damage>,
}

/// One thing that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The trajectory, or `None` for the file.
    pub trajectory: Option<String>,
    /// The record's position in it.
    pub record: Option<i64>,
    /// What is wrong.
    pub what: String,
}

impl Verification {
    fn damage(&mut self, id: Option<TrajectoryId>, record: Option<i64>, what: impl Into<String>) {
        self.n_damages += 1;
        if self.damages.len() < DAMAGES_MAX {
            self.damages.push(Damage { trajectory: id.map(|id| id.to_string()), record, what: what.into() });
        }
    }
}

impl Queue {
    /// Reads everything and tells what is damaged.
    ///
    /// # Errors
    /// If the store cannot be read at all.
    pub fn verify(&self) -> Result<Verification> {
        let mut found = Verification::default();
        let said: Vec<String> = self.store().run(|connection| {
            let mut statement = connection.prepare(&format!("PRAGMA integrity_check({DAMAGES_MAX})"))?;
            let rows = statement.query_map([], |row| row.get(0))?;
            rows.collect()
        })?;
        said.iter().filter(|line| *line != "ok").for_each(|line| found.damage(None, None, line.as_str()));
        for entry in self.list()? {
            self.verify_one(&entry, &mut found)?;
        }
        Ok(found)
    }

    fn verify_one(&self, entry: &Entry, found: &mut Verification) -> Result<()> {
        found.trajectories += 1;
        let id = Some(entry.id);
        let mut hasher = Some(ChainHasher::default());
        let mut next = 0;
        let n_damages = found.n_damages;
        self.store().run(|connection| {
            each_record(connection, entry.n, |key, crc, payload| {
                found.records += 1;
                let at = position(key);
                (next..at).for_each(|missing| found.damage(id, Some(missing), "record is missing"));
                next = at + 1;
                let Some(bytes) = payload.and_then(|payload| unpack(key, crc, payload)) else {
                    return found.damage(id, Some(at), "checksum does not fit");
                };
                match decode(&bytes) {
                    Err(error) => found.damage(id, Some(at), error.to_string()),
                    Ok(Record::Sealed { outcome, chain }) => {
                        let sealed = hasher.take().map(|hasher| hasher.seal(chain.prev_digest, &outcome));
                        if !matches!(sealed, Some(Ok(sealed)) if sealed == chain) {
                            found.damage(id, Some(at), "records are not those that were sealed");
                        }
                    }
                    Ok(_) => {
                        if let Some(hasher) = &mut hasher {
                            hasher.push(&bytes);
                        }
                    }
                }
            })
        })?;
        if let (true, Ok(trajectory)) = (found.n_damages == n_damages, self.load(entry.id)) {
            let proofs = trajectory.proofs();
            for (call, _) in proofs.into_iter().filter(|(_, state)| *state == ProofState::Broken) {
                found.damage(id, None, format!("call is not what its proof says: {call}"));
            }
        }
        Ok(())
    }
}
