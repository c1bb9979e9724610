//! Expressions of a known kind: whole numbers, strings, lists, words, dicts, pairs, conditions.

use crate::generate::{DICTS, INTS, LISTS, PAIRS, STRS, TEXTS, WORDS, Writer};

impl Writer<'_> {
    pub(crate) fn index(&mut self) -> String {
        (self.below(9) as i64 - 4).to_string()
    }

    pub(crate) fn slice(&mut self) -> String {
        let part = |writer: &mut Self| if writer.below(3) == 0 { String::new() } else { writer.index() };
        let (from, to) = (part(self), part(self));
        match self.below(3) {
            0 => format!("{from}:{to}"),
            _ => format!("{from}:{to}:{}", self.one(&["1", "2", "-1", "-2", "3"])),
        }
    }

    pub(crate) fn key_of_int(&mut self) -> String {
        self.one(&[
            "lambda v: -v",
            "lambda v: v % 3",
            "lambda v: (v % 2, -v)",
            "abs",
            "str",
            "None",
            "lambda v, w=2: v * w",
        ])
    }

    pub(crate) fn key_of_pair(&mut self) -> String {
        self.one(&["lambda p: p[1]", "lambda p: (p[0], p[1])", "lambda p: -p[0]", "len", "None", "str"])
    }

    pub(crate) fn int(&mut self, depth: u32) -> String {
        let more = depth.saturating_sub(1);
        let plain = depth == 0 || self.below(3) == 0;
        match if plain { self.below(3) } else { 3 + self.below(17) } {
            0 => (self.below(40) as i64 - 10).to_string(),
            1 | 2 => self.one(INTS),
            3 => format!("({} {} {})", self.int(more), self.one(&["+", "-", "&", "|", "^"]), self.int(more)),
            4 => format!("({} * {} % 997)", self.int(more), self.int(more)),
            5 => format!("({} {} {})", self.int(more), self.one(&["//", "%"]), self.one(&["3", "-4", "7", "n"])),
            6 => format!("len({})", self.sized(more)),
            7 => format!("{}({}, {})", self.one(&["min", "max"]), self.int(more), self.int(more)),
            8 => format!("sum({})", self.list(more)),
            9 => format!(
                "sum(v {} 2 for v in {} if v {} 3)",
                self.one(&["+", "*", "-"]),
                self.list(more),
                self.one(&["<", ">=", "!="])
            ),
            10 => format!("{}.count({})", self.str(more), self.one(&["'a'", "' '", "'l'"])),
            11 => format!("{}.find({})", self.str(more), self.str(0)),
            12 => format!("abs({})", self.int(more)),
            13 => format!("({} if {} else {})", self.int(more), self.condition(more), self.int(more)),
            14 => format!("{}.get({}, {})", self.one(DICTS), self.str(0), self.int(more)),
            15 => format!("int({})", self.one(&["'12'", "3.9", "'-7'", "True", "n", "' 5 '"])),
            16 => format!("round({} / {})", self.int(more), self.one(&["2", "4", "3", "-8"])),
            17 => format!("max({}, key={}, default=-1)", self.list(more), self.key_of_int()),
            18 => format!("divmod({}, {})[{}]", self.int(more), self.one(&["3", "-5", "10"]), self.below(2)),
            _ => format!("({} {} {})", self.int(more), self.one(&["<<", ">>"]), self.below(4)),
        }
    }

    pub(crate) fn sized(&mut self, depth: u32) -> String {
        match self.below(5) {
            0 => self.str(depth),
            1 => self.list(depth),
            2 => self.words(depth),
            3 => self.one(DICTS),
            _ => format!("set({})", self.list(depth)),
        }
    }

    pub(crate) fn condition(&mut self, depth: u32) -> String {
        let more = depth.saturating_sub(1);
        match if depth == 0 { self.below(3) } else { self.below(12) } {
            0 => format!("{} {} {}", self.int(more), self.one(&["<", "<=", ">", "==", "!="]), self.int(more)),
            1 => format!("{} in {}", self.int(0), self.one(LISTS)),
            2 => self.one(&["xs", "s", "d", "n", "not ws", "True", "n is None", "d is not None"]),
            3 => format!(
                "{} {} {} {} {}",
                self.int(0),
                self.one(&["<", "<="]),
                self.int(more),
                self.one(&["<", "!="]),
                self.int(0)
            ),
            4 => format!("({}) {} ({})", self.condition(more), self.one(&["and", "or"]), self.condition(more)),
            5 => format!("not ({})", self.condition(more)),
            6 => format!("{} {} {}", self.str(more), self.one(&["<", "==", "in", "not in"]), self.str(more)),
            7 => format!(
                "{}({} for v in {})",
                self.one(&["any", "all"]),
                self.one(&["v > 2", "v % 2 == 0", "v"]),
                self.list(more)
            ),
            8 => format!(
                "isinstance({}, {})",
                self.any(0),
                self.one(&["int", "str", "(int, str)", "list", "dict", "bool"])
            ),
            9 => format!(
                "{}.{}",
                self.str(more),
                self.one(&[
                    "isdigit()",
                    "isalpha()",
                    "startswith('a')",
                    "endswith(('d', 'm'))",
                    "isupper()",
                    "islower()",
                    "isspace()",
                    "isalnum()",
                    "istitle()"
                ])
            ),
            10 => format!("{} == {}", self.list(more), self.list(more)),
            _ => format!("{} {} {}", self.one(PAIRS), self.one(&["==", "<", ">="]), self.pairs()),
        }
    }

    pub(crate) fn str(&mut self, depth: u32) -> String {
        let more = depth.saturating_sub(1);
        let plain = depth == 0 || self.below(3) == 0;
        match if plain { self.below(3) } else { 3 + self.below(14) } {
            0 | 1 => self.one(TEXTS),
            2 => self.one(STRS),
            3 => format!("({} + {})[:20]", self.str(more), self.str(more)),
            4 => format!("{}[{}]", self.str(more), self.slice()),
            5 => {
                let method = self.one(&[
                    "upper()",
                    "lower()",
                    "strip()",
                    "title()",
                    "capitalize()",
                    "swapcase()",
                    "replace('a', 'bb', 3)",
                    "replace('l', '')",
                    "lstrip()",
                    "rstrip('d.')",
                    "strip(' x')",
                    "removeprefix('sp')",
                    "removesuffix('am')",
                    "expandtabs(4)",
                ]);
                format!("{}.{method}", self.str(more))
            }
            6 => format!(
                "{}.{}({}{})",
                self.str(more),
                self.one(&["ljust", "rjust", "center"]),
                self.below(14),
                self.one(&["", ", '*'"])
            ),
            7 => format!("{}.join({})", self.one(&["','", "''", "' - '"]), self.words(more)),
            8 => format!("({} * {})[:16]", self.str(0), self.below(4)),
            9 => self.fstring(),
            10 => format!("str({})", self.any(more)),
            11 => format!("repr({})", self.any(more)),
            12 => format!("({} or {})", self.str(more), self.str(0)),
            13 => format!(
                "'{}'.format({}, {})",
                self.one(&["{}-{}", "{1}{0}", "{0:>6}|{1}", "{:<5}|{}", "{!r} {}"]),
                self.int(more),
                self.str(more)
            ),
            14 => format!(
                "'{}' % ({}, {})",
                self.one(&["%d %s", "%5d|%-6s|", "%03d%s", "%x %r", "%+d %s"]),
                self.int(more),
                self.str(more)
            ),
            15 => format!(
                "{}.{}({})[{}]",
                self.str(more),
                self.one(&["partition", "rpartition"]),
                self.one(&["' '", "'a'", "','"]),
                self.below(3)
            ),
            _ => format!("({} if {} else {})", self.str(more), self.condition(more), self.str(more)),
        }
    }

    pub(crate) fn fstring(&mut self) -> String {
        let int_spec = self.one(&[
            "", ":d", ":5d", ":<6", ":^7", ":+d", ":05d", ":x", ":b", ":,", ":o", ":#x", ":>4", "!r", ":e", ":.2f",
            ":.1%", ":g",
        ]);
        let str_spec = self.one(&["", ":>8", ":<8", ":^9", ":*^7", "!r", ":.2", ":5.1"]);
        let (int, str) = (self.int(0), self.one(STRS));
        let float = self.float();
        let float_spec =
            self.one(&["", ":.1f", ":8.3f", ":,.2f", ":e", ":g", ":.3g", ":+.1f", ":010.2f", ":.0f", ":%"]);
        format!("f\"{{{int}{int_spec}}} {{{str}{str_spec}}}|{{{float}{float_spec}}}\"")
    }

    pub(crate) fn float(&mut self) -> String {
        match self.below(7) {
            0 => format!("({} / {})", self.one(INTS), self.one(&["2", "3", "7", "-10"])),
            1 => self.one(&["0.1", "2.5", "-0.75", "1e3", "1e-7", "12345.678", "1e16", "100.0"]),
            2 => format!("round({} / 7, {})", self.one(INTS), self.below(4)),
            3 => format!("float({})", self.one(&["n", "'2.5'", "i", "True"])),
            4 => format!("({} * 0.5)", self.one(INTS)),
            5 => format!("({} ** {})", self.one(&["2.0", "0.5", "2", "3"]), self.one(&["-1", "2", "0.5", "-2"])),
            _ => format!(
                "({} {} {})",
                self.one(&["7.5", "-7.5", "2.0"]),
                self.one(&["//", "%", "-", "*"]),
                self.one(&["2", "-2", "0.3"])
            ),
        }
    }

    pub(crate) fn list(&mut self, depth: u32) -> String {
        let more = depth.saturating_sub(1);
        let plain = depth == 0 || self.below(3) == 0;
        match if plain { self.below(3) } else { 3 + self.below(13) } {
            0 => format!("[{}, {}, {}]", self.int(0), self.int(0), self.int(0)),
            1 | 2 => self.one(LISTS),
            3 => format!("{}[{}]", self.list(more), self.slice()),
            4 => format!("[v {} {} for v in {}[:8]]", self.one(&["+", "-", "% 5 +"]), self.int(0), self.list(more)),
            5 => format!(
                "[v for v in {} if {}]",
                self.list(more),
                self.one(&["v > 1", "v % 2", "not v % 3", "v in ys", "-5 < v < 5"])
            ),
            6 => format!(
                "sorted({}, key={}, reverse={})",
                self.list(more),
                self.key_of_int(),
                self.one(&["True", "False"])
            ),
            7 => format!("({} + {})[:10]", self.list(more), self.list(more)),
            8 => format!("list(range({}, {}, {}))", self.below(6), self.below(12), self.one(&["1", "2", "-1"])),
            9 => format!(
                "list(map({}, {}))",
                self.one(&["abs", "lambda v: v + 1", "int", "lambda v: -v"]),
                self.list(more)
            ),
            10 => format!("list(filter({}, {}))", self.one(&["None", "lambda v: v > 0", "bool"]), self.list(more)),
            11 => format!("[*{}, {}][:9]", self.list(more), self.int(more)),
            12 => format!("sorted({{{} for v in {}}})", self.one(&["v", "v % 4", "-v"]), self.list(more)),
            13 => format!("list({}.values())", self.dict(more)),
            14 => format!("[a * b for a in {}[:3] for b in {}[:3] if a != b]", self.list(more), self.list(more)),
            _ => format!("list(reversed({}))", self.list(more)),
        }
    }

    pub(crate) fn words(&mut self, depth: u32) -> String {
        let more = depth.saturating_sub(1);
        let plain = depth == 0 || self.below(3) == 0;
        match if plain { self.below(3) } else { 3 + self.below(8) } {
            0 => format!("[{}, {}]", self.str(0), self.str(0)),
            1 | 2 => self.one(WORDS),
            3 => format!(
                "{}.{}",
                self.str(more),
                self.one(&[
                    "split()",
                    "split(',')",
                    "split('a', 1)",
                    "rsplit(' ', 1)",
                    "splitlines()",
                    "rsplit()",
                    "split(None, 1)"
                ])
            ),
            4 => format!(
                "sorted({}, key={})",
                self.words(more),
                self.one(&["len", "str.lower", "lambda w: w[::-1]", "lambda w: (len(w), w)", "None"])
            ),
            5 => format!(
                "[{} for w in {}]",
                self.one(&["w", "w.upper()", "w + '!'", "f'{w:>4}'", "w[:2]", "w.strip()"]),
                self.words(more)
            ),
            6 => format!("list({})", self.str(more)),
            7 => format!("list({})[:6]", self.dict(more)),
            8 => format!("[str(v) for v in {}]", self.list(more)),
            9 => format!("{}[{}]", self.words(more), self.slice()),
            _ => format!("sorted(set({}))", self.words(more)),
        }
    }

    pub(crate) fn dict(&mut self, depth: u32) -> String {
        let more = depth.saturating_sub(1);
        match if depth == 0 { self.below(2) } else { self.below(7) } {
            0 => self.one(DICTS),
            1 => format!("{{{}: {}, {}: {}}}", self.str(0), self.int(0), self.str(0), self.int(0)),
            2 => format!("{{w: len(w) for w in {}}}", self.words(more)),
            3 => format!("dict(zip({}, {}))", self.words(more), self.list(more)),
            4 => format!("{{**{}, 'q': {}}}", self.one(DICTS), self.int(more)),
            5 => format!("{{k: v + 1 for k, v in {}.items() if v > {}}}", self.one(DICTS), self.int(0)),
            _ => format!("dict(a={}, **{})", self.int(more), self.one(&["{'x': 1}", "{}"])),
        }
    }

    pub(crate) fn pairs(&mut self) -> String {
        match self.below(5) {
            0 | 1 => "ps".to_owned(),
            2 => format!("[(v, str(v)) for v in {}[:4]]", self.list(1)),
            3 => "[(1, 'one'), (0, 'none')]".to_owned(),
            _ => format!("ps[{}]", self.slice()),
        }
    }

    pub(crate) fn any(&mut self, depth: u32) -> String {
        match self.below(14) {
            0..=2 => self.int(depth),
            3..=5 => self.str(depth),
            6 | 7 => self.list(depth),
            8 => self.words(depth),
            9 => self.dict(depth),
            10 => self.float(),
            11 => format!("({}, {})", self.int(depth.saturating_sub(1)), self.str(depth.saturating_sub(1))),
            12 => {
                self.one(&["None", "True", "ps", "()", "(1,)", "[[], {}]", "range(3)", "xs[1:], xs[:1]", "sorted(d)"])
            }
            _ => format!("({})", self.condition(depth)),
        }
    }
}
