//! A session: one task from its first prompt to its sealed trajectory.
//!
//! The loop: retrieve, write a program, run it, record every step before its effect is reported, show what was printed,
//! until `answer(..)`, a budget or a person ends it. Each step that could go on for ever has a budget.

mod answer;
mod author;
mod budget;
mod configuration;
mod device;
mod event;
mod grounding;
mod moves;
mod observation;
mod recorder;
mod run;
mod toolbox;

use std::ops::ControlFlow;

use mote_script::{Limits, Vm, grammar};
use mote_trajectory::{EndedBy, Mode, SelectionSource};

pub use answer::{Source, readable};
pub use author::{Author, Decoded, ModelAuthor, ModelAuthorOptions, Progress, Request, ScriptedAuthor, Written};
pub use budget::{Budgets, Exceeded, Spent};
pub use configuration::Configuration;
pub use device::this_device;
pub use event::Event;
pub use recorder::{Identity, Recorder};

use crate::cancel::Cancel;
use crate::context::{Fragment, FragmentKind, Listed, Piece, Prompt, Shortlist, ShortlistCaps, Style};
use crate::error::{Error, ErrorKind, Result};
use crate::tools::{Candidate, ToolEntry, ToolId, ToolRuntime};
use answer::Answered;
use grounding::{Grounding, known_fields};
use run::{Ended, Ran};
use toolbox::{MAX_LOADED, Room, Toolbox};

/// Examples of results that are shown when a program took one for something else, and the bytes of each.
const MAX_SHOWN_RESULTS: usize = 2;
const MAX_SHOWN_RESULT_BYTES: usize = 300;

/// What a tool's score must reach of the best one's to be shown to a model that copies patterns: it takes a poor one as readily.
const LEAST_OF_BEST: f32 = 0.5;

/// Servers that the index is ranked by; the rest follow in their own order.
const MAX_LISTED_SERVERS: usize = 24;

/// Tools that an eager prompt may show; a grammar of more takes too long to compile.
const MAX_EAGER: usize = 400;

/// Tokens of an eager prompt that are kept for the card, the task's markers and one observation.
const EAGER_RESERVE: usize = 700;

/// The window of an eager prompt where a script stands in for the model.
const EAGER_WINDOW: usize = 4_096;

/// The most bytes of a task: more is a document, which belongs into a file that a tool reads.
pub const MAX_TASK_BYTES: usize = 4_096;

/// How a session works.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// How the prompt is written down.
    pub style: Style,
    /// The caps of the shortlist.
    pub shortlist: ShortlistCaps,
    /// The budgets.
    pub budgets: Budgets,
    /// The bounds of a program.
    pub limits: Limits,
    /// Whether the harness retrieves tools before the first turn.
    pub retrieval: bool,
    /// How tools come into the prompt, and what one turn is: ATLAS's settings.
    pub mode: Mode,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Answered, all of it.
    Complete,
    /// Answered in part.
    Partial,
    /// Answered that it could not be done.
    Incomplete,
    /// Not answered.
    Failed,
}

impl Status {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Status::Complete => "complete",
            Status::Partial => "partial",
            Status::Incomplete => "incomplete",
            Status::Failed => "failed",
        }
    }
}

/// What a session leaves behind.
#[derive(Clone, Debug)]
pub struct Report {
    /// How the task ended.
    pub status: Status,
    /// The answer, as a person reads it.
    pub answer: Option<String>,
    /// Why there is no answer.
    pub reason: Option<String>,
    /// The last result of a tool, where there is no answer.
    pub found: Option<String>,
    /// The results that were there when the task was answered.
    pub sources: Vec<Source>,
    /// The trajectory's id, if it was recorded.
    pub trajectory: Option<String>,
    /// What was used.
    pub spent: Spent,
    /// Whether a model wrote the programs, so that token counts mean something.
    pub counted: bool,
}

/// One task on its way.
pub struct Session<'a> {
    tools: &'a mut ToolRuntime,
    author: &'a mut dyn Author,
    recorder: Recorder,
    options: SessionOptions,
    cancel: Cancel,
    emit: &'a mut dyn FnMut(&Event),
    task: String,
    spent: Spent,
    vm: Vm,
    prompt: Prompt,
    configuration: Configuration,
    toolbox: Toolbox,
    /// What the model has to know with the next observation.
    asides: Vec<String>,
    sources: Vec<Source>,
    found: Option<String>,
    refused: Option<String>,
    n_calls: u32,
}

impl<'a> Session<'a> {
    /// Opens a session for `task`.
    ///
    /// # Errors
    /// `Usage` for a task that is empty or longer than [`MAX_TASK_BYTES`].
    pub fn new(
        task: &str,
        tools: &'a mut ToolRuntime,
        author: &'a mut dyn Author,
        recorder: Recorder,
        options: SessionOptions,
        cancel: Cancel,
        emit: &'a mut dyn FnMut(&Event),
    ) -> Result<Session<'a>> {
        let task = task.trim();
        if task.is_empty() {
            return Err(Error::new(ErrorKind::Usage, "the task is empty").with_hint("say what to do: mote run \"..\""));
        }
        if task.len() > MAX_TASK_BYTES {
            return Err(Error::new(
                ErrorKind::Usage,
                format!("the task is longer than {MAX_TASK_BYTES} bytes: {}", task.len()),
            )
            .with_hint("put the text into a file and name the file in the task"));
        }
        Ok(Session {
            tools,
            author,
            recorder,
            vm: Vm::new(options.limits),
            options,
            cancel,
            emit,
            task: task.to_owned(),
            spent: Spent::default(),
            prompt: Prompt::default(),
            configuration: Configuration::first(task, Vec::new()),
            toolbox: Toolbox::new(&[], Room { tools: 0, tokens: 0 }),
            asides: Vec::new(),
            sources: Vec::new(),
            found: None,
            refused: None,
            n_calls: 0,
        })
    }

    /// Assembles the first prompt without generating or calling anything.
    pub fn first_prompt(mut self) -> Result<Prompt> {
        let ranked = self.retrieve()?;
        self.begin_stage(Configuration::first(&self.task, ranked))?;
        Ok(self.prompt)
    }

    /// Runs the task to its end. Every end but a failure of our own storage is an `Ok` with an honest status.
    pub fn run(mut self) -> Result<Report> {
        self.recorder.open(&self.task, self.options.mode, self.tools.catalogue())?;
        let ranked = self.retrieve()?;
        self.begin_stage(Configuration::first(&self.task, ranked))?;
        let end = match self.nothing_fits() {
            Some(reason) => {
                self.recorder.end_stage(EndedBy::Limit, Some(reason), None)?;
                Ok(TaskEnd::Gave(reason.to_owned()))
            }
            None => self.turns(),
        };
        let end = match end {
            Err(error) => {
                self.recorder.end_stage(EndedBy::Crash, Some(error.message()), None)?;
                self.recorder.seal(Status::Failed, None, &self.spent)?;
                return Err(error);
            }
            Ok(end) => end,
        };
        let (status, answer, reason) = match end {
            TaskEnd::Answered(Answered { status, text }) => (status, Some(text), None),
            TaskEnd::Gave(reason) => (Status::Failed, None, Some(reason)),
        };
        self.tools.refresh();
        let trajectory = self.recorder.seal(status, answer.as_deref(), &self.spent)?;
        Ok(Report {
            status,
            answer,
            found: if reason.is_some() { self.found } else { None },
            reason,
            sources: self.sources,
            trajectory,
            spent: self.spent,
            counted: self.author.window().is_some(),
        })
    }

    /// Why a model that cannot look for tools itself need not begin.
    fn nothing_fits(&self) -> Option<&'static str> {
        let is_needed = self.options.retrieval && self.author.window().is_some() && !self.options.style.reads_rules();
        (is_needed && self.configuration.tools().is_empty())
            .then_some("no tool fits this task; `mote tools list` shows what there is")
    }

    fn turns(&mut self) -> Result<TaskEnd> {
        let mut last: Option<(String, String)> = None;
        let mut n_errors = 0;
        loop {
            if let Some(exceeded) = self.spent.exceeded(&self.options.budgets) {
                self.recorder.end_stage(EndedBy::Limit, Some(&exceeded.to_string()), None)?;
                return Ok(TaskEnd::Gave(exceeded.to_string()));
            }
            let (program, cut) = self.write()?;
            let ran = self.run_program(&program)?;
            match ran.ended {
                Ended::Answered(answered) => {
                    self.recorder.answer(&answered.text)?;
                    return Ok(TaskEnd::Answered(answered));
                }
                Ended::Reconfigured(next) => {
                    last = None;
                    self.begin_stage(*next)?;
                    continue;
                }
                Ended::Finished => {}
            }
            let observation = self.observe(&program, &ran, cut)?;
            if let Some(refused) = ran.refused {
                let reason = format!("a tool call was refused: {refused}");
                self.recorder.end_stage(EndedBy::Limit, Some(&reason), None)?;
                return Ok(TaskEnd::Gave(reason));
            }
            n_errors = if ran.error.is_some() { n_errors + 1 } else { 0 };
            if n_errors >= self.options.budgets.errors {
                let reason = format!("{n_errors} programs in a row failed; the last one: {observation}");
                self.recorder.end_stage(EndedBy::Limit, Some(&reason), None)?;
                return Ok(TaskEnd::Gave(reason));
            }
            if last.as_ref().is_some_and(|last| *last == (program.clone(), observation.clone())) {
                let reason = format!("the same program was written twice with the same result: {observation}");
                self.recorder.end_stage(EndedBy::Limit, Some(&reason), None)?;
                return Ok(TaskEnd::Gave(reason));
            }
            last = Some((program, observation));
        }
    }

    fn retrieve(&mut self) -> Result<Vec<ToolId>> {
        const CANDIDATES: usize = 8;
        if !self.options.retrieval {
            return Ok(Vec::new());
        }
        let candidates: Vec<Candidate> = self.tools.index().search(&self.task, CANDIDATES);
        let least = match candidates.first() {
            Some(best) if !self.options.style.reads_rules() => best.score * LEAST_OF_BEST,
            _ => 0.0,
        };
        let fitting = candidates.iter().take(self.options.shortlist.tools).filter(|it| it.score >= least);
        let chosen: Vec<ToolId> = fitting.map(|candidate| candidate.tool.clone()).collect();
        self.recorder.selected(SelectionSource::Harness, &self.task, &candidates, &chosen)?;
        Ok(chosen)
    }

    fn begin_stage(&mut self, configuration: Configuration) -> Result<()> {
        self.spent.stages += 1;
        self.prompt = Prompt::default();
        let style = self.options.style;
        let (caps, entries) = self.shown(&configuration);
        let counted = |entry: &ToolEntry| (entry.id.clone(), self.count(&entry.signature.line()));
        let room = match self.options.mode {
            Mode::Static => Room { tools: MAX_EAGER, tokens: usize::MAX },
            _ => Room { tools: MAX_LOADED, tokens: caps.tokens },
        };
        let toolbox = Toolbox::new(&entries.iter().map(counted).collect::<Vec<_>>(), room);
        let ranked = self.tools.index().search_servers(configuration.goal(), MAX_LISTED_SERVERS);
        let known = self.tools.catalogue().servers();
        let others = known.iter().filter(|server| !ranked.iter().any(|other| other.name == server.name));
        let listed = ranked.iter().copied().chain(others).filter(|server| server.n_tools() > 0);
        let servers: Vec<Listed<'_>> =
            listed.map(|server| Listed { name: &server.name, summary: &server.summary }).collect();
        let count = |text: &str| self.count(text);
        let shortlist = Shortlist::write(&entries.iter().collect::<Vec<_>>(), &servers, style, caps, &count);
        let event = Event::Stage {
            stage: u32::try_from(self.spent.stages - 1).unwrap_or(u32::MAX),
            goal: configuration.goal().to_owned(),
            tools: entries.iter().map(ToolEntry::id).collect(),
        };
        (self.emit)(&event);
        self.toolbox = toolbox;
        self.push(FragmentKind::Card, style.card(), 0, 0)?;
        self.push(FragmentKind::Shortlist, style.shortlist(&shortlist.text), shortlist.dropped, 0)?;
        self.push(FragmentKind::Configuration, style.configuration(&configuration.text()), 0, 0)?;
        self.push(FragmentKind::Task, style.task(configuration.goal()), 0, 0)?;
        self.recorder.begin_stage(&configuration, &self.prompt)?;
        self.configuration = configuration;
        Ok(())
    }

    /// The tools that a stage's prompt shows, best first, and its caps. Eager, that is every tool which has room in the window.
    fn shown(&mut self, configuration: &Configuration) -> (ShortlistCaps, Vec<ToolEntry>) {
        let catalogue = self.tools.catalogue();
        let chosen = configuration.tools().iter().filter_map(|id| catalogue.tool(&id.server, &id.tool));
        let mut caps = self.options.shortlist;
        if self.options.mode != Mode::Static {
            return (caps, chosen.collect());
        }
        let mut entries: Vec<ToolEntry> = chosen.collect();
        let others = catalogue.tools().filter(|entry| !configuration.tools().contains(&entry.id));
        entries.extend(others.take(MAX_EAGER.saturating_sub(entries.len())));
        let kept = EAGER_RESERVE + self.options.budgets.program_tokens + self.count(configuration.goal());
        let window = self.author.window().unwrap_or(EAGER_WINDOW);
        caps =
            ShortlistCaps { tools: entries.len(), examples: 1, tokens: window.saturating_sub(kept), index_tokens: 0 };
        let mut left = caps.tokens;
        let n_all = catalogue.n_tools();
        entries.retain(|entry| {
            let example = entry.examples.first().map(|example| format!("{}{}", example.task, example.program));
            let cost = self.count(&entry.signature.line()) + self.count(&entry.description) + 8;
            let cost = cost + example.map_or(0, |example| self.count(&example) + 8);
            let fits = cost <= left;
            left = left.saturating_sub(cost);
            fits
        });
        if entries.len() < n_all {
            let text = format!("tools that have no room in the prompt: {} of {n_all}", n_all - entries.len());
            (self.emit)(&Event::Notice { text });
        }
        (caps, entries)
    }

    /// The tokens of a text; bytes / 4 where no tokenizer is at hand.
    fn count(&self, text: &str) -> usize {
        match self.author.encode(&[Piece::Text(text.to_owned())]) {
            Ok(Some(ids)) => ids.len(),
            Ok(None) | Err(_) => text.len().div_ceil(4),
        }
    }

    fn push(&mut self, kind: FragmentKind, pieces: Vec<Piece>, dropped: usize, elided: usize) -> Result<()> {
        let ids = self.author.encode(&pieces)?;
        self.prompt.push(Fragment { kind, pieces, ids, dropped, elided });
        Ok(())
    }

    /// The next program, and whether its budget of tokens cut it.
    fn write(&mut self) -> Result<(String, bool)> {
        let budgets = &self.options.budgets;
        let mut signatures = self.toolbox.signatures(self.tools.catalogue());
        let options = grammar::Options {
            answer_last: !self.options.style.reads_rules(),
            shadowing: self.options.style.reads_rules(),
            fields: known_fields(&signatures, self.tools.catalogue()),
            ..grammar::Options::default()
        };
        Grounding::of(self.configuration.goal()).narrow(&mut signatures, self.tools.catalogue());
        let lark = grammar::lark(&signatures, true, &options)
            .map_err(|error| Error::new(ErrorKind::Failed, format!("no grammar for the loaded tools: {error}")))?;
        let max_tokens = budgets.program_tokens.min(budgets.tokens.saturating_sub(self.spent.tokens)).max(1);
        self.check_window(max_tokens)?;
        let (emit, cancel) = (&mut *self.emit, &self.cancel);
        let request = Request { prompt: &self.prompt, grammar: &lark, max_tokens };
        let written = self.author.write(request, &mut |progress| {
            match progress {
                Progress::Prefill(done, total) => emit(&Event::Prefill { done, total }),
                Progress::Token(text) => emit(&Event::Token { text: text.to_owned() }),
            }
            if cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if let Some(decoded) = &written.decoded {
            self.spent.tokens += decoded.ids.len();
            self.spent.prompt_tokens = decoded.n_prompt;
            self.spent.cached_tokens += decoded.n_cached;
            self.spent.prefilled_tokens += decoded.n_prompt - decoded.n_cached;
        }
        self.spent.turns += 1;
        let turn = self.recorder.program(&written, &self.prompt, &lark)?;
        (self.emit)(&Event::Program { turn, text: written.program.clone() });
        let cut = written.decoded.as_ref().is_some_and(|decoded| decoded.cut);
        let ids = written.decoded.map(|decoded| decoded.ids);
        let pieces = match &ids {
            Some(_) => vec![Piece::Text(written.program.clone())],
            None => self.options.style.program(&written.program),
        };
        self.prompt.push(Fragment { kind: FragmentKind::Program, pieces, ids, dropped: 0, elided: 0 });
        Ok((written.program, cut))
    }

    fn check_window(&self, max_tokens: usize) -> Result<()> {
        let (Some(window), Some(ids)) = (self.author.window(), self.prompt.ids()) else { return Ok(()) };
        if ids.len() + max_tokens > window {
            return Err(Error::new(
                ErrorKind::Failed,
                format!(
                    "the prompt and a program do not fit the context window of {window} tokens: {}",
                    ids.len() + max_tokens
                ),
            )
            .with_hint("shorten the task, or give more room with --context"));
        }
        Ok(())
    }

    fn observe(&mut self, program: &str, ran: &Ran, cut: bool) -> Result<String> {
        let limit = self.options.budgets.program_tokens;
        let error = match &ran.error {
            _ if cut => Some(format!("the program was cut at its limit of {limit} tokens; write a shorter one")),
            error => error.as_ref().map(|error| error.report(program).trim_end().to_owned()),
        };
        let mut text = ran.printed.trim_end().to_owned();
        if let Some(error) = error {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&format!("Error: {error}"));
        }
        if text.is_empty() {
            text.push_str("(nothing was printed; answer(x) ends the task)");
        }
        self.look_around(ran);
        let (mut text, n_elided) = observation::bounded(&text, self.options.budgets.observation_bytes);
        for aside in self.asides.drain(..) {
            text.push_str(&format!("\n({aside})"));
        }
        let turn = self.recorder.observation(&text)?;
        (self.emit)(&Event::Observation { turn, text: text.clone() });
        self.push(FragmentKind::Observation, self.options.style.observation(&text), 0, n_elided)?;
        Ok(text)
    }
}

impl Session<'_> {
    /// Tools that appeared or vanished meanwhile, and an example of a result that a program took for something else.
    fn look_around(&mut self, ran: &Ran) {
        const WRONG_ACCESS: [&str; 4] = ["AttributeError", "KeyError", "IndexError", "TypeError"];
        if self.tools.refresh() {
            self.asides.push("more tools are known now; find(\"what for\") looks through them".to_owned());
        }
        for gone in self.toolbox.drop_unknown(self.tools.catalogue()) {
            self.aside(format!("no longer there: {gone}"));
        }
        for notice in self.tools.notices() {
            (self.emit)(&Event::Notice { text: notice });
        }
        let exception = ran.error.as_ref().and_then(|error| error.exception());
        if exception.is_none_or(|exception| !WRONG_ACCESS.contains(&exception)) {
            return;
        }
        for tool in ran.called.iter().take(MAX_SHOWN_RESULTS) {
            let entry = self.tools.catalogue().tool(&tool.server, &tool.tool);
            if let Some(example) = entry.and_then(|entry| entry.result_example) {
                let (shown, _) = observation::bounded(&example.to_string(), MAX_SHOWN_RESULT_BYTES);
                self.asides.push(format!("{tool} gives such as {shown}"));
            }
        }
    }

    /// Tells the model with the next observation, and a person at once.
    pub(super) fn aside(&mut self, text: String) {
        (self.emit)(&Event::Notice { text: text.clone() });
        self.asides.push(text);
    }
}

enum TaskEnd {
    Answered(Answered),
    Gave(String),
}
