//! What a person sees.

use expect_test::expect;
use mote_trajectory::{
    Call, CallEnd, CallResult, ErrorClass, JsonText, Outcome, Reason, Record, Recorded, Role, Sha256, TrajectoryId,
    Turn, TurnKind,
};

use super::*;
use crate::store::tests::sample;

/// A task by a script that ends in the middle of its second call.
fn crashed() -> Vec<Record> {
    let mut records = sample();
    let Record::Opened(header) = &mut records[0] else { panic!("the first record is the header") };
    header.traj_id = TrajectoryId::from_bytes([7; 16]);
    header.policy = Recorded::Absent(Reason::Scripted);
    header.clock_trusted = false;
    header.task.query = format!("Say hello\nto \u{1b}[31mred{}", " and more".repeat(10));
    let Record::CallIntent { call, .. } = &records[4] else { panic!("record 4 is a call") };
    let call = |call_id, arguments: &str| Record::CallIntent {
        turn: 0,
        call: Call { call_id, arguments: JsonText::new(arguments).unwrap(), ..call.clone() },
    };
    let failed = Record::CallResult(CallEnd {
        turn: 0,
        call_id: 1,
        error_class: Some(ErrorClass::Timeout),
        latency_ms: 10_000,
        result: Recorded::Value(CallResult {
            ok: false,
            bytes: 9_000_000,
            truncated: true,
            sha256: Sha256::of(b""),
            excerpt: "\u{7}\u{1b}[2J".to_owned(),
            simulated: false,
        }),
        proof_sha256: Recorded::Absent(Reason::None),
    });
    let program = Turn::new(0, 0, Role::Assistant, TurnKind::Program, "a = 1\n\tb = 2\u{0}", Reason::Scripted);
    vec![records[0].clone(), Record::Turn(program), call(1, "{}"), failed, call(2, r#"{"zone":"UTC"}"#)]
}

#[test]
fn a_whole_trajectory_is_shown() {
    let trajectory = Trajectory::assemble(sample()).unwrap();
    expect![[r#"
        trajectory   01KR0Q5V00ABCDEFGHJKMNPQRS
        task         What time is it in Tokyo?
        when         2026-05-28T20:26:40.000Z
        policy       bundle 1e6ed65d77d6, q4_1, version 0
        tools        7 servers, 41 tools, mode ptc

        stage 0      tell the time in Tokyo
          selected   time.now (by harness, of time.now 0.90, time.convert 0.40)

        turn 0       program (640 prompt tokens, 512 cached; 3 new; prefill 310 ms, decode 95 ms)
            | # the zone is named
            | t = time.now(zone="Asia/Tokyo")
            | print(t)
          call 1     time.now {"zone":"Asia/Tokyo","absent":{"\u0000absent":"forged"}}
            ->       ok after 2 ms, 27 bytes: "2026-05-28T22:26:40+09:00"
          used       31 fuel, 512 bytes, 1 suspension

        turn 1       observation
            | 2026-05-28T22:26:40+09:00

        turn 2       answer
            | 22:26 in Tokyo

        outcome      complete, right says the checker: 22:26 in Tokyo
        cost         1 call, 640 prompt tokens, 3 new tokens, 420 milliseconds
        feedback     good: right
    "#]]
    .assert_eq(&show::text(&trajectory));
}

#[test]
fn a_crashed_trajectory_is_shown() {
    let trajectory = Trajectory::assemble(crashed()).unwrap();
    expect![[r#"
        trajectory   070W3GE1R70W3GE1R70W3GE1R7
        task         Say hello
                     to \u{1b}[31mred and more and more and more and more and more and more and more and more and more and more
        when         2026-05-28T20:26:40.000Z (clock not trusted)
        policy       none: scripted
        tools        7 servers, 41 tools, mode ptc

        turn 0       program
            | a = 1
            | 	b = 2\u{0}
          call 1     time.now {}
            ->       failed (timeout) after 10000 ms, 9000000 bytes, truncated: \u{7}\u{1b}[2J
          call 2     time.now {"zone":"UTC"}
            ->       no result: crash
          used       unknown: the program did not end

        outcome      incomplete: not sealed, it is running or has crashed
        cost         2 calls
    "#]].assert_eq(&show::text(&trajectory));
}

#[test]
fn a_list_has_a_line_each() {
    let folder = tempfile::tempdir().unwrap();
    let queue = Store::open(&folder.path().join("mote.db")).unwrap().queue();
    for records in [sample(), crashed()] {
        let mut records = records.into_iter();
        let Some(Record::Opened(header)) = records.next() else { panic!("the first record is the header") };
        let mut writer = queue.begin(header).unwrap();
        for record in records {
            match record {
                Record::Sealed { outcome, .. } => drop(writer.seal(outcome).unwrap()),
                Record::Feedback(_) | Record::Judged(_) | Record::Redacted(_) => {
                    queue.annotate(writer.id(), &record).unwrap();
                }
                step => writer.append(&step).unwrap(),
            }
        }
    }
    let entries = queue.list().unwrap();
    let rows = entries.iter().map(|&entry| Row::new(entry, queue.load(entry.id).ok().as_ref()));
    let mut text = format!("{TITLES}\n");
    for row in rows.chain(entries.first().map(|&entry| Row::new(entry, None))) {
        text += &format!("{}\n{}\n", row.line(), serde_json::to_string(&row).unwrap());
    }
    text += &format!("{}\n{}\n", counted(&queue.counts().unwrap()), verified(&queue.verify().unwrap()));
    expect![[r#"
        ID                          WHEN (UTC)        STATUS      TURNS  CALLS  TASK
        070W3GE1R70W3GE1R70W3GE1R7  2026-05-28 20:26  running         1      2  Say hello to \u{1b}[31mred and more and more and more and mo..
        {"id":"070W3GE1R70W3GE1R70W3GE1R7","state":"open","n_bytes":409,"created_at":"2026-05-28T20:26:40.000Z","status":null,"success":null,"turns":1,"calls":2,"task":"Say hello\nto \u001b[31mred and more and more and more and more and more and more and more and more and more and more"}
        01KR0Q5V00ABCDEFGHJKMNPQRS  2026-05-28 20:26  complete        3      1  What time is it in Tokyo?
        {"id":"01KR0Q5V00ABCDEFGHJKMNPQRS","state":"sealed","n_bytes":1254,"created_at":"2026-05-28T20:26:40.000Z","status":"complete","success":true,"turns":3,"calls":1,"task":"What time is it in Tokyo?"}
        070W3GE1R70W3GE1R70W3GE1R7  -                 running         -      -  -
        {"id":"070W3GE1R70W3GE1R70W3GE1R7","state":"open","n_bytes":409,"created_at":null,"status":null,"success":null,"turns":null,"calls":null,"task":null}
        1 sealed, 1 running, 0 crashed, 0 dropped
        0.0 of 64 MiB used
        2 trajectories, 19 records, 0 damages
    "#]].assert_eq(&text);
}

#[test]
fn a_task_without_an_answer_has_failed_and_says_why() {
    let mut trajectory = Trajectory::assemble(sample()).unwrap();
    trajectory.outcome.status = mote_trajectory::Status::Incomplete;
    trajectory.outcome.answer = Recorded::Absent(Reason::None);
    trajectory.outcome.success = Recorded::Absent(Reason::NotJudged);
    trajectory.stages.last_mut().unwrap().summary =
        Recorded::Value("the budget of turns is used up: 2 of 2".to_owned());
    let text = show::text(&trajectory);
    assert!(text.contains("outcome      failed: no answer: the budget of turns is used up: 2 of 2\n"), "{text}");
    assert_eq!(show::status(&trajectory.outcome), "failed");
}

#[test]
fn what_is_unknown_or_long_is_not_shown() {
    let mut trajectory = Trajectory::assemble(sample()).unwrap();
    trajectory.outcome = Outcome { n_calls: 2, ..Outcome::crashed(0) };
    trajectory.turns[0].calls[0].arguments = JsonText::new(format!("\"{}\"", "é".repeat(1_000))).unwrap();
    let text = show::text(&trajectory);
    assert!(text.contains("outcome      incomplete: no answer: crash\n"));
    assert!(text.contains(&format!("time.now \"{}..\n", "é".repeat(399))));
}
