//! Any JSON for any tool: no panic, no result above its limit, no write outside the writable folder.

use crate::fixture::Fixture;
use mote_toolpacks::{CallContext, CallLimits, builtin, call};
use proptest::prelude::*;
use serde_json::{Map, Value};
use std::time::Duration;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z./*~]{0,12}",
        "\\PC{0,40}",
        any::<String>(),
        prop::sample::select(vec![
            "todo.txt",
            "shop.db",
            "plants.csv",
            "config.json",
            "data",
            ".",
            "..",
            "/dev/zero",
            "/proc/self/mem",
            "now",
            "2026-03-01",
            "Tokyo",
            "SELECT * FROM orders",
            "%Y",
            "(((((",
            "\\",
            "km",
            "1/0",
            "out/x",
            "out/../../x",
        ])
        .prop_map(str::to_owned),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3_i64..20).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A value of the type that the schema asks for, most of the time.
fn fitting(schema: &Value) -> BoxedStrategy<Value> {
    let fitting = match schema["type"].as_str().unwrap() {
        "string" => text().prop_map(Value::from).boxed(),
        "integer" => prop_oneof![(-3_i64..50), any::<i64>()].prop_map(Value::from).boxed(),
        "number" => prop_oneof![any::<f64>().prop_map(Value::from), (-5_i64..99).prop_map(Value::from)].boxed(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        _ => prop::collection::vec(any::<f64>().prop_map(Value::from), 0..5).prop_map(Value::from).boxed(),
    };
    match schema["enum"].as_array() {
        Some(choices) => prop::sample::select(choices.clone()).boxed(),
        None => prop_oneof![6 => fitting, 1 => value()].boxed(),
    }
}

fn any_call() -> impl Strategy<Value = (String, String, Map<String, Value>)> {
    let packs = builtin().unwrap();
    let tools: Vec<_> =
        packs.into_iter().flat_map(|pack| pack.tools.into_iter().map(move |tool| (pack.name.clone(), tool))).collect();
    prop::sample::select(tools).prop_flat_map(|(pack, tool)| {
        let one =
            |(name, schema): (&String, &Value)| (Just(name.clone()), prop::option::weighted(0.7, fitting(schema)));
        let known: Vec<_> = tool.parameters["properties"].as_object().unwrap().iter().map(one).collect();
        let unknown = prop::option::weighted(0.05, (text(), value()));
        (Just(pack), Just(tool.name), known, unknown).prop_map(|(pack, tool, known, unknown)| {
            let known = known.into_iter().filter_map(|(name, value)| Some((name, value?)));
            (pack, tool, known.chain(unknown).collect())
        })
    })
}

#[test]
fn any_arguments_are_taken_calmly() {
    let mut fixture = Fixture::machine(&[("proc/1/stat", "x")]);
    fixture.limits.timeout = Duration::from_millis(100);
    let config = ProptestConfig { cases: 1000, ..ProptestConfig::default() };
    proptest!(config, |((pack, tool, arguments) in any_call(), max_result_bytes in 100_usize..5000)| {
        let result = fixture.with_context(|context| {
            let limits = CallLimits { max_result_bytes, ..context.limits };
            call(&pack, &tool, &arguments, &CallContext { limits, ..*context })
        });
        match result {
            Ok(result) => prop_assert!(result.to_string().len() <= max_result_bytes),
            Err(e) => prop_assert!(!e.message().is_empty() && e.to_string().len() < 4096),
        }
        prop_assert!(std::fs::read_to_string(fixture.path().join("todo.txt")).unwrap().starts_with("call Bob"));
    });
}
