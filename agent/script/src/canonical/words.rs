//! Tokens to words: how each is written, and whether a space stands before it.

use crate::lexer::{KEYWORDS, Tok};

/// A token as it is written.
#[derive(Debug, Clone, Default)]
pub(super) struct Word {
    pub(super) text: String,
    /// Whether a space stands before it on a line.
    pub(super) gap: bool,
    pub(super) sign: Option<&'static str>,
    pub(super) is_string: bool,
    /// Set for an opening bracket.
    pub(super) bracket: Bracket,
    /// Comments on lines of their own before it, inside brackets.
    pub(super) before: Vec<String>,
    /// The comment that ends its line, inside brackets.
    pub(super) after: Option<String>,
}

/// What a bracket holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Bracket {
    #[default]
    None,
    /// Arguments, parameters, a list, a set or a dict: a comma at the end says nothing.
    Items,
    /// An expression or a tuple.
    Tuple,
    Subscript,
}

impl Word {
    pub(super) fn is(&self, sign: &str) -> bool {
        self.sign == Some(sign)
    }

    /// Columns on a line, the space before it included.
    pub(super) fn width(&self) -> usize {
        let first = self.text.split('\n').next().unwrap_or_default();
        first.chars().count().saturating_add(usize::from(self.gap))
    }
}

/// What is open at a place of a statement.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    bracket: Bracket,
    named: bool,
    lambdas: u32,
    annotated: bool,
}

/// Decides about spaces, word by word through a statement.
#[derive(Debug, Default)]
pub(super) struct Spacer {
    /// The comments that the next word takes.
    pub(super) comments: Vec<String>,
    place: Place,
    outer: Vec<Place>,
    started: bool,
    /// Whether the last word ends a value.
    operand: bool,
    /// Whether nothing stands between the last word and the next.
    tight: bool,
    after_dot: bool,
    after_whole: bool,
}

impl Spacer {
    pub(super) fn in_brackets(&self) -> bool {
        !self.outer.is_empty()
    }

    /// Whether this is the colon behind the head of a compound statement.
    pub(super) fn is_block_colon(&self, tok: &Tok) -> bool {
        *tok == Tok::Sign(":") && !self.in_brackets() && self.place.lambdas == 0
    }

    pub(super) fn word(&mut self, tok: &Tok, text: String) -> Word {
        let before = std::mem::take(&mut self.comments);
        let mut word = Word { text, before, ..Word::default() };
        match tok {
            Tok::Sign(sign) if self.after_dot && KEYWORDS.contains(sign) => self.value(&mut word),
            Tok::Sign(sign) => {
                word.sign = Some(sign);
                self.sign(sign, &mut word);
            }
            Tok::Str(_) | Tok::FString(_) => {
                word.is_string = true;
                word.text = string_text(&word.text);
                self.value(&mut word);
            }
            Tok::Int(_) => {
                self.value(&mut word);
                self.after_whole = true;
            }
            _ => self.value(&mut word),
        }
        self.started = true;
        word
    }

    fn value(&mut self, word: &mut Word) {
        word.gap = self.started && !self.tight;
        self.then(true, false);
    }

    fn then(&mut self, operand: bool, tight: bool) {
        (self.operand, self.tight, self.after_dot, self.after_whole) = (operand, tight, false, false);
    }

    fn sign(&mut self, sign: &'static str, word: &mut Word) {
        let loose = self.started && !self.tight;
        match sign {
            "(" | "[" | "{" => {
                word.gap = loose && (!self.operand || sign == "{");
                word.bracket = match (sign, self.operand) {
                    ("(", false) => Bracket::Tuple,
                    ("[", true) => Bracket::Subscript,
                    _ => Bracket::Items,
                };
                let named = sign == "(" && self.operand;
                self.outer.push(self.place);
                self.place = Place { bracket: word.bracket, named, ..Place::default() };
                self.then(false, true);
            }
            ")" | "]" | "}" => {
                self.place = self.outer.pop().unwrap_or_default();
                self.then(true, false);
            }
            "," => {
                self.place.annotated = false;
                self.then(false, false);
            }
            ":" => {
                let slice = self.place.bracket == Bracket::Subscript && self.place.lambdas == 0;
                if self.place.lambdas > 0 {
                    self.place.lambdas = self.place.lambdas.saturating_sub(1);
                } else {
                    self.place.annotated = true;
                }
                self.then(false, slice);
            }
            "." => {
                word.gap = self.after_whole;
                self.then(false, true);
                self.after_dot = true;
            }
            "=" => {
                let argument = self.place.lambdas > 0 || (self.place.named && !self.place.annotated);
                word.gap = !argument;
                self.then(false, argument);
            }
            "-" | "+" | "~" | "*" | "**" if !self.operand => {
                word.gap = loose;
                self.then(false, true);
            }
            "None" | "True" | "False" => self.value(word),
            _ => {
                if sign == "lambda" {
                    self.place.lambdas = self.place.lambdas.saturating_add(1);
                }
                word.gap = loose;
                self.then(false, false);
            }
        }
    }
}

/// A comment with a space behind its `#`.
pub(super) fn comment_text(text: &str) -> String {
    let text = text.trim_end();
    match text.strip_prefix('#') {
        Some(said) if !said.is_empty() && !said.starts_with([' ', '#', '!']) => format!("# {said}"),
        _ => text.to_owned(),
    }
}

/// A string literal in double quotes, where that needs no other change.
fn string_text(text: &str) -> String {
    let at = text.find(['"', '\'']).unwrap_or(0);
    let (prefix, quoted) = text.split_at_checked(at).unwrap_or(("", text));
    let prefix = prefix.to_ascii_lowercase().replace('u', "");
    let inner = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    match inner {
        Some(inner) if !quoted.starts_with("'''") && !inner.contains(['"', '\\']) => format!("{prefix}\"{inner}\""),
        _ => prefix + quoted,
    }
}
