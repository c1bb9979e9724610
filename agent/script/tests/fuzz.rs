//! The fuzz targets, bounded: the kept seeds as they are, and each with a few hundred damages.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "../fuzz/targets.rs"]
#[expect(clippy::expect_used, reason = "the targets end at what they did not expect")]
mod targets;

use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use std::path::Path;

/// Damages of each seed.
const N_DAMAGED: u32 = 150;

/// Runs a target on its seeds, and on what is one to four small damages or a splice away from one.
fn near_seeds(name: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(name);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let seeds: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert!(seeds.len() > 4, "{name} has {} seeds", seeds.len());
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]);
    let mut below = |n: usize| rng.next_u32() as usize % n.max(1);
    for seed in &seeds {
        target(seed);
        for _ in 0..N_DAMAGED {
            let mut bytes = seed.clone();
            for _ in 0..=below(4) {
                let at = below(bytes.len());
                match below(5) {
                    0 if !bytes.is_empty() => bytes[at] = below(256) as u8,
                    1 if !bytes.is_empty() => drop(bytes.remove(at)),
                    2 => bytes.insert(at, b"(){}[]:\"'\n 09,.-"[below(16)]),
                    3 => {
                        let other = &seeds[below(seeds.len())];
                        let from = below(other.len());
                        let part = other[from..other.len().min(from + 20)].to_vec();
                        bytes.splice(at..at, part);
                    }
                    _ => {
                        let end = (at + below(20)).min(bytes.len());
                        drop(bytes.drain(at..end));
                    }
                }
            }
            target(&bytes);
        }
    }
}

#[test]
fn sources() {
    near_seeds("source", targets::source);
}

#[test]
fn states() {
    near_seeds("state", targets::state);
}

#[test]
fn schemas() {
    near_seeds("schema", targets::schema);
}
