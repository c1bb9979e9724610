//! The tools that the measurements of masks load: five parameters each, four to a server, no two alike.

use mote_script::{Error, Signature};
use serde_json::json;

pub(crate) fn tools(n: usize) -> Result<Vec<Signature>, Error> {
    let signature = |i: usize| {
        let own = format!("own{i}");
        let schema = json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"},
            "kind": {"enum": ["a", "b", "c", own]}, "n": {"type": "integer"}, "deep": {"type": "boolean"},
            own.as_str(): {"type": "string"}}});
        Signature::from_json_schema(&format!("server{}", i / 4), &format!("tool{i}"), "", &schema)
    };
    (0..n).map(signature).collect()
}
