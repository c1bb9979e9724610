//! Text to words and stems: what both halves of retrieval count.
//!
//! English only: another language loses its endings now and then, which harms a query and a description alike.

/// Words of one field or query that are looked at: the rest of a hostile description is no help to anyone.
const MAX_WORDS: usize = 512;

/// English words that say nothing about which tool is meant. In a small catalogue they are as rare as the words that do.
const STOP_WORDS: [&str; 40] = [
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "give",
    "how", "i", "in", "is", "it", "me", "my", "of", "on", "or", "please", "show", "tell", "that", "the", "this", "to",
    "was", "what", "which", "with", "you", "your",
];

/// The words of a text: runs of letters and digits in lower case, `camelCase` and `snake_case` taken apart, `%` read as `percent`.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in text.chars() {
        let camel = before.is_lowercase() && c.is_uppercase();
        if camel || !c.is_alphanumeric() {
            finish(&mut word, &mut found);
        }
        if c == '%' {
            found.push("percent".to_owned());
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
        if found.len() >= MAX_WORDS {
            return found;
        }
    }
    finish(&mut word, &mut found);
    found
}

/// The stems of a text's words, in order.
pub(crate) fn stems(text: &str) -> Vec<String> {
    words(text).into_iter().map(stem).collect()
}

/// The stems of a query: without its numbers, which are values and not purposes, and with the word for what an operator between two
/// of them asks for.
pub(crate) fn asked(query: &str) -> Vec<String> {
    let mut found = stems(query);
    found.retain(|word| !word.bytes().all(|byte| byte.is_ascii_digit()));
    if is_arithmetic(query) {
        found.extend(stems("calculate expression"));
    }
    found
}

/// The neighbouring words of a text, as a person puts a question: all of them, those that say little too, and `#` for a number, a path
/// or a file, which differ from task to task.
pub(crate) fn pairs(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = "^".to_owned();
    for word in text.split_whitespace().take(MAX_WORDS) {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/').to_lowercase();
        let word =
            if word.contains(|c: char| c.is_ascii_digit() || matches!(c, '/' | '.')) { "#".to_owned() } else { word };
        found.push(format!("{before} {word}"));
        before = word;
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether a sign of arithmetic stands between numbers or brackets. A stroke or a dash needs room around it: it may belong to a date.
fn is_arithmetic(text: &str) -> bool {
    let operand = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit() || matches!(c, '(' | ')' | '.'));
    text.char_indices().any(|(at, c)| {
        let (before, after) = (&text[..at], &text[at + c.len_utf8()..]);
        let sign = match c {
            '+' | '*' | '^' | '×' | '÷' => true,
            '/' | '-' => (before.ends_with(' ') && after.starts_with(' ')) || before.ends_with(')'),
            _ => false,
        };
        sign && operand(before.trim_end().chars().next_back()) && operand(after.trim_start().chars().next())
    })
}

/// Takes English endings off: plural, `-ing`, `-ed`, a last `e`; `y` becomes `i`. Lighter than Porter's steps, since a wrong merge
/// costs more than a missed one among short descriptions.
fn stem(mut word: String) -> String {
    if word.len() <= 3 || !word.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return word;
    }
    let n = word.len();
    if word.ends_with("ies") && n > 4 {
        word.truncate(n - 3);
        word.push('y');
    } else if word.ends_with("sses") {
        word.truncate(n - 2);
    } else if word.ends_with('s') && !["ss", "us", "is"].iter().any(|ending| word.ends_with(ending)) {
        word.truncate(n - 1);
    }
    let ending = ["ing", "ed"].iter().find(|ending| {
        word.strip_suffix(**ending).is_some_and(|rest| rest.len() >= 3 && rest.contains(['a', 'e', 'i', 'o', 'u']))
    });
    if let Some(ending) = ending {
        word.truncate(word.len() - ending.len());
        let last_two = word.as_bytes().last_chunk::<2>().copied();
        if last_two.is_some_and(|[a, b]| a == b && !b"lsz".contains(&b)) {
            word.pop();
        }
    }
    if word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
    if word.len() > 3 && word.ends_with('y') {
        word.pop();
        word.push('i');
    }
    word
}

/// A text without what stands between equal quotation marks; an apostrophe inside a word is none.
pub(crate) fn without_quoted(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut quote = None;
    let mut before = ' ';
    for c in text.chars() {
        let mark = matches!(c, '\'' | '"' | '`');
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if mark && !before.is_alphanumeric() => quote = Some(c),
            None => kept.push(c),
        }
        before = c;
    }
    kept
}

fn finish(word: &mut String, found: &mut Vec<String>) {
    let word = std::mem::take(word);
    if !word.is_empty() && !STOP_WORDS.contains(&word.as_str()) {
        found.push(word);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{asked, pairs, stems, words};

    proptest! {
        #[test]
        fn any_text_is_words(text in ".{0,80}") {
            prop_assert!(words(&text).iter().all(|word| !word.is_empty() && word.chars().all(char::is_alphanumeric)));
            prop_assert_eq!(stems(&text).len(), words(&text).len());
        }
    }

    #[test]
    fn names_and_questions_are_taken_apart() {
        let taken = words("What is 17.5% of the minLot_size in README.md? Größe HTTPServer");
        assert_eq!(taken, ["17", "5", "percent", "min", "lot", "size", "readme", "md", "größe", "httpserver"]);
    }

    #[test]
    fn a_question_is_its_pairs_of_words() {
        assert_eq!(pairs("What time is it in Oslo?"), ["^ what", "in oslo", "is it", "it in", "time is", "what time"]);
        assert_eq!(pairs("Read notes.md, lines 2-5"), ["# lines", "^ read", "lines #", "read #"]);
    }

    #[test]
    fn a_query_is_read_without_its_numbers_and_with_its_arithmetic() {
        assert_eq!(asked("What is 15% of 80?"), ["percent"]);
        for query in ["What is 23 * 47?", "12*(7+3)-5", "1.5 - 2", "(3) / 2"] {
            assert_eq!(asked(query), ["calculat", "expression"], "{query}");
        }
        assert!(asked("2026-12-25 1/3 3 -").is_empty());
    }

    #[test]
    fn endings_are_taken_off() {
        let found = stems("cities classes status lists running planned string rates rating copy telling");
        assert_eq!(found, ["citi", "class", "status", "list", "run", "plan", "string", "rat", "rat", "copi", "tell"]);
    }
}
