//! `mote script fmt|explain|repl|help`: the language for people.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use expect_test::{Expect, expect};

use crate::program::Program;

/// Long enough for a busy machine to start a process.
const PATIENCE: Duration = Duration::from_secs(20);

const UGLY: &str = "#why\nx=fs.list( path = '.' )\nif len(x)>1 : print('many',len(x));print( x[0] . name )\n";

fn typed(program: &Program, arguments: &[&str], lines: &str) -> String {
    let mut child =
        program.command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    program.show(&child.wait_with_output().unwrap())
}

fn repl(lines: &str, expected: Expect) {
    expected.assert_eq(&typed(&Program::new(), &["script", "repl"], lines));
}

#[test]
fn fmt_rewrites_shows_a_difference_and_is_content_with_its_own_work() {
    let program = Program::new();
    let file = program.root().join("a.py");
    fs::write(&file, UGLY).unwrap();
    expect![[""]].assert_eq(&program.run(&["script", "fmt", "--check", "a.py"]));
    assert_eq!(fs::read_to_string(&file).unwrap(), UGLY);
    expect![[""]].assert_eq(&program.run(&["script", "fmt", "a.py"]));
    expect![[""]].assert_eq(&fs::read_to_string(&file).unwrap());
    expect![[""]].assert_eq(&program.run(&["script", "fmt", "--check", "a.py"]));
    expect![[""]].assert_eq(&typed(&program, &["script", "fmt", "-"], "x=[1,2,]\n"));
    expect![[""]].assert_eq(&typed(&program, &["script", "fmt", "--json", "-"], "x = = 1\n"));
}

#[test]
fn explain_says_what_a_program_may_do() {
    let program = Program::new();
    fs::write(
        program.root().join("a.py"),
        "# tidy the notes\nfor f in fs.list(path=\".\"):\n    if f.name.endswith(\".tmp\"):\n        fs.write(path=f.name, txt=\"\")\nwhen = time.now(zone=3)\nfs.reed(path=\"a\")\nprint(wen, lines)\nlines = 1\nanswer(when.iso)\n",
    )
    .unwrap();
    expect![[""]].assert_eq(&program.run(&["script", "explain", "a.py", "--deny", "time.*"]));
    fs::write(program.root().join("b.py"), "print(1 + 2)\n").unwrap();
    expect![[""]].assert_eq(&program.run(&["script", "explain", "b.py", "--bytecode"]));
    expect![[""]].assert_eq(&program.run(&["script", "explain", "b.py", "--json"]));
}

#[test]
fn a_name_of_the_language_is_explained() {
    let program = Program::new();
    expect![[""]].assert_eq(&program.run(&["script", "help", "pop"]));
    expect![[""]].assert_eq(&program.run(&["script", "help", "sortd"]));
    expect![[""]].assert_eq(&program.run(&["script", "help"]));
}

#[test]
fn variables_live_on_and_a_failure_loses_nothing() {
    repl(
        "x = 20\nx + 1\ndef twice(n):\n    return 2 * n\ntwice(x)\nxs = [\n  1,\n  2,\n]\ny = 1 / 0\nprint(x, xs)\nlenght = 1\nlength\nfor n in xs:\n    print(n)\n\n    print(-n)\nelse:\n    print('end')\nanswer(x)\n:vars\n",
        expect![[""]],
    );
}

#[test]
fn commands_show_tools_limits_and_save_a_program() {
    let program = Program::new();
    let lines = "x=1\nbad(\n)\nprint( 'a',x )\n:limits\n:tools fs.\n:save out.py\n:save out.py\n:nope\n:help upper\n:help\nprint('after', end='')\n:quit\nprint('never')\n";
    expect![[""]].assert_eq(&typed(&program, &["script", "repl"], lines));
    expect![[""]].assert_eq(&fs::read_to_string(program.root().join("out.py")).unwrap());
    expect![[""]].assert_eq(&typed(&program, &["script", "repl"], ":save out.py\nx = (1,\n"));
}

#[test]
fn the_rules_of_permission_are_those_of_run() {
    let program = Program::new();
    let lines = "fs.write(path='a.txt', text='hi')\n";
    expect![[""]].assert_eq(&typed(&program, &["script", "repl"], lines));
    expect![[""]].assert_eq(&typed(&program, &["script", "repl", "--allow", "fs.write", "--writable", "."], lines));
    expect![[""]].assert_eq(&typed(&program, &["script", "repl", "--json"], "x = 1\nx\nx.y\n:vars\n"));
    expect![[""]].assert_eq(&typed(&program, &["script"], "x = 1\n"));
}

#[test]
fn a_program_may_come_from_a_pipe_and_waiting_for_one_can_be_interrupted() {
    let program = Program::new();
    let pipe = program.root().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut writer =
        Command::new("sh").args(["-c", "echo 'print(42)' > pipe"]).current_dir(program.root()).spawn().unwrap();
    expect![[r#"
        exit 0
        -- stdout
        42
    "#]]
    .assert_eq(&program.run(&["script", "run", "pipe"]));
    writer.wait().unwrap();
    for arguments in [["script", "run", "pipe"].as_slice(), &["script", "check", "-"], &["script", "repl"]] {
        let mut child = program
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        loop {
            sleep(Duration::from_millis(200));
            if let Some(status) = child.try_wait().unwrap() {
                assert_eq!(status.code(), Some(130), "{arguments:?}");
                break;
            }
            if started.elapsed() > Duration::from_millis(500) {
                assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
            }
            assert!(started.elapsed() < PATIENCE, "still there after {PATIENCE:?}: {arguments:?}");
        }
    }
}
