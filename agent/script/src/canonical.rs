//! A program in its canonical form: four spaces, one statement a line, one space around operators, double quotes.
//!
//! It is the form that the grammar decodes, so that a model's program is in it already. Works on tokens, so that comments,
//! numbers and parentheses stay as they are written; only white space, commas before a closing bracket and the quotes of
//! plain strings change. Where lines break depends on the tokens alone: the form of a canonical program is itself. A line
//! over [`WIDTH`] characters is broken inside its brackets, one item a line. The result is compiled again and compared, so
//! that a program of another meaning is never given back.

mod layout;
#[cfg(test)]
mod tests;
mod words;

use crate::code::Program;
use crate::compiler::compile;
use crate::error::{Error, Kind, Pos};
use crate::lexer::{self, Comment, Tok, Token};
use crate::limits::Limits;
use layout::Writer;
use std::iter::Peekable;
use std::vec::IntoIter;
use words::{Spacer, Word, comment_text};

/// Characters of a line beyond which it is broken, where it has brackets.
const WIDTH: usize = 100;
/// Spaces of a level.
const INDENT: usize = 4;
/// The words that open a statement with a block.
const COMPOUND: &[&str] = &["if", "elif", "else", "for", "while", "try", "except", "finally", "def"];

/// The program in its canonical form, comments included.
///
/// # Errors
/// As [`compile`], for a program that does not compile, or one that is over a limit only when it is laid out.
pub fn canonical(source: &str, limits: &Limits) -> Result<String, Error> {
    let before = compile(source, limits)?;
    let (tokens, comments) = lexer::tokens_and_comments(source)?;
    let text = Printer::new(source, comments).print(&tokens);
    let after = compile(&text, limits)?;
    if without_places(before) != without_places(after) {
        return Err(Error::new(Kind::State, "the canonical form would be another program"));
    }
    Ok(text)
}

fn without_places(mut program: Program) -> Program {
    program.codes.iter_mut().for_each(|code| code.positions.clear());
    program
}

struct Printer {
    chars: Vec<char>,
    /// Where each line starts in `chars`.
    lines: Vec<usize>,
    comments: Peekable<IntoIter<Comment>>,
    /// The column of each open level in the source; the left margin is not among them.
    columns: Vec<u32>,
    writer: Writer,
    /// The line of the source on which the last thing written ended.
    last_line: u32,
    /// Whether the last line written opens a block or none is written yet: no empty line may follow.
    opened: bool,
}

/// A statement under construction.
struct Statement {
    words: Vec<Word>,
    spacer: Spacer,
    /// Opens a block that has not been opened yet.
    compound: bool,
}

impl Statement {
    fn new() -> Statement {
        Statement { words: Vec::new(), spacer: Spacer::default(), compound: false }
    }
}

impl Printer {
    fn new(source: &str, comments: Vec<Comment>) -> Printer {
        let chars: Vec<char> = source.chars().collect();
        let after = chars.iter().enumerate().filter(|(_, c)| **c == '\n').map(|(at, _)| at.saturating_add(1));
        let lines = std::iter::once(0).chain(after).collect();
        Printer {
            chars,
            lines,
            comments: comments.into_iter().peekable(),
            columns: Vec::new(),
            writer: Writer::default(),
            last_line: 0,
            opened: true,
        }
    }

    fn print(mut self, tokens: &[Token]) -> String {
        let mut statement = Statement::new();
        let mut inline = 0;
        for (at, token) in tokens.iter().enumerate() {
            match &token.tok {
                Tok::Indent => {
                    let level = self.columns.len().saturating_add(1);
                    self.own_comments(token.pos, level);
                    self.columns.push(token.pos.column);
                }
                Tok::Dedent => {
                    let left = tokens.iter().skip(at).take_while(|t| t.tok == Tok::Dedent).count();
                    self.own_comments(token.pos, self.columns.len().saturating_sub(left));
                    self.columns.pop();
                }
                Tok::End => self.own_comments(token.pos, 0),
                Tok::Newline => {
                    let comment = self.comments.next_if(|c| before(c.pos, token.pos));
                    self.end(&mut statement, inline, token.pos.line, comment);
                    inline = 0;
                }
                Tok::Sign(";") if !statement.spacer.in_brackets() => {
                    self.end(&mut statement, inline, token.pos.line, None);
                }
                tok => {
                    if statement.words.is_empty() {
                        if inline == 0 {
                            self.own_comments(token.pos, self.columns.len());
                            self.gap(token.pos.line);
                        }
                        statement.compound = inline == 0 && matches!(tok, Tok::Sign(s) if COMPOUND.contains(s));
                    }
                    let opens = statement.compound && statement.spacer.is_block_colon(tok);
                    self.comments_between(&mut statement, token.pos);
                    let text = self.text(token);
                    let word = statement.spacer.word(tok, text);
                    statement.words.push(word);
                    self.last_line = token.pos.line;
                    let more = tokens.get(at.saturating_add(1)).is_some_and(|next| next.tok != Tok::Newline);
                    if opens && more {
                        self.end(&mut statement, inline, token.pos.line, None);
                        inline = 1;
                    }
                }
            }
        }
        self.writer.out
    }

    /// The characters of a token.
    fn text(&self, token: &Token) -> String {
        let line = (token.pos.line as usize).saturating_sub(1);
        let start =
            self.lines.get(line).copied().unwrap_or(0).saturating_add(token.pos.column as usize).saturating_sub(1);
        self.chars.get(start..token.end).unwrap_or_default().iter().collect()
    }

    /// Writes the comments on lines of their own before `pos`. Each stands at the innermost level that its column
    /// reaches, but not outside of `least`.
    fn own_comments(&mut self, pos: Pos, least: usize) {
        let mut level = self.columns.len().max(least);
        while let Some(comment) = self.comments.next_if(|c| before(c.pos, pos)) {
            let reached = self.columns.iter().take_while(|column| **column <= comment.pos.column).count();
            level = level.min(reached).max(least);
            self.gap(comment.pos.line);
            self.writer.own_line(&comment_text(&comment.text), level.saturating_mul(INDENT));
            self.last_line = comment.pos.line;
            self.opened = false;
        }
    }

    /// Writes an empty line where the source has one or more before `line`.
    fn gap(&mut self, line: u32) {
        if !self.opened && line > self.last_line.saturating_add(1) {
            self.writer.empty_line();
        }
    }

    /// Hangs the comments inside brackets on the words that they stand beside.
    fn comments_between(&mut self, statement: &mut Statement, pos: Pos) {
        let mut own = Vec::new();
        while let Some(comment) = self.comments.next_if(|c| before(c.pos, pos)) {
            match statement.words.last_mut() {
                Some(word) if comment.pos.line == self.last_line && word.after.is_none() => {
                    word.after = Some(comment_text(&comment.text));
                }
                _ => own.push(comment_text(&comment.text)),
            }
        }
        statement.spacer.comments = own;
    }

    fn end(&mut self, statement: &mut Statement, inline: usize, line: u32, comment: Option<Comment>) {
        let done = std::mem::replace(statement, Statement::new());
        if !done.words.is_empty() {
            let level = self.columns.len().saturating_add(inline);
            let comment = comment.map(|comment| comment_text(&comment.text));
            self.writer.statement(done.words, level.saturating_mul(INDENT), comment);
            self.opened = done.compound;
        }
        self.last_line = line;
    }
}

fn before(a: Pos, b: Pos) -> bool {
    (a.line, a.column) < (b.line, b.column)
}
