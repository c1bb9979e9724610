//! The shortlist: which tools the prompt shows, and how much of each.
//!
//! Small models copy the nearest pattern, so the best tool stands last, next to the task, and gets the most examples.
//! What does not fit the cap is left out whole and counted, never cut in the middle.

use super::style::Style;
use crate::tools::ToolEntry;

/// The caps of the shortlist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortlistCaps {
    /// Tools shown.
    pub tools: usize,
    /// Examples of the best tool; the others show one.
    pub examples: usize,
    /// Tokens of the whole fragment; bytes / 4 where no tokenizer is at hand.
    pub tokens: usize,
}

impl Default for ShortlistCaps {
    fn default() -> Self {
        ShortlistCaps { tools: 3, examples: 3, tokens: 420 }
    }
}

/// The text of the shortlist and what it left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shortlist {
    /// What the prompt shows.
    pub text: String,
    /// Examples and signatures that did not fit.
    pub dropped: usize,
}

impl Shortlist {
    /// Writes down `ranked`, best first, within `caps`; `count` gives the tokens of a text.
    pub fn write(ranked: &[&ToolEntry], style: Style, caps: ShortlistCaps, count: &dyn Fn(&str) -> usize) -> Shortlist {
        let mut left = caps.tokens;
        let mut dropped = 0;
        let mut take = |text: String| {
            let cost = count(&text);
            if cost <= left {
                left -= cost;
                Some(text)
            } else {
                dropped += 1;
                None
            }
        };
        let mut blocks = Vec::new();
        for (rank, tool) in ranked.iter().take(caps.tools).enumerate() {
            let signature = if style.reads_rules() {
                take(format!("{}  # {}\n", tool.signature.line(), one_line(&tool.description)))
            } else {
                None
            };
            let n_examples = if rank == 0 { caps.examples } else { 1 };
            let mut examples: Vec<String> = tool
                .examples
                .iter()
                .take(n_examples)
                .filter_map(|example| take(style.example(&example.task, &example.program)))
                .collect();
            examples.reverse();
            blocks.push((signature, examples));
        }
        if !style.reads_rules() {
            dropped = ranked.iter().take(caps.tools).map(|tool| tool.examples.len()).sum::<usize>()
                - blocks.iter().map(|(_, examples)| examples.len()).sum::<usize>();
        }
        blocks.reverse();
        let signatures: String = blocks.iter().filter_map(|(signature, _)| signature.as_deref()).collect();
        let examples: String = blocks.iter().flat_map(|(_, examples)| examples.iter().map(String::as_str)).collect();
        let text = match (signatures.is_empty(), examples.is_empty()) {
            (true, _) => examples,
            (false, true) => format!("Tools:\n{signatures}"),
            (false, false) => format!("Tools:\n{signatures}\nExamples:\n{}\n", examples.trim_end()),
        };
        Shortlist { text, dropped }
    }
}

fn one_line(text: &str) -> String {
    const MAX_CHARS: usize = 120;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}..", &line[..end]),
        None => line,
    }
}
