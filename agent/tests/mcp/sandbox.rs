//! What servers and packs can reach, and what happens where the kernel cannot confine them. These tests need a kernel with landlock.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use expect_test::{Expect, expect};
use mote::cancel::Cancel;
use mote::home::Home;
use mote::tools::sandbox::SandboxMode;
use mote::tools::{ToolOptions, ToolRuntime};
use serde_json::{Map, Value, json};

use crate::ground::{Ground, MOTE, PATIENCE, arguments, call, failure};

const WITHOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/mcp/without.py");

/// A server named `fake` that uses the machine, a file outside of what it may reach, and the mode.
struct Case {
    ground: Ground,
    outside: tempfile::TempDir,
    mode: SandboxMode,
}

impl Case {
    fn new(mode: SandboxMode, sandbox: Value) -> Case {
        let ground = Ground::new(json!({"fake": {"args": ["wide"], "trusted": true, "sandbox": sandbox}}));
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "the crown jewels").unwrap();
        Case { ground, outside, mode }
    }

    fn secret(&self) -> PathBuf {
        self.outside.path().join("secret")
    }

    /// What the tools of the server say, one after the other.
    fn say(&self, calls: &[(&str, Value)]) -> String {
        let options = ToolOptions { discovery: PATIENCE, sandbox: self.mode, ..ToolOptions::default() };
        let mut runtime = self.ground.open_with(options, Cancel::default());
        assert_eq!(runtime.notices(), Vec::<String>::new());
        let said = calls.iter().map(|(tool, given)| {
            let outcome = call(&mut runtime, tool, given.clone());
            outcome.result.as_ref().map_or_else(|_| failure(&outcome), Value::to_string)
        });
        let said = said.collect::<Vec<_>>().join("\n");
        drop(runtime);
        self.ground.nothing_survives();
        said
    }
}

#[test]
fn a_server_reaches_its_own_and_nothing_else() {
    for mode in [SandboxMode::Auto, SandboxMode::On] {
        let case = Case::new(mode, json!({}));
        let (secret, own) = (case.secret(), case.ground.path("own"));
        let said = case.say(&[
            ("read", json!({"path": secret})),
            ("store", json!({"path": secret})),
            ("store", json!({"path": case.outside.path().join("new")})),
            ("store", json!({"path": "/etc/mote-was-here"})),
            ("store", json!({"path": own})),
            ("read", json!({"path": own})),
        ]);
        expect![[r#"
            tool: PermissionError: Permission denied
            tool: PermissionError: Permission denied
            tool: PermissionError: Permission denied
            tool: PermissionError: Permission denied
            "done"
            "x""#]]
        .assert_eq(&said);
        assert_eq!(std::fs::read_to_string(secret).unwrap(), "the crown jewels");
    }
    let case = Case::new(SandboxMode::Off, json!({}));
    assert_eq!(case.say(&[("read", json!({"path": case.secret()}))]), "\"the crown jewels\"");
}

#[test]
fn an_entry_gives_more() {
    let case = Case::new(SandboxMode::On, json!({}));
    let (secret, folder) = (case.secret(), case.outside.path());
    let with = |read: &[&Path], write: &[&Path]| {
        let mut servers: Value = serde_json::from_slice(&std::fs::read(case.ground.path("mcp.json")).unwrap()).unwrap();
        servers["mcpServers"]["fake"]["sandbox"] = json!({"read": read, "write": write});
        std::fs::write(case.ground.path("mcp.json"), servers.to_string()).unwrap();
        case.say(&[("read", json!({"path": secret})), ("store", json!({"path": secret}))])
    };
    expect![[r#"
        "the crown jewels"
        tool: PermissionError: Permission denied"#]]
    .assert_eq(&with(&[folder], &[]));
    expect![[r#"
        "the crown jewels"
        "done""#]]
    .assert_eq(&with(&[], &[folder]));
}

#[test]
fn sockets_are_opened_only_where_that_is_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = json!({"port": listener.local_addr().unwrap().port()});
    let says = |mode, sandbox| Case::new(mode, sandbox).say(&[("connect", connect.clone())]);
    let refused = "tool: PermissionError: Operation not permitted";
    assert_eq!(says(SandboxMode::Auto, json!({})), "\"done\"");
    assert_eq!(says(SandboxMode::Auto, json!({"network": false})), refused);
    assert_eq!(says(SandboxMode::On, json!({})), refused);
    assert_eq!(says(SandboxMode::On, json!({"network": true})), "\"done\"");
}

#[test]
fn a_server_has_a_temporary_folder_of_its_own_that_goes_with_it() {
    let case = Case::new(SandboxMode::On, json!({}));
    let said = case.say(&[("variable", json!({"name": "TMPDIR"}))]);
    let folder: PathBuf = said.trim_matches('"').strip_prefix("it is ").unwrap().into();
    assert!(folder.starts_with(std::env::temp_dir()) && folder != std::env::temp_dir(), "{said}");
    assert!(!folder.exists(), "{said}");
}

/// A runtime with packs alone, whose working folder has a `work` folder that packs may read and change.
fn packs(root: &Path, mode: SandboxMode) -> ToolRuntime {
    std::fs::create_dir(root.join("work")).unwrap();
    std::fs::write(root.join("work/a.txt"), "inside").unwrap();
    std::fs::write(root.join("b.txt"), "outside").unwrap();
    std::os::unix::fs::symlink(root.join("b.txt"), root.join("work/link.txt")).unwrap();
    let options = ToolOptions {
        working_dir: root.to_path_buf(),
        readable: vec!["work".into()],
        writable: vec!["work".into()],
        sandbox: mode,
        allow: vec!["*".to_owned()],
        ..ToolOptions::default()
    };
    ToolRuntime::open(&Home::at(&root.join("home")), options, Cancel::default()).unwrap()
}

#[test]
fn packs_read_and_write_where_they_may_and_nothing_leads_around_it() {
    for mode in [SandboxMode::Auto, SandboxMode::On] {
        let root = tempfile::tempdir().unwrap();
        let mut runtime = packs(root.path(), mode);
        let mut says = |tool: &str, given: Value| {
            let outcome = runtime.call("fs", tool, &arguments(given));
            outcome.result.map_or_else(
                |failure| format!("{}: {}", failure.kind, failure.message),
                |value| value.get("text").and_then(Value::as_str).unwrap_or("done").to_owned(),
            )
        };
        let said = [
            says("read", json!({"path": "work/a.txt"})),
            says("read", json!({"path": "b.txt"})),
            says("read", json!({"path": "work/link.txt"})),
            says("read", json!({"path": "/etc/passwd"})),
            says("write", json!({"path": "work/c.txt", "text": "x"})),
        ];
        expect![[r#"
            inside
            permission: may not read: b.txt
            permission: may not read: work/link.txt
            permission: may not read: /etc/passwd
            wrote 1 byte to work/c.txt"#]]
        .assert_eq(&said.join("\n"));
        assert!(runtime.call("system", "network", &Map::new()).result.is_ok());
        assert!(runtime.call("time", "now", &Map::new()).result.is_ok());
        let note = arguments(json!({"key": "a", "text": "b"}));
        assert!(runtime.call("notes", "put", &note).result.is_ok());
    }
}

/// Runs the program as on a kernel that lacks something.
fn without(lacking: &str, home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("python3");
    command.arg(WITHOUT).arg(lacking).arg(MOTE).args(arguments).env("MOTE_HOME", home).output().unwrap()
}

fn check(output: &Output, code: i32, expected: &Expect) {
    expected.assert_eq(String::from_utf8_lossy(&output.stderr).trim_end());
    assert_eq!(output.status.code(), Some(code));
}

#[test]
fn without_landlock_on_fails_closed_and_auto_says_what_it_lost() {
    let home = tempfile::tempdir().unwrap();
    let call = |mode| {
        without(
            "landlock",
            home.path(),
            &["tools", "call", "--sandbox", mode, "math.eval", r#"{"expression": "1 + 1"}"#],
        )
    };
    check(
        &call("on"),
        78,
        &expect![[r#"
        mote: there is no whole sandbox here: this kernel has no landlock, files are not confined
          hint: `--sandbox auto` goes on with what there is"#]],
    );
    check(
        &call("auto"),
        0,
        &expect![[r#"
        mote: the sandbox is not whole: this kernel has no landlock, files are not confined"#]],
    );
    check(&call("off"), 0, &expect![[""]]);
    let doctor = without("landlock", home.path(), &["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    expect![[r#"
        this kernel has no landlock, files are not confined
                 fix: use a kernel with landlock (5.19 or later, `lsm=landlock,..` at boot) and seccomp"#]]
    .assert_eq(said.split_once("sandbox: ").unwrap().1.trim_end());
}

#[test]
fn without_seccomp_on_fails_closed_too() {
    let home = tempfile::tempdir().unwrap();
    check(
        &without("seccomp", home.path(), &["tools", "list", "--sandbox", "on"]),
        78,
        &expect![[r#"
        mote: there is no whole sandbox here: sockets and system calls are not confined: the kernel has no seccomp: Error calling `seccomp`: Function not implemented (os error 38)
          hint: `--sandbox auto` goes on with what there is"#]],
    );
}

#[test]
fn a_guardian_that_cannot_confine_its_server_does_not_start_it() {
    let home = tempfile::tempdir().unwrap();
    let started = home.path().join("started");
    let confinement = json!({"read": ["/"], "write": ["/"], "sockets": "None", "programs": true, "strict": true});
    let terms = json!({"caps": {"memory_mib": 100}, "confinement": confinement, "temporary": false}).to_string();
    let command = ["guard", &terms, "--", "touch", started.to_str().unwrap()];
    check(
        &without("landlock", home.path(), &command),
        127,
        &expect!["mote guard: files cannot be confined: fully incompatible access-rights"],
    );
    check(
        &without("seccomp", home.path(), &command),
        127,
        &expect![
            "mote guard: system calls cannot be confined: the kernel has no seccomp: Error calling `seccomp`: Function not implemented (os error 38)"
        ],
    );
    assert!(!started.exists());
    let output = Command::new(MOTE).args(command).output().unwrap();
    assert!(output.status.success() && started.exists(), "{output:?}");
}
