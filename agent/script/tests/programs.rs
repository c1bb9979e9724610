//! Programs with tool calls: what comes out, what goes in, what is printed.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use expect_test::{Expect, expect};
use mote_script::{CallError, Limits, Signature, Step, Vm, compile};
use serde_json::{Value, json};

fn tools() -> Vec<Signature> {
    let tool =
        |server: &str, name: &str, schema: Value| Signature::from_json_schema(server, name, "", &schema).unwrap();
    vec![
        tool("system", "disk", json!({"type": "object", "properties": {"path": {"type": "string", "default": "/"}}})),
        tool(
            "fs",
            "list",
            json!({"type": "object", "required": ["path"], "properties": {
                "path": {"type": "string"}, "recursive": {"type": "boolean", "default": false}}}),
        ),
        tool("fs", "read", json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}})),
        tool("time", "now", json!({"type": "object", "properties": {"zone": {"type": "string"}}})),
        tool(
            "weather",
            "forecast",
            json!({"type": "object", "required": ["city"], "properties": {
                "city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 3},
                "min-temp": {"type": ["number", "null"]}, "unit": {"enum": ["c", "f"], "default": "c"}}}),
        ),
    ]
}

fn result(server: &str, tool: &str, arguments: &serde_json::Map<String, Value>) -> Result<Value, CallError> {
    match (server, tool) {
        ("system", "disk") => Ok(json!({"free_gb": 12.5, "total_gb": 64})),
        ("fs", "list") => Ok(json!([{"name": "a", "size": 3}, {"name": "b", "size": 30}, {"name": "c", "size": 9}])),
        ("time", "now") => Ok(json!({"iso": "2026-01-02T03:04:05Z", "items": 4})),
        ("fs", "read") => {
            Err(CallError { kind: "denied".into(), message: format!("no access: {}", arguments["path"]) })
        }
        ("weather", _) => Ok(json!({"temp": -3.5})),
        _ => Ok(Value::Null),
    }
}

/// Runs a program through encode and decode at every call and writes down all that is seen.
fn log(source: &str) -> String {
    let limits = Limits::default();
    let mut vm = Vm::new(limits);
    let mut out = String::new();
    let program = match compile(source, &limits) {
        Ok(program) => program,
        Err(error) => return error.report(source),
    };
    let mut step = vm.start(program, &tools());
    loop {
        vm = Vm::decode(&vm.encode()).unwrap();
        out += &vm.take_printed();
        match step {
            Step::Call(call) => {
                out += &format!("-> {}.{}{}\n", call.server, call.tool, Value::Object(call.arguments.clone()));
                step = vm.resume(result(&call.server, &call.tool, &call.arguments));
            }
            Step::Calls(calls) => {
                for (mark, call) in ["=>"].into_iter().chain(std::iter::repeat("  ")).zip(&calls) {
                    out += &format!("{mark} {}.{}{}\n", call.server, call.tool, Value::Object(call.arguments.clone()));
                }
                let results = calls.iter().map(|call| result(&call.server, &call.tool, &call.arguments));
                step = vm.resume_all(results.collect());
            }
            Step::Done => return out,
            Step::Failed(error) => return out + &error.report(source),
        }
    }
}

fn check(source: &str, expected: Expect) {
    expected.assert_eq(&log(source));
}

#[test]
fn worked_examples() {
    check(
        "d = system.disk(path=\"/\")\nanswer(f\"{d.free_gb} GB free\")\n",
        expect![[r#"
            -> system.disk{"path":"/"}
            -> .answer{"x":"12.5 GB free"}
        "#]],
    );
    check(
        "files = fs.list(path='.')\nfor f in sorted(files, key=lambda f: f.size, reverse=True)[:2]:\n    print(f.name, f.size)\nanswer([f.name for f in files if f.size > 5], status='partial')",
        expect![[r#"
            -> fs.list{"path":"."}
            b 30
            c 9
            -> .answer{"x":["b","c"],"status":"partial"}
        "#]],
    );
}

#[test]
fn tool_calls_in_functions_keys_and_try() {
    check(
        "def size(name):\n    return fs.list(name)[0].size\nprint(sorted(['x', 'y'], key=size), max(['p'], key=lambda n: size(n)))\ntry:\n    fs.read(path='/etc/shadow')\nexcept ToolError as e:\n    print('caught', e.kind, e)\nfinally:\n    print('end')\n{f.name: f.size for f in fs.list('.')}",
        expect![[r#"
            -> fs.list{"path":"x"}
            -> fs.list{"path":"y"}
            -> fs.list{"path":"p"}
            ['x', 'y'] p
            -> fs.read{"path":"/etc/shadow"}
            caught denied no access: "/etc/shadow"
            end
            -> fs.list{"path":"."}
            {'a': 3, 'b': 30, 'c': 9}
        "#]],
    );
}

#[test]
fn servers_and_variables_do_not_fight() {
    check(
        "time = time.now()\nprint(time.iso, time.items, list(time.items()))\ntime = time.now(zone='UTC')\nanswer = time.iso\nanswer(answer)\nshow('fs.list', 'fs.read')",
        expect![[r#"
            -> time.now{}
            2026-01-02T03:04:05Z 4 [('iso', '2026-01-02T03:04:05Z'), ('items', 4)]
            -> time.now{"zone":"UTC"}
            -> .answer{"x":"2026-01-02T03:04:05Z"}
            -> .show{"tools":["fs.list","fs.read"]}
        "#]],
    );
}

#[test]
fn arguments_are_checked_before_the_call() {
    check(
        "for args in [{}, {'city': 3}, {'city': 'Oslo', 'days': 9}, {'city': 'Oslo', 'unit': 'k'}, {'cty': 'Oslo'}]:\n    try:\n        weather.forecast(**args)\n    except TypeError as e:\n        print(e)\nweather.forecast('Oslo', 2.0, min_temp=None, unit='f')\nweather.forecast('Oslo', days='2')",
        expect![[r#"
            weather.forecast() missing argument: city
            weather.forecast() argument 'city': expected str, got int
            weather.forecast() argument 'days': most is 7, got 9
            weather.forecast() argument 'unit': expected "c" | "f", got "k"
            weather.forecast() got an unexpected argument 'cty', did you mean `city`?
            -> weather.forecast{"city":"Oslo","days":2,"min-temp":null,"unit":"f"}
            line 7: TypeError: weather.forecast() argument 'days': expected int, got str
                weather.forecast('Oslo', days='2')
                        ^
            hint: write weather.forecast(city: str, days: int = 3, min_temp: float | None = None, unit: "c" | "f" = "c")"#]],
    );
}

#[test]
fn errors_teach() {
    for (source, expected) in [
        (
            "d = system.disk()\nprint(d.fre_gb)",
            expect![[r#"
                -> system.disk{}
                line 2: AttributeError: 'dict' object has no attribute 'fre_gb'
                    print(d.fre_gb)
                            ^
                hint: did you mean "free_gb"? the keys are "free_gb", "total_gb""#]],
        ),
        (
            "xs = fs.list(path='.')\nxs.name",
            expect![[r#"
                -> fs.list{"path":"."}
                line 2: AttributeError: 'list' object has no attribute 'name'
                    xs.name
                       ^
                hint: it is a list: loop over it, for x in xs: x.name; its shape is list[3] of {name: str, size: int}"#]],
        ),
        (
            "fs.lst('.')",
            expect![[r#"
                line 1: AttributeError: server 'fs' has no tool 'lst'
                    fs.lst('.')
                       ^
                hint: did you mean fs.list(path: str, recursive: bool = False)?"#]],
        ),
        (
            "x = wether.forecast(city='Oslo')",
            expect![[r#"
                line 1: NameError: name 'wether' is not defined
                    x = wether.forecast(city='Oslo')
                        ^
                hint: did you mean `weather`?"#]],
        ),
        (
            "print(1 +)",
            expect![[r#"
                line 1: expected a value, found `)`
                    print(1 +)
                             ^
                hint: put a value, a name or a call here"#]],
        ),
        (
            "import os",
            expect![[r#"
                line 1: `import` is not part of the language
                    import os
                    ^
                hint: use the tools for files, such as fs.list(path="..") and fs.read(path="..")"#]],
        ),
        (
            "while True:\n    pass",
            expect![[r#"
                line 1: fuel limit reached: 5000001 of 5000000
                    while True:
                    ^
                hint: loop over fewer items"#]],
        ),
        (
            "x = 'a'\nwhile True:\n    x = x + x",
            expect![[r#"
                line 3: memory limit reached: 29374202 of 16777216
                        x = x + x
                              ^
                hint: keep fewer or smaller values"#]],
        ),
    ] {
        check(source, expected);
    }
}

#[test]
fn variables_persist_and_have_shapes() {
    let limits = Limits::default();
    let mut vm = Vm::new(limits);
    let run = |vm: &mut Vm, source: &str| vm.start(compile(source, &limits).unwrap(), &[]);
    assert_eq!(run(&mut vm, "xs = [{'name': 'a', 'size': 1}]\ndef twice(x):\n    return 2 * x"), Step::Done);
    assert_eq!(run(&mut vm, "y = twice(21)\nt = (1, 'a', 2.5)\nn = None"), Step::Done);
    let shapes: Vec<String> = vm.variables().into_iter().map(|v| format!("{}: {}", v.name, v.shape)).collect();
    expect![[r#"
        xs: list[1] of {name: str, size: int}
        twice: function
        y: int
        t: (int, str, float)
        n: None"#]]
    .assert_eq(&shapes.join("\n"));
    assert_eq!(vm.variable_json("y"), Some(json!(42)));
    assert_eq!(vm.variable_json("xs"), Some(json!([{"name": "a", "size": 1}])));
    assert_eq!(vm.variable_json("twice"), None);
}

#[test]
fn calls_are_gathered_in_one_suspension_and_come_back_in_order() {
    check(
        "disk, files = gather(system.disk(), fs.list(path='.'))\nprint(disk.free_gb, len(files))\ncities = ['Oslo', 'Rome']\nxs = await asyncio.gather(*[weather.forecast(city=c) for c in cities if c])\nprint([x.temp for x in xs])\nprint(gather([system.disk() if cities else 1]), gather(), gather(1, 'a'), gather(len(cities), fs.list(path='x')[0].name))",
        expect![[r#"
            => system.disk{}
               fs.list{"path":"."}
            12.5 3
            => weather.forecast{"city":"Oslo"}
               weather.forecast{"city":"Rome"}
            [-3.5, -3.5]
            => system.disk{}
            -> fs.list{"path":"x"}
            [{'free_gb': 12.5, 'total_gb': 64}] [] [1, 'a'] [2, 'a']
        "#]],
    );
}

#[test]
fn the_first_gathered_failure_raises_or_all_are_results() {
    check(
        "try:\n    gather(system.disk(), fs.read(path='a'), fs.read(path='b'))\nexcept ToolError as e:\n    print(e.kind, e)\nxs = gather(fs.read(path='a'), system.disk(), return_exceptions=True)\nprint(xs)\nfor x in xs:\n    print(isinstance(x, Exception))\ngather(system.disk(), weather.forecast(cty='x'))",
        expect![[r#"
            => system.disk{}
               fs.read{"path":"a"}
               fs.read{"path":"b"}
            denied no access: "a"
            => fs.read{"path":"a"}
               system.disk{}
            [ToolError('no access: "a"'), {'free_gb': 12.5, 'total_gb': 64}]
            True
            False
            line 9: TypeError: weather.forecast() got an unexpected argument 'cty', did you mean `city`?
                gather(system.disk(), weather.forecast(cty='x'))
                                              ^
            hint: write weather.forecast(city: str, days: int = 3, min_temp: float | None = None, unit: "c" | "f" = "c")"#]],
    );
}

#[test]
fn gathering_is_bounded_and_its_misuse_is_taught() {
    check(
        "gather(*[system.disk() for i in range(17)])",
        expect![[r#"
        line 1: concurrent call limit reached: 17 of 16
            gather(*[system.disk() for i in range(17)])
            ^
        hint: gather fewer calls at a time"#]],
    );
    check(
        "gather(a=system.disk())",
        expect![[r#"
        line 1: `gather` takes calls, not named arguments
            gather(a=system.disk())
                            ^
        hint: write a, b = gather(server.tool(..), server.tool(..))"#]],
    );
    check(
        "def gather(x):\n    return x",
        expect![[r#"
        line 1: `gather` is built in and cannot be defined
            def gather(x):
            ^
        hint: choose another name"#]],
    );
    check(
        "async def f():\n    pass",
        expect![[r#"
        line 1: `async` is not part of the language
            async def f():
            ^
        hint: call tools directly; side by side: a, b = gather(server.tool(..), server.tool(..))"#]],
    );
    check(
        "asyncio.run(f())",
        expect![[r#"
        line 1: NameError: name 'asyncio' is not defined
            asyncio.run(f())
            ^
        hint: side by side: a, b = gather(server.tool(..), server.tool(..))"#]],
    );
}

#[test]
fn arguments_of_a_gathered_call_are_those_when_it_is_made() {
    check(
        "def grow(xs):\n    xs.append('c')\n    return 1\nxs = ['a']\nprint(gather(show(['x']), weather.forecast(city='é'), weather.forecast(city=str(xs), days=grow(xs))))",
        expect![[r#"
            -> .show{"tools":["x"]}
            => weather.forecast{"city":"é"}
               weather.forecast{"city":"['a']","days":1}
            [None, {'temp': -3.5}, {'temp': -3.5}]
        "#]],
    );
}
