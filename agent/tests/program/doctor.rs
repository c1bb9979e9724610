//! `mote doctor` on machines with something wrong.

use expect_test::expect;

use crate::program::Program;

/// The lines about one check, without the figures of this machine.
fn about(text: &str, check: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !line.contains(&format!(" {check}: ")));
    let first = lines.next().unwrap_or_default();
    let fix = lines.next().filter(|line| line.trim_start().starts_with("fix: ")).unwrap_or_default();
    format!("{first}\n{fix}").trim_end().to_owned()
}

#[test]
fn an_empty_state_folder_lacks_a_model_and_nothing_is_made() {
    let program = Program::new();
    let text = program.run(&["doctor"]);
    assert!(text.starts_with("exit 1\n"), "{text}");
    expect![[r#"
        error    default model: no model: no bundle is imported yet
                 fix: run `make model` in the source tree, or `mote model import PATH` with the folder of a bundle"#]]
    .assert_eq(&about(&text, "default model"));
    expect!["ok       state folder: ROOT/home (made when first needed)"].assert_eq(&about(&text, "state folder"));
    assert!(!program.root().join("home").exists());
}

#[test]
fn a_file_in_place_of_the_state_folder_is_an_error() {
    let program = Program::new();
    std::fs::write(program.root().join("home"), "").unwrap();
    expect![[r#"
        error    state folder: a file stands in its place: ROOT/home
                 fix: move the file away, or set MOTE_HOME to a folder"#]]
    .assert_eq(&about(&program.run(&["doctor"]), "state folder"));
}

#[test]
fn a_state_folder_on_a_file_system_that_refuses_writes_is_an_error() {
    let program = Program::new();
    let output = program.command(&["doctor"]).env("MOTE_HOME", "/proc/mote").output().unwrap();
    expect![[r#"
        error    state folder: cannot write (No such file or directory (os error 2)): /proc
                 fix: make the folder writable for this user, or set MOTE_HOME to another one"#]]
    .assert_eq(&about(&program.show(&output), "state folder"));
}

#[test]
fn servers_that_cannot_start_are_named() {
    let program = Program::new();
    let file = program.root().join("home/mcp.json");
    std::fs::create_dir(program.root().join("home")).unwrap();
    std::fs::write(&file, r#"{"mcpServers": {"a": {"command": "no-such-program"}, "b": {"command": "sh"}}}"#).unwrap();
    expect![[r#"
        warning  mcp servers: server a: no such program: no-such-program
                 fix: install what is missing, or correct ROOT/home/mcp.json"#]]
    .assert_eq(&about(&program.run(&["doctor"]), "mcp servers"));
    std::fs::write(&file, "{\n  \"mcpServers\": {,}\n}").unwrap();
    expect![[r#"
        error    mcp servers: the servers' file does not parse, line 2, column 18: key must be a string
                 fix: correct ROOT/home/mcp.json and try again"#]]
    .assert_eq(&about(&program.run(&["doctor"]), "mcp servers"));
    expect![[r#"
        exit 78
        -- stderr
        mote: the servers' file does not parse, line 2, column 18: key must be a string
          hint: correct ROOT/home/mcp.json and try again
    "#]]
    .assert_eq(&program.run(&["tools", "list"]));
}

#[test]
fn json_is_one_object() {
    let output = Program::new().command(&["doctor", "--json"]).output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["status"], "error");
    assert!(
        report["checks"]
            .as_array()
            .unwrap()
            .iter()
            .all(|check| check["name"].is_string() && check["found"].is_string())
    );
}
