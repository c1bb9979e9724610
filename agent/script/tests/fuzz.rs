//! The fuzz targets, bounded: the kept seeds as they are, and each with a few hundred damages.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

#[path = "../fuzz/targets.rs"]
#[expect(clippy::expect_used, reason = "the targets end at what they did not expect")]
mod targets;

use mote_script::{Limits, Signature, Step, Vm, compile};
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

/// Programs whose machines, at each of their calls, are the seeds of `state`.
const STORED: &[&str] = &[
    "x = t.get(k=[1, 2.5, None, True])\nprint(x, t.put(s='a'))\n",
    "xs = list(range(20))\nd = {str(i): [i] for i in range(9)}\ndel d['3']\nx = t.get(k=xs)\nd[len(x)] = xs\nt.put(k=d)\n",
    "def f(n, k=1, *rest, **more):\n    try:\n        return t.get(k=n) if n == 0 else f(n - 1, k=n)\n    finally:\n        print(n, rest, k, more)\nx = f(3)\n",
    "x = sorted([3, 1, 2], key=lambda v: (t.get(k=v), v), reverse=True)\nprint(max(x, key=lambda v: t.get(n=v)))\n",
    "s = 'ab'\nfor i in range(9):\n    s += str(i) * i\nx = gather(t.get(k=s), 1, t.put(s=s), return_exceptions=True)\nprint(x)\n",
    "x = []\nx.append(x)\ny = {1: x, (2, 'é'): {3, 4}}\ntry:\n    t.get(k=y[7])\nexcept Exception as e:\n    x.append(e)\nt.put(k=1)\n",
    "for i in map(lambda v: t.get(n=v), [1, 2]):\n    m = 'a,b'.split\n    r = range(5, 1, -2)\n    it = iter(m(','))\n    next(it)\n    t.put(k=i)\n",
    "print('a' * 300)\nx = t.get()\ndel x\nzs = [v for v in 'text' if t.get(s=v)]\nprint(f\"{zs!r:>40}\")\n",
];

/// The states of [`STORED`], two calls deep.
fn states_of_today() -> Vec<Vec<u8>> {
    let limits = Limits { bytes: 200_000, fuel: 5_000, printed_bytes: 2_000, ..Limits::default() };
    let schema = serde_json::json!({"type": "object", "properties": {"k": {}, "n": {"type": "integer"}, "s": {"type": "string"}}});
    let tools: Vec<Signature> =
        ["get", "put"].map(|name| Signature::from_json_schema("t", name, "", &schema).unwrap()).to_vec();
    let mut states = Vec::new();
    for source in STORED {
        let mut vm = Vm::new(limits);
        let mut step = vm.start(compile(source, &limits).unwrap(), &tools);
        for _ in 0..2 {
            assert!(matches!(step, Step::Call(_) | Step::Calls(_)), "{source}{step:?}");
            states.push(vm.encode());
            step = match step {
                Step::Calls(calls) => vm.resume_all(calls.iter().map(|_| Ok("text".into())).collect()),
                _ => vm.resume(Ok(serde_json::json!([1, "a"]))),
            };
            if matches!(step, Step::Done | Step::Failed(_)) {
                break;
            }
        }
    }
    states
}

/// States of an earlier version test nothing: `MOTE_UPDATE_SEEDS=1` writes those of this one.
#[test]
fn kept_states_are_of_this_version() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds/state");
    if std::env::var_os("MOTE_UPDATE_SEEDS").is_some() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        for (i, state) in states_of_today().iter().enumerate() {
            std::fs::write(folder.join(format!("{i:02}")), state).unwrap();
        }
    }
    let kept: Vec<Vec<u8>> =
        std::fs::read_dir(&folder).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap()).collect();
    let read = kept.iter().filter(|state| Vm::decode(state).is_ok()).count();
    assert!(read >= STORED.len(), "{read} of {} kept states are read", kept.len());
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
