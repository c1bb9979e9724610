//! The shared suite: every backend against independent f64 references and against the scalar backend.

mod adapter;
mod attention;
mod formats;
mod matmul;
mod pointwise;
mod pool;

use crate::{Dispatch, Kind, Pool, dispatch};
use proptest::prelude::*;

/// All block formats.
fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Q4), Just(Kind::Q4m), Just(Kind::Q8)]
}

/// A pool of one thread and one of more threads than this package is built on.
fn pools() -> [Pool; 2] {
    [Pool::new(1).unwrap(), Pool::new(3).unwrap()]
}

/// Numbers in -1..1 of a small generator: a seed is smaller than a vector to shrink.
fn noise(seed: u64, len: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

/// Bytes of the same generator.
fn noise_bytes(seed: u64, len: usize) -> Vec<u8> {
    noise(seed, len).into_iter().map(|v| ((v + 1.0) * 128.0) as u8).collect()
}

#[test]
fn a_backend_is_forced_by_its_name() {
    let fastest = Dispatch::available().next().unwrap().name();
    for by in Dispatch::available() {
        assert_eq!(Dispatch::choose(Some(by.name())).name(), by.name());
    }
    assert_eq!(Dispatch::choose(Some("scalar")).name(), "scalar");
    assert_eq!(Dispatch::choose(Some("no such backend")).name(), fastest);
    assert_eq!(Dispatch::choose(None).name(), fastest);
    assert!(Dispatch::available().any(|by| by.name() == dispatch().name()));
}

/// `MOTE_TEST_KERNELS` names what the CPU under test must have, the fastest first: an undetected backend is untested.
#[test]
fn the_expected_backends_are_found() {
    let Ok(expected) = std::env::var("MOTE_TEST_KERNELS") else { return };
    let found: Vec<_> = Dispatch::available().map(Dispatch::name).collect();
    assert_eq!(found.join(" "), expected);
}
