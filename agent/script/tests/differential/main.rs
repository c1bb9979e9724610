//! Whole programs against CPython: what they print, and what kind of exception ends them.
//!
//! `MOTE_PROGRAMS` asks for more of them. What differs by design is in `docs/language.md`, and the generator says where it
//! keeps clear of it. A program that differs is shrunk before it is shown: blocks and lines go as long as it still differs.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod expressions;
mod generate;
#[path = "../python/mod.rs"]
mod python;

use proptest::test_runner::{RngAlgorithm, TestRng};
use python::{Case, answers};

/// Programs of the quick form.
const N_PROGRAMS: usize = 500;
/// Programs that one process of CPython answers.
const BATCH: usize = 500;
/// Differing programs that are shrunk and shown.
const SHOWN: usize = 6;

#[test]
fn random_programs() {
    let n: usize = std::env::var("MOTE_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(N_PROGRAMS);
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[5; 32]);
    let (mut n_compared, mut n_raised) = (0, 0);
    let mut differing = Vec::new();
    for at in (0..n).step_by(BATCH) {
        let programs: Vec<String> = (at..n.min(at + BATCH)).map(|_| generate::program(&mut rng)).collect();
        for case in answers(&programs) {
            assert!(case.error.as_deref() != Some("SyntaxError"), "the generator writes no Python:\n{}", case.source);
            if is_comparable(&case) {
                n_compared += 1;
                n_raised += usize::from(case.error.is_some());
                if case.difference().is_some() {
                    differing.push(case);
                }
            }
        }
    }
    eprintln!("{n_compared} of {n} programs compared, {n_raised} of them end in an exception");
    assert!(n_compared > n * 19 / 20, "too many of {n} programs leave 64 bits or do not end: {}", n - n_compared);
    assert!(n_raised < n_compared / 2, "an exception hides what comes after it, and ends too many: {n_raised}");
    differing.sort_by_key(|case| case.source.len());
    let n_differing = differing.len();
    let shown: Vec<String> = differing.into_iter().take(SHOWN).filter_map(|case| shrunk(case).difference()).collect();
    assert!(shown.is_empty(), "{n_differing} of {n_compared} programs differ\n{}", shown.join("\n"));
}

/// Left out is what differs for the reason alone that CPython's whole numbers are unbounded, and what does not end.
fn is_comparable(case: &Case) -> bool {
    let long = case.output.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > 18);
    let overflows = || {
        let (output, error) = python::run(&case.source);
        error.as_deref() == Some("OverflowError") || output.contains("OverflowError")
    };
    case.error.as_deref() != Some("TooMuch") && !long && !overflows()
}

/// The smallest program that still differs, found by leaving out lines with all that is indented under them.
fn shrunk(mut case: Case) -> Case {
    loop {
        let candidates = smaller(&case.source);
        let found = answers(&candidates).into_iter().find(|case| {
            case.error.as_deref() != Some("SyntaxError") && is_comparable(case) && case.difference().is_some()
        });
        match found {
            Some(smaller) => case = smaller,
            None => return case,
        }
    }
}

/// The program without each of its lines and what is indented under it, and with each block in place of its head.
fn smaller(source: &str) -> Vec<String> {
    let lines: Vec<&str> = source.lines().collect();
    let depth = |line: &str| line.len() - line.trim_start().len();
    let mut out = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let n_inner = lines[at + 1..].iter().take_while(|other| depth(other) > depth(line)).count();
        let (inner, after) = lines[at + 1..].split_at(n_inner);
        let keep = |inner: Vec<&str>| [&lines[..at], &inner, after].concat().join("\n") + "\n";
        out.push(keep(Vec::new()));
        if n_inner > 0 {
            out.push(keep(inner.iter().map(|line| &line[4..]).collect()));
        }
    }
    out.sort_by_key(String::len);
    out
}
