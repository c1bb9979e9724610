//! Every worked example compiles, runs against the real tools and answers; every documented result has the real one's keys.

use crate::fixture::Fixture;
use crate::system::MACHINE;
use expect_test::expect_file;
use mote_script::{CallError, Limits, Signature, Step, Vm, compile};
use mote_toolpacks::{Pack, builtin, call};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const MAX_CALLS: usize = 10;

struct Run {
    answer: String,
    results: Vec<(String, Value)>,
}

pub(crate) fn signatures(packs: &[Pack]) -> Vec<Signature> {
    let of = |pack: &Pack| {
        let signature = |tool: &mote_toolpacks::Tool| {
            Signature::from_json_schema(&pack.name, &tool.name, &tool.description, &tool.parameters).unwrap()
        };
        pack.tools.iter().map(signature).collect::<Vec<_>>()
    };
    packs.iter().flat_map(of).collect()
}

fn run(program: &str, fixture: &Fixture, signatures: &[Signature]) -> Result<Run, String> {
    let limits = Limits::default();
    let mut vm = Vm::new(limits);
    let compiled = compile(program, &limits).map_err(|e| e.report(program))?;
    let mut step = vm.start(compiled, signatures);
    let mut results = Vec::new();
    for _ in 0..MAX_CALLS {
        let asked = match step {
            Step::Call(asked) if asked.tool == "answer" => {
                let answer =
                    asked.arguments["x"].as_str().map_or_else(|| asked.arguments["x"].to_string(), str::to_owned);
                return Ok(Run { answer, results });
            }
            Step::Call(asked) => asked,
            Step::Calls(_) => return Err("an example gathers calls".to_owned()),
            Step::Done => return Err("ended without an answer".to_owned()),
            Step::Failed(e) => return Err(e.report(program)),
        };
        let result = fixture.with_context(|context| call(&asked.server, &asked.tool, &asked.arguments, context));
        if let Ok(result) = &result {
            results.push((format!("{}.{}", asked.server, asked.tool), result.clone()));
        }
        step = vm.resume(result.map_err(|e| CallError { kind: format!("{:?}", e.kind()), message: e.to_string() }));
    }
    Err("too many calls".to_owned())
}

#[test]
fn every_example_answers() {
    let packs = builtin().unwrap();
    let signatures = signatures(&packs);
    let fixture = Fixture::machine(MACHINE);
    let mut answers = String::new();
    for (pack, tool) in packs.iter().flat_map(|pack| pack.tools.iter().map(move |tool| (pack, tool))) {
        for example in &tool.examples {
            let found = run(&example.program, &fixture, &signatures);
            let found = found.unwrap_or_else(|e| panic!("{}.{}: {}\n{e}", pack.name, tool.name, example.task));
            assert!(!found.answer.is_empty() && !found.answer.contains("None"), "{}: {}", example.task, found.answer);
            let moves_on = matches!(
                (pack.name.as_str(), tool.name.as_str()),
                ("time", "now" | "today" | "add" | "difference" | "until" | "convert")
                    | ("system", "disk" | "disks" | "uptime")
                    | ("fs", "stat")
            );
            let answer = if moves_on { "(differs from day to day and machine to machine)" } else { &found.answer };
            answers += &format!("{}\n  {}\n", example.task, answer.replace('\n', "\n  "));
        }
    }
    expect_file!["examples.txt"].assert_eq(&answers);
}

#[test]
fn documented_results_have_the_keys_of_real_ones() {
    let packs = builtin().unwrap();
    let signatures = signatures(&packs);
    let fixture = Fixture::machine(MACHINE);
    let mut real: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for example in packs.iter().flat_map(|pack| &pack.tools).flat_map(|tool| &tool.examples) {
        for (tool, result) in run(&example.program, &fixture, &signatures).unwrap_or_else(|e| panic!("{e}")).results {
            real.entry(tool).or_default().push(result);
        }
    }
    for (pack, tool) in packs.iter().flat_map(|pack| pack.tools.iter().map(move |tool| (pack, tool))) {
        let name = format!("{}.{}", pack.name, tool.name);
        let documented = shape(tool.result.as_ref().unwrap());
        let real: Vec<String> = real[&name].iter().map(shape).collect();
        assert!(
            real.contains(&documented),
            "{name}\n documented {documented}\n real       {}",
            real.join("\n            ")
        );
    }
}

/// Keys and the shapes behind them, all kinds of plain values alike, a list as its first item.
fn shape(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let fields = |map: &Map<String, Value>| {
                map.iter().map(|(key, value)| format!("{key}: {}", shape(value))).collect::<Vec<_>>()
            };
            format!("{{{}}}", fields(map).join(", "))
        }
        Value::Array(items) => format!("[{}]", items.first().map_or("_".to_owned(), shape)),
        _ => "_".to_owned(),
    }
}
