//! Retrieval before the turn: which tools fit a task.
//!
//! A hybrid: BM25 over the stems of a tool's fields, and, where a bundle is there, the anchor in the model's own embedding layer. A
//! score is `BM25 + share * ln p(t)` up to a constant, so that a long task full of rare words is decided by its words and a short one
//! by its meaning. docs/retrieval.md has the formula, how it was measured, and what it reaches.
//! It does not decide how many tools a prompt holds, nor does it translate.

mod anchor;
mod lexical;
mod words;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use self::anchor::KnownWords;
use self::words::{asked, pairs, stems, without_quoted, words};
use super::catalogue::{Catalogue, Document, Segment, Server, ToolEntry, ToolId};
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

/// What a pair of words is multiplied with where it is kept: a share is below one, and tenths of it are too coarse.
const PAIR_STEPS: f32 = 10.0;

/// Tools of the catalogue on which the anchor's share was chosen.
const N_TOOLS_OF_SHARE: usize = 199;

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
#[derive(Clone, Debug)]
pub struct Index<'a> {
    servers: &'a [Server],
    segments: Vec<&'a Segment>,
    anchor: Option<&'a Anchor>,
}

impl<'a> Index<'a> {
    /// Searches `catalogue`, by meaning too where its servers were embedded by `anchor`.
    pub fn new(catalogue: &'a Catalogue, anchor: Option<&'a Anchor>) -> Index<'a> {
        let servers = catalogue.servers();
        Index { servers, segments: servers.iter().map(Server::segment).collect(), anchor }
    }

    /// The `k` best tools, best first; equals in the order of the catalogue.
    pub fn search(&self, query: &str, k: usize) -> Vec<Candidate> {
        let scores = self.scores(query).unwrap_or_else(|error| {
            tracing::warn!("the anchor is left out: {error}");
            self.by_words(query)
        });
        best(scores, k).filter_map(|(idx, score)| Some(Candidate { tool: self.tool(idx)?, score })).collect()
    }

    /// The `k` servers whose best tools fit best, best first.
    pub fn search_servers(&self, query: &str, k: usize) -> Vec<&'a Server> {
        let scores = self.scores(query).unwrap_or_else(|_| self.by_words(query));
        let mut rest = scores.as_slice();
        let mut of_servers = Vec::new();
        for segment in &self.segments {
            let (own, others) = rest.split_at(segment.n_tools().min(rest.len()));
            rest = others;
            of_servers.push(own.iter().fold(0.0_f32, |best, score| best.max(*score)));
        }
        best(of_servers, k).filter_map(|(idx, _)| self.servers.get(idx)).collect()
    }

    fn scores(&self, query: &str) -> Result<Vec<f32>> {
        let mut scores = self.by_words(query);
        if let Some(anchor) = self.anchor {
            let n_tools = self.segments.iter().map(|segment| segment.n_tools()).sum();
            let weight = 2.0 * anchor.sharpness() * growth(n_tools);
            scores.iter_mut().zip(self.cosines(query)?).for_each(|(score, cosine)| *score += weight * cosine.max(0.0));
        }
        Ok(scores)
    }

    fn by_words(&self, query: &str) -> Vec<f32> {
        let mut scores = lexical::scores(&self.segments, asked(query));
        lexical::add_patterns(&mut scores, &self.segments, &pairs(query), PAIR_STEPS);
        scores
    }

    /// The cosine of each tool; zero for one without an embedding.
    fn cosines(&self, query: &str) -> Result<Vec<f32>> {
        let Some(anchor) = self.anchor else { return Ok(Vec::new()) };
        let query = anchor.embed([query], &mut KnownWords::new())?;
        let mut cosines = Vec::new();
        for (server, segment) in self.servers.iter().zip(&self.segments) {
            let n_before = cosines.len();
            if server.anchor == Some(*anchor.sha256()) {
                cosines.extend(segment.cosines(&query.values, query.scale));
            }
            cosines.resize(n_before + segment.n_tools(), 0.0);
        }
        Ok(cosines)
    }

    fn tool(&self, mut idx: usize) -> Option<ToolId> {
        for (server, segment) in self.servers.iter().zip(&self.segments) {
            if idx < segment.n_tools() {
                return Some(ToolId::new(&server.name, segment.name(idx)));
            }
            idx -= segment.n_tools();
        }
        None
    }
}

/// An index that ranks in every way there is, to compare them.
#[derive(Clone, Debug)]
pub struct Comparison<'a> {
    index: Index<'a>,
    plain: Vec<Segment>,
}

impl<'a> Comparison<'a> {
    /// Compares rankings by this index.
    pub fn new(index: Index<'a>) -> Comparison<'a> {
        let plain = index.servers.iter().map(|server| {
            let tools: Vec<ToolEntry> = server.tools().collect();
            let document = |tool: &ToolEntry| {
                let all = fields(&server.wire_name, tool).into_iter().flat_map(|(_, text)| words(&text));
                Document { words: all.map(|word| (1.0, word)).collect(), factor: 1.0, ..Document::default() }
            };
            Segment::encode(&tools, &tools.iter().map(document).collect::<Vec<_>>())
        });
        Comparison { plain: plain.collect(), index }
    }

    /// The `k` best tools of a ranking.
    ///
    /// # Errors
    /// Those of the anchor's tokenizer.
    pub fn search(&self, ranking: Ranking, query: &str, k: usize) -> Result<Vec<ToolId>> {
        let scores = match ranking {
            Ranking::Plain => lexical::scores(&self.plain.iter().collect::<Vec<_>>(), words(query)),
            Ranking::Words => self.index.by_words(query),
            Ranking::Anchor => self.index.cosines(query)?,
            Ranking::Hybrid => self.index.scores(query)?,
        };
        Ok(best(scores, k).filter_map(|(idx, _)| self.index.tool(idx)).collect())
    }
}

/// What the anchor counts for more in a large catalogue: idf grows with ln n, a cosine does not, and half of that growth (as a power)
/// lies between what short tasks and long ones want.
fn growth(n_tools: usize) -> f32 {
    let (n_tools, n_of_share) = (n_tools.max(N_TOOLS_OF_SHARE) as f32, N_TOOLS_OF_SHARE as f32);
    (n_tools.ln() / n_of_share.ln()).sqrt()
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

/// What a search knows of the tools of one server, by words and by `anchor` if there is one.
pub(super) fn documents(server: &str, tools: &[ToolEntry], anchor: Option<&Anchor>) -> Vec<Document> {
    let mut known = KnownWords::new();
    let document = |tool: &ToolEntry| {
        let fields = fields(server, tool);
        let n_required = tool.signature.params.iter().filter(|param| param.required).count();
        let weighted = |(weight, text): &(f32, String)| {
            let weight = *weight;
            stems(text).into_iter().map(move |word| (weight, word))
        };
        let embedded = anchor.map(|anchor| {
            let weighty = fields.iter().filter(|(weight, _)| *weight > PARAMETER_DESCRIPTION_WEIGHT);
            anchor.embed(weighty.map(|(_, text)| text.as_str()), &mut known)
        });
        Ok(Document {
            words: fields.iter().flat_map(weighted).collect(),
            pairs: patterns(tool),
            factor: 1.0 - REQUIRED_DISCOUNT * n_required.min(MAX_DISCOUNTED) as f32,
            embedding: embedded.transpose()?.map(|it| (it.scale, it.values)).unwrap_or_default(),
        })
    };
    let documented: Result<Vec<Document>> = tools.iter().map(document).collect();
    match (documented, anchor) {
        (Ok(documents), _) => documents,
        (Err(error), Some(_)) => {
            tracing::warn!("tools of {server} are found by words alone: {error}");
            documents(server, tools, None)
        }
        (Err(_), None) => Vec::new(),
    }
}

/// The pairs of words of a tool's worked tasks, each with what it counts for in the task that has it most.
fn patterns(tool: &ToolEntry) -> Vec<(f32, String)> {
    let mut shares: BTreeMap<String, f32> = BTreeMap::new();
    for example in tool.examples.iter().filter(|example| !example.generated) {
        let pairs = pairs(&example.task);
        let share = 1.0 / (pairs.len() as f32).sqrt().max(1.0);
        for pair in pairs {
            let most = shares.entry(pair).or_default();
            *most = most.max(share);
        }
    }
    shares.into_iter().map(|(pair, share)| (PAIR_STEPS * share, pair)).collect()
}

/// The texts of a tool, with what their words count for. Names are those on the wire, where `camelCase` is not lost yet.
fn fields(server: &str, tool: &ToolEntry) -> Vec<(f32, String)> {
    let tasks = tool.examples.iter().filter(|example| !example.generated);
    let tasks = tasks.map(|example| (TASK_WEIGHT, example.task.clone()));
    let names = tool.parameter_names().into_iter().map(|name| (PARAMETER_WEIGHT, name.to_owned()));
    let said = tool.parameter_descriptions().into_iter();
    let said = said.map(|text| (PARAMETER_DESCRIPTION_WEIGHT, without_quoted(text)));
    let name = format!("{server} {}", tool.wire_name);
    let fields = [(NAME_WEIGHT, name), (DESCRIPTION_WEIGHT, tool.description.clone())];
    fields.into_iter().chain(tasks).chain(names).chain(said).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::tools::catalogue::{Said, Server, ServerKind, ToolDescription};
    use crate::tools::learn::Results;

    type Tool = (String, String, Vec<String>);

    fn catalogue(tools: &[Tool], anchor: Option<&Anchor>) -> Catalogue {
        let mut server = Server::new("srv", "srv", ServerKind::Mcp { command: String::new() });
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
        assert_eq!(
            server.describe(Said { summary: "", tools: said.collect(), learned: &Results::default() }, anchor, &|_| {
                false
            }),
            Vec::<String>::new()
        );
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
            let catalogue = catalogue(&tools, None);
            let found = Index::new(&catalogue, None).search(&query, usize::MAX);
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
        assert_eq!(Index::new(&Catalogue::default(), None).search("anything", 5), []);
        let one = catalogue(&[("a".into(), "b".into(), vec![])], None);
        assert_eq!(Index::new(&one, None).search("", 5), []);
    }

    #[test]
    fn a_bundle_with_another_embedding_layer_has_no_anchor() {
        let bundle = mote_model::Bundle::open(&anchor::tests::tiny_bundle()).unwrap();
        assert!(Anchor::of(&bundle).unwrap().is_none());
    }

    #[test]
    fn meaning_counts_beside_words_where_it_is_of_the_same_anchor() {
        let tools = [("alpha".into(), "beta".into(), vec![]), ("gamma".into(), "delta".into(), vec![])];
        let [one, other] = [1, 2].map(anchor::tests::made_up);
        let catalogue = catalogue(&tools, Some(&one));
        let both = Index::new(&catalogue, Some(&one));
        let by_words = Index::new(&catalogue, None).search("gamma", 9);
        let comparison = Comparison::new(both.clone());
        assert!(!comparison.search(Ranking::Anchor, "gamma", 9).unwrap().is_empty());
        assert_eq!(comparison.search(Ranking::Words, "gamma", 9).unwrap().len(), 1);
        let found = both.search("gamma", 9);
        assert_eq!(found[0].tool.to_string(), "srv.gamma_1");
        assert!(found[0].score > by_words[0].score);
        assert_eq!(Index::new(&catalogue, Some(&other)).search("gamma", 9), by_words);
        assert_eq!(both.search_servers("gamma", 3)[0].name, "srv");
    }
}
