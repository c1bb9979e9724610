//! `mote bench`: how fast a model loads, reads and writes here, beside what the memory and the kernels alone allow.
//!
//! All figures are taken once a round and the rounds follow each other, so that a machine that slows down touches all of them
//! alike. The median of the rounds counts, its spread is told; a fraction is the median of the rounds' fractions.
//! What it does not do: compare with other programs (`make bench-peers`) or judge what the model says.

mod alone;
mod memory;
mod others;
mod report;
mod rig;

use std::time::Instant;

use clap::Args;

use crate::cli::bench::alone::Alone;
use crate::cli::bench::memory::PeakMemory;
use crate::cli::bench::others::OtherLoad;
use crate::cli::bench::report::{About, Report, Rounds};
use crate::cli::bench::rig::{PREFILL_TOKENS, Plan, QUICK_PREFILL_TOKENS, Rig};
use crate::cli::load::LoadArgs;
use crate::cli::{Globals, interrupt};
use crate::error::Result;

/// More rounds than a person waits for.
const MAX_ROUNDS: u64 = 100;

#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    load: LoadArgs,
    /// Take every figure so many times
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_ROUNDS))]
    rounds: u64,
    /// Lengths of the prompts in tokens, such as 128,512; with 2048 among them, decode is measured after it too
    #[arg(long, value_delimiter = ',', value_name = "N", default_values_t = PREFILL_TOKENS, value_parser = length)]
    prefill: Vec<usize>,
    /// One round, short prompts and few tokens
    #[arg(long, conflicts_with_all = ["rounds", "prefill"])]
    quick: bool,
    /// Also decode with drafts after a text that repeats itself and after one that does not
    #[arg(long)]
    speculation: bool,
}

pub(crate) fn run(arguments: &BenchArgs, globals: &Globals) -> Result<u8> {
    interrupt::end_soon_after(&globals.cancel)?;
    let memory = PeakMemory::watch()?;
    let started = Instant::now();
    let model = arguments.load.load(globals)?;
    let load = started.elapsed();
    let alone = Alone::new(&model)?;
    let mut plan = match arguments.quick {
        true => Plan::new(1, &QUICK_PREFILL_TOKENS, true, model.context())?,
        false => Plan::new(arguments.rounds as usize, &arguments.prefill, false, model.context())?,
    };
    if arguments.speculation {
        plan = plan.with_speculation();
    }
    let adapter = arguments.load.adapter(&model)?;
    let load_of_others = OtherLoad::start();
    let mut rig = Rig::new(&model, adapter.as_ref(), &alone, &plan, globals)?;
    let first_token = started.elapsed();
    rig.warm_up()?;

    let mut rounds = Rounds::default();
    let mut long = rig.read_long(&mut rounds)?;
    for _ in 0..plan.rounds {
        rig.round(&mut rounds, long.as_mut())?;
    }
    let about =
        About { load, first_token, peak: memory.peak(), kv_tokens: plan.kv_tokens(), others: load_of_others.part() };
    let report = Report::new(&model, &alone, &rounds, &about);
    drop(rig);
    if globals.out.json() {
        globals.out.object(&report)?;
    } else {
        report.show(globals.out)?;
    }
    Ok(0)
}

fn length(text: &str) -> std::result::Result<usize, String> {
    match text.parse() {
        Ok(length) if length > 0 => Ok(length),
        _ => Err("not a number of tokens above 0".to_owned()),
    }
}
