//! Whole programs against CPython: what they print, and what kind of exception ends them.
//!
//! `MOTE_PROGRAMS` asks for more of them. What differs by design is in `docs/language.md`, and the generator says where it
//! keeps clear of it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends at what it did not expect")]

mod generate;
#[path = "../python/mod.rs"]
mod python;

use proptest::test_runner::{RngAlgorithm, TestRng};
use python::{Case, answers, none_differ};

/// Programs of the quick form.
const N_PROGRAMS: usize = 600;

#[test]
fn random_programs() {
    let n: usize = std::env::var("MOTE_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(N_PROGRAMS);
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[5; 32]);
    let programs: Vec<String> = (0..n).map(|_| generate::program(&mut rng)).collect();
    let mut cases = answers(&programs);
    cases.retain(|case| !beyond_64_bits(case));
    assert!(cases.len() > n * 19 / 20, "{} of {n} programs leave 64 bits", n - cases.len());
    let raised = cases.iter().filter(|case| case.error.is_some()).count();
    let syntax = cases.iter().find(|case| case.error.as_deref() == Some("SyntaxError"));
    assert!(syntax.is_none(), "the generator writes no Python:\n{}", syntax.unwrap().source);
    eprintln!("{} programs, {raised} end in an exception", cases.len());
    assert!(raised < n / 2, "{raised} of {n} programs end in an exception, which hides what comes after");
    none_differ(&cases);
}

/// CPython's integers are unbounded, ours end in an `OverflowError`.
fn beyond_64_bits(case: &Case) -> bool {
    let long = case.output.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > 18);
    long || python::run(&case.source).1.as_deref() == Some("OverflowError")
        && case.error.as_deref() != Some("OverflowError")
}
