//! A conversation on disk and back, forks, and files that are not what they seem.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use crate::fixtures::{BUNDLES, fixture, model, prefill, prefilled};
use mote_model::{Bundle, Conversation, Error, ErrorKind, GenerateOptions, KvKind, LoadOptions, Model};

fn some_ids(n: usize) -> Vec<u32> {
    (0..n as u32).map(|i| 5 + i * 37 % 450).collect()
}

fn loaded(name: &str, context: usize, kv: KvKind) -> Model {
    let options = LoadOptions { threads: 2, context, kv: Some(kv), ..LoadOptions::default() };
    Model::load(Bundle::open(&fixture(name)).unwrap(), &options).unwrap()
}

fn generate(conversation: &mut Conversation, max_tokens: usize) -> Vec<u32> {
    let options = GenerateOptions { max_tokens, ..GenerateOptions::default() };
    conversation.generate(&options, None, &mut |_| ControlFlow::Continue(())).unwrap().tokens
}

#[test]
fn a_conversation_goes_on_from_its_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    for name in BUNDLES {
        for kv in [KvKind::F16, KvKind::Int8] {
            let path = dir.path().join(format!("{name}-{kv}.kv"));
            let model = loaded(name, 256, kv);
            let ids = some_ids(100);
            let mut first = prefilled(&model, &ids);
            first.snapshot(&path).unwrap();
            let expected = generate(&mut first, 40);
            for context in [256, 200] {
                let model = loaded(name, context, kv);
                let mut again = model.restore(&path, None).unwrap();
                assert_eq!(again.tokens(), ids);
                let mut heard = Vec::new();
                again
                    .prefill(&[7], &mut |_, total| {
                        heard.push(total);
                        ControlFlow::Continue(())
                    })
                    .unwrap();
                assert!(heard.iter().all(|&total| total == 1), "only what is new is evaluated");
                again.truncate(ids.len());
                assert_eq!(generate(&mut again, 40), expected, "{name} {kv} {context}");
            }
            let mut again = model.restore(&path, None).unwrap();
            assert_eq!(generate(&mut again, 40), expected, "what one conversation writes does not reach the file");
        }
    }
}

#[test]
fn a_fork_goes_its_own_way() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kv");
    let model = model("tiny-qwen3");
    let mut root = prefilled(&model, &some_ids(60));
    root.snapshot(&path).unwrap();
    for mut root in [root, model.restore(&path, None).unwrap()] {
        prefill(&mut root, &some_ids(5)).unwrap();
        let mut fork = root.fork().unwrap();
        assert_eq!(fork.tokens(), root.tokens());
        assert_eq!(fork.logits().unwrap(), root.logits().unwrap());
        prefill(&mut fork, &[9, 8, 7]).unwrap();
        let mut expected = prefilled(&model, &[some_ids(60), some_ids(5)].concat());
        assert_eq!(generate(&mut root, 20), generate(&mut expected, 20));
        root.truncate(10);
        prefill(&mut root, &[11; 60]).unwrap();
        let mut expected = prefilled(&model, &[some_ids(60), some_ids(5), vec![9, 8, 7]].concat());
        assert_eq!(generate(&mut fork, 20), generate(&mut expected, 20));
    }
}

fn restored(model: &Model, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(path, bytes).unwrap();
    model.restore(path, None).map(|_| ())
}

#[test]
fn a_snapshot_that_does_not_fit_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("kv");
    let model = loaded("tiny-llama", 256, KvKind::F16);
    prefilled(&model, &some_ids(50)).snapshot(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    let refused = |model: &Model, bytes: &[u8]| {
        let error = restored(model, &dir.path().join("copy"), bytes).unwrap_err();
        (error.kind(), error.message().to_owned())
    };
    let (kind, message) = refused(&loaded("tiny-qwen3", 256, KvKind::F16), &bytes);
    assert_eq!(kind, ErrorKind::Mismatch);
    assert!(message.starts_with("snapshot: made with another bundle than "), "{message}");
    let (kind, message) = refused(&loaded("tiny-llama", 256, KvKind::Int8), &bytes);
    assert_eq!((kind, message.as_str()), (ErrorKind::Mismatch, "snapshot: made with another kv cache than int8: f16"));
    let (kind, _) = refused(&loaded("tiny-llama", 40, KvKind::F16), &bytes);
    assert_eq!(kind, ErrorKind::ContextFull { limit: 40, used: 50 });

    let with = |at: usize, new: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + new.len()].copy_from_slice(new);
        bytes
    };
    assert_eq!(refused(&model, &with(0, b"X")).1, "snapshot: header: no magic MOTEKVS");
    assert_eq!(refused(&model, &with(8, &[9])).0, ErrorKind::Version { found: 9, supported: 1 });
    assert_eq!(refused(&model, &with(80, b"ab")).1, "snapshot: made with another adapter than none: ab");
    assert_eq!(refused(&model, &with(176, &[0xff; 8])).0, ErrorKind::Shape);
    assert_eq!(refused(&model, &with(216, &[0xff; 8])).0, ErrorKind::Shape);
    for at in [12, 176 + 100, 4096, 4096 + 199, 8192, 8192 + 500] {
        assert_eq!(refused(&model, &with(at, &[bytes[at] ^ 1])).0, ErrorKind::HashMismatch, "{at}");
    }
    for keep in (0..bytes.len()).step_by(6007).chain([4095, 4096, 8191, bytes.len() - 1]) {
        assert_eq!(refused(&model, &bytes[..keep]).0, ErrorKind::Truncated, "{keep}");
    }
    assert_eq!(refused(&model, &[bytes.as_slice(), &[0]].concat()).0, ErrorKind::Format);
    assert_eq!(model.restore(&dir.path().join("none"), None).unwrap_err().kind(), ErrorKind::Missing);
    assert_eq!(model.conversation().unwrap().snapshot(&path).unwrap_err().kind(), ErrorKind::Argument);
    assert!(restored(&model, &path, &bytes).is_ok());
}

#[test]
fn int8_keys_and_values_say_nearly_the_same() {
    for name in BUNDLES {
        let ids = some_ids(200);
        let logits = |kv| prefilled(&loaded(name, 256, kv), &ids).logits().unwrap().to_vec();
        let (halves, bytes) = (logits(KvKind::F16), logits(KvKind::Int8));
        let largest = halves.iter().zip(&bytes).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(largest > 0.0 && largest < 0.3, "{name}: {largest}");
    }
}
