//! Tools as the language sees them: a name, named parameters, one line.
//!
//! Names are mapped to `[a-z_][a-z0-9_]*`, the originals are kept beside them; collisions get numbers.

use crate::error::{Error, Kind};
use crate::lexer::KEYWORDS;
use crate::schema::{self, JsonText, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// Parameters of one tool; a schema with more is refused.
const MOST_PARAMS: usize = 200;

/// A tool or a move, callable as `server.name(..)` or `name(..)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signature {
    /// The server's name in the language; empty for the agent's own moves.
    pub server: String,
    /// The tool's name in the language.
    pub name: String,
    /// The tool's name as its server knows it.
    pub wire_name: String,
    /// What the tool does.
    pub description: String,
    /// The parameters: required ones first, then as declared.
    pub params: Vec<Param>,
}

/// A parameter of a [`Signature`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Param {
    /// The name in the language.
    pub name: String,
    /// The name as the server knows it.
    pub wire_name: String,
    /// What the argument may be.
    pub schema: Schema,
    /// Whether it has to be given.
    pub required: bool,
    /// What the server takes when it is left out, if it says so.
    #[serde(with = "optional_json")]
    pub default: Option<Json>,
}

mod optional_json {
    use super::{Json, JsonText};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &Option<Json>, serializer: S) -> Result<S::Ok, S::Error> {
        value.clone().map(JsonText).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
        Ok(Option::<JsonText>::deserialize(deserializer)?.map(|text| text.0))
    }
}

impl Signature {
    /// Reads the `inputSchema` of a tool.
    ///
    /// # Errors
    /// Kind `Schema` when the schema is no object schema, or has too many parameters.
    pub fn from_json_schema(server: &str, tool: &str, description: &str, schema: &Json) -> Result<Signature, Error> {
        let mut params = Vec::new();
        match schema {
            Json::Null => {}
            Json::Object(map) => {
                let kind = map.get("type").and_then(Json::as_str).unwrap_or("object");
                if kind != "object" {
                    return Err(Error::new(Kind::Schema, format!("schema of {server}.{tool} is no object: {kind}")));
                }
                let required = schema::required(map);
                let listed = match map.get("properties") {
                    Some(Json::Object(listed)) => Some(listed),
                    None => None,
                    Some(_) => {
                        return Err(Error::new(Kind::Schema, format!("properties of {server}.{tool} are no object")));
                    }
                };
                for (name, property) in listed.into_iter().flatten() {
                    params.push(Param {
                        name: identifier(name),
                        wire_name: name.clone(),
                        schema: Schema::read(property, schema),
                        required: required.contains(&name.as_str()),
                        default: property.get("default").cloned(),
                    });
                }
            }
            _ => return Err(Error::new(Kind::Schema, format!("schema of {server}.{tool} is no object"))),
        }
        if params.len() > MOST_PARAMS {
            let used = params.len() as u64;
            return Err(Error::over("parameter", MOST_PARAMS as u64, used));
        }
        params.sort_by_key(|p| !p.required);
        number(&mut params.iter_mut().map(|p| &mut p.name).collect::<Vec<_>>());
        Ok(Signature {
            server: if server.is_empty() { String::new() } else { identifier(server) },
            name: identifier(tool),
            wire_name: tool.to_owned(),
            description: description.to_owned(),
            params,
        })
    }

    /// One line, such as `fs.list(path: str, recursive: bool = False)`.
    pub fn line(&self) -> String {
        let params: Vec<String> = self.params.iter().map(Param::text).collect();
        format!("{}({})", self.path(), params.join(", "))
    }

    /// `server.name`, or the name of a move.
    pub fn path(&self) -> String {
        if self.server.is_empty() { self.name.clone() } else { format!("{}.{}", self.server, self.name) }
    }
}

impl Param {
    fn text(&self) -> String {
        let kind = self.schema.type_text();
        match (&self.default, self.required) {
            (Some(default), _) => format!("{}: {kind} = {}", self.name, schema::literal(default)),
            (None, true) => format!("{}: {kind}", self.name),
            (None, false) => format!("{}: {kind} = None", self.name),
        }
    }
}

/// Gives numbers to tools of one server that have the same name in the language: `x`, `x_2`, `x_3`.
pub fn number_collisions(signatures: &mut [Signature]) {
    let mut servers: Vec<String> = signatures.iter().map(|s| s.server.clone()).collect();
    servers.sort();
    servers.dedup();
    for server in servers {
        let names = signatures.iter_mut().filter(|s| s.server == server).map(|s| &mut s.name);
        number(&mut names.collect::<Vec<_>>());
    }
}

fn number(names: &mut [&mut String]) {
    let mut taken = std::collections::BTreeSet::new();
    for name in names {
        let mut n = 1u32;
        let mut numbered = (*name).clone();
        while !taken.insert(numbered.clone()) {
            n = n.saturating_add(1);
            numbered = format!("{name}_{n}");
        }
        **name = numbered;
    }
}

/// A name of the language for any name: `minLot-size[]` is `min_lot_size`, `from` is `from_`.
pub fn identifier(name: &str) -> String {
    const LONGEST: usize = 64;
    let mut out = String::new();
    let mut lower_before = false;
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            if c.is_ascii_uppercase() && lower_before {
                out.push('_');
            }
            out.push(c.to_ascii_lowercase());
        } else if c == '_' || !out.ends_with('_') {
            out.push('_');
        }
        lower_before = c.is_ascii_lowercase() || c.is_ascii_digit();
        if out.len() >= LONGEST {
            break;
        }
    }
    if !name.ends_with('_') {
        out.truncate(out.trim_end_matches('_').len());
    }
    if !out.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic()) {
        out.insert(0, '_');
    }
    if KEYWORDS.contains(&out.as_str()) {
        out.push('_');
    }
    out
}

/// The agent's own moves: `load`, `show`, `find`, `reconfigure`, `answer`.
pub fn moves() -> Vec<Signature> {
    let param = |name: &str, schema: Schema, required: bool| Param {
        name: name.to_owned(),
        wire_name: name.to_owned(),
        schema,
        required,
        default: None,
    };
    let signature = |name: &str, description: &str, params: Vec<Param>| Signature {
        server: String::new(),
        name: name.to_owned(),
        wire_name: name.to_owned(),
        description: description.to_owned(),
        params,
    };
    let texts = || Schema::Array(Box::new(Schema::String));
    let statuses = ["complete", "partial", "incomplete"].map(|s| JsonText(Json::from(s)));
    let mut status = param("status", Schema::Enum(statuses.to_vec()), false);
    status.default = Some(Json::from("complete"));
    let stage = ["goal", "strategy", "tools", "knowledge", "context", "why", "summary"];
    let stage = stage.map(|name| param(name, if name == "tools" { texts() } else { Schema::String }, false));
    vec![
        signature("load", "shows the tools of a server", vec![param("server", Schema::String, true)]),
        signature("show", "shows the signatures of tools", vec![param("tools", texts(), true)]),
        signature("find", "finds a tool for a purpose", vec![param("why", Schema::String, true)]),
        signature("reconfigure", "starts the next stage", stage.to_vec()),
        signature("answer", "ends the task", vec![param("x", Schema::Any, true), status]),
    ]
}
