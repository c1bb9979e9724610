//! What a server may use of the machine, and how it ends.

use std::time::{Duration, Instant};

use expect_test::expect;
use mote::tools::ToolRuntime;
use serde_json::{Value, json};

use crate::ground::{Ground, PATIENCE, call, failure};

/// One server named `fake` with tools that use the machine, and more in its entry.
fn wide(mut entry: Value) -> Ground {
    entry["args"] = json!(["wide"]);
    entry["trusted"] = json!(true);
    Ground::new(json!({"fake": entry}))
}

fn still_works(ground: &Ground, mut runtime: ToolRuntime) {
    assert_eq!(call(&mut runtime, "daemons", json!({"n": 0})).result, Ok(json!("done")));
    drop(runtime);
    ground.nothing_survives();
}

/// Waits until `done` or for long.
fn wait_until(what: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Processes of this user that have ended and that nobody has waited for, below this process.
fn zombies() -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = processes.filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok());
    let is_ours = |stat: &String| {
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        fields[0] == "Z" && fields[1] == std::process::id().to_string()
    };
    stats.filter(is_ours).collect()
}

#[test]
fn memory_over_the_cap_ends_the_server() {
    let ground = wide(json!({"max_memory_mib": 100}));
    let mut runtime = ground.open();
    let said = failure(&call(&mut runtime, "hog", json!({"mib": 150})));
    let (before, used) = said.rsplit_once("used ").unwrap();
    expect!["server: the server fake broke: it ended during the call; signal 9; it says: mote guard: the server takes too much memory, in MiB: limit 100, "].assert_eq(before);
    assert!(used.parse::<u64>().unwrap() > 100);
    still_works(&ground, runtime);
}

#[test]
fn memory_far_over_the_cap_is_never_given() {
    let ground = wide(json!({"max_memory_mib": 100}));
    let mut runtime = ground.open();
    let said = failure(&call(&mut runtime, "hog", json!({"mib": 20_000})));
    assert!(said == "tool: MemoryError: none left" || said.contains("takes too much memory"), "{said}");
    still_works(&ground, runtime);
}

#[test]
fn a_server_that_breeds_is_ended_with_its_brood() {
    let ground = wide(json!({}));
    let mut runtime = ground.open();
    expect!["server: the server fake broke: it ended during the call; signal 9; it says: mote guard: too many processes of one server: limit 64, used more"]
        .assert_eq(&failure(&call(&mut runtime, "breed", json!({"n": 80}))));
    still_works(&ground, runtime);
}

#[test]
fn what_a_server_leaves_behind_while_it_runs_is_reaped() {
    let ground = wide(json!({}));
    let mut runtime = ground.open();
    call(&mut runtime, "daemons", json!({"n": 20}));
    wait_until("orphans stay as zombies", || ground.survivors().len() <= 2 && ground.zombies() == 0);
    still_works(&ground, runtime);
    wait_until("a guardian stays as a zombie", || zombies().is_empty());
}

#[test]
fn an_idle_server_stops_by_itself_and_is_started_again() {
    for (keep, survives) in [(false, false), (true, true)] {
        let ground = wide(json!({"idle_timeout_secs": 1, "keep": keep}));
        let mut runtime = ground.open();
        call(&mut runtime, "daemons", json!({"n": 0}));
        assert!(!ground.survivors().is_empty());
        let deadline = Instant::now() + Duration::from_secs(if keep { 2 } else { 20 });
        while !ground.survivors().is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(!ground.survivors().is_empty(), survives, "keep {keep}");
        still_works(&ground, runtime);
    }
}

#[test]
fn at_most_eight_servers_live_even_if_all_are_to_be_kept() {
    let names: Vec<String> = (0..10).map(|n| format!("s{n}")).collect();
    let servers: serde_json::Map<String, Value> =
        names.iter().map(|name| (name.clone(), json!({"args": ["wide"], "trusted": true, "keep": true}))).collect();
    let ground = Ground::new(Value::Object(servers));
    let mut runtime = ground.open();
    for name in &names {
        let nothing = json!({"n": 0}).as_object().unwrap().clone();
        assert_eq!(runtime.call(name, "daemons", &nothing).result, Ok(json!("done")));
    }
    assert_eq!(ground.survivors().len(), 2 * 8, "{:?}", ground.survivors());
    drop(runtime);
    ground.nothing_survives();
}

#[test]
fn a_tool_that_changes_while_its_server_runs_is_reported_before_it_is_used() {
    let ground = wide(json!({}));
    let mut runtime = ground.open();
    assert!(runtime.catalogue().tool("fake", "late").is_none());
    assert_eq!(call(&mut runtime, "change", json!({})).result, Ok(json!("done")));
    let (deadline, mut notices) = (Instant::now() + PATIENCE, Vec::new());
    while notices.is_empty() && Instant::now() < deadline {
        assert_eq!(call(&mut runtime, "daemons", json!({"n": 0})).result, Ok(json!("done")));
        notices = runtime.notices();
    }
    expect!["server fake has changed since it was last seen: late"].assert_eq(&notices.join("\n"));
    assert_eq!(call(&mut runtime, "late", json!({})).result, Ok(json!("done")));
    drop(runtime);
    ground.nothing_survives();
}

#[test]
fn a_call_that_gets_on_may_take_longer() {
    let ground = wide(json!({"tool_timeout_secs": 1}));
    let mut runtime = ground.open();
    assert_eq!(call(&mut runtime, "slow", json!({"steps": 6})).result, Ok(json!("done")));
    still_works(&ground, runtime);
}

#[test]
fn a_call_that_hangs_does_not_end_a_server_that_lives() {
    let ground = wide(json!({"tool_timeout_secs": 1}));
    let mut runtime = ground.open();
    let before = {
        call(&mut runtime, "daemons", json!({"n": 0}));
        ground.survivors()
    };
    expect![[r#"
        timeout: fake.stuck does not answer and was cancelled, in seconds: limit 1
        hint: ask for less, or give the server a longer tool_timeout_secs in its file"#]]
    .assert_eq(&failure(&call(&mut runtime, "stuck", json!({}))));
    assert_eq!(ground.survivors(), before);
    still_works(&ground, runtime);
}

#[test]
fn a_secret_comes_back_as_its_name() {
    let ground = wide(json!({}));
    let secret = ground.path("secret");
    std::fs::write(&secret, "hunter2hunter2\n").unwrap();
    let text = std::fs::read_to_string(ground.path("mcp.json")).unwrap();
    let mut servers: Value = serde_json::from_str(&text).unwrap();
    let reference = format!("${{file:{}}}", secret.display());
    servers["mcpServers"]["fake"]["env"]["FAKE_TOKEN"] = json!(reference);
    servers["mcpServers"]["fake"]["args"].as_array_mut().unwrap().push(json!(reference));
    std::fs::write(ground.path("mcp.json"), servers.to_string()).unwrap();
    let mut runtime = ground.open();
    let shown = format!("{:?}", runtime.catalogue().servers());
    assert!(!shown.contains("hunter2"), "{shown}");
    let result = call(&mut runtime, "variable", json!({"name": "FAKE_TOKEN"})).result.unwrap();
    assert_eq!(result, json!(format!("it is {reference}")));
    still_works(&ground, runtime);
}

#[test]
fn odd_results_are_bounded_and_named() {
    let ground = wide(json!({}));
    let mut runtime = ground.open();
    let shown: Vec<String> = ["utf8", "nul", "ansi", "surrogate", "deep", "number", "long", "huge"]
        .iter()
        .map(|what| {
            let outcome = call(&mut runtime, "odd", json!({"what": what}));
            match &outcome.result {
                Ok(value) => format!("{what} -> {}", value.to_string().chars().take(60).collect::<String>()),
                Err(_) => format!("{what} -> {}", failure(&outcome)),
            }
        })
        .collect();
    expect![[r#"
        utf8 -> {"value":"a �� b"}
        nul -> {"value":"a \u0000 b"}
        ansi -> {"value":"\u001b[31mred\u001b[0m"}
        surrogate -> tool: its answer cannot be read as JSON: unexpected end of hex escape at line 1 column 93
        deep -> tool: its answer cannot be read as JSON: recursion limit exceeded at line 1 column 210
        number -> tool: its answer cannot be read as JSON: number out of range at line 1 column 90
        long -> tool: its answer cannot be read as JSON: number out of range at line 1 column 4085
        huge -> server: the server fake broke: its message is too big, in bytes: limit 8388608, used more"#]]
    .assert_eq(&shown.join("\n"));
    still_works(&ground, runtime);
}
