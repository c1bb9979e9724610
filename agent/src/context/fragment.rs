//! One fragment of the prompt, and the prompt as the list of them.

use std::fmt;

use sha2::{Digest, Sha256};

/// What a fragment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentKind {
    /// The language and the rules.
    Card,
    /// The tools of this stage, with their examples.
    Shortlist,
    /// The stage's sub-goal, strategy and carried knowledge.
    Configuration,
    /// The task.
    Task,
    /// A program, as the model wrote it.
    Program,
    /// What a program printed, and its errors.
    Observation,
}

impl FragmentKind {
    /// The name used in ledgers and trajectories.
    pub fn name(self) -> &'static str {
        match self {
            FragmentKind::Card => "card",
            FragmentKind::Shortlist => "shortlist",
            FragmentKind::Configuration => "configuration",
            FragmentKind::Task => "task",
            FragmentKind::Program => "program",
            FragmentKind::Observation => "observation",
        }
    }
}

impl fmt::Display for FragmentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A stretch of a fragment.
///
/// Only `Control` may become special tokens: task, tool results and descriptions come from outside and are `Text`, so
/// that a template's marker inside them stays words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// The template's own markers.
    Control(String),
    /// Words.
    Text(String),
}

impl Piece {
    /// The characters of the piece.
    pub fn as_str(&self) -> &str {
        match self {
            Piece::Control(text) | Piece::Text(text) => text,
        }
    }
}

/// One fragment: what it says, its token ids where a tokenizer is at hand, and what was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// What it holds.
    pub kind: FragmentKind,
    /// What it says.
    pub pieces: Vec<Piece>,
    /// Its token ids; `None` when a script stands in for the model.
    pub ids: Option<Vec<u32>>,
    /// Items left out to keep its cap.
    pub dropped: usize,
    /// Lines replaced by a count of them.
    pub elided: usize,
}

impl Fragment {
    /// The text of all pieces.
    pub fn text(&self) -> String {
        self.pieces.iter().map(Piece::as_str).collect()
    }
}

/// The fragments of one stage, in order.
#[derive(Clone, Debug, Default)]
pub struct Prompt {
    fragments: Vec<Fragment>,
}

impl Prompt {
    /// Appends a fragment; one without text leaves no trace.
    pub fn push(&mut self, fragment: Fragment) {
        if fragment.pieces.iter().any(|piece| !piece.as_str().is_empty()) {
            self.fragments.push(fragment);
        }
    }

    /// The fragments.
    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// The whole text.
    pub fn text(&self) -> String {
        self.fragments.iter().map(Fragment::text).collect()
    }

    /// All token ids, or `None` if a fragment has none.
    pub fn ids(&self) -> Option<Vec<u32>> {
        let mut ids = Vec::new();
        for fragment in &self.fragments {
            ids.extend_from_slice(fragment.ids.as_ref()?);
        }
        Some(ids)
    }

    /// SHA-256 of the whole text.
    pub fn sha256(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        for piece in self.fragments.iter().flat_map(|fragment| &fragment.pieces) {
            hasher.update(piece.as_str().as_bytes());
        }
        hasher.finalize().into()
    }
}
