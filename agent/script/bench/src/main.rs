//! Runs micro programs on demand, so that engines can be timed in turn: `mote-script-bench PROGRAMS_SRC PROGRAMS_RHAI`.
//!
//! Each line of standard input names an engine and a program (`mote 3`, `rhai 3`); the answer is the time to make an engine,
//! compile and run, in microseconds. The number after the last is `x = 1`.

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::time::Instant;

use mote_script::{Limits, Step, Vm, compile};

/// Far above what any of the programs takes, so that both engines count and neither stops.
const MOST_STEPS: u64 = 100_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut paths = std::env::args().skip(1);
    let mut programs = || -> Result<Vec<String>, Box<dyn Error>> {
        let text = std::fs::read_to_string(paths.next().ok_or("which programs?")?)?;
        Ok(text.split("\n---\n").map(|program| format!("{}\n", program.trim_end())).collect())
    };
    let (mut ours, mut theirs) = (programs()?, programs()?);
    ours.push("x = 1\n".to_owned());
    theirs.push("let x = 1;\n".to_owned());
    for line in stdin().lock().lines() {
        let line = line?;
        let (engine, at) = line.split_once(' ').ok_or("an engine and a number")?;
        let at: usize = at.parse()?;
        let started = Instant::now();
        match engine {
            "mote" => mote(ours.get(at).ok_or("no such program")?)?,
            _ => rhai(theirs.get(at).ok_or("no such program")?)?,
        }
        println!("{:.1}", started.elapsed().as_secs_f64() * 1e6);
        stdout().flush()?;
    }
    Ok(())
}

fn mote(program: &str) -> Result<(), Box<dyn Error>> {
    let limits = Limits { fuel: MOST_STEPS, bytes: 64 << 20, ..Limits::default() };
    let mut vm = Vm::new(limits);
    match vm.start(compile(program, &limits)?, &[]) {
        Step::Done => Ok(()),
        step => Err(format!("{program}\n{step:?}").into()),
    }
}

fn rhai(program: &str) -> Result<(), Box<dyn Error>> {
    let mut engine = rhai::Engine::new();
    engine.set_max_operations(MOST_STEPS).on_print(|_| {});
    Ok(engine.run(program)?)
}
