//! Explanations of programs with mistakes in them.

use super::explain;
use crate::{Limits, Signature, compile};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::fmt::Write;

fn tools() -> Vec<Signature> {
    let tool =
        |server: &str, name: &str, schema: Value| Signature::from_json_schema(server, name, "", &schema).unwrap();
    vec![
        tool(
            "fs",
            "list",
            json!({"required": ["path"], "properties": {"path": {"type": "string"}, "recursive": {"type": "boolean"}}}),
        ),
        tool("fs", "read", json!({"required": ["path"], "properties": {"path": {"type": "string"}}})),
        tool("time", "now", json!({"properties": {"zone": {"type": "string"}}})),
        tool(
            "weather",
            "forecast",
            json!({"required": ["city"], "properties": {
            "city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 7}}}),
        ),
    ]
}

fn check(source: &str, expected: Expect) {
    let found = explain(source, &Limits::default(), &tools(), &["earlier".to_owned()]).unwrap();
    let mut out = String::new();
    for call in found.calls.iter().chain(&found.moves) {
        write!(out, "{}:{} {} {:?}", call.line, call.column, call.tool, call.reached).unwrap();
        for (what, said) in [("given", &call.given), ("missing", &call.missing), ("wrong", &call.wrong)] {
            if !said.is_empty() {
                write!(out, "; {what} {}", said.join(", ")).unwrap();
            }
        }
        for (is, said) in [(!call.known, "unknown"), (!call.called, "handed on"), (call.open && call.called, "open")] {
            out += if is { "; " } else { "" };
            out += if is { said } else { "" };
        }
        writeln!(out, "{}", call.hint.iter().map(|hint| format!("\n  {hint}")).collect::<String>()).unwrap();
    }
    for unset in &found.unset {
        let later = if unset.set_later { " before it is set" } else { "" };
        writeln!(out, "{}:{} reads {}{later}, near {:?}", unset.line, unset.column, unset.name, unset.near).unwrap();
    }
    writeln!(
        out,
        "why {:?}; sets {:?}; defines {:?}; fuel {:?}",
        found.reason, found.sets, found.functions, found.most_fuel
    )
    .unwrap();
    expected.assert_eq(&out);
}

#[test]
fn calls_are_held_against_signatures() {
    check(
        "# look at the files\n# then say\nfiles = fs.list(path='.')\nfor f in files:\n    text = fs.read(f.name)\nif files:\n    fs.reed(path=3)\nw = weather.forecast(days=9, cty='Oslo')\nfs.list(**earlier)\nmap(fs.read, names)\nanswer(len(files))\n",
        expect![[r#"
            3:12 fs.list Once; given path
            5:15 fs.read Repeatedly; given path
            7:8 fs.reed Perhaps; unknown
              did you mean fs.read(path: str)?
            8:13 weather.forecast Once; given days; missing city; wrong days: most is 7, got 9, no such argument: cty, did you mean `city`?
              write weather.forecast(city: str, days: int = None)
            9:4 fs.list Once; open
            10:8 fs.read Once; handed on
            11:1 answer Once; given x
            10:14 reads names, near None
            why ["look at the files", "then say"]; sets ["files", "f", "text", "w"]; defines []; fuel None
        "#]],
    );
}

#[test]
fn names_are_followed_in_order() {
    check(
        "time = time.now()\ntime.iso\ntime = time.now(zone='UTC')\ndef f(a):\n    global n\n    n = 1\n    return a + b + c\nb = [x for x in y for z in x if z]\nprint(count, z, lngth)\ncount = 1\nlength = sorted([1], key=lambda k: k + count)\ntry:\n    pass\nexcept ToolError as e:\n    print(e)\ndel count\nprint(count)\n",
        expect![[r#"
            1:13 time.now Once
            3:13 time.now Once; given zone
            7:20 reads c, near None
            8:17 reads y, near None
            9:7 reads count before it is set, near None
            9:14 reads z, near None
            9:17 reads lngth, near Some("length")
            why []; sets ["time", "n", "b", "count", "length", "e"]; defines ["f"]; fuel None
        "#]],
    );
}

#[test]
fn instructions_are_listed() {
    let program =
        compile("def twice(x):\n    return 2 * x\nprint(twice(x=fs.read(path='a')), \"text\")", &Limits::default())
            .unwrap();
    expect![[r#"
        twice: 6 instructions
            2     0  Const(0)  2
                  1  LoadLocal(0)  x
                  2  Binary(Mul)
                  3  Return
            1     4  Const(1)  None
                  5  Return

        program: 13 instructions
            1     0  MakeFunction { code: 0, n_defaults: 0, n_captured: 0 }  twice
                  1  StoreGlobal(0)  twice
            3     2  LoadCallee(1)  print
                  3  LoadCallee(0)  twice
                  4  LoadGlobal(2)  fs
                  5  Const(0)  'a'
                  6  CallMethod { name: 1, owner: Some(0), n_plain: 0, n_named: 1, first: 2 }  read
                  7  Call { n_plain: 0, n_named: 1, first: 3 }
                  8  Const(1)  'text'
                  9  Call { n_plain: 2, n_named: 0, first: 4 }
                 10  Show
                 11  Const(2)  None
                 12  Return
    "#]]
    .assert_eq(&program.to_string());
}
