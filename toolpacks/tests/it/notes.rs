//! `notes`: remembering and forgetting.

use crate::fixture::Fixture;
use expect_test::expect;

#[test]
fn remembers_and_forgets() {
    let long = format!(r#"{{"key": "k", "text": "{}"}}"#, "x".repeat(70_000));
    let calls = [
        ("notes.search", "{}"),
        ("notes.put", r#"{"key": "wifi", "text": "password is on the fridge"}"#),
        ("notes.put", r#"{"key": "door", "text": "4 digits"}"#),
        ("notes.get", r#"{"key": "wifi"}"#),
        ("notes.search", "{}"),
        ("notes.search", r#"{"query": "FRIDGE"}"#),
        ("notes.search", r#"{"query": "zebra"}"#),
        ("notes.delete", r#"{"key": "wifi"}"#),
        ("notes.delete", r#"{"key": "wifi"}"#),
        ("notes.get", r#"{"key": "wifi"}"#),
        ("notes.put", r#"{"key": " ", "text": "x"}"#),
        ("notes.put", r#"{"key": "k"}"#),
    ];
    let fixture = Fixture::new();
    expect![[r#"
        notes.search {}
          there are no notes
        notes.put {"key": "wifi", "text": "password is on the fridge"}
          remembered wifi
        notes.put {"key": "door", "text": "4 digits"}
          remembered door
        notes.get {"key": "wifi"}
          password is on the fridge
        notes.search {}
          door: 4 digits
          wifi: password is on the fridge
        notes.search {"query": "FRIDGE"}
          wifi: password is on the fridge
        notes.search {"query": "zebra"}
          no note mentions zebra
        notes.delete {"key": "wifi"}
          forgot wifi
        notes.delete {"key": "wifi"}
          error: no such note: wifi
          hint: list them with notes.search()
        notes.get {"key": "wifi"}
          error: no such note: wifi
          hint: list them with notes.search()
        notes.put {"key": " ", "text": "x"}
          error: the key is empty
        notes.put {"key": "k"}
          error: notes.put needs the argument: text
          hint: notes.put takes: key, text
    "#]]
    .assert_eq(&fixture.transcript(&calls));
    expect!["error: limit reached, note in bytes: limit 65536, used 70000"]
        .assert_eq(&fixture.said("notes.put", &long));
}
