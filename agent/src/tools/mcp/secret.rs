//! What a server is told and nobody else: tokens and passwords that came from the environment or a file.
//!
//! A secret is hidden wherever text of its server is shown, recorded or given to a model: its name stands in its place. What is
//! shorter than [`MIN_BYTES`] is no secret, because hiding it would tear holes into every text.

use std::fmt;
use std::fs::File;
use std::io::Read;

use serde_json::Value;

/// `true`, `8080` and the like are no secrets.
const MIN_BYTES: usize = 8;

/// No token is longer.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// What the names of variables with secrets in them end with or hold.
const SECRET_NAMES: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "CREDENTIAL"];

/// Some text and the name that is shown in its place.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    value: String,
    name: String,
}

impl Secret {
    /// A secret, unless it is too short to be one.
    pub(super) fn new(value: &str, name: &str) -> Option<Secret> {
        let secret = Secret { value: value.to_owned(), name: format!("${{{name}}}") };
        (value.len() >= MIN_BYTES).then_some(secret)
    }

    pub(super) fn hide(&self, text: &str) -> String {
        text.replace(&self.value, &self.name)
    }

    /// Hides the secret in every text of a value, names of fields included.
    pub(crate) fn hide_in(&self, value: &mut Value) {
        match value {
            Value::String(text) if text.contains(&self.value) => *text = self.hide(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in(item)),
            Value::Object(fields) => {
                if fields.keys().any(|key| key.contains(&self.value)) {
                    *fields = std::mem::take(fields).into_iter().map(|(key, value)| (self.hide(&key), value)).collect();
                }
                fields.values_mut().for_each(|field| self.hide_in(field));
            }
            _ => {}
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Whether a variable of this name holds a secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_uppercase();
    SECRET_NAMES.iter().any(|part| name.contains(part)) || name.ends_with("_KEY") || name == "KEY"
}

/// The secret in a file, without the end of its line.
pub(super) fn read(path: &str) -> Result<String, String> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text));
    match read {
        Err(error) => Err(format!("a file that it needs cannot be read ({error}): {path}")),
        Ok(_) if text.len() as u64 > MAX_FILE_BYTES => {
            Err(format!("a secret is too long, in bytes: limit {MAX_FILE_BYTES}, used more"))
        }
        Ok(_) => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_is_hidden_wherever_it_stands() {
        let secret = Secret::new("hunter2hunter2", "TOKEN").unwrap();
        let mut value = json!({"a": ["x hunter2hunter2 y", 1], "hunter2hunter2": {"b": "hunter2hunter2"}});
        secret.hide_in(&mut value);
        assert_eq!(value, json!({"a": ["x ${TOKEN} y", 1], "${TOKEN}": {"b": "${TOKEN}"}}));
        assert_eq!(format!("{secret:?}"), "${TOKEN}");
        assert!(Secret::new("8080", "PORT").is_none());
        assert!(is_secret_name("GITHUB_TOKEN") && is_secret_name("api_key") && !is_secret_name("KEYBOARD"));
    }
}
