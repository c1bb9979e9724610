//! The table of tools in docs/toolpacks.md is written from the manifests.
//!
//! `UPDATE_EXPECT=1 cargo test -p mote-toolpacks table` writes it anew.

use mote_toolpacks::{Tool, builtin};
use serde_json::Value;
use std::path::Path;

const START: &str = "<!-- table of tools: written by a test -->\n";
const END: &str = "<!-- end of table -->";

#[test]
fn the_documented_table_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/toolpacks.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(START).unwrap();
    let (table, after) = rest.split_once(END).unwrap();
    let current = current();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, format!("{before}{START}{current}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(table, current, "write it anew with UPDATE_EXPECT=1");
}

fn current() -> String {
    let mut table = String::new();
    for pack in builtin().unwrap() {
        table += &format!("\n### `{}`: {}\n\n| tool | what it does |\n|---|---|\n", pack.name, pack.summary);
        for tool in &pack.tools {
            let writes = if tool.writes { " *Writes.*" } else { "" };
            table += &format!("| `{}` | {}.{writes} |\n", signature(&pack.name, tool), tool.description);
        }
    }
    table + "\n"
}

/// `fs.read(path, start=1, lines=500)`.
fn signature(pack: &str, tool: &Tool) -> String {
    let required = tool.parameters["required"].as_array().unwrap();
    let parameter = |(name, schema): (&String, &Value)| match &schema["default"] {
        Value::Null if required.contains(&Value::from(name.clone())) => name.clone(),
        Value::Null => format!("{name}=None"),
        Value::Bool(flag) => format!("{name}={}", if *flag { "True" } else { "False" }),
        default => format!("{name}={default}"),
    };
    let parameters: Vec<String> = tool.parameters["properties"].as_object().unwrap().iter().map(parameter).collect();
    format!("{pack}.{}({})", tool.name, parameters.join(", "))
}
