//! `mote run` with a scripted model: what ends a run, and what a person sees of it.

use expect_test::{Expect, expect};
use regex::Regex;
use serde_json::Value;

use crate::program::Program;

/// Runs `script` and compares what is shown, with times and ids made equal.
fn check(script: &str, arguments: &[&str], expected: Expect) {
    let program = Program::new();
    std::fs::write(program.root().join("todo.txt"), "buy milk\ncall Ada\n").unwrap();
    std::fs::write(program.root().join("script.txt"), script).unwrap();
    let all = [&["run", "--script", "script.txt"], arguments, &["--", "What is on my list?"]].concat();
    let shown = program.run(&all);
    let shown = Regex::new(r"\d+ ms").unwrap().replace_all(&shown, "N ms");
    let shown = Regex::new(r"[\d.]+ s,").unwrap().replace_all(&shown, "N s,");
    let shown = Regex::new(r"trajectory \w{26}").unwrap().replace_all(&shown, "trajectory ID");
    expected.assert_eq(&shown);
}

#[test]
fn an_answer_says_where_it_comes_from() {
    check(
        "f = fs.read(path=\"todo.txt\")\nanswer(f.text.splitlines())\n",
        &[],
        expect![[r#"
            exit 0
            -- stdout
            buy milk
            call Ada
            -- stderr
            tools: fs.list, math.statistics, system.network
              | f = fs.read(path="todo.txt")
              | answer(f.text.splitlines())
              #1 fs.read(path="todo.txt")
              #1 gave 106 bytes in N ms
              from #1 fs.read(path="todo.txt")
            complete: N s, 1 tool calls, trajectory ID
        "#]],
    );
}

#[test]
fn a_budget_ends_a_run_and_what_was_found_is_said() {
    check(
        "f = fs.read(path=\"todo.txt\")\n---\nprint(f.n_lines)\n---\nanswer(f.text)\n",
        &["--max-turns", "2"],
        expect![[r#"
            exit 1
            -- stderr
            tools: fs.list, math.statistics, system.network
              | f = fs.read(path="todo.txt")
              #1 fs.read(path="todo.txt")
              #1 gave 106 bytes in N ms
              > (nothing was printed; answer(x) ends the task)
              | print(f.n_lines)
              > 2
            no answer: the budget of turns is used up: 2 of 2
            the last result of a tool was:
              buy milk
              call Ada
            failed: N s, 1 tool calls, trajectory ID
        "#]],
    );
    check(
        "for i in range(9):\n    fs.read(path=\"todo.txt\")\n",
        &["--max-calls", "2"],
        expect![[r#"
            exit 1
            -- stderr
            tools: fs.list, math.statistics, system.network
              | for i in range(9):
              |     fs.read(path="todo.txt")
              #1 fs.read(path="todo.txt")
              #1 gave 106 bytes in N ms
              #2 fs.read(path="todo.txt")
              #2 gave 106 bytes in N ms
              > Error: line 2: ToolError: no more tool calls in this task: 2 of 2 are used
              >         fs.read(path="todo.txt")
              >            ^
            no answer: the budget of tool calls is used up: 2 of 2
            the last result of a tool was:
              buy milk
              call Ada
            failed: N s, 2 tool calls, trajectory ID
        "#]],
    );
}

#[test]
fn a_loop_of_the_same_program_ends() {
    check(
        "print(1)\n---\nprint(1)\n---\nprint(1)\n",
        &[],
        expect![[r#"
            exit 1
            -- stderr
            tools: fs.list, math.statistics, system.network
              | print(1)
              > 1
              | print(1)
              > 1
            no answer: the same program was written twice with the same result: 1
            failed: N s, 0 tool calls, trajectory ID
        "#]],
    );
}

#[test]
fn programs_that_fail_are_observed_with_a_hint_and_end_after_three() {
    check(
        "answer(text.cuont(path=\"todo.txt\"))\n---\nanswer(text.count(file=\"todo.txt\"))\n---\nclass A:\n    pass\n",
        &[],
        expect![[r#"
            exit 1
            -- stderr
            tools: fs.list, math.statistics, system.network
              | answer(text.cuont(path="todo.txt"))
              > Error: line 1: AttributeError: server 'text' has no tool 'cuont'
              >     answer(text.cuont(path="todo.txt"))
              >                 ^
              > hint: did you mean text.count(path: str = None, text: str = None)?
              | answer(text.count(file="todo.txt"))
              > Error: line 1: TypeError: text.count() got an unexpected argument 'file'
              >     answer(text.count(file="todo.txt"))
              >                 ^
              > hint: write text.count(path: str = None, text: str = None)
              | class A:
              |     pass
              > Error: line 1: `class` is not part of the language
              >     class A:
              >     ^
              > hint: use a dict: {"name": value}, read as d.name
            no answer: 3 programs in a row failed; the last one: Error: line 1: `class` is not part of the language
                class A:
                ^
            hint: use a dict: {"name": value}, read as d.name
            failed: N s, 0 tool calls, trajectory ID
        "#]],
    );
}

#[test]
fn calls_that_fit_no_signature_are_counted_even_if_caught() {
    let program = Program::new();
    let script = "try:\n    text.count(file=1)\nexcept Exception as e:\n    print(e)\nanswer(1)\n";
    std::fs::write(program.root().join("script.txt"), script).unwrap();
    let output = program.command(&["run", "--json", "--script", "script.txt", "--", "count"]).output().unwrap();
    let last = String::from_utf8(output.stdout).unwrap().lines().last().unwrap().to_owned();
    let done: Value = serde_json::from_str(&last).unwrap();
    assert_eq!((&done["invalid_calls"], &done["calls"], &done["status"]), (&1.into(), &0.into(), &"complete".into()));
    assert!(done["tokens"]["new"].is_null());
}

#[test]
fn a_prompt_can_be_seen_without_doing_anything() {
    check(
        "answer(1)\n",
        &["--prompt-only"],
        expect![[r#"
            exit 0
            -- stdout
            Task: What is my IP address?
            Program:
            n = system.network()
            answer(n.text)

            Task: What is the average of 2, 4, 5 and 9?
            Program:
            s = math.statistics(numbers=[2, 4, 5, 9])
            answer(f"The average is {s.mean}")

            Task: Find all .log files under data
            Program:
            r = fs.list(path="data", pattern="*.log", recursive=True)
            answer(f"There are {r.count} log files under data:\n{r.text}")

            Task: List the names of all files in ./music
            Program:
            r = fs.list(path="./music", kind="file")
            answer(r.text)

            Task: What files are in the folder photos?
            Program:
            r = fs.list(path="photos")
            answer(r.text)

            Task: What is on my list?
            Program:
            -- stderr
            tools: fs.list, math.statistics, system.network
                 shortlist: 580 bytes
                      task: 35 bytes
        "#]],
    );
}

#[test]
fn a_call_that_is_refused_ends_the_run() {
    let write = "fs.write(path=\"out.txt\", text=\"1\")\n---\nnotes.put(key=\"a\", text=\"1\")\nanswer(\"saved\")\n";
    check(
        write,
        &[],
        expect![[r#"
            exit 1
            -- stderr
            tools: fs.list, math.statistics, system.network
              | fs.write(path="out.txt", text="1")
              #1 fs.write(path="out.txt", text="1")
              #1 failed after N ms: it may change something and nobody is there to ask: fs.write; a person can allow it: --allow "fs.write"
              > Error: line 1: ToolError: it may change something and nobody is there to ask: fs.write; a person can allow it: --allow "fs.write"
              >     fs.write(path="out.txt", text="1")
              >        ^
            no answer: a tool call was refused: it may change something and nobody is there to ask: fs.write; a person can allow it: --allow "fs.write"
            failed: N s, 1 tool calls, trajectory ID
        "#]],
    );
    let denied = Program::new();
    std::fs::write(denied.root().join("script.txt"), "fs.list()\n---\nanswer(1)\n").unwrap();
    let text = denied.run(&["run", "--script", "script.txt", "--deny", "fs.*", "--", "list"]);
    assert!(text.contains("no answer: a tool call was refused: policy forbids this tool: fs.list\n"), "{text}");
    let text = denied.run(&["run", "--script", "script.txt", "--allow", "fs.*", "--", "list"]);
    assert!(text.starts_with("exit 0\n"), "{text}");
}

#[test]
fn what_comes_from_outside_does_not_steer_a_terminal() {
    let program = Program::new();
    std::fs::write(program.root().join("evil\u{1b}[2J\u{202e}txt"), "").unwrap();
    std::fs::write(program.root().join("script"), "r = fs.list(pattern=\"evil*\")\nprint(r.text)\nanswer(r.text)\n")
        .unwrap();
    let shown = program.run(&["run", "--no-record", "--script", "script", "--", "list \u{9b}2J"]);
    assert!(shown.contains("-- stdout\nevil\\u{1b}[2J\\u{202e}txt\n"), "{shown}");
    assert!(!shown.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{shown}");
}

#[test]
fn an_answer_without_any_result_says_so() {
    let program = Program::new();
    std::fs::write(program.root().join("script"), "answer(\"Paris\")\n").unwrap();
    let shown = program.run(&["run", "--no-record", "--script", "script", "--", "list"]);
    assert!(shown.contains("-- stdout\nParis\n") && shown.contains("\n  from no result of a tool\n"), "{shown}");
}

#[test]
fn a_task_that_no_tool_fits_is_not_given_to_the_model() {
    let program = Program::new();
    crate::bundles::tiny(&program);
    let shown = program.run(&["run", "--no-record", "--model", "./tiny", "--", "Who won the world cup?"]);
    let shown = Regex::new(r"[\d.]+ s,").unwrap().replace_all(&shown, "N s,");
    expect![[r#"
        exit 1
        -- stderr
        tools: 
        no answer: no tool fits this task; `mote tools list` shows what there is
        failed: 0 prompt tokens (0 prefilled), 0 generated, N s, 0 tool calls
    "#]]
    .assert_eq(&shown);
}

#[test]
fn a_budget_of_nothing_is_usage() {
    for budget in ["--max-turns", "--max-tokens", "--max-seconds"] {
        let text = Program::new().run(&["run", "--script", "script", budget, "0", "--", "list"]);
        assert!(text.starts_with("exit 2\n") && text.contains("0 is not in 1.."), "{text}");
    }
}

#[test]
fn more_threads_than_there_can_be_are_usage() {
    let text = Program::new().run(&["run", "--threads", "100000", "--", "list"]);
    assert!(text.starts_with("exit 2\n") && text.contains("100000 is not in 0..=256"), "{text}");
}

#[test]
fn a_servers_file_is_called_by_its_name() {
    let program = Program::new();
    std::fs::write(program.root().join("mine.json"), "{").unwrap();
    let shown = ["mine.json", "none.json"].map(|file| program.run(&["tools", "list", "--mcp", file])).concat();
    expect![[r#"
        exit 78
        -- stderr
        mote: the servers' file does not parse, line 1, column 1: EOF while parsing an object
          hint: correct mine.json and try again
        exit 78
        -- stderr
        mote: cannot read the servers' file (No such file or directory (os error 2)): none.json
          hint: such a file has {"mcpServers": {"NAME": {"command": "PROGRAM", "args": []}}}
    "#]]
    .assert_eq(&shown);
}

#[test]
fn a_script_without_an_end_is_refused() {
    let text = Program::new().run(&["run", "--script", "/dev/zero", "--", "count"]);
    expect![[r#"
        exit 2
        -- stderr
        mote: cannot read the script (longer than its limit of 1048576 bytes): /dev/zero
          hint: give a text file with programs separated by lines ---
    "#]]
    .assert_eq(&text);
}
