//! Limits, and what differs from Python.

use super::Row;

pub(super) const LIMITS: &[Row] = &[
    (
        "fuel",
        "5,000,000 by default: instructions of a program; work inside a built-in counts by the element",
        "while True:\n    pass",
        "line 1: fuel limit reached: 5000001 of 5000000",
    ),
    (
        "bytes",
        "16,777,216 by default: all values, charged before they are made; those no longer reachable are collected. What the machine allocates stays under twice this and 64 KiB",
        "",
        "",
    ),
    (
        "nesting",
        "100 by default: depth of the source, and of values that are compared, printed or converted",
        "xs = []\nfor n in range(200):\n    xs = [xs]\nprint(xs)",
        "line 4: nesting of values limit reached: 101 of 100",
    ),
    (
        "frames",
        "100 by default: functions active at a time",
        "def f(n):\n    return f(n + 1)\nf(0)",
        "line 2: call depth limit reached: 101 of 100",
    ),
    (
        "calls",
        "100 by default: tool calls and moves of a program",
        "for n in range(101):\n    fs.list(path=\".\")",
        "line 2: tool call limit reached: 101 of 100",
    ),
    ("gathered", "16 by default: tool calls of one `gather`", "", ""),
    ("suspensions", "100 by default: times that a program stops for a call and hands out its state", "", ""),
    ("printed_bytes", "65,536 by default: output of a program; what fits is kept", "", ""),
    ("source_bytes", "65,536 by default: bytes of a program", "", ""),
    ("instructions", "50,000 by default: instructions that a program compiles to", "", ""),
];

pub(super) const DIFFERENCES: &[Row] = &[
    (
        "int",
        "is checked 64-bit; Python's has no end",
        "9223372036854775807 + 1",
        "line 1: OverflowError: whole number does not fit 64 bits",
    ),
    (
        "lists at once",
        "`enumerate zip map filter reversed`, the views of dicts and generator expressions give lists",
        "print(zip([1], [2]), {\"a\": 1}.keys())",
        "[(1, 2)] ['a']",
    ),
    (
        "dict.name",
        "`d.name` is `d[\"name\"]`; a key comes before a method where it is only read",
        "d = {\"size\": 3, \"items\": 4}\nprint(d.size, d.items, d.items())",
        "3 4 [('size', 3), ('items', 4)]",
    ),
    (
        "servers and variables",
        "a server's name may be a variable; its own methods come first, then the server's tools",
        "fs = fs.list(path=\".\")\nprint(len(fs), fs.list(path=\"a\")[0].name)",
        "2 a.txt",
    ),
    (
        "moves and variables",
        "a name that cannot be called yields to the move or built-in of that name",
        "len = len(\"abc\")\nprint(len, len([1]))",
        "3 1",
    ),
    ("sets", "keep the order of insertion; there is no frozenset", "{3, 1, 2}", "{3, 1, 2}"),
    (
        "lambda",
        "captures the locals around it by value; `def` captures nothing",
        "fs = [lambda: n for n in [1, 2]]\nfs[0]()",
        "1",
    ),
    (
        "except as",
        "the name stays bound after the block",
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    pass\ne",
        "division by zero",
    ),
    (
        "is",
        "is true for equal texts, and false for other equal but distinct values",
        "print(\"ab\" is \"a\" + \"b\", [1] is [1])",
        "True False",
    ),
    ("next", "takes a list, too: it gives the first item", "next([7, 8])", "7"),
    (
        "def",
        "not inside of another `def`",
        "def f():\n    def g():\n        pass",
        "line 2: `def` inside a function is not part of the language",
    ),
    (
        "return",
        "is refused in `finally`",
        "def f():\n    try:\n        pass\n    finally:\n        return 1",
        "line 5: `return` in a `finally` block is not part of the language",
    ),
    (
        "no traceback",
        "an exception that nothing catches ends the program with its line, and no traceback",
        "def f():\n    return 1 / 0\nf()",
        "line 2: ZeroDivisionError: division by zero",
    ),
    (
        "limits",
        "cannot be caught",
        "try:\n    while True:\n        pass\nexcept Exception:\n    print(\"never\")",
        "line 2: fuel limit reached: 5000001 of 5000000",
    ),
    (
        "left out",
        "what is not here is refused with what to write instead",
        "import os",
        "line 1: `import` is not part of the language",
    ),
];
