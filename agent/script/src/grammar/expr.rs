//! Rules of expressions, level by level: what stands inside brackets is one level lower, level 0 has no brackets.
//!
//! Names of rules: `e` outside of f-strings, `f` inside, where a string is single-quoted. `x3` is the top level, the only
//! one with tool calls in it. `n2` is an expression that opens with no literal.

use super::{Grammar, Options, alternatives};
use crate::ast::{BINARY, COMPARISONS};
use crate::methods;
use crate::value::Builtin;

/// Items of a list, arguments of a call.
const MOST_ITEMS: usize = 32;
const MOST_ARGS: usize = 6;
/// Operators in a row, and accesses such as `.name` in a row.
const MOST_OPERATORS: usize = 4;
const MOST_ACCESSES: usize = 4;
/// Tool calls written out in one `gather`.
const MOST_GATHERED: usize = 8;
/// Tool calls in the arguments of tool calls.
const MOST_NESTED: u32 = 2;

impl Grammar {
    pub(super) fn expressions(&mut self, options: &Options) {
        let fields = &options.fields;
        self.rule("FIELD", &if fields.is_empty() { "NAME".to_owned() } else { alternatives(fields) });
        let signs: Vec<String> = BINARY.iter().map(|(sign, ..)| format!(" {sign} ")).collect();
        self.rule("BINARY", &alternatives(signs));
        let words = COMPARISONS.iter().filter(|(sign, _)| !sign.starts_with("is"));
        let signs: Vec<String> = words.map(|(sign, _)| format!(" {sign} ")).collect();
        self.rule("COMPARISON", &alternatives(signs));
        self.rule("IS_NONE", "/ is (not )?None/");
        let plain = Builtin::ALL
            .iter()
            .filter(|b| !matches!(b, Builtin::Gather | Builtin::Map | Builtin::Filter | Builtin::Print));
        self.rule("BUILTIN", &alternatives(plain.map(|b| b.name())));
        let mut names: Vec<&str> =
            ["str", "list", "dict", "set", "json"].iter().flat_map(|t| methods::of(t)).copied().collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| !matches!(*name, "sort" | "encode" | "fromkeys"));
        self.rule("METHOD", &alternatives(names));
        for (prefix, string) in [("e", "STRING | fstring"), ("f", "INNER_STRING")] {
            self.rule(
                &format!("{prefix}literal"),
                &format!("INT | FLOAT | {string} | \"None\" | \"True\" | \"False\""),
            );
            self.rule(&format!("{prefix}name0"), &format!("NAME {prefix}access0{{0,2}}"));
            self.rule(
                &format!("{prefix}access0"),
                &format!("\".\" FIELD | \"[\" ({string} | \"-\"? INT | NAME) \"]\" | \".\" METHOD \"()\""),
            );
            self.rule(&format!("{prefix}0"), &format!("{prefix}atom0 (BINARY {prefix}atom0){{0,2}}"));
            self.rule(&format!("{prefix}atom0"), &format!("\"-\"? ({prefix}literal | {prefix}name0)"));
        }
        self.level("e", 1, "e0", "");
        self.level("e", 2, "e1", "");
        self.level("f", 1, "f0", "");
        self.rule("slice", "bound? \":\" bound? (\":\" \"-\"? INT)?");
        self.rule("bound", "\"-\"? INT | NAME");
        let outermost = if self.nested { "tool::0x0" } else { "tool" };
        self.rule("called", &format!("{outermost} e2access{{0,3}} | gathered"));
        self.rule(
            "gathered",
            &format!(
                "\"gather(\" ({outermost} (\", \" {outermost}){{1,{}}} | \"*[\" {outermost} \" for \" targets \" in \" y2item \"]\") \")\"",
                MOST_GATHERED.saturating_sub(1)
            ),
        );
        self.level("x", 3, "y2", " | called");
        self.rule("y2", "e2 | called");
        self.rule("print_end", "\", \" (\"sep\" | \"end\") \"=\" STRING");
        self.rule("fstring", "\"f\\\"\" (TEXT | field){0,12} \"\\\"\"");
        self.rule("field", "\"{\" f1 (\"!r\" | SPEC)? \"}\"");
        if self.nested {
            self.arguments_of_calls();
        }
    }

    /// Expressions that open with no literal, the parameter counting the calls around them.
    fn arguments_of_calls(&mut self) {
        self.rule("n2::_", "\"-\"? n2start::_ (BINARY e2unary){0,4} (COMPARISON e2sum | IS_NONE)?");
        self.rule(
            "n2start::_",
            &format!(
                "tool::incr(_) e2access{{0,3}} %if lt(_, {MOST_NESTED}) \
                 | BUILTIN \"(\" tool::incr(_) e2access{{0,3}} \")\" e2access{{0,3}} %if lt(_, {MOST_NESTED}) \
                 | e2named | e2call e2access{{0,3}} | e2comp | \"(\" e1 \")\" e2access{{0,3}}"
            ),
        );
    }

    /// The rules of one level; `sub` is what stands inside brackets.
    fn level(&mut self, prefix: &str, n: u32, sub: &str, more: &str) {
        let p = format!("{prefix}{n}");
        let literal = if prefix == "f" { "fliteral" } else { "eliteral" };
        let index = if prefix == "f" { "f0" } else { "e0" };
        self.rule(&p, &format!("{p}or (\" if \" {p}or \" else \" {p}or)?"));
        self.rule(&format!("{p}or"), &format!("{p}and (\" or \" {p}and){{0,3}}"));
        self.rule(&format!("{p}and"), &format!("{p}not (\" and \" {p}not){{0,3}}"));
        self.rule(&format!("{p}not"), &format!("\"not \"? {p}sum ((COMPARISON {p}sum){{1,2}} | IS_NONE)?"));
        self.rule(&format!("{p}sum"), &format!("{p}unary (BINARY {p}unary){{0,{MOST_OPERATORS}}}"));
        self.rule(&format!("{p}unary"), &format!("\"-\"? {p}post"));
        self.rule(
            &format!("{p}post"),
            &format!("{p}named | ({literal} | {p}list | {p}comp) {p}access{{0,2}} | ({p}call | \"(\" {sub} \")\") {p}access{{0,3}}{more}"),
        );
        self.rule(&format!("{p}named"), &format!("NAME {p}access{{0,{MOST_ACCESSES}}}"));
        self.rule(
            &format!("{p}access"),
            &format!("\".\" FIELD | \"[\" ({index} | slice) \"]\" | \".\" METHOD \"(\" {p}args \")\""),
        );
        self.rule(&format!("{p}args"), &format!("({sub} (\", \" {sub}){{0,{MOST_ARGS}}} | {sub} {p}clauses)?"));
        self.rule(
            &format!("{p}clauses"),
            &format!("(\" for \" targets \" in \" {sub}item{}){{1,2}}", format_args!(" (\" if \" {sub}item)?")),
        );
        self.rule(
            &format!("{p}call"),
            &format!(
                "BUILTIN \"(\" {p}args \")\" | \"print(\" {p}args \")\" | \"print(\" {sub} (\", \" {sub}){{0,3}} print_end \")\" \
                 | (\"sorted\" | \"max\" | \"min\") \"(\" {sub} (\", key=\" (\"lambda \" NAME \": \" {sub} | \"len\"))? \
                 (\", reverse=\" (\"True\" | \"False\") | \", default=\" {index})? \")\""
            ),
        );
        let mut list = format!(
            "\"[\" ({sub} (\", \" {sub}){{0,{MOST_ITEMS}}})? \"]\" | \"(\" {sub} \", \" ({sub} (\", \" {sub}){{0,{MOST_ARGS}}})? \")\""
        );
        let mut comp = format!("\"[\" {sub} {p}clauses \"]\"");
        if prefix != "f" {
            list.push_str(&format!(
                " | \"{{\" ({sub} \": \" {sub} (\", \" {sub} \": \" {sub}){{0,{MOST_ITEMS}}})? \"}}\""
            ));
            comp.push_str(&format!(" | \"{{\" {sub} (\": \" {sub})? {p}clauses \"}}\""));
        }
        self.rule(&format!("{p}list"), &list);
        self.rule(&format!("{p}comp"), &comp);
        let item = if n == 1 {
            sub.to_owned()
        } else if sub == "y2" {
            "e2or | called".to_owned()
        } else {
            format!("{sub}or")
        };
        self.rule(&format!("{sub}item"), &item);
    }
}
