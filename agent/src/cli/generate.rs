//! `mote model generate`: continues a prompt, without an agent, and prints the text as it comes.

use std::path::PathBuf;

use clap::Args;
use mote_model::{Completion, GenerateOptions, Grammar, Sampling, Stop};

use crate::cli::load::{LoadArgs, SpeculateArg};
use crate::cli::model::{cancelled, go_on};
use crate::cli::progress::{Progress, Unit};
use crate::cli::{Globals, interrupt};
use crate::error::{ErrorKind, Result};
use crate::text_file::TextFile;

/// A grammar is written by people, or made from a few schemas.
const GRAMMAR: TextFile = TextFile { what: "the grammar", max_bytes: 16 << 20, kind: ErrorKind::Usage, hint: None };

#[derive(Args, Debug)]
pub(crate) struct GenerateArgs {
    /// The text to continue
    #[arg(required_unless_present = "raw_ids", conflicts_with = "raw_ids")]
    prompt: Option<String>,
    /// Token ids to continue in place of a text, such as 1,2,3; nothing is put before them
    #[arg(long, value_delimiter = ',', value_name = "IDS")]
    raw_ids: Vec<u32>,
    #[command(flatten)]
    load: LoadArgs,
    /// End after so many tokens
    #[arg(long, default_value_t = 256, value_name = "N")]
    max_tokens: usize,
    /// Divide the logits by this before drawing; 0 takes the most likely token
    #[arg(long, default_value_t = 0.0, value_name = "T", allow_negative_numbers = true)]
    temperature: f32,
    /// Draw from the fewest most likely tokens that together reach this probability
    #[arg(long, default_value_t = 1.0, value_name = "P")]
    top_p: f32,
    /// Draw from tokens at least this likely relative to the most likely one
    #[arg(long, default_value_t = 0.0, value_name = "P")]
    min_p: f32,
    /// Start of the random sequence
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Evaluate drafts from the text itself along, where that is faster; the tokens are the same
    #[arg(long, value_enum, default_value = "auto")]
    speculate: SpeculateArg,
    /// Allow only what this grammar in Lark form allows
    #[arg(long, value_name = "FILE")]
    grammar: Option<PathBuf>,
    /// Print the token ids in place of the text
    #[arg(long)]
    ids: bool,
    /// Print the log-probability of each token too; implies --ids
    #[arg(long)]
    logprobs: bool,
}

pub(crate) fn run(arguments: &GenerateArgs, globals: &Globals) -> Result<u8> {
    interrupt::end_soon_after(&globals.cancel)?;
    let model = arguments.load.load(globals)?;
    let prompt = match &arguments.prompt {
        Some(text) => model.tokenizer().encode_prompt(text)?,
        None => arguments.raw_ids.clone(),
    };
    let grammar = match &arguments.grammar {
        Some(file) => Some(Grammar::compile(model.tokenizer(), &GRAMMAR.read(file, &globals.cancel)?)?),
        None => None,
    };
    let mut conversation = arguments.load.conversation(&model)?;
    let mut progress = Progress::new(globals.out, "prefill", Unit::Tokens);
    conversation.prefill(&prompt, &mut |done, total| {
        progress.update(done as u64, total as u64);
        go_on(globals)
    })?;
    drop(progress);

    let options = GenerateOptions {
        max_tokens: arguments.max_tokens,
        sampling: Sampling {
            temperature: arguments.temperature,
            top_p: arguments.top_p,
            min_p: arguments.min_p,
            seed: arguments.seed,
        },
        speculate: arguments.speculate.into(),
        ..GenerateOptions::default()
    };
    let streams_text = !(globals.out.json() || arguments.ids || arguments.logprobs);
    let mut printed = Ok(());
    let completion = conversation.generate(&options, grammar.as_ref(), &mut |event| {
        if streams_text {
            printed = globals.out.text(event.text);
        }
        if printed.is_err() { std::ops::ControlFlow::Break(()) } else { go_on(globals) }
    })?;
    printed?;
    if completion.stop == Stop::Cancelled {
        return Err(cancelled());
    }
    finish(&completion, arguments, streams_text, globals)
}

fn finish(completion: &Completion, arguments: &GenerateArgs, streams_text: bool, globals: &Globals) -> Result<u8> {
    let stop = match completion.stop {
        Stop::StopToken => "stop_token",
        Stop::StopText => "stop_text",
        Stop::GrammarEnd => "grammar_end",
        Stop::MaxTokens => "max_tokens",
        Stop::Cancelled => "cancelled",
        Stop::ContextFull => "context_full",
    };
    if globals.out.json() {
        let mut object = serde_json::json!({
            "text": completion.text, "stop": stop, "n_tokens": completion.tokens.len(),
            "drafted": completion.drafted, "accepted": completion.accepted,
            "prefill_ms": completion.prefill_ms, "decode_ms": completion.decode_ms
        });
        if arguments.ids || arguments.logprobs {
            object["tokens"] = serde_json::json!(completion.tokens);
        }
        if arguments.logprobs {
            object["logprobs"] = serde_json::json!(completion.logprobs);
        }
        globals.out.object(&object)?;
    } else if streams_text {
        globals.out.line("")?;
    } else if arguments.logprobs {
        for (token, logprob) in completion.tokens.iter().zip(&completion.logprobs) {
            globals.out.line(&format!("{token} {logprob:.4}"))?;
        }
    } else {
        let ids: Vec<String> = completion.tokens.iter().map(u32::to_string).collect();
        globals.out.line(&ids.join(","))?;
    }
    Ok(0)
}
