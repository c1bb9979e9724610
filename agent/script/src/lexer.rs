//! Source text to tokens: indentation, brackets, strings, numbers.
//!
//! Work is linear in the source and there is no recursion: an f-string is cut into pieces whose expressions are kept as
//! text for the parser, which bounds how deep they nest. Comments are skipped.

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

/// Levels of indentation; deeper blocks than any `nesting` limit are refused here already.
const MOST_INDENTS: usize = 128;

/// Characters looked ahead for the end of an f-string's field; bounds the work on a hostile line.
const LONGEST_FIELD: usize = 1_000;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tok {
    Name(String),
    Int(i64),
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
}

impl Tok {
    pub(crate) fn describe(&self) -> String {
        match self {
            Tok::Name(name) => format!("`{name}`"),
            Tok::Int(n) => format!("`{n}`"),
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
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.idx + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.idx += 1;
        if c == '\n' {
            self.pos = Pos { line: self.pos.line.saturating_add(1), column: 1 };
        } else {
            self.pos.column = self.pos.column.saturating_add(1);
        }
        Some(c)
    }

    fn push(&mut self, tok: Tok, pos: Pos) {
        self.out.push(Token { tok, pos });
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
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.next();
                    }
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
            return Err(Error::syntax(*pos, format!("bracket is never closed: `{open}`")));
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
                ' ' => width += 1,
                '\t' => width = (width / 8 + 1) * 8,
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
                return Err(Error::over("indentation", MOST_INDENTS as u64, MOST_INDENTS as u64 + 1).at(pos));
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
                    if !self.peek(1 + sign).is_some_and(|c| c.is_ascii_digit()) {
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
            return Err(Error::syntax(self.pos, format!("number runs into a letter: `{c}`")));
        }
        if !float && text.len() > 1 && text.starts_with('0') && text.bytes().any(|b| b != b'0') {
            return Err(Error::syntax(pos, format!("number starts with a zero: `{text}`"))
                .with_hint("write it without the zero, or as a string"));
        }
        let tok = if float {
            Tok::Float(text.parse().map_err(|_| Error::syntax(pos, format!("malformed number: `{text}`")))?)
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
                        return Err(Error::syntax(pos, format!("`{sign}` does not close `{open}`")));
                    }
                    None => return Err(Error::syntax(pos, format!("nothing to close with `{sign}`"))),
                }
            }
            _ => {}
        }
        self.push(Tok::Sign(sign), pos);
        Ok(())
    }

    fn string(&mut self, prefix: &str) -> Result<(), Error> {
        self.string_at(prefix, self.pos)
    }

    fn string_at(&mut self, prefix: &str, pos: Pos) -> Result<(), Error> {
        let quote = self.next().unwrap_or('"');
        let triple = self.peek(0) == Some(quote) && self.peek(1) == Some(quote);
        if triple {
            self.next();
            self.next();
        }
        let form = Form { quote, triple, raw: prefix.contains('r'), pos };
        let tok = if prefix.contains('f') {
            Tok::FString(self.pieces(form, false)?)
        } else {
            let mut text = String::new();
            while !self.ends(form)? {
                self.character(form, &mut text)?;
            }
            Tok::Str(text)
        };
        self.push(tok, pos);
        Ok(())
    }

    /// Whether the string ends here; its closing quote is then consumed.
    fn ends(&mut self, form: Form) -> Result<bool, Error> {
        match self.peek(0) {
            None => Err(form.unclosed()),
            Some('\n') if !form.triple => Err(form.unclosed()),
            Some(c) if c == form.quote => {
                if !form.triple {
                    self.next();
                    return Ok(true);
                }
                let closes = self.peek(1) == Some(c) && self.peek(2) == Some(c);
                if closes {
                    for _ in 0..3 {
                        self.next();
                    }
                }
                Ok(closes)
            }
            _ => Ok(false),
        }
    }

    fn character(&mut self, form: Form, text: &mut String) -> Result<(), Error> {
        let pos = self.pos;
        let Some(c) = self.next() else { return Err(form.unclosed()) };
        if c != '\\' {
            text.push(c);
            return Ok(());
        }
        let Some(escaped) = self.next() else { return Err(form.unclosed()) };
        if form.raw {
            text.push('\\');
            text.push(escaped);
            return Ok(());
        }
        let simple = match escaped {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'a' => Some('\u{7}'),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            'v' => Some('\u{b}'),
            '\\' | '\'' | '"' => Some(escaped),
            _ => None,
        };
        if let Some(c) = simple {
            text.push(c);
            return Ok(());
        }
        let digits = match escaped {
            '\n' => return Ok(()),
            '0'..='7' => {
                let mut code = escaped.to_digit(8).unwrap_or(0);
                for _ in 0..2 {
                    let Some(digit) = self.peek(0).and_then(|c| c.to_digit(8)) else { break };
                    code = code * 8 + digit;
                    self.next();
                }
                text.extend(char::from_u32(code));
                return Ok(());
            }
            'x' => 2,
            'u' => 4,
            'U' => 8,
            other => {
                text.push('\\');
                text.push(other);
                return Ok(());
            }
        };
        let hex: String = (0..digits).map_while(|_| self.next()).collect();
        let decoded = u32::from_str_radix(&hex, 16).ok().filter(|_| hex.len() == digits).and_then(char::from_u32);
        text.push(
            decoded
                .ok_or_else(|| Error::syntax(pos, format!("malformed escape: `\\{escaped}{}`", hex.escape_debug())))?,
        );
        Ok(())
    }

    /// The pieces of an f-string up to its closing quote, or of a format spec up to its `}`.
    fn pieces(&mut self, form: Form, spec: bool) -> Result<Vec<Piece>, Error> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        loop {
            if spec && self.peek(0) == Some('}') {
                break;
            }
            if self.ends(form)? {
                if spec {
                    return Err(Error::syntax(form.pos, "field of the f-string is never closed: `{`"));
                }
                break;
            }
            match self.peek(0) {
                Some(c @ ('{' | '}')) if !spec && self.peek(1) == Some(c) => {
                    self.next();
                    self.next();
                    text.push(c);
                }
                Some('{') => {
                    if !text.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut text)));
                    }
                    if spec {
                        self.next();
                        let (source, pos) = self.field_source(form)?;
                        self.closing_brace(form)?;
                        pieces.push(Piece::Field { source, pos, conversion: None, spec: Vec::new() });
                    } else {
                        self.field(form, &mut pieces)?;
                    }
                }
                Some('}') => {
                    return Err(
                        Error::syntax(self.pos, "single `}` in an f-string").with_hint("write `}}` for the character")
                    );
                }
                _ => self.character(form, &mut text)?,
            }
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Ok(pieces)
    }

    fn field(&mut self, form: Form, pieces: &mut Vec<Piece>) -> Result<(), Error> {
        self.next();
        let (source, pos) = self.field_source(form)?;
        let mut conversion = None;
        if self.peek(0) == Some('=') {
            self.next();
            let mut shown = format!("{source}=");
            while self.peek(0) == Some(' ') {
                self.next();
                shown.push(' ');
            }
            pieces.push(Piece::Text(shown));
            conversion = (self.peek(0) == Some('}')).then_some('r');
        }
        if self.peek(0) == Some('!') {
            self.next();
            conversion = self.next();
            if !matches!(conversion, Some('r' | 's' | 'a')) {
                return Err(
                    Error::syntax(self.pos, "unknown conversion in an f-string").with_hint("write `!r` or `!s`")
                );
            }
        }
        let mut spec = Vec::new();
        if self.peek(0) == Some(':') {
            self.next();
            spec = self.pieces(form, true)?;
        }
        self.closing_brace(form)?;
        pieces.push(Piece::Field { source, pos, conversion, spec });
        Ok(())
    }

    fn closing_brace(&mut self, form: Form) -> Result<(), Error> {
        match self.next() {
            Some('}') => Ok(()),
            _ => Err(Error::syntax(form.pos, "field of the f-string is never closed: `{`")),
        }
    }

    /// The text of the expression in a field, up to its conversion, spec or end.
    fn field_source(&mut self, form: Form) -> Result<(String, Pos), Error> {
        let pos = self.pos;
        let mut source = String::new();
        let mut depth = 0u32;
        loop {
            let Some(c) = self.peek(0) else { return Err(form.unclosed()) };
            match c {
                '\n' if !form.triple => return Err(form.unclosed()),
                '"' | '\'' => {
                    if c == form.quote && (form.triple || !self.closes_later(c)) {
                        return Err(Error::syntax(pos, "field of the f-string is never closed: `{`"));
                    }
                    self.next();
                    source.push(c);
                    loop {
                        let Some(inner) = self.next() else { return Err(form.unclosed()) };
                        source.push(inner);
                        if inner == '\\' {
                            source.extend(self.next());
                        } else if inner == c {
                            break;
                        } else if inner == '\n' {
                            return Err(form.unclosed());
                        }
                    }
                    continue;
                }
                '(' | '[' | '{' => depth += 1,
                ')' | ']' => depth = depth.saturating_sub(1),
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ':' if depth == 0 => break,
                '!' if depth == 0 && self.peek(1) != Some('=') => break,
                '=' if depth == 0 && self.peek(1) != Some('=') && !source.ends_with(['=', '!', '<', '>']) => break,
                _ => {}
            }
            source.push(c);
            self.next();
        }
        if source.trim().is_empty() {
            return Err(Error::syntax(pos, "empty field in an f-string").with_hint("write `{{` for the character"));
        }
        Ok((source, pos))
    }

    /// Whether the quote at hand opens a string inside the field: it is closed again before the field's `}`.
    fn closes_later(&self, quote: char) -> bool {
        let mut seen = false;
        for c in self.chars.iter().skip(self.idx + 1).take(LONGEST_FIELD).take_while(|c| **c != '\n') {
            if *c == quote {
                seen = true;
            } else if *c == '}' && seen {
                return true;
            }
        }
        false
    }
}

#[derive(Clone, Copy)]
struct Form {
    quote: char,
    triple: bool,
    raw: bool,
    pos: Pos,
}

impl Form {
    fn unclosed(self) -> Error {
        Error::syntax(self.pos, "string is never closed").with_hint(format!("end it with {}", self.quote))
    }
}

fn whole_number(pos: Pos) -> Error {
    Error::syntax(pos, "whole number does not fit 64 bits").with_hint("write it as a float, such as 1e20")
}
