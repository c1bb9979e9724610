//! What is fuzzed, one function a target. The tests of `mote-script` run them too, on the kept seeds and near them.
//!
//! Nothing may panic, exceed a limit, or grow without bound; what is accepted has to be right.

use std::sync::OnceLock;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities};
use llguidance::{Matcher, ParserFactory};
use mote_script::{CallError, Kind, Limits, Signature, Step, Vm, compile, grammar};
use serde_json::{Value, json};

const LIMITS: Limits = Limits {
    fuel: 5_000,
    bytes: 200_000,
    nesting: 40,
    frames: 20,
    calls: 8,
    gathered: 3,
    suspensions: 8,
    printed_bytes: 2_000,
    source_bytes: 8_000,
    instructions: 5_000,
};

fn tools() -> &'static [Signature] {
    static TOOLS: OnceLock<Vec<Signature>> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let schema =
            json!({"type": "object", "properties": {"k": {}, "n": {"type": "integer"}, "s": {"type": "string"}}});
        ["get", "put"].iter().filter_map(|name| Signature::from_json_schema("t", name, "", &schema).ok()).collect()
    })
}

fn result(n: usize) -> Result<Value, CallError> {
    match n % 3 {
        0 => Ok(json!([{"a": n, "b": "x".repeat(n)}, {"a": 2.5, "b": null}])),
        1 => Err(CallError { kind: "timeout".into(), message: "no answer".into() }),
        _ => Ok(json!("some text")),
    }
}

/// Goes on with the result of one call, or with those of a `gather`.
fn answered(vm: &mut Vm, n_calls: Option<usize>, n: usize) -> Step {
    match n_calls {
        None => vm.resume(result(n)),
        Some(n_calls) => vm.resume_all((0..n_calls).map(|i| result(n + i)).collect()),
    }
}

fn within_limits(vm: &Vm) {
    let usage = vm.usage();
    assert!(
        usage.fuel <= LIMITS.fuel && usage.bytes <= LIMITS.bytes && usage.printed <= LIMITS.printed_bytes,
        "{usage:?}"
    );
    assert!(usage.calls <= LIMITS.calls && usage.suspensions <= LIMITS.suspensions, "{usage:?}");
}

/// Compiles and runs a text; at each stop the machine that was stored and read goes on as the machine itself.
pub(crate) fn source(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let program = match compile(text, &LIMITS) {
        Ok(program) => program,
        Err(error) => {
            error.report(text);
            return;
        }
    };
    let mut vm = Vm::new(LIMITS);
    let mut step = vm.start(program, tools());
    for n in 0.. {
        within_limits(&vm);
        vm.variables();
        let n_calls = match &step {
            Step::Call(_) => None,
            Step::Calls(calls) => Some(calls.len()),
            _ => break,
        };
        let mut stored = Vm::decode(&vm.encode()).expect("a state that was stored is read");
        step = answered(&mut vm, n_calls, n);
        assert_eq!(answered(&mut stored, n_calls, n), step, "a stored machine goes another way");
        assert_eq!(stored.encode(), vm.encode(), "a stored machine ends in another state");
    }
    if let Step::Failed(error) = step {
        error.report(text);
    }
}

/// Reads bytes as a stored machine and goes on with it.
pub(crate) fn state(bytes: &[u8]) {
    let Ok(mut vm) = Vm::decode(bytes) else { return };
    vm.restrict(&LIMITS);
    let mut n_calls = None;
    for n in 0..10 {
        vm.variables();
        vm.variable_json("x");
        let mut step = answered(&mut vm, n_calls, n);
        if n == 0 && matches!(step, Step::Failed(_)) {
            step = answered(&mut vm, Some(2), n);
        }
        match step {
            Step::Call(_) => n_calls = None,
            Step::Calls(calls) => n_calls = Some(calls.len()),
            _ => break,
        }
    }
    if let Ok(program) = compile("x = [1]\nprint(x, t.get())\n", &LIMITS) {
        vm.start(program, tools());
    }
    Vm::decode(&vm.encode()).expect("a machine that runs can be stored");
}

/// Reads bytes as the schema of a tool, compiles the grammar of that tool, and calls it.
pub(crate) fn schema(bytes: &[u8]) {
    let Ok(json) = serde_json::from_slice::<Value>(bytes) else { return };
    let name = json.get("title").and_then(Value::as_str).unwrap_or("tool");
    let signature = match Signature::from_json_schema("server", name, "", &json) {
        Ok(signature) => signature,
        Err(error) => return assert_eq!(error.kind(), Kind::Schema, "{error}"),
    };
    assert!(signature.line().starts_with("server."));
    let lark = match grammar::lark(std::slice::from_ref(&signature), true, &grammar::Options::default()) {
        Ok(lark) => lark,
        Err(error) => return assert_eq!(error.kind(), Kind::Limit, "{error}"),
    };
    static FACTORY: OnceLock<ParserFactory> = OnceLock::new();
    let factory = FACTORY.get_or_init(|| {
        let env = ApproximateTokEnv::single_byte_env();
        let mut factory =
            ParserFactory::new(&env, InferenceCapabilities::default(), &[]).expect("a vocabulary of bytes");
        factory.quiet();
        factory
    });
    let mut matcher = Matcher::new(factory.create_parser(TopLevelGrammar::from_lark(lark)));
    if let Some(error) = matcher.get_error() {
        let bounded = ["too big", "too large", "limit", "fuel"].iter().any(|part| error.contains(part));
        assert!(bounded, "the grammar of a schema does not compile: {error}");
        return;
    }
    let call = format!("server.{}(", signature.name);
    matcher.consume_tokens(&call.bytes().map(u32::from).collect::<Vec<_>>()).expect("the tool can be called");
    let program = compile(&format!("{call}1, 'a', [2])\n"), &LIMITS).expect("a call compiles");
    Vm::new(LIMITS).start(program, &[signature]);
}
