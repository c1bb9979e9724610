//! How a run looks: events as JSON Lines for programs, as a short story on stderr for people.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use mote_model::MemoryNeed;

use super::done;
use crate::cli::Out;
use crate::cli::out::plain;
use crate::error::Result;
use crate::session::{Event, Report};

/// Prefill is shown once it has taken this long.
const QUIET: Duration = Duration::from_millis(700);

/// Shows one run.
pub(super) struct Show {
    out: Out,
    line: RefCell<Line>,
}

#[derive(Default)]
struct Line {
    prefill_started: Option<Instant>,
    prefill_shown: bool,
    in_program: bool,
}

impl Show {
    pub(super) fn new(out: Out) -> Show {
        Show { out, line: RefCell::default() }
    }

    pub(super) fn notice(&self, text: &str) {
        if self.out.json() {
            drop(self.out.object(&Event::Notice { text: text.to_owned() }));
        } else {
            self.out.message(&format!("note: {text}"));
        }
    }

    pub(super) fn loading(&self, name: &str, memory: &MemoryNeed) {
        if !self.out.json() && self.out.interactive() {
            self.out.message(&format!("model: {name}, at most {} MiB of memory", memory.total() >> 20));
        }
    }

    pub(super) fn event(&self, event: &Event) {
        if self.out.json() {
            if !matches!(event, Event::Token { .. }) {
                drop(self.out.object(event));
            }
            return;
        }
        let mut line = self.line.borrow_mut();
        match event {
            Event::Prefill { done, total } => self.prefill(&mut line, *done, *total),
            Event::Token { text } if self.out.interactive() => {
                self.end_prefill(&mut line);
                if !line.in_program {
                    line.in_program = true;
                    self.out.partial("  | ");
                }
                self.out.partial(&plain(text).replace('\n', "\n  | "));
            }
            Event::Token { .. } => {}
            Event::Program { text, .. } if !std::mem::take(&mut line.in_program) => self.lines("  | ", text),
            Event::Program { .. } => self.out.partial("\r\x1b[K"),
            Event::Call { id, tool, arguments } => {
                let arguments: Vec<String> = arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
                self.out.message(&format!("  #{id} {tool}({})", arguments.join(", ")));
            }
            Event::Result { id, ok, bytes, ms, error } => self.out.message(&match (ok, error) {
                (false, Some(error)) => format!("  #{id} failed after {ms} ms: {error}"),
                _ => format!("  #{id} gave {bytes} bytes in {ms} ms"),
            }),
            Event::Observation { text, .. } => self.lines("  > ", text),
            Event::Stage { stage, goal, tools } => {
                if *stage > 0 {
                    self.out.message(&format!("stage {stage}: {goal}"));
                }
                self.out.message(&format!("tools: {}", tools.join(", ")));
            }
            Event::Notice { text } => self.out.message(&format!("note: {text}")),
        }
    }

    fn lines(&self, mark: &str, text: &str) {
        for line in text.lines() {
            self.out.message(&format!("{mark}{line}"));
        }
    }

    fn prefill(&self, line: &mut Line, done: usize, total: usize) {
        if done == 0 || line.prefill_started.is_none() {
            line.prefill_started = Some(Instant::now());
        }
        let elapsed = line.prefill_started.map(|started| started.elapsed()).unwrap_or_default();
        if done >= total {
            self.end_prefill(line);
        } else if self.out.interactive() && (line.prefill_shown || elapsed > QUIET) && done > 0 {
            let left = elapsed.mul_f64((total - done) as f64 / done as f64);
            line.prefill_shown = true;
            self.out
                .partial(&format!("\rreading the prompt: {done} of {total} tokens, {:.0} s left ", left.as_secs_f64()));
        }
    }

    fn end_prefill(&self, line: &mut Line) {
        line.prefill_started = None;
        if std::mem::take(&mut line.prefill_shown) {
            self.out.partial("\r\x1b[K");
        }
    }

    pub(super) fn report(&self, report: &Report) -> Result<()> {
        if self.out.json() {
            return self.out.object(&done(report));
        }
        if let Some(answer) = &report.answer {
            self.out.line(answer)?;
        }
        if let Some(reason) = &report.reason {
            self.out.message(&format!("no answer: {reason}"));
        }
        if let Some(found) = &report.found {
            self.out.message("the last result of a tool was:");
            self.lines("  ", found);
        }
        if report.answer.is_some() {
            for source in &report.sources {
                self.out.message(&format!("  from #{} {}", source.id, source.line()));
            }
            if report.sources.is_empty() {
                self.out.message("  from no result of a tool");
            }
        }
        let spent = &report.spent;
        let tokens = if report.counted {
            format!(
                "{} prompt tokens ({} prefilled), {} generated, ",
                spent.prompt_tokens, spent.prefilled_tokens, spent.tokens
            )
        } else {
            String::new()
        };
        self.out.message(&format!(
            "{}: {tokens}{:.1} s, {} tool calls{}",
            report.status.name(),
            spent.elapsed().as_secs_f64(),
            spent.calls,
            report.trajectory.as_ref().map(|id| format!(", trajectory {id}")).unwrap_or_default()
        ));
        Ok(())
    }
}
