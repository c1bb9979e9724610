//! Call proofs show every change of a call, and where it stands.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod sample;

use mote_trajectory::*;

const N_CALLS: u32 = 4;

/// A trajectory with calls that are proven.
fn proven() -> Trajectory {
    let mut trajectory = Trajectory::assemble(sample::records()[..4].to_vec()).expect("a header");
    let mut previous = first_proof(trajectory.header.traj_id);
    for id in 1..=N_CALLS {
        let mut call = sample::call(id);
        call.latency_ms = Recorded::Value(u64::from(id));
        call.result = Recorded::Value(CallResult {
            ok: true,
            bytes: 5,
            truncated: false,
            sha256: Sha256::of(b"\"hi\""),
            excerpt: "\"hi\"".to_owned(),
            simulated: false,
        });
        previous = call_proof(previous, 0, &call).expect("encodes");
        call.proof_sha256 = Recorded::Value(previous);
        trajectory.turns[0].calls.push(call);
    }
    trajectory
}

fn broken(trajectory: &Trajectory) -> Vec<u32> {
    let proofs = trajectory.proofs().into_iter();
    proofs.filter(|(_, state)| *state == ProofState::Broken).map(|(call, _)| call).collect()
}

#[test]
fn what_was_recorded_holds() {
    let states: Vec<ProofState> = proven().proofs().into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, [ProofState::Holds; 4]);
}

#[test]
fn every_change_of_a_call_is_found() {
    type Change = (&'static str, fn(&mut Call));
    let changes: [Change; 11] = [
        ("server", |call| call.server = "other".to_owned()),
        ("tool", |call| call.tool = "other".to_owned()),
        ("arguments", |call| call.arguments = JsonText::new("{}").expect("json")),
        ("valid", |call| call.valid = false),
        ("mutating", |call| call.mutating = true),
        ("error", |call| call.error_class = Some(ErrorClass::Denied)),
        ("time", |call| call.started_at = Timestamp::from_unix_ms(0).expect("a time")),
        ("latency", |call| call.latency_ms = Recorded::Value(9)),
        ("no result", |call| call.result = Recorded::Absent(Reason::None)),
        ("no proof", |call| call.proof_sha256 = Recorded::Absent(Reason::NotMeasured)),
        ("result", |call| {
            if let Recorded::Value(result) = &mut call.result {
                result.sha256 = Sha256::of(b"other");
            }
        }),
    ];
    for (what, change) in changes {
        let mut trajectory = proven();
        change(&mut trajectory.turns[0].calls[1]);
        assert_eq!(broken(&trajectory).first(), Some(&2), "{what}");
    }
}

#[test]
fn a_call_that_is_left_out_moved_or_of_another_task_is_found() {
    let mut trajectory = proven();
    trajectory.turns[0].calls.remove(1);
    assert_eq!(broken(&trajectory), [3]);
    let mut trajectory = proven();
    trajectory.turns[0].calls.remove(0);
    assert_eq!(broken(&trajectory), [2]);
    let mut trajectory = proven();
    trajectory.turns[0].calls.swap(1, 2);
    assert_eq!(broken(&trajectory), [3, 2, 4]);
    let mut trajectory = proven();
    trajectory.turns[0].i = 7;
    assert_eq!(broken(&trajectory), [1, 2, 3, 4]);
    let mut trajectory = proven();
    trajectory.header.traj_id = TrajectoryId::generate();
    assert_eq!(broken(&trajectory), [1]);
}

#[test]
fn what_was_recorded_without_proofs_is_not_called_broken() {
    let mut trajectory = proven();
    for call in &mut trajectory.turns[0].calls {
        call.proof_sha256 = Recorded::Absent(Reason::NotMeasured);
    }
    assert!(trajectory.proofs().iter().all(|(_, state)| *state == ProofState::Absent));
}
