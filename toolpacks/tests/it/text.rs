//! `text`: lines, words, parts and differences.

use crate::fixture::Fixture;
use expect_test::{Expect, expect};

fn check(calls: &[(&str, &str)], expected: Expect) {
    expected.assert_eq(&Fixture::new().transcript(calls));
}

#[test]
fn greps_and_counts() {
    check(
        &[
            ("text.grep", r#"{"pattern": "MILK", "path": "todo.txt"}"#),
            ("text.grep", r#"{"pattern": "a", "text": "a\nb\nab"}"#),
            ("text.grep", r#"{"pattern": "^b", "text": "a\nb\nab", "regex": true}"#),
            ("text.grep", r#"{"pattern": "zebra", "path": "todo.txt"}"#),
            ("text.grep", r#"{"pattern": "x"}"#),
            ("text.grep", r#"{"pattern": "(a{100}){100}{100}", "regex": true, "text": "a"}"#),
            ("text.count", r#"{"path": "todo.txt"}"#),
            ("text.count", r#"{"text": "grüße"}"#),
            ("text.count", r#"{"text": ""}"#),
        ],
        expect![[r#"
            text.grep {"pattern": "MILK", "path": "todo.txt"}
              todo.txt line 3: buy milk
            text.grep {"pattern": "a", "text": "a\nb\nab"}
              line 1: a
              line 3: ab
            text.grep {"pattern": "^b", "text": "a\nb\nab", "regex": true}
              line 2: b
            text.grep {"pattern": "zebra", "path": "todo.txt"}
              todo.txt has no line with zebra
            text.grep {"pattern": "x"}
              error: needs either path or text
              hint: give path=".." for a file
            text.grep {"pattern": "(a{100}){100}{100}", "regex": true, "text": "a"}
              error: regular expression is not valid (Compiled regex exceeds size limit of 1048576 bytes): (a{100}){100}{100}
              hint: leave regex out to look for plain text
            text.count {"path": "todo.txt"}
              todo.txt has 3 lines, 7 words and 35 characters
            text.count {"text": "grüße"}
              the text has 1 line, 1 word and 5 characters
            text.count {"text": ""}
              the text has 0 lines, 0 words and 0 characters
        "#]],
    );
}

#[test]
fn a_line_that_is_too_long_is_said_to_be_cut() {
    let fixture = Fixture::new();
    let long = format!("first\n{} milk\nlast\n", "x ".repeat(20_000));
    std::fs::write(fixture.path().join("long.txt"), long).unwrap();
    expect!["long.txt has 3 lines, at least 8194 words and at least 16396 characters"]
        .assert_eq(&fixture.said("text.count", r#"{"path": "long.txt"}"#));
    for (tool, arguments) in [
        ("text.count", r#"{"path": "long.txt"}"#),
        ("text.grep", r#"{"path": "long.txt", "pattern": "milk"}"#),
        ("text.extract", r#"{"path": "long.txt"}"#),
        ("fs.read", r#"{"path": "long.txt"}"#),
        ("fs.search", r#"{"path": "long.txt", "pattern": "milk"}"#),
    ] {
        assert_eq!(fixture.call(tool, arguments).unwrap()["truncated"], true, "{tool}");
    }
    let last = fixture.call("fs.read", r#"{"path": "long.txt", "start": 3}"#).unwrap();
    assert_eq!((&last["truncated"], &last["text"]), (&false.into(), &"last".into()));
}

#[test]
fn counts_as_wc_does() {
    let fixture = Fixture::new();
    let result = fixture.call("text.count", r#"{"path": "todo.txt"}"#).unwrap();
    let text = std::fs::read_to_string(fixture.path().join("todo.txt")).unwrap();
    assert_eq!(result["lines"], text.lines().count());
    assert_eq!(result["words"], text.split_whitespace().count());
    assert_eq!(result["characters"], text.chars().count());
}

#[test]
fn splits_and_extracts() {
    check(
        &[
            ("text.split", r#"{"text": "a, b,c"}"#),
            ("text.split", r#"{"text": " two  words ", "separator": " "}"#),
            ("text.split", r#"{"text": "x", "separator": ""}"#),
            ("text.extract", r#"{"text": "3 apples, -2.5 pears and 1e3 figs"}"#),
            ("text.extract", r#"{"kind": "email", "path": "notes.md"}"#),
            ("text.extract", r#"{"kind": "url", "text": "see (https://example.org/a?b=1), http://x.y."}"#),
            ("text.extract", r#"{"kind": "date", "text": "from 2026-03-01 to 4.5.2026"}"#),
            ("text.extract", r#"{"kind": "ip", "text": "192.168.1.20 and fe80:0:0:0:1:2:3:4"}"#),
            ("text.extract", r#"{"regex": "n(.)", "text": "nab nob"}"#),
            ("text.extract", r#"{"kind": "regex", "text": "x"}"#),
            ("text.extract", r#"{"kind": "phone", "text": "x"}"#),
        ],
        expect![[r#"
            text.split {"text": "a, b,c"}
              a
              b
              c
            text.split {"text": " two  words ", "separator": " "}
              two
              words
            text.split {"text": "x", "separator": ""}
              error: the separator is empty
              hint: a space splits at words
            text.extract {"text": "3 apples, -2.5 pears and 1e3 figs"}
              3
              -2.5
              1e3
            text.extract {"kind": "email", "path": "notes.md"}
              ada@example.org
            text.extract {"kind": "url", "text": "see (https://example.org/a?b=1), http://x.y."}
              https://example.org/a?b=1
              http://x.y
            text.extract {"kind": "date", "text": "from 2026-03-01 to 4.5.2026"}
              2026-03-01
              4.5.2026
            text.extract {"kind": "ip", "text": "192.168.1.20 and fe80:0:0:0:1:2:3:4"}
              192.168.1.20
              fe80:0:0:0:1:2:3:4
            text.extract {"regex": "n(.)", "text": "nab nob"}
              a
              o
            text.extract {"kind": "regex", "text": "x"}
              error: kind regex needs the argument: regex
            text.extract {"kind": "phone", "text": "x"}
              error: text.extract(kind) cannot be: "phone"
              hint: one of: "number", "email", "url", "date", "ip", "regex"
        "#]],
    );
}

#[test]
fn diffs() {
    check(
        &[
            ("text.diff", r#"{"path_a": "old.txt", "path_b": "new.txt"}"#),
            ("text.diff", r#"{"text_a": "a\n", "text_b": "a\n"}"#),
            ("text.diff", r#"{"text_a": "a\n"}"#),
        ],
        expect![[r#"
            text.diff {"path_a": "old.txt", "path_b": "new.txt"}
              @@ -1,2 +1,2 @@
               buy milk
              -call Ada
              +call Bob
            text.diff {"text_a": "a\n", "text_b": "a\n"}
              they are the same
            text.diff {"text_a": "a\n"}
              error: needs either path_b or text_b
        "#]],
    );
}
