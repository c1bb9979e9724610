//! The answer: how a value reads for a person, and which tool results it came from.

use serde::Serialize;
use serde_json::{Map, Value};

use super::Status;

/// What `answer(..)` was called with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) status: Status,
    pub(super) text: String,
}

/// A call whose result was there when the task was answered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Source {
    /// The call's number in the run.
    pub id: u32,
    /// `server.tool`.
    pub tool: String,
    /// Arguments by their wire names.
    pub arguments: Map<String, Value>,
}

impl Source {
    /// As it would be written in a program.
    pub fn line(&self) -> String {
        let arguments: Vec<String> =
            self.arguments.iter().map(|(name, value)| format!("{name}={}", short(value))).collect();
        format!("{}({})", self.tool, arguments.join(", "))
    }
}

/// The most characters of an argument that a source line shows.
const MAX_ARGUMENT_CHARS: usize = 60;

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_ARGUMENT_CHARS) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text,
    }
}

/// A value as a person reads it: text as it is, a list one item a line, an object one field a line.
pub fn readable(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(inline).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}: {}", inline(value))).collect::<Vec<_>>().join("\n")
        }
        other => inline(other),
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "None".into(),
        Value::Bool(true) => "True".into(),
        Value::Bool(false) => "False".into(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}: {}", inline(value))).collect::<Vec<_>>().join(", ")
        }
        Value::Array(items) => items.iter().map(inline).collect::<Vec<_>>().join(", "),
        Value::Number(number) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_read_as_a_person_expects() {
        expect!["12.3 GB are free"].assert_eq(&readable(&json!("12.3 GB are free")));
        expect![[r#"
            fs
            math"#]]
        .assert_eq(&readable(&json!(["fs", "math"])));
        expect![[r#"
            path: a.txt, bytes: 10
            path: b.txt, bytes: 7"#]]
        .assert_eq(&readable(&json!([{"path": "a.txt", "bytes": 10}, {"path": "b.txt", "bytes": 7}])));
        expect!["None"].assert_eq(&readable(&Value::Null));
    }

    #[test]
    fn a_source_reads_as_a_call() {
        let arguments = Map::from_iter([("path".to_owned(), json!("/")), ("depth".to_owned(), json!(2))]);
        expect![[r#"fs.list(path="/", depth=2)"#]]
            .assert_eq(&Source { id: 1, tool: "fs.list".into(), arguments }.line());
    }
}
