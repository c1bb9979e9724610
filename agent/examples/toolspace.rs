//! What a toolspace costs: `cargo run --release --example toolspace -- HOME [BUNDLE]`, once to build its file and once to measure.
//!
//! HOME is what `mote eval toolspace HOME` wrote. It prints how long opening takes, what anonymous memory it adds, and how long a query
//! takes on one thread. The anchor belongs to the bundle and is there before.

use std::path::{Path, PathBuf};
use std::time::Instant;

use mote::cancel::Cancel;
use mote::error::{Error, ErrorKind, Result};
use mote::home::Home;
use mote::tools::{Anchor, ToolOptions, ToolRuntime};

const QUERIES: [&str; 5] = [
    "What time is it in Tokyo?",
    "Set the rotor vibration limit of the second compressor to 40 percent",
    "How much disk space is free on /?",
    "Which line of README.md mentions make test, and in how many files under docs does the word make occur?",
    "read the oil level of the kiln",
];

const ROUNDS: u32 = 40;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let home = arguments.next().ok_or_else(|| Error::new(ErrorKind::Usage, "a home folder is needed"))?;
    let anchor = match arguments.next() {
        Some(bundle) => Anchor::of(&mote_model::Bundle::open(Path::new(&bundle))?)?,
        None => None,
    };
    let (home, guardian) = (Home::at(Path::new(&home)), Some(PathBuf::from("mote")));
    let before = anonymous_kib();
    let started = Instant::now();
    let options = ToolOptions { anchor, guardian, ..ToolOptions::default() };
    let runtime = ToolRuntime::open(&home, options, Cancel::default())?;
    let opened = started.elapsed();
    let added = anonymous_kib().saturating_sub(before);
    let index = runtime.index();
    let started = Instant::now();
    let mut best = Vec::new();
    for _ in 0..ROUNDS {
        best = QUERIES.iter().flat_map(|query| index.search(query, 8).into_iter().next()).collect();
    }
    let per_query = started.elapsed() / (ROUNDS * QUERIES.len() as u32);
    let (n_tools, n_servers) = (runtime.catalogue().n_tools(), runtime.catalogue().servers().len());
    let found: Vec<String> = best.iter().map(|found| found.tool.to_string()).collect();
    #[expect(clippy::print_stdout, reason = "an example prints what it measured")]
    {
        println!("{n_tools} tools on {n_servers} servers");
        println!("open: {:.2} ms, anonymous memory: {added} KiB", opened.as_secs_f64() * 1e3);
        println!(
            "a query: {:.2} ms; anonymous memory after all: {} KiB",
            per_query.as_secs_f64() * 1e3,
            anonymous_kib() - before
        );
        println!("best: {}", found.join(", "));
    }
    Ok(())
}

/// Anonymous memory of this process; zero where the system does not say.
fn anonymous_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or_default()
}
