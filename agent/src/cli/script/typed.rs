//! Lines that a person types, edited and remembered, or lines from a pipe.

use std::fs;
use std::io::{self, BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};

use rustyline::completion::Completer;
use rustyline::config::{CompletionType, Config};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{DefaultHistory, History};
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};

use super::MAX_SOURCE_BYTES;
use super::read::{background, receive};
use crate::cancel::Cancel;
use crate::error::{Error, ErrorKind, Result};

/// Lines that are remembered from one start to the next.
const MOST_REMEMBERED: usize = 1_000;

/// The names that the tabulator key completes.
pub(super) struct Names(Vec<String>);

impl Completer for Names {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..at).unwrap_or_default();
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':');
        let start = typed.char_indices().rev().take_while(|(_, c)| is_name(*c)).last().map_or(at, |(idx, _)| idx);
        let word = typed.get(start..).unwrap_or_default();
        if word.is_empty() {
            return Ok((start, Vec::new()));
        }
        Ok((start, self.0.iter().filter(|name| name.starts_with(word)).cloned().collect()))
    }
}

impl Hinter for Names {
    type Hint = String;
}

impl Highlighter for Names {}
impl Validator for Names {}
impl Helper for Names {}

/// What came of waiting for a line.
pub(super) enum Typed {
    Line(String),
    /// Ctrl-C at the prompt.
    Interrupted,
    End,
}

/// Where lines come from.
pub(super) enum Lines {
    /// A terminal; what is typed is kept in the file.
    Editor(Box<Editor<Names, DefaultHistory>>, PathBuf),
    Pipe(Receiver<io::Result<Option<String>>>),
}

impl Lines {
    /// Lines of standard input. `history` is read, where it is there.
    pub(super) fn open(history: PathBuf) -> Result<Lines> {
        if !io::stdin().is_terminal() {
            let (sender, receiver) = sync_channel(1);
            background(move || while sender.send(next_line()).is_ok() {})?;
            return Ok(Lines::Pipe(receiver));
        }
        let config = Config::builder().max_history_size(MOST_REMEMBERED).map_err(broken)?;
        let config = config.completion_type(CompletionType::List).build();
        let mut editor = Editor::with_config(config).map_err(broken)?;
        if history.exists() {
            editor.load_history(&history).map_err(|error| forgotten("read", &history, &error))?;
        }
        Ok(Lines::Editor(Box::new(editor), history))
    }

    pub(super) fn is_terminal(&self) -> bool {
        matches!(self, Lines::Editor(..))
    }

    /// Completes these names from here on.
    pub(super) fn offer(&mut self, names: Vec<String>) {
        if let Lines::Editor(editor, _) = self {
            editor.set_helper(Some(Names(names)));
        }
    }

    /// Waits for a line; at a terminal it begins with `start`, which may be edited.
    pub(super) fn next(&mut self, prompt: &str, start: &str, cancel: &Cancel) -> Result<Typed> {
        match self {
            Lines::Pipe(receiver) => match receive(receiver, cancel)? {
                Some(Ok(Some(line))) => Ok(Typed::Line(line)),
                Some(Ok(None)) | None => Ok(Typed::End),
                Some(Err(error)) => Err(Error::new(ErrorKind::Usage, format!("cannot read standard input: {error}"))),
            },
            Lines::Editor(editor, _) => match editor.readline_with_initial(prompt, (start, "")) {
                Ok(line) => {
                    if !line.trim().is_empty() {
                        editor.add_history_entry(line.as_str()).map_err(broken)?;
                    }
                    Ok(Typed::Line(line))
                }
                Err(ReadlineError::Interrupted) => Ok(Typed::Interrupted),
                Err(ReadlineError::Eof) => Ok(Typed::End),
                Err(error) => Err(broken(error)),
            },
        }
    }

    /// Keeps what was typed for the next time.
    pub(super) fn remember(&mut self) -> Result<()> {
        let Lines::Editor(editor, path) = self else { return Ok(()) };
        if editor.history().is_empty() {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| {
                Error::new(ErrorKind::Failed, format!("cannot make a folder ({error}): {}", folder.display()))
            })?;
        }
        editor.save_history(path.as_path()).map_err(|error| forgotten("keep", path, &error))
    }
}

/// The next line of standard input without its end; none after the last.
fn next_line() -> io::Result<Option<String>> {
    let mut line = String::new();
    io::stdin().lock().take(MAX_SOURCE_BYTES + 1).read_line(&mut line)?;
    if line.len() as u64 > MAX_SOURCE_BYTES {
        return Err(io::Error::other(format!("a line is longer than its limit of {MAX_SOURCE_BYTES} bytes")));
    }
    let ended = line.is_empty();
    line.truncate(line.trim_end_matches(['\n', '\r']).len());
    Ok((!ended).then_some(line))
}

fn broken(error: ReadlineError) -> Error {
    Error::new(ErrorKind::Failed, format!("cannot read from the terminal: {error}"))
}

fn forgotten(what: &str, path: &Path, error: &ReadlineError) -> Error {
    Error::new(ErrorKind::Failed, format!("cannot {what} what was typed ({error}): {}", path.display()))
        .with_hint("remove the file, or mend its permissions")
}
