//! The real `mcp-server-time` and `mcp-server-git` from PyPI, through the program. `make test` fetches them and runs this.

#![expect(clippy::unwrap_used, reason = "what a test cannot set up is a failed test")]

mod servers;

use std::process::Command;

use serde_json::json;
use servers::Servers;

fn servers() -> Servers {
    let bin = servers::folder("MOTE_TEST_MCP_VENV", "make test").join("bin");
    Servers::new(|root| {
        let repository = root.join("repository");
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            let identity = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
            command.arg("-C").arg(&repository).args(identity).args(arguments);
            assert!(command.output().unwrap().status.success(), "git {arguments:?}");
        };
        std::fs::create_dir(&repository).unwrap();
        git(&["init", "--quiet"]);
        std::fs::write(repository.join("a.txt"), "one\n").unwrap();
        git(&["add", "a.txt"]);
        git(&["commit", "--quiet", "--message", "the first of all"]);
        json!({
            "time": {"command": bin.join("mcp-server-time"), "args": ["--local-timezone", "UTC"], "reads": ["*"]},
            "git": {"command": bin.join("mcp-server-git"), "args": ["--repository", repository], "trusted": true},
        })
    })
}

#[test]
fn time_and_git_are_found_shown_and_called() {
    let servers = servers();
    let list = servers.json(&["list"]);
    let named =
        |name: &str| list["servers"].as_array().unwrap().iter().find(|server| server["name"] == name).unwrap().clone();
    assert_eq!((&named("time")["kind"], &named("time")["state"]), (&json!("mcp"), &json!("known")));
    let writes: Vec<_> =
        named("git")["tools"].as_array().unwrap().iter().filter(|tool| tool["writes"] == true).cloned().collect();
    assert!(writes.iter().any(|tool| tool["tool"] == "git.git_commit"), "{writes:?}");
    assert!(!writes.iter().any(|tool| tool["tool"] == "git.git_log"), "{writes:?}");

    assert_eq!(servers.json(&["search", "What time is it in Tokyo?", "-k", "1"])[0]["tool"], "time.get_current_time");
    let shown = servers.json(&["show", "time.get_current_time"]);
    assert_eq!(shown["signature"], "time.get_current_time(timezone: str)");
    assert_eq!(shown["examples"][0]["program"], "r = time.get_current_time(timezone=\"America/New_York\")\nanswer(r)");

    let now = servers.json(&["call", "time.get_current_time", r#"{"timezone": "Asia/Tokyo"}"#]);
    assert!(now["datetime"].as_str().unwrap().ends_with("+09:00"), "{now}");
    let log = servers.json(&["call", "git.git_log", &json!({"repo_path": servers.path("repository")}).to_string()]);
    assert!(log.to_string().contains("the first of all"), "{log}");

    let refused = servers.run(&["call", "time.get_current_time", r#"{"timezone": "Nowhere/Land"}"#]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("Nowhere/Land"), "{refused:?}");
    let add = json!({"repo_path": servers.path("repository"), "files": ["a.txt"]}).to_string();
    assert_eq!(servers.run(&["call", "git.git_add", &add]).status.code(), Some(1));
    assert_eq!(servers.run(&["call", "git.git_add", &add, "--allow", "git.*"]).status.code(), Some(0));
}
