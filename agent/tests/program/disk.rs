//! Disks that are full or refuse writes.
//!
//! Tests may run as root, whom permissions don't stop, so a disk refuses in ways that stop root too: a limit on the size of a
//! file, and, where the system lets an ordinary process have a mount namespace, a small or read-only file system.

use std::fs;
use std::io::Write;
use std::process::Output;

use expect_test::expect;

use crate::bundles::tiny;
use crate::program::Program;

/// Runs `mote ARGUMENTS` in a shell after `preparation`.
fn shell(program: &Program, preparation: &str, arguments: &str) -> Output {
    let script = format!("{preparation} && exec \"$0\" {arguments}");
    let command = program.command(&[]);
    let mote = command.get_program().to_owned();
    let mut shell = std::process::Command::new("bash");
    shell
        .args(["-c", &script])
        .arg(mote)
        .current_dir(program.root())
        .envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))));
    shell.output().unwrap()
}

/// The same in a mount namespace of its own; `None` where the system refuses that, which is said past the capture of the test runner.
#[expect(clippy::explicit_write, reason = "the test runner hides what `eprintln` prints in a test that passes")]
fn in_namespace(program: &Program, preparation: &str, arguments: &str) -> Option<Output> {
    let allowed = std::process::Command::new("unshare").args(["--user", "--map-root-user", "--mount", "true"]).output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        writeln!(std::io::stderr(), "skipped, no mount namespace can be had here: {test}").unwrap();
        return None;
    }
    let mote = program.command(&[]).get_program().to_str().unwrap().to_owned();
    let inner = format!("{preparation} && exec {mote} {arguments}");
    Some(shell(program, &format!("exec unshare --user --map-root-user --mount bash -c '{inner}'"), ""))
}

#[test]
fn a_file_that_may_not_grow_ends_an_import_and_leaves_nothing() {
    let program = Program::new();
    tiny(&program);
    let output = shell(&program, "trap '' XFSZ; ulimit -f 8", "model import tiny");
    expect![[r#"
        exit 75
        -- stderr
        mote: cannot write (File too large (os error 27)): ROOT/home/bundles/.import-XXXXXX/tokenizer.json
          hint: free some space, or set MOTE_HOME to a folder on another file system
    "#]]
    .assert_eq(&hide_temporary(&program.show(&output)));
    assert_eq!(fs::read_dir(program.root().join("home/bundles")).unwrap().count(), 0);
}

#[test]
fn a_full_disk_is_seen_before_anything_is_copied() {
    let program = Program::new();
    tiny(&program);
    let mount = "mkdir home && mount -t tmpfs -o size=64k none home";
    let Some(output) = in_namespace(&program, mount, "model import tiny") else { return };
    expect![[r#"
        exit 75
        -- stderr
        mote: not enough free disk for the bundle, in bytes: needs #, free #
          hint: free some space, or set MOTE_HOME to a folder on another file system
    "#]]
    .assert_eq(&hide_numbers(&program.show(&output)));
}

#[test]
fn a_read_only_state_folder_stops_an_import_and_not_a_look() {
    let program = Program::new();
    tiny(&program);
    let mount = "mkdir home && mount -t tmpfs -o ro none home";
    let Some(output) = in_namespace(&program, mount, "model import tiny") else { return };
    expect![[r#"
        exit 78
        -- stderr
        mote: cannot write (Read-only file system (os error 30)): ROOT/home/bundles
          hint: check that the state folder can be written, or set MOTE_HOME to another one
    "#]]
    .assert_eq(&hide_temporary(&program.show(&output)));
    let Some(output) = in_namespace(&program, "mount -t tmpfs -o ro none home", "model list") else { return };
    expect![[r#"
        exit 0
        -- stderr
        no bundle is imported yet
          hint: run `make model` in the source tree, or `mote model import PATH`
    "#]]
    .assert_eq(&program.show(&output));
}

#[test]
fn a_file_in_place_of_the_state_folder() {
    let program = Program::new();
    tiny(&program);
    fs::write(program.root().join("home"), "").unwrap();
    expect![[r#"
        exit 78
        -- stderr
        mote: cannot write (Not a directory (os error 20)): ROOT/home/bundles
          hint: check that the state folder can be written, or set MOTE_HOME to another one
    "#]]
    .assert_eq(&program.run(&["model", "import", "tiny"]));
    expect![[r#"
        exit 78
        -- stderr
        mote: cannot read (Not a directory (os error 20)): ROOT/home/bundles/default
          hint: check that the state folder belongs to you, or set MOTE_HOME to another one
    "#]]
    .assert_eq(&program.run(&["model", "list"]));
}

/// Replaces the random part of a temporary name.
fn hide_temporary(text: &str) -> String {
    match text.split_once(".import-") {
        Some((before, after)) => format!("{before}.import-XXXXXX{}", after.get(6..).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Replaces every number but the exit code.
fn hide_numbers(text: &str) -> String {
    let (exit, rest) = text.split_once('\n').unwrap();
    let digits: String = rest.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
    let mut rest = digits;
    while rest.contains("##") {
        rest = rest.replace("##", "#");
    }
    format!("{exit}\n{rest}")
}
