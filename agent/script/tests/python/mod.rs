//! What CPython makes of programs: all of them in one process, through `conformance.py`.

use mote_script::{Limits, Step, Vm, compile};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

/// A program with what CPython printed, and the exception that ended it.
pub(crate) struct Case {
    pub(crate) source: String,
    pub(crate) output: String,
    pub(crate) error: Option<String>,
}

impl Case {
    pub(crate) fn read(line: &str) -> Case {
        let case: Value = serde_json::from_str(line).unwrap();
        Case {
            source: case["source"].as_str().unwrap().to_owned(),
            output: case["output"].as_str().unwrap().to_owned(),
            error: case["error"].as_str().map(str::to_owned),
        }
    }

    /// What differs in our machine, if something does.
    pub(crate) fn difference(&self) -> Option<String> {
        let (output, error) = run(&self.source);
        let same = (&output, &error) == (&self.output, &self.error);
        (!same).then(|| {
            format!("{}\nexpected {:?}\ngot      {:?}\n", self.source, (&self.output, &self.error), (output, error))
        })
    }
}

/// What our machine prints, and the exception or the report of the error that ends the program.
pub(crate) fn run(source: &str) -> (String, Option<String>) {
    let program = match compile(source, &Limits::default()) {
        Ok(program) => program,
        Err(error) => return (String::new(), Some(error.report(source))),
    };
    let mut vm = Vm::new(Limits::default());
    let error = match vm.start(program, &[]) {
        Step::Failed(error) => Some(error.exception().map_or_else(|| error.report(source), str::to_owned)),
        _ => None,
    };
    (vm.take_printed(), error)
}

/// CPython's answers to programs, in their order. Without a `python3` the test fails: it is one of the things tests need.
pub(crate) fn answers(programs: &[String]) -> Vec<Case> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance.py");
    let spawned = Command::new("python3").args([script, "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    assert!(spawned.is_ok(), "this test needs python3 (3.11 or later) on the path: {spawned:?}");
    let mut child = spawned.unwrap();
    let input: String = programs.iter().map(|program| format!("{}\n", json!(program))).collect();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let cases: Vec<Case> = text.lines().map(Case::read).collect();
    assert_eq!(cases.len(), programs.len(), "python3 did not answer every program");
    cases
}
