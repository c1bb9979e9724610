//! How tools come into a run and leave it: ATLAS's settings, room that is full, servers that change, results that were learned.

use expect_test::{Expect, expect};
use regex::Regex;
use serde_json::json;

use crate::program::Program;

/// A server whose tools are what a file beside it says, read anew at each start; every tool gives the same.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "x", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}
        result = {"tools": [{"name": name, "description": name + " it", "inputSchema": schema} for name in open("names").read().split()]}
    else:
        result = {"content": [{"type": "text", "text": json.dumps({"rows": [{"id": 1, "name": "Ada"}], "more": False})}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

fn program(names: &str) -> Program {
    let program = Program::new();
    let root = program.root();
    std::fs::write(root.join("server.py"), SERVER).unwrap();
    std::fs::write(root.join("names"), names).unwrap();
    let entry = json!({"command": "python3", "args": ["server.py"], "cwd": root, "reads": ["*"]});
    std::fs::write(root.join("mcp.json"), json!({"mcpServers": {"x": entry}}).to_string()).unwrap();
    program
}

/// Runs a script of programs for one task and compares what a person sees.
fn check(program: &Program, script: &str, arguments: &[&str], expected: Expect) {
    std::fs::write(program.root().join("script.txt"), script).unwrap();
    let run = ["run", "--script", "script.txt", "--no-record", "--mcp", "mcp.json", "--pack", "text"];
    let shown = program.run(&[&run, arguments, &["--", "Count the words"]].concat());
    let shown = Regex::new(r"\d+ ms").unwrap().replace_all(&shown, "N ms");
    let shown = Regex::new(r"[\d.]+ s,").unwrap().replace_all(&shown, "N s,");
    expected.assert_eq(&shown);
}

#[test]
fn a_tool_that_vanished_is_said_and_one_that_appeared_is_there() {
    let program = program("alpha beta");
    program.run(&["tools", "list", "--mcp", "mcp.json"]);
    std::fs::write(program.root().join("names"), "beta gamma").unwrap();
    check(
        &program,
        "print(x.alpha(n=2))\n---\nprint(load(\"x\"))\n---\nanswer(x.gamma().more)\n",
        &[],
        expect![[r#"
        exit 0
        -- stdout
        False
        -- stderr
        tools: text.count
          | print(x.alpha(n=2))
          #1 x.alpha(n=2)
          #1 failed after N ms: the server no longer has this tool: x.alpha
        note: no longer there: x.alpha
        note: server x has changed since it was last seen: gamma, alpha is gone
          > Error: line 1: ToolError: the server no longer has this tool: x.alpha
          >     print(x.alpha(n=2))
          >             ^
          > (no longer there: x.alpha)
          | print(load("x"))
          > {'server': 'x', 'summary': 'beta, gamma', 'tools': ['beta', 'gamma']}
          | answer(x.gamma().more)
          #2 x.gamma()
          #2 gave 45 bytes in N ms
          from #2 x.gamma()
        complete: N s, 3 tool calls
    "#]],
    );
}

#[test]
fn tools_leave_when_their_room_is_full() {
    let names: String = (0..30).map(|i| format!("a_tool_with_a_name_of_some_length_number_{i} ")).collect();
    let shown = |from: usize, to: usize| {
        let names: Vec<String> =
            (from..to).map(|i| format!("\"x.a_tool_with_a_name_of_some_length_number_{i}\"")).collect();
        format!("s = show([{}])\nprint(len(s))\n", names.join(", "))
    };
    check(
        &program(&names),
        &format!("{}---\n{}---\nanswer(1)\n", shown(0, 20), shown(20, 30)),
        &["--retrieval", "off"],
        expect![[r#"
            exit 0
            -- stdout
            1
            -- stderr
            tools: 
              | s = show(["x.a_tool_with_a_name_of_some_length_number_0", "x.a_tool_with_a_name_of_some_length_number_1", "x.a_tool_with_a_name_of_some_length_number_2", "x.a_tool_with_a_name_of_some_length_number_3", "x.a_tool_with_a_name_of_some_length_number_4", "x.a_tool_with_a_name_of_some_length_number_5", "x.a_tool_with_a_name_of_some_length_number_6", "x.a_tool_with_a_name_of_some_length_number_7", "x.a_tool_with_a_name_of_some_length_number_8", "x.a_tool_with_a_name_of_some_length_number_9", "x.a_tool_with_a_name_of_some_length_number_10", "x.a_tool_with_a_name_of_some_length_number_11", "x.a_tool_with_a_name_of_some_length_number_12", "x.a_tool_with_a_name_of_some_length_number_13", "x.a_tool_with_a_name_of_some_length_number_14", "x.a_tool_with_a_name_of_some_length_number_15", "x.a_tool_with_a_name_of_some_length_number_16", "x.a_tool_with_a_name_of_some_length_number_17", "x.a_tool_with_a_name_of_some_length_number_18", "x.a_tool_with_a_name_of_some_length_number_19"])
              | print(len(s))
              > 20
              | s = show(["x.a_tool_with_a_name_of_some_length_number_20", "x.a_tool_with_a_name_of_some_length_number_21", "x.a_tool_with_a_name_of_some_length_number_22", "x.a_tool_with_a_name_of_some_length_number_23", "x.a_tool_with_a_name_of_some_length_number_24", "x.a_tool_with_a_name_of_some_length_number_25", "x.a_tool_with_a_name_of_some_length_number_26", "x.a_tool_with_a_name_of_some_length_number_27", "x.a_tool_with_a_name_of_some_length_number_28", "x.a_tool_with_a_name_of_some_length_number_29"])
              | print(len(s))
            note: unloaded to make room for x.a_tool_with_a_name_of_some_length_number_24: x.a_tool_with_a_name_of_some_length_number_0
            note: unloaded to make room for x.a_tool_with_a_name_of_some_length_number_25: x.a_tool_with_a_name_of_some_length_number_1
            note: unloaded to make room for x.a_tool_with_a_name_of_some_length_number_26: x.a_tool_with_a_name_of_some_length_number_2
            note: unloaded to make room for x.a_tool_with_a_name_of_some_length_number_27: x.a_tool_with_a_name_of_some_length_number_3
            note: unloaded to make room for x.a_tool_with_a_name_of_some_length_number_28: x.a_tool_with_a_name_of_some_length_number_4
            note: unloaded to make room for x.a_tool_with_a_name_of_some_length_number_29: x.a_tool_with_a_name_of_some_length_number_5
              > 10
              > (unloaded to make room for x.a_tool_with_a_name_of_some_length_number_24: x.a_tool_with_a_name_of_some_length_number_0)
              > (unloaded to make room for x.a_tool_with_a_name_of_some_length_number_25: x.a_tool_with_a_name_of_some_length_number_1)
              > (unloaded to make room for x.a_tool_with_a_name_of_some_length_number_26: x.a_tool_with_a_name_of_some_length_number_2)
              > (unloaded to make room for x.a_tool_with_a_name_of_some_length_number_27: x.a_tool_with_a_name_of_some_length_number_3)
              > (unloaded to make room for x.a_tool_with_a_name_of_some_length_number_28: x.a_tool_with_a_name_of_some_length_number_4)
              > (unloaded to make room for x.a_tool_with_a_name_of_some_length_number_29: x.a_tool_with_a_name_of_some_length_number_5)
              | answer(1)
              from no result of a tool
            complete: N s, 2 tool calls
        "#]],
    );
}

#[test]
fn without_programs_a_turn_is_one_action() {
    let script = "load(\"x\")\n---\nshow([\"x.beta\"])\n---\nr = x.beta()\nprint(2)\n---\nr\n---\nanswer(1)\n";
    check(
        &program("alpha beta"),
        script,
        &["--mode", "itl", "--retrieval", "off"],
        expect![[r#"
        exit 0
        -- stdout
        1
        -- stderr
        tools: 
          | load("x")
          > server: x
          > summary: alpha, beta
          > tools: alpha, beta
          | show(["x.beta"])
          > x.beta(n: int = 1)  # "beta it"
          | r = x.beta()
          | print(2)
          #1 x.beta()
          #1 gave 45 bytes in N ms
          > rows: id: 1, name: Ada
          > more: False
          | r
          > Error: line 1: NameError: name 'r' is not defined
          >     r
          >     ^
          > hint: assign it first; the servers are x
          | answer(1)
          from #1 x.beta()
        complete: N s, 3 tool calls
    "#]],
    );
    check(
        &program("alpha beta"),
        "load(\"x\")\n---\nanswer(1)\n",
        &["--mode", "isl", "--retrieval", "off"],
        expect![[r#"
        exit 0
        -- stdout
        1
        -- stderr
        tools: 
          | load("x")
          > server: x
          > summary: alpha, beta
          > tools: x.alpha(n: int = 1)  # "alpha it", x.beta(n: int = 1)  # "beta it"
          | answer(1)
          from no result of a tool
        complete: N s, 1 tool calls
    "#]],
    );
}

#[test]
fn an_eager_prompt_has_every_tool() {
    let arguments = ["--mode", "eager", "--retrieval", "off", "--prompt-only"];
    check(
        &program("alpha beta"),
        "answer(1)\n",
        &arguments,
        expect![[r#"
        exit 0
        -- stdout
        Task: beta it
        Program:
        r = x.beta()
        answer(r)

        Task: alpha it
        Program:
        r = x.alpha()
        answer(r)

        Task: What is the difference between old.txt and new.txt?
        Program:
        d = text.diff(path_a="old.txt", path_b="new.txt")
        answer(d.text)

        Task: Which email addresses are in notes.md?
        Program:
        e = text.extract(kind="email", path="notes.md")
        answer(e.text)

        Task: Split red,green,blue at the commas
        Program:
        s = text.split(text="red,green,blue", separator=",")
        answer(s.text)

        Task: How many lines does todo.txt have?
        Program:
        c = text.count(path="todo.txt")
        answer(f"{c.path} has {c.lines} lines")

        Task: Which line of todo.txt mentions milk?
        Program:
        m = text.grep(pattern="milk", path="todo.txt")
        answer(m.text)

        Task: Count the words
        Program:
        -- stderr
        tools: text.grep, text.count, text.split, text.extract, text.diff, x.alpha, x.beta
             shortlist: 705 bytes
                  task: 31 bytes
    "#]],
    );
}

#[test]
fn what_was_learned_is_shown_when_a_result_is_taken_for_something_else() {
    let program = program("alpha beta");
    expect![[r#"
        exit 0
        -- stdout
        x.alpha gives such as {"rows":[{"id":1,"name":"Ada"}],"more":false}
        x.beta gives such as {"rows":[{"id":1,"name":"Ada"}],"more":false}
    "#]]
    .assert_eq(&program.run(&["tools", "learn", "x", "--mcp", "mcp.json"]));
    check(
        &program,
        "r = x.beta()\nprint(r.names)\n---\nanswer(r.rows[0].name)\n",
        &[],
        expect![[r#"
        exit 0
        -- stdout
        Ada
        -- stderr
        tools: text.count
          | r = x.beta()
          | print(r.names)
          #1 x.beta()
          #1 gave 45 bytes in N ms
          > Error: line 2: AttributeError: 'dict' object has no attribute 'names'
          >     print(r.names)
          >             ^
          > hint: the keys are "rows", "more"
          > (x.beta gives such as {"rows":[{"id":1,"name":"Ada"}],"more":false})
          | answer(r.rows[0].name)
          from #1 x.beta()
        complete: N s, 1 tool calls
    "#]],
    );
    expect![[r#"
        exit 2
        -- stderr
        mote: a built-in pack brings its examples with it: text
    "#]]
    .assert_eq(&program.run(&["tools", "learn", "text", "--mcp", "mcp.json"]));
}

#[test]
fn a_server_is_added_tested_and_counted() {
    let program = program("alpha beta");
    std::fs::create_dir(program.root().join("home")).unwrap();
    std::fs::write(program.root().join("home/mcp.json"), "{\"theme\": \"dark\", \"mcpServers\": {}}").unwrap();
    let run =
        |arguments: &[&str]| Regex::new(r"\d+ ms").unwrap().replace_all(&program.run(arguments), "N ms").into_owned();
    let add = ["tools", "add", "my-x", "--reads", "*", "--env", "A=b", "--", "python3", "server.py"];
    expect![[r#"
        exit 0
        -- stdout
        my_x: ok, 2 tools, answered in N ms
    "#]]
    .assert_eq(&run(&add));
    expect![[r#"
        exit 2
        -- stderr
        mote: there is a server of this name: my-x
          hint: choose another name, or give --replace
    "#]]
    .assert_eq(&run(&add));
    expect![[r#"
        exit 1
        -- stdout
        bad: cannot be used: the server bad cannot be used: it ended before it was ready; exit code 127; it says: mote guard: cannot start (No such file or directory (os error 2)): ./none
        -- stderr
        mote: server bad cannot be used: it ended before it was ready; exit code 127; it says: mote guard: cannot start (No such file or directory (os error 2)): ./none
    "#]].assert_eq(&run(&["tools", "add", "bad", "--", "./none"]));
    expect![[r#"
        exit 0
        -- stdout
        my_x: ok, 2 tools, answered in N ms
        -- stderr
        mote: server bad cannot be used: it ended before it was ready; exit code 127; it says: mote guard: cannot start (No such file or directory (os error 2)): ./none
    "#]].assert_eq(&run(&["tools", "test", "my_x"]));
    expect![[r#"
        exit 2
        -- stderr
        mote: server bad cannot be used: it ended before it was ready; exit code 127; it says: mote guard: cannot start (No such file or directory (os error 2)): ./none
        mote: no such server: nobody
          hint: see what there is: mote tools list
    "#]].assert_eq(&run(&["tools", "test", "nobody"]));
    expect![[r#"
        exit 0
        -- stdout
        server  tools writing with result signatures  schemas
        text        5       0           5        101      561
        my_x        2       0           0         12       62
        bad         0       0           0          0        0
        all         7       0           5        113      623
        -- stderr
        mote: server bad cannot be used: it ended before it was ready; exit code 127; it says: mote guard: cannot start (No such file or directory (os error 2)): ./none
        mote: signatures as a prompt shows them, schemas as other clients send them, in tokens, taken as bytes / 4 without a bundle
    "#]].assert_eq(&run(&["tools", "stats", "--pack", "text"]));
    expect![[r#"
        {
          "theme": "dark",
          "mcpServers": {
            "my-x": {
              "command": "python3",
              "args": [
                "server.py"
              ],
              "env": {
                "A": "b"
              },
              "reads": [
                "*"
              ]
            },
            "bad": {
              "command": "./none",
              "args": []
            }
          }
        }
    "#]]
    .assert_eq(&std::fs::read_to_string(program.root().join("home/mcp.json")).unwrap());
}
