//! What tools give, learned by calling them once: ATLAS's harvest of output shapes.
//!
//! Only tools that change nothing are called, as policy sees it, and with arguments that their schemas suggest. What is kept of a result
//! is an example of it: short texts, the first items of lists. It is kept by the hash of what the server says of the tool, so that a
//! tool which changes has nothing learned any more.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::catalogue::{ServerKind, ToolEntry};
use super::example;
use super::runtime::ToolRuntime;
use crate::error::{Error, ErrorKind, Result};

/// Bytes of one example; of a bigger result even a part says too little for its room.
const MAX_EXAMPLE_BYTES: usize = 2 << 10;

/// What is kept of a text, a list and an object, and how deep.
const MAX_TEXT_CHARS: usize = 120;
const MAX_ITEMS: usize = 2;
const MAX_FIELDS: usize = 24;
const MAX_DEPTH: usize = 6;

/// A thousand tools at their most.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// What became of one tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Learned {
    /// An example of its result.
    Result(Value),
    /// Why there is none.
    Nothing(String),
}

/// Results of one server's tools, by the hash of what is said of each.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Results(BTreeMap<String, Value>);

/// The folder of what was learned.
#[derive(Clone, Debug)]
pub(super) struct Lessons(PathBuf);

impl Lessons {
    pub(super) fn below(data: &Path) -> Lessons {
        Lessons(data.join("learned"))
    }

    /// What was learned of a server; nothing of a file that is missing or damaged.
    pub(super) fn load(&self, server: &str) -> Results {
        let read = || {
            let mut text = String::new();
            File::open(self.file(server)).ok()?.take(MAX_FILE_BYTES).read_to_string(&mut text).ok()?;
            serde_json::from_str(&text).ok()
        };
        read().unwrap_or_default()
    }

    /// What is equal as long as the file of `server` is, without reading it.
    pub(super) fn stamp(&self, server: &str) -> String {
        let stamp = || {
            let file = fs::metadata(self.file(server)).ok()?;
            let changed = file.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
            Some(format!("{} {}", file.len(), changed.as_nanos()))
        };
        stamp().unwrap_or_default()
    }

    fn save(&self, server: &str, results: &Results) -> io::Result<()> {
        fs::create_dir_all(&self.0)?;
        let path = self.file(server);
        let fresh = path.with_extension(format!("{}.new", std::process::id()));
        let written = File::create(&fresh).and_then(|mut file| {
            file.write_all(&serde_json::to_vec(results)?)?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&fresh, path)).inspect_err(|_| drop(fs::remove_file(&fresh)))
    }

    fn file(&self, server: &str) -> PathBuf {
        self.0.join(format!("{server}.json"))
    }
}

impl Results {
    /// Gives a tool the example that was learned of it.
    pub(super) fn apply(&self, tool: &mut ToolEntry) {
        if let Some(result) = self.0.get(&tool.schema_sha256) {
            tool.result_example = Some(result.clone());
        }
    }
}

impl ToolRuntime {
    /// Calls each reading tool of a configured server once and keeps an example of its result; what became of each, in their order.
    ///
    /// # Errors
    /// `Usage` if there is no such server or it is a pack, `Failed` if what was learned cannot be kept.
    pub fn learn(&mut self, server: &str) -> Result<Vec<(String, Learned)>> {
        let Some(found) = self.catalogue().server(server) else {
            return Err(Error::new(ErrorKind::Usage, format!("no such server: {server}"))
                .with_hint("see what there is: mote tools list"));
        };
        if found.kind == ServerKind::Pack {
            return Err(Error::new(ErrorKind::Usage, format!("a built-in pack brings its examples with it: {server}")));
        }
        let tools: Vec<ToolEntry> = found.tools().collect();
        let mut results = self.lessons.load(server);
        let mut lessons = Vec::new();
        for tool in tools {
            let learned = if tool.writes {
                Learned::Nothing("it may change something, so it is not called".to_owned())
            } else if self.cancel.is_cancelled() {
                Learned::Nothing("cancelled".to_owned())
            } else {
                let arguments = example::arguments(&tool.signature, &tool.parameters);
                let outcome = self.call(server, &tool.id.tool, &arguments);
                match outcome.result.map(|value| example_of(&value)) {
                    Ok(Some(example)) => Learned::Result(example),
                    Ok(None) => Learned::Nothing("its result is too big to keep an example of".to_owned()),
                    Err(failure) => Learned::Nothing(failure.message),
                }
            };
            if let Learned::Result(result) = &learned {
                results.0.insert(tool.schema_sha256.clone(), result.clone());
            }
            lessons.push((tool.id(), learned));
        }
        self.lessons
            .save(server, &results)
            .map_err(|error| Error::new(ErrorKind::Failed, format!("what was learned cannot be kept: {error}")))?;
        self.relearn(server);
        Ok(lessons)
    }
}

/// An example of a value: its shape with short texts and the first items of its lists; nothing if that is still too big.
fn example_of(value: &Value) -> Option<Value> {
    let example = shortened(value, 0);
    (example.to_string().len() <= MAX_EXAMPLE_BYTES).then_some(example)
}

fn shortened(value: &Value, depth: usize) -> Value {
    match value {
        Value::Array(_) | Value::Object(_) if depth >= MAX_DEPTH => Value::Null,
        Value::Array(items) => items.iter().take(MAX_ITEMS).map(|item| shortened(item, depth + 1)).collect(),
        Value::Object(fields) => {
            let kept = fields.iter().take(MAX_FIELDS).map(|(key, field)| (key.clone(), shortened(field, depth + 1)));
            Value::Object(kept.collect::<Map<_, _>>())
        }
        Value::String(text) if text.chars().count() > MAX_TEXT_CHARS => {
            Value::from(text.chars().take(MAX_TEXT_CHARS).chain("..".chars()).collect::<String>())
        }
        plain => plain.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_example_keeps_the_shape_of_a_result() {
        let big = json!({"rows": [[1, "x".repeat(500)], [2], [3]], "ok": true});
        assert_eq!(example_of(&big), Some(json!({"rows": [[1, format!("{}..", "x".repeat(120))], [2]], "ok": true})));
        let mut deep = json!(1);
        for _ in 0..20 {
            deep = json!([deep]);
        }
        assert_eq!(example_of(&deep).unwrap().to_string(), "[[[[[[null]]]]]]");
        let wide: Value = (0..30).map(|i| (format!("{i:0>100}"), json!("x"))).collect::<Map<_, _>>().into();
        assert_eq!(example_of(&wide), None);
    }
}
