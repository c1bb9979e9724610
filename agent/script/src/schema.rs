//! The part of JSON Schema that the language knows: what a value may be, how a signature writes it, whether a value fits.
//!
//! What a schema says beyond this (patterns, formats, `if`) is left to the tool. Reading is bounded in depth and size, so
//! that a hostile schema costs little; a part that is too deep, or refers to itself, is [`Schema::Any`].

mod stored;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json};

const DEEPEST: u32 = 8;
const MOST_PARTS: u32 = 2_000;
/// Choices and properties shown in a signature before `..`.
const SHOWN: usize = 12;

/// What an argument may be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Schema {
    /// Anything.
    Any,
    /// `None`.
    Null,
    /// `True` or `False`.
    Bool,
    /// A whole number within the bounds, both inclusive.
    Integer {
        /// The least.
        least: Option<i64>,
        /// The greatest.
        most: Option<i64>,
    },
    /// A number.
    Number,
    /// A string.
    String,
    /// One of these values.
    Enum(Vec<JsonText>),
    /// A list.
    Array(Box<Schema>),
    /// A dict with these keys; others are allowed where `open`.
    Object {
        /// The known keys.
        properties: Vec<Property>,
        /// Whether other keys may be there.
        open: bool,
    },
    /// What fits one of several.
    Union(Vec<Schema>),
}

/// A key of a [`Schema::Object`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Property {
    /// The key.
    pub name: String,
    /// What its value may be.
    pub schema: Schema,
    /// Whether it has to be there.
    pub required: bool,
}

/// A JSON value that is stored as its text, which any format can hold.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonText(pub Json);

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.to_string().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JsonText, D::Error> {
        let text = String::deserialize(deserializer)?;
        serde_json::from_str(&text).map(JsonText).map_err(serde::de::Error::custom)
    }
}

struct Reader<'a> {
    root: &'a Json,
    n_parts: u32,
}

impl Schema {
    /// Reads a schema; `root` is where `$ref` looks.
    pub(crate) fn read(json: &Json, root: &Json) -> Schema {
        Reader { root, n_parts: 0 }.read(json, 0)
    }

    /// How a signature writes it: `str`, `list[int]`, `"a" | "b"`.
    pub fn type_text(&self) -> String {
        match self {
            Schema::Any => "any".to_owned(),
            Schema::Null => "None".to_owned(),
            Schema::Bool => "bool".to_owned(),
            Schema::Integer { .. } => "int".to_owned(),
            Schema::Number => "float".to_owned(),
            Schema::String => "str".to_owned(),
            Schema::Enum(choices) => {
                let mut shown: Vec<String> = choices.iter().take(SHOWN).map(|c| literal(&c.0)).collect();
                if choices.len() > SHOWN {
                    shown.push("..".to_owned());
                }
                shown.join(" | ")
            }
            Schema::Array(items) if **items == Schema::Any => "list".to_owned(),
            Schema::Array(items) => format!("list[{}]", items.type_text()),
            Schema::Object { properties, .. } if properties.is_empty() => "dict".to_owned(),
            Schema::Object { properties, .. } => {
                let mut shown: Vec<String> = Vec::new();
                for property in properties.iter().take(SHOWN) {
                    let mark = if property.required { "" } else { "?" };
                    shown.push(format!("{}{mark}: {}", property.name, property.schema.type_text()));
                }
                if properties.len() > SHOWN {
                    shown.push("..".to_owned());
                }
                format!("{{{}}}", shown.join(", "))
            }
            Schema::Union(parts) => parts.iter().map(Schema::type_text).collect::<Vec<_>>().join(" | "),
        }
    }

    /// The value as the tool should get it, or what is wrong with it.
    pub(crate) fn fit(&self, value: Json) -> Result<Json, String> {
        let wrong = |value: &Json| Err(format!("expected {}, got {}", self.type_text(), type_name(value)));
        match (self, value) {
            (Schema::Any, value) => Ok(value),
            (Schema::Null, Json::Null) => Ok(Json::Null),
            (Schema::Bool, Json::Bool(b)) => Ok(Json::Bool(b)),
            (Schema::Integer { least, most }, Json::Number(n)) => {
                let whole = n.as_i64().or_else(|| n.as_f64().and_then(crate::ops::whole));
                match whole {
                    None => Err(format!("expected int, got float: {n}")),
                    Some(n) if least.is_some_and(|least| n < least) => {
                        Err(format!("least is {}, got {n}", least.unwrap_or(0)))
                    }
                    Some(n) if most.is_some_and(|most| n > most) => {
                        Err(format!("most is {}, got {n}", most.unwrap_or(0)))
                    }
                    Some(n) => Ok(Json::from(n)),
                }
            }
            (Schema::Number, value @ Json::Number(_)) | (Schema::String, value @ Json::String(_)) => Ok(value),
            (Schema::Enum(choices), value) => {
                let found =
                    choices.iter().find(|c| c.0 == value || (c.0.is_number() && c.0.as_f64() == value.as_f64()));
                if let Some(found) = found {
                    return Ok(found.0.clone());
                }
                let mut shown = literal(&value);
                shown.truncate(shown.floor_char_boundary(60));
                let near = value
                    .as_str()
                    .and_then(|text| crate::error::nearest(text, choices.iter().filter_map(|c| c.0.as_str())));
                let near = near.map(|near| format!(", did you mean \"{near}\"?")).unwrap_or_default();
                Err(format!("expected {}, got {shown}{near}", self.type_text()))
            }
            (Schema::Array(items), Json::Array(values)) => {
                let fitted =
                    values.into_iter().enumerate().map(|(i, v)| items.fit(v).map_err(|e| format!("item {i}: {e}")));
                Ok(Json::Array(fitted.collect::<Result<_, _>>()?))
            }
            (Schema::Object { properties, open }, Json::Object(map)) => fit_object(properties, *open, map),
            (Schema::Union(parts), value) => {
                let strict = parts.iter().find(|part| !matches!(part, Schema::Any) && part.fit(value.clone()).is_ok());
                match strict.or_else(|| parts.iter().find(|part| matches!(part, Schema::Any))) {
                    Some(part) => part.fit(value),
                    None => wrong(&value),
                }
            }
            (_, value) => wrong(&value),
        }
    }
}

fn fit_object(properties: &[Property], open: bool, map: Map<String, Json>) -> Result<Json, String> {
    let mut out = Map::new();
    for (key, value) in map {
        match properties.iter().find(|p| p.name == key) {
            Some(property) => {
                let value = property.schema.fit(value).map_err(|e| format!("key \"{key}\": {e}"))?;
                out.insert(key, value);
            }
            None if open => {
                out.insert(key, value);
            }
            None => {
                let names: Vec<&str> = properties.iter().map(|p| p.name.as_str()).collect();
                return Err(format!("unknown key \"{key}\", the keys are {}", names.join(", ")));
            }
        }
    }
    match properties.iter().find(|p| p.required && !out.contains_key(&p.name)) {
        Some(missing) => Err(format!("missing key \"{}\"", missing.name)),
        None => Ok(Json::Object(out)),
    }
}

fn type_name(value: &Json) -> &'static str {
    match value {
        Json::Null => "None",
        Json::Bool(_) => "bool",
        Json::Number(n) if n.is_f64() => "float",
        Json::Number(_) => "int",
        Json::String(_) => "str",
        Json::Array(_) => "list",
        Json::Object(_) => "dict",
    }
}

/// A JSON value as the language writes it.
pub(crate) fn literal(value: &Json) -> String {
    match value {
        Json::Null => "None".to_owned(),
        Json::Bool(true) => "True".to_owned(),
        Json::Bool(false) => "False".to_owned(),
        Json::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Json::Object(map) => {
            let pairs: Vec<String> =
                map.iter().map(|(k, v)| format!("{}: {}", Json::from(k.as_str()), literal(v))).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        other => other.to_string(),
    }
}

impl Reader<'_> {
    fn read(&mut self, json: &Json, depth: u32) -> Schema {
        self.n_parts = self.n_parts.saturating_add(1);
        let Json::Object(map) = json else { return Schema::Any };
        if depth > DEEPEST || self.n_parts > MOST_PARTS {
            return Schema::Any;
        }
        if let Some(Json::String(reference)) = map.get("$ref") {
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return target.map_or(Schema::Any, |target| self.read(target, depth.saturating_add(1)));
        }
        if let Some(value) = map.get("const") {
            return Schema::Enum(vec![JsonText(value.clone())]);
        }
        if let Some(Json::Array(choices)) = map.get("enum") {
            if choices.is_empty() || choices.len() > MOST_PARTS as usize {
                return Schema::Any;
            }
            return Schema::Enum(choices.iter().cloned().map(JsonText).collect());
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Json::Array(parts)) = map.get(key) {
                return union(parts.iter().map(|part| self.read(part, depth.saturating_add(1))).collect());
            }
        }
        if let Some(Json::Array(parts)) = map.get("allOf") {
            return match parts.as_slice() {
                [one] => self.read(one, depth.saturating_add(1)),
                _ => Schema::Any,
            };
        }
        let read = match map.get("type") {
            Some(Json::String(name)) => self.typed(name, map, depth),
            Some(Json::Array(names)) => {
                union(names.iter().filter_map(Json::as_str).map(|name| self.typed(name, map, depth)).collect())
            }
            _ if map.contains_key("properties") => self.typed("object", map, depth),
            _ => Schema::Any,
        };
        if map.get("nullable") == Some(&Json::Bool(true)) { union(vec![read, Schema::Null]) } else { read }
    }

    fn typed(&mut self, name: &str, map: &Map<String, Json>, depth: u32) -> Schema {
        match name {
            "null" => Schema::Null,
            "boolean" => Schema::Bool,
            "integer" => {
                let bound = |key: &str, exclusive: &str, step: i64| {
                    let plain =
                        map.get(key).and_then(|n| n.as_i64().or_else(|| n.as_f64().and_then(crate::ops::whole)));
                    plain.or_else(|| map.get(exclusive).and_then(Json::as_i64).and_then(|n| n.checked_add(step)))
                };
                Schema::Integer {
                    least: bound("minimum", "exclusiveMinimum", 1),
                    most: bound("maximum", "exclusiveMaximum", -1),
                }
            }
            "number" => Schema::Number,
            "string" => Schema::String,
            "array" => {
                let items = map.get("items").map_or(Schema::Any, |items| self.read(items, depth.saturating_add(1)));
                Schema::Array(Box::new(items))
            }
            "object" => {
                let required: Vec<&str> = required(map);
                let mut properties = Vec::new();
                if let Some(Json::Object(listed)) = map.get("properties") {
                    for (name, schema) in listed {
                        let schema = self.read(schema, depth.saturating_add(1));
                        properties.push(Property {
                            name: name.clone(),
                            schema,
                            required: required.contains(&name.as_str()),
                        });
                    }
                }
                let open = map.get("additionalProperties") != Some(&Json::Bool(false));
                Schema::Object { properties, open }
            }
            _ => Schema::Any,
        }
    }
}

pub(crate) fn required(map: &Map<String, Json>) -> Vec<&str> {
    match map.get("required") {
        Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
        _ => Vec::new(),
    }
}

fn union(parts: Vec<Schema>) -> Schema {
    let mut flat: Vec<Schema> = Vec::new();
    for part in parts {
        match part {
            Schema::Union(inner) => flat.extend(inner),
            other => flat.push(other),
        }
    }
    flat.dedup();
    match flat.len() {
        0 => Schema::Any,
        1 => flat.pop().unwrap_or(Schema::Any),
        _ if flat.iter().all(|part| matches!(part, Schema::Enum(_))) => {
            let all = flat.into_iter().flat_map(|part| match part {
                Schema::Enum(choices) => choices,
                _ => Vec::new(),
            });
            Schema::Enum(all.collect())
        }
        _ => Schema::Union(flat),
    }
}
