//! One server's tools as bytes: what a search looks at in front, what a tool is behind it.
//!
//! A segment is made once for a server and never changed; it is the same in memory and in the catalogue's file, of which it is a part.
//! The front part (names, words with their postings, embeddings) is read in place and covered by one CRC, that of
//! the file's table; each record behind it has its own, since records are read one at a time and few of them. Whatever the bytes
//! say, a read gives something or nothing: offsets are checked where they are used. The layout is in docs/catalogue.md.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use memmap2::Mmap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::entry::{Example, ToolDescription, ToolEntry, sha256};

const HEADER_BYTES: usize = 64;
const ROW_BYTES: usize = 36;
const WORD_BYTES: usize = 12;
const POSTING_BYTES: usize = 4;

/// Parts of a word's weight that are told apart.
const WEIGHT_STEPS: f32 = 10.0;

/// What a search knows of one tool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    /// Its words, each with what it counts for, in tenths.
    pub(crate) words: Vec<(f32, String)>,
    /// Pairs of words of tasks that it was made for, each with what it counts for, in tenths; they have no part in a text's length.
    pub(crate) pairs: Vec<(f32, String)>,
    /// What its score by words is multiplied with.
    pub(crate) factor: f32,
    /// Its embedding and that one's scale; of no length without an anchor.
    pub(crate) embedding: (f32, Vec<i8>),
}

/// The tools of one server, to be searched and to be read.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    store: Store,
    layout: Layout,
}

#[derive(Clone, Debug)]
enum Store {
    Made(Arc<[u8]>),
    Mapped(Arc<Mmap>, Range<usize>),
}

/// Where the parts begin.
#[derive(Clone, Copy, Debug)]
struct Layout {
    n_tools: usize,
    n_words: usize,
    n_postings: usize,
    dim: usize,
    words: usize,
    postings: usize,
    embeddings: usize,
    heap: usize,
    cold: usize,
}

#[derive(Serialize, Deserialize)]
struct Record<'a> {
    wire_name: &'a str,
    description: &'a str,
    parameters: &'a str,
    schema_sha256: &'a str,
    #[serde(borrow)]
    examples: Vec<(&'a str, &'a str)>,
    result: Option<&'a str>,
}

impl Default for Segment {
    fn default() -> Segment {
        Segment::encode(&[], &[])
    }
}

impl Segment {
    /// The tools of one server with their documents, one a tool.
    pub(crate) fn encode(tools: &[ToolEntry], documents: &[Document]) -> Segment {
        let dim = documents.first().map_or(0, |document| document.embedding.1.len());
        let (mut heap, mut cold) = (Vec::<u8>::new(), Vec::<u8>::new());
        let mut rows = Vec::new();
        let mut postings: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        let mut total_length = 0.0_f32;
        for (idx, (tool, document)) in tools.iter().zip(documents).enumerate() {
            let mut weights: HashMap<&str, f32> = HashMap::new();
            let mut length = 0.0_f32;
            for (weight, word) in &document.words {
                *weights.entry(word).or_default() += weight;
                length += weight;
            }
            total_length += length;
            weights.extend(document.pairs.iter().map(|(weight, pair)| (pair.as_str(), *weight)));
            for (word, weight) in weights {
                let steps = (weight * WEIGHT_STEPS).round().clamp(0.0, f32::from(u16::MAX)) as u16;
                let bytes = [(idx as u16).to_le_bytes(), steps.to_le_bytes()].concat();
                postings.entry(word).or_default().extend(bytes);
            }
            let record = record(tool);
            for number in [heap.len(), tool.id.tool.len(), cold.len(), record.len()] {
                rows.extend(u32_of(number).to_le_bytes());
            }
            rows.extend(crc32fast::hash(&record).to_le_bytes());
            for number in [length, document.factor, document.embedding.0] {
                rows.extend(number.to_le_bytes());
            }
            rows.extend(u32::from(tool.writes).to_le_bytes());
            heap.extend(tool.id.tool.as_bytes());
            cold.extend(record);
        }
        let n_postings: usize = postings.values().map(|bytes| bytes.len() / POSTING_BYTES).sum();
        let mut words = Vec::new();
        let mut before = 0;
        for (word, bytes) in &postings {
            for number in [heap.len(), word.len(), before] {
                words.extend(u32_of(number).to_le_bytes());
            }
            heap.extend(word.as_bytes());
            before += bytes.len() / POSTING_BYTES;
        }
        let mut bytes = Vec::new();
        for number in [tools.len(), postings.len(), n_postings, dim, heap.len(), cold.len()] {
            bytes.extend(u32_of(number).to_le_bytes());
        }
        bytes.extend(total_length.to_le_bytes());
        bytes.extend(u32::from(documents.iter().any(|document| !document.pairs.is_empty())).to_le_bytes());
        bytes.extend(offered(tools));
        bytes.extend(rows);
        bytes.extend(words);
        postings.values().for_each(|posting| bytes.extend(posting));
        documents.iter().for_each(|document| bytes.extend(document.embedding.1.iter().map(|&value| value as u8)));
        bytes.extend(heap);
        bytes.extend(cold);
        let layout = Layout::read(&bytes).unwrap_or(Layout::EMPTY);
        Segment { store: Store::Made(bytes.into()), layout }
    }

    /// A segment that lies in a mapped file; none if its parts do not add up to `range`.
    pub(super) fn mapped(map: &Arc<Mmap>, range: Range<usize>) -> Option<Segment> {
        let layout = Layout::read(map.get(range.clone())?)?;
        Some(Segment { store: Store::Mapped(map.clone(), range), layout })
    }

    #[cfg(test)]
    pub(super) fn made(bytes: Vec<u8>) -> Option<Segment> {
        let layout = Layout::read(&bytes)?;
        Some(Segment { store: Store::Made(bytes.into()), layout })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match &self.store {
            Store::Made(bytes) => bytes,
            Store::Mapped(map, range) => map.get(range.clone()).unwrap_or_default(),
        }
    }

    /// What is looked at by a search; the rest are records.
    pub(super) fn front(&self) -> &[u8] {
        self.bytes().get(..self.layout.cold).unwrap_or_default()
    }

    pub(crate) fn n_tools(&self) -> usize {
        self.layout.n_tools
    }

    /// Values of an embedding; none are there without an anchor.
    pub(crate) fn dim(&self) -> usize {
        self.layout.dim
    }

    /// The hash of names, schemas and rights: equal ones offer equal tools.
    pub(crate) fn offer(&self) -> &[u8] {
        self.bytes().get(32..HEADER_BYTES).unwrap_or_default()
    }

    /// The name of a tool in the action language.
    pub(crate) fn name(&self, tool_idx: usize) -> &str {
        let row = self.row(tool_idx);
        self.text(u32_in(row, 0), u32_in(row, 4))
    }

    /// The place of the tool of this name.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        (0..self.n_tools()).find(|idx| self.name(*idx) == name)
    }

    /// Whether a tool may change something.
    pub(crate) fn writes(&self, tool_idx: usize) -> bool {
        u32_in(self.row(tool_idx), 32) != 0
    }

    /// The length of a tool's words, and what its score by words is multiplied with.
    pub(crate) fn length_and_factor(&self, tool_idx: usize) -> (f32, f32) {
        let row = self.row(tool_idx);
        (finite(u32_in(row, 20)), finite(u32_in(row, 24)))
    }

    /// The length of all words of all tools.
    pub(crate) fn total_length(&self) -> f32 {
        finite(u32_in(self.bytes(), 24))
    }

    /// Whether a tool has pairs of words.
    pub(crate) fn has_pairs(&self) -> bool {
        u32_in(self.bytes(), 28) != 0
    }

    /// The tools that have a word, with its weight in each.
    pub(crate) fn postings(&self, word: &str) -> impl ExactSizeIterator<Item = (usize, f32)> + use<'_> {
        let n_postings = self.layout.n_postings;
        let range = self.word(word).map_or(0..0, |at| {
            let first = self.word_row(at).map_or(n_postings, |row| u32_in(row, 8));
            let next = self.word_row(at + 1).map_or(n_postings, |row| u32_in(row, 8));
            first..next.clamp(first, n_postings.max(first))
        });
        let all = self.bytes().get(self.layout.postings..self.layout.embeddings).unwrap_or_default();
        let bytes = all.get(range.start * POSTING_BYTES..range.end * POSTING_BYTES).unwrap_or_default();
        let pair = |bytes: &[u8]| match *bytes {
            [a, b, c, d] => {
                (usize::from(u16::from_le_bytes([a, b])), f32::from(u16::from_le_bytes([c, d])) / WEIGHT_STEPS)
            }
            _ => (0, 0.0),
        };
        bytes.chunks_exact(POSTING_BYTES).map(pair)
    }

    /// The cosine between a query's embedding and that of each tool; nothing if they have another number of values.
    pub(crate) fn cosines<'a>(&'a self, query: &'a [i8], query_scale: f32) -> impl Iterator<Item = f32> + 'a {
        let Layout { dim, embeddings, heap, .. } = self.layout;
        let fits = dim == query.len() && dim > 0;
        let all = if fits { self.bytes().get(embeddings..heap).unwrap_or_default() } else { &[] };
        let dot = move |values: &[u8]| -> i32 {
            values.iter().zip(query).map(|(&a, &b)| i32::from(i16::from(a as i8) * i16::from(b))).sum()
        };
        let scale = |idx: usize| finite(u32_in(self.row(idx), 28));
        all.chunks_exact(dim.max(1)).enumerate().map(move |(idx, values)| dot(values) as f32 * scale(idx) * query_scale)
    }

    /// A tool, read from its record; nothing if that is damaged.
    pub(crate) fn entry(&self, server: &str, tool_idx: usize) -> Option<ToolEntry> {
        let row = self.row(tool_idx);
        let [at, len, crc] = [8, 12, 16].map(|at| u32_in(row, at));
        let start = self.layout.cold.checked_add(at)?;
        let bytes = self.bytes().get(start..start.checked_add(len)?)?;
        if crc32fast::hash(bytes) as usize != crc {
            return None;
        }
        let record: Record<'_> = postcard::from_bytes(bytes).ok()?;
        let said = ToolDescription {
            name: record.wire_name.to_owned(),
            description: record.description.to_owned(),
            parameters: serde_json::from_str(record.parameters).ok()?,
            read_only_hint: false,
        };
        let mut entry = ToolEntry::known(server, said, Some(self.name(tool_idx)), self.writes(tool_idx)).ok()?;
        if !record.examples.is_empty() {
            let written = |(task, program): &(&str, &str)| Example {
                task: (*task).to_owned(),
                program: (*program).to_owned(),
                generated: false,
            };
            entry.examples = record.examples.iter().map(written).collect();
        }
        entry.result_example = record.result.map(serde_json::from_str).transpose().ok()?;
        entry.schema_sha256 = record.schema_sha256.to_owned();
        Some(entry)
    }

    fn row(&self, tool_idx: usize) -> &[u8] {
        if tool_idx >= self.layout.n_tools {
            return &[];
        }
        self.bytes()
            .get(HEADER_BYTES + tool_idx * ROW_BYTES..)
            .and_then(|rest| rest.get(..ROW_BYTES))
            .unwrap_or_default()
    }

    fn word_row(&self, word_idx: usize) -> Option<&[u8]> {
        let words = self.bytes().get(self.layout.words..self.layout.postings)?;
        words.get(word_idx.checked_mul(WORD_BYTES)?..)?.get(..WORD_BYTES)
    }

    fn word(&self, word: &str) -> Option<usize> {
        let (mut low, mut high) = (0, self.layout.n_words);
        while low < high {
            let middle = low + (high - low) / 2;
            let row = self.word_row(middle)?;
            match self.text(u32_in(row, 0), u32_in(row, 4)).cmp(word) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn text(&self, at: usize, len: usize) -> &str {
        let heap = self.bytes().get(self.layout.heap..self.layout.cold).unwrap_or_default();
        let text = at.checked_add(len).and_then(|end| heap.get(at..end)).unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }
}

impl Layout {
    const EMPTY: Layout = Layout {
        n_tools: 0,
        n_words: 0,
        n_postings: 0,
        dim: 0,
        words: HEADER_BYTES,
        postings: HEADER_BYTES,
        embeddings: HEADER_BYTES,
        heap: HEADER_BYTES,
        cold: HEADER_BYTES,
    };

    fn read(bytes: &[u8]) -> Option<Layout> {
        let header = bytes.get(..HEADER_BYTES)?;
        let [n_tools, n_words, n_postings, dim, heap_len, cold_len] =
            [0, 4, 8, 12, 16, 20].map(|at| u32_in(header, at));
        let after = |start: usize, n: usize, size: usize| start.checked_add(n.checked_mul(size)?);
        let words = after(HEADER_BYTES, n_tools, ROW_BYTES)?;
        let postings = after(words, n_words, WORD_BYTES)?;
        let embeddings = after(postings, n_postings, POSTING_BYTES)?;
        let heap = after(embeddings, n_tools.checked_mul(dim)?, 1)?;
        let cold = heap.checked_add(heap_len)?;
        let fits = cold.checked_add(cold_len)? == bytes.len();
        fits.then_some(Layout { n_tools, n_words, n_postings, dim, words, postings, embeddings, heap, cold })
    }
}

fn record(tool: &ToolEntry) -> Vec<u8> {
    let (parameters, result) = (tool.parameters.to_string(), tool.result_example.as_ref().map(Value::to_string));
    let written = tool.examples.iter().filter(|example| !example.generated);
    let record = Record {
        wire_name: &tool.wire_name,
        description: &tool.description,
        parameters: &parameters,
        schema_sha256: &tool.schema_sha256,
        examples: written.map(|example| (example.task.as_str(), example.program.as_str())).collect(),
        result: result.as_deref(),
    };
    postcard::to_stdvec(&record).unwrap_or_default()
}

fn offered(tools: &[ToolEntry]) -> [u8; 32] {
    let said: Vec<String> =
        tools.iter().map(|tool| format!("{} {} {}", tool.id, tool.schema_sha256, tool.writes)).collect();
    sha256(said.iter().map(String::as_bytes))
}

/// Lengths within a segment, which [`super::MAX_TOOLS`] and the bounds of an entry keep far below this.
fn u32_of(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn u32_in(bytes: &[u8], at: usize) -> usize {
    let four = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>());
    four.map_or(0, |four| u32::from_le_bytes(*four) as usize)
}

fn finite(bits: usize) -> f32 {
    let number = f32::from_bits(bits as u32);
    if number.is_finite() { number } else { 0.0 }
}
