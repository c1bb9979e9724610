//! What a model or a person is told who writes what the language does not have, or has a slip: one table to read through.

use expect_test::expect;
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
    expect![[r#"
        | import os
          line 1: `import` is not part of the language
              import os
              ^
          hint: use the tools for files, such as fs.list(path="..") and fs.read(path="..")

        | from datetime import datetime
          line 1: `from` is not part of the language
              from datetime import datetime
              ^
          hint: use the tools for time, such as time.now()

        | import json
        | print(json.dumps(1))
          line 1: `import` is not part of the language
              import json
              ^
          hint: delete the line: servers and built-ins are there by name

        | with open('a.txt') as f:
        |     text = f.read()
          line 1: `with` is not part of the language
              with open('a.txt') as f:
              ^
          hint: call the tool directly: text = fs.read(path="..")

        | text = open('a.txt').read()
          line 1: NameError: name 'open' is not defined
              text = open('a.txt').read()
                     ^
          hint: read files with a tool, such as fs.read(path="..")

        | class Point:
        |     x = 1
          line 1: `class` is not part of the language
              class Point:
              ^
          hint: use a dict: {"name": value}, read as d.name

        | async def f():
        |     pass
          line 1: `async` and `await` are not part of the language
              async def f():
              ^
          hint: call the tool directly: x = server.tool(..)

        | x = await fs.read(path='a')
          line 1: `await` is not part of the language
              x = await fs.read(path='a')
                  ^
          hint: call the tool directly: x = server.tool(..)

        | def f():
        |     yield 1
          line 2: `yield` is not part of the language
                  yield 1
                  ^
          hint: collect the values in a list and return it

        | x = (yield 1)
          line 1: `yield` is not part of the language
              x = (yield 1)
                   ^
          hint: collect the values in a list and return it

        | if (n := 3) > 2:
        |     print(n)
          line 1: `:=` is not part of the language
              if (n := 3) > 2:
                    ^
          hint: assign on a line of its own

        | @cache
        | def f():
        |     pass
          line 1: decorators are not part of the language
              @cache
              ^
          hint: call the function directly

        | nonlocal x
          line 1: `nonlocal` is not part of the language
              nonlocal x
              ^
          hint: return the value, or use `global`

        | match x:
        |     case 1:
        |         pass
          line 1: expected the end of the line, found `x`
              match x:
                    ^
          hint: write if, elif and else

        | def f():
        |     def g():
        |         pass
          line 2: `def` inside a function is not part of the language
                  def g():
                  ^
          hint: move it to the top of the program and pass what it needs

        | b'abc'
          line 1: bytes literals are not part of the language
              b'abc'
              ^
          hint: write a string without the `b`

        | print 'hello'
          line 1: expected the end of the line, found a string
              print 'hello'
                    ^
          hint: write print(..)

        | exec 'x = 1'
          line 1: expected the end of the line, found a string
              exec 'x = 1'
                   ^
          hint: write the statements themselves

        | def f(a, /, b):
        |     pass
          line 1: `/` in parameters is not part of the language
              def f(a, /, b):
                       ^
          hint: leave it out

        | def f(a, *, b):
        |     pass
          line 1: a bare `*` in parameters is not part of the language
              def f(a, *, b):
                       ^
          hint: leave it out

        | x = 3j
          line 1: number runs into a letter: `j`
              x = 3j
                   ^
          hint: put an operator or a space between the two; a name starts with a letter

        | print('a', file=sys.stderr)
          line 1: NameError: name 'sys' is not defined
              print('a', file=sys.stderr)
                              ^
          hint: print(..) is the only output; answer(..) ends the task

        | sys.exit(1)
          line 1: NameError: name 'sys' is not defined
              sys.exit(1)
              ^
          hint: print(..) is the only output; answer(..) ends the task

        | os.path.join('a', 'b')
          line 1: NameError: name 'os' is not defined
              os.path.join('a', 'b')
              ^
          hint: use the tools for files, such as fs.list(path="..") and fs.read(path="..")

        | datetime.now()
          line 1: NameError: name 'datetime' is not defined
              datetime.now()
              ^
          hint: use the tools for time, such as time.now()

        | re.findall('a', 'banana')
          line 1: NameError: name 're' is not defined
              re.findall('a', 'banana')
              ^
          hint: use the methods of strings, or the tools of `text`

        | asyncio.gather(1, 2)
          line 1: NameError: name 'asyncio' is not defined
              asyncio.gather(1, 2)
              ^
          hint: call the tools one after the other: a = x.f(), b = y.g()

        | requests.get('http://example.org')
          line 1: NameError: name 'requests' is not defined
              requests.get('http://example.org')
              ^
          hint: only tools reach outside: find("why and what for") looks for one

        | subprocess.run(['ls'])
          line 1: NameError: name 'subprocess' is not defined
              subprocess.run(['ls'])
              ^
          hint: only tools reach outside: find("why and what for") looks for one

        | random.choice([1, 2])
          line 1: NameError: name 'random' is not defined
              random.choice([1, 2])
              ^
          hint: there is no chance in a program: choose by a rule

        | Path('a.txt').read_text()
          line 1: NameError: name 'Path' is not defined
              Path('a.txt').read_text()
              ^
          hint: use the tools for files, such as fs.list(path="..") and fs.read(path="..")

        | collections.Counter('abc')
          line 1: NameError: name 'collections' is not defined
              collections.Counter('abc')
              ^
          hint: use a dict: counts[k] = counts.get(k, 0) + 1

        | Counter('abc')
          line 1: NameError: name 'Counter' is not defined
              Counter('abc')
              ^
          hint: use a dict: counts[k] = counts.get(k, 0) + 1

        | defaultdict(list)
          line 1: NameError: name 'defaultdict' is not defined
              defaultdict(list)
              ^
          hint: use a dict: counts[k] = counts.get(k, 0) + 1

        | input('name? ')
          line 1: NameError: name 'input' is not defined
              input('name? ')
              ^
          hint: the program cannot ask: use what the task says

        | eval('1 + 1')
          line 1: NameError: name 'eval' is not defined
              eval('1 + 1')
              ^
          hint: write the statements themselves

        | exit()
          line 1: NameError: name 'exit' is not defined
              exit()
              ^
          hint: answer(..) ends the task, raise ends the program

        | frozenset([1])
          line 1: NameError: name 'frozenset' is not defined
              frozenset([1])
              ^
          hint: write set(..) or tuple(..)

        | issubclass(int, object)
          line 1: NameError: name 'issubclass' is not defined
              issubclass(int, object)
              ^
          hint: write isinstance(x, int), or name the exception in `except`

        | isinstance(1, object)
          line 1: NameError: name 'object' is not defined
              isinstance(1, object)
                            ^
          hint: there are no classes: use a dict and functions

        | globals()
          line 1: NameError: name 'globals' is not defined
              globals()
              ^
          hint: show("server.tool") shows what can be called

        | id(1)
          line 1: NameError: name 'id' is not defined
              id(1)
              ^
          hint: compare with == instead

        | hash('a')
          line 1: NameError: name 'hash' is not defined
              hash('a')
              ^
          hint: compare with == instead

        | bytes(3)
          line 1: NameError: name 'bytes' is not defined
              bytes(3)
              ^
          hint: use str

        | sleep(1)
          line 1: NameError: name 'sleep' is not defined
              sleep(1)
              ^
          hint: a program cannot wait

        | self.x = 1
          line 1: NameError: name 'self' is not defined
              self.x = 1
              ^
          hint: there are no classes: use a dict and functions

        | x++
          line 1: expected a value, found the end of the line
              x++
                 ^
          hint: write `x += 1` or `x -= 1`

        | x--
          line 1: expected a value, found the end of the line
              x--
                 ^
          hint: write `x += 1` or `x -= 1`

        | x = 1
        | x++
        | print(x)
          line 2: expected a value, found the end of the line
              x++
                 ^
          hint: write `x += 1` or `x -= 1`

        | a = 1 && 2
          line 1: no such operator: `&&`
              a = 1 && 2
                    ^
          hint: write `and`

        | a = 1 || 2
          line 1: no such operator: `||`
              a = 1 || 2
                    ^
          hint: write `or`

        | if !True:
        |     pass
          line 1: unexpected character: `!`
              if !True:
                 ^
          hint: write `not x` or `!=`

        | x = true
          line 1: NameError: name 'true' is not defined
              x = true
                  ^
          hint: write True

        | x = null
          line 1: NameError: name 'null' is not defined
              x = null
                  ^
          hint: write None

        | x = undefined
          line 1: NameError: name 'undefined' is not defined
              x = undefined
                  ^
          hint: write None

        | let x = 1
          line 1: expected the end of the line, found `x`
              let x = 1
                  ^
          hint: leave the word out: x = 1

        | const x = 1
          line 1: expected the end of the line, found `x`
              const x = 1
                    ^
          hint: leave the word out: x = 1

        | var x = 1;
          line 1: expected the end of the line, found `x`
              var x = 1;
                  ^
          hint: leave the word out: x = 1

        | function f() {
        | }
          line 1: expected the end of the line, found `f`
              function f() {
                       ^
          hint: write def f(..):

        | if (x) {
        |     print(x)
        | }
          line 1: expected `:` after the condition, found `{`
              if (x) {
                     ^
          hint: write `:` and indent the block by four spaces

        | x = 1 ? 2 : 3
          line 1: unexpected character: `?`
              x = 1 ? 2 : 3
                    ^
          hint: write `a if condition else b`

        | [1, 2].map(x => x + 1)
          line 1: expected a value, found `>`
              [1, 2].map(x => x + 1)
                            ^
          hint: write `lambda x: ..`

        | [1, 2].length
          line 1: AttributeError: 'list' object has no attribute 'length'
              [1, 2].length
                     ^
          hint: write len(x)

        | [1, 2].push(3)
          line 1: AttributeError: 'list' object has no attribute 'push'
              [1, 2].push(3)
                     ^
          hint: lists have append, sets have add; a str is joined with +

        | 'abc'.length()
          line 1: AttributeError: 'str' object has no attribute 'length'
              'abc'.length()
                    ^
          hint: write len(x)

        | 'abc'.toUpperCase()
          line 1: AttributeError: 'str' object has no attribute 'toUpperCase'
              'abc'.toUpperCase()
                    ^
          hint: write x.upper()

        | 'abc'.contains('a')
          line 1: AttributeError: 'str' object has no attribute 'contains'
              'abc'.contains('a')
                    ^
          hint: write: if key in x

        | {'a': 1}.has_key('a')
          line 1: AttributeError: 'dict' object has no attribute 'has_key'
              {'a': 1}.has_key('a')
                       ^
          hint: write: if key in x; the keys are "a"

        | print(`hello`)
          line 1: unexpected character: ```
              print(`hello`)
                    ^
          hint: write f"{name}" to put a value into a string

        | console.log('x')
          line 1: NameError: name 'console' is not defined
              console.log('x')
              ^
          hint: write print(..)

        | // a comment
          line 1: expected a value, found `//`
              // a comment
              ^
          hint: write `#` before a comment

        | x = 1 === 1
          line 1: unexpected `=` in a comparison
              x = 1 === 1
                      ^
          hint: write `==`

        | x = a ?? b
          line 1: unexpected character: `?`
              x = a ?? b
                    ^
          hint: write `a if condition else b`

        | for (i = 0; i < 3; i++) print(i)
          line 1: expected `)` after the expression, found `=`
              for (i = 0; i < 3; i++) print(i)
                     ^
          hint: write `)` here

        | for i in 1..3:
        |     print(i)
          line 1: expected `:` after the `for` line, found `0.3`
              for i in 1..3:
                         ^
          hint: end the line with `:`, the block below is indented by four spaces

        | try:
        |     pass
        | catch e:
        |     pass
          line 1: `try` without `except` or `finally`
              try:
              ^
          hint: add `except Exception as e:` below

        | throw ValueError('x')
          line 1: expected the end of the line, found `ValueError`
              throw ValueError('x')
                    ^
          hint: write raise ValueError("why")

        | if x:
        |     pass
        | else if y:
        |     pass
          line 3: expected `:` after `else`, found `if`
              else if y:
                   ^
          hint: write `elif`

        | if x then print(x)
          line 1: expected `:` after the condition, found `then`
              if x then print(x)
                   ^
          hint: end the line with `:`, the block below is indented by four spaces

        | switch x:
        |     pass
          line 1: expected the end of the line, found `x`
              switch x:
                     ^
          hint: write if, elif and else

        | x = [1, 2, 3
        | print(x)
          line 1: bracket is never closed: `[`
              x = [1, 2, 3
                  ^
          hint: close it with `]`

        | if x = 1:
        |     pass
          line 1: expected `:` after the condition, found `=`
              if x = 1:
                   ^
          hint: write `==` to compare

        | if x > 1
        |     pass
          line 1: expected `:` after the condition, found the end of the line
              if x > 1
                      ^
          hint: end the line with `:`, the block below is indented by four spaces

        | for x in [1, 2]
        |     print(x)
          line 1: expected `:` after the `for` line, found the end of the line
              for x in [1, 2]
                             ^
          hint: end the line with `:`, the block below is indented by four spaces

        | def f(x)
        |     return x
          line 1: expected `:` after the parameters, found the end of the line
              def f(x)
                      ^
          hint: end the line with `:`, the block below is indented by four spaces

        | while True print(1)
          line 1: expected `:` after the condition, found `print`
              while True print(1)
                         ^
          hint: end the line with `:`, the block below is indented by four spaces

        | x = 'abc
          line 1: string is never closed
              x = 'abc
                  ^
          hint: end it with '

        | x = "it's
          line 1: string is never closed
              x = "it's
                  ^
          hint: end it with "

        | x = (1, 2
          line 1: bracket is never closed: `(`
              x = (1, 2
                  ^
          hint: close it with `)`

        | x = 1)
          line 1: nothing to close with `)`
              x = 1)
                   ^
          hint: delete it, or open the bracket before

        | print('a' 1)
          line 1: expected `)` after the arguments, found `1`
              print('a' 1)
                        ^
          hint: put a comma or an operator between the two

        |   x = 1
          line 1: unexpected indentation
                x = 1
                ^
          hint: start the line at the left margin

        | if True:
        | print(1)
          line 1: expected an indented block after the condition
              if True:
                      ^
          hint: indent the block by four spaces, or write `pass`

        | if True:
        |     x = 1
        |   y = 2
          line 3: indentation fits no outer block
                y = 2
                ^
          hint: indent each block by four spaces

        | 5 = x
          line 1: cannot assign to this
              5 = x
              ^
          hint: put the name on the left and the value on the right

        | f() = 1
          line 1: cannot assign to this
              f() = 1
              ^
          hint: put the name on the left: x = f(..)

        | x + 1 = 2
          line 1: cannot assign to this
              x + 1 = 2
                ^
          hint: put a name on the left of `=`

        | x = = 2
          line 1: expected a value, found `=`
              x = = 2
                  ^
          hint: write `==` to compare

        | x =
          line 1: expected a value, found the end of the line
              x =
                 ^
          hint: finish the line: a value is missing at its end

        | x = 012
          line 1: number starts with a zero: `012`
              x = 012
                  ^
          hint: write it without the zero, or as a string

        | x = 99999999999999999999
          line 1: whole number does not fit 64 bits
              x = 99999999999999999999
                  ^
          hint: write it as a float, such as 1e20

        | print(-9223372036854775808)
          -9223372036854775808

        | f'{x'
          line 1: field of the f-string is never closed: `{`
              f'{x'
                 ^
          hint: write f"{x}" or f"{x:.2f}"

        | f'{}'
          line 1: empty field in an f-string
              f'{}'
                 ^
          hint: write `{{` for the character

        | f'{x!z}'
          line 1: unknown conversion in an f-string
              f'{x!z}'
                    ^
          hint: write `!r` or `!s`

        | f'}'
          line 1: single `}` in an f-string
              f'}'
                ^
          hint: write `}}` for the character

        | return 1
          line 1: `return` outside of a function
              return 1
              ^
          hint: write answer(..) to end the task

        | break
          line 1: `break` outside of a loop
              break
              ^
          hint: put it inside of a `for` or `while`; raise ends the program

        | lambda x: return x
          line 1: expected a value, found `return`
              lambda x: return x
                        ^
          hint: the word is reserved: choose another name

        | x = [i for i in]
          line 1: expected a value, found `]`
              x = [i for i in]
                             ^
          hint: put a value, a name or a call here

        | dict = {a: 1
          line 1: bracket is never closed: `{`
              dict = {a: 1
                     ^
          hint: close it with `}`

        | global x = 1
          line 1: expected the end of the line, found `=`
              global x = 1
                       ^
          hint: assign on a line of its own

        | print(“hello”)
          line 1: unexpected character: `“`
              print(“hello”)
                    ^
          hint: use straight quotes: "

        | raise
          line 1: `raise` with nothing to raise
              raise
              ^
          hint: write raise ValueError("why")

        | raise 'text'
          line 1: TypeError: exceptions must derive from BaseException
              raise 'text'
              ^
          hint: write raise ValueError("why")

        | del f()
          line 1: cannot delete this
              del f()
                  ^
          hint: delete a name, an item or a slice

        | files = fs.list(path='.')
        | files.name
          line 2: AttributeError: 'list' object has no attribute 'name'
              files.name
                    ^
          hint: it is a list: loop over it, for x in xs: x.name; its shape is list[2] of {name: str, size: int}

        | files = fs.list(path='.')
        | files['name']
          line 2: TypeError: list indices must be integers or slices, not str
              files['name']
                   ^
          hint: it is a list: take an item first, such as xs[0]["name"], or loop over it

        | files = fs.list(path='.')
        | files[0]['nme']
          line 2: KeyError: 'nme'
              files[0]['nme']
                      ^
          hint: did you mean "name"? the keys are "name", "size"

        | files = fs.list(path='.')
        | files[0].szie
          line 2: AttributeError: 'dict' object has no attribute 'szie'
              files[0].szie
                       ^
          hint: did you mean "size"? the keys are "name", "size"

        | files = fs.list(path='.')
        | files[7]
          line 2: IndexError: list index out of range
              files[7]
                   ^
          hint: the index is 7, the length is 2

        | files = fs.list(path='.')
        | for name, size in files[0]:
        |     pass
          line 2: ValueError: too many values to unpack (expected 2)
              for name, size in files[0]:
                  ^
          hint: the value has 4 items; its shape is str[4]

        | files = fs.list(path='.')
        | a, b, c = files
          line 2: ValueError: not enough values to unpack (expected 3, got 2)
              a, b, c = files
              ^
          hint: the value has 2 items; its shape is list[2] of {name: str, size: int}

        | files = fs.list(path='.')
        | files.size + 1
          line 2: AttributeError: 'list' object has no attribute 'size'
              files.size + 1
                    ^
          hint: it is a list: loop over it, for x in xs: x.size; its shape is list[2] of {name: str, size: int}

        | files = fs.list(path='.')
        | print('n: ' + len(files))
          line 2: TypeError: can only concatenate str (not "int") to str
              print('n: ' + len(files))
                          ^
          hint: write f"{a}{b}", or str(b)

        | files = fs.list(path='.')
        | sum(files)
          line 2: TypeError: unsupported operand type(s) for +: 'int' and 'dict'
              sum(files)
              ^
          hint: take a key of the dict: d["key"]

        | files = fs.list(path='.')
        | sorted(files)
          line 2: TypeError: '<' not supported between instances of 'dict' and 'dict'
              sorted(files)
              ^
          hint: say by what: sorted(xs, key=lambda x: x.size)

        | files = fs.list(path='.')
        | max(files)
          line 2: TypeError: '>' not supported between instances of 'dict' and 'dict'
              max(files)
              ^
          hint: say by what: sorted(xs, key=lambda x: x.size)

        | files = fs.list(path='.')
        | ', '.join(files)
          line 2: TypeError: sequence item 0: expected str instance, dict found
              ', '.join(files)
                   ^
          hint: write sep.join(str(x) for x in xs)

        | files = fs.list(path='.')
        | int(files)
          line 2: TypeError: int() argument must be a string or a real number, not 'list'
              int(files)
              ^
          hint: its shape is list[2] of {name: str, size: int}

        | files = fs.list(path='.')
        | files()
          line 2: TypeError: 'list' object is not callable
              files()
              ^
          hint: its shape is list[2] of {name: str, size: int}

        | text = fs.read(path='a')
        | text.text
          line 2: AttributeError: 'str' object has no attribute 'text'
              text.text
                   ^
          hint: its shape is str[8]

        | text = fs.read(path='a')
        | text['text']
          line 2: TypeError: str indices must be integers or slices, not str
              text['text']
                  ^
          hint: it holds items by number: xs[0]

        | text = fs.read(path='a')
        | text.splt()
          line 2: AttributeError: 'str' object has no attribute 'splt'
              text.splt()
                   ^
          hint: did you mean `split`?

        | text = fs.read(path='a')
        | text.append('x')
          line 2: AttributeError: 'str' object has no attribute 'append'
              text.append('x')
                   ^
          hint: lists have append, sets have add; a str is joined with +

        | len(None)
          line 1: TypeError: object of type 'NoneType' has no len()
              len(None)
              ^
          hint: its shape is None

        | None.size
          line 1: AttributeError: 'NoneType' object has no attribute 'size'
              None.size
                   ^
          hint: the value is None: check what the call returned

        | None + 1
          line 1: TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'
              None + 1
                   ^
          hint: the value is None: check what the call returned

        | 3()
          line 1: TypeError: 'int' object is not callable
              3()
              ^
          hint: its shape is int

        | 3[0]
          line 1: TypeError: 'int' object is not subscriptable
              3[0]
               ^
          hint: its shape is int

        | for x in 3:
        |     pass
          line 1: TypeError: 'int' object is not iterable
              for x in 3:
                       ^
          hint: write range(n) to count

        | 'a' - 'b'
          line 1: TypeError: unsupported operand type(s) for -: 'str' and 'str'
              'a' - 'b'
                  ^
          hint: turn the string into a number first: float(x)

        | 1 < 'a'
          line 1: TypeError: '<' not supported between instances of 'int' and 'str'
              1 < 'a'
              ^
          hint: turn the string into a number first: float(x)

        | round('3')
          line 1: TypeError: type str doesn't define __round__ method
              round('3')
              ^
          hint: turn it into a number first: float(x)

        | range(2.5)
          line 1: TypeError: 'float' object cannot be interpreted as an integer
              range(2.5)
              ^
          hint: write range(len(xs)) or range(int(x))

        | range('3')
          line 1: TypeError: 'str' object cannot be interpreted as an integer
              range('3')
              ^
          hint: write range(len(xs)) or range(int(x))

        | {[1]: 2}
          line 1: TypeError: unhashable type: 'list'
              {[1]: 2}
              ^
          hint: use a str, a number or a tuple as key

        | prnt(1)
          line 1: NameError: name 'prnt' is not defined
              prnt(1)
              ^
          hint: did you mean `print`?

        | Print(1)
          line 1: NameError: name 'Print' is not defined
              Print(1)
              ^
          hint: did you mean `print`?

        | fs.lst(path='.')
          line 1: AttributeError: server 'fs' has no tool 'lst'
              fs.lst(path='.')
                 ^
          hint: did you mean fs.list(path: str)?

        | fs.read()
          line 1: TypeError: fs.read() missing argument: path
              fs.read()
                 ^
          hint: write fs.read(path: str)

        | fs.read(pth='a')
          line 1: TypeError: fs.read() got an unexpected argument 'pth', did you mean `path`?
              fs.read(pth='a')
                 ^
          hint: write fs.read(path: str)

        | fs.read(path=3)
          line 1: TypeError: fs.read() argument 'path': expected str, got int
              fs.read(path=3)
                 ^
          hint: write fs.read(path: str)

        | fs.read('a', 'b')
          line 1: TypeError: fs.read() takes 1 arguments but 2 were given
              fs.read('a', 'b')
                 ^
          hint: write fs.read(path: str)

        | fs('a')
          line 1: TypeError: 'server' object is not callable
              fs('a')
              ^
          hint: call one of its tools: list, read

        | fs
          <server>

        | read(path='a')
          line 1: NameError: name 'read' is not defined
              read(path='a')
              ^
          hint: write fs.read(path: str)

        | list_files('.')
          line 1: NameError: name 'list_files' is not defined
              list_files('.')
              ^
          hint: did you mean `list`?

        | max()
          line 1: TypeError: max expected at least 1 argument, got 0
              max()
              ^
          hint: write max(xs) or max(a, b)

        | print(1, sepp='')
          line 1: TypeError: 'sepp' is an invalid keyword argument for print()
              print(1, sepp='')
              ^
          hint: write print(a, b, sep=" ", end="\n")

        | sorted([1], reversed=True)
          line 1: TypeError: sorted() got an unexpected keyword argument 'reversed'
              sorted([1], reversed=True)
              ^
          hint: write sorted(xs, key=lambda x: x.size, reverse=True)

        | len()
          line 1: TypeError: len() missing required argument: 'obj'
              len()
              ^
          hint: write len(obj)

        | len(1, 2)
          line 1: TypeError: len() takes at most 1 arguments (2 given)
              len(1, 2)
              ^
          hint: write len(obj)

        | def f(a, b=2):
        |     return a
        | f()
          line 3: TypeError: f() missing required argument: 'a'
              f()
              ^
          hint: write f(a, b)

        | def f(a, b=2):
        |     return a
        | f(1, 2, 3)
          line 3: TypeError: f() takes 2 positional arguments but 3 were given
              f(1, 2, 3)
              ^
          hint: write f(a, b)

        | def f(a, b=2):
        |     return a
        | f(c=1)
          line 3: TypeError: f() got an unexpected keyword argument 'c'
              f(c=1)
              ^
          hint: write f(a, b)

        | 'abc'.replace('a')
          line 1: TypeError: replace() missing required argument: 'new'
              'abc'.replace('a')
                    ^
          hint: write replace(old, new, count)

        | [1].index(2)
          line 1: ValueError: 2 is not in list
              [1].index(2)
                  ^
          hint: check first: if x in xs

        | [].pop()
          line 1: IndexError: pop from empty list
              [].pop()
                 ^
          hint: check first: if xs

        | json.load('a.json')
          line 1: AttributeError: 'module' object has no attribute 'load'
              json.load('a.json')
                   ^
          hint: did you mean `loads`?

        | json.loads('{bad')
          line 1: ValueError: malformed JSON: key must be a string at line 1 column 2
              json.loads('{bad')
                   ^

        | assert 1 == 2, 'not equal'
          line 1: AssertionError: not equal
              assert 1 == 2, 'not equal'
              ^

    "#]]
    .assert_eq(&out);
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
