//! Exceptions and kinds of errors.

use super::Row;

pub(super) const EXCEPTIONS: &[Row] = &[
    (
        "BaseException",
        "what all others are; `except:` alone catches the same",
        "try:\n    int(\"x\")\nexcept BaseException as e:\n    print(type(e), e)",
        "<class 'ValueError'> invalid literal for int() with base 10: 'x'",
    ),
    ("Exception", "the class to catch", "try:\n    1 / 0\nexcept Exception as e:\n    print(e)", "division by zero"),
    (
        "ArithmeticError",
        "ZeroDivisionError and OverflowError",
        "try:\n    1 / 0\nexcept ArithmeticError as e:\n    print(e)",
        "division by zero",
    ),
    (
        "ZeroDivisionError",
        "a division by zero",
        "1 // 0",
        "line 1: ZeroDivisionError: integer division or modulo by zero",
    ),
    (
        "OverflowError",
        "a whole number beyond 64 bits",
        "2 ** 63",
        "line 1: OverflowError: whole number does not fit 64 bits",
    ),
    (
        "LookupError",
        "IndexError and KeyError",
        "try:\n    [][0]\nexcept LookupError as e:\n    print(e)",
        "list index out of range",
    ),
    (
        "IndexError",
        "a place that a list, tuple or str does not have",
        "[1, 2][5]",
        "line 1: IndexError: list index out of range",
    ),
    ("KeyError", "a key that a dict does not have", "{\"name\": 1}[\"nme\"]", "line 1: KeyError: 'nme'"),
    ("NameError", "a name that nothing has", "lenght = 3\nlength", "line 2: NameError: name 'length' is not defined"),
    (
        "UnboundLocalError",
        "a local that is not set yet",
        "def f():\n    x += 1\nf()",
        "line 2: UnboundLocalError: cannot access local variable 'x' where it is not associated with a value",
    ),
    (
        "TypeError",
        "a value of a type that does not fit, or an argument that a tool does not take",
        "\"a\" + 1",
        "line 1: TypeError: can only concatenate str (not \"int\") to str",
    ),
    (
        "ValueError",
        "a value that does not fit",
        "int(\"3.5\")",
        "line 1: ValueError: invalid literal for int() with base 10: '3.5'",
    ),
    (
        "AttributeError",
        "an attribute or method that a value does not have",
        "\"a\".size",
        "line 1: AttributeError: 'str' object has no attribute 'size'",
    ),
    (
        "RuntimeError",
        "for programs to raise; RecursionError and NotImplementedError belong to it",
        "raise RuntimeError(\"stopped\")",
        "line 1: RuntimeError: stopped",
    ),
    (
        "RecursionError",
        "for programs to raise; calls too deep are a limit",
        "raise RecursionError",
        "line 1: RecursionError",
    ),
    (
        "NotImplementedError",
        "for programs to raise",
        "raise NotImplementedError(\"later\")",
        "line 1: NotImplementedError: later",
    ),
    ("AssertionError", "an `assert` that does not hold", "assert False", "line 1: AssertionError"),
    ("StopIteration", "`next` without more items and without a default", "next(iter([]))", "line 1: StopIteration"),
    ("OSError", "what tools raise for files and devices", "raise OSError(\"disk full\")", "line 1: OSError: disk full"),
    (
        "FileNotFoundError",
        "an OSError: there is no such file",
        "raise FileNotFoundError(\"a.txt\")",
        "line 1: FileNotFoundError: a.txt",
    ),
    (
        "PermissionError",
        "an OSError: not allowed",
        "raise PermissionError(\"a.txt\")",
        "line 1: PermissionError: a.txt",
    ),
    ("TimeoutError", "an OSError: it took too long", "raise TimeoutError(\"5 s\")", "line 1: TimeoutError: 5 s"),
    (
        "ConnectionError",
        "an OSError: no connection",
        "raise ConnectionError(\"refused\")",
        "line 1: ConnectionError: refused",
    ),
    (
        "ToolError",
        "a tool call that failed; `e.kind` says how",
        "try:\n    fs.read(path=\"secret\")\nexcept ToolError as e:\n    print(e.kind, e)",
        "denied not allowed: secret",
    ),
];

pub(super) const KINDS: &[Row] = &[
    ("syntax", "the source is no program", "x = (1 + 2", "line 1: bracket is never closed: `(`"),
    (
        "unsupported",
        "it is Python that the language leaves out",
        "class A: pass",
        "line 1: `class` is not part of the language",
    ),
    ("exception", "nothing caught an exception", "1 / 0", "line 1: ZeroDivisionError: division by zero"),
    (
        "limit",
        "a bound was reached; it says limit and used",
        "while True:\n    pass",
        "line 1: fuel limit reached: 5000001 of 5000000",
    ),
];
