//! `mote run`: one task, from the prompt to the answer and its cost.

mod show;

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args as ClapArgs, ValueEnum};
use mote_model::{Manifest, Model, Sampling};
use mote_trajectory::{Finite, Mode, Policy, Reason, Recorded, Recording, Sha256, TaskSource};
use serde_json::json;

use super::Globals;
use super::load::{LoadArgs, SpeculateArg};
use super::tools::ToolFlags;
use crate::context::{Prompt, ShortlistCaps, Style};
use crate::error::{Error, ErrorKind, Result};
use crate::session::{
    Author, Budgets, Identity, ModelAuthor, ModelAuthorOptions, Recorder, Report, ScriptedAuthor, Session,
    SessionOptions, Status, this_device,
};
use crate::store::Store;
use crate::text_file::TextFile;
use crate::tools::{Anchor, ToolOptions, ToolRuntime};
use show::Show;

/// A file of programs in place of the model.
const SCRIPT: TextFile = TextFile {
    what: "the script",
    max_bytes: 1 << 20,
    kind: ErrorKind::Usage,
    hint: Some("give a text file with programs separated by lines ---"),
};

/// Give a task in words; the model writes programs that call tools until it is answered.
#[derive(ClapArgs, Debug)]
#[command(after_help = "\
Examples:
  mote run \"How much disk space is free on /?\"
  mote run --mcp mcp.json --allow 'time.*' \"What time is it in Tokyo?\"
  mote run --script programs.txt \"a task\"     programs from a file, separated by lines ---, in place of the model
  mote run --prompt-only \"a task\"             what the model would see, and what it costs")]
pub(super) struct Args {
    /// What to do, in words
    task: String,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    tools: ToolFlags,
    /// Programs from a file in place of the model, one a turn, separated by lines `---`
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Show the first prompt and its cost; nothing is generated or called
    #[arg(long)]
    prompt_only: bool,
    /// Whether tools are retrieved before the model speaks
    #[arg(long, value_enum, default_value_t = Switch::On)]
    retrieval: Switch,
    /// How tools come into the prompt: on demand within programs (ptc), one action a turn with whole servers (isl) or single
    /// tools (itl) on demand, or all that have room at once (eager)
    #[arg(long, value_enum, default_value_t = ModeArg::Ptc)]
    mode: ModeArg,
    /// 0 takes the best token always
    #[arg(long, default_value_t = 0.0)]
    temperature: f32,
    /// Draw among the likeliest tokens that together have this probability
    #[arg(long, default_value_t = 1.0)]
    top_p: f32,
    /// Draw among tokens at least this likely, relative to the best
    #[arg(long, default_value_t = 0.0)]
    min_p: f32,
    /// Seed of the draw
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Evaluate drafts from the text itself along, where that is faster; the tokens are the same
    #[arg(long, value_enum, default_value = "auto")]
    speculate: SpeculateArg,
    /// Programs that may be written
    #[arg(long, value_name = "N", default_value_t = Budgets::default().turns, value_parser = at_least_one())]
    max_turns: usize,
    /// Tools that may be called
    #[arg(long, value_name = "N", default_value_t = Budgets::default().calls)]
    max_calls: usize,
    /// Tokens that may be generated in all
    #[arg(long, value_name = "N", default_value_t = Budgets::default().tokens, value_parser = at_least_one())]
    max_tokens: usize,
    /// Wall time of the whole run
    #[arg(long, value_name = "SECONDS", default_value_t = Budgets::default().wall.as_secs(), value_parser = clap::value_parser!(u64).range(1..))]
    max_seconds: u64,
    /// How much is recorded of each token: `full` computes the log-probabilities of the whole vocabulary
    #[arg(long, value_enum, default_value_t = RecordingArg::Light)]
    recording: RecordingArg,
    /// Keep no trajectory
    #[arg(long)]
    no_record: bool,
}

/// A run with nothing of a budget could not even begin.
fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ModeArg {
    Eager,
    Isl,
    Itl,
    Ptc,
}

impl From<ModeArg> for Mode {
    fn from(argument: ModeArg) -> Mode {
        match argument {
            ModeArg::Eager => Mode::Static,
            ModeArg::Isl => Mode::Isl,
            ModeArg::Itl => Mode::Itl,
            ModeArg::Ptc => Mode::Ptc,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RecordingArg {
    Full,
    Light,
}

pub(super) fn run(args: &Args, globals: &Globals) -> Result<u8> {
    let show = Show::new(globals.out);
    let (mut author, style, policy, anchor) = author(args, globals, &show)?;
    let store = if args.no_record || args.prompt_only { None } else { Some(Store::open(&globals.home.store())?) };
    for notice in store.iter().flat_map(Store::notices) {
        show.notice(notice);
    }
    let tool_options = ToolOptions {
        asker: if globals.out.json() { None } else { super::tools::asker() },
        notes: store.as_ref().map(|store| Box::new(store.notes()) as _),
        anchor,
        ..args.tools.clone().options()?
    };
    let mut tools = ToolRuntime::open(&globals.home, tool_options, globals.cancel.clone())?;
    for notice in tools.notices() {
        show.notice(&notice);
    }
    let recorder = Recorder::new(identity(args, policy), store.as_ref().map(Store::queue));
    let mut emit = |event: &_| show.event(event);
    let session = Session::new(
        &args.task,
        &mut tools,
        &mut *author,
        recorder,
        options(args, style),
        globals.cancel.clone(),
        &mut emit,
    )?;
    if args.prompt_only {
        prompt_only(&session.first_prompt()?, globals)?;
        return Ok(0);
    }
    let report = session.run()?;
    show.report(&report)?;
    Ok(u8::from(report.status != Status::Complete))
}

fn options(args: &Args, style: Style) -> SessionOptions {
    SessionOptions {
        style,
        shortlist: ShortlistCaps::default(),
        budgets: Budgets {
            turns: args.max_turns,
            calls: args.max_calls,
            tokens: args.max_tokens,
            wall: Duration::from_secs(args.max_seconds),
            ..Budgets::default()
        },
        limits: mote_script::Limits::default(),
        retrieval: args.retrieval == Switch::On,
        mode: args.mode.into(),
    }
}

type AuthorParts = (Box<dyn Author>, Style, Recorded<Policy>, Option<Anchor>);

fn author(args: &Args, globals: &Globals, show: &Show) -> Result<AuthorParts> {
    if let Some(path) = &args.script {
        let script = SCRIPT.read(path, &globals.cancel)?;
        let author = Box::new(ScriptedAuthor::parse(&script));
        return Ok((author, Style::Completion, Recorded::Absent(Reason::Scripted), None));
    }
    let folder = args.load.folder(globals)?;
    let options = args.load.options(&Manifest::read(&folder)?)?;
    let model = Model::open(&folder, &options)?;
    let adapter = args.load.adapter(&model)?;
    let bundle = model.bundle();
    let manifest = bundle.manifest();
    let style = Style::of_bundle(manifest.prompt_style, manifest.chat_template.as_deref())?;
    let sha256 =
        |text: &str| text.parse::<Sha256>().map_err(|error| Error::new(ErrorKind::Configuration, error.to_string()));
    let policy = Policy {
        bundle_sha256: sha256(bundle.id())?,
        adapter_sha256: adapter.as_ref().map(|adapter| sha256(adapter.id())).transpose()?,
        quantization: manifest.quantization.clone(),
        tokenizer_sha256: match manifest.files.get("tokenizer.json") {
            Some(file) => sha256(&file.sha256)?,
            None => return Err(Error::new(ErrorKind::Configuration, "the manifest names no tokenizer.json")),
        },
        template_sha256: Recorded::or_absent(
            manifest.chat_template.as_ref().map(|template| Sha256::of(template.as_bytes())),
            Reason::None,
        ),
        policy_version: 0,
        generation: 0,
    };
    let anchor = Anchor::of(bundle)?;
    show.loading(&manifest.name, model.memory());
    let sampling = Sampling { temperature: args.temperature, top_p: args.top_p, min_p: args.min_p, seed: args.seed };
    let options = ModelAuthorOptions {
        sampling,
        full_recording: args.recording == RecordingArg::Full,
        speculate: args.speculate.into(),
        adapter,
        snapshots: Some(globals.home.cache().join("kv")),
    };
    let author = ModelAuthor::new(model, style, options)?;
    Ok((Box::new(author), style, Recorded::Value(policy), anchor))
}

fn identity(args: &Args, policy: Recorded<Policy>) -> Identity {
    let finite = |number| Finite::new(number).unwrap_or_default();
    let sampling = mote_trajectory::Sampling {
        temperature: finite(args.temperature),
        top_p: finite(args.top_p),
        min_p: finite(args.min_p),
        seed: args.seed,
    };
    Identity {
        device: this_device(),
        sampling: match &policy {
            Recorded::Value(_) => Recorded::Value(sampling),
            Recorded::Absent(reason) => Recorded::Absent(*reason),
        },
        policy,
        recording: match args.recording {
            RecordingArg::Full => Recording::Full,
            RecordingArg::Light => Recording::Light,
        },
        source: TaskSource::Person,
    }
}

fn prompt_only(prompt: &Prompt, globals: &Globals) -> Result<()> {
    let tokens = prompt.ids().map(|ids| ids.len());
    let fragments: Vec<_> = prompt
        .fragments()
        .iter()
        .map(|fragment| {
            json!({
                "kind": fragment.kind.name(),
                "tokens": fragment.ids.as_ref().map(Vec::len),
                "bytes": fragment.text().len(),
                "dropped": fragment.dropped,
            })
        })
        .collect();
    if globals.out.json() {
        return globals.out.object(&json!({"tokens": tokens, "fragments": fragments, "text": prompt.text()}));
    }
    globals.out.line(prompt.text().trim_end())?;
    for fragment in prompt.fragments() {
        let cost = match &fragment.ids {
            Some(ids) => format!("{} tokens", ids.len()),
            None => format!("{} bytes", fragment.text().len()),
        };
        globals.out.message(&format!("{:>14}: {cost}", fragment.kind.name()));
    }
    if let Some(tokens) = tokens {
        globals.out.message(&format!("{:>14}: {tokens} tokens", "all"));
    }
    Ok(())
}

/// The last line of a run in JSON.
fn done(report: &Report) -> serde_json::Value {
    let spent = &report.spent;
    let counted = |n: usize| report.counted.then_some(n);
    json!({
        "event": "done",
        "status": report.status.name(),
        "answer": report.answer,
        "reason": report.reason,
        "found": report.found,
        "sources": report.sources,
        "trajectory": report.trajectory,
        "turns": spent.turns,
        "calls": spent.calls,
        "invalid_calls": spent.invalid_calls,
        "tokens": {
            "prompt": counted(spent.prompt_tokens),
            "cached": counted(spent.cached_tokens),
            "new": counted(spent.tokens),
        },
        "seconds": spent.elapsed().as_secs_f64(),
    })
}
