//! The card's KV cache on disk: the card is the same for every task, so a slow machine reads it once and maps it later.
//!
//! What cannot be kept or taken back is prefilled as if there were no such file; it is named by all that it depends on.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mote_model::{Adapter, Conversation, ErrorKind, Model};
use sha2::{Digest, Sha256};

/// A card that is prefilled within this time is not worth a file.
const WORTH: Duration = Duration::from_millis(300);
/// Files that are kept; the oldest go first. A file is a few megabytes of a small model, tens of a large one.
const MAX_FILES: usize = 4;

/// Where the KV cache of cards is kept.
#[derive(Clone, Debug)]
pub(super) struct CardFile {
    path: PathBuf,
}

impl CardFile {
    pub(super) fn new(folder: &Path, model: &Model, adapter: Option<&Adapter>, card: &[u32]) -> CardFile {
        let mut hash = Sha256::new();
        for part in [model.bundle().id(), adapter.map_or("", Adapter::id), mote_kernels::dispatch().name()] {
            hash.update(part);
            hash.update([0]);
        }
        hash.update(format!("{} {}", model.memory().kv_kind, model.context()));
        card.iter().for_each(|id| hash.update(id.to_le_bytes()));
        let name: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        CardFile { path: folder.join(name).with_extension("kv") }
    }

    /// The conversation that holds the card, if its file is there and whole. A damaged file is removed.
    pub(super) fn restore(&self, model: &Model, adapter: Option<&Adapter>, card: &[u32]) -> Option<Conversation> {
        match model.restore(&self.path, adapter) {
            Ok(conversation) if conversation.tokens() == card => Some(conversation),
            Err(error) if error.kind() == ErrorKind::Missing => None,
            other => {
                tracing::warn!(path = %self.path.display(), ?other, "the kept card is made again");
                drop(fs::remove_file(&self.path));
                None
            }
        }
    }

    /// Keeps the card if that saves more than it costs.
    pub(super) fn keep(&self, conversation: &mut Conversation, prefill: Duration) {
        if prefill < WORTH {
            return;
        }
        let kept = self.path.parent().map_or(Ok(()), fs::create_dir_all).map_err(|error| error.to_string());
        let kept = kept.and_then(|()| conversation.snapshot(&self.path).map_err(|error| error.to_string()));
        if let Err(error) = kept.and_then(|()| self.remove_oldest().map_err(|error| error.to_string())) {
            tracing::warn!(path = %self.path.display(), error, "the card is not kept");
        }
    }

    fn remove_oldest(&self) -> std::io::Result<()> {
        let Some(folder) = self.path.parent() else { return Ok(()) };
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.path().extension().is_some_and(|extension| extension == "kv") {
                files.push((entry.metadata()?.modified()?, entry.path()));
            }
        }
        files.sort();
        let n_old = files.len().saturating_sub(MAX_FILES);
        files[..n_old].iter().try_for_each(|(_, path)| fs::remove_file(path))
    }
}
