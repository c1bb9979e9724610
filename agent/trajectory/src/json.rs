//! The JSON form: marks that the values left are lifted into nulls with their reasons, and into plain JSON.
//!
//! Serialized values hold two marks, objects of one key that starts with NUL: an absent field with its reason, and
//! JSON kept as text. Text from outside only ever stands inside the second, so it cannot forge a mark.

use serde_json::{Map, Value};

/// Marks an absent field; the value is its reason.
pub(crate) const ABSENT: &str = "\0absent";
/// Marks JSON kept as text; the value is the text.
pub(crate) const JSON: &str = "\0json";

/// `value` with every mark lifted: an absent field becomes null, and its object gets `absent: {field: reason}` last.
///
/// Recursion is bounded by the depth of the schema's own types.
pub(crate) fn lift(value: Value) -> Result<Value, serde_json::Error> {
    Ok(match value {
        Value::Array(items) => Value::Array(items.into_iter().map(lift).collect::<Result<_, _>>()?),
        Value::Object(fields) => match fields.get(JSON) {
            Some(Value::String(text)) => serde_json::from_str(text)?,
            _ => Value::Object(lift_fields(fields)?),
        },
        scalar => scalar,
    })
}

fn lift_fields(fields: Map<String, Value>) -> Result<Map<String, Value>, serde_json::Error> {
    let mut lifted = Map::new();
    let mut absent = Map::new();
    for (name, value) in fields {
        match value.get(ABSENT) {
            Some(reason) => {
                absent.insert(name.clone(), reason.clone());
                lifted.insert(name, Value::Null);
            }
            None => {
                lifted.insert(name, lift(value)?);
            }
        }
    }
    if !absent.is_empty() {
        lifted.insert("absent".to_owned(), Value::Object(absent));
    }
    Ok(lifted)
}
