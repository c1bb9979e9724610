//! The fixture bundles, and copies of them that a test may damage.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use mote_model::{Bundle, Conversation, Error, LoadOptions, Model};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

pub(crate) const BUNDLES: [&str; 2] = ["tiny-llama", "tiny-qwen3"];

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/bundles").join(name)
}

pub(crate) fn model(name: &str) -> Model {
    load(&fixture(name)).unwrap()
}

pub(crate) fn load(dir: &Path) -> Result<Model, Error> {
    Model::load(Bundle::open(dir)?, &LoadOptions { threads: 2, ..LoadOptions::default() })
}

pub(crate) fn prefilled(model: &Model, ids: &[u32]) -> Conversation {
    let mut conversation = model.conversation().unwrap();
    prefill(&mut conversation, ids).unwrap();
    conversation
}

pub(crate) fn prefill(conversation: &mut Conversation, ids: &[u32]) -> Result<(), Error> {
    conversation.prefill(ids, &mut |_, _| ControlFlow::Continue(()))
}

pub(crate) fn argmax(logits: &[f32]) -> u32 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    logits.iter().position(|&logit| logit == largest).unwrap() as u32
}

/// A bundle in memory.
#[derive(Clone)]
pub(crate) struct Files(pub(crate) BTreeMap<String, Vec<u8>>);

impl Files {
    pub(crate) fn read(name: &str) -> Files {
        let names = ["manifest.json", "model.onnx", "weights.bin", "tokenizer.json"];
        Files(names.iter().map(|file| (file.to_string(), fs::read(fixture(name).join(file)).unwrap())).collect())
    }

    pub(crate) fn file(&mut self, name: &str) -> &mut Vec<u8> {
        self.0.get_mut(name).unwrap()
    }

    /// Replaces text of a file; it must be there.
    pub(crate) fn replace(mut self, file: &str, from: &str, to: &str) -> Files {
        let bytes = self.file(file);
        let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        bytes.splice(at..at + from.len(), to.bytes());
        self
    }

    /// Makes the manifest tell the truth about sizes and hashes again.
    pub(crate) fn sealed(mut self) -> Files {
        let mut manifest: serde_json::Value = serde_json::from_slice(&self.0["manifest.json"]).unwrap();
        for (name, bytes) in self.0.iter().filter(|(name, _)| *name != "manifest.json") {
            let sha256: String = Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
            manifest["files"][name] = serde_json::json!({"bytes": bytes.len(), "sha256": sha256});
        }
        *self.file("manifest.json") = serde_json::to_vec(&manifest).unwrap();
        self
    }

    pub(crate) fn write(&self) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, bytes) in &self.0 {
            fs::write(dir.path().join(name), bytes).unwrap();
        }
        dir
    }
}
