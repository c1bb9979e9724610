//! Load time, prefill and decode rate and memory of a bundle.
//!
//! `cargo run --release -p mote-model --example model_speed -- BUNDLE [THREADS] [PREFILL_TOKENS] [DECODE_TOKENS]`
#![expect(clippy::print_stdout, reason = "an example shows its result on the terminal")]

use std::ops::ControlFlow;
use std::time::Instant;

use mote_model::{Bundle, Error, GenerateOptions, LoadOptions, Model};

const TEXT: &str = "A wireless sensor network is a set of small devices that measure their surroundings and report what they \
find. Each device has a processor, a radio and a battery. ";

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: usize| arguments.get(index).and_then(|a| a.parse().ok()).unwrap_or(default);
    let dir = arguments.first().map_or("bundle", String::as_str);
    let (n_prefill, n_decode) = (number(2, 128), number(3, 64));

    let started = Instant::now();
    let bundle = Bundle::open(dir.as_ref())?;
    let opened = started.elapsed();
    let model = Model::load(bundle, &LoadOptions { threads: number(1, 0), ..LoadOptions::default() })?;
    println!("open {opened:.0?}, load in all {:.0?}, {} threads, {}", started.elapsed(), model.threads(), memory());

    let ids = model.tokenizer().encode(TEXT)?;
    let prompt: Vec<u32> = ids.iter().copied().cycle().take(n_prefill).collect();
    for _ in 0..3 {
        let mut conversation = model.conversation()?;
        let started = Instant::now();
        conversation.prefill(&prompt, &mut |_, _| ControlFlow::Continue(()))?;
        let prefill_s = started.elapsed().as_secs_f64();
        let options = GenerateOptions { max_tokens: n_decode, ..GenerateOptions::default() };
        let started = Instant::now();
        let completion = conversation.generate(&options, None, &mut |_| ControlFlow::Continue(()))?;
        let decode_s = started.elapsed().as_secs_f64();
        let n_decoded = completion.tokens.len() - 1;
        println!(
            "prefill {n_prefill}: {:.1} tokens/s, decode {n_decoded}: {:.1} tokens/s, {}",
            n_prefill as f64 / prefill_s,
            n_decoded as f64 / decode_s,
            memory()
        );
    }
    let mut conversation = model.conversation()?;
    conversation.prefill(&model.tokenizer().encode_prompt("The capital of France is")?, &mut |_, _| {
        ControlFlow::Continue(())
    })?;
    let options = GenerateOptions { max_tokens: 24, ..GenerateOptions::default() };
    println!("{:?}", conversation.generate(&options, None, &mut |_| ControlFlow::Continue(()))?.text);
    Ok(())
}

/// Anonymous and mapped resident memory, where Linux tells it.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = status.lines().filter(|line| line.starts_with("RssAnon") || line.starts_with("RssFile"));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join(", ")
}
