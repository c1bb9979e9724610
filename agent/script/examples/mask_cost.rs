//! What the grammar costs under a real vocabulary: size, time to compile, time of a mask for each token of programs.
//!
//! `cargo run --release -p mote-script --example mask_cost -- TOKENIZER_JSON [N_TOOLS] [ROUNDS]`
//!
//! The vocabulary is that of a byte-level BPE; text is cut greedily, which is close enough to what a model writes.
#![expect(clippy::print_stdout, reason = "an example shows its result on the terminal")]

mod loaded;

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use llguidance::api::TopLevelGrammar;
use llguidance::earley::SlicedBiasComputer;
use llguidance::toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};
use llguidance::{Matcher, ParserFactory};
use mote_script::grammar;
use serde_json::Value;

const PROGRAMS: &[&str] = &[
    "answer(server0.tool0(path=\"/\", n=3).size)\n",
    "# list them, then take the largest\nfiles = server1.tool4(path=\"./agent\", deep=True)\nfor f in sorted(files, key=lambda f: f.size, reverse=True)[:3]:\n    print(f.name, f.size)\n",
    "xs = server2.tool8(path=\".\")\nanswer([x.name for x in xs if x.size > 10])\n",
    "total = 0\nfor f in server3.tool12(path=\".\"):\n    if f.name.endswith(\".rs\") and not f.is_dir:\n        total += f.size\n    else:\n        pass\nanswer(f\"{total / 1000:.1f} kB in {len(xs)} files\", status=\"partial\")\n",
    "try:\n    d = server7.tool31(path=\"/data\", kind=\"b\")\n    print(d)\nexcept ToolError as e:\n    print(\"no disk:\", e)\n",
];

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: usize| arguments.get(index).and_then(|a| a.parse().ok()).unwrap_or(default);
    let path = arguments.first().map_or("tokenizer.json", String::as_str);
    let tools = loaded::tools(number(1, 32))?;
    let env: TokEnv = Arc::new(Vocabulary { trie: vocabulary(&serde_json::from_slice(&std::fs::read(path)?)?)? });
    let capabilities = InferenceCapabilities { ff_tokens: true, ..Default::default() };
    let mut factory = ParserFactory::new(&env, capabilities, &SlicedBiasComputer::general_slices())?;
    factory.quiet().limits_mut().verbose_errors = false;

    let (mut rendered, mut compiled, mut first, mut masks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut slowest = (Duration::ZERO, String::new());
    for _ in 0..number(2, 20) {
        let started = Instant::now();
        let lark = grammar::lark(&tools, true, &grammar::Options::default())?;
        rendered.push(started.elapsed());
        let started = Instant::now();
        let start = Matcher::new(factory.create_parser(TopLevelGrammar::from_lark(lark.clone())));
        compiled.push(started.elapsed());
        let started = Instant::now();
        start.clone().compute_mask()?;
        first.push(started.elapsed());
        for program in PROGRAMS {
            let mut matcher = start.clone();
            let mut done = String::new();
            for token in env.tok_trie().greedy_tokenize(program.as_bytes()) {
                let started = Instant::now();
                matcher.compute_mask()?;
                matcher.consume_token(token)?;
                let took = started.elapsed();
                done.push_str(&env.tok_trie().token_str(token));
                if took > slowest.0 {
                    slowest = (took, done.clone());
                }
                masks.push(took);
            }
        }
        if rendered.len() == 1 {
            println!("{} tools, {} bytes of grammar, {} rules", tools.len(), lark.len(), lark.lines().count());
        }
    }
    for (what, times) in [("render", rendered), ("compile", compiled), ("first mask", first), ("mask", masks)] {
        show(what, times);
    }
    println!("slowest mask {:?} after {:?}", slowest.0, slowest.1);
    Ok(())
}

fn show(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |part: usize| times.get((times.len() * part / 100).min(times.len().saturating_sub(1))).copied();
    let mean = times.iter().sum::<Duration>() / u32::try_from(times.len()).unwrap_or(1).max(1);
    println!("{what}: mean {mean:?}, median {:?}, 99% {:?}", at(50).unwrap_or_default(), at(99).unwrap_or_default());
}

struct Vocabulary {
    trie: TokTrie,
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        self.trie.greedy_tokenize(bytes)
    }
}

/// The trie of a `tokenizer.json` of kind byte-level BPE. The last special token ends a text.
fn vocabulary(json: &Value) -> Result<TokTrie, Box<dyn Error + Send + Sync>> {
    let bytes = byte_of_char();
    let entries = json["model"]["vocab"].as_object().ok_or("no vocabulary")?;
    let mut words: Vec<Vec<u8>> = vec![Vec::new(); entries.len()];
    for (text, id) in entries {
        let place = id.as_u64().and_then(|id| words.get_mut(usize::try_from(id).ok()?)).ok_or("an id is too large")?;
        *place = text.chars().filter_map(|c| bytes.get(&c).copied()).collect();
    }
    let mut end = 0;
    for token in json["added_tokens"].as_array().ok_or("no added tokens")? {
        let (id, text) = (token["id"].as_u64().ok_or("no id")?, token["content"].as_str().ok_or("no text")?);
        if let Some(place) = words.get_mut(usize::try_from(id)?) {
            *place = [&[TokTrie::SPECIAL_TOKEN_MARKER], text.as_bytes()].concat();
            end = u32::try_from(id)?;
        }
    }
    Ok(TokTrie::from(&TokRxInfo::new(u32::try_from(words.len())?, end), &words))
}

/// The characters by which GPT-2's vocabulary writes bytes.
fn byte_of_char() -> HashMap<char, u8> {
    let printable = |b: u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let others =
        (0..=255u8).filter(|b| !printable(*b)).zip(256u32..).filter_map(|(b, c)| Some((char::from_u32(c)?, b)));
    (0..=255u8).filter(|b| printable(*b)).map(|b| (char::from(b), b)).chain(others).collect()
}
