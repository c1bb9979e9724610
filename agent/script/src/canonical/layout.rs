//! Words to lines: a statement stands on one line where it fits, else the brackets that do not fit are broken.

use super::words::{Bracket, Word};
use super::{INDENT, WIDTH};

enum Piece {
    Word(Word),
    Group(Group),
}

/// A pair of brackets with what is in them.
struct Group {
    open: Word,
    items: Vec<Item>,
    close: Word,
    /// Columns on one line, the space before it included.
    width: usize,
    /// Whether comments are inside, so that it has to be broken.
    commented: bool,
}

/// What stands on a line of its own in a broken group.
#[derive(Default)]
struct Item {
    pieces: Vec<Piece>,
    comma: Option<Word>,
    /// The comma is written only where the group is broken.
    only_broken: bool,
}

/// Where the items of a group part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parting {
    Commas,
    Clauses,
    Word(&'static str),
    Strings,
}

impl Piece {
    fn is(&self, sign: &str) -> bool {
        matches!(self, Piece::Word(word) if word.is(sign))
    }

    fn is_string(&self) -> bool {
        matches!(self, Piece::Word(word) if word.is_string)
    }

    fn width(&self) -> usize {
        match self {
            Piece::Word(word) => word.width(),
            Piece::Group(group) => group.width,
        }
    }

    fn is_commented(&self) -> bool {
        let one = |word: &Word| !word.before.is_empty() || word.after.is_some();
        match self {
            Piece::Word(word) => one(word),
            Piece::Group(group) => group.commented || !group.open.before.is_empty() || group.close.after.is_some(),
        }
    }

    fn last_word(&mut self) -> &mut Word {
        match self {
            Piece::Word(word) => word,
            Piece::Group(group) => &mut group.close,
        }
    }
}

/// Marks the pieces that stand inside the parameters of a `lambda` at this level.
fn lambda_params(pieces: &[Piece]) -> Vec<bool> {
    let mut open = 0u32;
    let inside = |piece: &Piece| {
        if piece.is("lambda") {
            open = open.saturating_add(1);
        } else if piece.is(":") && open > 0 {
            open = open.saturating_sub(1);
        }
        open > 0
    };
    pieces.iter().map(inside).collect()
}

fn parting(pieces: &[Piece], in_params: &[bool]) -> Parting {
    let has = |sign: &str| pieces.iter().zip(in_params).any(|(piece, params)| piece.is(sign) && !params);
    if has("for") {
        Parting::Clauses
    } else if has(",") {
        Parting::Commas
    } else if has("or") {
        Parting::Word("or")
    } else if has("and") {
        Parting::Word("and")
    } else {
        Parting::Strings
    }
}

fn items(pieces: Vec<Piece>) -> Vec<Item> {
    let in_params = lambda_params(&pieces);
    let parting = parting(&pieces, &in_params);
    let mut items: Vec<Item> = Vec::new();
    let mut item = Item::default();
    let mut in_clauses = false;
    for (piece, params) in pieces.into_iter().zip(in_params) {
        let after_string = item.pieces.last().is_some_and(Piece::is_string);
        let starts = match parting {
            Parting::Commas => false,
            Parting::Clauses => piece.is("for") || (in_clauses && piece.is("if")),
            Parting::Word(word) => piece.is(word) && !params,
            Parting::Strings => after_string && piece.is_string(),
        };
        in_clauses |= piece.is("for");
        if starts && !item.pieces.is_empty() {
            items.push(std::mem::take(&mut item));
        }
        match piece {
            Piece::Word(comma) if parting == Parting::Commas && comma.is(",") && !params => {
                item.comma = Some(comma);
                items.push(std::mem::take(&mut item));
            }
            piece => item.pieces.push(piece),
        }
    }
    if !item.pieces.is_empty() {
        items.push(item);
    }
    items
}

impl Group {
    fn new(open: Word, pieces: Vec<Piece>, close: Word) -> Group {
        let mut items = items(pieces);
        let n_items = items.len();
        let by_commas = items.first().is_some_and(|item| item.comma.is_some());
        if let Some(last) = items.last_mut().filter(|_| by_commas) {
            if n_items > 1 {
                last.only_broken = true;
                last.comma.get_or_insert_with(|| Word { text: ",".to_owned(), sign: Some(","), ..Word::default() });
            } else if open.bracket == Bracket::Items {
                let comments =
                    last.comma.take().into_iter().flat_map(|comma| comma.before.into_iter().chain(comma.after));
                if let Some(word) = last.pieces.last_mut().map(Piece::last_word) {
                    word.after = joined(word.after.take().into_iter().chain(comments));
                }
            }
        }
        for item in &mut items {
            if let (Some(comma), Some(last)) = (&mut item.comma, item.pieces.last_mut()) {
                let moved = last.last_word().after.take();
                comma.after = joined(moved.into_iter().chain(comma.after.take()));
            }
        }
        let width = |item: &Item| {
            let comma = item.comma.as_ref().filter(|_| !item.only_broken).map_or(0, Word::width);
            item.pieces.iter().map(Piece::width).fold(comma, usize::saturating_add)
        };
        let inner = items.iter().map(width).fold(0, usize::saturating_add);
        let commented = open.after.is_some()
            || !close.before.is_empty()
            || items.iter().any(|item| {
                item.pieces.iter().any(Piece::is_commented)
                    || item.comma.as_ref().is_some_and(|comma| comma.after.is_some() || !comma.before.is_empty())
            });
        let width = inner.saturating_add(open.width()).saturating_add(close.width());
        Group { open, items, close, width, commented }
    }
}

fn joined(comments: impl Iterator<Item = String>) -> Option<String> {
    comments.reduce(|a, b| format!("{a}  {b}"))
}

/// Folds words between brackets into groups.
fn grouped(words: Vec<Word>) -> Vec<Piece> {
    let mut outer: Vec<(Word, Vec<Piece>)> = Vec::new();
    let mut pieces = Vec::new();
    for word in words {
        match word.sign {
            Some("(" | "[" | "{") => outer.push((word, std::mem::take(&mut pieces))),
            Some(")" | "]" | "}") => {
                if let Some((open, around)) = outer.pop() {
                    let inside = std::mem::replace(&mut pieces, around);
                    pieces.push(Piece::Group(Group::new(open, inside, word)));
                }
            }
            _ => pieces.push(Piece::Word(word)),
        }
    }
    pieces
}

/// Writes lines.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) out: String,
    column: usize,
    indent: usize,
    /// Whether nothing but white space stands on the line.
    fresh: bool,
    /// Whether a comment ends the line.
    closed: bool,
}

impl Writer {
    /// A statement, and the comment that ends its line.
    pub(super) fn statement(&mut self, words: Vec<Word>, indent: usize, comment: Option<String>) {
        self.indent = indent;
        self.start_line();
        self.pieces(&grouped(words), 0);
        if let Some(comment) = comment {
            self.push("  ");
            self.push(&comment);
        }
        self.end_line();
    }

    /// A comment on a line of its own.
    pub(super) fn own_line(&mut self, comment: &str, indent: usize) {
        self.indent = indent;
        self.start_line();
        self.push(comment);
        self.end_line();
    }

    pub(super) fn empty_line(&mut self) {
        self.out.push('\n');
    }

    fn start_line(&mut self) {
        self.out.extend(std::iter::repeat_n(' ', self.indent));
        (self.column, self.fresh, self.closed) = (self.indent, true, false);
    }

    fn end_line(&mut self) {
        self.out.push('\n');
    }

    fn next_line(&mut self) {
        self.end_line();
        self.start_line();
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        self.column = match text.rsplit_once('\n') {
            Some((_, last)) => last.chars().count(),
            None => self.column.saturating_add(text.chars().count()),
        };
        self.fresh = false;
    }

    fn word(&mut self, word: &Word) {
        for comment in &word.before {
            if !self.fresh {
                self.next_line();
            }
            self.push(comment);
            self.closed = true;
        }
        if self.closed {
            self.next_line();
        }
        if word.gap && !self.fresh {
            self.push(" ");
        }
        self.push(&word.text);
        if let Some(comment) = &word.after {
            self.push("  ");
            self.push(comment);
            self.closed = true;
        }
    }

    /// Writes pieces that `after` columns follow.
    fn pieces(&mut self, pieces: &[Piece], after: usize) {
        for (at, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Word(word) => self.word(word),
                Piece::Group(group) => {
                    let mut tail = after;
                    for next in pieces.iter().skip(at.saturating_add(1)) {
                        match next {
                            Piece::Group(next) if !next.items.is_empty() => {
                                tail = tail.saturating_add(next.open.width()).saturating_sub(after);
                                break;
                            }
                            next => tail = tail.saturating_add(next.width()),
                        }
                    }
                    self.group(group, tail);
                }
            }
        }
    }

    fn group(&mut self, group: &Group, tail: usize) {
        let end = self.column.saturating_add(group.width).saturating_add(tail);
        self.word(&group.open);
        if !group.commented && (end <= WIDTH || group.items.is_empty()) {
            for item in &group.items {
                self.pieces(&item.pieces, 0);
                if let Some(comma) = item.comma.as_ref().filter(|_| !item.only_broken) {
                    self.word(comma);
                }
            }
            return self.word(&group.close);
        }
        let outer = self.indent;
        self.indent = outer.saturating_add(INDENT);
        for item in &group.items {
            self.next_line();
            self.pieces(&item.pieces, usize::from(item.comma.is_some()));
            if let Some(comma) = &item.comma {
                self.word(comma);
            }
        }
        for comment in &group.close.before {
            self.next_line();
            self.push(comment);
        }
        self.indent = outer;
        self.next_line();
        self.word(&Word { before: Vec::new(), ..group.close.clone() });
    }
}
