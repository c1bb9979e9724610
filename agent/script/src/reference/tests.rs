//! The reference against the language: examples are run, and nothing that the language has is missing.

use super::{SECTIONS, lookup, nearest_entry, reference, reference_page};
use crate::ast::{AUGMENTED, BINARY, COMPARISONS};
use crate::lexer::KEYWORDS;
use crate::value::{Builtin, Class};
use crate::{Call, CallError, Kind, Limits, Signature, Step, Vm, compile, methods, moves};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn tools() -> Vec<Signature> {
    let schema = json!({"required": ["path"], "properties": {"path": {"type": "string"}}});
    ["list", "read"].map(|name| Signature::from_json_schema("fs", name, "", &schema).unwrap()).to_vec()
}

fn result(call: &Call) -> Result<Value, CallError> {
    match call.tool.as_str() {
        "list" => Ok(json!([{"name": "a.txt", "size": 3}, {"name": "b.txt", "size": 30}])),
        _ => Err(CallError { kind: "denied".to_owned(), message: "not allowed: secret".to_owned() }),
    }
}

/// What a program prints, with its moves and its error.
fn output(source: &str) -> String {
    let limits = Limits::default();
    let program = match compile(source, &limits) {
        Ok(program) => program,
        Err(error) => return error.to_string(),
    };
    let mut vm = Vm::new(limits);
    let mut step = vm.start(program, &tools());
    let mut out = String::new();
    loop {
        out += &vm.take_printed();
        match step {
            Step::Failed(error) => {
                out += &error.to_string();
                break;
            }
            Step::Call(call) if call.server.is_empty() => {
                out += &format!("-> {} {}\n", call.tool, Value::Object(call.arguments));
                step = vm.resume(Ok(Value::Null));
            }
            Step::Call(call) => step = vm.resume(result(&call)),
            Step::Calls(calls) => step = vm.resume_all(calls.iter().map(result).collect()),
            Step::Done => break,
        }
    }
    out.trim_end().to_owned()
}

#[test]
fn examples_print_what_the_reference_says() {
    let wrong: Vec<String> = reference()
        .filter(|entry| !entry.example.is_empty())
        .filter_map(|entry| {
            let found = output(entry.example);
            let line = || json!([entry.section, entry.name, entry.example, entry.output, found]).to_string();
            (found != entry.output).then(line)
        })
        .collect();
    assert!(wrong.is_empty(), "section, name, example, expected, found:\n{}", wrong.join("\n"));
}

#[test]
fn nothing_is_missing_and_nothing_is_made_up() {
    let names = |section: &str| -> BTreeSet<&str> {
        let rows = SECTIONS.iter().find(|(name, _)| *name == section).unwrap().1;
        rows.iter().map(|row| row.0).collect()
    };
    let names_and_texts = |section: &str| {
        let rows = SECTIONS.iter().find(|(name, _)| *name == section).unwrap().1;
        rows.iter().map(|row| (row.0, row.1))
    };
    let all = |section: &str, wanted: BTreeSet<String>| {
        let found: BTreeSet<String> = names(section).into_iter().map(str::to_owned).collect();
        assert_eq!(found, wanted, "{section}");
    };
    let json_names = methods::of("json").iter().map(|name| format!("json.{name}"));
    all("Built-ins", Builtin::ALL.iter().map(|b| b.name().to_owned()).chain(json_names).collect());
    all("Exceptions", Class::ALL.iter().map(|class| class.name().to_owned()).collect());
    all("Moves", moves().iter().map(|m| m.name.clone()).collect());
    for (section, types) in [
        ("Methods of str", &["str"] as &[&str]),
        ("Methods of list and tuple", &["list", "tuple"]),
        ("Methods of dict", &["dict"]),
        ("Methods of set and float", &["set", "float"]),
    ] {
        all(section, types.iter().flat_map(|t| methods::of(t).iter().map(move |name| format!("{t}.{name}"))).collect());
    }
    let limits = serde_json::to_value(Limits::default()).unwrap();
    all("Limits", limits.as_object().unwrap().keys().cloned().collect());
    for (name, limit) in limits.as_object().unwrap() {
        let text = names_and_texts("Limits").find(|row| row.0 == name).unwrap().1;
        assert_eq!(text.split(' ').next().unwrap().replace(',', ""), limit.to_string(), "{name}");
    }
    let kinds = [Kind::Syntax, Kind::Unsupported, Kind::Exception, Kind::Limit];
    all("Kinds of errors", kinds.iter().map(|kind| format!("{kind:?}").to_lowercase()).collect());

    let left_out = ["import", "from", "class", "with", "async", "await", "yield", "nonlocal"];
    let said: String = reference().map(|entry| format!("{} {} {}\n", entry.name, entry.text, entry.example)).collect();
    let signs = BINARY.iter().map(|(sign, ..)| *sign).chain(COMPARISONS.iter().map(|(sign, _)| *sign));
    let words = KEYWORDS.iter().copied().filter(|word| !left_out.contains(word));
    let missing: Vec<&str> =
        signs.chain(AUGMENTED.iter().map(|(sign, _)| *sign)).chain(words).filter(|word| !said.contains(word)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn entries_are_found_by_what_people_type() {
    let found = |name: &str| lookup(name).iter().map(|entry| entry.name).collect::<Vec<_>>();
    assert_eq!(found("upper"), ["str.upper"]);
    assert_eq!(found("pop"), ["list.pop", "dict.pop", "set.pop"]);
    assert_eq!(found("print()"), ["print"]);
    assert_eq!(found("elif"), ["if"]);
    assert_eq!(found("True"), ["None, True, False"]);
    assert_eq!(found("def"), ["def", "def"]);
    assert_eq!(found("moves").len(), 5);
    assert!(found("nosuchthing").is_empty());
    assert_eq!(nearest_entry("uper"), Some("upper"));
}

#[test]
fn the_page_is_the_tables() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/language-reference.md");
    let page = reference_page();
    if std::env::var_os("MOTE_UPDATE_REFERENCE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == page, "docs/language-reference.md differs from the tables: write it anew with `make reference`");
}
