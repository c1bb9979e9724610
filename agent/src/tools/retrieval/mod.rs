//! Retrieval before the turn: which tools fit a task.
//!
//! A hybrid: BM25 over the stems of a tool's fields, and, where a bundle is there, the anchor in the model's own embedding layer. A
//! score is `BM25 + share * ln p(t)` up to a constant, so that a long task full of rare words is decided by its words and a short one
//! by its meaning. docs/retrieval.md has the formula, how it was measured, and what it reaches.
//! It does not decide how many tools a prompt holds, nor does it translate.

mod anchor;
mod embeddings;
mod lexical;
mod words;

use std::cmp::Ordering;
use std::path::Path;

use self::anchor::KnownWords;
use self::embeddings::Embeddings;
use self::lexical::Postings;
use self::words::{asked, stems, without_quoted, words};
use super::catalogue::{Catalogue, Server, ToolEntry, ToolId};
use crate::error::Result;

pub use self::anchor::Anchor;

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

/// A tool that may fit, and how well; scores of different queries can't be compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The tool.
    pub tool: ToolId,
    /// Above zero, the higher the better.
    pub score: f32,
}

/// How tools are ranked; all but [`Ranking::Hybrid`] are there to compare with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// BM25 over all words alike, no weights and no stems.
    Plain,
    /// The lexical half of the hybrid.
    Words,
    /// The anchor alone; without one, nothing.
    Anchor,
    /// Both halves; without an anchor, the lexical one.
    Hybrid,
}

/// A catalogue, ready for queries.
#[derive(Clone, Debug, Default)]
pub struct Index {
    tools: Vec<ToolId>,
    postings: Postings,
    factors: Vec<f32>,
    anchored: Option<(Anchor, Embeddings)>,
}

impl Index {
    /// Reads every tool of the catalogue once.
    pub fn build(catalogue: &Catalogue) -> Index {
        let mut index = Index::default();
        for (server, tool) in
            catalogue.servers().iter().flat_map(|server| server.tools.iter().map(move |tool| (server, tool)))
        {
            let weighted = |(weight, text): (f32, String)| stems(&text).into_iter().map(move |word| (weight, word));
            index.postings.add(fields(server, tool).into_iter().flat_map(weighted));
            let n_required = tool.signature.params.iter().filter(|param| param.required).count();
            index.factors.push(1.0 - REQUIRED_DISCOUNT * n_required.min(MAX_DISCOUNTED) as f32);
            index.tools.push(tool.id.clone());
        }
        index
    }

    /// Adds the anchor's half, for the catalogue that the index was built from; `cache` is a file that remembers embeddings.
    ///
    /// # Errors
    /// Those of the anchor's tokenizer.
    pub fn anchor(&mut self, catalogue: &Catalogue, anchor: Anchor, cache: Option<&Path>) -> Result<()> {
        let texts: Vec<Vec<String>> = catalogue
            .servers()
            .iter()
            .flat_map(|server| server.tools.iter().map(move |tool| anchored_texts(server, tool)))
            .collect();
        let embeddings = Embeddings::of(&texts, &anchor, cache)?;
        self.anchored = Some((anchor, embeddings));
        Ok(())
    }

    /// The `k` best tools, best first; equals in the order of the catalogue.
    pub fn search(&self, query: &str, k: usize) -> Vec<Candidate> {
        let scores = self.scores(query).unwrap_or_else(|error| {
            tracing::warn!("the anchor is left out: {error}");
            self.by_words(query)
        });
        best(scores, k).map(|(idx, score)| Candidate { tool: self.tools[idx].clone(), score }).collect()
    }

    fn scores(&self, query: &str) -> Result<Vec<f32>> {
        let mut scores = self.by_words(query);
        if let Some((anchor, _)) = &self.anchored {
            let weight = 2.0 * anchor.sharpness();
            scores.iter_mut().zip(self.cosines(query)?).for_each(|(score, cosine)| *score += weight * cosine.max(0.0));
        }
        Ok(scores)
    }

    fn by_words(&self, query: &str) -> Vec<f32> {
        let scores = self.postings.scores(asked(query));
        scores.into_iter().zip(&self.factors).map(|(score, factor)| score * factor).collect()
    }

    fn cosines(&self, query: &str) -> Result<Vec<f32>> {
        match &self.anchored {
            Some((anchor, embeddings)) => Ok(embeddings.cosines(&anchor.embed([query], &mut KnownWords::new())?)),
            None => Ok(Vec::new()),
        }
    }
}

/// An index that ranks in every way there is, to compare them.
#[derive(Clone, Debug)]
pub struct Comparison {
    index: Index,
    plain: Postings,
}

impl Comparison {
    /// Compares rankings of this catalogue by this index of it.
    pub fn new(catalogue: &Catalogue, index: Index) -> Comparison {
        let mut plain = Postings::default();
        for (server, tool) in
            catalogue.servers().iter().flat_map(|server| server.tools.iter().map(move |tool| (server, tool)))
        {
            plain.add(fields(server, tool).into_iter().flat_map(|(_, text)| words(&text)).map(|word| (1.0, word)));
        }
        Comparison { index, plain }
    }

    /// The `k` best tools of a ranking.
    ///
    /// # Errors
    /// Those of the anchor's tokenizer.
    pub fn search(&self, ranking: Ranking, query: &str, k: usize) -> Result<Vec<&ToolId>> {
        let scores = match ranking {
            Ranking::Plain => self.plain.scores(words(query)),
            Ranking::Words => self.index.by_words(query),
            Ranking::Anchor => self.index.cosines(query)?,
            Ranking::Hybrid => self.index.scores(query)?,
        };
        Ok(best(scores, k).filter_map(|(idx, _)| self.index.tools.get(idx)).collect())
    }
}

fn best(scores: Vec<f32>, k: usize) -> impl Iterator<Item = (usize, f32)> {
    let mut ranked: Vec<(usize, f32)> = scores.into_iter().enumerate().filter(|(_, score)| *score > 0.0).collect();
    let order =
        |a: &(usize, f32), b: &(usize, f32)| b.1.partial_cmp(&a.1).unwrap_or(Ordering::Equal).then(a.0.cmp(&b.0));
    if k < ranked.len() {
        ranked.select_nth_unstable_by(k, order);
        ranked.truncate(k);
    }
    ranked.sort_unstable_by(order);
    ranked.into_iter()
}

/// The texts of a tool, with what their words count for. Names are those on the wire, where `camelCase` is not lost yet.
fn fields(server: &Server, tool: &ToolEntry) -> Vec<(f32, String)> {
    let tasks = tool.examples.iter().filter(|example| !example.generated);
    let tasks = tasks.map(|example| (TASK_WEIGHT, example.task.clone()));
    let names = tool.parameter_names().into_iter().map(|name| (PARAMETER_WEIGHT, name.to_owned()));
    let said = tool.parameter_descriptions().into_iter();
    let said = said.map(|text| (PARAMETER_DESCRIPTION_WEIGHT, without_quoted(text)));
    let name = format!("{} {}", server.wire_name, tool.wire_name);
    let fields = [(NAME_WEIGHT, name), (DESCRIPTION_WEIGHT, tool.description.clone())];
    fields.into_iter().chain(tasks).chain(names).chain(said).collect()
}

/// What of a tool is embedded: all but what is said of its parameters.
fn anchored_texts(server: &Server, tool: &ToolEntry) -> Vec<String> {
    let weighty = fields(server, tool).into_iter().filter(|(weight, _)| *weight > PARAMETER_DESCRIPTION_WEIGHT);
    weighty.map(|(_, text)| text).collect()
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
                (tool.id(), fields.map(|(weight, text)| (weight, stems(&text))).to_vec())
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
            for word in stems(query).into_iter().collect::<BTreeSet<_>>() {
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
    }

    #[test]
    fn an_empty_catalogue_finds_nothing() {
        assert_eq!(Index::build(&Catalogue::default()).search("anything", 5), []);
        assert_eq!(Index::build(&catalogue(&[("a".into(), "b".into(), vec![])])).search("", 5), []);
    }

    #[test]
    fn a_bundle_with_another_embedding_layer_has_no_anchor() {
        let bundle = mote_model::Bundle::open(&anchor::tests::tiny_bundle()).unwrap();
        assert!(Anchor::of(&bundle).unwrap().is_none());
    }

    #[test]
    fn meaning_counts_beside_words_and_is_remembered() {
        let catalogue = catalogue(&[("alpha".into(), "beta".into(), vec![]), ("gamma".into(), "delta".into(), vec![])]);
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache").join("embeddings.bin");
        let search = |seed: u32| {
            let mut index = Index::build(&catalogue);
            index.anchor(&catalogue, anchor::tests::made_up(seed), Some(&cache)).unwrap();
            let comparison = Comparison::new(&catalogue, index.clone());
            let by_anchor = comparison.search(Ranking::Anchor, "gamma", 9).unwrap().len();
            assert_eq!(comparison.search(Ranking::Words, "gamma", 9).unwrap().len(), 1);
            assert!(by_anchor > 0);
            index.search("gamma", 9)
        };
        let first = search(1);
        assert_eq!(first[0].tool.to_string(), "srv.gamma_1");
        assert!(first[0].score > Index::build(&catalogue).search("gamma", 1)[0].score);
        let kept = std::fs::read(&cache).unwrap();
        assert_eq!((search(1), std::fs::read(&cache).unwrap()), (first.clone(), kept.clone()));
        for damaged in [&kept[..kept.len() - 1], b"", &[0xff; 300]] {
            std::fs::write(&cache, damaged).unwrap();
            assert_eq!(search(1), first);
            assert_eq!(std::fs::read(&cache).unwrap().len(), kept.len());
        }
        search(2);
        assert_ne!(std::fs::read(&cache).unwrap()[8..40], kept[8..40], "of another anchor nothing is taken over");
        assert_eq!(search(1), first);
    }
}
