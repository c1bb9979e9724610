//! BM25 over weighted words (BM25F: Robertson, Zaragoza and Taylor, "Simple BM25 extension to multiple weighted fields", CIKM 2004):
//! the counts of a word in the fields of a tool are weighted and added up before they are saturated, so that a word in the name and in
//! three examples is one word seen often. A query looks at nothing but the postings of its own words, in the segment of each server;
//! how rare a word is, and how long a tool's text is, count over all of them.

use std::collections::BTreeMap;

use crate::tools::catalogue::Segment;

/// How fast repetition of a word stops to count; the usual value.
const K1: f32 = 1.2;

/// How much a long description is held against a tool; the usual value.
const B: f32 = 0.75;

/// What it counts for that a worked example puts its task in all words of the query.
const PATTERN_WEIGHT: f32 = 24.0;

/// Adds how much each tool's worked tasks are put in the words of the query: the share of pairs of words that both have. What a
/// segment keeps is what a pair counts for in the one task that has it most, times `steps`. The share counts squared: one pair that
/// many questions have, such as `what is`, says next to nothing, and a whole question everything.
pub(super) fn add_patterns(scores: &mut [f32], segments: &[&Segment], pairs: &[String], steps: f32) {
    let per_step = 1.0 / steps / (pairs.len() as f32).sqrt().max(1.0);
    let mut rest = scores;
    for segment in segments {
        let (own, others) = rest.split_at_mut(segment.n_tools().min(rest.len()));
        rest = others;
        if !segment.has_pairs() {
            continue;
        }
        let mut shares: BTreeMap<usize, f32> = BTreeMap::new();
        for (tool_idx, share) in pairs.iter().flat_map(|pair| segment.postings(pair)) {
            *shares.entry(tool_idx).or_default() += per_step * share;
        }
        for (tool_idx, share) in shares {
            if let Some(score) = own.get_mut(tool_idx) {
                *score += PATTERN_WEIGHT * share * share;
            }
        }
    }
}

/// A score for every tool of all segments in order, zero for one that shares no word with the query.
pub(super) fn scores(segments: &[&Segment], mut query: Vec<String>) -> Vec<f32> {
    query.sort_unstable();
    query.dedup();
    let n_all: usize = segments.iter().map(|segment| segment.n_tools()).sum();
    let n_tools = n_all as f32;
    let mean_length = segments.iter().map(|segment| segment.total_length()).sum::<f32>() / n_tools.max(1.0);
    let mut scores = vec![0.0; n_all];
    for word in query {
        let postings: Vec<_> = segments.iter().map(|segment| segment.postings(&word)).collect();
        let n_with = postings.iter().map(ExactSizeIterator::len).sum::<usize>() as f32;
        let idf = (1.0 + (n_tools - n_with + 0.5) / (n_with + 0.5)).ln();
        let mut rest = scores.as_mut_slice();
        for (segment, postings) in segments.iter().zip(postings) {
            let (own, others) = rest.split_at_mut(segment.n_tools());
            rest = others;
            for (tool_idx, weight) in postings {
                let (length, factor) = segment.length_and_factor(tool_idx);
                let norm = K1 * (1.0 - B + B * length / mean_length);
                if let Some(score) = own.get_mut(tool_idx) {
                    *score += factor * idf * weight * (K1 + 1.0) / (weight + norm);
                }
            }
        }
    }
    scores
}
