//! `mote script repl`: programs typed line by line over one machine, so that variables live on.
//!
//! An input is a statement, or a block that an empty line ends. From a pipe a block goes on over empty lines and is ended by
//! a line that cannot belong to it. An input that fails changes nothing but what it did before it failed. Every input has
//! the limits of a program of its own; the bytes of all variables count together.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use mote_script::{Input, Limits, Vm, canonical, compile, continues_block, input, reference};
use serde_json::{Value, json};

use super::typed::{Lines, Typed};
use super::{End, FAILED, MAX_SOURCE_BYTES, drive, error_json, help};
use crate::cli::Globals;
use crate::cli::tools::{self, ToolFlags};
use crate::error::{Error, ErrorKind, Result};
use crate::tools::ToolRuntime;

/// The file of what was typed, in the data folder.
const HISTORY_FILE: &str = "script-history";

/// Characters of a value that `:vars` shows.
const SHOWN: usize = 60;

const COMMANDS: &str = "\
:help         these commands
:help NAME    what the language has of this name: sorted, str.split, try
:tools        the tools that can be called; with a word, those that have it
:vars         the variables, what they hold and how big it is
:limits       the bounds of an input, and what the last one used
:save FILE    write what ran without failure to a file, as one program
:quit         leave; so does Ctrl-D
Ctrl-C breaks a running input, or drops what is typed. An empty line ends a block.
";

/// What follows a command.
enum Next {
    GoOn,
    Quit,
}

struct Repl<'a> {
    vm: Vm,
    tools: ToolRuntime,
    globals: &'a Globals,
    limits: Limits,
    /// Inputs that ran without failure, within the size of a program.
    ran: String,
    /// Whether there was more than `ran` holds.
    cut: bool,
    saved: Option<PathBuf>,
    failures: usize,
}

pub(super) fn run(flags: ToolFlags, globals: &Globals) -> Result<u8> {
    let mut lines = Lines::open(globals.home.data().join(HISTORY_FILE))?;
    let limits = Limits::default();
    let tools = tools::open(flags, globals)?;
    let mut repl =
        Repl { vm: Vm::new(limits), tools, globals, limits, ran: String::new(), cut: false, saved: None, failures: 0 };
    let person = lines.is_terminal();
    if person {
        let n_tools = repl.tools.catalogue().n_tools();
        globals.out.message(&format!("the action language with {n_tools} tools; :help for help, Ctrl-D to leave"));
    }
    let ended = repl.read(&mut lines);
    lines.remember()?;
    ended?;
    Ok(if repl.failures > 0 && !person { FAILED } else { 0 })
}

impl Repl<'_> {
    fn read(&mut self, lines: &mut Lines) -> Result<()> {
        let person = lines.is_terminal();
        let mut typed = String::new();
        loop {
            let (prompt, start) =
                if typed.is_empty() { (">>> ", String::new()) } else { ("... ", indentation(&typed)) };
            if person {
                lines.offer(self.names());
            }
            let came = lines.next(prompt, &start, &self.globals.cancel)?;
            if person {
                self.globals.cancel.flag().store(false, Ordering::Release);
            }
            let line = match came {
                Typed::Line(line) => line,
                Typed::Interrupted => {
                    typed.clear();
                    continue;
                }
                Typed::End => return self.input(&std::mem::take(&mut typed)),
            };
            let in_block = !typed.is_empty() && input(&typed) == Input::Block;
            if in_block && ((person && line.trim().is_empty()) || !continues_block(&line)) {
                self.input(&std::mem::take(&mut typed))?;
            }
            if let Some(command) = line.strip_prefix(':').filter(|_| typed.is_empty()) {
                match self.command(command) {
                    Ok(Next::GoOn) => {}
                    Ok(Next::Quit) => return Ok(()),
                    Err(error) => {
                        self.failures = self.failures.saturating_add(1);
                        let mut out = self.globals.out;
                        out.error(&error);
                    }
                }
                continue;
            }
            if typed.is_empty() && line.trim().is_empty() {
                continue;
            }
            typed.push_str(&line);
            typed.push('\n');
            let too_long = typed.len() as u64 > MAX_SOURCE_BYTES;
            if too_long || input(&typed) == Input::Whole {
                self.input(&std::mem::take(&mut typed))?;
            }
        }
    }

    /// What can be written: tools, variables, what the language has, commands.
    fn names(&self) -> Vec<String> {
        let tools = self.tools.catalogue().tools().map(|tool| tool.id());
        let variables = self.vm.variables().into_iter().map(|variable| variable.name);
        let words = reference().map(|entry| entry.name).filter(|name| !name.contains([' ', '.', '(']));
        let commands = ["help", "tools", "vars", "limits", "save", "quit"].map(|name| format!(":{name}"));
        let mut names: Vec<String> = tools.chain(variables).chain(words.map(str::to_owned)).chain(commands).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Runs one input and shows what became of it.
    fn input(&mut self, source: &str) -> Result<()> {
        if source.trim().is_empty() {
            return Ok(());
        }
        let out = &self.globals.out;
        let (end, printed) = match compile(source, &self.limits) {
            Err(error) => (End::Failed(error), String::new()),
            Ok(program) => {
                let ran = drive(&mut self.vm, program, &mut self.tools, self.globals)?;
                (ran.end, ran.printed)
            }
        };
        if !out.json() && !printed.is_empty() && !printed.ends_with('\n') {
            out.line("")?;
        }
        match end {
            End::Done(answer) => {
                self.keep(source);
                if out.json() {
                    out.object(&json!({ "ok": true, "printed": printed, "answer": answer }))?;
                } else if let Some(answer) = answer {
                    out.message(&format!(
                        "answer: {}",
                        answer.as_str().map_or_else(|| answer.to_string(), str::to_owned)
                    ));
                }
            }
            End::Failed(error) => {
                self.failures = self.failures.saturating_add(1);
                out.message(error.report(source).trim_end());
                if out.json() {
                    out.object(&json!({ "ok": false, "printed": printed, "error": error_json(&error) }))?;
                }
            }
            End::Cancelled => out.message("interrupted: variables keep what they hold"),
        }
        for notice in self.tools.notices() {
            out.message(&format!("mote: {notice}"));
        }
        Ok(())
    }

    fn keep(&mut self, source: &str) {
        if (self.ran.len() + source.len()) as u64 > self.limits.source_bytes {
            self.cut = true;
        } else {
            self.ran.push_str(source);
        }
    }

    fn command(&mut self, command: &str) -> Result<Next> {
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        let rest = rest.trim();
        let text = match name {
            "quit" | "q" | "exit" => return Ok(Next::Quit),
            "help" | "h" | "?" if rest.is_empty() => COMMANDS.to_owned(),
            "help" | "h" | "?" => help::text(Some(rest))?,
            "tools" => self.list_tools(rest),
            "vars" => self.list_variables(),
            "limits" => self.list_limits(),
            "save" => self.save(rest)?,
            _ => {
                return Err(Error::new(ErrorKind::Usage, format!("no such command: :{name}"))
                    .with_hint("see what there is: :help"));
            }
        };
        if self.globals.out.json() {
            self.globals.out.object(&json!({ "ok": true, "command": name, "text": text }))?;
        } else {
            self.globals.out.text(&text)?;
        }
        Ok(Next::GoOn)
    }

    fn list_tools(&self, word: &str) -> String {
        let tools = self.tools.catalogue().tools().filter(|tool| tool.signature.line().contains(word));
        let lines: String = tools
            .map(|tool| {
                format!("{}{}\n", tool.signature.line(), if tool.writes { "  (asks before it runs)" } else { "" })
            })
            .collect();
        if lines.is_empty() { "no tool\n".to_owned() } else { lines }
    }

    fn list_variables(&self) -> String {
        let shown = |name: &str| {
            let text = self.vm.variable_json(name).filter(|value| !value.is_object() && !value.is_array())?.to_string();
            let short: String = text.chars().take(SHOWN).collect();
            Some(if short.len() < text.len() { format!(" = {short}..") } else { format!(" = {short}") })
        };
        let lines: String = self
            .vm
            .variables()
            .iter()
            .map(|variable| {
                format!("{}: {}{}\n", variable.name, variable.shape, shown(&variable.name).unwrap_or_default())
            })
            .collect();
        if lines.is_empty() { "no variables\n".to_owned() } else { lines }
    }

    fn list_limits(&self) -> String {
        let used = serde_json::to_value(self.vm.usage()).unwrap_or_default();
        let Ok(Value::Object(limits)) = serde_json::to_value(self.limits) else { return String::new() };
        let names = |name: &str| if name == "printed_bytes" { "printed".to_owned() } else { name.to_owned() };
        limits
            .iter()
            .map(|(name, limit)| match used.get(names(name)) {
                Some(used) => format!("{name}: {used} of {limit}\n"),
                None => format!("{name}: at most {limit}\n"),
            })
            .collect()
    }

    fn save(&mut self, file: &str) -> Result<String> {
        if file.is_empty() {
            return Err(Error::new(ErrorKind::Usage, "a file has no name").with_hint("write :save FILE"));
        }
        if self.cut {
            let message = format!("more ran than fits a program, in bytes: {}", self.limits.source_bytes);
            return Err(Error::new(ErrorKind::Usage, message));
        }
        let path = PathBuf::from(file);
        let text = canonical(&self.ran, &self.limits)
            .map_err(|error| Error::new(ErrorKind::Failed, format!("what ran is no program as a whole: {error}")))?;
        let own = self.saved.as_ref() == Some(&path);
        let opened = fs::OpenOptions::new().write(true).truncate(own).create(own).create_new(!own).open(&path);
        opened
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|error| Error::new(ErrorKind::Usage, format!("cannot save ({error}): {}", path.display())))?;
        self.saved = Some(path);
        Ok(format!("saved {} lines\n", text.lines().count()))
    }
}

/// The white space with which the next line of a block begins.
fn indentation(typed: &str) -> String {
    let last = typed.lines().next_back().unwrap_or_default();
    let own: String = last.chars().take_while(|c| *c == ' ').collect();
    match last.trim_end().ends_with(':') {
        true => own + "    ",
        false => own,
    }
}
