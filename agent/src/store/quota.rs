//! What is dropped when the queue is full.
//!
//! The trajectories that are not open hold at most `quota_bytes`. What teaches least goes first: successes, then those
//! that nobody labelled, then failures, then crashes, then those with feedback; the oldest of each first. An open one is
//! never dropped. It is done when a trajectory is begun, so that one that has just been sealed can still be looked at. A
//! dropped one leaves a tombstone: its id and digest.

use mote_trajectory::{Outcome, Recorded, Status};
use rusqlite::Connection;

use super::owner::is_running;
use super::record::{MAX_RECORDS, keys};

/// Tombstones kept; the oldest go first.
const TOMBSTONES_MAX: i64 = 10_000;

/// What a trajectory teaches, least first: the order in which they are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Teaches {
    Success = 0,
    Unlabelled = 1,
    Failure = 2,
    Crash = 3,
    Feedback = 4,
}

impl Teaches {
    pub(super) fn of(outcome: &Outcome) -> Teaches {
        match (outcome.success, outcome.status) {
            (Recorded::Value(true), _) => Teaches::Success,
            (Recorded::Value(false), _) | (_, Status::Incomplete) => Teaches::Failure,
            _ => Teaches::Unlabelled,
        }
    }
}

/// Drops what the quota asks for, within the caller's transaction.
pub(super) fn expire(connection: &Connection, quota_bytes: u64) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(
        "SELECT n, owner, teaches IS NULL, CASE WHEN teaches IS NOT NULL THEN n_bytes ELSE
         (SELECT coalesce(sum(length(payload)), 0) FROM records WHERE key BETWEEN n * ?1 AND n * ?1 + ?1 - 1) END
         FROM trajectories ORDER BY coalesce(teaches, ?2), n",
    )?;
    let rows = statement.query_map((MAX_RECORDS, Teaches::Crash as i64), |row| {
        let is_open = row.get::<_, bool>(2)? && is_running(&row.get::<_, String>(1)?);
        Ok((row.get::<_, i64>(0)?, is_open, row.get::<_, i64>(3)?.cast_unsigned()))
    })?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let candidates = rows.iter().filter(|(_, is_open, _)| !is_open);
    let mut used: u64 = candidates.clone().map(|(_, _, n_bytes)| n_bytes).sum();
    for &(n, _, n_bytes) in candidates {
        if used <= quota_bytes {
            break;
        }
        drop_one(connection, n)?;
        used -= n_bytes;
    }
    Ok(())
}

fn drop_one(connection: &Connection, n: i64) -> rusqlite::Result<()> {
    let (first, last) = keys(n);
    connection.execute("INSERT INTO tombstones SELECT n, id, self_digest FROM trajectories WHERE n = ?1", [n])?;
    connection.execute("DELETE FROM records WHERE key BETWEEN ?1 AND ?2", [first, last])?;
    connection.execute("DELETE FROM trajectories WHERE n = ?1", [n])?;
    connection.execute(
        "DELETE FROM tombstones WHERE n <= (SELECT n FROM tombstones ORDER BY n DESC LIMIT 1 OFFSET ?1)",
        [TOMBSTONES_MAX],
    )?;
    Ok(())
}
