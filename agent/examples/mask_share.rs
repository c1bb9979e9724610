//! What the grammar's masks cost as a share of a decode step, with a real bundle and 32 loaded tools.
//!
//! `cargo run --release -p mote --example mask_share -- BUNDLE [ROUNDS] [TOKENS]`
//!
//! Rounds with and without a grammar alternate over the same prompt. A step is the time between two tokens that the model
//! chose one after the other; what the grammar forced is left out, because it costs no step of its own.
#![expect(clippy::print_stdout, reason = "an example shows its result on the terminal")]

#[path = "../script/examples/loaded/mod.rs"]
mod loaded;

use std::error::Error;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use mote_model::{Bundle, GenerateOptions, Grammar, LoadOptions, Model};
use mote_script::grammar;

const N_TOOLS: usize = 32;
const PROMPT: &str = "Write a program that lists the files of a folder, sums their sizes and answers.\n";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: usize| arguments.get(index).and_then(|a| a.parse().ok()).unwrap_or(default);
    let dir = arguments.first().map_or("bundle", String::as_str);
    let model = Model::load(Bundle::open(dir.as_ref())?, &LoadOptions::default())?;
    let lark = grammar::lark(&loaded::tools(N_TOOLS)?, true, &grammar::Options::default())?;
    let started = Instant::now();
    let compiled = Grammar::compile(model.tokenizer(), &lark)?;
    println!("{N_TOOLS} tools: {} bytes of grammar, first compiled in {:.1?}", lark.len(), started.elapsed());
    let started = Instant::now();
    let again = Grammar::compile(model.tokenizer(), &lark)?;
    println!("compiled again in {:.1?}", started.elapsed());
    drop(again);

    let prompt = model.tokenizer().encode_prompt(PROMPT)?;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    let mut n_forced = 0;
    for round in 0..number(1, 10) {
        for (steps, grammar) in [(&mut with, Some(&compiled)), (&mut without, None)] {
            let mut conversation = model.conversation()?;
            conversation.prefill(&prompt, &mut |_, _| ControlFlow::Continue(()))?;
            let mut options = GenerateOptions { max_tokens: number(2, 160), ..GenerateOptions::default() };
            options.sampling.temperature = 1.0;
            options.sampling.seed = u64::try_from(round)?;
            let mut before = None;
            conversation.generate(&options, grammar, &mut |event| {
                let now = Instant::now();
                match before {
                    _ if event.forced => n_forced += 1,
                    Some(before) => steps.push(now.duration_since(before)),
                    None => {}
                }
                before = (!event.forced).then_some(now);
                ControlFlow::Continue(())
            })?;
        }
    }
    let (with, without) = (summary(with), summary(without));
    println!("with the grammar:    {with}, and {n_forced} tokens forced");
    println!("without the grammar: {without}");
    let share = |a: Duration, b: Duration| 100.0 * (a.as_secs_f64() / b.as_secs_f64() - 1.0);
    println!(
        "share of a step without it: mean {:.1}%, median {:.1}%",
        share(with.mean, without.mean),
        share(with.median, without.median)
    );
    Ok(())
}

struct Summary {
    n: usize,
    mean: Duration,
    median: Duration,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} steps, mean {:.2?}, median {:.2?}", self.n, self.mean, self.median)
    }
}

fn summary(mut steps: Vec<Duration>) -> Summary {
    steps.sort_unstable();
    let n = steps.len();
    let mean = steps.iter().sum::<Duration>() / u32::try_from(n).unwrap_or(1).max(1);
    Summary { n, mean, median: steps.get(n / 2).copied().unwrap_or_default() }
}
