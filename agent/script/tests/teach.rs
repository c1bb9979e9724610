//! What a model or a person is told who writes what the language does not have, or has a slip: one table to read through.

use expect_test::expect_file;
use mote_script::{Limits, Signature, Step, Vm, compile};
use serde_json::{Value, json};
use std::fmt::Write;

const SLIPS: &[&str] = &[
    // What Python has and the language leaves out.
    "import os",
    "from datetime import datetime",
    "import json\nprint(json.dumps(1))",
    "with open('a.txt') as f:\n    text = f.read()",
    "text = open('a.txt').read()",
    "class Point:\n    x = 1",
    "async def f():\n    pass",
    "x = await fs.read(path='a')",
    "def f():\n    yield 1",
    "x = (yield 1)",
    "if (n := 3) > 2:\n    print(n)",
    "@cache\ndef f():\n    pass",
    "nonlocal x",
    "match x:\n    case 1:\n        pass",
    "def f():\n    def g():\n        pass",
    "b'abc'",
    "print 'hello'",
    "exec 'x = 1'",
    "def f(a, /, b):\n    pass",
    "def f(a, *, b):\n    pass",
    "x = 3j",
    "print('a', file=sys.stderr)",
    "sys.exit(1)",
    "os.path.join('a', 'b')",
    "datetime.now()",
    "re.findall('a', 'banana')",
    "asyncio.gather(1, 2)",
    "requests.get('http://example.org')",
    "subprocess.run(['ls'])",
    "random.choice([1, 2])",
    "Path('a.txt').read_text()",
    "collections.Counter('abc')",
    "Counter('abc')",
    "defaultdict(list)",
    "input('name? ')",
    "eval('1 + 1')",
    "exit()",
    "frozenset([1])",
    "issubclass(int, object)",
    "isinstance(1, object)",
    "globals()",
    "id(1)",
    "hash('a')",
    "bytes(3)",
    "sleep(1)",
    "self.x = 1",
    // Other languages.
    "x++",
    "x--",
    "x = 1\nx++\nprint(x)",
    "a = 1 && 2",
    "a = 1 || 2",
    "if !True:\n    pass",
    "x = true",
    "x = null",
    "x = undefined",
    "let x = 1",
    "const x = 1",
    "var x = 1;",
    "function f() {\n}",
    "if (x) {\n    print(x)\n}",
    "x = 1 ? 2 : 3",
    "[1, 2].map(x => x + 1)",
    "[1, 2].length",
    "[1, 2].push(3)",
    "'abc'.length()",
    "'abc'.toUpperCase()",
    "'abc'.contains('a')",
    "{'a': 1}.has_key('a')",
    "print(`hello`)",
    "console.log('x')",
    "// a comment",
    "x = 1 === 1",
    "x = a ?? b",
    "for (i = 0; i < 3; i++) print(i)",
    "for i in 1..3:\n    print(i)",
    "try:\n    pass\ncatch e:\n    pass",
    "throw ValueError('x')",
    "if x:\n    pass\nelse if y:\n    pass",
    "if x then print(x)",
    "switch x:\n    pass",
    "x = [1, 2, 3\nprint(x)",
    // Slips.
    "if x = 1:\n    pass",
    "if x > 1\n    pass",
    "for x in [1, 2]\n    print(x)",
    "def f(x)\n    return x",
    "while True print(1)",
    "x = 'abc",
    "x = \"it's",
    "x = (1, 2",
    "x = 1)",
    "print('a' 1)",
    "  x = 1",
    "if True:\nprint(1)",
    "if True:\n    x = 1\n  y = 2",
    "5 = x",
    "f() = 1",
    "x + 1 = 2",
    "x = = 2",
    "x =",
    "x = 012",
    "x = 99999999999999999999",
    "print(-9223372036854775808)",
    "f'{x'",
    "f'{}'",
    "f'{x!z}'",
    "f'}'",
    "return 1",
    "break",
    "lambda x: return x",
    "x = [i for i in]",
    "dict = {a: 1",
    "global x = 1",
    "print(“hello”)",
    "raise",
    "raise 'text'",
    "del f()",
    // Values.
    "files = fs.list(path='.')\nfiles.name",
    "files = fs.list(path='.')\nfiles['name']",
    "files = fs.list(path='.')\nfiles[0]['nme']",
    "files = fs.list(path='.')\nfiles[0].szie",
    "files = fs.list(path='.')\nfiles[7]",
    "files = fs.list(path='.')\nfor name, size in files[0]:\n    pass",
    "files = fs.list(path='.')\na, b, c = files",
    "files = fs.list(path='.')\nfiles.size + 1",
    "files = fs.list(path='.')\nprint('n: ' + len(files))",
    "files = fs.list(path='.')\nsum(files)",
    "files = fs.list(path='.')\nsorted(files)",
    "files = fs.list(path='.')\nmax(files)",
    "files = fs.list(path='.')\n', '.join(files)",
    "files = fs.list(path='.')\nint(files)",
    "files = fs.list(path='.')\nfiles()",
    "text = fs.read(path='a')\ntext.text",
    "text = fs.read(path='a')\ntext['text']",
    "text = fs.read(path='a')\ntext.splt()",
    "text = fs.read(path='a')\ntext.append('x')",
    "len(None)",
    "None.size",
    "None + 1",
    "3()",
    "3[0]",
    "for x in 3:\n    pass",
    "'a' - 'b'",
    "1 < 'a'",
    "round('3')",
    "range(2.5)",
    "range('3')",
    "{[1]: 2}",
    "prnt(1)",
    "Print(1)",
    "fs.lst(path='.')",
    "fs.read()",
    "fs.read(pth='a')",
    "fs.read(path=3)",
    "fs.read('a', 'b')",
    "fs('a')",
    "fs",
    "read(path='a')",
    "list_files('.')",
    "max()",
    "print(1, sepp='')",
    "sorted([1], reversed=True)",
    "len()",
    "len(1, 2)",
    "def f(a, b=2):\n    return a\nf()",
    "def f(a, b=2):\n    return a\nf(1, 2, 3)",
    "def f(a, b=2):\n    return a\nf(c=1)",
    "'abc'.replace('a')",
    "[1].index(2)",
    "[].pop()",
    "json.load('a.json')",
    "json.loads('{bad')",
    "assert 1 == 2, 'not equal'",
];

fn tools() -> Vec<Signature> {
    let schema = json!({"required": ["path"], "properties": {"path": {"type": "string"}}});
    ["list", "read"].into_iter().filter_map(|name| Signature::from_json_schema("fs", name, "", &schema).ok()).collect()
}

fn told(source: &str) -> String {
    let limits = Limits::default();
    let program = match compile(source, &limits) {
        Ok(program) => program,
        Err(error) => return error.report(source),
    };
    let mut vm = Vm::new(limits);
    let mut step = vm.start(program, &tools());
    loop {
        step = match step {
            Step::Call(call) if call.tool == "list" => {
                vm.resume(Ok(json!([{"name": "a", "size": 3}, {"name": "b", "size": 30}])))
            }
            Step::Call(_) => vm.resume(Ok(Value::from("one\ntwo\n"))),
            Step::Failed(error) => return vm.take_printed() + &error.report(source),
            _ => return vm.take_printed(),
        };
    }
}

#[test]
fn slips_are_answered_with_what_to_write() {
    let mut out = String::new();
    for source in SLIPS {
        let lines: String = source.lines().map(|line| format!("| {line}\n")).collect();
        let told: String = told(source).lines().map(|line| format!("  {line}\n")).collect();
        let _ = writeln!(out, "{lines}{told}");
    }
    expect_file!["teach.txt"].assert_eq(&out);
}

#[test]
fn every_refusal_says_what_to_write() {
    let silent: Vec<&str> = SLIPS
        .iter()
        .copied()
        .filter(|source| compile(source, &Limits::default()).is_err_and(|error| error.hint().is_none()))
        .collect();
    assert!(silent.is_empty(), "no hint: {silent:#?}");
}
