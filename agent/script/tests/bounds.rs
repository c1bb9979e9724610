//! Nothing exceeds its bound, nothing panics, and a stored state goes on as the machine itself would.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use mote_script::{CallError, Kind, Limits, Signature, Step, Vm, canonical, compile, explain, input};
use proptest::prelude::*;
use serde_json::{Value, json};

const SMALL: Limits = Limits {
    fuel: 20_000,
    bytes: 200_000,
    nesting: 30,
    frames: 20,
    calls: 12,
    gathered: 4,
    suspensions: 12,
    printed_bytes: 500,
    source_bytes: 8_000,
    instructions: 5_000,
};

fn tools() -> Vec<Signature> {
    let schema = json!({"type": "object", "properties": {"k": {}}});
    vec![Signature::from_json_schema("t", "get", "", &schema).unwrap()]
}

/// What the fake tool gives for its n-th call.
fn result(n: usize) -> Result<Value, CallError> {
    match n % 4 {
        0 => Ok(json!([{"a": n, "b": "x".repeat(n)}, {"a": 2, "b": "y"}])),
        1 => Err(CallError { kind: "timeout".into(), message: "no answer".into() }),
        2 => Ok(json!("some text with words")),
        _ => Ok(json!(n)),
    }
}

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "0",
        "1",
        "-3",
        "7.5",
        "'ab'",
        "''",
        "None",
        "True",
        "[]",
        "{}",
        "x",
        "y",
        "xs",
        "d",
        "s",
        "range(30)",
        "9223372036854775807",
        "t.get(k=x)",
        "t.get()",
    ]);
    leaf.prop_map(str::to_owned).prop_recursive(3, 12, 3, |inner| {
        let binary = prop::sample::select(vec!["+", "*", "-", "//", "%", "**", "<<", "==", "<", "in", "and", "or"]);
        prop_oneof![
            (inner.clone(), binary, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {b}, xs]")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{{'k': {a}, 'j': {b}}}")),
            inner.clone().prop_map(|a| format!("sorted({a}, key=lambda v: f(v))")),
            inner.clone().prop_map(|a| format!("[v for v in {a} if v]")),
            inner.clone().prop_map(|a| format!("f({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("gather(t.get(k={a}), {b}, t.get(k=x))")),
            (inner.clone(), prop::bool::ANY).prop_map(|(a, keep)| {
                let keep = if keep { "True" } else { "False" };
                format!("gather(*[t.get(k=v) for v in {a}], return_exceptions={keep})")
            }),
            inner.clone().prop_map(|a| format!("str({a}).replace('a', 'aaaa')")),
            inner.clone().prop_map(|a| format!("list(zip({a}, {a}))")),
            inner.clone().prop_map(|a| format!("f\"{{{a}:>300}}\"").replace('\'', "")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("{a}[{b}]")),
        ]
    })
}

fn program() -> impl Strategy<Value = String> {
    let name = || prop::sample::select(vec!["x", "y", "xs", "d", "s"]);
    let statement = prop_oneof![
        (name(), expression()).prop_map(|(n, e)| format!("{n} = {e}\n")),
        (name(), expression()).prop_map(|(n, e)| format!("{n} += {e}\n")),
        expression().prop_map(|e| format!("print({e})\n")),
        expression().prop_map(|e| format!("for v in {e}:\n    xs.append([v, xs])\n    x = t.get(k=1)\n")),
        expression()
            .prop_map(|e| format!("try:\n    y = {e}\nexcept Exception as e:\n    s = str(e)\nfinally:\n    x = 1\n")),
        expression().prop_map(|e| format!("n = 0\nwhile n < 40 and {e}:\n    n += 1\n    s = str(s) + str(n) * 3\n")),
        (name(), expression())
            .prop_map(|(n, e)| format!("try:\n    d[{n}] = {e}\nexcept TypeError:\n    d = {{'self': [d]}}\n")),
        expression()
            .prop_map(|e| format!("try:\n    print(d[{e}])\nexcept LookupError as e:\n    raise ValueError(e)\n")),
    ];
    prop::collection::vec(statement, 1..8).prop_map(|statements| {
        format!(
            "def f(v):\n    return f(v[1:]) if v else v\nx = 1\ny = 'q'\nxs = [1, 2]\nd = {{}}\ns = ''\n{}",
            statements.concat()
        )
    })
}

/// Goes on with what the fake tool gives.
fn answered(vm: &mut Vm, step: &Step, n: usize) -> Step {
    match step {
        Step::Calls(calls) => vm.resume_all((0..calls.len()).map(|i| result(n + i)).collect()),
        _ => vm.resume(result(n)),
    }
}

/// Runs a program; at each stop the machine is stored and read again if `stored`.
fn run(source: &str, stored: bool) -> (String, Step, Vm) {
    let mut vm = Vm::new(SMALL);
    let mut log = String::new();
    let mut step = match compile(source, &SMALL) {
        Ok(program) => vm.start(program, &tools()),
        Err(error) => Step::Failed(error),
    };
    for n in 0.. {
        let usage = vm.usage();
        assert!(
            usage.fuel <= SMALL.fuel && usage.bytes <= SMALL.bytes && usage.printed <= SMALL.printed_bytes,
            "{usage:?}"
        );
        assert!(usage.calls <= SMALL.calls && usage.suspensions <= SMALL.suspensions, "{usage:?}");
        log += &vm.take_printed();
        match &step {
            Step::Call(_) | Step::Calls(_) => {
                log += &format!("{step:?} {usage:?}\n");
                if stored {
                    vm = Vm::decode(&vm.encode()).unwrap();
                }
                step = answered(&mut vm, &step, n);
            }
            _ => break,
        }
    }
    (log, step, vm)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_stored_state_goes_on_as_the_machine_would(source in program()) {
        let (log, step, vm) = run(&source, false);
        let (log_stored, step_stored, vm_stored) = run(&source, true);
        prop_assert_eq!(&log, &log_stored);
        prop_assert_eq!(&step, &step_stored);
        prop_assert_eq!(vm.encode(), vm_stored.encode());
        if let Step::Failed(error) = step && error.kind() == Kind::Limit {
            prop_assert!(error.used().unwrap() > error.limit().unwrap());
        }
    }

    #[test]
    fn damaged_states_are_refused_or_safe(source in program(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let Ok(program) = compile(&source, &SMALL) else { return Ok(()) };
        let mut vm = Vm::new(SMALL);
        let first = vm.start(program, &tools());
        let mut bytes = vm.encode();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(mut vm) = Vm::decode(&bytes) {
            vm.restrict(&SMALL);
            let mut gathers = matches!(first, Step::Calls(_));
            for n in 0..20 {
                let _ = vm.variables();
                let next = if gathers { vm.resume_all(vec![result(n), result(n + 1)]) } else { vm.resume(result(n)) };
                match next {
                    Step::Call(_) => gathers = false,
                    Step::Calls(_) => gathers = true,
                    _ => break,
                }
            }
            let _ = vm.encode();
        }
    }

    #[test]
    fn random_bytes_are_no_state(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut state = b"mote\x01".to_vec();
        state.extend(&bytes);
        prop_assert!(Vm::decode(&bytes).is_err());
        let _ = Vm::decode(&state);
    }

    #[test]
    fn random_text_never_panics(text in "\\PC{0,80}") {
        let _ = compile(&text, &SMALL).map_err(|e| e.report(&text));
    }

    #[test]
    fn random_tokens_never_panic(words in prop::collection::vec(prop::sample::select(vec![
        "if", "else", "for", "in", "x", "(", ")", "[", "]", "{", "}", ":", ",", ".", "=", "==", "+", "-", "**", "not", "lambda", "f\"", "{x", "\"", "'", "\n", "\n    ",
        "\n        ", "def", "f", "try", "except", "finally", "return", "1", "2.5", "*", "print", "as", "e", "and", "is", "None", "\\", "#", "while", "break", "global", "del",
    ]), 0..60)) {
        let text = words.join(" ");
        let limits = Limits { fuel: 2_000, ..SMALL };
        match compile(&text, &limits) {
            Ok(program) => {
                Vm::new(limits).start(program, &[]);
            }
            Err(error) => {
                prop_assert!(error.line() > 0, "{:?}", error);
                error.report(&text);
            }
        }
    }
}

#[test]
fn the_deepest_sources_fit_a_small_stack() {
    let run = || {
        for (open, close) in [
            ("(", ")"),
            ("[", "]"),
            ("{1: ", "}"),
            ("-", ""),
            ("not ", ""),
            ("f(", ")"),
            ("x[", "]"),
            ("lambda: ", ""),
            ("1 if 1 else ", ""),
            ("2 ** ", ""),
            ("[y for y in ", "]"),
            ("(1, ", ")"),
            ("f(k=", ")"),
            ("\"a\" + (", ")"),
            ("{1, ", "}"),
            ("x.f(lambda v: [", "])"),
        ] {
            for n in [10, 40, 59, 119, 121, 5_000] {
                let source = format!("x = {}1{}\n", open.repeat(n), close.repeat(n));
                let _ = (
                    canonical(&source, &Limits::CEILING),
                    explain(&source, &Limits::CEILING, &[], &[]),
                    input(&source),
                );
                if let Err(error) = compile(&source, &Limits { nesting: 1_000, ..Limits::default() }) {
                    assert!(error.kind() == Kind::Limit || n == 5_000, "{open} {n} {error}");
                }
            }
        }
        for n in [100, 119, 5_000] {
            let _ = compile(&format!("x = 1{}", " + 1".repeat(n)), &Limits { nesting: 1_000, ..Limits::default() });
            let _ = compile(&format!("x = y{}", ".f()".repeat(n)), &Limits { nesting: 1_000, ..Limits::default() });
            let blocks: String = (0..n.min(400)).map(|i| format!("{}if 1:\n", " ".repeat(i))).collect();
            assert!(
                compile(&format!("{blocks}{}pass\n", " ".repeat(n.min(400))), &Limits::CEILING).is_err() || n < 120
            );
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}

/// Everything that descends, at the deepest that any limits allow, on a stack of a quarter of a mebibyte.
#[test]
fn the_deepest_values_fit_a_small_stack() {
    let descents = [
        "print(x)",
        "repr(x)",
        "f'{x}'",
        "x == y",
        "x < y",
        "x in [y]",
        "json.dumps(x)",
        "json.dumps(x, indent=2, sort_keys=True)",
        "t.get(k=x)",
        "gather(t.get(k=x), t.get(k=y))",
        "{x: 1}",
        "sorted([x, y])",
        "max([x], [y])",
        "isinstance(1, x)",
        "[x].index(y)",
        "x.nothing",
        "raise ValueError(x)",
        "json.loads('[' * 5000)",
        "json.loads('[' * 119 + ']' * 119)",
        "json.loads('{\"a\": ' * 90 + '1' + '}' * 90)",
    ];
    let run = move || {
        for (make, use_of) in
            ["[x]", "(x,)", "{'k': x}", "(x, [x])"].iter().flat_map(|make| descents.map(|use_of| (*make, use_of)))
        {
            for n in [Limits::CEILING.nesting - 2, 5_000] {
                let other = make.replace('x', "y");
                let source =
                    format!("x = ()\ny = ()\nfor i in range({n}):\n    x = {make}\n    y = {other}\n{use_of}\n");
                let program = compile(&source, &Limits::CEILING).unwrap();
                let mut vm = Vm::new(Limits { fuel: 5_000_000, ..Limits::CEILING });
                let step = vm.start(program, &tools());
                let _ = (vm.variables(), vm.variable_json("x"));
                let mut vm = Vm::decode(&vm.encode()).unwrap();
                match step {
                    Step::Call(call) => drop(vm.resume(
                        call.arguments.get("k").cloned().ok_or(CallError { kind: "x".into(), message: "x".into() }),
                    )),
                    Step::Calls(calls) => {
                        drop(vm.resume_all(calls.into_iter().map(|call| Ok(call.arguments.into())).collect()))
                    }
                    _ => {}
                }
            }
        }
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
}

/// A stored schema that nests by its bytes is refused, not followed.
#[test]
fn a_stored_schema_is_read_to_a_fixed_depth() {
    let nested = |n: u32| (0..n).fold(json!("Any"), |inner, _| json!({"Array": inner}));
    let run = move || {
        assert!(serde_json::from_value::<mote_script::Schema>(nested(11)).is_ok());
        assert!(serde_json::from_value::<mote_script::Schema>(nested(12)).is_err());
        const ARRAY: u8 = 7;
        assert!(postcard::from_bytes::<mote_script::Schema>(&[ARRAY; 100_000]).is_err());
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn deep_values_end_in_an_error() {
    let limits = Limits { nesting: 120, ..Limits::default() };
    for use_of in
        ["print(x)", "x == y", "json.dumps(x)", "t.get(k=x)", "hash = {x: 1}", "sorted([x, y])", "isinstance(1, x)"]
    {
        for make in ["[x]", "(x,)", "{'k': x}"] {
            let source = format!(
                "x = ()\ny = ()\nfor i in range(5000):\n    x = {make}\n    y = {}\n{use_of}\n",
                make.replace('x', "y")
            );
            let program = compile(&source, &limits).unwrap();
            let mut vm = Vm::new(limits);
            assert!(matches!(vm.start(program, &tools()), Step::Failed(_)), "{source}");
            let _ = (vm.variables(), vm.variable_json("x"), Vm::decode(&vm.encode()).unwrap());
        }
    }
}

#[test]
fn garbage_is_collected_and_live_values_are_not() {
    let limits = Limits { bytes: 100_000, ..Limits::default() };
    let source = "keep = []\nfor i in range(20000):\n    s = 'text ' + str(i)\n    if i % 1000 == 0:\n        keep.append(s)\nprint(len(keep), keep[0], keep[-1])\n";
    let mut vm = Vm::new(limits);
    assert_eq!(vm.start(compile(source, &limits).unwrap(), &[]), Step::Done);
    assert_eq!(vm.take_printed(), "20 text 0 text 19000\n");
}

#[test]
fn a_machine_starts_in_microseconds() {
    let program = compile("x = 1 + 2\n", &Limits::default()).unwrap();
    let started = std::time::Instant::now();
    for _ in 0..1_000 {
        Vm::new(Limits::default()).start(program.clone(), &[]);
    }
    let each = started.elapsed() / 1_000;
    let source = "t = 0\nfor i in range(200000):\n    t += i * 2 % 7\n";
    let mut vm = Vm::new(Limits::default());
    let started = std::time::Instant::now();
    assert_eq!(vm.start(compile(source, &Limits::default()).unwrap(), &[]), Step::Done);
    eprintln!("start {each:?}, loop {:?} for {} instructions", started.elapsed(), vm.usage().fuel);
    assert!(each.as_micros() < 1_000);
}
