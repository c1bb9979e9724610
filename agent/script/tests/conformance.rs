//! The language against CPython: a committed corpus, and random expressions where a `python3` is at hand.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use mote_script::{Limits, Step, Vm, compile};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

fn run(source: &str) -> (String, Option<String>) {
    let program = match compile(source, &Limits::default()) {
        Ok(program) => program,
        Err(error) => return (String::new(), Some(error.report(source))),
    };
    let mut vm = Vm::new(Limits::default());
    let step = vm.start(program, &[]);
    let error = match step {
        Step::Failed(error) => Some(error.exception().map_or_else(|| error.report(source), str::to_owned)),
        _ => None,
    };
    (vm.take_printed(), error)
}

fn differences<'a>(cases: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut out = Vec::new();
    for case in cases {
        let case: Value = serde_json::from_str(case).unwrap();
        let (output, error) = run(case["source"].as_str().unwrap());
        let expected = (case["output"].as_str().unwrap(), case["error"].as_str());
        if (output.as_str(), error.as_deref()) != expected {
            out.push(format!(
                "{}\nexpected {expected:?}\ngot      {:?}\n",
                case["source"].as_str().unwrap(),
                (output, error)
            ));
        }
    }
    out
}

#[test]
fn corpus() {
    let differences = differences(include_str!("conformance.jsonl").lines());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (-20i64..100).prop_map(|n| format!("({n})")),
        prop_oneof![Just("0.1"), Just("2.5"), Just("1e3"), Just("-0.75"), Just("3.0"), Just("1e-7")]
            .prop_map(str::to_owned),
        prop_oneof![Just("''"), Just("'a'"), Just("'Hello, World'"), Just("'42'"), Just("'  x y '"), Just("'é'")]
            .prop_map(str::to_owned),
        prop_oneof![
            Just("True"),
            Just("False"),
            Just("None"),
            Just("[]"),
            Just("()"),
            Just("{}"),
            Just("n"),
            Just("xs"),
            Just("d")
        ]
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let binary = prop::sample::select(vec![
            "+", "-", "*", "/", "//", "%", "&", "|", "==", "<", ">=", "!=", "in", "and", "or", "is not",
        ]);
        let call = prop::sample::select(vec![
            "len", "str", "repr", "int", "float", "bool", "abs", "sorted", "sum", "max", "min", "list", "tuple", "any",
            "all", "round",
        ]);
        let method = prop::sample::select(vec![
            "upper()",
            "lower()",
            "strip()",
            "split()",
            "title()",
            "swapcase()",
            "isdigit()",
            "isalpha()",
            "count('a')",
            "find('l')",
            "replace('l', 'L')",
            "startswith('H')",
            "zfill(6)",
            "center(9)",
            "split(',')",
            "partition(',')",
            "index(1)",
            "get('k')",
            "join(['x', 'y'])",
        ]);
        let spec = prop::sample::select(vec![
            "", ":>8", ":<6", ":^7", ":.2f", ":d", ":05d", ":,", ":e", ":g", ":.1%", ":x", "!r", ":+", ":.3", ":010.3f",
        ]);
        prop_oneof![
            (inner.clone(), binary, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (call, inner.clone()).prop_map(|(f, a)| format!("{f}({a})")),
            (inner.clone(), method).prop_map(|(a, m)| format!("{a}.{m}")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {b}]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}, {b})")),
            (inner.clone(), -4i64..4).prop_map(|(a, i)| format!("{a}[{i}]")),
            (inner.clone(), -4i64..4, -4i64..4, prop::sample::select(vec![1, 2, -1, -2]))
                .prop_map(|(a, i, j, k)| format!("{a}[{i}:{j}:{k}]")),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} if {b} else {c})")),
            (inner.clone(), spec).prop_map(|(a, spec)| format!("f\"{{{a}{spec}}}\"")),
            inner.clone().prop_map(|a| format!("[x for x in {a} if x]")),
            inner.clone().prop_map(|a| format!("(not {a})")),
            inner.prop_map(|a| format!("(-{a})")),
        ]
    })
}

/// CPython's integers are unbounded, ours are not; what differs for that reason alone is left out.
fn beyond_64_bits(output: &str) -> bool {
    output.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > 18)
}

#[test]
fn random_expressions() {
    let python = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance.py");
    let spawned = Command::new("python3")
        .args([python, "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = spawned else { return };
    let mut runner = TestRunner::new_with_rng(
        Config { failure_persistence: None, ..Config::default() },
        TestRng::from_seed(RngAlgorithm::ChaCha, &[11; 32]),
    );
    let strategy = expressions();
    let mut input = String::new();
    for _ in 0..6_000 {
        let expression = strategy.new_tree(&mut runner).unwrap().current();
        input +=
            &json!(format!("n = 7\nxs = [3, 1, 2]\nd = {{'k': 1, 'a': 'z'}}\nprint(repr({expression}))\n")).to_string();
        input.push('\n');
    }
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().count() >= 6_000, "python3 did not answer every program");
    let comparable = text.lines().filter(|line| {
        let case: Value = serde_json::from_str(line).unwrap();
        case["error"] != "SyntaxError" && !beyond_64_bits(case["output"].as_str().unwrap())
    });
    let differences = differences(comparable);
    assert!(
        differences.is_empty(),
        "{} differ\n{}",
        differences.len(),
        differences[..differences.len().min(40)].join("\n")
    );
}
