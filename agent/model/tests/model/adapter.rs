//! An adapter beside a model says what the model says with the adapter merged into its weights.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use crate::fixtures::{BUNDLES, Files, fixture, load, model, prefill, prefilled};
use mote_kernels::{Kind, Matrix, pack};
use mote_model::{Adapter, Bundle, Error, ErrorKind, Model};
use serde_json::{Value, json};

const RANK: usize = 4;
const ALPHA: f32 = 6.0;

fn ids() -> Vec<u32> {
    (0..30).map(|i| 5 + i * 37 % 450).collect()
}

/// Numbers between -1 and 1 that are the same everywhere, as f16.
fn halves(seed: usize, n: usize) -> Vec<half::f16> {
    (0..n).map(|i| half::f16::from_f32((((i + seed) * 7919 % 2003) as f32 / 1001.5 - 1.0) * 0.2)).collect()
}

fn index(weights: &[u8]) -> Vec<Value> {
    let number = |at: usize| u64::from_le_bytes(weights[at..at + 8].try_into().unwrap()) as usize;
    serde_json::from_slice(&weights[number(16)..number(16) + number(24)]).unwrap()
}

/// The matrices that an adapter may change: name, rows and columns.
fn matrices(weights: &[u8]) -> Vec<(String, usize, usize)> {
    let entries = index(weights).into_iter().filter(|entry| entry["kind"] != "f32" && entry["name"] != "embed");
    entries
        .map(|e| {
            (
                e["name"].as_str().unwrap().to_owned(),
                e["rows"].as_u64().unwrap() as usize,
                e["cols"].as_u64().unwrap() as usize,
            )
        })
        .collect()
}

/// Name, type, shape and bytes.
type Tensors = Vec<(String, &'static str, Vec<usize>, Vec<u8>)>;

fn tensors(weights: &[u8]) -> Tensors {
    let bytes = |halves: Vec<half::f16>| halves.iter().flat_map(|h| h.to_le_bytes()).collect::<Vec<u8>>();
    let both = matrices(weights).into_iter().enumerate().flat_map(|(i, (name, rows, cols))| {
        [
            (format!("{name}.a"), "F16", vec![RANK, cols], bytes(halves(i, RANK * cols))),
            (format!("{name}.b"), "F16", vec![rows, RANK], bytes(halves(i + 500, rows * RANK))),
        ]
    });
    both.collect()
}

fn metadata() -> HashMap<String, String> {
    let pairs = [("format", "mote-adapter-1".to_owned()), ("rank", RANK.to_string()), ("alpha", ALPHA.to_string())];
    pairs.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
}

fn write(path: &Path, tensors: &Tensors, metadata: HashMap<String, String>) {
    let mut head = json!({ "__metadata__": metadata });
    let mut data = Vec::new();
    for (name, dtype, shape, bytes) in tensors {
        let end = data.len() + bytes.len();
        head[name] = json!({ "dtype": dtype, "shape": shape, "data_offsets": [data.len(), end] });
        data.extend_from_slice(bytes);
    }
    let head = head.to_string().into_bytes();
    fs::write(path, [&(head.len() as u64).to_le_bytes()[..], &head, &data].concat()).unwrap();
}

/// The bundle with every matrix as 8-bit, the adapter of [`tensors`] merged into them if asked for.
fn in_eight_bits(files: &Files, merged: bool) -> Files {
    let old = &files.0["weights.bin"];
    let mut new = vec![0; 4096];
    let mut entries = Vec::new();
    let mut n_matrices = 0;
    for entry in index(old) {
        let number = |field: &str| entry[field].as_u64().unwrap() as usize;
        let (rows, cols, offset) = (number("rows"), number("cols"), number("offset"));
        let bytes = &old[offset..offset + number("bytes")];
        let kind = match entry["kind"].as_str().unwrap() {
            "f32" => None,
            "q4" => Some(Kind::Q4),
            "q4m" => Some(Kind::Q4m),
            _ => Some(Kind::Q8),
        };
        let packed = match kind {
            None => bytes.to_vec(),
            Some(kind) => {
                let matrix = Matrix::new(kind, rows, cols, bytes).unwrap();
                let mut values = vec![0.0; rows * cols];
                values.chunks_mut(cols).enumerate().for_each(|(r, row)| matrix.row_to_f32(r, row).unwrap());
                if merged && entry["name"] != "embed" {
                    let (a, b) = (halves(n_matrices, RANK * cols), halves(n_matrices + 500, rows * RANK));
                    for (i, value) in values.iter_mut().enumerate() {
                        let products =
                            (0..RANK).map(|k| b[i / cols * RANK + k].to_f32() * a[k * cols + i % cols].to_f32());
                        *value += ALPHA / RANK as f32 * products.sum::<f32>();
                    }
                }
                n_matrices += usize::from(entry["name"] != "embed");
                pack(Kind::Q8, rows, cols, &values).unwrap()
            }
        };
        let mut entry = entry.clone();
        entry["offset"] = json!(new.len());
        entry["bytes"] = json!(packed.len());
        if kind.is_some() {
            entry["kind"] = json!("q8");
        }
        new.extend(packed);
        new.resize(new.len().next_multiple_of(4096), 0);
        entries.push(entry);
    }
    let index = serde_json::to_vec(&entries).unwrap();
    let (at, len) = (new.len() as u64, index.len() as u64);
    new[..16].copy_from_slice(&old[..16]);
    new[16..24].copy_from_slice(&at.to_le_bytes());
    new[24..32].copy_from_slice(&len.to_le_bytes());
    new[32..40].copy_from_slice(&(at + len).to_le_bytes());
    new.extend(index);
    let mut files = files.clone();
    *files.file("weights.bin") = new;
    files.sealed()
}

fn logits(model: &Model, adapter: Option<&Adapter>) -> Vec<f32> {
    let mut conversation = model.conversation().unwrap();
    conversation.set_adapter(adapter).unwrap();
    prefill(&mut conversation, &ids()).unwrap();
    conversation.logits().unwrap().to_vec()
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    let square: f32 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    (square / a.len() as f32).sqrt()
}

#[test]
fn beside_the_weights_it_is_as_in_them() {
    for name in BUNDLES {
        let files = Files::read(name);
        let (plain, merged) = (in_eight_bits(&files, false).write(), in_eight_bits(&files, true).write());
        let (plain, merged) = (load(plain.path()).unwrap(), load(merged.path()).unwrap());
        let path = tempfile::NamedTempFile::new().unwrap();
        write(path.path(), &tensors(&files.0["weights.bin"]), metadata());
        let adapter = Adapter::open(path.path(), plain.bundle()).unwrap();
        let without = logits(&plain, None);
        let (beside, within) = (logits(&plain, Some(&adapter)), logits(&merged, None));
        let (error, effect) = (distance(&beside, &within), distance(&without, &within));
        // What is merged is rounded to 8 bits once more, in every layer.
        assert!(error < 0.12 * effect, "{name}: {error} of {effect}");
    }
}

#[test]
fn it_is_switched_without_a_reload() {
    let model = model("tiny-llama");
    let path = tempfile::NamedTempFile::new().unwrap();
    write(path.path(), &tensors(&Files::read("tiny-llama").0["weights.bin"]), metadata());
    let adapter = Adapter::open(path.path(), model.bundle()).unwrap();
    let (with, without) = (logits(&model, Some(&adapter)), logits(&model, None));
    assert!(distance(&with, &without) > 0.1);
    let mut conversation = prefilled(&model, &ids());
    conversation.set_adapter(Some(&adapter)).unwrap();
    assert_eq!(conversation.tokens(), ids());
    assert_eq!(conversation.logits().unwrap(), with);
    let mut fork = conversation.fork().unwrap();
    conversation.set_adapter(None).unwrap();
    assert_eq!(conversation.logits().unwrap(), without);
    assert_eq!(fork.logits().unwrap(), with);

    let snapshot = path.path().with_extension("kv");
    fork.snapshot(&snapshot).unwrap();
    let mut restored = model.restore(&snapshot, Some(&adapter)).unwrap();
    assert_eq!(restored.logits().unwrap(), with);
    assert_eq!(model.restore(&snapshot, None).unwrap_err().kind(), ErrorKind::Mismatch);
    fs::remove_file(snapshot).unwrap();
}

#[test]
fn one_that_does_not_fit_is_refused_with_the_name() {
    let bundle = Bundle::open(&fixture("tiny-llama")).unwrap();
    let good = tensors(&Files::read("tiny-llama").0["weights.bin"]);
    let file = tempfile::NamedTempFile::new().unwrap();
    let refused = |change: &dyn Fn(&mut Tensors, &mut HashMap<String, String>)| -> Error {
        let (mut tensors, mut metadata) = (good.clone(), metadata());
        change(&mut tensors, &mut metadata);
        write(file.path(), &tensors, metadata);
        Adapter::open(file.path(), &bundle).unwrap_err()
    };
    let set = |name: &'static str, text: &'static str| {
        refused(&move |_, metadata| drop(metadata.insert(name.into(), text.into()))).message().to_owned()
    };
    assert_eq!(set("format", "lora"), "adapter: format is not mote-adapter-1: lora");
    assert_eq!(set("rank", "65"), "adapter: rank is outside 1 to 64: 65");
    assert_eq!(set("rank", "many"), "adapter: no number in the metadata: rank");
    assert_eq!(set("alpha", "nan"), "adapter: no number in the metadata: alpha");
    assert!(set("rank", "5").contains("should be ["));
    let first = good[0].0.clone();
    let error = refused(&|tensors, _| drop(tensors.remove(0)));
    assert_eq!(error.message(), format!("adapter: not both tensors a and b of: {}", first.trim_end_matches(".a")));
    let error = refused(&|tensors, _| tensors[0].0 = "l9.qkv.a".into());
    assert_eq!((error.kind(), error.message()), (ErrorKind::Mismatch, "adapter: the model has no such matrix: l9.qkv"));
    let error = refused(&|tensors, _| tensors[0].0 = "embed.a".into());
    assert_eq!(error.message(), "adapter: not the name of a tensor of an adapter: embed.a");
    let error = refused(&|tensors, _| tensors[0].3[..2].copy_from_slice(&[0x00, 0x7e]));
    assert_eq!(error.message(), format!("adapter: {first}: a value is not finite"));
    let error = refused(&|tensors, _| tensors[0].1 = "BF16");
    assert_eq!(error.message(), format!("adapter: {first}: not of type F16: BF16"));

    write(file.path(), &good, metadata());
    let bytes = fs::read(file.path()).unwrap();
    for keep in (0..bytes.len()).step_by(4099) {
        fs::write(file.path(), &bytes[..keep]).unwrap();
        let kind = Adapter::open(file.path(), &bundle).unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::Format | ErrorKind::Truncated), "{keep}: {kind:?}");
    }
    write(file.path(), &good, metadata());
    let adapter = Adapter::open(file.path(), &bundle).unwrap();
    let error = model("tiny-qwen3").conversation().unwrap().set_adapter(Some(&adapter)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Mismatch);
}
