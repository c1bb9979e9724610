//! Ctrl-C ends work at once, even work that hangs.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::bundles::tiny;
use crate::program::Program;

/// Long enough for a busy machine to start a process.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn an_interrupt_ends_a_completion_that_hangs() {
    let program = Program::new();
    tiny(&program);
    let pipe = program.root().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut child = program
        .command(&["model", "generate", "--model", "./tiny", "--raw-ids", "1", "--grammar", "pipe"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    loop {
        sleep(Duration::from_millis(100));
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        sleep(Duration::from_millis(400));
        if let Some(status) = child.try_wait().unwrap() {
            assert_eq!(status.code(), Some(130));
            return;
        }
        assert!(started.elapsed() < PATIENCE, "still there after {PATIENCE:?}");
    }
}
