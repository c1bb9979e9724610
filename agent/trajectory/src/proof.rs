//! Call proofs: a chain of digests through the calls of one trajectory, so that no call can be changed, left out or put in another
//! place without all that follow it being made anew.
//!
//! A proof is over the one before it and over what was asked and what came back: names, digests of arguments and result, when, how
//! long, and what went wrong. The first one is over the trajectory's id. It is no signature: who can write every record can make
//! a new chain, and is found out by the chain over whole trajectories only.

use serde::Serialize;

use crate::{Call, Error, ErrorClass, Recorded, Sha256, Timestamp, Trajectory, TrajectoryId};

/// What the first proof of a trajectory is over; the number is the version of this form.
const FIRST: &str = "mote call proof 1";

/// Whether a call is what its proof says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProofState {
    /// It is.
    Holds,
    /// It is not, or the one before it is not.
    Broken,
    /// It was recorded by a build that made no proofs.
    Absent,
}

/// What a proof is over.
#[derive(Serialize)]
struct Proven<'a> {
    previous: Sha256,
    turn: u32,
    call_id: u32,
    parent: Option<u32>,
    server: &'a str,
    tool: &'a str,
    arguments: Sha256,
    valid: bool,
    mutating: bool,
    started_at: Timestamp,
    error_class: Option<ErrorClass>,
    latency_ms: Option<u64>,
    result: Option<(bool, u64, bool, Sha256, bool)>,
}

/// What the proof of the first call of a trajectory follows.
pub fn first_proof(id: TrajectoryId) -> Sha256 {
    Sha256::of(format!("{FIRST} {id}").as_bytes())
}

/// The proof of a call that has ended, after the one before it.
///
/// # Errors
/// If the call cannot be encoded.
pub fn call_proof(previous: Sha256, turn: u32, call: &Call) -> Result<Sha256, Error> {
    let result =
        call.result.value().map(|given| (given.ok, given.bytes, given.truncated, given.sha256, given.simulated));
    let proven = Proven {
        previous,
        turn,
        call_id: call.call_id,
        parent: call.parent,
        server: &call.server,
        tool: &call.tool,
        arguments: Sha256::of(call.arguments.as_str().as_bytes()),
        valid: call.valid,
        mutating: call.mutating,
        started_at: call.started_at,
        error_class: call.error_class,
        latency_ms: call.latency_ms.value().copied(),
        result,
    };
    Ok(Sha256::of(&postcard::to_stdvec(&proven)?))
}

impl Trajectory {
    /// The calls that have ended, in order, each with whether its proof holds.
    pub fn proofs(&self) -> Vec<(u32, ProofState)> {
        let mut previous = first_proof(self.header.traj_id);
        let mut begun = false;
        let ended = self.turns.iter().flat_map(|turn| turn.calls.iter().map(move |call| (turn.i, call)));
        let ended = ended.filter(|(_, call)| call.latency_ms.value().is_some());
        let check = |(turn, call): (u32, &Call)| {
            let state = match &call.proof_sha256 {
                Recorded::Value(proof) => {
                    let holds = call_proof(previous, turn, call).is_ok_and(|proven| proven == *proof);
                    (begun, previous) = (true, *proof);
                    if holds { ProofState::Holds } else { ProofState::Broken }
                }
                Recorded::Absent(_) if begun => ProofState::Broken,
                Recorded::Absent(_) => ProofState::Absent,
            };
            (call.call_id, state)
        };
        ended.map(check).collect()
    }
}
