//! Ctrl-C ends work at once, even work that hangs; a pipe that never ends is where it hangs most easily.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use expect_test::expect;

use crate::bundles::tiny;
use crate::program::Program;

/// Long enough for a busy machine to start a process.
const PATIENCE: Duration = Duration::from_secs(20);

fn pipe(program: &Program, name: &str) {
    let path = program.root().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Whether the process has its handler for an interrupt in place.
fn listens(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 2 != 0)
}

/// Starts a command that hangs, interrupts it once and gives its exit code.
fn interrupted(program: &Program, arguments: &[&str]) -> Option<i32> {
    let mut command = program.command(arguments);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while !listens(&child) {
        assert!(started.elapsed() < PATIENCE, "{arguments:?}: does not listen after {PATIENCE:?}");
        sleep(Duration::from_millis(20));
    }
    sleep(Duration::from_millis(300));
    assert_eq!(child.try_wait().unwrap(), None, "{arguments:?}: it does not hang");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if started.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("{arguments:?}: still there after {PATIENCE:?}");
        }
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_interrupt_ends_a_wait_for_a_pipe() {
    let program = Program::new();
    tiny(&program);
    pipe(&program, "pipe");
    for arguments in [
        &["model", "generate", "--model", "./tiny", "--raw-ids", "1", "--grammar", "pipe"][..],
        &["run", "--script", "pipe", "--", "a task"],
        &["run", "--script", "todo", "--mcp", "pipe", "--", "a task"],
        &["script", "check", "pipe"],
        &["script", "run", "pipe"],
        &["tools", "list", "--mcp", "pipe"],
    ] {
        fs::write(program.root().join("todo"), "answer(1)\n").unwrap();
        assert_eq!(interrupted(&program, arguments), Some(130), "{arguments:?}");
    }
}

#[test]
fn a_pipe_among_the_configuration_does_not_stop_an_interrupt() {
    let program = Program::new();
    pipe(&program, "home/mcp.json");
    for arguments in [&["doctor"][..], &["tools", "list"]] {
        assert!(matches!(interrupted(&program, arguments), Some(130 | 1)), "{arguments:?}");
    }
}

#[test]
fn a_program_may_come_through_a_pipe() {
    let program = Program::new();
    let mote = program.command(&[]).get_program().to_str().unwrap().to_owned();
    let script = format!(
        "{mote} script run <(echo 'print(1)'); (sleep 0.2; echo 'print(2)') | {mote} script run -; \
         {mote} run --no-record --script <(echo 'answer(3)') -- count 2>/dev/null"
    );
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).current_dir(program.root());
    shell.env("MOTE_HOME", program.root().join("home"));
    assert_eq!(String::from_utf8(shell.output().unwrap().stdout).unwrap(), "1\n2\n3\n");
}

#[test]
fn a_pipe_in_place_of_the_store_is_refused() {
    let program = Program::new();
    pipe(&program, "home/mote.db");
    expect![[r#"
        exit 78
        -- stderr
        mote: no regular file: ROOT/home/mote.db
          hint: move it away, or set MOTE_HOME to another folder
    "#]]
    .assert_eq(&program.run(&["queue", "list"]));
    fs::remove_file(program.root().join("home/mote.db")).unwrap();
    pipe(&program, "home/mote.db.lock");
    fs::write(program.root().join("home/mote.db"), "").unwrap();
    expect![[r#"
        exit 78
        -- stderr
        mote: no regular file: ROOT/home/mote.db.lock
          hint: move it away, or set MOTE_HOME to another folder
    "#]]
    .assert_eq(&program.run(&["queue", "list"]));
}

#[test]
fn a_pipe_in_place_of_a_file_of_a_bundle_is_refused_at_once() {
    let program = Program::new();
    tiny(&program);
    fs::remove_file(program.root().join("tiny/weights.bin")).unwrap();
    pipe(&program, "tiny/weights.bin");
    expect![[r#"
        exit 78
        -- stderr
        mote: not a regular file: ./tiny/weights.bin
          hint: export the bundle again with model-export, or import a good copy with: mote model import PATH
    "#]]
    .assert_eq(&program.run(&["model", "import", "./tiny"]));
    expect![[r#"
        exit 78
        -- stderr
        mote: not a regular file: ./tiny/weights.bin
          hint: export the bundle again with model-export, or import a good copy with: mote model import PATH
    "#]]
    .assert_eq(&program.run(&["model", "generate", "--model", "./tiny", "Hello"]));
}
