//! Every server's name as a variable: its value is read, and its tools can still be called. Names come from the packs.

use expect_test::expect;
use mote_script::{Limits, Signature, Step, Vm, compile};
use mote_toolpacks::builtin;
use serde_json::{Value, json};

/// Methods of dicts: where a tool has such a name, the variable's own method comes first.
const OF_DICTS: [&str; 11] =
    ["clear", "copy", "fromkeys", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"];

/// A value that fits a parameter, as a literal of the language.
fn literal(param: &mote_script::Param) -> String {
    use mote_script::Schema::*;
    match &param.schema {
        Bool => "True".to_owned(),
        Integer { least, .. } => least.unwrap_or(1).to_string(),
        Number => "1.5".to_owned(),
        Array(items) if **items == Integer { least: None, most: None } || **items == Number => "[1, 2]".to_owned(),
        Array(_) => "[\"a\"]".to_owned(),
        Object { .. } => "{}".to_owned(),
        Null => "None".to_owned(),
        Enum(choices) => choices[0].0.to_string(),
        Union(parts) => literal(&mote_script::Param { schema: parts[0].clone(), ..param.clone() }),
        Any | String => "\"a\"".to_owned(),
    }
}

fn call(tool: &Signature) -> std::string::String {
    let required = tool.params.iter().filter(|param| param.required);
    let arguments: Vec<_> = required.map(|param| format!("{}={}", param.name, literal(param))).collect();
    format!("{}.{}({})", tool.server, tool.name, arguments.join(", "))
}

#[test]
fn a_variable_of_a_servers_name_reads_as_a_value_and_calls_as_the_server() {
    let packs = builtin().unwrap();
    let signatures = super::examples::signatures(&packs);
    assert!(packs.len() > 5, "{}", packs.len());
    let limits = Limits { calls: 1_000, suspensions: 1_000, ..Limits::default() };
    let mut hidden = Vec::new();
    for pack in &packs {
        let of_pack = signatures.iter().filter(|tool| tool.server == pack.name);
        let (own, tools): (Vec<&Signature>, Vec<_>) = of_pack.partition(|tool| OF_DICTS.contains(&tool.name.as_str()));
        hidden.extend(own.iter().map(|tool| tool.path()));
        for tool in &tools {
            let name = &pack.name;
            let calls: Vec<_> = tools.iter().map(|tool| call(tool)).collect();
            let source = format!(
                "{name} = {}\nprint({name}.text, {name}[\"n\"], len({name}))\n{}\nfor {name} in [1]:\n    {name} += 1\n    x = {}\n\
                 def f({name}):\n    return {}\nf(2)\ny, {name} = {}, 5\nprint({name} + 1)\n{name} = [{name}]\n{name}.append(3)\nprint({name})\n",
                call(tool),
                calls.join("\n"),
                call(tool),
                call(tool),
                call(tool)
            );
            let mut vm = Vm::new(limits);
            let mut step = vm.start(compile(&source, &limits).unwrap(), &signatures);
            let mut called = Vec::new();
            while let Step::Call(asked) = step {
                assert_eq!(&asked.server, name, "{source}");
                called.push(asked.tool);
                let result: Value = json!({"text": "said", "n": 7});
                step = vm.resume(Ok(result));
            }
            assert_eq!(step, Step::Done, "{source}");
            assert_eq!(vm.take_printed(), "said 7 2\n6\n[5, 3]\n", "{source}");
            let own = || std::iter::once(&tool.name);
            let expected: Vec<_> =
                own().chain(tools.iter().map(|tool| &tool.name)).chain(own()).chain(own()).chain(own()).collect();
            assert_eq!(called.iter().collect::<Vec<_>>(), expected, "{source}");
        }
    }
    expect!["notes.get"].assert_eq(&hidden.join(" "));
}
