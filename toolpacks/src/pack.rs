//! `toolpack.toml`: how a pack describes itself. The format is in docs/toolpacks.md.

use crate::{Error, ErrorKind};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// A `toolpack.toml` is read whole; no honest one comes near this.
const MAX_MANIFEST_BYTES: usize = 1 << 20;

/// A pack as its `toolpack.toml` describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Pack {
    /// The part before the dot in `fs.list`.
    pub name: String,
    /// One line: what the pack is good for.
    pub summary: String,
    /// The version of its tools' names and signatures.
    pub version: String,
    /// In the order of the manifest.
    pub tools: Vec<Tool>,
}

/// One tool of a pack.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    /// The part after the dot in `fs.list`.
    pub name: String,
    /// One line, in the words people use when they need it.
    pub description: String,
    /// A JSON Schema object; its properties stand in the declared order.
    pub parameters: Value,
    /// Whether a call changes anything outside the program.
    pub writes: bool,
    /// Worked examples, the most typical first.
    pub examples: Vec<Example>,
    /// A result as the tool gives it.
    pub result: Option<Value>,
}

/// A worked example: a task and the program that does it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// As a person would ask.
    pub task: String,
    /// In the action language, ending in `answer(..)`.
    pub program: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PackManifest {
    name: String,
    summary: String,
    version: String,
    #[serde(rename = "tool")]
    tools: Vec<ToolManifest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolManifest {
    name: String,
    description: String,
    #[serde(default)]
    writes: bool,
    #[serde(default)]
    params: Vec<ParamManifest>,
    result: Option<String>,
    #[serde(default, rename = "example")]
    examples: Vec<ExampleManifest>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ParamManifest {
    name: String,
    #[serde(rename = "type")]
    kind: ParamType,
    description: String,
    default: Option<Value>,
    #[serde(default)]
    optional: bool,
    #[serde(rename = "enum")]
    choices: Option<Vec<Value>>,
    /// `path`, `words`, `number`, `numbers`, `unit` or `expression`: the value is one that the task says.
    from_task: Option<FromTask>,
    minimum: Option<i64>,
    maximum: Option<i64>,
}

/// What of the task a parameter's value quotes.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum FromTask {
    Path,
    Words,
    Number,
    Numbers,
    Unit,
    Expression,
}

impl FromTask {
    fn name(self) -> &'static str {
        match self {
            FromTask::Path => "path",
            FromTask::Words => "words",
            FromTask::Number => "number",
            FromTask::Numbers => "numbers",
            FromTask::Unit => "unit",
            FromTask::Expression => "expression",
        }
    }
}

#[derive(Deserialize, Clone, Copy)]
enum ParamType {
    #[serde(rename = "string")]
    String,
    #[serde(rename = "integer")]
    Integer,
    #[serde(rename = "number")]
    Number,
    #[serde(rename = "boolean")]
    Boolean,
    #[serde(rename = "numbers")]
    Numbers,
    #[serde(rename = "strings")]
    Strings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExampleManifest {
    task: String,
    program: String,
}

impl Pack {
    /// Reads a `toolpack.toml`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidManifest`] names the place when it does not parse, a name is no identifier of the action language or
    /// occurs twice, a default does not fit its parameter, or a result is not JSON.
    pub fn parse(manifest: &str) -> Result<Self, Error> {
        if manifest.len() > MAX_MANIFEST_BYTES {
            return Err(Error::limit("toolpack.toml in bytes", MAX_MANIFEST_BYTES as u64, manifest.len() as u64));
        }
        let pack: PackManifest = toml::from_str(manifest).map_err(|e| invalid(e.to_string().trim_end()))?;
        check_name(&pack.name, "pack")?;
        let mut seen = HashSet::new();
        let mut tools = Vec::with_capacity(pack.tools.len());
        for tool in pack.tools {
            check_name(&tool.name, "tool")?;
            if !seen.insert(tool.name.clone()) {
                return Err(invalid(format!("tool declared twice: {}.{}", pack.name, tool.name)));
            }
            let name = format!("{}.{}", pack.name, tool.name);
            tools.push(tool.build(&name)?);
        }
        Ok(Self { name: pack.name, summary: pack.summary, version: pack.version, tools })
    }

    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}

impl ToolManifest {
    fn build(self, name: &str) -> Result<Tool, Error> {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for param in self.params {
            check_name(&param.name, "parameter")?;
            if param.default.is_none() && !param.optional {
                required.push(Value::from(param.name.clone()));
            }
            let (param_name, place) = (param.name.clone(), format!("{name}({})", param.name));
            let schema = param.schema();
            if let Some(default) = schema.get("default") {
                crate::arguments::check(&place, default, &schema).map_err(|e| invalid(e.message()))?;
            }
            if properties.insert(param_name, schema).is_some() {
                return Err(invalid(format!("parameter declared twice: {place}")));
            }
        }
        let result = match self.result {
            Some(text) => {
                Some(serde_json::from_str(&text).map_err(|e| invalid(format!("result of {name} is not JSON: {e}")))?)
            }
            None => None,
        };
        Ok(Tool {
            name: self.name,
            description: self.description,
            parameters: json!({
                "type": "object", "properties": properties, "required": required, "additionalProperties": false,
            }),
            writes: self.writes,
            examples: self
                .examples
                .into_iter()
                .map(|e| Example { task: e.task, program: e.program.trim_end().to_owned() })
                .collect(),
            result,
        })
    }
}

impl ParamManifest {
    fn schema(self) -> Value {
        let mut schema = match self.kind {
            ParamType::String => json!({"type": "string"}),
            ParamType::Integer => json!({"type": "integer"}),
            ParamType::Number => json!({"type": "number"}),
            ParamType::Boolean => json!({"type": "boolean"}),
            ParamType::Numbers => json!({"type": "array", "items": {"type": "number"}}),
            ParamType::Strings => json!({"type": "array", "items": {"type": "string"}}),
        };
        schema["description"] = self.description.into();
        if let Some(choices) = self.choices {
            schema["enum"] = choices.into();
        }
        if let Some(from_task) = self.from_task {
            schema["x-from-task"] = from_task.name().into();
        }
        if let Some(minimum) = self.minimum {
            schema["minimum"] = minimum.into();
        }
        if let Some(maximum) = self.maximum {
            schema["maximum"] = maximum.into();
        }
        if let Some(default) = self.default {
            schema["default"] = default;
        }
        schema
    }
}

/// Names are identifiers of the action language: `[a-z_][a-z0-9_]*`.
fn check_name(name: &str, what: &str) -> Result<(), Error> {
    let mut letters = name.bytes();
    let starts = letters.next().is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    if starts && letters.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_') {
        return Ok(());
    }
    Err(invalid(format!("{what} name is no identifier: {name:?}")).with_hint("use lower case letters, digits and _"))
}

fn invalid(message: impl AsRef<str>) -> Error {
    Error::new(ErrorKind::InvalidManifest, format!("toolpack.toml is not valid: {}", message.as_ref()))
}
