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

/// What a word counts for in the description of a parameter, its quoted examples left out: they are values, not purposes.
const PARAMETER_DESCRIPTION_WEIGHT: f32 = 0.3;

/// What each required argument takes off a score: of two tools that fit a task as well, the one that needs less is meant.
const REQUIRED_DISCOUNT: f32 = 0.02;

/// Required arguments that are held against a tool.
const MAX_DISCOUNTED: usize = 5;

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
    factors: Vec<f32>,
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
            let tasks = tool.examples.iter().filter(|example| !example.generated);
            let tasks = tasks.map(|example| (TASK_WEIGHT, example.task.clone()));
            let names = tool.parameter_names().into_iter().map(|name| (PARAMETER_WEIGHT, name.to_owned()));
            let said = tool.parameter_descriptions().into_iter();
            let said = said.map(|text| (PARAMETER_DESCRIPTION_WEIGHT, without_quoted(text)));
            let name = format!("{} {}", tool.id.server, tool.id.tool);
            let fields = [(NAME_WEIGHT, name), (DESCRIPTION_WEIGHT, tool.description.clone())];
            let fields: Vec<(f32, String)> = fields.into_iter().chain(tasks).chain(names).chain(said).collect();
            let n_required = tool.signature.params.iter().filter(|param| param.required).count();
            index.factors.push(1.0 - REQUIRED_DISCOUNT * n_required.min(MAX_DISCOUNTED) as f32);
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
        let factor = |tool_idx: usize| self.factors.get(tool_idx).copied().unwrap_or(1.0);
        let mut ranked: Vec<(usize, f32)> = scores.into_iter().map(|(idx, score)| (idx, score * factor(idx))).collect();
        ranked.sort_unstable_by(|a, b| b.1.partial_cmp(&a.1).unwrap_or(Ordering::Equal).then(a.0.cmp(&b.0)));
        let candidate = |(idx, score): (usize, f32)| Some(Candidate { tool: self.tools.get(idx)?.clone(), score });
        ranked.into_iter().take(k).filter_map(candidate).collect()
    }

    fn add(&mut self, tool: ToolId, fields: &[(f32, String)]) {
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

/// A text without what stands between equal quotation marks; an apostrophe inside a word is none.
fn without_quoted(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut quote = None;
    let mut before = ' ';
    for c in text.chars() {
        let mark = matches!(c, '\'' | '"' | '`');
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if mark && !before.is_alphanumeric() => quote = Some(c),
            None => kept.push(c),
        }
        before = c;
    }
    kept
}

fn finish(word: &mut String, found: &mut Vec<String>) {
    let word = std::mem::take(word);
    if !word.is_empty() && !STOP_WORDS.contains(&word.as_str()) {
        found.push(word);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::tools::catalogue::{Server, ServerKind, ServerState, ToolDescription};

    type Said = (String, String, Vec<String>);

    fn catalogue(tools: &[Said]) -> Catalogue {
        let (name, state) = ("srv".to_owned(), ServerState::Discovering);
        let kind = ServerKind::Mcp { command: String::new() };
        let mut server =
            Server { wire_name: name.clone(), name, summary: String::new(), kind, state, tools: Vec::new() };
        let said = tools.iter().enumerate().map(|(idx, (name, description, parameters))| {
            let property = |name: &String| (name.clone(), json!({"description": format!("the one's {name} 'c'")}));
            let properties: serde_json::Map<_, _> = parameters.iter().map(property).collect();
            let parameters = json!({"type": "object", "properties": properties, "required": parameters});
            ToolDescription {
                name: format!("{name}_{idx}"),
                description: description.clone(),
                parameters,
                read_only_hint: false,
            }
        });
        assert_eq!(server.describe("", said.collect(), &|_| false), Vec::<String>::new());
        Catalogue::new(vec![server])
    }

    /// The fields of a document: the weight and the words of each.
    type Fields = Vec<(f64, Vec<String>)>;

    /// The formula, word by word, over whole documents.
    fn by_the_formula(catalogue: &Catalogue, query: &str) -> Vec<(String, f64)> {
        let documents: Vec<(String, Fields)> = catalogue
            .tools()
            .map(|tool| {
                let parameters = tool.parameter_names();
                let said: Vec<String> = parameters.iter().map(|name| format!("the one s {name}")).collect();
                let name = format!("{} {}", tool.id.server, tool.id.tool);
                let fields =
                    [(3.0, name), (1.0, tool.description.clone()), (0.5, parameters.join(" ")), (0.3, said.join(" "))];
                (tool.id(), fields.map(|(weight, text)| (weight, words(&text))).to_vec())
            })
            .collect();
        let length = |fields: &Fields| fields.iter().map(|(weight, words)| weight * words.len() as f64).sum::<f64>();
        let count = |fields: &Fields, wanted: &String| -> f64 {
            fields
                .iter()
                .map(|(weight, words)| weight * words.iter().filter(|word| *word == wanted).count() as f64)
                .sum()
        };
        let n_documents = documents.len() as f64;
        let mean = documents.iter().map(|(_, fields)| length(fields)).sum::<f64>() / n_documents;
        let mut scores = Vec::new();
        for (id, fields) in &documents {
            let mut score = 0.0;
            for word in words(query).into_iter().collect::<BTreeSet<_>>() {
                let n_with = documents.iter().filter(|(_, fields)| count(fields, &word) > 0.0).count() as f64;
                let idf = ((n_documents - n_with + 0.5) / (n_with + 0.5) + 1.0).ln();
                let weight = count(fields, &word);
                score += idf * weight * 2.2 / (weight + 1.2 * (0.25 + 0.75 * length(fields) / mean));
            }
            if score > 0.0 {
                let n_required = catalogue.tools().find(|tool| tool.id() == *id).unwrap().parameter_names().len();
                scores.push((id.clone(), score * (1.0 - 0.02 * n_required.min(5) as f64)));
            }
        }
        scores
    }

    proptest! {
        #[test]
        fn scores_are_those_of_the_formula(
            tools in prop::collection::vec(("[ab]{1,2}", "([abc]{1,2} ){0,6}", prop::collection::vec("[abd]{1,2}", 0..3)), 1..8),
            query in "([abcde]{1,2} ){0,5}",
        ) {
            let catalogue = catalogue(&tools);
            let found = Index::build(&catalogue).search(&query, usize::MAX);
            let mut expected = by_the_formula(&catalogue, &query);
            prop_assert_eq!(found.len(), expected.len());
            prop_assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score));
            for candidate in found {
                let at = expected.iter().position(|(id, _)| *id == candidate.tool.to_string()).unwrap();
                let (_, score) = expected.swap_remove(at);
                prop_assert!((f64::from(candidate.score) - score).abs() <= 1e-4 * score, "{} {}", candidate.score, score);
            }
        }

        #[test]
        fn any_text_is_words(text in ".{0,80}") {
            prop_assert!(words(&text).iter().all(|word| !word.is_empty() && word.chars().all(char::is_alphanumeric)));
        }
    }

    #[test]
    fn names_and_questions_are_taken_apart() {
        let taken = words("What is 17.5% of the minLot_size in README.md? Größe HTTPServer");
        assert_eq!(taken, ["17", "5", "percent", "min", "lot", "size", "readme", "md", "größe", "httpserver"]);
    }

    #[test]
    fn an_empty_catalogue_finds_nothing() {
        assert_eq!(Index::build(&Catalogue::default()).search("anything", 5), []);
        assert_eq!(Index::build(&catalogue(&[("a".into(), "b".into(), vec![])])).search("", 5), []);
    }
}
