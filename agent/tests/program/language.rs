//! `mote script fmt|explain|repl|help`: the language for people.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use expect_test::{Expect, expect};

use crate::program::Program;

/// Long enough for a busy machine to start a process.
const PATIENCE: Duration = Duration::from_secs(20);

const UGLY: &str = "#why\nx=fs.list( path = '.' )\nif len(x)>1 : print('many',len(x));print( x[0] . name )\n";

fn typed(program: &Program, arguments: &[&str], lines: &str) -> String {
    let mut child =
        program.command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    program.show(&child.wait_with_output().unwrap())
}

fn repl(lines: &str, expected: Expect) {
    expected.assert_eq(&typed(&Program::new(), &["script", "repl"], lines));
}

#[test]
fn fmt_rewrites_shows_a_difference_and_is_content_with_its_own_work() {
    let program = Program::new();
    let file = program.root().join("a.py");
    fs::write(&file, UGLY).unwrap();
    expect![[r#"
        exit 1
        -- stdout
        --- a.py
        +++ canonical
        @@ -1,3 +1,5 @@
        -#why
        -x=fs.list( path = '.' )
        -if len(x)>1 : print('many',len(x));print( x[0] . name )
        +# why
        +x = fs.list(path=".")
        +if len(x) > 1:
        +    print("many", len(x))
        +    print(x[0].name)
    "#]]
    .assert_eq(&program.run(&["script", "fmt", "--check", "a.py"]));
    assert_eq!(fs::read_to_string(&file).unwrap(), UGLY);
    expect![[r#"
        exit 0
    "#]]
    .assert_eq(&program.run(&["script", "fmt", "a.py"]));
    expect![[r##"
        # why
        x = fs.list(path=".")
        if len(x) > 1:
            print("many", len(x))
            print(x[0].name)
    "##]]
    .assert_eq(&fs::read_to_string(&file).unwrap());
    expect![[r#"
        exit 0
    "#]]
    .assert_eq(&program.run(&["script", "fmt", "--check", "a.py"]));
    expect![[r#"
        exit 0
        -- stdout
        x = [1, 2]
    "#]]
    .assert_eq(&typed(&program, &["script", "fmt", "-"], "x=[1,2,]\n"));
    expect![[r#"
        exit 1
        -- stdout
        {"ok":false,"files":[{"file":"-","error":{"kind":"syntax","exception":null,"line":1,"column":5,"message":"expected a value, found `=`","hint":"write `==` to compare","limit":null,"used":null}}]}
        -- stderr
        -: line 1: expected a value, found `=`
            x = = 1
                ^
        hint: write `==` to compare
    "#]].assert_eq(&typed(&program, &["script", "fmt", "--json", "-"], "x = = 1\n"));
}

#[test]
fn explain_says_what_a_program_may_do() {
    let program = Program::new();
    fs::write(
        program.root().join("a.py"),
        "# tidy the notes\nfor f in fs.list(path=\".\"):\n    if f.name.endswith(\".tmp\"):\n        fs.write(path=f.name, txt=\"\")\nwhen = time.now(zone=3)\nfs.reed(path=\"a\")\nprint(wen, lines)\nlines = 1\nanswer(when.iso)\n",
    )
    .unwrap();
    expect![[r#"
        exit 0
        -- stdout
        Why: tidy the notes
        It calls
          fs.list on line 2, once, with path
              only reads, runs without asking
          fs.write on line 4, any number of times, with path
              missing: text
              wrong: no such argument: txt, did you mean `text`?
              write fs.write(path: str, text: str, append: bool = False)
              may change something, asks before it runs, and is denied where nobody can be asked
          time.now on line 5, once, with zone
              wrong: zone: expected str, got int
              write time.now(zone: str = "local")
              only reads, is denied
          fs.reed on line 6, once: there is no such tool
              did you mean fs.read(path: str, start: int = 1, lines: int = 500)?
        Its moves, which only a session of `mote run` acts on, apart from answer
          answer on line 9, once, with x
        Line 7 reads wen, which nothing sets: did you mean when?
        Line 7 reads lines, before it is set
        It leaves f, when, lines
        How long it takes depends on its loops; it is ended after 5000000 instructions
        Bounds: 202 of 65536 bytes of source, 41 of 50000 instructions, 16 MiB of values, 100 calls, 64 KiB printed
    "#]]
    .assert_eq(&program.run(&["script", "explain", "a.py", "--deny", "time.*"]));
    fs::write(program.root().join("b.py"), "print(1 + 2)\n").unwrap();
    expect![[r#"
        exit 0
        -- stdout
        It calls no tool: nothing outside of the program is read or changed
        It takes at most 8 instructions, the work inside of built-ins apart
        Bounds: 13 of 65536 bytes of source, 8 of 50000 instructions, 16 MiB of values, 100 calls, 64 KiB printed

        Instructions: line, place, instruction
        program: 8 instructions
            1     0  LoadCallee(0)  print
                  1  Const(0)  1
                  2  Const(1)  2
                  3  Binary(Add)
                  4  Call { n_plain: 1, n_named: 0, first: 0 }
                  5  Show
                  6  Const(2)  None
                  7  Return
    "#]]
    .assert_eq(&program.run(&["script", "explain", "b.py", "--bytecode"]));
    expect![[r#"
        exit 0
        -- stdout
        {"reason":[],"calls":[],"moves":[],"functions":[],"sets":[],"unset":[],"source_bytes":13,"instructions":8,"most_fuel":8,"cut":false,"limits":{"fuel":5000000,"bytes":16777216,"nesting":100,"frames":100,"calls":100,"gathered":16,"suspensions":100,"printed_bytes":65536,"source_bytes":65536,"instructions":50000},"ok":true}
    "#]].assert_eq(&program.run(&["script", "explain", "b.py", "--json"]));
}

#[test]
fn a_name_of_the_language_is_explained() {
    let program = Program::new();
    expect![[r#"
        exit 0
        -- stdout
        list.pop (methods of list and tuple)
          takes the last item out, or the one at a place
            xs = [1, 2, 3]
            print(xs.pop(), xs.pop(0), xs)
          prints
            3 1 [2]

        dict.pop (methods of dict)
          takes a key out and gives its value, or a default
            d = {"a": 1}
            print(d.pop("a"), d.pop("a", None))
          prints
            1 None

        set.pop (methods of set and float)
          takes an item out
            {7}.pop()
          prints
            7
    "#]]
    .assert_eq(&program.run(&["script", "help", "pop"]));
    expect![[r#"
        exit 2
        -- stderr
        mote: the language has nothing of this name: sortd
          hint: did you mean sorted?
    "#]]
    .assert_eq(&program.run(&["script", "help", "sortd"]));
    expect![[r#"
        exit 0
        -- stdout
        Statements:
           x = value  a, b = values  x += value  x: type = value  expression  if  for  while  break
           continue  pass  try  raise  assert  def  return  global  del  # comment  ;

        Expressions:
           None, True, False  numbers  strings  f-strings  lists  tuples  dicts  sets  x[i]
           x[a:b:c]  comprehensions  generator expressions  a if c else b  lambda  and  or  not  ==
           <  in  is  +  -  *  /  //  %  **  &  |  ^  a << b  a >> b  ~  f(x, y=1)

        Built-ins:
           abs  all  any  bin  bool  callable  chr  dict  divmod  enumerate  filter  float
           format  gather  getattr  hasattr  hex  int  isinstance  iter  len  list  map  max
           min  next  oct  ord  pow  print  range  repr  reversed  round  set  sorted  str
           sum  tuple  type  zip  json.dumps  json.loads

        Moves:
           load  show  find  reconfigure  answer

        Methods of str:
           capitalize  casefold  center  count  encode  endswith  expandtabs  find  format  index
           isalnum  isalpha  isascii  isdecimal  isdigit  isidentifier  islower  isnumeric  isspace
           istitle  isupper  join  ljust  lower  lstrip  partition  removeprefix  removesuffix
           replace  rfind  rindex  rjust  rpartition  rsplit  rstrip  split  splitlines
           startswith  strip  swapcase  title  upper  zfill

        Methods of list and tuple:
           append  clear  copy  count  extend  index  insert  pop  remove  reverse  sort  count
           index

        Methods of dict:
           clear  copy  fromkeys  get  items  keys  pop  popitem  setdefault  update  values

        Methods of set and float:
           add  clear  copy  difference  discard  intersection  isdisjoint  issubset  issuperset
           pop  remove  symmetric_difference  union  update  is_integer

        Exceptions:
           BaseException  Exception  ArithmeticError  ZeroDivisionError  OverflowError  LookupError
           IndexError  KeyError  NameError  UnboundLocalError  TypeError  ValueError  AttributeError
           RuntimeError  RecursionError  NotImplementedError  AssertionError  StopIteration  OSError
           FileNotFoundError  PermissionError  TimeoutError  ConnectionError  ToolError

        Kinds of errors:
           syntax  unsupported  exception  limit

        Limits:
           fuel  bytes  nesting  frames  calls  gathered  suspensions  printed_bytes  source_bytes
           instructions

        Differences to Python:
           int  lists at once  dict.name  servers and variables  moves and variables  sets  lambda
           except as  is  next  def  return  no traceback  limits  left out

        More about one: mote script help NAME
    "#]]
    .assert_eq(&program.run(&["script", "help"]));
}

#[test]
fn variables_live_on_and_a_failure_loses_nothing() {
    repl(
        "x = 20\nx + 1\ndef twice(n):\n    return 2 * n\ntwice(x)\nxs = [\n  1,\n  2,\n]\ny = 1 / 0\nprint(x, xs)\nlenght = 1\nlength\nfor n in xs:\n    print(n)\n\n    print(-n)\nelse:\n    print('end')\nanswer(x)\n:vars\n",
        expect![[r#"
            exit 1
            -- stdout
            21
            40
            20 [1, 2]
            1
            -1
            2
            -2
            end
            x: int = 20
            twice: function
            xs: list[2] of int
            lenght: int = 1
            n: int = 2
            -- stderr
            line 1: ZeroDivisionError: division by zero
                y = 1 / 0
                      ^
            line 1: NameError: name 'length' is not defined
                length
                ^
            hint: did you mean `lenght`?
            answer: 20
        "#]],
    );
}

#[test]
fn commands_show_tools_limits_and_save_a_program() {
    let program = Program::new();
    let lines = "x=1\nbad(\n)\nprint( 'a',x )\n:limits\n:tools fs.\n:save out.py\n:save out.py\n:nope\n:help upper\n:help\nprint('after', end='')\n:quit\nprint('never')\n";
    expect![[r#"
        exit 1
        -- stdout
        a 1
        fuel: 8 of 5000000
        bytes: 13531 of 16777216
        nesting: at most 100
        frames: at most 100
        calls: 0 of 100
        gathered: at most 16
        suspensions: 0 of 100
        printed_bytes: 4 of 65536
        source_bytes: at most 65536
        instructions: at most 50000
        fs.list(path: str = ".", pattern: str = "*", recursive: bool = False, kind: "any" | "file" | "folder" = "any")
        fs.read(path: str, start: int = 1, lines: int = 500)
        fs.head(path: str, lines: int = 10)
        fs.tail(path: str, lines: int = 10)
        fs.stat(path: str)
        fs.search(pattern: str, path: str = ".", files: str = "*", regex: bool = False)
        fs.largest(path: str = ".", limit: int = 10)
        fs.usage(path: str = ".")
        fs.write(path: str, text: str, append: bool = False)  (asks before it runs)
        saved 2 lines
        saved 2 lines
        str.upper (methods of str)
          all upper
            "abc".upper()
          prints
            ABC
        :help         these commands
        :help NAME    what the language has of this name: sorted, str.split, try
        :tools        the tools that can be called; with a word, those that have it
        :vars         the variables, what they hold and how big it is
        :limits       the bounds of an input, and what the last one used
        :save FILE    write what ran without failure to a file, as one program
        :quit         leave; so does Ctrl-D
        Ctrl-C breaks a running input, or drops what is typed. An empty line ends a block.
        after
        -- stderr
        line 1: NameError: name 'bad' is not defined
            bad(
            ^
        hint: assign it first; the servers are fs, system, time, math, text, data, notes
        mote: no such command: :nope
          hint: see what there is: :help
    "#]]
    .assert_eq(&typed(&program, &["script", "repl"], lines));
    expect![[r#"
        x = 1
        print("a", x)
    "#]]
    .assert_eq(&fs::read_to_string(program.root().join("out.py")).unwrap());
    expect![[r#"
        exit 1
        -- stderr
        mote: cannot save (File exists (os error 17)): out.py
        line 1: bracket is never closed: `(`
            x = (1,
                ^
        hint: close it with `)`
    "#]]
    .assert_eq(&typed(&program, &["script", "repl"], ":save out.py\nx = (1,\n"));
}

#[test]
fn the_rules_of_permission_are_those_of_run() {
    let program = Program::new();
    let lines = "fs.write(path='a.txt', text='hi')\n";
    expect![[r#"
        exit 1
        -- stderr
        line 1: ToolError: it may change something and nobody is there to ask: fs.write; a person can allow it: --allow "fs.write"
            fs.write(path='a.txt', text='hi')
               ^
    "#]].assert_eq(&typed(&program, &["script", "repl"], lines));
    expect![[r#"
        exit 0
        -- stdout
        {'path': 'a.txt', 'bytes_written': 2, 'size_bytes': 2, 'created': True, 'text': 'wrote 2 bytes to a.txt'}
    "#]]
    .assert_eq(&typed(&program, &["script", "repl", "--allow", "fs.write", "--writable", "."], lines));
    expect![[r#"
        exit 1
        -- stdout
        {"ok":true,"printed":"","answer":null}
        {"ok":true,"printed":"1\n","answer":null}
        {"ok":false,"printed":"","error":{"kind":"exception","exception":"AttributeError","line":1,"column":3,"message":"'int' object has no attribute 'y'","hint":"its shape is int","limit":null,"used":null}}
        {"ok":true,"command":"vars","text":"x: int = 1\n"}
        -- stderr
        line 1: AttributeError: 'int' object has no attribute 'y'
            x.y
              ^
        hint: its shape is int
    "#]].assert_eq(&typed(&program, &["script", "repl", "--json"], "x = 1\nx\nx.y\n:vars\n"));
    expect![[r#"
        exit 2
        -- stderr
        mote: no command, and no terminal to type programs at
          hint: run a file: mote script run FILE; read lines from a pipe: mote script repl
    "#]]
    .assert_eq(&program.run(&["script"]));
}

#[test]
fn a_program_may_come_from_a_pipe_and_waiting_for_one_can_be_interrupted() {
    let program = Program::new();
    let pipe = program.root().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut writer =
        Command::new("sh").args(["-c", "echo 'print(42)' > pipe"]).current_dir(program.root()).spawn().unwrap();
    expect![[r#"
        exit 0
        -- stdout
        42
    "#]]
    .assert_eq(&program.run(&["script", "run", "pipe"]));
    writer.wait().unwrap();
    for arguments in [["script", "run", "pipe"].as_slice(), &["script", "check", "-"], &["script", "repl"]] {
        let mut child = program
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        loop {
            sleep(Duration::from_millis(200));
            if let Some(status) = child.try_wait().unwrap() {
                assert_eq!(status.code(), Some(130), "{arguments:?}");
                break;
            }
            if started.elapsed() > Duration::from_millis(500) {
                assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
            }
            assert!(started.elapsed() < PATIENCE, "still there after {PATIENCE:?}: {arguments:?}");
        }
    }
}
