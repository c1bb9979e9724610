//! The reference of the language at the command line.

use mote_script::{Entry, lookup, nearest_entry, reference};
use serde_json::{Value, json};

use crate::cli::Out;
use crate::error::{Error, ErrorKind, Result};

pub(super) fn run(name: Option<&str>, out: &Out) -> Result<u8> {
    let entries: Vec<Entry> = name.map_or_else(|| reference().collect(), lookup);
    if out.json() && !entries.is_empty() {
        out.object(&entries.iter().map(entry_json).collect::<Value>())?;
        return Ok(0);
    }
    out.text(&text(name)?).map(|()| 0)
}

/// The entries that a name may mean, or without one the names of all.
pub(super) fn text(name: Option<&str>) -> Result<String> {
    let Some(name) = name else { return Ok(overview()) };
    let entries = lookup(name);
    if entries.is_empty() {
        let error = Error::new(ErrorKind::Usage, format!("the language has nothing of this name: {name}"));
        return Err(match nearest_entry(name) {
            Some(near) => error.with_hint(format!("did you mean {near}?")),
            None => error.with_hint("see what there is: mote script help"),
        });
    }
    let shown: Vec<String> = entries.iter().map(shown).collect();
    Ok(shown.join("\n"))
}

fn overview() -> String {
    let mut out = String::new();
    let mut section = "";
    let mut width = 0;
    for entry in reference() {
        if entry.section != section {
            out.push_str(&format!("{}{}:", if section.is_empty() { "" } else { "\n\n" }, entry.section));
            section = entry.section;
            width = MOST_COLUMNS;
        }
        let name =
            entry.name.split_once('.').filter(|_| section.starts_with("Methods")).map_or(entry.name, |(_, name)| name);
        let columns = name.chars().count() + 3;
        if width + columns > MOST_COLUMNS {
            out.push_str("\n ");
            width = 1;
        }
        out.push_str(&format!("  {name}"));
        width += columns;
    }
    out.push_str("\n\nMore about one: mote script help NAME\n");
    out
}

/// Columns of the list of names.
const MOST_COLUMNS: usize = 100;

fn shown(entry: &Entry) -> String {
    let indented = |text: &str| text.lines().map(|line| format!("    {line}\n")).collect::<String>();
    let mut out = format!("{} ({})\n  {}\n", entry.name, entry.section.to_lowercase(), entry.text);
    if !entry.example.is_empty() {
        out.push_str(&indented(entry.example));
    }
    if !entry.output.is_empty() {
        out.push_str(&format!("  prints\n{}", indented(entry.output)));
    }
    out
}

fn entry_json(entry: &Entry) -> Value {
    json!({
        "section": entry.section, "name": entry.name, "text": entry.text, "example": entry.example, "output": entry.output,
    })
}
