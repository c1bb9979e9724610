//! What the first prompt costs by the tokenizer of a real model, with 10, 300 and 10,000 tools: `make test-prompt` runs it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what a test cannot set up is a failed test")]

use std::process::Command;

use serde_json::Value;

/// Tokens of servers, signatures and examples together, and of the whole first prompt.
const MAX_SHORTLIST: u64 = 600;
const MAX_PROMPT: u64 = 900;

const TASKS: [&str; 5] = [
    "What time is it in Tokyo?",
    "Set the rotor vibration limit of the second compressor to 40 percent and log the oil level of the kiln",
    "Which line of README.md mentions make test?",
    "Compare old.txt with new.txt, save the differences to notes.txt and tell how many lines differ",
    "zzz",
];

#[test]
fn the_first_prompt_keeps_its_budget_at_any_size() {
    let bundles = std::env::var("MOTE_TEST_BUNDLES")
        .unwrap_or_else(|_| panic!("MOTE_TEST_BUNDLES names no bundle: make test-prompt"));
    let folder = tempfile::tempdir().unwrap();
    for (servers, tools) in [("2", "10"), ("30", "300"), ("300", "10000")] {
        let home = folder.path().join(tools);
        let mote = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_mote"));
            command.args(arguments).env("MOTE_HOME", &home).current_dir(folder.path());
            let output = command.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        };
        mote(&["eval", "toolspace", home.to_str().unwrap(), "--servers", servers, "--tools", tools]);
        for bundle in bundles.split(':') {
            for (task, retrieval) in TASKS.iter().flat_map(|task| [(task, "on"), (task, "off")]) {
                let run = ["run", "--prompt-only", "--json", "--model", bundle, "--retrieval", retrieval, task];
                let stdout = String::from_utf8(mote(&run)).unwrap();
                let prompt: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
                let shortlist = prompt["fragments"].as_array().unwrap().iter().find(|it| it["kind"] == "shortlist");
                let shortlist = shortlist.map_or(0, |it| it["tokens"].as_u64().unwrap());
                let all = prompt["tokens"].as_u64().unwrap();
                println!("{tools} tools, {bundle}, retrieval {retrieval}: {shortlist} of {all} tokens: {task}");
                assert!(shortlist < MAX_SHORTLIST && all < MAX_PROMPT, "{}", prompt["text"]);
            }
        }
    }
}
