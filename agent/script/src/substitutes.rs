//! What to write in the place of what models know from Python's library and from other languages.
//!
//! Only for names that nothing else has: a variable, a server or a built-in of the name comes first.

const FILES: &str = "use the tools for files, such as fs.list(path=\"..\") and fs.read(path=\"..\")";
const TIME: &str = "use the tools for time, such as time.now()";
const OUTSIDE: &str = "only tools reach outside: find(\"why and what for\") looks for one";
const COUNT: &str = "use a dict: counts[k] = counts.get(k, 0) + 1";
const NO_CHANCE: &str = "there is no chance in a program: choose by a rule";
const REGEX: &str = "use the methods of strings, or the tools of `text`";
const DATA: &str = "use the tools for data, such as data.csv(path=\"..\")";
const SIDE_BY_SIDE: &str = "side by side: a, b = gather(server.tool(..), server.tool(..))";
const NO_TYPES: &str = "delete the line: annotations are ignored";

/// What to write for a module of Python, or for a name that such a module has.
pub(crate) fn module(name: &str) -> Option<&'static str> {
    Some(match name {
        "os" | "pathlib" | "Path" | "shutil" | "glob" | "io" | "tempfile" => FILES,
        "datetime" | "date" | "timedelta" | "calendar" | "zoneinfo" | "ZoneInfo" => TIME,
        "requests" | "urllib" | "httpx" | "aiohttp" | "socket" | "subprocess" | "http" => OUTSIDE,
        "collections" | "Counter" | "defaultdict" | "OrderedDict" => COUNT,
        "random" | "secrets" | "uuid" => NO_CHANCE,
        "re" | "regex" => REGEX,
        "csv" | "pandas" | "sqlite3" | "pd" | "numpy" | "np" => DATA,
        "asyncio" | "threading" | "concurrent" | "multiprocessing" => SIDE_BY_SIDE,
        "typing" | "dataclasses" | "abc" | "enum" | "__future__" => NO_TYPES,
        "sys" => "print(..) is the only output; answer(..) ends the task",
        "itertools" | "functools" | "operator" => "write a loop, a comprehension or sorted(xs, key=..)",
        _ => return None,
    })
}

/// What to write for a name that nothing has.
pub(crate) fn name(name: &str) -> Option<&'static str> {
    Some(match name {
        "null" | "nil" | "undefined" | "none" | "NULL" | "NaN" => "write None",
        "true" => "write True",
        "false" => "write False",
        "open" => "read files with a tool, such as fs.read(path=\"..\")",
        "input" => "the program cannot ask: use what the task says",
        "eval" | "exec" | "compile" => "write the statements themselves",
        "exit" | "quit" => "answer(..) ends the task, raise ends the program",
        "sleep" => "a program cannot wait",
        "frozenset" => "write set(..) or tuple(..)",
        "issubclass" => "write isinstance(x, int), or name the exception in `except`",
        "object" | "super" | "self" | "cls" | "property" | "staticmethod" => {
            "there are no classes: use a dict and functions"
        }
        "bytes" | "bytearray" | "memoryview" => "use str",
        "complex" => "use float",
        "slice" => "write xs[a:b:c]",
        "id" | "hash" => "compare with == instead",
        "console" | "echo" | "printf" | "println" | "puts" => "write print(..)",
        "dir" | "vars" | "globals" | "locals" | "help" => "show(\"server.tool\") shows what can be called",
        "Math" => "write abs, min, max, round or x ** 0.5",
        "JSON" => "write json.loads(text) or json.dumps(x)",
        "ascii" => "write repr(x)",
        _ => return module(name),
    })
}

/// What to write for an attribute or method that no value has.
pub(crate) fn attribute(name: &str) -> Option<&'static str> {
    Some(match name {
        "length" | "size" | "len" | "__len__" | "Length" => "write len(x)",
        "push" | "append" | "add" | "push_back" => "lists have append, sets have add; a str is joined with +",
        "has_key" | "contains" | "includes" | "has" | "hasOwnProperty" | "__contains__" => "write: if key in x",
        "toUpperCase" | "to_upper" | "upcase" | "toUpper" => "write x.upper()",
        "toLowerCase" | "to_lower" | "downcase" | "toLower" => "write x.lower()",
        "trim" => "write x.strip()",
        "toString" | "to_string" | "to_s" => "write str(x)",
        "substring" | "substr" => "write x[a:b]",
        "charAt" => "write x[i]",
        "indexOf" => "write x.find(..) on a str, x.index(..) on a list",
        "forEach" | "each" => "write for item in xs:",
        "map" | "filter" | "reduce" => "write [f(x) for x in xs if ..]",
        "iteritems" | "entries" => "write d.items()",
        "shift" => "write xs.pop(0)",
        "unshift" => "write xs.insert(0, x)",
        "toFixed" => "write f\"{x:.2f}\"",
        "decode" => "it is a str already",
        "to_dict" | "json" | "tolist" => "it is a plain value already",
        _ => return None,
    })
}

/// What to write for a word of another language that stands before a name.
pub(crate) fn statement(word: &str) -> Option<&'static str> {
    Some(match word {
        "print" => "write print(..)",
        "let" | "const" | "var" | "my" | "auto" => "leave the word out: x = 1",
        "int" | "float" | "str" | "bool" | "list" | "dict" => "leave the type out: x = 1",
        "function" | "func" | "fn" | "fun" => "write def f(..):",
        "throw" => "write raise ValueError(\"why\")",
        "catch" => "write except Exception as e:",
        "switch" | "match" | "case" => "write if, elif and else",
        "elseif" | "elsif" => "write elif",
        "foreach" => "write for x in xs:",
        "unless" => "write if not ..:",
        "until" => "write while not ..:",
        "do" => "write while ..:",
        "exec" => "write the statements themselves",
        "use" | "require" | "include" | "using" => "delete the line: servers and built-ins are there by name",
        "new" => "leave the word out",
        _ => return None,
    })
}
