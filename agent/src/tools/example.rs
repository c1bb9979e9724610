//! A worked example for a tool without any: small models copy patterns, so every tool needs one to copy.
//!
//! The task is the tool's own description with the arguments named; the program is one call with the required arguments, whose values
//! come from the schema: its examples, default, enum or format, or what the description quotes after "e.g.". It invents no result.

use mote_script::{Param, Signature};
use serde_json::{Map, Value};

use super::catalogue::Example;

/// Characters of a description that make a task.
const MAX_TASK_CHARS: usize = 120;

/// Characters of a value taken from a description.
const MAX_QUOTED_CHARS: usize = 60;

/// Arguments in an example; more would be a pattern for nothing.
const MAX_ARGUMENTS: usize = 4;

/// Levels of a value made from a schema.
const MAX_DEPTH: usize = 4;

/// Plausible values of the required arguments, by their names on the wire.
pub(crate) fn arguments(signature: &Signature, parameters: &Value) -> Map<String, Value> {
    let properties = parameters.get("properties").and_then(Value::as_object);
    let required = signature.params.iter().filter(|param| param.required);
    let value = |param: &Param| {
        let schema = properties.and_then(|properties| properties.get(&param.wire_name)).unwrap_or(&Value::Null);
        (param.wire_name.clone(), plausible(&param.name, schema, 0))
    };
    required.map(value).collect()
}

/// Makes an example from what a server says of a tool.
pub(crate) fn generate(signature: &Signature, description: &str, parameters: &Value) -> Example {
    let properties = parameters.get("properties").and_then(Value::as_object);
    let required = signature.params.iter().filter(|param| param.required).take(MAX_ARGUMENTS);
    let values: Vec<(&str, Value)> = required
        .map(|param| {
            let schema = properties.and_then(|properties| properties.get(&param.wire_name)).unwrap_or(&Value::Null);
            (param.name.as_str(), plausible(&param.name, schema, 0))
        })
        .collect();
    let arguments: Vec<String> = values.iter().map(|(name, value)| format!("{name}={}", literal(value))).collect();
    let program = format!("r = {}({})\nanswer(r)", signature.path(), arguments.join(", "));
    Example { task: task(signature, description, &values), program, generated: true }
}

fn task(signature: &Signature, description: &str, values: &[(&str, Value)]) -> String {
    let text =
        if description.is_empty() { signature.wire_name.replace(['_', '-'], " ") } else { description.to_owned() };
    let sentence = text.split(". ").next().unwrap_or_default().trim_end_matches('.');
    let mut task: String = sentence.chars().take(MAX_TASK_CHARS).collect();
    for (name, value) in values {
        if let Value::String(_) | Value::Number(_) = value {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            task.push_str(&format!(", {} {value}", name.replace('_', " ")));
        }
    }
    task
}

fn plausible(name: &str, schema: &Value, depth: usize) -> Value {
    let said = schema.get("examples").and_then(|examples| examples.get(0)).or_else(|| schema.get("example"));
    let said = said.or_else(|| schema.get("const")).or_else(|| schema.get("default").filter(|value| !value.is_null()));
    if let Some(value) = said.or_else(|| schema.get("enum").and_then(|choices| choices.get(0))) {
        return value.clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().find_map(Value::as_str),
        kind => kind.and_then(Value::as_str),
    };
    let alternative = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema.get(key)?.get(0));
    match kind {
        _ if depth >= MAX_DEPTH => Value::Null,
        Some("integer") => schema.get("minimum").filter(|minimum| minimum.is_i64()).cloned().unwrap_or(Value::from(1)),
        Some("number") => schema.get("minimum").cloned().unwrap_or(Value::from(1.5)),
        Some("boolean") => Value::Bool(true),
        Some("null") => Value::Null,
        Some("array") => Value::Array(vec![plausible(name, schema.get("items").unwrap_or(&Value::Null), depth + 1)]),
        Some("object") => object(schema, depth),
        Some(_) => Value::from(text(name, schema)),
        None => {
            alternative.map_or_else(|| Value::from(text(name, schema)), |schema| plausible(name, schema, depth + 1))
        }
    }
}

fn object(schema: &Value, depth: usize) -> Value {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let properties = schema.get("properties");
    let value = |key: &str| plausible(key, properties.and_then(|all| all.get(key)).unwrap_or(&Value::Null), depth + 1);
    Value::Object(required.take(MAX_ARGUMENTS).map(|key| (key.to_owned(), value(key))).collect())
}

fn text(name: &str, schema: &Value) -> String {
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    if let Some(quoted) = quoted_example(description) {
        return quoted.to_owned();
    }
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    let name = name.to_lowercase();
    let named = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    let plain = match format {
        "date" => "2026-01-31",
        "date-time" => "2026-01-31T12:00:00Z",
        "time" => "12:00",
        "email" => "ann@example.org",
        "uri" | "url" => "https://example.org",
        _ if named(&["url", "uri"]) => "https://example.org",
        _ if named(&["path", "folder", "directory", "file", "dir", "repo"]) => ".",
        _ if named(&["zone"]) => "Europe/Paris",
        _ if named(&["date"]) => "2026-01-31",
        _ => "example",
    };
    plain.to_owned()
}

/// What a description quotes as an example: `(e.g., 'Europe/London')`.
fn quoted_example(description: &str) -> Option<&str> {
    let after =
        ["e.g.", "for example", "such as", "like "].iter().find_map(|mark| Some(description.split_once(mark)?.1))?;
    let start = after.find(['\'', '"', '`'])?;
    let quote = after.get(start..)?.chars().next()?;
    let inside = after.get(start + quote.len_utf8()..)?.split_once(quote)?.0;
    (!inside.is_empty() && inside.len() <= MAX_QUOTED_CHARS && !inside.contains(char::is_control)).then_some(inside)
}

/// A value as the action language writes it.
pub(crate) fn literal(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => format!("[{}]", list(items.iter().map(literal).collect())),
        Value::Object(fields) => {
            format!(
                "{{{}}}",
                list(
                    fields
                        .iter()
                        .map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), literal(value)))
                        .collect()
                )
            )
        }
        plain => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(description: &str, parameters: Value, expected: Expect) {
        let mut signature = Signature::from_json_schema("server", "tool", description, &parameters).unwrap();
        signature.wire_name = "a-tool".into();
        let example = generate(&signature, description, &parameters);
        expected.assert_eq(&format!("Task: {}\n{}", example.task, example.program));
    }

    #[test]
    fn an_example_is_made_from_the_schema() {
        check(
            "Get current time in a specific timezone. More words.",
            json!({"type": "object", "required": ["timezone"], "properties": {"timezone": {"type": "string",
                "description": "IANA timezone name (e.g., 'America/New_York', 'Europe/London')."}}}),
            expect![[r#"
                Task: Get current time in a specific timezone, timezone America/New_York
                r = server.tool(timezone="America/New_York")
                answer(r)"#]],
        );
        check(
            "",
            json!({"type": "object", "required": ["path", "n", "on", "tags", "mode", "spec"], "properties": {
                "path": {"type": "string"}, "n": {"type": "integer", "minimum": 3}, "on": {"type": "boolean"},
                "tags": {"type": "array", "items": {"enum": ["x", "y"]}}, "mode": {"enum": ["r"]}}}),
            expect![[r#"
                Task: a tool, path ., n 3
                r = server.tool(path=".", n=3, on=True, tags=["x"])
                answer(r)"#]],
        );
        check(
            "No arguments",
            json!({"type": "object"}),
            expect![[r#"
            Task: No arguments
            r = server.tool()
            answer(r)"#]],
        );
    }
}
