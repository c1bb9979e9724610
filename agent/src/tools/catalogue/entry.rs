//! One tool: its names, what its server says of it, and what a program needs to call it.
//!
//! Invariants: what a stranger wrote is bounded here and nowhere else: names, descriptions, schemas. A tool that is out of bounds is
//! refused with a reason; a schema that lies (an argument required and not described, a default of a page) is put right.

use std::collections::HashSet;
use std::fmt;

use mote_script::Signature;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::tools::example;

/// Characters of a description that are kept.
const MAX_DESCRIPTION_CHARS: usize = 1000;

/// Bytes of a JSON Schema: a bigger one has no place in a small prompt.
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// Levels of a JSON Schema: more than any that people write, and few enough for every walk over it.
const MAX_SCHEMA_DEPTH: usize = 64;

/// Characters of a name on the wire.
const MAX_NAME_CHARS: usize = 128;

/// Bytes of a default that a signature shows; a longer one is left to the server.
const MAX_DEFAULT_BYTES: usize = 80;

/// A tool's name in the action language, `server.tool`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ToolId {
    /// The part before the dot.
    pub server: String,
    /// The part after the dot.
    pub tool: String,
}

impl ToolId {
    /// An id from its parts.
    pub fn new(server: impl Into<String>, tool: impl Into<String>) -> ToolId {
        ToolId { server: server.into(), tool: tool.into() }
    }

    /// Takes `server.tool` apart; the wire's `server__tool` is understood too.
    pub fn parse(text: &str) -> Option<ToolId> {
        let (server, tool) = text.split_once('.').or_else(|| text.split_once("__"))?;
        (!server.is_empty() && !tool.is_empty()).then(|| ToolId::new(server, tool))
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.server, self.tool)
    }
}

/// A worked example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// As a person would ask.
    pub task: String,
    /// In the action language, ending in `answer(..)`.
    pub program: String,
    /// Made from the schema, because nobody wrote one.
    pub generated: bool,
}

/// What a server says of one of its tools; the form in which it is cached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDescription {
    /// The name on the wire.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
    /// The server's word that it changes nothing.
    pub read_only_hint: bool,
}

impl ToolDescription {
    /// The hash of all that a server says of the tool and that is shown of it: what changes it, changes the tool.
    pub fn sha256(&self) -> String {
        let hint = if self.read_only_hint { "reads" } else { "" };
        let description = described(&self.description);
        sha256_hex([&self.name, &description, &self.parameters.to_string(), hint].map(str::as_bytes))
    }
}

/// One tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolEntry {
    /// Its name in the action language.
    pub id: ToolId,
    /// Its name for its server.
    pub wire_name: String,
    /// Its arguments, as the action language has them.
    pub signature: Signature,
    /// What it does, in one paragraph.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
    /// Whether a call changes anything outside the program, as far as can be trusted.
    pub writes: bool,
    /// Worked examples, the most typical first; at least one.
    pub examples: Vec<Example>,
    /// A result as the tool gives it.
    pub result_example: Option<Value>,
    /// The hash of what its server says of it.
    pub schema_sha256: String,
}

impl ToolEntry {
    /// `server.tool`.
    pub fn id(&self) -> String {
        self.id.to_string()
    }

    /// What is said of its parameters, in order, where something is.
    pub fn parameter_descriptions(&self) -> Vec<&str> {
        let properties = self.parameters.get("properties").and_then(Value::as_object);
        properties.into_iter().flat_map(|all| all.values()).filter_map(|one| one.get("description")?.as_str()).collect()
    }

    /// The names of its parameters, in order.
    pub fn parameter_names(&self) -> Vec<&str> {
        let properties = self.parameters.get("properties").and_then(Value::as_object);
        properties.map(|properties| properties.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    /// The tool that a server describes; its name is unique among `taken`.
    ///
    /// # Errors
    /// Why the tool is left out.
    pub(super) fn of(
        server: &str,
        said: ToolDescription,
        writes: bool,
        taken: &mut HashSet<String>,
    ) -> Result<ToolEntry, String> {
        let schema_sha256 = said.sha256();
        let said = bounded(said)?;
        let mut entry = ToolEntry::known(server, said, None, writes)?;
        let name = unique(entry.id.tool, taken);
        entry.id = ToolId::new(server, &name);
        entry.signature.name = name;
        entry.examples = vec![example::generate(&entry.signature, &entry.description, &entry.parameters)];
        entry.schema_sha256 = schema_sha256;
        Ok(entry)
    }

    /// The tool as it was found good before, under the name it was given then.
    pub(super) fn known(
        server: &str,
        said: ToolDescription,
        name: Option<&str>,
        writes: bool,
    ) -> Result<ToolEntry, String> {
        let ToolDescription { name: wire_name, description, parameters, .. } = said;
        let mut signature = Signature::from_json_schema(server, &wire_name, &description, &parameters)
            .map_err(|error| format!("the schema of {wire_name} cannot be used: {error}"))?;
        if let Some(name) = name {
            signature.name = name.to_owned();
        } else if !signature.name.contains(|c: char| c.is_ascii_alphanumeric()) {
            signature.name = "tool".to_owned();
        }
        for param in &mut signature.params {
            if param.default.as_ref().is_some_and(|default| default.to_string().len() > MAX_DEFAULT_BYTES) {
                param.default = None;
            }
        }
        let id = ToolId::new(&signature.server, &signature.name);
        let examples = vec![example::generate(&signature, &description, &parameters)];
        Ok(ToolEntry {
            id,
            wire_name,
            signature,
            description,
            parameters,
            writes,
            examples,
            result_example: None,
            schema_sha256: String::new(),
        })
    }
}

/// SHA-256 over parts, each preceded by its length so that no two lists of parts give the same input.
pub(crate) fn sha256<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// [`sha256`] in hexadecimal.
pub(crate) fn sha256_hex<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> String {
    sha256(parts).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// `name`, or `name_2` and so on if it is taken.
pub(crate) fn unique(name: String, taken: &mut HashSet<String>) -> String {
    let mut candidate = name.clone();
    let mut number = 2usize;
    while !taken.insert(candidate.clone()) {
        candidate = format!("{name}_{number}");
        number += 1;
    }
    candidate
}

/// Refuses what is too big to be of use, makes a description one bounded paragraph and puts a schema right that lies.
fn bounded(mut said: ToolDescription) -> Result<ToolDescription, String> {
    let n_chars = said.name.chars().count();
    if n_chars == 0 || n_chars > MAX_NAME_CHARS {
        return Err(format!(
            "its name has a length that cannot be used, in characters: limit {MAX_NAME_CHARS}, used {n_chars}"
        ));
    }
    let depth = depth(&said.parameters);
    if depth > MAX_SCHEMA_DEPTH {
        return Err(format!(
            "the schema of {} is too deep, in levels: limit {MAX_SCHEMA_DEPTH}, used {depth}",
            said.name
        ));
    }
    let n_bytes = said.parameters.to_string().len();
    if n_bytes > MAX_SCHEMA_BYTES {
        return Err(format!(
            "the schema of {} is too big, in bytes: limit {MAX_SCHEMA_BYTES}, used {n_bytes}",
            said.name
        ));
    }
    said.description = described(&said.description);
    describe_required(&mut said.parameters);
    Ok(said)
}

/// Gives an argument that is required and not described a description that says nothing: left out, every call would fail.
fn describe_required(parameters: &mut Value) {
    let Some(schema) = parameters.as_object_mut() else { return };
    let required: Vec<String> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        .unwrap_or_default();
    if required.is_empty() {
        return;
    }
    let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    if let Some(properties) = properties.as_object_mut() {
        for name in required {
            properties.entry(name).or_insert_with(|| Value::Object(Map::new()));
        }
    }
}

/// How deep a value is; the walk is by a stack of its own, so that no depth can exhaust ours.
fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|field| (field, depth + 1))),
            _ => {}
        }
    }
    deepest
}

/// A description as one bounded paragraph.
fn described(text: &str) -> String {
    paragraph(text).chars().take(MAX_DESCRIPTION_CHARS).collect()
}

/// A text as one paragraph, without what a person would not see: control characters, marks of direction, invisible letters.
pub(crate) fn paragraph(text: &str) -> String {
    let shown: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    let words: Vec<&str> =
        shown.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}')
}
