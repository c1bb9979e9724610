//! `gather` through the whole program: each call comes back only when the other is under way.

use expect_test::expect;
use regex::Regex;
use serde_json::json;
use std::io::Write;
use std::process::Stdio;

use crate::program::Program;

const FAKE_SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/mcp/fake_server.py");

const MEETS: &str = "a, b = gather(fake.meet(me='x', other='y'), fake.meet(me='y', other='x'))\n";

/// A state folder with one server whose calls wait for each other.
fn ground() -> Program {
    let program = Program::new();
    let folder = program.root().join("home");
    std::fs::create_dir_all(&folder).unwrap();
    let server = json!({"command": "python3", "args": [FAKE_SERVER, "meets"], "trusted": true,
        "env": {"FAKE_CHANGED": program.root().join("changed")}});
    std::fs::write(folder.join("mcp.json"), json!({"mcpServers": {"fake": server}}).to_string()).unwrap();
    program
}

#[test]
fn a_script_gathers_calls_of_one_server() {
    let program = ground();
    std::fs::write(program.root().join("meet.py"), format!("{MEETS}print(a.met, b.met)\n")).unwrap();
    expect![[r#"
        exit 0
        -- stdout
        y x
    "#]]
    .assert_eq(&program.run(&["script", "run", "meet.py"]));
}

#[test]
fn a_typed_program_gathers_as_one_that_is_run() {
    let program = ground();
    let mut child = program
        .command(&["script", "repl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(format!("{MEETS}a.met, b.met\n").as_bytes()).unwrap();
    expect![[r#"
        exit 0
        -- stdout
        ('y', 'x')
    "#]]
    .assert_eq(&program.show(&child.wait_with_output().unwrap()));
}

#[test]
fn a_session_records_gathered_calls_in_written_order() {
    let program = ground();
    std::fs::write(program.root().join("script.txt"), format!("{MEETS}answer(a.met + b.met)\n")).unwrap();
    let shown = program.run(&["run", "--script", "script.txt", "--", "Let x and y meet"]);
    let shown = Regex::new(r"\d+ ms").unwrap().replace_all(&shown, "N ms");
    let shown = Regex::new(r"[\d.]+ s,").unwrap().replace_all(&shown, "N s,");
    let shown = Regex::new(r"trajectory \w{26}").unwrap().replace_all(&shown, "trajectory ID");
    let shown = Regex::new("(?m)^tools: .*\n").unwrap().replace_all(&shown, "");
    expect![[r#"
        exit 0
        -- stdout
        yx
        -- stderr
          | a, b = gather(fake.meet(me='x', other='y'), fake.meet(me='y', other='x'))
          | answer(a.met + b.met)
          #1 fake.meet(me="x", other="y")
          #2 fake.meet(me="y", other="x")
          #1 gave 20 bytes in N ms
          #2 gave 20 bytes in N ms
          from #1 fake.meet(me="x", other="y")
          from #2 fake.meet(me="y", other="x")
        complete: N s, 2 tool calls, trajectory ID
    "#]]
    .assert_eq(&shown);
}

#[test]
fn gathered_calls_that_are_not_allowed_are_named() {
    let program = Program::new();
    std::fs::write(program.root().join("a.txt"), "text").unwrap();
    let source = "xs = gather(fs.read(path='a.txt'), fs.write(path='b', text='c'), fs.read(path='no'), return_exceptions=True)\nprint(xs[0].text, [x.kind for x in xs[1:]])\n";
    std::fs::write(program.root().join("program.py"), source).unwrap();
    expect![[r#"
        exit 0
        -- stdout
        text ['denied', 'not_found']
    "#]]
    .assert_eq(&program.run(&["script", "run", "program.py"]));
}
