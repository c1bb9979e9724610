//! The language against CPython: a committed corpus, and random expressions.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod python;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use python::{Case, answers};

/// Fails with the first of the differences.
fn none_differ(cases: &[Case]) {
    let differences: Vec<String> = cases.iter().filter_map(Case::difference).collect();
    assert!(
        differences.is_empty(),
        "{} of {} differ\n{}",
        differences.len(),
        cases.len(),
        differences[..differences.len().min(12)].join("\n")
    );
}

#[test]
fn corpus() {
    none_differ(&include_str!("conformance.jsonl").lines().map(Case::read).collect::<Vec<_>>());
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
    let mut runner = TestRunner::new_with_rng(
        Config { failure_persistence: None, ..Config::default() },
        TestRng::from_seed(RngAlgorithm::ChaCha, &[11; 32]),
    );
    let strategy = expressions();
    let programs: Vec<String> = (0..6_000)
        .map(|_| {
            let expression = strategy.new_tree(&mut runner).unwrap().current();
            format!("n = 7\nxs = [3, 1, 2]\nd = {{'k': 1, 'a': 'z'}}\nprint(repr({expression}))\n")
        })
        .collect();
    let mut cases = answers(&programs);
    cases.retain(|case| case.error.as_deref() != Some("SyntaxError") && !beyond_64_bits(&case.output));
    none_differ(&cases);
}
