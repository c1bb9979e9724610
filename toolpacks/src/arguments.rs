//! Arguments checked against a tool's schema, with defaults filled in.

use crate::{Error, Tool};
use serde_json::{Map, Value};

/// All arguments of a call together, as JSON: `fs.write` takes a text, nothing takes more.
const MAX_ARGUMENT_BYTES: usize = 1 << 20;
const MAX_PATH_BYTES: usize = 4096;

/// The arguments of one call. Reading a parameter which the schema does not declare is an error, not a panic.
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    pub(crate) fn new(name: &str, tool: &Tool, given: &Map<String, Value>) -> Result<Self, Error> {
        let used = crate::bounds::json_bytes(given);
        if used > MAX_ARGUMENT_BYTES {
            return Err(Error::limit("arguments in bytes", MAX_ARGUMENT_BYTES as u64, used as u64));
        }
        let empty = Map::new();
        let properties = tool.parameters["properties"].as_object().unwrap_or(&empty);
        let known = || properties.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        if let Some(unknown) = given.keys().find(|key| !properties.contains_key(*key)) {
            return Err(Error::invalid(format!("{name} has no argument: {unknown}")).with_hint(format!(
                "{name} takes: {}",
                if properties.is_empty() { "nothing".into() } else { known() }
            )));
        }
        let mut values = Map::new();
        for (key, schema) in properties {
            let required = tool.parameters["required"].as_array().is_some_and(|r| r.iter().any(|k| k == key));
            match given.get(key).filter(|value| !value.is_null()) {
                Some(value) => {
                    let value = convert(value, schema);
                    check(&format!("{name}({key})"), &value, schema)?;
                    values.insert(key.clone(), value);
                }
                None if required => {
                    return Err(Error::invalid(format!("{name} needs the argument: {key}"))
                        .with_hint(format!("{name} takes: {}", known())));
                }
                None => {
                    values.extend(schema.get("default").map(|default| (key.clone(), default.clone())));
                }
            }
        }
        Ok(Self(values))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    pub(crate) fn str(&self, key: &str) -> Result<&str, Error> {
        self.opt_str(key).ok_or_else(|| missing(key))
    }

    pub(crate) fn opt_str(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    pub(crate) fn path(&self, key: &str) -> Result<&str, Error> {
        let path = self.str(key)?;
        if path.len() > MAX_PATH_BYTES {
            return Err(Error::limit("path in bytes", MAX_PATH_BYTES as u64, path.len() as u64));
        }
        if path.contains('\0') {
            return Err(Error::invalid("a path holds no null character"));
        }
        Ok(path)
    }

    pub(crate) fn int(&self, key: &str) -> Result<i64, Error> {
        self.0.get(key).and_then(Value::as_i64).ok_or_else(|| missing(key))
    }

    /// An integer of which the schema says that it is not negative.
    pub(crate) fn count(&self, key: &str) -> Result<usize, Error> {
        usize::try_from(self.int(key)?).map_err(|_| Error::invalid(format!("{key} must not be negative")))
    }

    pub(crate) fn flag(&self, key: &str) -> Result<bool, Error> {
        self.0.get(key).and_then(Value::as_bool).ok_or_else(|| missing(key))
    }
}

fn missing(key: &str) -> Error {
    Error::invalid(format!("an argument is missing: {key}"))
}

/// `"17.5"` for a number and `3` for a string are meant well and taken as such.
fn convert(value: &Value, schema: &Value) -> Value {
    match (schema["type"].as_str(), value) {
        (Some("integer"), Value::String(text)) => text.trim().parse::<i64>().map_or(value.clone(), Value::from),
        (Some("integer"), Value::Number(number)) => match number.as_f64() {
            Some(x) if number.is_f64() && x.fract() == 0.0 && x.abs() < MAX_EXACT_INTEGER => Value::from(x as i64),
            _ => value.clone(),
        },
        (Some("number"), Value::String(text)) => {
            let text = text.trim();
            text.parse::<i64>()
                .map(Value::from)
                .ok()
                .or_else(|| text.parse::<f64>().ok().filter(|x| x.is_finite()).map(Value::from))
                .unwrap_or_else(|| value.clone())
        }
        (Some("string"), Value::Number(number)) => Value::String(number.to_string()),
        (Some("array"), Value::Array(items)) => {
            Value::Array(items.iter().map(|item| convert(item, &schema["items"])).collect())
        }
        _ => value.clone(),
    }
}

/// 2^53: below it every integral `f64` is exact.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Whether `value` fits the subset of JSON Schema that a `toolpack.toml` can say.
pub(crate) fn check(place: &str, value: &Value, schema: &Value) -> Result<(), Error> {
    let kind = schema["type"].as_str().unwrap_or_default();
    let fits = match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        _ => true,
    };
    if !fits {
        return Err(Error::invalid(format!("{place} must be {}, not: {value}", with_article(kind))));
    }
    if let Some(choices) = schema["enum"].as_array()
        && !choices.contains(value)
    {
        let choices: Vec<String> = choices.iter().map(ToString::to_string).collect();
        return Err(
            Error::invalid(format!("{place} cannot be: {value}")).with_hint(format!("one of: {}", choices.join(", ")))
        );
    }
    if let Some(x) = value.as_f64() {
        if let Some(minimum) = schema["minimum"].as_f64().filter(|minimum| x < *minimum) {
            return Err(Error::invalid(format!("{place} must be at least {minimum}, not: {value}")));
        }
        if let Some(maximum) = schema["maximum"].as_f64().filter(|maximum| x > *maximum) {
            return Err(Error::invalid(format!("{place} must be at most {maximum}, not: {value}")));
        }
    }
    for item in value.as_array().into_iter().flatten() {
        check(place, item, &schema["items"])?;
    }
    Ok(())
}

fn with_article(kind: &str) -> &'static str {
    match kind {
        "string" => "a string",
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "True or False",
        "array" => "a list",
        _ => "a value",
    }
}
