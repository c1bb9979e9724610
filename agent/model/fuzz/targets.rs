//! What is fuzzed, one function a target. The tests of `mote-model` run them too, near what is whole.
//!
//! A file that is small is the input itself; of one that is large the input says what is damaged. Whatever comes, a bundle is
//! refused with a short message or can be used; nothing panics and nothing is read out of bounds.

use std::cell::RefCell;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use mote_model::{Adapter, Bundle, Error, GenerateOptions, LoadOptions, Manifest, Model};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const FILES: [&str; 4] = ["manifest.json", "model.onnx", "weights.bin", "tokenizer.json"];
/// Bytes of the weights' header that mean something.
const HEADER_BYTES: usize = 64;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("tests/fixtures/bundles").join(name))
        .find(|folder| folder.exists())
        .expect("the fixtures are there")
}

fn read(bundle: &str, file: &str) -> Vec<u8> {
    fs::read(fixture(bundle).join(file)).expect("a fixture can be read")
}

thread_local! {
    static FOLDER: RefCell<TempDir> = RefCell::new(tempfile::tempdir().expect("there is room for a folder"));
}

/// A copy of a fixture with one file replaced, and a manifest that tells the truth about it if it is asked to.
fn with_file<T>(bundle: &str, file: &str, bytes: &[u8], sealed: bool, then: impl FnOnce(&Path) -> T) -> T {
    FOLDER.with_borrow(|folder| {
        let folder = folder.path();
        for name in FILES {
            let from = read(bundle, name);
            fs::write(folder.join(name), if name == file { bytes } else { &from }).expect("a file can be written");
        }
        if sealed {
            let mut manifest: serde_json::Value =
                serde_json::from_slice(&read(bundle, "manifest.json")).expect("a fixture is JSON");
            let sha256: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            manifest["files"][file] = serde_json::json!({"bytes": bytes.len(), "sha256": sha256});
            fs::write(folder.join("manifest.json"), manifest.to_string()).expect("a file can be written");
        }
        then(folder)
    })
}

fn bundle_of(input: &[u8]) -> &'static str {
    if input.first().is_some_and(|byte| byte & 1 == 1) { "tiny-qwen3" } else { "tiny-llama" }
}

fn use_it(folder: &Path) -> Result<(), Error> {
    let model = Model::load(Bundle::open(folder)?, &LoadOptions { threads: 1, ..LoadOptions::default() })?;
    let mut conversation = model.conversation()?;
    conversation.prefill(&[5, 6, 7, 5, 6], &mut |_, _| ControlFlow::Continue(()))?;
    let options = GenerateOptions { max_tokens: 3, ..GenerateOptions::default() };
    conversation.generate(&options, None, &mut |_| ControlFlow::Continue(()))?;
    Ok(())
}

fn has_message(result: Result<(), Error>) {
    if let Err(error) = result {
        assert!(!error.message().is_empty() && error.message().len() < 2000, "{error}");
    }
}

/// The text of a manifest.
pub(crate) fn manifest(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::parse(bytes) {
        LoadOptions::default().memory_need(&manifest).map(|need| need.total()).ok();
    }
    let bundle = if bytes.windows(5).any(|window| window == b"qwen3") { "tiny-qwen3" } else { "tiny-llama" };
    has_message(with_file(bundle, "manifest.json", bytes, false, use_it));
}

/// A graph.
pub(crate) fn graph(bytes: &[u8]) {
    let bundle = if bytes.windows(6).any(|window| window == b"q_norm") { "tiny-qwen3" } else { "tiny-llama" };
    has_message(with_file(bundle, "model.onnx", bytes, true, use_it));
}

/// Damages of the header and the index of weights.
pub(crate) fn weights(input: &[u8]) {
    let bundle = bundle_of(input);
    let mut bytes = read(bundle, "weights.bin");
    let index = u64::from_le_bytes(bytes[16..24].try_into().expect("eight bytes")) as usize;
    let tail = bytes.split_off(index);
    let mut small = [&bytes[..HEADER_BYTES], &tail].concat();
    damage(&mut small, input.get(1..).unwrap_or_default());
    let header = small.len().min(HEADER_BYTES);
    bytes[..header].copy_from_slice(&small[..header]);
    bytes.extend_from_slice(&small[header..]);
    has_message(with_file(bundle, "weights.bin", &bytes, true, use_it));
}

/// Damages of a snapshot.
pub(crate) fn snapshot(input: &[u8]) {
    let model = Model::open(&fixture("tiny-llama"), &LoadOptions { threads: 1, context: 64, ..LoadOptions::default() })
        .expect("a fixture loads");
    let mut conversation = model.conversation().expect("a cache has room");
    conversation.prefill(&[5, 6, 7], &mut |_, _| ControlFlow::Continue(())).expect("a fixture runs");
    FOLDER.with_borrow(|folder| {
        let path = folder.path().join("snapshot");
        conversation.snapshot(&path).expect("a file can be written");
        let mut bytes = fs::read(&path).expect("a file can be read");
        damage(&mut bytes, input);
        fs::write(&path, &bytes).expect("a file can be written");
        match model.restore(&path, None) {
            Ok(restored) => assert_eq!(restored.tokens(), [5, 6, 7]),
            Err(error) => has_message(Err(error)),
        }
    });
}

/// Damages of an adapter.
pub(crate) fn adapter(input: &[u8]) {
    let bundle = Bundle::open(&fixture("tiny-llama")).expect("a fixture opens");
    let hidden = bundle.manifest().architecture.hidden;
    let half = hidden * 2 * 2;
    let head = serde_json::json!({
        "__metadata__": {"format": "mote-adapter-1", "rank": "2", "alpha": "4"},
        "l0.o.a": {"dtype": "F16", "shape": [2, hidden], "data_offsets": [0, half]},
        "l0.o.b": {"dtype": "F16", "shape": [hidden, 2], "data_offsets": [half, 2 * half]},
    });
    let head = head.to_string().into_bytes();
    let mut bytes = [&(head.len() as u64).to_le_bytes()[..], &head, &vec![0; 2 * half]].concat();
    damage(&mut bytes, input);
    FOLDER.with_borrow(|folder| {
        let path = folder.path().join("adapter");
        fs::write(&path, &bytes).expect("a file can be written");
        has_message(Adapter::open(&path, &bundle).map(|_| ()));
    });
}

/// Applies damages of four bytes each: what, where (two bytes, from the front or from the end), and a value.
fn damage(bytes: &mut Vec<u8>, input: &[u8]) {
    for edit in input.chunks_exact(4) {
        let offset = usize::from(u16::from_le_bytes([edit[1], edit[2]]));
        let at = if edit[0] & 8 == 0 { offset % (bytes.len() + 1) } else { bytes.len().saturating_sub(offset) };
        match edit[0] % 8 {
            0 | 1 if at < bytes.len() => bytes[at] = edit[3],
            2 if at < bytes.len() => bytes[at] ^= 1 << (edit[3] % 8),
            3 => bytes.insert(at, edit[3]),
            4 if at < bytes.len() => drop(bytes.remove(at)),
            5 => bytes.truncate(at),
            6 => {
                let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let number = [0, 1, u64::from(edit[3]) << 12, u64::MAX >> (edit[3] % 64)][usize::from(edit[3]) % 4];
                bytes.splice(at..at + digits, number.to_string().into_bytes());
            }
            _ => {
                let end = bytes.len().min(at + usize::from(edit[3]));
                let part = bytes[at..end].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
}
