//! The fuzz target `manifest`; what it does is in `targets`.
#![no_main]

#[path = "../targets.rs"]
#[expect(dead_code, reason = "each target uses one of these")]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::manifest(bytes));
