//! Source text to tokens: indentation, brackets, strings, numbers.
//!
//! Work is linear in the source and there is no recursion: an f-string is cut into pieces whose expressions are kept as
//! text for the parser, which bounds how deep they nest. Comments are no tokens; they are kept beside them.

mod string;

use crate::error::{Error, Pos};

/// The words that cannot be names.
pub(crate) const KEYWORDS: &[&str] = &[
    "and", "as", "assert", "break", "continue", "def", "del", "elif", "else", "except", "finally", "for", "from",
    "global", "if", "in", "is", "lambda", "not", "or", "pass", "raise", "return", "try", "while", "None", "True",
    "False", "import", "class", "with", "async", "await", "yield", "nonlocal",
];

/// The operators and delimiters, longest first.
const OPERATORS: &[&str] = &[
    "**=", "//=", ">>=", "<<=", "**", "//", ">>", "<<", "<=", ">=", "==", "!=", "->", "+=", "-=", "*=", "/=", "%=",
    "&=", "|=", "^=", ":=", "+", "-", "*", "/", "%", "&", "|", "^", "~", "<", ">", "(", ")", "[", "]", "{", "}", ",",
    ":", ".", ";", "=", "@",
];

/// The least whole number without its sign.
const LEAST: &str = "9223372036854775808";

/// Levels of indentation; deeper blocks than any `nesting` limit are refused here already.
const MOST_INDENTS: usize = 128;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tok {
    Name(String),
    Int(i64),
    /// The digits of the least whole number, which are none without a `-` before them.
    Least,
    Float(f64),
    Str(String),
    FString(Vec<Piece>),
    /// A keyword, an operator or a delimiter.
    Sign(&'static str),
    Newline,
    Indent,
    Dedent,
    End,
}

/// A piece of an f-string.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    Field { source: String, pos: Pos, conversion: Option<char>, spec: Vec<Piece> },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) tok: Tok,
    pub(crate) pos: Pos,
    /// The place behind it, in characters from the start of the source.
    pub(crate) end: usize,
}

/// A comment, from its `#` to the end of the line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comment {
    pub(crate) text: String,
    pub(crate) pos: Pos,
}

impl Tok {
    pub(crate) fn describe(&self) -> String {
        match self {
            Tok::Name(name) => format!("`{name}`"),
            Tok::Int(n) => format!("`{n}`"),
            Tok::Least => format!("`{LEAST}`"),
            Tok::Float(n) => format!("`{n}`"),
            Tok::Str(_) | Tok::FString(_) => "a string".to_owned(),
            Tok::Sign(sign) => format!("`{sign}`"),
            Tok::Newline => "the end of the line".to_owned(),
            Tok::Indent => "an indented line".to_owned(),
            Tok::Dedent => "the end of the block".to_owned(),
            Tok::End => "the end of the program".to_owned(),
        }
    }
}

/// The tokens of a whole program.
pub(crate) fn tokens(source: &str) -> Result<Vec<Token>, Error> {
    let mut lexer = Lexer::new(source, Pos { line: 1, column: 1 });
    lexer.run(false)?;
    Ok(lexer.out)
}

/// As [`tokens`], with the comments between them.
pub(crate) fn tokens_and_comments(source: &str) -> Result<(Vec<Token>, Vec<Comment>), Error> {
    let mut lexer = Lexer::new(source, Pos { line: 1, column: 1 });
    lexer.run(false)?;
    Ok((lexer.out, lexer.comments))
}

/// Whether the source ends inside a bracket or a string of several lines.
pub(crate) fn is_open(source: &str) -> bool {
    let mut lexer = Lexer::new(source, Pos { line: 1, column: 1 });
    let ended = if source.ends_with('\n') { lexer.chars.len() } else { usize::MAX };
    lexer.run(false).is_err() && lexer.idx == ended
}

/// The tokens of one expression that stands at `pos`, as inside an f-string.
pub(crate) fn expression_tokens(source: &str, pos: Pos) -> Result<Vec<Token>, Error> {
    let mut lexer = Lexer::new(source, pos);
    lexer.run(true)?;
    Ok(lexer.out)
}

struct Lexer {
    chars: Vec<char>,
    idx: usize,
    pos: Pos,
    brackets: Vec<(char, Pos)>,
    indents: heapless::Vec<u32, MOST_INDENTS>,
    out: Vec<Token>,
    comments: Vec<Comment>,
}

impl Lexer {
    fn new(source: &str, pos: Pos) -> Lexer {
        Lexer {
            chars: source.chars().collect(),
            idx: 0,
            pos,
            brackets: Vec::new(),
            indents: heapless::Vec::new(),
            out: Vec::new(),
            comments: Vec::new(),
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.idx.saturating_add(ahead)).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.idx = self.idx.saturating_add(1);
        if c == '\n' {
            self.pos = Pos { line: self.pos.line.saturating_add(1), column: 1 };
        } else {
            self.pos.column = self.pos.column.saturating_add(1);
        }
        Some(c)
    }

    fn push(&mut self, tok: Tok, pos: Pos) {
        self.out.push(Token { tok, pos, end: self.idx });
    }

    fn run(&mut self, expression: bool) -> Result<(), Error> {
        let mut line_start = !expression;
        loop {
            if line_start && self.brackets.is_empty() {
                self.indentation()?;
                line_start = false;
            }
            let pos = self.pos;
            let Some(c) = self.peek(0) else { break };
            match c {
                '\n' => {
                    self.next();
                    if self.brackets.is_empty() && !expression {
                        if !matches!(
                            self.out.last().map(|t| &t.tok),
                            None | Some(Tok::Newline | Tok::Indent | Tok::Dedent)
                        ) {
                            self.push(Tok::Newline, pos);
                        }
                        line_start = true;
                    }
                }
                ' ' | '\t' | '\r' | '\u{c}' | '\u{feff}' | '\u{a0}' => {
                    self.next();
                }
                '#' => {
                    let mut text = String::new();
                    while let Some(c) = self.peek(0).filter(|c| *c != '\n') {
                        text.push(c);
                        self.next();
                    }
                    self.comments.push(Comment { text, pos });
                }
                '\\' if self.peek(1) == Some('\n') || (self.peek(1) == Some('\r') && self.peek(2) == Some('\n')) => {
                    while self.next() != Some('\n') {}
                }
                '0'..='9' => self.number()?,
                '.' if self.peek(1).is_some_and(|c| c.is_ascii_digit()) => self.number()?,
                '"' | '\'' => self.string("")?,
                c if c == '_' || c.is_alphabetic() => self.word()?,
                _ => self.operator()?,
            }
        }
        if let Some((open, pos)) = self.brackets.last() {
            return Err(Error::syntax(*pos, format!("bracket is never closed: `{open}`"))
                .with_hint(format!("close it with `{}`", closing(*open))));
        }
        let pos = self.pos;
        if !expression && !matches!(self.out.last().map(|t| &t.tok), None | Some(Tok::Newline | Tok::Dedent)) {
            self.push(Tok::Newline, pos);
        }
        for _ in 0..self.indents.len() {
            self.push(Tok::Dedent, pos);
        }
        self.push(Tok::End, pos);
        Ok(())
    }

    fn indentation(&mut self) -> Result<(), Error> {
        let mut width = 0u32;
        while let Some(c) = self.peek(0) {
            match c {
                ' ' => width = width.saturating_add(1),
                '\t' => width = (width / 8).saturating_add(1).saturating_mul(8),
                '\r' | '\u{c}' | '\u{feff}' => {}
                _ => break,
            }
            self.next();
        }
        if matches!(self.peek(0), None | Some('\n' | '#')) {
            return Ok(());
        }
        let pos = self.pos;
        let mut current = self.indents.last().copied().unwrap_or(0);
        if width > current {
            if self.indents.push(width).is_err() {
                return Err(
                    Error::over("indentation", MOST_INDENTS as u64, (MOST_INDENTS as u64).saturating_add(1)).at(pos)
                );
            }
            self.push(Tok::Indent, pos);
        }
        while width < current {
            self.indents.pop();
            current = self.indents.last().copied().unwrap_or(0);
            self.push(Tok::Dedent, pos);
            if width > current {
                return Err(
                    Error::syntax(pos, "indentation fits no outer block").with_hint("indent each block by four spaces")
                );
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), Error> {
        let pos = self.pos;
        let radix = match (self.peek(0), self.peek(1).map(|c| c.to_ascii_lowercase())) {
            (Some('0'), Some('x')) => 16,
            (Some('0'), Some('o')) => 8,
            (Some('0'), Some('b')) => 2,
            _ => 10,
        };
        let mut text = String::new();
        if radix != 10 {
            self.next();
            self.next();
            while let Some(c) = self.peek(0).filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
                self.next();
                if c != '_' {
                    text.push(c);
                }
            }
            let n = i64::from_str_radix(&text, radix).map_err(|_| whole_number(pos))?;
            self.push(Tok::Int(n), pos);
            return Ok(());
        }
        let mut float = false;
        while let Some(c) = self.peek(0) {
            match c {
                '0'..='9' => text.push(c),
                '_' if self.peek(1).is_some_and(|c| c.is_ascii_digit()) => {}
                '.' if !float => {
                    float = true;
                    text.push('.');
                }
                'e' | 'E' => {
                    let sign = usize::from(matches!(self.peek(1), Some('+' | '-')));
                    if !self.peek(sign.saturating_add(1)).is_some_and(|c| c.is_ascii_digit()) {
                        break;
                    }
                    text.push('e');
                    if sign == 1 {
                        self.next();
                        text.extend(self.peek(0));
                    }
                    self.next();
                    while let Some(c) = self.peek(0).filter(|c| c.is_ascii_digit()) {
                        text.push(c);
                        self.next();
                    }
                    float = true;
                    break;
                }
                _ => break,
            }
            self.next();
        }
        if let Some(c) = self.peek(0).filter(|c| c.is_alphabetic() || *c == '_') {
            return Err(Error::syntax(self.pos, format!("number runs into a letter: `{c}`"))
                .with_hint("put an operator or a space between the two; a name starts with a letter"));
        }
        if !float && text.len() > 1 && text.starts_with('0') && text.bytes().any(|b| b != b'0') {
            return Err(Error::syntax(pos, format!("number starts with a zero: `{text}`"))
                .with_hint("write it without the zero, or as a string"));
        }
        let tok = if float {
            Tok::Float(text.parse().map_err(|_| Error::syntax(pos, format!("malformed number: `{text}`")))?)
        } else if text == LEAST {
            Tok::Least
        } else {
            Tok::Int(text.parse().map_err(|_| whole_number(pos))?)
        };
        self.push(tok, pos);
        Ok(())
    }

    fn word(&mut self) -> Result<(), Error> {
        let pos = self.pos;
        let mut word = String::new();
        while let Some(c) = self.peek(0).filter(|c| *c == '_' || c.is_alphanumeric()) {
            word.push(c);
            self.next();
        }
        if matches!(self.peek(0), Some('"' | '\'')) {
            let prefix = word.to_ascii_lowercase();
            match prefix.as_str() {
                "f" | "r" | "u" | "fr" | "rf" => return self.string_at(&prefix, pos),
                "b" | "br" | "rb" => {
                    return Err(Error::unsupported(
                        pos,
                        "bytes literals are not part of the language",
                        "write a string without the `b`",
                    ));
                }
                _ => {}
            }
        }
        let tok = match KEYWORDS.iter().find(|k| **k == word) {
            Some(keyword) => Tok::Sign(keyword),
            None => Tok::Name(word),
        };
        self.push(tok, pos);
        Ok(())
    }

    fn operator(&mut self) -> Result<(), Error> {
        let pos = self.pos;
        let matches = |sign: &str| sign.chars().enumerate().all(|(i, c)| self.peek(i) == Some(c));
        let Some(sign) = OPERATORS.iter().find(|sign| matches(sign)) else {
            let c = self.peek(0).unwrap_or(' ');
            let error = Error::syntax(pos, format!("unexpected character: `{}`", c.escape_debug()));
            return Err(match c {
                '!' => error.with_hint("write `not x` or `!=`"),
                '$' | '`' => error.with_hint("write f\"{name}\" to put a value into a string"),
                '?' => error.with_hint("write `a if condition else b`"),
                '“' | '”' | '‘' | '’' => error.with_hint("use straight quotes: \""),
                _ => error,
            });
        };
        let doubled = match *sign {
            "&" if self.peek(1) == Some('&') => Some("write `and`"),
            "|" if self.peek(1) == Some('|') => Some("write `or`"),
            _ => None,
        };
        if let Some(hint) = doubled {
            return Err(Error::syntax(pos, format!("no such operator: `{sign}{sign}`")).with_hint(hint));
        }
        for _ in 0..sign.len() {
            self.next();
        }
        match *sign {
            "(" | "[" | "{" => self.brackets.push((sign.chars().next().unwrap_or('('), pos)),
            ")" | "]" | "}" => {
                let wanted = match *sign {
                    ")" => '(',
                    "]" => '[',
                    _ => '{',
                };
                match self.brackets.pop() {
                    Some((open, _)) if open == wanted => {}
                    Some((open, _)) => {
                        return Err(Error::syntax(pos, format!("`{sign}` does not close `{open}`"))
                            .with_hint(format!("close it with `{}`", closing(open))));
                    }
                    None => {
                        return Err(Error::syntax(pos, format!("nothing to close with `{sign}`"))
                            .with_hint("delete it, or open the bracket before"));
                    }
                }
            }
            _ => {}
        }
        self.push(Tok::Sign(sign), pos);
        Ok(())
    }
}

fn closing(open: char) -> char {
    match open {
        '(' => ')',
        '[' => ']',
        _ => '}',
    }
}

pub(crate) fn whole_number(pos: Pos) -> Error {
    Error::syntax(pos, "whole number does not fit 64 bits").with_hint("write it as a float, such as 1e20")
}
