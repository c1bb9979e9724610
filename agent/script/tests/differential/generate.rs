//! Random programs that mean something in Python: names hold values of the kind that their letter says, loops end, values
//! stay small. Some of it raises, on purpose.
//!
//! Kept clear of, because it differs by design (`docs/language.md`): whole numbers beyond 64 bits (products are taken modulo
//! a prime), the order of sets (they are sorted before they are printed), `is` between values, `return` in `finally`,
//! backslashes in fields of f-strings (CPython 3.11 has none), iterators that are kept (`zip`, `map` and others are lists at
//! once), a handler's name after its block, `casefold`, messages of exceptions that the program did not raise itself.

use proptest::prelude::Rng as _;
use proptest::test_runner::TestRng;

pub(crate) const INTS: &[&str] = &["i", "j", "n", "m"];
pub(crate) const STRS: &[&str] = &["s", "t"];
pub(crate) const LISTS: &[&str] = &["xs", "ys"];
pub(crate) const WORDS: &[&str] = &["ws", "vs"];
pub(crate) const DICTS: &[&str] = &["d", "e"];
pub(crate) const PAIRS: &[&str] = &["ps"];
pub(crate) const TEXTS: &[&str] =
    &["''", "'a'", "'abc'", "'Hello World'", "' x y '", "'42'", "'a,b,,c'", "'é1ß'", "'x\\ny'", "'The end.'"];
const DEEPEST: u32 = 2;
const EXCEPTIONS: &[&str] = &[
    "ValueError",
    "KeyError",
    "IndexError",
    "TypeError",
    "ZeroDivisionError",
    "LookupError",
    "ArithmeticError",
    "Exception",
    "(KeyError, IndexError)",
    "RuntimeError",
    "AttributeError",
];

pub(crate) struct Writer<'a> {
    rng: &'a mut TestRng,
    out: String,
    indent: usize,
    in_loop: bool,
    in_function: bool,
    in_finally: bool,
    n_names: usize,
    /// Functions that may be called here: those before, so that none calls itself.
    n_callable: usize,
}

/// A program.
pub(crate) fn program(rng: &mut TestRng) -> String {
    let mut writer = Writer {
        rng,
        out: String::new(),
        indent: 0,
        in_loop: false,
        in_function: false,
        in_finally: false,
        n_names: 0,
        n_callable: 0,
    };
    writer.line("i, j, n, m = 3, -2, 7, 0");
    writer.line("s, t = 'spam', 'Eggs and ham'");
    writer.line("xs, ys = [4, 1, 3, 1], [10, 20, 30, 40, 50]");
    writer.line("ws, vs = ['b', 'a', 'cc'], 'one two three'.split()");
    writer.line("d, e = {'a': 1, 'b': 2}, {'k': 5}");
    writer.line("ps = [(2, 'b'), (1, 'a'), (2, 'a')]");
    let n_functions = writer.below(3);
    for at in 0..n_functions {
        writer.function(at);
        writer.n_callable = at + 1;
    }
    for _ in 0..4 + writer.below(7) {
        writer.guarded();
    }
    writer.line("print(i, j, n, m, repr(s), repr(t))");
    writer.line("print(xs, ys, ws, vs, d, e, ps)");
    writer.out
}

impl Writer<'_> {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.rng.next_u32() as usize % n.max(1)
    }

    pub(crate) fn one(&mut self, of: &[&str]) -> String {
        of[self.below(of.len())].to_owned()
    }

    fn line(&mut self, text: &str) {
        self.out += &" ".repeat(4 * self.indent);
        self.out += text;
        self.out.push('\n');
    }

    fn fresh(&mut self) -> String {
        self.n_names += 1;
        format!("v{}", self.n_names)
    }

    fn inner(&mut self, depth: u32) {
        self.indent += 1;
        self.block(1, 3, depth + 1);
        self.indent -= 1;
    }

    fn looped(&mut self, depth: u32) {
        let outer = std::mem::replace(&mut self.in_loop, true);
        self.inner(depth);
        self.in_loop = outer;
    }

    fn block(&mut self, least: usize, most: usize, depth: u32) {
        for _ in 0..least + self.below(most - least + 1) {
            self.statement(depth);
        }
    }

    /// A statement of the program itself, most often one whose exception does not end it.
    fn guarded(&mut self) {
        if self.below(4) == 0 {
            return self.statement(0);
        }
        self.line("try:");
        self.indent += 1;
        self.statement(0);
        self.indent -= 1;
        self.line("except Exception as err:");
        self.line("    print('ended by', type(err).__name__)");
    }

    fn statement(&mut self, depth: u32) {
        let n = if depth < DEEPEST { 40 } else { 24 };
        let text = match self.below(n) {
            0..=2 => format!("{} = {}", self.one(INTS), self.int(2)),
            3 => format!("{} {} {}", self.one(INTS), self.one(&["+=", "-="]), self.int(1)),
            4 => format!("{} = {}[:24]", self.one(STRS), self.str(2)),
            5 => format!("{} = ({} + {})[:24]", self.one(STRS), self.str(1), self.str(1)),
            6 => format!("{} += {}", self.one(STRS), self.one(TEXTS)),
            7 => format!("{} = {}[:10]", self.one(LISTS), self.list(2)),
            8 => format!("{} = [w[:20] for w in {}[:6]]", self.one(WORDS), self.words(2)),
            9 => format!("{} = {}", self.one(DICTS), self.dict(2)),
            10 => format!("{}[{}[:9]] = {}", self.one(DICTS), self.str(1), self.int(1)),
            11 => format!("{}[{}] = {}", self.one(LISTS), self.index(), self.int(1)),
            12 => self.change_of_a_list(),
            13 => self.unpacking(),
            14 => self.deletion(),
            15 => self.change_of_a_dict(),
            16 => format!("ps = sorted({}, key={})", self.pairs(), self.key_of_pair()),
            17 if self.in_loop && !self.in_finally => self.one(&["break", "continue"]),
            18 if self.in_function && !self.in_finally => format!("return {}", self.any(1)),
            19 if self.below(3) == 0 => self.raising(),
            20 if self.below(3) == 0 => format!("assert {}, {}", self.condition(1), self.str(0)),
            17..=23 => format!("print({})", self.printed()),
            24..=26 => return self.if_statement(depth),
            27..=30 => return self.for_statement(depth),
            31 | 32 => return self.while_statement(depth),
            33..=36 => return self.try_statement(depth),
            37 | 38 if !self.in_loop && self.n_callable > 0 => self.call_of_a_function(),
            _ => format!("print({})", self.printed()),
        };
        self.line(&text);
    }

    fn printed(&mut self) -> String {
        let mut parts: Vec<String> = (0..1 + self.below(3)).map(|_| self.any(2)).collect();
        if self.below(6) == 0 {
            parts.push(self.one(&["sep='-'", "end='|\\n'", "sep=''"]));
        }
        parts.join(", ")
    }

    fn raising(&mut self) -> String {
        match self.below(6) {
            0 => format!("raise {}({})", self.one(&["ValueError", "KeyError", "RuntimeError"]), self.str(1)),
            1 => format!("n = {} // {}", self.int(1), self.one(INTS)),
            2 => format!("n = int({})", self.str(1)),
            3 => format!("n = {}[{}]", self.one(DICTS), self.str(1)),
            4 => format!("n = {}[{}]", self.one(LISTS), self.index()),
            _ => format!(
                "n = {}",
                self.one(&[
                    "xs + 1",
                    "s - 1",
                    "len(n)",
                    "undefined_name",
                    "s.nothing",
                    "-s",
                    "xs['a']",
                    "1 < s",
                    "n()"
                ])
            ),
        }
    }

    fn if_statement(&mut self, depth: u32) {
        let condition = self.condition(2);
        self.line(&format!("if {condition}:"));
        self.inner(depth);
        if self.below(3) == 0 {
            let condition = self.condition(1);
            self.line(&format!("elif {condition}:"));
            self.inner(depth);
        }
        if self.below(2) == 0 {
            self.line("else:");
            self.inner(depth);
        }
    }

    fn for_statement(&mut self, depth: u32) {
        let head = match self.below(7) {
            0 => format!("for i in range({}):", self.below(4)),
            1 => {
                format!("for j in range({}, {}, {}):", self.below(4), self.below(4), self.one(&["1", "2", "-1", "-3"]))
            }
            2 => format!("for n in {}[:3]:", self.list(1)),
            3 => format!("for i, s in enumerate({}[:3]{}):", self.words(1), self.one(&["", ", 1", ", start=2"])),
            4 => format!("for t, n in list({}.items())[:3]:", self.one(DICTS)),
            5 => format!("for i, (j, s) in zip(range(3), {}):", self.pairs()),
            _ => format!("for s in {}[:3]:", self.str(1)),
        };
        self.line(&head);
        self.looped(depth);
        if self.below(4) == 0 {
            self.line("else:");
            self.inner(depth);
        }
    }

    fn while_statement(&mut self, depth: u32) {
        let counter = self.fresh();
        let rounds = self.below(4);
        self.line(&format!("{counter} = {rounds}"));
        let more = if self.below(2) == 0 { format!(" and {}", self.condition(1)) } else { String::new() };
        self.line(&format!("while {counter} > 0{more}:"));
        self.indent += 1;
        self.line(&format!("{counter} -= 1"));
        self.indent -= 1;
        self.looped(depth);
        if self.below(3) == 0 {
            self.line("else:");
            self.inner(depth);
        }
    }

    fn try_statement(&mut self, depth: u32) {
        self.line("try:");
        self.inner(depth);
        if self.below(2) == 0 {
            self.indent += 1;
            let text = self.raising();
            self.line(&text);
            self.indent -= 1;
        }
        let finally = self.below(3) == 0;
        let n_handlers = if finally { self.below(3) } else { 1 + self.below(2) };
        for _ in 0..n_handlers {
            let named = self.below(2) == 0;
            let class = self.one(EXCEPTIONS);
            self.line(&format!("except {class}{}:", if named { " as err" } else { "" }));
            self.indent += 1;
            if named {
                self.line("print('caught', type(err).__name__, len(err.args) > 0)");
            }
            self.indent -= 1;
            self.inner(depth);
            if self.below(8) == 0 {
                self.indent += 1;
                self.line("raise");
                self.indent -= 1;
            }
        }
        if n_handlers > 0 && self.below(3) == 0 {
            self.line("else:");
            self.inner(depth);
        }
        if finally {
            let outer = std::mem::replace(&mut self.in_finally, true);
            self.line("finally:");
            self.inner(depth);
            self.in_finally = outer;
        }
    }

    fn function(&mut self, at: usize) {
        let params = self.one(&["a, b=2", "a, *rest", "a, b=1, **more", "a=0, b='x'"]);
        self.line(&format!("def f{at}({params}):"));
        self.indent += 1;
        let names: Vec<&str> = ["a", "b", "rest", "more", "c", "k"]
            .into_iter()
            .filter(|name| params.split([',', ' ', '=', '*']).any(|word| word == *name))
            .collect();
        self.line(&format!("print('f{at}', {})", names.join(", ")));
        self.line("i, j, n, m = 1, 2, 3, 4");
        self.line("s, t, xs, ys = 'in', 'side', [1, 2], [3]");
        self.line("ws, vs, d, e, ps = ['p'], ['q', 'r'], {'z': 26}, {}, [(0, 'z')]");
        if self.below(3) == 0 {
            self.out = self.out.replacen(&format!("def f{at}"), &format!("g{at} = 1\ndef f{at}"), 1);
            let at_function = self.out.rfind(&format!("    print('f{at}'")).unwrap_or(0);
            self.out.insert_str(at_function, &format!("    global g{at}\n    g{at} += 1\n"));
        }
        let outer = std::mem::replace(&mut self.in_function, true);
        self.block(1, 4, 1);
        self.in_function = outer;
        let result = self.any(1);
        self.line(&format!("return {result}"));
        self.indent -= 1;
    }

    fn call_of_a_function(&mut self) -> String {
        let at = self.below(self.n_callable);
        let args =
            self.one(&["1", "1, 2", "1, b=5", "*xs", "2, 3, 4", "a=1", "1, c=2", "**e", "*ws, k=2", "", "1, 2, z=3"]);
        format!(
            "try:\n{0}    print(f{at}({args}))\n{0}except (TypeError, NameError) as err:\n{0}    print(type(err).__name__)",
            " ".repeat(4 * self.indent)
        )
    }

    fn change_of_a_list(&mut self) -> String {
        let xs = self.one(LISTS);
        match self.below(11) {
            0 => format!("{xs}.append({})", self.int(1)),
            1 => format!("{xs}.insert({}, {})", self.index(), self.int(0)),
            2 => format!("{xs}.sort(key={}, reverse={})", self.key_of_int(), self.one(&["True", "False"])),
            3 => format!("{xs}.extend([{}, {}])", self.int(0), self.int(0)),
            4 => format!("{xs}.reverse()"),
            5 => format!("print({xs}.pop({}) if {xs} else 'none')", self.one(&["", "0", "-1"])),
            6 => format!("{xs}[{}:{}] = {}[:4]", self.index(), self.index(), self.list(1)),
            7 => format!("{xs} += [{}]", self.int(1)),
            8 => {
                format!("{xs} = {xs} * {}", self.one(&["0", "1", "2", "-1"]))
                    + "\n"
                    + &" ".repeat(4 * self.indent)
                    + &format!("del {xs}[8:]")
            }
            9 => format!("if {} in {xs}:\n{}    {xs}.remove({xs}[0])", self.int(0), " ".repeat(4 * self.indent)),
            _ => format!("{xs}.clear()"),
        }
    }

    fn change_of_a_dict(&mut self) -> String {
        let d = self.one(DICTS);
        match self.below(6) {
            0 => format!("{d}.update({})", self.dict(1)),
            1 => format!("print({d}.pop({}, None))", self.str(0)),
            2 => format!("print({d}.setdefault({}, {}))", self.str(0), self.int(1)),
            3 => format!("{d}[{}] = {d}.get({}, 0) + 1", self.str(0), self.str(0)),
            4 => format!("{d} = {d} | {}", self.dict(1)),
            _ => format!("{d}['a'] = {}", self.int(1)),
        }
    }

    fn unpacking(&mut self) -> String {
        match self.below(7) {
            0 => "i, j = j, i".to_owned(),
            1 => format!("n, *ys = {}[:9]", self.list(1)),
            2 => format!("*xs, n = {}[:9]", self.list(1)),
            3 => format!("i, (j, s) = {}, ({}, {})", self.int(1), self.int(0), self.str(0)),
            4 => format!("n = m = {}", self.int(1)),
            5 => format!("n, s = {}", self.one(&["ps[0]", "(1, 'w')", "ps[-1]"])),
            _ => format!("i, *vs, m = {}, *{}[:4], 5", self.int(0), self.words(1)),
        }
    }

    fn deletion(&mut self) -> String {
        match self.below(4) {
            0 => format!("del {}[{}:{}]", self.one(LISTS), self.index(), self.index()),
            1 => format!("del {}[{}]", self.one(DICTS), self.str(0)),
            2 => format!("del {}[{}]", self.one(LISTS), self.index()),
            _ => format!("del {}[::{}]", self.one(LISTS), self.one(&["2", "3", "-2"])),
        }
    }
}
