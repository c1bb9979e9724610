//! Command lines that ask for what does not exist, and an environment without a home.

use expect_test::expect;

use crate::program::Program;

#[test]
fn an_unknown_command_is_usage() {
    let text = Program::new().run(&["dcotor"]);
    expect![[r#"
        exit 2
        -- stderr
        error: unrecognized subcommand 'dcotor'

          tip: a similar subcommand exists: 'doctor'

        Usage: mote [OPTIONS] <COMMAND>

        For more information, try '--help'.
    "#]]
    .assert_eq(&text);
}

#[test]
fn without_any_home_the_message_says_what_to_set() {
    let program = Program::new();
    let output = program.command(&["doctor"]).env_remove("MOTE_HOME").output().unwrap();
    expect![[r#"
        exit 78
        -- stderr
        mote: no home folder: neither MOTE_HOME nor HOME is set
          hint: set MOTE_HOME to a folder that mote may write
    "#]]
    .assert_eq(&program.show(&output));
}

#[test]
fn a_closed_pipe_is_no_panic() {
    let program = Program::new();
    let mut child = program
        .command(&["doctor"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(!program.show(&output).contains("panicked"), "{}", program.show(&output));
}

#[test]
fn a_usage_error_is_an_object_where_json_is_asked_for() {
    let program = Program::new();
    for arguments in [&["--json", "dcotor"][..], &["queue", "list", "--limit", "x", "--json"], &["run", "--json"]] {
        let output = program.command(arguments).output().unwrap();
        let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&object["error"]["kind"], output.status.code()), (&"usage".into(), Some(2)), "{arguments:?}");
    }
    assert!(program.command(&["dcotor", "--", "--json"]).output().unwrap().stdout.is_empty());
}
