//! Putting together what a crash, a resumed task or damaged bytes have left.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod sample;

use expect_test::expect;
use mote_trajectory::*;

fn json(trajectory: &Trajectory) -> serde_json::Value {
    serde_json::to_value(trajectory).expect("serializes")
}

#[test]
fn a_crash_at_any_record_leaves_a_trajectory() {
    let records = sample::records();
    for n_records in 1..10 {
        let trajectory = Trajectory::assemble(records[..n_records].to_vec()).expect("a header");
        assert!(!trajectory.is_sealed());
        assert_eq!(trajectory.outcome.status, Status::Incomplete);
        assert_eq!(trajectory.outcome.answer, Recorded::Absent(Reason::Crash));
        assert_eq!(json(&trajectory)["absent"]["chain"], "crash");
    }
}

#[test]
fn a_call_without_its_result_says_so() {
    let trajectory = Trajectory::assemble(sample::records()[..5].to_vec()).expect("a header");
    expect![[r#"
        [
          {
            "call_id": 1,
            "parent": null,
            "server": "time",
            "tool": "now",
            "arguments": {
              "zone": "Asia/Tokyo",
              "absent": {
                "\u0000absent": "forged"
              }
            },
            "valid": true,
            "error_class": null,
            "started_at": "2026-05-28T20:26:40.405Z",
            "latency_ms": null,
            "result": null,
            "mutating": false,
            "proof_sha256": null,
            "absent": {
              "latency_ms": "crash",
              "result": "crash",
              "proof_sha256": "none"
            }
          }
        ]
    "#]]
    .assert_eq(&(serde_json::to_string_pretty(&json(&trajectory)["turns"][0]["calls"]).expect("text") + "\n"));
    assert_eq!(trajectory.stages[0].ended_by, EndedBy::Crash);
    assert_eq!(trajectory.outcome.n_calls, 1);
}

#[test]
fn damaged_and_orphaned_records_leave_gaps() {
    let mut assembler = Assembler::default();
    for (i, record) in sample::records().into_iter().enumerate() {
        if i == 3 {
            assembler.push_corrupt();
        } else {
            assembler.push(record);
        }
    }
    let trajectory = assembler.finish().expect("a header");
    let gaps: Vec<(u64, GapReason)> = trajectory.gaps.iter().map(|gap| (gap.record, gap.reason)).collect();
    assert_eq!(gaps, [(3, GapReason::Corrupt), (4, GapReason::Orphan), (5, GapReason::Orphan), (6, GapReason::Orphan)]);
    assert!(trajectory.is_sealed());
}

#[test]
fn a_resumed_task_writes_its_last_step_again() {
    let mut records = sample::records();
    let again: Vec<Record> = records[3..7].to_vec();
    records.splice(5..5, again);
    let once = Trajectory::assemble(sample::records()).expect("a header");
    assert_eq!(Trajectory::assemble(records).expect("a header"), once);
}
