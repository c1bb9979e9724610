//! Retrieval before the turn: which tools fit a task.
//!
//! BM25 over weighted fields (BM25F: Robertson, Zaragoza and Taylor, "Simple BM25 extension to multiple weighted fields", CIKM 2004):
//! the counts of a word in the fields of a tool are weighted and added up before they are saturated, so that a word in the name and in
//! three examples is one word seen often. Postings are built once and are read only; a query looks at nothing but its own words.
//! It does not decide how many tools a prompt holds, nor does it stem or translate.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::catalogue::{Catalogue, ToolId};

/// How fast repetition of a word stops to count; the usual value.
const K1: f32 = 1.2;

/// How much a long description is held against a tool; the usual value.
const B: f32 = 0.75;

/// What a word counts for in the name of the tool or of its server.
const NAME_WEIGHT: f32 = 3.0;

/// What a word counts for in the task of a worked example: these are the words people use.
const TASK_WEIGHT: f32 = 1.5;

/// What a word counts for in the description.
const DESCRIPTION_WEIGHT: f32 = 1.0;

/// What a word counts for in the name of a parameter.
const PARAMETER_WEIGHT: f32 = 0.5;

/// Words of one field or query that are looked at: the rest of a hostile description is no help to anyone.
const MAX_WORDS: usize = 512;

/// English words that say nothing about which tool is meant. In a small catalogue they are as rare as the words that do.
const STOP_WORDS: [&str; 40] = [
    "a", "about", "all", "an", "and", "any", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "give",
    "how", "i", "in", "is", "it", "me", "my", "of", "on", "or", "please", "show", "tell", "that", "the", "this", "to",
    "was", "what", "which", "with", "you", "your",
];

/// A tool that may fit, and how well; scores of different queries can't be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The tool.
    pub tool: ToolId,
    /// Above zero, the higher the better.
    pub score: f32,
}

/// The words of a catalogue, ready for queries.
#[derive(Clone, Debug, Default)]
pub struct Index {
    tools: Vec<ToolId>,
    postings: HashMap<String, Vec<Posting>>,
    lengths: Vec<f32>,
    mean_length: f32,
}

#[derive(Clone, Copy, Debug)]
struct Posting {
    tool_idx: usize,
    weight: f32,
}

impl Index {
    /// Reads every tool of the catalogue once.
    pub fn build(catalogue: &Catalogue) -> Index {
        let mut index = Index::default();
        for tool in catalogue.tools() {
            let tasks = tool
                .examples
                .iter()
                .filter(|example| !example.generated)
                .map(|example| (TASK_WEIGHT, example.task.as_str()));
            let parameters = tool.parameter_names().into_iter().map(|name| (PARAMETER_WEIGHT, name));
            let fields = [
                (NAME_WEIGHT, tool.id.server.as_str()),
                (NAME_WEIGHT, &tool.id.tool),
                (DESCRIPTION_WEIGHT, &tool.description),
            ];
            let fields: Vec<(f32, &str)> = fields.into_iter().chain(tasks).chain(parameters).collect();
            index.add(tool.id.clone(), &fields);
        }
        index.mean_length = index.lengths.iter().sum::<f32>() / index.lengths.len().max(1) as f32;
        index
    }

    /// The `k` best tools that share a word with the query, best first; equals in the order of the catalogue.
    pub fn search(&self, query: &str, k: usize) -> Vec<Candidate> {
        let mut query_words = words(query);
        query_words.sort_unstable();
        query_words.dedup();
        let mut scores: HashMap<usize, f32> = HashMap::new();
        for postings in query_words.iter().filter_map(|word| self.postings.get(word)) {
            let n_with = postings.len() as f32;
            let idf = (1.0 + (self.tools.len() as f32 - n_with + 0.5) / (n_with + 0.5)).ln();
            for posting in postings {
                let length = self.lengths.get(posting.tool_idx).copied().unwrap_or_default();
                let norm = K1 * (1.0 - B + B * length / self.mean_length);
                *scores.entry(posting.tool_idx).or_default() +=
                    idf * posting.weight * (K1 + 1.0) / (posting.weight + norm);
            }
        }
        let mut ranked: Vec<(usize, f32)> = scores.into_iter().collect();
        ranked.sort_unstable_by(|a, b| b.1.partial_cmp(&a.1).unwrap_or(Ordering::Equal).then(a.0.cmp(&b.0)));
        let candidate = |(idx, score): (usize, f32)| Some(Candidate { tool: self.tools.get(idx)?.clone(), score });
        ranked.into_iter().take(k).filter_map(candidate).collect()
    }

    fn add(&mut self, tool: ToolId, fields: &[(f32, &str)]) {
        let mut weights: HashMap<String, f32> = HashMap::new();
        let mut length = 0.0;
        for (weight, text) in fields {
            for word in words(text) {
                *weights.entry(word).or_default() += weight;
                length += weight;
            }
        }
        let tool_idx = self.tools.len();
        self.tools.push(tool);
        self.lengths.push(length);
        for (word, weight) in weights {
            self.postings.entry(word).or_default().push(Posting { tool_idx, weight });
        }
    }
}

/// The words of a text: runs of letters and digits in lower case, `camelCase` and `snake_case` taken apart, `%` read as `percent`.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for c in text.chars() {
        let camel = before.is_lowercase() && c.is_uppercase();
        if camel || !c.is_alphanumeric() {
            finish(&mut word, &mut found);
        }
        if c == '%' {
            found.push("percent".to_owned());
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = c;
        if found.len() >= MAX_WORDS {
            return found;
        }
    }
    finish(&mut word, &mut found);
    found
}

fn finish(word: &mut String, found: &mut Vec<String>) {
    let word = std::mem::take(word);
    if !word.is_empty() && !STOP_WORDS.contains(&word.as_str()) {
        found.push(word);
    }
}
