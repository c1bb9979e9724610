//! `mote script`: programs without a model.

use std::fs;

use expect_test::{Expect, expect};

use crate::program::Program;

fn check(command: &str, source: &str, expected: Expect) {
    let program = Program::new();
    fs::write(program.root().join("program.py"), source).unwrap();
    expected.assert_eq(&program.run(&["script", command, "program.py"]));
}

#[test]
fn run_prints_exactly_what_the_program_prints() {
    check(
        "run",
        "for i in range(3):\n    print(i, end=' ')\nprint()\n",
        expect![[r#"
        exit 0
        -- stdout
        0 1 2 
    "#]],
    );
}

#[test]
fn a_failure_keeps_what_was_printed_and_shows_its_place() {
    check(
        "run",
        "print('before')\nx = 1 // 0\n",
        expect![[r#"
        exit 1
        -- stdout
        before
        -- stderr
        line 2: ZeroDivisionError: integer division or modulo by zero
            x = 1 // 0
                  ^
    "#]],
    );
}

#[test]
fn a_program_that_never_ends_reaches_a_limit() {
    check(
        "run",
        "while True:\n    pass\n",
        expect![[r#"
        exit 1
        -- stderr
        line 1: fuel limit reached: 5000001 of 5000000
            while True:
            ^
        hint: loop over fewer items
    "#]],
    );
}

#[test]
fn check_says_nothing_about_a_good_program_and_shows_a_bad_one() {
    check(
        "check",
        "print(1)\n",
        expect![[r#"
        exit 0
    "#]],
    );
    check(
        "check",
        "x = = 1\n",
        expect![[r#"
        exit 1
        -- stderr
        line 1: expected a value, found `=`
            x = = 1
                ^
        hint: write `==` to compare
    "#]],
    );
    check(
        "check",
        "class A:\n    pass\n",
        expect![[r#"
        exit 1
        -- stderr
        line 1: `class` is not part of the language
            class A:
            ^
        hint: use a dict: {"name": value}, read as d.name
    "#]],
    );
}

#[test]
fn json_carries_output_answer_and_error() {
    let program = Program::new();
    fs::write(program.root().join("good"), "print(1)\nanswer(1 + 1)\nprint(2)\n").unwrap();
    fs::write(program.root().join("bad"), "print(1)\nprint(y)\n").unwrap();
    expect![[r#"
        exit 0
        -- stdout
        {"ok":true,"printed":"1\n","answer":2}
    "#]]
    .assert_eq(&program.run(&["script", "run", "good", "--json"]));
    expect![[r#"
        exit 1
        -- stdout
        {"ok":false,"printed":"1\n","error":{"kind":"exception","exception":"NameError","line":2,"column":7,"message":"name 'y' is not defined","hint":"assign it first; the servers are fs, system, time, math, text, data, notes","limit":null,"used":null}}
        -- stderr
        line 2: NameError: name 'y' is not defined
            print(y)
                  ^
        hint: assign it first; the servers are fs, system, time, math, text, data, notes
    "#]].assert_eq(&program.run(&["script", "run", "bad", "--json"]));
}

#[test]
fn tools_are_called_and_their_failures_are_exceptions() {
    check(
        "run",
        "print(math.sqrt(16))\n",
        expect![[r#"
        exit 0
        -- stdout
        4
    "#]],
    );
    check(
        "run",
        "try:\n    fs.read(path='nowhere')\nexcept Exception as e:\n    print('caught')\n",
        expect![[r#"
        exit 0
        -- stdout
        caught
    "#]],
    );
    check(
        "run",
        "find('a tool')\n",
        expect![[r#"
        exit 1
        -- stderr
        line 1: ToolError: only `mote run` has a session for this move: find
            find('a tool')
            ^
    "#]],
    );
}

#[test]
fn a_program_that_is_not_there() {
    expect![[r#"
        exit 2
        -- stderr
        mote: cannot read the program (No such file or directory (os error 2)): nowhere.py
    "#]]
    .assert_eq(&Program::new().run(&["script", "run", "nowhere.py"]));
}
