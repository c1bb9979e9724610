//! `mote why`: what was seen, chosen, skipped and called, and whether that is what was recorded.

use expect_test::expect;
use mote_trajectory::{Call, Record, Recorded, call_proof, first_proof};
use serde_json::Value;

use crate::program::Program;
use crate::queue::{queue, sample};

/// What differs from run to run, replaced.
fn plain(text: &str) -> String {
    [(r"[0-9A-Z]{26}", "ID"), (r"proof [0-9a-f]{12}", "proof P"), (r"\d+ ms", "N ms"), (r"\d+ bytes", "N bytes")]
        .iter()
        .fold(text.to_owned(), |text, (pattern, word)| {
            regex::Regex::new(pattern).unwrap().replace_all(&text, *word).into_owned()
        })
}

#[test]
fn why_tells_what_was_seen_chosen_skipped_and_called() {
    let program = Program::new();
    let script = "r = math.eval(expression=\"6 * 7\")\nprint(r)\n---\ntry:\n  fs.write(path=\"a\", text=\"b\")\n\
                  except Exception as e:\n  print(e)\nanswer(\"42\")\n";
    std::fs::write(program.root().join("script"), script).unwrap();
    let arguments = ["run", "--script", "script", "--pack", "math", "--pack", "fs", "--", "how much is 6 times 7"];
    assert!(program.run(&arguments).starts_with("exit 0"));
    let said = plain(&program.run(&["why"]));
    let seen = [
        "  math.eval: chosen by harness before turn 0, 1 call, N ms, N bytes",
        "  fs.write: named by the program itself, 1 call (1 failed)",
    ];
    assert!(seen.iter().all(|line| said.contains(line)), "{said}");
    expect![[r#"
        call 1       math.eval in turn 1: ok, N ms, N bytes; proof P holds
        call 2       fs.write in turn 3: failed (denied), N ms, N bytes, may write; proof P holds
        cost         2 turns, 2 calls, N ms in tools
    "#]]
    .assert_eq(&said[said.find("call 1 ").unwrap()..]);
    let json = program.command(&["why", "last", "--json"]).output().unwrap();
    let why: Value = serde_json::from_slice(&json.stdout).unwrap();
    let holds: Vec<&Value> = why["calls"].as_array().unwrap().iter().map(|call| &call["proof_holds"]).collect();
    assert_eq!(holds, [&Value::Bool(true), &Value::Bool(true)]);
    assert!(program.run(&["queue", "verify"]).contains(" 0 damages"));
}

/// Records a task with one call, whose proof is that of a call with other arguments where `changed`.
fn recorded(changed: bool) -> Program {
    let program = Program::new();
    let mut writer = None;
    let mut begun: Option<(u32, Call)> = None;
    for record in sample() {
        match (record, &mut writer) {
            (Record::Opened(header), _) => {
                let first = first_proof(header.traj_id);
                writer = Some((queue(&program).begin(header).unwrap(), first));
            }
            (Record::CallIntent { turn, mut call }, Some((writer, _))) => {
                begun = Some((turn, call.clone()));
                if changed {
                    call.tool = "today".to_owned();
                }
                writer.append(&Record::CallIntent { turn, call }).unwrap();
            }
            (Record::CallResult(mut end), Some((writer, first))) => {
                let (turn, mut call) = begun.clone().unwrap();
                (call.error_class, call.result) = (end.error_class, end.result.clone());
                call.latency_ms = Recorded::Value(end.latency_ms);
                end.proof_sha256 = Recorded::Value(call_proof(*first, turn, &call).unwrap());
                writer.append(&Record::CallResult(end)).unwrap();
            }
            (Record::Sealed { outcome, .. }, Some((writer, _))) => drop(writer.seal(outcome).unwrap()),
            (Record::Feedback(_) | Record::Judged(_) | Record::Redacted(_), _) => {}
            (step, Some((writer, _))) => writer.append(&step).unwrap(),
            (_, None) => panic!("the first record is the header"),
        }
    }
    program
}

#[test]
fn a_call_that_was_changed_is_found_though_every_checksum_fits() {
    let sound = recorded(false);
    assert!(sound.run(&["queue", "verify"]).contains(" 0 damages"));
    assert!(sound.run(&["why"]).starts_with("exit 0"));
    let changed = recorded(true);
    expect![[r#"
        exit 1
        -- stdout
        1 trajectories, 11 records, 1 damages
          01KR0Q5V00ABCDEFGHJKMNPQRS: call is not what its proof says: 1
    "#]]
    .assert_eq(&changed.run(&["queue", "verify"]));
    let why = changed.run(&["why"]);
    assert!(why.starts_with("exit 1") && why.contains("PROOF BROKEN"), "{why}");
}
