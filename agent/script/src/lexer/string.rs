//! String literals: quotes, escapes, and f-strings cut into pieces.

use super::{Lexer, Piece, Tok};
use crate::error::{Error, Pos};

/// Characters looked ahead for the end of an f-string's field; bounds the work on a hostile line.
const LONGEST_FIELD: usize = 1_000;

const FIELD: &str = "write f\"{x}\" or f\"{x:.2f}\"";

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

impl Lexer {
    pub(super) fn string(&mut self, prefix: &str) -> Result<(), Error> {
        self.string_at(prefix, self.pos)
    }

    pub(super) fn string_at(&mut self, prefix: &str, pos: Pos) -> Result<(), Error> {
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
                    code = code.saturating_mul(8).saturating_add(digit);
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
                    return Err(Error::syntax(form.pos, "field of the f-string is never closed: `{`").with_hint(FIELD));
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
            _ => Err(Error::syntax(form.pos, "field of the f-string is never closed: `{`").with_hint(FIELD)),
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
                        return Err(Error::syntax(pos, "field of the f-string is never closed: `{`").with_hint(FIELD));
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
                '(' | '[' | '{' => depth = depth.saturating_add(1),
                ')' | ']' => depth = depth.saturating_sub(1),
                '}' if depth == 0 => break,
                '}' => depth = depth.saturating_sub(1),
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
        for c in self.chars.iter().skip(self.idx.saturating_add(1)).take(LONGEST_FIELD).take_while(|c| **c != '\n') {
            if *c == quote {
                seen = true;
            } else if *c == '}' && seen {
                return true;
            }
        }
        false
    }
}
