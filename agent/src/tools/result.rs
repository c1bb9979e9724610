//! What came back from a tool, as a value of bounded size or a failure that the model can act on.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde::Serialize;
use serde_json::{Value, json};

use super::spill::Spill;

/// The JSON of one result: what a program on a board can work with; the rest is cut and said to be.
pub const MAX_RESULT_BYTES: usize = 1 << 20;

/// Characters of a failure that are kept.
const MAX_MESSAGE_CHARS: usize = 2000;

/// Why a call gave no result: an observation for the model, never the end of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolFailure {
    /// One word for programs: `unknown_tool`, `denied`, `cancelled`, `timeout`, `server`, `tool`, `limit`, `schema_changed`, or what a
    /// pack says.
    pub kind: String,
    /// What went wrong, the value last.
    pub message: String,
    /// The next step, if there is one.
    pub hint: Option<String>,
}

impl ToolFailure {
    /// A failure without a hint; a long message is cut.
    pub fn new(kind: &str, message: impl AsRef<str>) -> ToolFailure {
        let message = message.as_ref().trim();
        let message = match message.char_indices().nth(MAX_MESSAGE_CHARS) {
            Some((end, _)) => format!("{}..", message.get(..end).unwrap_or_default()),
            None => message.to_owned(),
        };
        ToolFailure { kind: kind.to_owned(), message, hint: None }
    }

    /// The same failure with a next step.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> ToolFailure {
        self.hint = Some(hint.into());
        self
    }
}

/// What became of one call.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutcome {
    /// The result or why there is none.
    pub result: Result<Value, ToolFailure>,
    /// The JSON of the result as it came, in bytes.
    pub bytes: usize,
    /// Whether the result was cut to [`MAX_RESULT_BYTES`].
    pub truncated: bool,
    /// Wall time.
    pub ms: u64,
    /// Whether the call may have changed something outside the program.
    pub mutating: bool,
}

/// The value in an MCP result: structured content if there is any, else text, read as JSON if it is JSON; images and other blobs are
/// kept as files, the value has kind, type, size and path.
pub(crate) fn value_of(result: CallToolResult, spill: &Spill) -> Result<Value, ToolFailure> {
    if result.is_error == Some(true) {
        let texts: Vec<String> = result.content.iter().map(|content| shown(content, spill)).collect();
        let text = texts.join("\n");
        let said = if text.trim().is_empty() { "the tool says that it failed, and not why" } else { &text };
        return Err(ToolFailure::new("tool", said));
    }
    if let Some(value) = result.structured_content {
        return Ok(value);
    }
    let mut values: Vec<Value> = result.content.into_iter().map(|content| block(content, spill)).collect();
    Ok(match values.len() {
        0 => Value::Null,
        1 => values.remove(0),
        _ => Value::Array(values),
    })
}

/// Cuts a value to `limit` bytes of JSON: the end of a text, the last items of a list; anything else that is too big is a failure.
/// Gives the size before and whether something was cut.
pub(crate) fn bound(value: Value, limit: usize) -> (Result<Value, ToolFailure>, usize, bool) {
    let bytes = value.to_string().len();
    if bytes <= limit {
        return (Ok(value), bytes, false);
    }
    match value {
        Value::String(text) => (Ok(Value::from(cut_text(&text, limit))), bytes, true),
        Value::Array(items) => {
            let mut used = 2;
            let fits = |item: &Value| {
                used += item.to_string().len() + 1;
                used <= limit
            };
            (Ok(items.into_iter().take_while(fits).collect()), bytes, true)
        }
        _ => {
            let failure =
                ToolFailure::new("limit", format!("the result is too big, in bytes: limit {limit}, used {bytes}"))
                    .with_hint("ask for less: a smaller range, a filter, a page");
            (Err(failure), bytes, false)
        }
    }
}

/// As much of the beginning as fits with its escapes.
fn cut_text(text: &str, limit: usize) -> &str {
    let mut used = 2;
    let too_far = |(_, c): &(usize, char)| {
        used += match c {
            '"' | '\\' | '\n' | '\r' | '\t' => 2,
            c if c.is_control() => 6,
            c => c.len_utf8(),
        };
        used > limit
    };
    let end = text.char_indices().find(too_far).map_or(text.len(), |(end, _)| end);
    text.get(..end).unwrap_or_default()
}

fn block(block: ContentBlock, spill: &Spill) -> Value {
    match block {
        ContentBlock::Text(text) => parsed(text.text),
        ContentBlock::Image(image) => blob("image", Some(image.mime_type), &image.data, spill),
        ContentBlock::Audio(audio) => blob("audio", Some(audio.mime_type), &audio.data, spill),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                json!({"kind": "resource", "uri": uri, "text": text})
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob: data, .. } => {
                let mut value = blob("resource", mime_type, &data, spill);
                value["uri"] = Value::from(uri);
                value
            }
            _ => json!({"kind": "resource"}),
        },
        ContentBlock::ResourceLink(link) => json!({"kind": "link", "uri": link.uri, "name": link.name}),
        _ => json!({"kind": "unknown"}),
    }
}

fn parsed(text: String) -> Value {
    serde_json::from_str(&text).unwrap_or(Value::String(text))
}

/// What is known of a blob, and where it is kept; if it cannot be, why.
fn blob(kind: &str, mime: Option<String>, base64: &str, spill: &Spill) -> Value {
    match spill.keep(base64, mime.as_deref()) {
        Ok((path, bytes)) => json!({"kind": kind, "mime": mime, "bytes": bytes, "file": path}),
        Err(why) => json!({"kind": kind, "mime": mime, "lost": why}),
    }
}

fn shown(content: &ContentBlock, spill: &Spill) -> String {
    match content {
        ContentBlock::Text(text) => text.text.clone(),
        other => block(other.clone(), spill).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn result(content: Value) -> Result<Value, ToolFailure> {
        let cache = tempfile::tempdir().unwrap();
        value_of(serde_json::from_value(content).unwrap(), &Spill::below(cache.path()))
    }

    #[test]
    fn content_becomes_a_value() {
        let text = |text: &str| json!({"type": "text", "text": text});
        assert_eq!(
            result(json!({"content": [text("{\"a\": 1}")], "structuredContent": {"b": 2}})),
            Ok(json!({"b": 2}))
        );
        assert_eq!(result(json!({"content": [text("{\"a\": 1}")]})), Ok(json!({"a": 1})));
        assert_eq!(result(json!({"content": [text("hello")]})), Ok(json!("hello")));
        assert_eq!(result(json!({"content": []})), Ok(Value::Null));
        assert_eq!(result(json!({"content": [text("a"), text("2")]})), Ok(json!(["a", 2])));
        let image =
            result(json!({"content": [{"type": "image", "mimeType": "image/png", "data": "aGVsbG8="}]})).unwrap();
        assert_eq!((&image["kind"], &image["bytes"]), (&json!("image"), &json!(5)));
        assert!(image["file"].as_str().unwrap().ends_with(".png"), "{image}");
        assert!(
            result(json!({"content": [{"type": "image", "mimeType": "image/png", "data": "!"}]})).unwrap()["lost"]
                .is_string()
        );
        assert_eq!(
            result(json!({"content": [text("no such repo")], "isError": true})),
            Err(ToolFailure::new("tool", "no such repo"))
        );
        assert_eq!(result(json!({"content": [text(&"[".repeat(9000))]})), Ok(json!("[".repeat(9000))));
    }

    proptest! {
        #[test]
        fn a_bounded_text_or_list_fits_and_is_a_beginning(text in "[\\x00-\\x1fab\"é𝄞\\\\]{0,60}", limit in 8usize..80) {
            let (cut, bytes, truncated) = bound(json!(text), limit);
            let cut = cut.unwrap();
            prop_assert!(cut.to_string().len() <= limit);
            prop_assert_eq!(truncated, bytes > limit);
            prop_assert!(text.starts_with(cut.as_str().unwrap()));
            let items: Vec<String> = text.chars().map(String::from).collect();
            let (cut, ..) = bound(json!(items), limit);
            let cut = cut.unwrap();
            prop_assert!(cut.to_string().len() <= limit);
            prop_assert!(json!(items).as_array().unwrap().starts_with(cut.as_array().unwrap()));
        }
    }
}
