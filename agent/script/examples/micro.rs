//! The time of each program of a file, best of several runs: `micro PROGRAMS [RUNS]`, one line of microseconds a program.
//!
//! Programs are separated by lines of `---`. The last line is the time to make a machine and run `x = 1` in it.
#![expect(clippy::print_stdout, reason = "an example shows its result on the terminal")]

use std::error::Error;
use std::time::{Duration, Instant};

use mote_script::{Limits, Step, Vm, compile};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let source = std::fs::read_to_string(arguments.first().ok_or("which programs?")?)?;
    let runs: u32 = arguments.get(1).map_or(Ok(7), |n| n.parse())?;
    let limits = Limits { fuel: 100_000_000, bytes: 64 << 20, ..Limits::default() };
    for program in source.split("\n---\n").chain(["x = 1\n"]) {
        let mut best = Duration::MAX;
        for _ in 0..runs {
            let started = Instant::now();
            let mut vm = Vm::new(limits);
            let step = vm.start(compile(&format!("{program}\n"), &limits)?, &[]);
            best = best.min(started.elapsed());
            if step != Step::Done {
                return Err(format!("{program}\n{step:?}").into());
            }
        }
        println!("{:.1}", best.as_secs_f64() * 1e6);
    }
    Ok(())
}
