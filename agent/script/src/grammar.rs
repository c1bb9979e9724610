//! The grammar that decodes programs: Lark text for `llguidance`, made of the language and the live tools.
//!
//! Every text of the grammar compiles; it is a subset of the language, without `def`, in which a call is a tool with its
//! real argument names in declared order, a move, a built-in, or a method of a variable. Operators, built-ins and method
//! names come from the tables of parser and VM. Blocks are unrolled to a fixed depth, expressions to a fixed nesting, and
//! strings, numbers and lists are bounded, so that no decoding runs away. Statements are here, expressions in `expr`, tools
//! in `tool`.

mod expr;
mod tool;

use crate::ast::AUGMENTED;
use crate::error::Error;
use crate::lexer::KEYWORDS;
use crate::signature::Signature;
use crate::value::Class;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Tools that one grammar may name: far beyond what a prompt shows.
const MOST_TOOLS: usize = 512;
/// Bytes of a grammar; a schema that wants more is refused.
const MOST_BYTES: usize = 2 << 20;
/// Fields that one grammar may name.
const MOST_FIELDS: usize = 1_000;
/// Targets of a loop or an assignment.
const MOST_TARGETS: usize = 4;

/// What a decoded program may look like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// `# ` lines that may open the program.
    pub comments: u32,
    /// Statements at the left margin.
    pub statements: u32,
    /// Statements of one block.
    pub block_statements: u32,
    /// How deep blocks nest; 0 for none.
    pub block_depth: u32,
    /// Characters of a string.
    pub string_chars: u32,
    /// Whether the last statement has to be `answer(..)`, and no other statement at the left margin is.
    pub answer_last: bool,
    /// Whether a variable may have a server's name.
    pub shadowing: bool,
    /// The names that may stand after a dot: the fields that results are known to have. Any name if there are none.
    pub fields: Vec<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            comments: 3,
            statements: 24,
            block_statements: 12,
            block_depth: 3,
            string_chars: 400,
            answer_last: false,
            shadowing: true,
            fields: Vec::new(),
        }
    }
}

impl Options {
    /// The options within what keeps the grammar small and its programs within default limits.
    fn clamped(&self) -> Options {
        Options {
            comments: self.comments.min(8),
            statements: self.statements.clamp(1, 100),
            block_statements: self.block_statements.clamp(1, 50),
            block_depth: self.block_depth.min(6),
            string_chars: self.string_chars.clamp(1, 2_000),
            answer_last: self.answer_last,
            shadowing: self.shadowing,
            fields: self.fields.iter().filter(|name| is_name(name)).take(MOST_FIELDS).cloned().collect(),
        }
    }
}

/// The grammar of programs over `tools`, with the agent's own moves where `moves` is set.
///
/// # Errors
/// Kind `Limit` when there are too many tools or their schemas are too large.
pub fn lark(tools: &[Signature], moves: bool, options: &Options) -> Result<String, Error> {
    let options = options.clamped();
    let tools: Vec<&Signature> = tools.iter().filter(|t| !t.server.is_empty()).collect();
    if tools.len() > MOST_TOOLS {
        return Err(Error::over("tool", MOST_TOOLS as u64, tools.len() as u64));
    }
    let mut grammar = Grammar {
        out: String::new(),
        servers: Vec::new(),
        nested: tools.iter().any(|t| !t.params.is_empty()),
        shared: BTreeMap::new(),
    };
    for tool in &tools {
        if !grammar.servers.contains(&tool.server) {
            grammar.servers.push(tool.server.clone());
        }
    }
    let answer_last = options.answer_last && moves;
    grammar.statements(&options, moves, answer_last);
    grammar.terminals(&options);
    grammar.expressions(&options);
    grammar.tools(&tools)?;
    if moves {
        grammar.moves();
    }
    if grammar.out.len() > MOST_BYTES {
        return Err(Error::over("grammar size", MOST_BYTES as u64, grammar.out.len() as u64));
    }
    Ok(grammar.out)
}

struct Grammar {
    out: String,
    servers: Vec<String>,
    /// Whether a tool takes arguments, in which other calls may stand. A rule without need of a parameter may have none.
    nested: bool,
    /// Rules that tools share, by their bodies: reading the text is a third of what a grammar costs to compile.
    shared: BTreeMap<String, String>,
}

fn is_name(text: &str) -> bool {
    let starts = text.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic());
    starts && text.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) && !KEYWORDS.contains(&text)
}

/// Text as a literal of the grammar, whose lexer takes no control character as it is, DEL included.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\x7f', "\\u007f")
}

/// One of several words, as a terminal.
fn alternatives(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut words: Vec<String> = words.into_iter().map(|word| escaped(word.as_ref())).collect();
    words.retain(|word| !word.is_empty());
    format!("/{}/", words.join("|"))
}

/// Text as a part of a terminal's regular expression.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            c if c.is_control() => {
                let _ = write!(out, "\\x{{{:x}}}", u32::from(c));
            }
            c if r"\.+*?()|[]{}^$/".contains(c) => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

impl Grammar {
    fn rule(&mut self, name: &str, body: &str) {
        self.out.push_str(name);
        self.out.push_str(": ");
        self.out.push_str(body);
        self.out.push('\n');
    }

    /// The name of the rule with this body, which is made where no other has it.
    fn shared(&mut self, body: String) -> String {
        if let Some(name) = self.shared.get(&body) {
            return name.clone();
        }
        let name = format!("v{}::_", self.shared.len());
        self.rule(&name, &body);
        self.shared.insert(body, name.clone());
        name
    }

    fn statements(&mut self, options: &Options, moves: bool, answer_last: bool) {
        let comments = if options.comments > 0 { format!("COMMENT{{0,{}}} ", options.comments) } else { String::new() };
        let n = options.statements;
        let start = if answer_last {
            format!("{comments}s0{{0,{}}} answer_move \"\\n\"", n.saturating_sub(1))
        } else {
            format!("{comments}s0{{1,{n}}}")
        };
        self.rule("start", &start);
        for depth in 0..=options.block_depth {
            for in_loop in [false, true] {
                if depth == 0 && in_loop {
                    continue;
                }
                let kind = if in_loop { "l" } else { "s" };
                let indent = "    ".repeat(depth as usize);
                let mut body = String::from("(simple");
                if moves {
                    body.push_str(if answer_last && depth == 0 { " | other_move" } else { " | move" });
                }
                if in_loop {
                    body.push_str(" | \"break\" | \"continue\"");
                }
                if depth > 0 {
                    body.push_str(" | \"pass\"");
                }
                body.push_str(") \"\\n\"");
                if depth < options.block_depth {
                    let (same, inner) =
                        (format!("{kind}{}b", depth.saturating_add(1)), format!("l{}b", depth.saturating_add(1)));
                    let mark = if depth == 0 { String::new() } else { format!("{} ", quoted(&indent)) };
                    let other = format!("({mark}\"else:\\n\" {same})?");
                    let _ = write!(
                        body,
                        " | \"if \" x3 \":\\n\" {same} ({mark}\"elif \" x3 \":\\n\" {same}){{0,3}} {other}\
                         | (\"for \" targets \" in \" x3 | \"while \" x3) \":\\n\" {inner} {other}\
                         | \"try:\\n\" {same} ({mark}\"except \" caught \":\\n\" {same}){{1,2}} ({mark}\"finally:\\n\" p{}b)?",
                        depth.saturating_add(1)
                    );
                }
                self.rule(&format!("{kind}{depth}"), &body);
                if depth > 0 {
                    let n = options.block_statements;
                    self.rule(&format!("{kind}{depth}b"), &format!("({} {kind}{depth}){{1,{n}}}", quoted(&indent)));
                    if !in_loop {
                        self.rule(
                            &format!("p{depth}b"),
                            &format!("({} (simple | \"pass\") \"\\n\"){{1,{n}}}", quoted(&indent)),
                        );
                    }
                }
            }
        }
        let signs: Vec<String> = AUGMENTED.iter().map(|(sign, _)| format!(" {sign} ")).collect();
        self.rule("AUGMENTED", &alternatives(signs));
        self.rule("simple", "x3 | assign | \"del \" (NAME | place) | \"assert \" x3 (\", \" e2)? | \"raise \" raised");
        self.rule("raised", "ERROR (\"(\" e1 \")\")? | NAME");
        self.rule("caught", "(ERROR | \"(\" ERROR (\", \" ERROR){1,2} \")\") (\" as \" NAME)?");
        self.rule(
            "assign",
            "(targets \" = \"){1,2} x3 (\", \" x3){0,3} | NAME AUGMENTED x3 | place (\" = \" | AUGMENTED) x3",
        );
        self.rule("place", "NAME (\"[\" e1 \"]\" | \".\" NAME){1,3}");
        self.rule(
            "targets",
            &format!(
                "NAME (\", \" NAME){{0,{}}} (\", \" (\"*\" NAME | \"(\" NAME \", \" NAME \")\"))?",
                MOST_TARGETS.saturating_sub(1)
            ),
        );
    }

    fn terminals(&mut self, options: &Options) {
        let n = options.string_chars;
        let mut reserved: Vec<&str> = KEYWORDS.to_vec();
        self.rule("COMMENT", &format!("/# [^\\x00-\\x1f\\x7f]{{1,{n}}}\\n/"));
        let servers = self.servers.clone();
        if !options.shadowing {
            reserved.extend(servers.iter().map(String::as_str));
        }
        self.rule("NAME", &format!("/[a-zA-Z_][a-zA-Z0-9_]{{0,40}}/ & ~/{}/", reserved.join("|")));
        self.rule("INT", "/0|[1-9][0-9]{0,14}/");
        self.rule("FLOAT", "/(0|[1-9][0-9]{0,14})\\.[0-9]{1,15}/");
        self.rule(
            "STRING",
            &format!("/\"([^\"\\\\\\n\\r]|\\\\[nt\"'\\\\]){{0,{n}}}\"|'([^'\\\\\\n\\r]|\\\\[nt\"'\\\\]){{0,{n}}}'/"),
        );
        self.rule("INNER_STRING", "/'[^'\"{}\\\\\\n\\r]{0,100}'/");
        self.rule("TEXT", &format!("/[^\"{{}}\\\\\\n\\r]{{1,{n}}}/"));
        self.rule("SPEC", "/:[<>^]?([1-9][0-9]?)?,?(\\.[0-9])?[fd%]|:[<>^]?[1-9][0-9]?|:,/");
        self.rule("ERROR", &alternatives(Class::ALL.iter().map(|class| class.name())));
    }
}
