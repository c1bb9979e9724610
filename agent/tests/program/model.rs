//! A model of random weights does a whole task: what it says makes no sense, but under the grammar it is programs, and how it
//! is computed changes none of them.

use expect_test::expect;
use serde_json::Value;

use crate::bundles::tiny;
use crate::program::Program;

/// The programs that were written, and the last event.
fn programs(output: &str) -> (Vec<String>, Value) {
    let events = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let events: Vec<Value> = events.filter(|event| event["event"].is_string()).collect();
    let texts = events.iter().filter(|event| event["event"] == "program");
    (texts.map(|event| event["text"].to_string()).collect(), events.last().unwrap().clone())
}

#[test]
fn a_task_is_done_and_nothing_of_it_depends_on_how_it_is_computed() {
    let program = Program::new();
    tiny(&program);
    let run = |more: &[&str]| {
        let task = ["run", "--model", "./tiny", "--json", "--max-turns", "2", "--max-tokens", "90", "--seed", "3"];
        let task = [&task, ["--temperature", "0.5"].as_slice(), more, &["--", "What is 2 plus 2?"]].concat();
        programs(&program.run(&task))
    };
    let (written, done) = run(&[]);
    assert!(!written.is_empty(), "{done}");
    assert_eq!(done["event"], "done");
    assert!(done["tokens"]["prompt"].as_u64() > Some(100), "{done}");
    assert_eq!(run(&["--speculate", "off"]).0, written);
    assert_eq!(run(&["--threads", "1", "--kv", "f16"]).0, written);
}

#[test]
fn a_model_that_does_not_fit_is_refused_before_it_is_loaded() {
    let program = Program::new();
    tiny(&program);
    std::fs::write(program.root().join("tiny/tokenizer.json"), "not read").unwrap();
    expect![[r#"
        exit 78
        -- stderr
        mote: the model does not fit the memory budget of 1 MiB: weights 1 MiB + f16 kv cache of 512 tokens 1 MiB + scratch 1 MiB + tokenizer 1 MiB + program 48 MiB = 50 MiB
          hint: nothing of it fits: give at least 50 MiB, or take a smaller model
    "#]]
    .assert_eq(&program.run(&["model", "generate", "--model", "./tiny", "--memory-budget", "1MiB", "Hello"]));
}
