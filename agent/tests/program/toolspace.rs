//! Large toolspaces through the program: the prompt costs the same, the file is made once, and a damaged one is made again.

use expect_test::expect;
use serde_json::Value;

use crate::program::Program;

const SIZES: [(&str, &str); 3] = [("2", "10"), ("30", "300"), ("300", "10000")];

fn generated(servers: &str, tools: &str) -> Program {
    let program = Program::new();
    let made = program.run(&["eval", "toolspace", "home", "--servers", servers, "--tools", tools]);
    assert_eq!(made, format!("exit 0\n-- stdout\n{servers} servers with {tools} tools: MOTE_HOME=home\n"));
    program
}

fn json(program: &Program, arguments: &[&str]) -> Value {
    let output = program.command(&[arguments, &["--json"]].concat()).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let last = stdout.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {}", program.show(&output)))
}

#[test]
fn a_prompt_keeps_its_budget_at_any_size() {
    for (servers, tools) in SIZES {
        let program = generated(servers, tools);
        std::fs::write(program.root().join("script.txt"), "answer(1)\n").unwrap();
        let task = "Set the rotor vibration limit of the compressor to 40 percent";
        let run = ["run", "--script", "script.txt", "--prompt-only"];
        let prompt = json(&program, &[&run[..], &[task]].concat());
        let bytes = prompt["text"].as_str().unwrap().len();
        assert!((100..2_000).contains(&bytes), "{tools} tools: {bytes} bytes");
        let listed = json(&program, &["tools", "stats", "--pack", "time"]);
        assert_eq!(listed["total"]["tools"].as_u64().unwrap(), tools.parse::<u64>().unwrap() + 8);
    }
}

#[test]
fn the_file_is_made_once_and_again_when_it_is_damaged() {
    let program = generated("5", "50");
    let search = || program.run(&["tools", "search", "read the oil level of the kiln", "--pack", "math"]);
    let (first, file) = (search(), program.root().join("home/cache/catalogue.bin"));
    assert!(first.starts_with("exit 0"), "{first}");
    let whole = std::fs::read(&file).unwrap();
    let made = std::fs::metadata(&file).unwrap().modified().unwrap();
    assert_eq!(search(), first);
    assert_eq!(std::fs::metadata(&file).unwrap().modified().unwrap(), made, "it was only read");
    let flipped = |at: usize| whole.iter().enumerate().map(|(idx, byte)| byte ^ u8::from(idx == at)).collect();
    for damaged in [Vec::new(), whole[..whole.len() / 2].to_vec(), flipped(20), flipped(5000), vec![0xff; 9000]] {
        std::fs::write(&file, damaged).unwrap();
        assert_eq!(search(), first);
        assert_eq!(std::fs::read(&file).unwrap().len(), whole.len(), "it is whole again");
    }
}

#[test]
fn only_what_changed_is_made_again() {
    let program = generated("3", "30");
    let list = || json(&program, &["tools", "list", "--pack", "math"]);
    let first = list();
    let path = program.root().join("home/cache/servers/boiler_1.json");
    let said = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, said.replace("controls of boiler-1", "another boiler altogether")).unwrap();
    let second = list();
    let summaries = |list: &Value| {
        let servers = list["servers"].as_array().unwrap().iter();
        servers.map(|server| server["summary"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(summaries(&second)[1..], ["another boiler altogether", "controls of conveyor-1", "controls of pump-1"]);
    assert_eq!(first["sha256"], second["sha256"], "the same tools are offered");
    assert_eq!(list(), second);
}

#[test]
fn a_note_outlives_the_call_that_puts_it() {
    let program = Program::new();
    program.run(&["tools", "call", "notes.put", r#"{"key": "gate", "text": "4711"}"#, "--allow", "notes.put"]);
    expect![[r#"
        exit 0
        -- stdout
        {
          "key": "gate",
          "text": "4711"
        }
    "#]]
    .assert_eq(&program.run(&["tools", "call", "notes.get", r#"{"key": "gate"}"#]));
}

#[test]
fn what_a_process_holds_in_proc_is_not_read() {
    let program = Program::new();
    expect![[r#"
        exit 1
        -- stderr
        mote: is the environment or memory of a process, which may hold secrets: /proc/self/environ
    "#]]
    .assert_eq(&program.run(&["tools", "call", "text.diff", r#"{"path_a": "/proc/self/environ", "text_b": ""}"#]));
}
