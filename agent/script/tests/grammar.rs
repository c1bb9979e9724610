//! The grammar against the compiler, both ways: what is sampled compiles, and the worked examples are accepted.

#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, InferenceCapabilities, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};
use mote_script::grammar::{self, Options};
use mote_script::{Limits, Signature, Step, Vm, canonical, compile};
use proptest::prelude::Rng as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use serde_json::{Value, json};
use std::sync::Arc;

fn tool(server: &str, name: &str, schema: Value) -> Signature {
    Signature::from_json_schema(server, name, "", &schema).unwrap()
}

fn tools() -> Vec<Signature> {
    let path = json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}});
    vec![
        tool("system", "disk", json!({"type": "object", "properties": {"path": {"type": "string"}}})),
        tool(
            "system",
            "processes",
            json!({"type": "object", "properties": {"top": {"type": "integer", "minimum": 1, "maximum": 50},
            "sort": {"enum": ["cpu", "memory"]}}}),
        ),
        tool("fs", "read", path),
        tool(
            "fs",
            "list",
            json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"},
            "recursive": {"type": "boolean"}, "pattern": {"type": ["string", "null"]}}}),
        ),
        tool("math", "sqrt", json!({"type": "object", "required": ["x"], "properties": {"x": {"type": "number"}}})),
        tool(
            "math",
            "percent",
            json!({"type": "object", "required": ["part", "of"], "properties": {
            "part": {"type": "number"}, "of": {"type": "number"}}}),
        ),
        tool("time", "now", json!({"type": "object", "properties": {"zone": {"type": "string"}}})),
        tool(
            "shop",
            "order",
            json!({"type": "object", "required": ["from", "lines"], "properties": {
            "from": {"type": "string"},
            "lines": {"type": "array", "items": {"type": "object", "required": ["sku"], "properties": {
                "sku": {"type": "string"}, "min-lot-size": {"type": "integer"}}}},
            "meta": {"type": "object"}, "extra": {}, "weight": {"anyOf": [{"type": "number"}, {"type": "null"}]}}}),
        ),
    ]
}

const EXAMPLES: &[&str] = &[
    "d = system.disk(path=\"/\")\nanswer(f\"{d.free_gb} GB free\")\n",
    "# list them, then take the largest\nfiles = fs.list(path=\"./agent\", recursive=True)\nfor f in sorted(files, key=lambda f: f.size, reverse=True)[:3]:\n    print(f.name, f.size)\n",
    "xs = fs.list(path=\".\")\nanswer([x.name for x in xs if x.size > 10])\n",
    "answer(math.sqrt(x=2) + 1)\n",
    "t = time.now(zone=\"Asia/Tokyo\")\nanswer(t)\n",
    "answer(time.now(zone=\"Asia/Tokyo\").time)\n",
    "time = time.now()\nanswer(time.iso)\n",
    "answer(2480 * 17.5 / 100)\n",
    "answer(math.percent(part=17.5, of=2480))\n",
    "text = fs.read(path=\"README.md\")\nfor i, line in enumerate(text.split(\"\\n\")):\n    if \"make test\" in line:\n        print(i + 1, line)\n",
    "lines = fs.read(path=\"README.md\").splitlines()\nhits = [f\"{i}: {line}\" for i, line in enumerate(lines, 1) if \"make test\" in line]\nanswer(hits[0] if hits else None, status=\"partial\")\n",
    "total = 0\nfor f in fs.list(path=\".\"):\n    if f.name.endswith(\".rs\") and not f.is_dir:\n        total += f.size\n    elif f.size is None:\n        continue\n    else:\n        pass\nanswer(total)\n",
    "try:\n    d = system.disk(path=\"/data\")\n    print(d)\nexcept ToolError as e:\n    print(\"no disk:\", e)\n",
    "i = 0\nwhile i < 10:\n    i += 1\n    if i == 5:\n        break\nprint(i)\n",
    "counts = {}\nfor p in system.processes(top=20, sort=\"cpu\"):\n    counts[p.user] = counts.get(p.user, 0) + 1\nprint(sorted(counts.items(), key=lambda kv: kv[1])[-1])\n",
    "names = [f.name for f in fs.list(path=\".\")]\nanswer(\", \".join(names))\n",
    "answer(sum(f.size for f in fs.list(path=\".\")))\n",
    "by = {f.name: f.size for f in fs.list(path=\".\")}\nanswer(max(by.values()))\n",
    "load(\"git\")\n",
    "show(\"git.log\", \"git.diff\")\n",
    "find(\"convert a time between zones because the task names two cities\")\n",
    "reconfigure(goal=\"write the report\", tools=[\"fs.read\"], why=\"the data is there\", summary=\"found 3 files\")\n",
    "a, b = 1, 2\na, b = b, a\nprint(a, b)\n",
    "shop.order(from_=\"me\", lines=[{\"sku\": \"a\", \"min-lot-size\": 3}], meta={\"k\": [1, 2]})\n",
    "print(f\"{100 * d.used / d.total:.1f}% of {d.total:,} used\")\n",
    "big = [f for f in files if f.size >= 1000000][:5]\nanswer([{\"name\": f.name, \"mb\": round(f.size / 1000000, 1)} for f in big])\n",
    "answer(f\"{', '.join(x.name for x in xs)}\")\n",
    "d = {\"a\": [1, 2], \"b\": {\"c\": 3}}\ndel d[\"a\"]\ndel d\nxs[0][\"k\"] = 4\n",
    "x = 3\nassert x > 2\nassert x < 5, f\"too big: {x}\"\nassert 0 < x <= 9, \"no\"\n",
    "if not xs:\n    raise ValueError(\"nothing there\")\ntry:\n    print(1 / 0)\nexcept ZeroDivisionError:\n    raise RuntimeError\nexcept (KeyError, IndexError) as e:\n    raise e\n",
    "answer(fs.read(path=fs.list(path=\".\")[0].name))\n",
    "a, b = gather(fs.read(path=\"a\"), fs.read(path=\"b\"))\nprint(a, b)\n",
    "pages = gather(*[fs.read(path=f.name) for f in fs.list(path=\".\")[:3]])\nanswer(len(pages[0]))\n",
    "shop.order(from_=fs.read(path=\"a\").strip(), lines=[{\"sku\": fs.read(path=\"b\")}])\n",
    "answer(math.percent(part=math.sqrt(x=16), of=len(fs.list(path=\".\"))))\n",
    "text = fs.read(path=\"a\")\nwords = text.lower().split()\nprint(text.count(\"a\"), words[0].upper(), sep=\"-\")\n",
    "for i, (a, b) in enumerate(pairs):\n    print(i, a, b)\nelse:\n    print(\"none\")\nhead, *rest = xs\n",
    "a = b = 1\nprint(xs[::2], xs[i:], xs[:-1], xs[1:n:2])\n",
];

/// Programs that need a variable with a server's name.
const SHADOWING: &[&str] = &[
    "time = time.now()\nanswer(time.iso)\n",
    "fs = fs.list(path=\".\")\nfs.append(1)\nfs.reverse()\nprint(len(fs), fs[0].name.upper())\n",
    "system = {}\nsystem[\"a\"] = 1\nfor k, v in system.items():\n    print(k, v)\n",
];

/// Tokens beside the single bytes.
const WORDS: &[&str] = &[
    "for ",
    "if ",
    " in ",
    ":\n",
    "    ",
    " = ",
    "answer(",
    "print(",
    "fs.",
    "shop.",
    "math.",
    "path=",
    "lines=[{",
    "\"sku\": ",
    " for x in ",
    ")\n",
    "\", ",
    "f\"{",
    "}\"",
    "[0]",
    ".get(",
    ".name",
    "try:\n",
    "except ",
    "Exception",
    " as e:\n",
    "while ",
    "not ",
    " and ",
    " is None",
    "lambda x: ",
    "sorted(",
    ", key=",
    "del ",
    "assert ",
    "raise ",
    "len(",
    "else:\n",
    "x, y",
    " += ",
    "\\n",
    "'a'",
    "100",
    "# ",
    "{\"k\": ",
    "time.now(",
    "reconfigure(goal=\"",
];

/// Bytes that are tokens of their own: those of ASCII, because each further one makes every mask slower.
const N_BYTES: u32 = 128;

struct Decoder {
    factory: ParserFactory,
}

impl Decoder {
    fn new() -> Decoder {
        let bytes = (0..N_BYTES as u8).map(|b| vec![b]);
        let words: Vec<Vec<u8>> = bytes.chain(WORDS.iter().map(|word| word.as_bytes().to_vec())).collect();
        let end = u32::try_from(words.len()).unwrap();
        let words = [words, vec![b"\xff<end>".to_vec()]].concat();
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(TokTrie::from(&TokRxInfo::new(end + 1, end), &words)));
        let mut factory = ParserFactory::new(&env, InferenceCapabilities::default(), &[]).unwrap();
        factory.quiet();
        Decoder { factory }
    }

    fn matcher(&self, lark: &str) -> Matcher {
        Matcher::new(self.factory.create_parser(TopLevelGrammar::from_lark(lark.to_owned())))
    }
}

fn accepts(matcher: &Matcher, source: &str) -> Result<(), String> {
    let mut matcher = matcher.clone();
    let tokens: Vec<u32> = source.bytes().map(u32::from).collect();
    let n = matcher.try_consume_tokens(&tokens).map_err(|e| e.to_string())?;
    if n < tokens.len() {
        return Err(format!("stopped at {:?}", &source[n..source.len().min(n + 30)]));
    }
    if matcher.is_accepting().map_err(|e| e.to_string())? { Ok(()) } else { Err("not at an end".to_owned()) }
}

/// A random text of the grammar, weighted so that programs are short, or None where it grew too long.
fn sample(matcher: &mut Matcher, rng: &mut TestRng, most: usize) -> Option<String> {
    matcher.reset().unwrap();
    let mut text = Vec::new();
    while text.len() < most {
        let ends = text.len() > most / 3 || rng.next_u32().is_multiple_of(4);
        if (ends && matcher.is_accepting().unwrap()) || matcher.is_stopped() {
            return Some(String::from_utf8(text).unwrap());
        }
        let mask = matcher.compute_mask().unwrap();
        let bytes: Vec<u32> = (0..N_BYTES).filter(|t| mask.is_allowed(*t)).collect();
        let words: Vec<u32> = (N_BYTES..N_BYTES + WORDS.len() as u32).filter(|t| mask.is_allowed(*t)).collect();
        if bytes.is_empty() {
            assert!(matcher.is_accepting().unwrap(), "dead end after {:?}", String::from_utf8_lossy(&text));
            return Some(String::from_utf8(text).unwrap());
        }
        let late = text.len() > most / 3;
        let ending: &[u8] = if late { b")]}\"'\n" } else { b")]}\"'\n," };
        let closing: Vec<u32> = bytes.iter().copied().filter(|t| ending.contains(&(*t as u8))).collect();
        let pool = match rng.next_u32() % 8 {
            0 | 1 if !closing.is_empty() => &closing,
            1..7 if late && !closing.is_empty() => &closing,
            2..6 if !words.is_empty() => &words,
            _ => &bytes,
        };
        let token = pool[rng.next_u32() as usize % pool.len()];
        match token.checked_sub(N_BYTES) {
            None => text.push(token as u8),
            Some(word) => text.extend(WORDS[word as usize].bytes()),
        }
        matcher.consume_token(token).unwrap();
    }
    None
}

#[test]
fn examples_are_accepted_and_compile() {
    let decoder = Decoder::new();
    let matcher = decoder.matcher(&grammar::lark(&tools(), true, &Options::default()).unwrap());
    assert_eq!(matcher.get_error(), None);
    let refused: Vec<String> =
        EXAMPLES.iter().filter_map(|e| accepts(&matcher, e).err().map(|why| format!("{e}{why}\n"))).collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    for example in EXAMPLES {
        compile(example, &Limits::default()).unwrap_or_else(|e| panic!("{}", e.report(example)));
    }
}

#[test]
fn what_the_grammar_decodes_is_canonical() {
    for example in EXAMPLES.iter().chain(SHADOWING).filter(|e| e.lines().all(|line| line.len() <= 100)) {
        assert_eq!(canonical(example, &Limits::default()).as_deref(), Ok(*example));
    }
}

#[test]
fn what_no_tool_allows_is_refused() {
    let decoder = Decoder::new();
    let matcher = decoder.matcher(&grammar::lark(&tools(), true, &Options::default()).unwrap());
    for source in [
        "fs.remove(path=\"/\")\n",
        "fs.list()\n",
        "fs.list(recursive=True, path=\"/\")\n",
        "fs.list(path=\"/\", recursive=\"yes\")\n",
        "fs.list(path=3)\n",
        "system.processes(top=51)\n",
        "system.processes(sort=\"name\")\n",
        "remove(\"/\")\n",
        "del\n",
        "assert\n",
        "raise 3\n",
        "except ValueError:\n",
        "fs.read(path=fs.read(path=fs.read(path=fs.read(path=\"a\"))))\n",
        "import os\n",
        "break\n",
        "x = (1\n",
    ] {
        assert!(accepts(&matcher, source).is_err(), "{source}");
    }
}

#[test]
fn variables_have_servers_names_where_shadowing_is_on() {
    let decoder = Decoder::new();
    let with = decoder.matcher(&grammar::lark(&tools(), true, &Options::default()).unwrap());
    let options = Options { shadowing: false, ..Options::default() };
    let without = decoder.matcher(&grammar::lark(&tools(), true, &options).unwrap());
    for source in SHADOWING {
        assert_eq!(accepts(&with, source), Ok(()), "{source}");
        assert!(accepts(&without, source).is_err(), "{source}");
        compile(source, &Limits::default()).unwrap();
    }
    for source in ["fs.split(\" \")\n", "fs.name\n", "x = time\n"] {
        assert!(accepts(&without, source).is_err(), "{source}");
    }
    assert_eq!(accepts(&without, "x = time.now()\nprint(x.iso)\n"), Ok(()));
}

#[test]
fn only_known_fields_follow_a_dot_where_fields_are_given() {
    let decoder = Decoder::new();
    let fields = ["size", "name", "not a name", "class", "items"].map(str::to_owned).to_vec();
    let options = Options { fields, ..Options::default() };
    let matcher = decoder.matcher(&grammar::lark(&tools(), true, &options).unwrap());
    for source in ["print(x.size)\n", "print(x.items.name)\n", "print(x.items())\n", "answer(f\"{x.name.upper()}\")\n"]
    {
        assert_eq!(accepts(&matcher, source), Ok(()), "{source}");
    }
    for source in ["print(x.sizes)\n", "print(x.class)\n", "answer(f\"{x.other}\")\n", "print(x.siz)\n"] {
        assert!(accepts(&matcher, source).is_err(), "{source}");
    }
}

#[test]
fn answer_can_be_the_last_statement() {
    let decoder = Decoder::new();
    let options = Options { answer_last: true, ..Options::default() };
    let matcher = decoder.matcher(&grammar::lark(&tools(), true, &options).unwrap());
    assert!(accepts(&matcher, "x = 1\nanswer(x)\n").is_ok());
    assert!(accepts(&matcher, "x = 1\n").is_err());
    assert!(accepts(&matcher, "answer(1)\nx = 1\n").is_err());
}

/// Options under which every part of the grammar is sampled.
fn options(round: u32) -> Options {
    let fields = ["name", "size", "free_gb"].map(str::to_owned);
    Options {
        answer_last: round % 3 == 2,
        shadowing: round.is_multiple_of(2),
        fields: if round % 4 < 2 { Vec::new() } else { fields.to_vec() },
        ..Options::default()
    }
}

/// Samples programs over random live tools: each compiles, and runs to a call of a live tool, its end or an exception.
fn samples(seed: u8, n_wanted: usize) -> (usize, usize) {
    let decoder = Decoder::new();
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let all = tools();
    let (mut n, mut n_long) = (0, 0);
    for round in 0.. {
        let live: Vec<Signature> =
            all.iter().filter(|_| round == 0 || rng.next_u32().is_multiple_of(2)).cloned().collect();
        let mut matcher = decoder.matcher(&grammar::lark(&live, round % 5 != 4, &options(round)).unwrap());
        assert_eq!(matcher.get_error(), None);
        for _ in 0..200 {
            let most = 60 + rng.next_u32() as usize % 200;
            let Some(source) = sample(&mut matcher, &mut rng, most) else {
                n_long += 1;
                continue;
            };
            n += 1;
            let program =
                compile(&source, &Limits::default()).map_err(|e| format!("{source}\n{}", e.report(&source))).unwrap();
            let plain = source.lines().all(|line| line.len() <= 100);
            if plain && !["'", ", )", " \n"].iter().any(|other| source.contains(other)) {
                assert_eq!(canonical(&source, &Limits::default()).as_deref(), Ok(source.as_str()));
            }
            let mut vm = Vm::new(Limits { fuel: 5_000, ..Limits::default() });
            let calls = match vm.start(program, &live) {
                Step::Call(call) => vec![call],
                Step::Calls(calls) => calls,
                _ => Vec::new(),
            };
            for call in calls {
                assert!(call.server.is_empty() || live.iter().any(|t| t.server == call.server && t.name == call.tool));
            }
        }
        if n >= n_wanted {
            break;
        }
    }
    (n, n_long)
}

/// `MOTE_SAMPLES` asks for more of them.
#[test]
fn samples_compile() {
    let n_wanted: usize = std::env::var("MOTE_SAMPLES").ok().and_then(|n| n.parse().ok()).unwrap_or(4_000);
    let threads: Vec<_> = (0..4u8).map(|at| std::thread::spawn(move || samples(7 + at, n_wanted / 4))).collect();
    let counts: Vec<(usize, usize)> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    eprintln!(
        "{} samples, {} too long",
        counts.iter().map(|c| c.0).sum::<usize>(),
        counts.iter().map(|c| c.1).sum::<usize>()
    );
    assert!(counts.iter().all(|(n, _)| *n >= n_wanted / 4));
}

#[test]
fn tools_without_parameters_or_no_tools_at_all_have_a_grammar() {
    let decoder = Decoder::new();
    let bare = tool("clock", "now", json!({"type": "object"}));
    for (live, source) in [(vec![], "print(1)\n"), (vec![bare], "x = clock.now().iso\nprint(x)\n")] {
        for moves in [true, false] {
            let matcher = decoder.matcher(&grammar::lark(&live, moves, &Options::default()).unwrap());
            assert_eq!(matcher.get_error(), None);
            assert_eq!(accepts(&matcher, source), Ok(()));
        }
    }
}

#[test]
fn hostile_schemas_give_a_grammar_or_an_error() {
    let decoder = Decoder::new();
    let strings = "[a-z\"\\\\\\n\\[\\]{}$ ]{0,12}";
    let mut runner = TestRunner::new(Config { cases: 24, failure_persistence: None, ..Config::default() });
    runner
        .run(&(proptest::collection::vec(strings, 1..6), strings), |(names, server)| {
            let properties: serde_json::Map<String, Value> = names
                .iter()
                .enumerate()
                .map(|(i, name)| {
                    (
                        name.clone(),
                        [json!({"enum": [name, i]}), json!({"type": "string"}), json!({"$ref": "#"})][i % 3].clone(),
                    )
                })
                .collect();
            let tool = tool(&format!("s{server}"), &server, json!({"type": "object", "properties": properties}));
            let matcher = decoder.matcher(&grammar::lark(&[tool], true, &Options::default()).unwrap());
            assert_eq!(matcher.get_error(), None);
            Ok(())
        })
        .unwrap();
}

#[test]
fn thirty_two_tools_are_quick() {
    let decoder = Decoder::new();
    let live: Vec<Signature> = (0..32)
        .map(|i| {
            tool(
                &format!("server{}", i / 4),
                &format!("tool{i}"),
                json!({"type": "object", "required": ["path"], "properties": {"path": {"type": "string"},
                    "kind": {"enum": ["a", "b", "c"]}, "n": {"type": "integer"}, "deep": {"type": "boolean"}}}),
            )
        })
        .collect();
    let started = std::time::Instant::now();
    let lark = grammar::lark(&live, true, &Options::default()).unwrap();
    let rendered = started.elapsed();
    let mut matcher = decoder.matcher(&lark);
    matcher.compute_mask().unwrap();
    let compiled = started.elapsed();
    eprintln!("rendered {rendered:?}, compiled {compiled:?}, {} bytes", lark.len());
    assert!(compiled.as_millis() < 1_000, "{compiled:?}");
}
