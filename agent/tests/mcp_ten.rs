//! Ten real servers from npm and PyPI, each found and called under `--sandbox on`: what a server gets without asking is enough for it.
//! `make test-mcp` fetches them and runs this.

#![expect(clippy::unwrap_used, reason = "what a test cannot set up is a failed test")]

mod servers;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use servers::Servers;

fn servers(root: &Path) -> Value {
    let node = servers::folder("MOTE_TEST_MCP_NODE", "make test-mcp").join("node_modules/.bin");
    let venv = |variable| servers::folder(variable, "make test-mcp").join("bin");
    let (new, fetch, old) = (venv("MOTE_TEST_MCP_VENV"), venv("MOTE_TEST_MCP_FETCH"), venv("MOTE_TEST_MCP_OLD"));
    let files = root.join("files");
    std::fs::create_dir(&files).unwrap();
    let repository = root.join("repository");
    assert!(Command::new("git").arg("init").arg("--quiet").arg(&repository).status().unwrap().success());
    json!({
        "everything": {"command": node.join("mcp-server-everything")},
        "filesystem": {"command": node.join("mcp-server-filesystem"), "args": [files]},
        "memory": {"command": node.join("mcp-server-memory"), "env": {"MEMORY_FILE_PATH": files.join("memory.jsonl")}},
        "thinking": {"command": node.join("mcp-server-sequential-thinking")},
        "clock": {"command": new.join("mcp-server-time"), "args": ["--local-timezone", "UTC"]},
        "git": {"command": new.join("mcp-server-git"), "args": ["--repository", repository]},
        "fetch": {"command": fetch.join("mcp-server-fetch")},
        "sqlite": {"command": old.join("mcp-server-sqlite"), "args": ["--db-path", files.join("a.db")]},
        "calculator": {"command": old.join("mcp-server-calculator")},
        "duckdb": {"command": old.join("mcp-server-duckdb"), "args": ["--db-path", files.join("b.duckdb")]},
    })
}

#[test]
fn ten_servers_are_found_and_called_in_a_strict_sandbox() {
    let servers = Servers::new(servers);
    let list = servers.json(&["list", "--sandbox", "on", "--pack", "math"]);
    let states: Vec<&Value> = list["servers"].as_array().unwrap().iter().map(|server| &server["state"]).collect();
    assert!(states.len() == 11 && states.iter().all(|state| *state == "known"), "{list}");

    let calls = [
        ("everything.get_sum", json!({"a": 2, "b": 3}), "5"),
        ("filesystem.write_file", json!({"path": servers.path("files/x.txt"), "content": "abc"}), "Successfully"),
        (
            "memory.create_entities",
            json!({"entities": [{"name": "Ann", "entityType": "person", "observations": ["tea"]}]}),
            "Ann",
        ),
        ("memory.read_graph", json!({}), "tea"),
        (
            "thinking.sequentialthinking",
            json!({"thought": "a", "next_thought_needed": false, "thought_number": 1, "total_thoughts": 1}),
            "thoughtHistoryLength",
        ),
        ("clock.get_current_time", json!({"timezone": "Asia/Tokyo"}), "+09:00"),
        ("git.git_status", json!({"repo_path": servers.path("repository")}), "No commits yet"),
        ("sqlite.create_table", json!({"query": "create table t(a int)"}), "created"),
        ("sqlite.write_query", json!({"query": "insert into t values (7)"}), "1"),
        ("sqlite.read_query", json!({"query": "select a from t"}), "7"),
        ("calculator.calculate", json!({"expression": "6 * 7"}), "42"),
        ("duckdb.query", json!({"query": "select 6 * 7 as n"}), "42"),
    ];
    for (tool, arguments, expected) in calls {
        let output = servers.run(&["call", tool, &arguments.to_string(), "--allow", "*", "--sandbox", "on"]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(expected), "{tool}: {output:?}");
        assert!(output.stderr.is_empty(), "{tool}: {output:?}");
    }
    let fetch =
        servers.run(&["call", "fetch.fetch", r#"{"url": "http://192.0.2.1/"}"#, "--allow", "*", "--sandbox", "on"]);
    assert_eq!(fetch.status.code(), Some(1), "{fetch:?}");
}
