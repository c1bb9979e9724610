//! `fs`: listing, reading, searching, writing; special files, links and names that are no UTF-8.

use crate::fixture::Fixture;
use expect_test::{Expect, expect};
use mote_toolpacks::ErrorKind;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

fn check(calls: &[(&str, &str)], expected: Expect) {
    expected.assert_eq(&Fixture::new().transcript(calls));
}

#[test]
fn lists_and_finds() {
    check(
        &[
            ("fs.list", r#"{"path": "music"}"#),
            ("fs.list", r#"{"path": "./music", "recursive": true}"#),
            ("fs.list", r#"{"path": "music", "kind": "folder"}"#),
            ("fs.list", r#"{"path": "data", "pattern": "*.LOG", "recursive": true}"#),
            ("fs.list", r#"{"path": "data", "pattern": "*.txt"}"#),
            ("fs.list", r#"{"path": "nowhere"}"#),
            ("fs.list", r#"{"path": "todo.txt"}"#),
            ("fs.list", r#"{"pattern": "a/*"}"#),
            ("fs.list", r#"{"pattern": "[a"}"#),
            ("fs.list", r#"{"folder": "music"}"#),
            ("fs.list", r#"{"kind": "socket"}"#),
        ],
        expect![[r#"
            fs.list {"path": "music"}
              live/
              song.mp3
            fs.list {"path": "./music", "recursive": true}
              live/
              live/set.flac
              song.mp3
            fs.list {"path": "music", "kind": "folder"}
              live/
            fs.list {"path": "data", "pattern": "*.LOG", "recursive": true}
              boot.log
              old/run.log
            fs.list {"path": "data", "pattern": "*.txt"}
              nothing in data matches *.txt
            fs.list {"path": "nowhere"}
              error: no such file or folder: nowhere
              hint: list the folder first with fs.list(path=..)
            fs.list {"path": "todo.txt"}
              error: is not a folder: todo.txt
              hint: read it with fs.read(path=..)
            fs.list {"pattern": "a/*"}
              error: a name pattern holds no /: a/*
              hint: give the folder as path, the file name as pattern
            fs.list {"pattern": "[a"}
              error: pattern is not valid (invalid range pattern): [a
            fs.list {"folder": "music"}
              error: fs.list has no argument: folder
              hint: fs.list takes: path, pattern, recursive, kind
            fs.list {"kind": "socket"}
              error: fs.list(kind) cannot be: "socket"
              hint: one of: "any", "file", "folder"
        "#]],
    );
}

#[test]
fn sizes() {
    check(
        &[
            ("fs.largest", r#"{"limit": 2}"#),
            ("fs.largest", r#"{"path": "./music", "limit": "1"}"#),
            ("fs.largest", r#"{"path": "music", "limit": 0}"#),
            ("fs.usage", r#"{"path": "music"}"#),
            ("fs.stat", r#"{"path": "gone"}"#),
        ],
        expect![[r#"
            fs.largest {"limit": 2}
              music/live/set.flac: 31.0 kB
              shop.db: 8.2 kB
            fs.largest {"path": "./music", "limit": "1"}
              music/live/set.flac: 31.0 kB
            fs.largest {"path": "music", "limit": 0}
              error: fs.largest(limit) must be at least 1, not: 0
            fs.usage {"path": "music"}
              music takes 35.2 kB: 2 files in 2 folders
            fs.stat {"path": "gone"}
              error: no such file or folder: gone
              hint: list the folder first with fs.list(path=..)
        "#]],
    );
}

#[test]
fn reads() {
    check(
        &[
            ("fs.read", r#"{"path": "todo.txt"}"#),
            ("fs.read", r#"{"path": "todo.txt", "start": 2, "lines": 1}"#),
            ("fs.read", r#"{"path": "todo.txt", "start": 9}"#),
            ("fs.read", r#"{"path": "music"}"#),
            ("fs.read", r#"{"path": "shop.db"}"#),
            ("fs.read", r#"{"path": "/dev/zero"}"#),
            ("fs.read", "{}"),
        ],
        expect![[r#"
            fs.read {"path": "todo.txt"}
              call Bob
              water the plants
              buy milk
            fs.read {"path": "todo.txt", "start": 2, "lines": 1}
              water the plants
            fs.read {"path": "todo.txt", "start": 9}
              error: todo.txt has 3 lines, start is after them: 9
            fs.read {"path": "music"}
              error: is a folder: music
              hint: list it with fs.list(path=..)
            fs.read {"path": "shop.db"}
              error: is a binary file: shop.db
              hint: its size and kind: fs.stat(path=..)
            fs.read {"path": "/dev/zero"}
              error: is a device, pipe or socket: /dev/zero
            fs.read {}
              error: fs.read needs the argument: path
              hint: fs.read takes: path, start, lines
        "#]],
    );
}

#[test]
fn searches() {
    check(
        &[
            ("fs.search", r#"{"pattern": "ADA"}"#),
            ("fs.search", r#"{"pattern": "call [AB]", "regex": true, "files": "*.txt"}"#),
            ("fs.search", r#"{"pattern": "call (", "path": "todo.txt"}"#),
            ("fs.search", r#"{"pattern": "call (", "regex": true}"#),
            ("fs.search", r#"{"pattern": ""}"#),
            ("fs.search", r#"{"pattern": "milk", "path": "todo.txt"}"#),
        ],
        expect![[r#"
            fs.search {"pattern": "ADA"}
              config.json line 1: {"server": {"host": "board", "port": 8080}, "users": [{"name": "ada"}]}
              notes.md line 3: Then call Ada, ada@example.org
              old.txt line 2: call Ada
              (there is more)
            fs.search {"pattern": "call [AB]", "regex": true, "files": "*.txt"}
              new.txt line 2: call Bob
              old.txt line 2: call Ada
              todo.txt line 1: call Bob
            fs.search {"pattern": "call (", "path": "todo.txt"}
              no line with call ( in todo.txt, searched 1 file
            fs.search {"pattern": "call (", "regex": true}
              error: regular expression is not valid (unclosed group): call (
              hint: leave regex out to look for plain text
            fs.search {"pattern": ""}
              error: the pattern is empty
              hint: say what to look for
            fs.search {"pattern": "milk", "path": "todo.txt"}
              todo.txt line 3: buy milk
        "#]],
    );
}

#[test]
fn writes_only_below_writable_folders() {
    let fixture = Fixture::new();
    symlink("/tmp", fixture.path().join("out/away")).unwrap();
    symlink("../todo.txt", fixture.path().join("out/link.txt")).unwrap();
    let calls = [
        ("fs.write", r#"{"path": "out/hello.txt", "text": "hello\n"}"#),
        ("fs.write", r#"{"path": "out/hello.txt", "text": "again\n", "append": true}"#),
        ("fs.read", r#"{"path": "out/hello.txt"}"#),
        ("fs.write", r#"{"path": "out/a/b/c.txt", "text": "deep"}"#),
        ("fs.write", r#"{"path": "out/a/../d.txt", "text": "x"}"#),
        ("fs.write", r#"{"path": "todo.txt", "text": "x"}"#),
        ("fs.write", r#"{"path": "out/../todo.txt", "text": "x"}"#),
        ("fs.write", r#"{"path": "/etc/mote-test", "text": "x"}"#),
        ("fs.write", r#"{"path": "out/away/x", "text": "x"}"#),
        ("fs.write", r#"{"path": "out/link.txt", "text": "x"}"#),
        ("fs.write", r#"{"path": "out/hello.txt/x", "text": "x"}"#),
        ("fs.write", r#"{"path": "out", "text": "x"}"#),
        ("fs.write", r#"{"path": "out/a", "text": "x"}"#),
        ("fs.list", r#"{"path": "out", "recursive": true}"#),
    ];
    expect![[r#"
        fs.write {"path": "out/hello.txt", "text": "hello\n"}
          wrote 6 bytes to out/hello.txt
        fs.write {"path": "out/hello.txt", "text": "again\n", "append": true}
          wrote 6 bytes to out/hello.txt
        fs.read {"path": "out/hello.txt"}
          hello
          again
        fs.write {"path": "out/a/b/c.txt", "text": "deep"}
          wrote 4 bytes to out/a/b/c.txt
        fs.write {"path": "out/a/../d.txt", "text": "x"}
          wrote 1 byte to out/a/../d.txt
        fs.write {"path": "todo.txt", "text": "x"}
          error: may not write here: todo.txt
          hint: writable: out
        fs.write {"path": "out/../todo.txt", "text": "x"}
          error: may not write here: out/../todo.txt
          hint: writable: out
        fs.write {"path": "/etc/mote-test", "text": "x"}
          error: may not write here: /etc/mote-test
          hint: writable: out
        fs.write {"path": "out/away/x", "text": "x"}
          error: a symbolic link or file is in the way: out/away/x
        fs.write {"path": "out/link.txt", "text": "x"}
          error: a symbolic link or file is in the way: out/link.txt
        fs.write {"path": "out/hello.txt/x", "text": "x"}
          error: a symbolic link or file is in the way: out/hello.txt/x
        fs.write {"path": "out", "text": "x"}
          error: is a folder: out
          hint: give the name of a file in it
        fs.write {"path": "out/a", "text": "x"}
          error: is a folder: out/a
          hint: give the name of a file in it
        fs.list {"path": "out", "recursive": true}
          a/
          a/b/
          a/b/c.txt
          away
          d.txt
          hello.txt
          link.txt
          list.txt
    "#]]
    .assert_eq(&fixture.transcript(&calls));
    assert!(std::fs::read_to_string(fixture.path().join("todo.txt")).unwrap().starts_with("call Bob"));
}

#[test]
fn keeps_the_mode_of_a_replaced_file() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    let path = fixture.path().join("out/run.sh");
    std::fs::write(&path, "old").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o751)).unwrap();
    fixture.call("fs.write", r#"{"path": "out/run.sh", "text": "new"}"#).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o751);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
}

#[test]
fn never_waits_on_special_files() {
    let fixture = Fixture::new();
    let fifo = fixture.path().join("data/pipe.log");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600), 0)
        .unwrap();
    symlink(fixture.path(), fixture.path().join("data/loop")).unwrap();
    symlink("/dev/zero", fixture.path().join("data/zero.log")).unwrap();
    let started = Instant::now();
    assert_eq!(fixture.call("fs.read", r#"{"path": "data/pipe.log"}"#).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(fixture.call("fs.read", r#"{"path": "data/zero.log"}"#).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(
        fixture.said("fs.search", r#"{"pattern": "error", "path": "data"}"#),
        "data/boot.log line 2: error: no clock"
    );
    assert_eq!(
        fixture.said("fs.list", r#"{"path": "data", "recursive": true}"#),
        "boot.log\nloop\nold/\nold/run.log\npipe.log\nzero.log"
    );
    assert_eq!(fixture.said("fs.usage", r#"{"path": "data"}"#).split(": ").nth(1), Some("5 files in 2 folders"));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn takes_names_and_contents_that_are_no_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let fixture = Fixture::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    std::fs::write(fixture.path().join("photos").join(name), b"gr\xfc\xdfe\nmilk\n").unwrap();
    assert_eq!(fixture.said("fs.list", r#"{"path": "photos"}"#), "caf\u{fffd}.txt\nhill.jpg\nsea.jpg");
    assert_eq!(
        fixture.said("fs.search", r#"{"path": "photos", "pattern": "milk"}"#),
        "photos/caf\u{fffd}.txt line 2: milk"
    );
}

#[test]
fn cuts_long_lists_files_and_lines() {
    let mut fixture = Fixture::new();
    for n in 0..300 {
        std::fs::write(fixture.path().join(format!("photos/{n:04}.jpg")), "x").unwrap();
    }
    std::fs::write(fixture.path().join("long.txt"), "milk ".repeat(200_000)).unwrap();
    std::fs::write(fixture.path().join("control.txt"), "\u{1}\n".repeat(5000)).unwrap();
    fixture.limits.max_result_bytes = 4096;
    fixture.limits.max_entries = 100;
    for (name, arguments) in [
        ("fs.list", r#"{"path": "photos"}"#),
        ("fs.read", r#"{"path": "long.txt"}"#),
        ("fs.read", r#"{"path": "control.txt"}"#),
    ] {
        let result = fixture.call(name, arguments).unwrap();
        assert_eq!(result["truncated"], true, "{name}");
        assert!(result.to_string().len() <= 4096);
        assert!(result["text"].as_str().unwrap().len() > 200);
    }
    fixture.limits.max_result_bytes = 40;
    let error = fixture.call("fs.list", r#"{"path": "photos"}"#).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { limit: 40, .. }), "{error}");
}

/// What was seen before a bound is worth more than an error, as long as it says that it is not all.
#[test]
fn a_walk_out_of_time_gives_what_it_saw() {
    let mut fixture = Fixture::new();
    fixture.limits.timeout = Duration::from_secs(1);
    let slow = || {
        std::thread::sleep(Duration::from_millis(300));
        false
    };
    let result = fixture.with_context(|context| {
        let context = mote_toolpacks::CallContext { cancelled: &slow, ..*context };
        mote_toolpacks::call("fs", "list", &serde_json::Map::new(), &context).unwrap()
    });
    assert_eq!(result["truncated"], true);
    assert!(result["text"].as_str().unwrap().ends_with("(there is more)"));
}

#[test]
fn ends_when_cancelled_or_out_of_time() {
    let mut fixture = Fixture::new();
    fixture.limits.timeout = Duration::ZERO;
    std::thread::sleep(Duration::from_millis(1));
    let error = fixture.call("fs.search", r#"{"pattern": "x", "path": "/usr"}"#).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { limit: 0, .. }), "{error}");
    let kind = fixture.with_context(|context| {
        let context = mote_toolpacks::CallContext { cancelled: &|| true, ..*context };
        mote_toolpacks::call("fs", "list", &serde_json::Map::new(), &context).unwrap_err().kind()
    });
    assert_eq!(kind, ErrorKind::Cancelled);
}

#[test]
fn the_ends_of_a_file_are_shown() {
    let fixture = Fixture::new();
    assert_eq!(fixture.said("fs.head", r#"{"path": "todo.txt", "lines": 2}"#), "call Bob\nwater the plants");
    assert_eq!(fixture.said("fs.tail", r#"{"path": "todo.txt", "lines": 2}"#), "water the plants\nbuy milk");
    let whole = fixture.call("fs.tail", r#"{"path": "todo.txt"}"#).unwrap();
    assert_eq!((&whole["first_line"], &whole["n_lines"], &whole["truncated"]), (&1.into(), &3.into(), &false.into()));
}
