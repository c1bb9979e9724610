//! The first packs answer through the public door.
#![expect(clippy::unwrap_used, reason = "tests")]

use mote_toolpacks::{CallContext, MemoryNotes, builtin, call};
use serde_json::json;

#[test]
fn packs_parse_and_answer() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "one\ntwo\n").unwrap();
    let notes = MemoryNotes::default();
    let writable = [folder.path().join("out")];
    std::fs::create_dir(&writable[0]).unwrap();
    let mut context = CallContext::new(folder.path(), &notes);
    context.writable = &writable;
    for pack in builtin().unwrap() {
        println!("{} {}", pack.name, pack.summary);
    }
    for (pack, tool, arguments) in [
        ("fs", "list", json!({})),
        ("fs", "list", json!({"recursive": true})),
        ("fs", "read", json!({"path": "a.txt", "lines": 1})),
        ("fs", "stat", json!({"path": "a.txt"})),
        ("fs", "search", json!({"pattern": "TWO"})),
        ("fs", "largest", json!({"limit": 3})),
        ("fs", "usage", json!({"path": "."})),
        ("fs", "write", json!({"path": "out/x/y.txt", "text": "hello"})),
        ("fs", "write", json!({"path": "out/x/y.txt", "text": "hello", "append": true})),
        ("time", "now", json!({"zone": "tokyo"})),
        ("time", "now", json!({"zone": "San Francisco"})),
        ("time", "now", json!({"zone": "utc+2"})),
        ("time", "now", json!({"zone": "Europe/Paris"})),
        ("time", "now", json!({})),
        ("time", "convert", json!({"time": "3 pm", "from_zone": "berlin", "to_zone": "Tokyo"})),
        ("time", "difference", json!({"start": "2026-03-01", "end": "2026-03-11"})),
        ("time", "difference", json!({"start": "2026-03-01 10:00", "end": "11 March 2026 12:30"})),
        ("time", "difference", json!({"start": "today", "end": "tomorrow"})),
        ("time", "add", json!({"start": "2026-01-31", "months": 1})),
        ("time", "parse", json!({"text": "March 1, 2026"})),
        ("time", "parse", json!({"text": "01.03.2026 15:30"})),
        ("time", "format", json!({"time": "2026-03-01", "format": "%d.%m.%Y"})),
    ] {
        let result = call(pack, tool, arguments.as_object().unwrap(), &context);
        println!("{pack}.{tool}({arguments}) -> {}", result.unwrap());
    }
    for (pack, tool, arguments) in [
        ("fs", "list", json!({"path": "none"})),
        ("fs", "lst", json!({})),
        ("fs", "read", json!({})),
        ("fs", "read", json!({"path": "a.txt", "line": 3})),
        ("fs", "read", json!({"path": "/dev/zero"})),
        ("fs", "write", json!({"path": "out/../a.txt", "text": ""})),
        ("time", "now", json!({"zone": "york"})),
        ("time", "now", json!({"zone": "Atlantis"})),
        ("time", "parse", json!({"text": "someday"})),
    ] {
        let result = call(pack, tool, arguments.as_object().unwrap(), &context);
        println!("{pack}.{tool}({arguments}) -> {}", result.unwrap_err());
    }
}
