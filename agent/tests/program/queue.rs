//! `mote queue` as a script sees it.

use expect_test::expect;
use mote::store::{Queue, Store};
use mote_trajectory::{Reason, Record, Recorded, decode};

use crate::program::Program;

/// The records of a trajectory of the first release.
pub(crate) fn sample() -> Vec<Record> {
    let unhex = |line: &str| -> Vec<u8> {
        (0..line.len()).step_by(2).map(|at| u8::from_str_radix(&line[at..at + 2], 16).unwrap()).collect()
    };
    let text = include_str!("../../trajectory/fixtures/trajectory-v1.hex");
    text.lines().map(|line| decode(&unhex(line)).unwrap()).collect()
}

pub(crate) fn queue(program: &Program) -> Queue {
    Store::open(&program.root().join("home/mote.db")).unwrap().queue()
}

fn filled() -> Program {
    let program = Program::new();
    let mut writer = None;
    for record in sample() {
        match (record, &mut writer) {
            (Record::Opened(header), _) => writer = Some(queue(&program).begin(header).unwrap()),
            (Record::Sealed { outcome, .. }, Some(writer)) => drop(writer.seal(outcome).unwrap()),
            (Record::Feedback(_) | Record::Judged(_) | Record::Redacted(_), _) => {}
            (Record::CallResult(mut end), Some(writer)) => {
                end.proof_sha256 = Recorded::Absent(Reason::NotMeasured);
                writer.append(&Record::CallResult(end)).unwrap();
            }
            (step, Some(writer)) => writer.append(&step).unwrap(),
            (_, None) => panic!("the first record is the header"),
        }
    }
    program
}

#[test]
fn an_empty_queue_is_said_and_makes_no_file() {
    let program = Program::new();
    let mut text = String::new();
    for command in ["list", "show", "export", "status", "verify"] {
        let arguments = ["queue", command, "last"];
        text += &program.run(&arguments[..if command == "show" { 3 } else { 2 }]);
    }
    expect![[r#"
        exit 0
        -- stderr
        mote: queue is empty
          hint: run a task: mote run ".."
        exit 1
        -- stderr
        mote: queue is empty
          hint: run a task: mote run ".."
        exit 0
        exit 0
        -- stdout
        0 sealed, 0 running, 0 crashed, 0 dropped
        0.0 of 64 MiB used
        exit 0
        -- stdout
        0 trajectories, 0 records, 0 damages
    "#]]
    .assert_eq(&text);
    assert!(!program.root().join("home").exists());
}

#[test]
fn what_is_not_there_is_said() {
    let program = filled();
    let text = program.run(&["queue", "show", "7ZZ"]) + &program.run(&["queue", "show", ""]);
    expect![[r#"
        exit 1
        -- stderr
        mote: no such trajectory: 7ZZ
          hint: `mote queue list` shows them; `last` is the newest
        exit 1
        -- stderr
        mote: no such trajectory: 
          hint: `mote queue list` shows them; `last` is the newest
    "#]]
    .assert_eq(&text);
}

#[test]
fn an_export_is_one_object_a_line() {
    let program = filled();
    let to_stdout = program.command(&["queue", "export"]).output().unwrap().stdout;
    assert_eq!(program.run(&["queue", "export", "--out", "all.jsonl"]), "exit 0\n");
    assert_eq!(std::fs::read(program.root().join("all.jsonl")).unwrap(), to_stdout);
    let shown = program.command(&["queue", "show", "last", "--json"]).output().unwrap().stdout;
    assert_eq!(shown, to_stdout);
    let object: serde_json::Value = serde_json::from_slice(&to_stdout).unwrap();
    assert_eq!(object["turns"][0]["calls"][0]["arguments"]["zone"], "Asia/Tokyo");
    expect![[r#"
        exit 1
        -- stderr
        mote: cannot write the export: no/such/folder.jsonl: No such file or directory (os error 2)
          hint: choose another file with --out, or free some space
    "#]]
    .assert_eq(&program.run(&["queue", "export", "--out", "no/such/folder.jsonl"]));
}

#[test]
fn a_reader_that_has_enough_ends_an_export_quietly() {
    let program = filled();
    for arguments in
        [&["queue", "export"][..], &["queue", "show", "last"], &["queue", "list", "--json"], &["tools", "list"]]
    {
        let mut command = program.command(arguments);
        let mut child =
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(program.show(&child.wait_with_output().unwrap()), "exit 0\n", "{arguments:?}");
    }
}

#[test]
fn a_task_that_failed_says_why_afterwards() {
    let program = Program::new();
    std::fs::write(program.root().join("script"), "print(1)\n---\nprint(2)\n").unwrap();
    program.run(&["run", "--script", "script", "--max-turns", "1", "--", "count"]);
    let shown = program.run(&["queue", "show", "last"]);
    assert!(shown.contains("\noutcome      failed: no answer: the budget of turns is used up: 1 of 1\n"), "{shown}");
    assert!(program.run(&["queue", "list"]).contains("  failed  "));
    assert!(program.run(&["queue", "list", "--json"]).contains(r#""status":"failed""#));
    program.run(&["run", "--script", "script", "--", "count"]);
    let shown = program.run(&["queue", "show", "last"]);
    assert!(shown.contains("failed: no answer: the script has no program left for this turn\n"), "{shown}");
}

#[test]
fn a_list_status_and_check_of_one_task() {
    let program = filled();
    let text: String = ["list", "status", "verify"].iter().map(|command| program.run(&["queue", command])).collect();
    expect![[r#"
        exit 0
        -- stdout
        ID                          WHEN (UTC)        STATUS      TURNS  CALLS  TASK
        01KR0Q5V00ABCDEFGHJKMNPQRS  2026-05-28 20:26  complete        3      1  What time is it in Tokyo?
        exit 0
        -- stdout
        1 sealed, 0 running, 0 crashed, 0 dropped
        0.0 of 64 MiB used
        exit 0
        -- stdout
        1 trajectories, 11 records, 0 damages
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_damaged_store_is_set_aside_and_said() {
    let program = filled();
    std::fs::write(program.root().join("home/mote.db"), "no database").unwrap();
    expect![[r#"
        exit 0
        -- stderr
        mote: store is damaged; it was set aside and a fresh store made: ROOT/home/mote.db.corrupt-1
        mote: queue is empty
          hint: run a task: mote run ".."
    "#]]
    .assert_eq(&program.run(&["queue", "list"]));
}
