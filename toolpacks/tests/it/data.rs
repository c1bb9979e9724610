//! `data`: tables, values, queries; nothing writes.

use crate::fixture::Fixture;
use expect_test::{Expect, expect};
use mote_toolpacks::ErrorKind;
use std::time::{Duration, Instant};

fn check(calls: &[(&str, &str)], expected: Expect) {
    expected.assert_eq(&Fixture::new().transcript(calls));
}

#[test]
fn reads_tables() {
    check(
        &[
            ("data.csv", r#"{"path": "plants.csv"}"#),
            ("data.csv", r#"{"text": "a;b\n1,5;007\n"}"#),
            ("data.csv", r#"{"text": "a,,a\n1,2,3\n4\n"}"#),
            ("data.csv", r#"{"text": "a,b\n"}"#),
            ("data.csv", r#"{"text": ""}"#),
            ("data.csv", r#"{"text": "a|b\n1|2", "delimiter": "|"}"#),
            ("data.csv", r#"{"text": "a", "delimiter": "ab"}"#),
            ("data.csv", r#"{"path": "plants.csv", "text": "a"}"#),
        ],
        expect![[r#"
            data.csv {"path": "plants.csv"}
              name=fern, height=30
              name=oak, height=2000
            data.csv {"text": "a;b\n1,5;007\n"}
              a=1,5, b=007
            data.csv {"text": "a,,a\n1,2,3\n4\n"}
              a=1, _2=2, a_3=3
              a=4
            data.csv {"text": "a,b\n"}
              the table has no rows, 2 columns
            data.csv {"text": ""}
              the table has no rows, 0 columns
            data.csv {"text": "a|b\n1|2", "delimiter": "|"}
              a=1, b=2
            data.csv {"text": "a", "delimiter": "ab"}
              error: a delimiter is one ASCII character, not: ab
            data.csv {"path": "plants.csv", "text": "a"}
              error: needs either path or text
              hint: give path=".." for a file
        "#]],
    );
}

#[test]
fn reads_values() {
    check(
        &[
            ("data.json", r#"{"path": "config.json", "key": "server.port"}"#),
            ("data.json", r#"{"path": "config.json", "key": "users[0].name"}"#),
            ("data.json", r#"{"path": "config.json", "key": "$.users[-1]"}"#),
            ("data.json", r#"{"path": "config.json", "key": "server.prot"}"#),
            ("data.json", r#"{"path": "config.json", "key": "users.7"}"#),
            ("data.json", r#"{"text": "{\"a\": "}"#),
            ("data.json", r#"{"path": "todo.txt"}"#),
        ],
        expect![[r#"
            data.json {"path": "config.json", "key": "server.port"}
              8080
            data.json {"path": "config.json", "key": "users[0].name"}
              ada
            data.json {"path": "config.json", "key": "$.users[-1]"}
              {
                "name": "ada"
              }
            data.json {"path": "config.json", "key": "server.prot"}
              error: no such key: prot
              hint: there are: host, port
            data.json {"path": "config.json", "key": "users.7"}
              error: no such key: 7
              hint: there are: 0 to 0
            data.json {"text": "{\"a\": "}
              error: the JSON does not parse: EOF while parsing a value at line 1 column 6
            data.json {"path": "todo.txt"}
              error: the JSON does not parse: expected value at line 1 column 1
        "#]],
    );
}

#[test]
fn queries_and_refuses_to_write() {
    let fixture = Fixture::new();
    let calls = [
        ("data.tables", r#"{"path": "shop.db"}"#),
        ("data.sqlite", r#"{"path": "shop.db", "query": "SELECT * FROM orders"}"#),
        ("data.sqlite", r#"{"path": "shop.db", "query": "SELECT COUNT(*) AS n FROM orders"}"#),
        ("data.sqlite", r#"{"path": "shop.db", "query": "SELECT item FROM orders WHERE id > 9"}"#),
        ("data.sqlite", r#"{"path": "shop.db", "query": "SELECT * FROM order"}"#),
        ("data.sqlite", r#"{"path": "shop.db", "query": "SELECT price FROM orders"}"#),
        ("data.sqlite", r#"{"path": "shop.db", "query": "SELECT 1; SELECT 2"}"#),
        ("data.sqlite", r#"{"path": "shop.db", "query": "DELETE FROM orders"}"#),
        ("data.sqlite", r#"{"path": "shop.db", "query": "DROP TABLE orders"}"#),
        ("data.sqlite", r#"{"path": "shop.db", "query": "ATTACH 'x.db' AS x"}"#),
        ("data.sqlite", r#"{"path": "shop.db", "query": "PRAGMA journal_mode = DELETE"}"#),
        ("data.sqlite", r#"{"path": "shop.db", "query": "VACUUM INTO 'copy.db'"}"#),
        ("data.sqlite", r#"{"path": "shop.db", "query": "SELECT load_extension('x')"}"#),
        ("data.sqlite", r#"{"path": "shop.db", "query": "SELECT ?"}"#),
        ("data.sqlite", r#"{"path": "shop.db", "query": ""}"#),
        ("data.sqlite", r#"{"path": "shop.db", "query": "SELECT zeroblob(900000000)"}"#),
        ("data.sqlite", r#"{"path": "todo.txt", "query": "SELECT 1"}"#),
        ("data.sqlite", r#"{"path": "gone.db", "query": "SELECT 1"}"#),
    ];
    expect![[r#"
        data.tables {"path": "shop.db"}
          orders: id, item
        data.sqlite {"path": "shop.db", "query": "SELECT * FROM orders"}
          id=1, item=pen
          id=2, item=ink
          id=3, item=pad
        data.sqlite {"path": "shop.db", "query": "SELECT COUNT(*) AS n FROM orders"}
          n=3
        data.sqlite {"path": "shop.db", "query": "SELECT item FROM orders WHERE id > 9"}
          the query gives no rows
        data.sqlite {"path": "shop.db", "query": "SELECT * FROM order"}
          error: SQLite says: near "order": syntax error
          hint: see the tables with data.tables(path=..)
        data.sqlite {"path": "shop.db", "query": "SELECT price FROM orders"}
          error: SQLite says: no such column: price
          hint: see the tables with data.tables(path=..)
        data.sqlite {"path": "shop.db", "query": "SELECT 1; SELECT 2"}
          error: one statement only
          hint: write one SELECT
        data.sqlite {"path": "shop.db", "query": "DELETE FROM orders"}
          error: the database is read-only here
          hint: write one SELECT
        data.sqlite {"path": "shop.db", "query": "DROP TABLE orders"}
          error: the database is read-only here
          hint: write one SELECT
        data.sqlite {"path": "shop.db", "query": "ATTACH 'x.db' AS x"}
          error: the database is read-only here
          hint: write one SELECT
        data.sqlite {"path": "shop.db", "query": "PRAGMA journal_mode = DELETE"}
          error: the database is read-only here
          hint: write one SELECT
        data.sqlite {"path": "shop.db", "query": "VACUUM INTO 'copy.db'"}
          error: the database is read-only here
          hint: write one SELECT
        data.sqlite {"path": "shop.db", "query": "SELECT load_extension('x')"}
          error: SQLite says: not authorized to use function: load_extension
          hint: see the tables with data.tables(path=..)
        data.sqlite {"path": "shop.db", "query": "SELECT ?"}
          error: the query has open parameters
          hint: write the values into the query
        data.sqlite {"path": "shop.db", "query": ""}
          error: SQLite says: SQL is empty or comment only
          hint: see the tables with data.tables(path=..)
        data.sqlite {"path": "shop.db", "query": "SELECT zeroblob(900000000)"}
          error: the query needs too much memory
          hint: a value holds at most 1048576 bytes
        data.sqlite {"path": "todo.txt", "query": "SELECT 1"}
          error: is no SQLite database
        data.sqlite {"path": "gone.db", "query": "SELECT 1"}
          error: no such file or folder: gone.db
          hint: list the folder first with fs.list(path=..)
    "#]]
    .assert_eq(&fixture.transcript(&calls));
    assert!(!fixture.path().join("x.db").exists() && !fixture.path().join("copy.db").exists());
    assert!(!fixture.path().join("gone.db").exists());
}

#[test]
fn interrupts_an_endless_query() {
    let mut fixture = Fixture::new();
    fixture.limits.timeout = Duration::from_millis(200);
    let endless = r#"{"path": "shop.db", "query": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"}"#;
    let started = Instant::now();
    let error = fixture.call("data.sqlite", endless).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { limit: 200, .. }), "{error}");
    assert!(started.elapsed() < Duration::from_secs(3));
}

#[test]
fn cuts_endless_rows() {
    let mut fixture = Fixture::new();
    fixture.limits.max_result_bytes = 8192;
    let endless = r#"{"path": "shop.db", "query": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"}"#;
    let result = fixture.call("data.sqlite", endless).unwrap();
    assert_eq!(result["truncated"], true);
    assert!(result["n_rows"].as_u64().unwrap() > 50);
}
