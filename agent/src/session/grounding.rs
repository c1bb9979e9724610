//! Grounding: arguments that quote the task can only be written as the task has them.
//!
//! A small model copies a worked example's argument as readily as the task's own. A tool marks in its schema the
//! parameters whose values a person says in the task (`"x-from-task": "path" | "words" | "number" | "numbers" | "unit" |
//! "expression"`); while the task holds something of that kind, a literal for such a parameter is one of those (or, for words,
//! its default), and any other expression stays allowed. This narrows the decoding grammar only: a program that was written
//! otherwise runs as it is.

use mote_script::{JsonText, Schema, Signature};
use serde_json::Value;

use crate::tools::{Catalogue, ServerKind};

/// The schema extension that marks a parameter.
const MARK: &str = "x-from-task";
/// Words of a quotation.
const MAX_SPAN_WORDS: usize = 8;
/// Words of a unit: `degrees celsius`, `miles per hour`.
const MAX_UNIT_WORDS: usize = 3;
/// Words of the task that are looked at; a longer task is not quoted from.
const MAX_WORDS: usize = 80;
/// Numbers that are usually written as words.
const NUMBER_WORDS: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
/// What surrounds a word without being part of it.
const AROUND: &[char] = &['?', '!', ',', ';', ':', '"', '\'', '(', ')', '[', ']', '`', '“', '”', '„', '’'];

/// What the task says, by kind.
#[derive(Debug, PartialEq)]
pub(super) struct Grounding {
    words: Vec<Value>,
    paths: Vec<Value>,
    numbers: Vec<Value>,
    /// All numbers in one list, where there are several.
    lists: Vec<Value>,
    /// What stands behind a number.
    units: Vec<Value>,
    /// What can be calculated.
    expressions: Vec<Value>,
}

impl Grounding {
    /// Reads a task.
    pub(super) fn of(task: &str) -> Grounding {
        let raw: Vec<&str> = task.split_whitespace().collect();
        let raw = if raw.len() > MAX_WORDS { &[] } else { &raw[..] };
        let words: Vec<&str> = raw.iter().map(|word| bare(word)).collect();
        let mut spans: Vec<Value> = Vec::new();
        for start in 0..raw.len() {
            for n in 1..=MAX_SPAN_WORDS.min(raw.len() - start) {
                let text = raw[start..start + n].join(" ");
                add(&mut spans, Value::from(bare(&text)));
            }
        }
        let mut paths = Vec::new();
        for word in words.iter().filter(|word| is_path(word)) {
            add(&mut paths, Value::from(*word));
        }
        let mut numbers = Vec::new();
        for word in &words {
            if let Some(number) = number(word) {
                add(&mut numbers, number);
            }
        }
        let digits = words.iter().filter(|word| word.contains(|c: char| c.is_ascii_digit()));
        let all: Vec<Value> = digits.filter_map(|word| number(word)).collect();
        let lists = if all.len() > 1 { vec![Value::from(all)] } else { Vec::new() };
        let mut units = Vec::new();
        for (at, _) in words.iter().enumerate().filter(|(_, word)| number(word).is_some()) {
            let behind: Vec<&str> =
                words[at + 1..].iter().copied().take_while(|word| may_be_unit(word)).take(MAX_UNIT_WORDS).collect();
            for start in 0..behind.len() {
                for end in start + 1..=behind.len() {
                    add(&mut units, Value::from(behind[start..end].join(" ")));
                }
            }
        }
        Grounding { words: spans, paths, numbers, lists, units, expressions: expressions(task) }
    }

    /// Narrows the marked parameters of `signatures` to what the task says.
    pub(super) fn narrow(&self, signatures: &mut [Signature], catalogue: &Catalogue) {
        for signature in signatures {
            let Some(entry) = catalogue.tool(&signature.server, &signature.name) else { continue };
            for param in &mut signature.params {
                let mark = entry.parameters.pointer(&format!("/properties/{}/{MARK}", pointer(&param.wire_name)));
                let choices = match mark.and_then(Value::as_str) {
                    Some("path") => &self.paths,
                    Some("words") => &self.words,
                    Some("number") => &self.numbers,
                    Some("numbers") => &self.lists,
                    Some("unit") => &self.units,
                    Some("expression") => &self.expressions,
                    _ => continue,
                };
                if !choices.is_empty() {
                    let default = param.default.as_ref().filter(|_| mark.is_some_and(|mark| mark == "words"));
                    let choices = choices.iter().chain(default).cloned();
                    param.schema = Schema::Enum(choices.map(JsonText).collect());
                }
            }
        }
    }
}

/// The field names in the example results of the loaded tools; none if one of them has no example that its author vouches for.
pub(super) fn known_fields(signatures: &[Signature], catalogue: &Catalogue) -> Vec<String> {
    let mut fields = Vec::new();
    for signature in signatures {
        let is_pack = catalogue.server(&signature.server).is_some_and(|server| server.kind == ServerKind::Pack);
        let entry = catalogue.tool(&signature.server, &signature.name).filter(|_| is_pack);
        match entry.and_then(|entry| entry.result_example) {
            Some(example) => collect(&example, &mut fields),
            None => return Vec::new(),
        }
    }
    fields
}

fn collect(value: &Value, fields: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            for (name, value) in entries {
                if !fields.contains(name) {
                    fields.push(name.clone());
                }
                collect(value, fields);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, fields)),
        _ => {}
    }
}

fn add(list: &mut Vec<Value>, value: Value) {
    if value != "" && !list.contains(&value) {
        list.push(value);
    }
}

/// A word without what surrounds it; a full stop at its end ends a sentence.
fn bare(word: &str) -> &str {
    let word = word.trim_matches(AROUND);
    match word.strip_suffix('.') {
        Some(shorter) if !shorter.is_empty() && !shorter.ends_with('.') && !shorter.ends_with('/') => shorter,
        _ => word,
    }
}

fn is_path(word: &str) -> bool {
    let is_url = word.contains("://");
    let dotted = word.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty() && !extension.is_empty() && !extension.starts_with(|c: char| c.is_ascii_digit())
    });
    !is_url && (word.contains('/') || word == "." || word == "~" || dotted)
}

fn number(word: &str) -> Option<Value> {
    if let Some(at) = NUMBER_WORDS.iter().position(|name| word.eq_ignore_ascii_case(name)) {
        return Some(Value::from(at + 1));
    }
    let digits = word.trim_end_matches(['%', '€', '$', '°']).trim_start_matches(['€', '$']).replace(',', "");
    if let Ok(whole) = digits.parse::<i64>() {
        return Some(Value::from(whole));
    }
    let plain = digits.contains('.') && digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'));
    if plain { digits.parse::<f64>().ok().map(Value::from) } else { None }
}

/// Whether a word behind a number may say of what the number is.
fn may_be_unit(word: &str) -> bool {
    const OTHERS: [&str; 12] = ["to", "in", "into", "as", "is", "are", "and", "or", "of", "from", "equal", "make"];
    !word.is_empty() && number(word).is_none() && !OTHERS.iter().any(|other| word.eq_ignore_ascii_case(other))
}

/// The stretches of a task that are arithmetic: numbers, brackets and at least one sign between them.
fn expressions(task: &str) -> Vec<Value> {
    let is_part = |c: char| c.is_ascii_digit() || " .+-*/^()%".contains(c);
    let mut found = Vec::new();
    for stretch in task.split(|c| !is_part(c)) {
        let stretch = stretch.trim().trim_end_matches('.');
        let has = |wanted: &dyn Fn(char) -> bool| stretch.contains(wanted);
        let brackets = stretch.matches('(').count() == stretch.matches(')').count();
        if brackets && has(&|c| "+-*/^".contains(c)) && number(stretch).is_none() && has(&|c| c.is_ascii_digit()) {
            add(&mut found, Value::from(stretch));
        }
    }
    found
}

fn pointer(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_is_read_for_paths_and_numbers() {
        let grounding = Grounding::of("How much space is free on /?");
        assert_eq!(grounding.paths, [json!("/")]);
        let grounding = Grounding::of("The three largest of ./agent and 17.5% of 2,480 in README.md.");
        assert_eq!(grounding.paths, [json!("./agent"), json!("README.md")]);
        assert_eq!(grounding.numbers, [json!(3), json!(17.5), json!(2480)]);
    }

    #[test]
    fn a_task_is_read_for_units_and_arithmetic() {
        let units = |task| Grounding::of(task).units;
        assert_eq!(units("Convert 12 miles to km"), [json!("miles")]);
        assert_eq!(units("How many miles are 12 km?"), [json!("km")]);
        assert_eq!(
            units("What is 20 degrees celsius in kelvin?"),
            [json!("degrees"), json!("degrees celsius"), json!("celsius")]
        );
        let expressions = |task| Grounding::of(task).expressions;
        assert_eq!(expressions("What is 12*(7+3)-5?"), [json!("12*(7+3)-5")]);
        assert_eq!(expressions("Calculate 144 / 12 - 2^3."), [json!("144 / 12 - 2^3")]);
        let lists = |task| Grounding::of(task).lists;
        assert_eq!(lists("What is the average of 3, 8, 8 and 20?"), [json!([3, 8, 8, 20])]);
        assert!(lists("The mean of the heights in 1 table").is_empty());
        assert!(expressions("What is 12 plus 8 of -5, or the factorial of 10 (in /tmp)?").is_empty());
    }

    #[test]
    fn words_are_spans_without_what_surrounds_them() {
        let grounding = Grounding::of("mentions \"make test\"?");
        assert!(grounding.words.contains(&json!("make test")));
        assert!(grounding.words.contains(&json!("mentions \"make test")));
        assert!(!grounding.words.contains(&json!("test\"?")));
    }

    #[test]
    fn a_long_text_is_not_quoted_from() {
        let grounding = Grounding::of(&"word/ ".repeat(MAX_WORDS + 1));
        assert!(grounding.words.is_empty() && grounding.paths.is_empty());
    }
}
