//! BM25 over weighted words (BM25F: Robertson, Zaragoza and Taylor, "Simple BM25 extension to multiple weighted fields", CIKM 2004):
//! the counts of a word in the fields of a tool are weighted and added up before they are saturated, so that a word in the name and in
//! three examples is one word seen often. Postings are built once and are read only; a query looks at nothing but its own words.

use std::collections::HashMap;

/// How fast repetition of a word stops to count; the usual value.
const K1: f32 = 1.2;

/// How much a long description is held against a tool; the usual value.
const B: f32 = 0.75;

/// The words of all tools, ready for queries.
#[derive(Clone, Debug, Default)]
pub(super) struct Postings {
    by_word: HashMap<String, Vec<Posting>>,
    lengths: Vec<f32>,
    total_length: f32,
}

#[derive(Clone, Copy, Debug)]
struct Posting {
    tool_idx: usize,
    weight: f32,
}

impl Postings {
    /// Adds the next tool: its words, each with what it counts for.
    pub(super) fn add(&mut self, words: impl IntoIterator<Item = (f32, String)>) {
        let mut weights: HashMap<String, f32> = HashMap::new();
        let mut length = 0.0;
        for (weight, word) in words {
            *weights.entry(word).or_default() += weight;
            length += weight;
        }
        let tool_idx = self.lengths.len();
        self.lengths.push(length);
        self.total_length += length;
        for (word, weight) in weights {
            self.by_word.entry(word).or_default().push(Posting { tool_idx, weight });
        }
    }

    /// A score for every tool, zero for one that shares no word with the query.
    pub(super) fn scores(&self, mut query: Vec<String>) -> Vec<f32> {
        query.sort_unstable();
        query.dedup();
        let n_tools = self.lengths.len() as f32;
        let mean_length = self.total_length / n_tools.max(1.0);
        let mut scores = vec![0.0; self.lengths.len()];
        for postings in query.iter().filter_map(|word| self.by_word.get(word)) {
            let n_with = postings.len() as f32;
            let idf = (1.0 + (n_tools - n_with + 0.5) / (n_with + 0.5)).ln();
            for posting in postings {
                let norm = K1 * (1.0 - B + B * self.lengths[posting.tool_idx] / mean_length);
                scores[posting.tool_idx] += idf * posting.weight * (K1 + 1.0) / (posting.weight + norm);
            }
        }
        scores
    }
}
