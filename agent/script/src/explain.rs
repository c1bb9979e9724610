//! What a program does and may do, found without running it: its tool calls with their arguments held against the
//! signatures, the names that it reads and sets, and what it may repeat.
//!
//! It follows the order of the lines, not of the run: a name that is set on one way only counts as set from there on. What
//! a call's result looks like is not known, nor whether a branch is taken. Effects of tools and permission are the host's.

mod listing;
mod names;
#[cfg(test)]
mod tests;

use crate::ast::{Arg, Const, Expr, Node, UnOp};
use crate::compiler::compile;
use crate::error::{Error, nearest};
use crate::lexer;
use crate::limits::Limits;
use crate::parser;
use crate::schema::Schema;
use crate::signature::{Signature, moves};
use serde::Serialize;
use serde_json::{Map, Value as Json};

/// Tool calls, moves and names that one explanation lists; a longer program is cut here, which `cut` says.
const MOST_LISTED: usize = 500;

/// What a program does and may do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The comments that open the program: why it was written.
    pub reason: Vec<String>,
    /// Tool calls in the order of the source.
    pub calls: Vec<ToolUse>,
    /// The agent's own moves in the order of the source.
    pub moves: Vec<ToolUse>,
    /// Functions that the program defines.
    pub functions: Vec<String>,
    /// Variables that the program sets at its top, which the next program sees.
    pub sets: Vec<String>,
    /// Names that are read before they are set, or never set.
    pub unset: Vec<UnsetName>,
    /// Bytes of the source.
    pub source_bytes: u64,
    /// Instructions that the program compiles to.
    pub instructions: u64,
    /// The most instructions that a run takes, work inside of built-ins apart; none where something may repeat.
    pub most_fuel: Option<u64>,
    /// Whether there was more to list than an explanation holds.
    pub cut: bool,
}

/// How often a place in a program is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reached {
    /// Once, unless the program ends before.
    Once,
    /// Once or never.
    Perhaps,
    /// Any number of times: it stands in a loop, a comprehension or a function.
    Repeatedly,
}

/// A tool or move where a program names it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolUse {
    /// `server.tool`, or the name of a move.
    pub tool: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The column in characters, counted from 1.
    pub column: u32,
    /// How often it is reached.
    pub reached: Reached,
    /// Whether there is such a tool.
    pub known: bool,
    /// Whether it is called here; else it is handed on as a value, and its arguments are not known.
    pub called: bool,
    /// Whether there are arguments that only a run shows: `*values`, `**values`.
    pub open: bool,
    /// The parameters that are given.
    pub given: Vec<String>,
    /// The parameters that have to be given and are not.
    pub missing: Vec<String>,
    /// What the run would refuse, as it would say it.
    pub wrong: Vec<String>,
    /// What to write in its place.
    pub hint: Option<String>,
}

/// A name that has no value where it is read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnsetName {
    /// The name.
    pub name: String,
    /// The line, counted from 1.
    pub line: u32,
    /// The column in characters, counted from 1.
    pub column: u32,
    /// Whether the program sets it somewhere after.
    pub set_later: bool,
    /// The known name that may be meant.
    pub near: Option<String>,
}

/// Explains a program that would run with `tools` over the variables in `known`.
///
/// # Errors
/// As [`compile`].
pub fn explain(source: &str, limits: &Limits, tools: &[Signature], known: &[String]) -> Result<Explanation, Error> {
    let program = compile(source, limits)?;
    let block = parser::program(source, limits.clamped().nesting)?;
    let (_, comments) = lexer::tokens_and_comments(source)?;
    let opening = comments.iter().zip(1..).take_while(|(comment, line)| comment.pos.line == *line);
    let reason = opening.map(|(comment, _)| comment.text.trim_matches(['#', ' ']).to_owned()).collect();
    let moves = moves();
    let mut walk = names::Walk::new(tools, &moves, known);
    walk.program(&block);
    let instructions = program.codes.iter().map(|code| code.ops.len() as u64).sum();
    let repeats = walk.repeats;
    Ok(Explanation {
        reason,
        calls: walk.calls,
        moves: walk.moves_used,
        functions: walk.functions,
        sets: walk.sets,
        unset: walk.unset,
        source_bytes: source.len() as u64,
        instructions,
        most_fuel: (!repeats).then_some(instructions),
        cut: walk.cut,
    })
}

/// Holds the arguments of a call against the signature, as far as they stand in the source.
fn check(found: &mut ToolUse, signature: &Signature, args: &[Arg]) {
    let gathers = matches!(signature.params.as_slice(), [only] if matches!(only.schema, Schema::Array(_)));
    let mut plain = signature.params.iter();
    for arg in args {
        let (param, value) = match arg {
            Arg::Star(_) | Arg::DoubleStar(_) => {
                found.open = true;
                continue;
            }
            Arg::Plain(_) if gathers => {
                found.given.extend(signature.params.iter().map(|p| p.name.clone()));
                continue;
            }
            Arg::Plain(value) => match plain.next() {
                Some(param) => (param, value),
                None => {
                    let n = signature.params.len();
                    found.wrong.push(format!("takes {n} arguments, more are given"));
                    break;
                }
            },
            Arg::Named(name, value) => {
                match signature.params.iter().find(|p| p.name == *name || p.wire_name == *name) {
                    Some(param) => (param, value),
                    None => {
                        let near = nearest(name, signature.params.iter().map(|p| p.name.as_str()));
                        let near = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
                        found.wrong.push(format!("no such argument: {name}{near}"));
                        continue;
                    }
                }
            }
        };
        if found.given.contains(&param.name) {
            found.wrong.push(format!("given twice: {}", param.name));
        }
        found.given.push(param.name.clone());
        if let Some(json) = literal(value)
            && let Err(why) = param.schema.fit(json.clone())
            && (param.required || !json.is_null())
        {
            found.wrong.push(format!("{}: {why}", param.name));
        }
    }
    found.given.dedup();
    if !found.open {
        let missing = signature.params.iter().filter(|p| p.required && !found.given.contains(&p.name));
        found.missing = missing.map(|p| p.name.clone()).collect();
    }
    if !found.wrong.is_empty() || !found.missing.is_empty() {
        found.hint = Some(format!("write {}", signature.line()));
    }
}

/// The value of an expression that is a literal through and through.
fn literal(expr: &Expr) -> Option<Json> {
    Some(match &expr.node {
        Node::Const(Const::None) => Json::Null,
        Node::Const(Const::Bool(b)) => Json::from(*b),
        Node::Const(Const::Int(n)) => Json::from(*n),
        Node::Const(Const::Float(n)) => Json::from(*n),
        Node::Const(Const::Str(text)) => Json::from(text.as_str()),
        Node::Unary(UnOp::Neg, inner) => match &inner.node {
            Node::Const(Const::Int(n)) => Json::from(n.checked_neg()?),
            Node::Const(Const::Float(n)) => Json::from(-n),
            _ => return None,
        },
        Node::List(items) | Node::Tuple(items) => Json::Array(items.iter().map(literal).collect::<Option<_>>()?),
        Node::Dict(pairs) => {
            let mut map = Map::new();
            for (key, value) in pairs {
                let Some(Json::String(key)) = key.as_ref().and_then(literal) else { return None };
                map.insert(key, literal(value)?);
            }
            Json::Object(map)
        }
        _ => return None,
    })
}
