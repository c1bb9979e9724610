//! The fuzz targets, bounded: on whole files, and each with some hundred damages.

use std::path::Path;

use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};

#[path = "../../fuzz/targets.rs"]
#[expect(clippy::expect_used, reason = "the targets end at what they did not expect")]
mod targets;

fn rng() -> TestRng {
    TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32])
}

/// Damages that a target applies itself.
fn edits(target: fn(&[u8]), n_inputs: usize) {
    let mut rng = rng();
    target(&[]);
    for _ in 0..n_inputs {
        let n_bytes = 1 + 4 * (1 + rng.next_u32() as usize % 3);
        let input: Vec<u8> = (0..n_bytes).map(|_| rng.next_u32() as u8).collect();
        target(&input);
    }
}

/// The kept seeds, and what is one to three small damages away from one.
fn near_seeds(name: &str, target: fn(&[u8]), n_damaged: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(name);
    let mut rng = rng();
    for entry in std::fs::read_dir(folder).unwrap() {
        let seed = std::fs::read(entry.unwrap().path()).unwrap();
        target(&seed);
        for _ in 0..n_damaged {
            let mut bytes = seed.clone();
            for _ in 0..=rng.next_u32() % 3 {
                let at = rng.next_u32() as usize % bytes.len().max(1);
                match rng.next_u32() % 4 {
                    0 if at < bytes.len() => bytes[at] = rng.next_u32() as u8,
                    1 if at < bytes.len() => drop(bytes.remove(at)),
                    2 => bytes.insert(at, rng.next_u32() as u8),
                    _ => bytes.truncate(bytes.len() - at % 60),
                }
            }
            target(&bytes);
        }
    }
}

#[test]
fn weights() {
    edits(targets::weights, 300);
}

#[test]
fn snapshots() {
    edits(targets::snapshot, 150);
}

#[test]
fn adapters() {
    edits(targets::adapter, 400);
}

#[test]
fn graphs() {
    near_seeds("graph", targets::graph, 200);
}

#[test]
fn manifests() {
    near_seeds("manifest", targets::manifest, 200);
}
