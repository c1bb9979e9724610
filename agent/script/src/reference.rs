//! The reference of the language: every statement, expression, built-in, move, method, exception, kind of error and limit,
//! and every difference to Python, each with one line and an example with what it prints.
//!
//! The tests run the examples, hold the tables against those of lexer, parser and machine, and write
//! `docs/language-reference.md`.

mod builtins;
mod errors;
mod methods;
mod rules;
mod statements;
#[cfg(test)]
mod tests;

use crate::error::nearest;

/// Name, one line, example, what the example prints.
type Row = (&'static str, &'static str, &'static str, &'static str);

const SECTIONS: &[(&str, &[Row])] = &[
    ("Statements", statements::STATEMENTS),
    ("Expressions", statements::EXPRESSIONS),
    ("Built-ins", builtins::BUILTINS),
    ("Moves", builtins::MOVES),
    ("Methods of str", methods::STR_METHODS),
    ("Methods of list and tuple", methods::LIST_METHODS),
    ("Methods of dict", methods::DICT_METHODS),
    ("Methods of set and float", methods::SET_METHODS),
    ("Exceptions", errors::EXCEPTIONS),
    ("Kinds of errors", errors::KINDS),
    ("Limits", rules::LIMITS),
    ("Differences to Python", rules::DIFFERENCES),
];

/// One thing that the language has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The heading under which it stands.
    pub section: &'static str,
    /// What it is called, or how it is written.
    pub name: &'static str,
    /// What it does, in one line.
    pub text: &'static str,
    /// A program; empty where none fits a page.
    pub example: &'static str,
    /// What the program prints; where it fails, the error after that.
    pub output: &'static str,
}

/// All of the reference, in the order of the page.
pub fn reference() -> impl Iterator<Item = Entry> {
    SECTIONS.iter().flat_map(|(section, rows)| {
        rows.iter().map(|(name, text, example, output)| Entry { section, name, text, example, output })
    })
}

/// The entries that `name` may mean: those of that name, methods of that name, else those that name it.
pub fn lookup(name: &str) -> Vec<Entry> {
    let name = name.trim().trim_end_matches("()");
    let exact = |entry: &Entry| entry.name == name || entry.section.eq_ignore_ascii_case(name);
    let method = |entry: &Entry| entry.name.split_once('.').is_some_and(|(_, method)| method == name);
    let word = |entry: &Entry| entry.name.split([' ', ',', '/']).any(|word| word == name);
    let said = |entry: &Entry| {
        let mut parts = entry.text.split('`').skip(1).step_by(2);
        parts.any(|part| part.split(' ').any(|word| word == name))
    };
    let found = |fits: &dyn Fn(&Entry) -> bool| reference().filter(|entry| fits(entry)).collect::<Vec<_>>();
    let mut all = found(&|entry: &Entry| exact(entry) || method(entry));
    for fits in [&word as &dyn Fn(&Entry) -> bool, &said] {
        if all.is_empty() {
            all = found(fits);
        }
    }
    all
}

/// The name in the reference that is nearest to one that it does not have.
pub fn nearest_entry(name: &str) -> Option<&'static str> {
    let names: Vec<&'static str> = reference().map(|entry| entry.name).collect();
    let methods = names.iter().filter_map(|name| name.split_once('.').map(|(_, method)| method));
    nearest(name, names.iter().copied().chain(methods))
}

/// The whole reference as the page `docs/language-reference.md`.
pub fn reference_page() -> String {
    let mut out = String::from(
        "# Reference of the action language\n\nGenerated from the tables in `agent/script/src/reference`, whose examples are \
         run as tests; `make reference` writes it anew. `mote script help NAME` shows one entry. What the language is for \
         stands in [language.md](language.md).\n",
    );
    for (section, rows) in SECTIONS {
        out.push_str(&format!("\n## {section}\n"));
        for (name, text, example, output) in *rows {
            out.push_str(&format!("\n**`{name}`** {text}\n"));
            if !example.is_empty() {
                out.push_str(&format!("```python\n{example}\n```\n"));
            }
            if !output.is_empty() {
                out.push_str(&format!("```text\n{output}\n```\n"));
            }
        }
    }
    out
}
