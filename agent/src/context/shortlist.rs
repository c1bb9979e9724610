//! The shortlist: which servers and tools the prompt shows, and how much of each.
//!
//! Small models copy the nearest pattern, so the best tool stands last, next to the task, and gets the most examples.
//! What does not fit its cap is left out whole and counted, never cut in the middle; of a signature with too many arguments the
//! optional ones are. What a server says of itself stands in quotes: it is a stranger's word. However many servers and tools there
//! are, the fragment keeps its caps.

use mote_script::Signature;

use super::style::Style;
use crate::tools::ToolEntry;

/// Tokens of one signature; of a longer one the last arguments are left out.
const MAX_SIGNATURE_TOKENS: usize = 90;

/// The caps of the shortlist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortlistCaps {
    /// Tools shown.
    pub tools: usize,
    /// Examples of the best tool; the others show one.
    pub examples: usize,
    /// Tokens of signatures and examples; bytes / 4 where no tokenizer is at hand.
    pub tokens: usize,
    /// Tokens of the index of servers.
    pub index_tokens: usize,
}

impl Default for ShortlistCaps {
    fn default() -> Self {
        ShortlistCaps { tools: 3, examples: 3, tokens: 420, index_tokens: 130 }
    }
}

/// A server in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it says it is good for.
    pub summary: &'a str,
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
    /// Writes down `ranked`, best first, and `servers`, those that fit best first, within `caps`; `count` gives the tokens of a text.
    pub fn write(
        ranked: &[&ToolEntry],
        servers: &[Listed<'_>],
        style: Style,
        caps: ShortlistCaps,
        count: &dyn Fn(&str) -> usize,
    ) -> Shortlist {
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
            let signature = if style.reads_rules() { take(format!("{}\n", described(tool, count))) } else { None };
            let n_examples = if rank == 0 { caps.examples } else { caps.examples.min(1) };
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
        let index = if style.reads_rules() { index(servers, caps.index_tokens, count) } else { String::new() };
        let text = match (signatures.is_empty(), examples.is_empty()) {
            (true, _) => format!("{index}{examples}"),
            (false, true) => format!("{index}Tools:\n{signatures}"),
            (false, false) => format!("{index}Tools:\n{signatures}\nExamples:\n{}\n", examples.trim_end()),
        };
        Shortlist { text, dropped }
    }
}

/// A tool as one line: its signature and, in quotes, what it says it does.
pub fn described(tool: &ToolEntry, count: &dyn Fn(&str) -> usize) -> String {
    format!("{}  # {}", short_line(&tool.signature, MAX_SIGNATURE_TOKENS, count), quoted(&tool.description))
}

/// A signature within so many tokens: the last arguments are left out, the required ones stand first.
fn short_line(signature: &Signature, max_tokens: usize, count: &dyn Fn(&str) -> usize) -> String {
    let line = signature.line();
    if count(&line) <= max_tokens {
        return line;
    }
    let with = |n_params: usize| {
        let params = signature.params.get(..n_params).unwrap_or_default().to_vec();
        let line = Signature { params, ..signature.clone() }.line();
        let open = if n_params == 0 { "" } else { ", " };
        format!("{}{open}..)", line.strip_suffix(')').unwrap_or(&line))
    };
    let (mut fits, mut too_many) = (0, signature.params.len());
    while too_many - fits > 1 {
        let middle = fits + (too_many - fits) / 2;
        if count(&with(middle)) <= max_tokens { fits = middle } else { too_many = middle }
    }
    with(fits)
}

/// As many servers as fit, and how many more there are.
fn index(servers: &[Listed<'_>], max_tokens: usize, count: &dyn Fn(&str) -> usize) -> String {
    const HEAD: &str = "Servers:\n";
    let rest = |n: usize| if n == 0 { String::new() } else { format!("({n} more: find(\"what for\"))\n") };
    let mut lines = String::new();
    let mut left = max_tokens.saturating_sub(count(HEAD) + count(&rest(servers.len())));
    let mut n_shown = 0;
    for server in servers {
        let line = format!("{}: {}\n", server.name, quoted(server.summary));
        let cost = count(&line);
        if cost > left {
            break;
        }
        left -= cost;
        lines.push_str(&line);
        n_shown += 1;
    }
    if n_shown == 0 { String::new() } else { format!("{HEAD}{lines}{}\n", rest(servers.len() - n_shown)) }
}

/// A stranger's words as one short line in quotes, of which none can end the quotation.
fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 90;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('"', "'");
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("\"{}..\"", &line[..end]),
        None => format!("\"{line}\""),
    }
}
