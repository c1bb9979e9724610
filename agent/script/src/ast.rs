//! The tree of a program, and the tables of operators that parser and grammar share.
//!
//! Every expression knows its depth, so that whoever walks or drops the tree recurses no deeper than the limit that
//! [`Expr::new`] was given.

use crate::error::{Error, Pos};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum BinOp {
    Or,
    Xor,
    And,
    Shl,
    Shr,
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
}

/// Sign, operator and binding power; all but `**` bind to the left.
pub(crate) const BINARY: &[(&str, BinOp, u8)] = &[
    ("|", BinOp::Or, 5),
    ("^", BinOp::Xor, 6),
    ("&", BinOp::And, 7),
    ("<<", BinOp::Shl, 8),
    (">>", BinOp::Shr, 8),
    ("+", BinOp::Add, 9),
    ("-", BinOp::Sub, 9),
    ("*", BinOp::Mul, 10),
    ("/", BinOp::Div, 10),
    ("//", BinOp::FloorDiv, 10),
    ("%", BinOp::Mod, 10),
    ("**", BinOp::Pow, 12),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CmpOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    In,
    NotIn,
    Is,
    IsNot,
}

/// Comparisons as they are written; the two-word ones are read by the parser from their first word.
pub(crate) const COMPARISONS: &[(&str, CmpOp)] = &[
    ("==", CmpOp::Eq),
    ("!=", CmpOp::Ne),
    ("<", CmpOp::Lt),
    ("<=", CmpOp::Le),
    (">", CmpOp::Gt),
    (">=", CmpOp::Ge),
    ("in", CmpOp::In),
    ("not in", CmpOp::NotIn),
    ("is", CmpOp::Is),
    ("is not", CmpOp::IsNot),
];

/// Signs of the assignments that compute: `x += 1`.
pub(crate) const AUGMENTED: &[(&str, BinOp)] = &[
    ("+=", BinOp::Add),
    ("-=", BinOp::Sub),
    ("*=", BinOp::Mul),
    ("/=", BinOp::Div),
    ("//=", BinOp::FloorDiv),
    ("%=", BinOp::Mod),
    ("**=", BinOp::Pow),
    ("&=", BinOp::And),
    ("|=", BinOp::Or),
    ("^=", BinOp::Xor),
    ("<<=", BinOp::Shl),
    (">>=", BinOp::Shr),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum UnOp {
    Not,
    Neg,
    Pos,
    Invert,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Const {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
}

#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub(crate) node: Node,
    pub(crate) pos: Pos,
    depth: u32,
}

#[derive(Debug, Clone)]
pub(crate) enum Node {
    Const(Const),
    Name(String),
    FString(Vec<Fragment>),
    List(Vec<Expr>),
    Tuple(Vec<Expr>),
    Set(Vec<Expr>),
    /// A pair, or the dict that `**` spreads.
    Dict(Vec<(Option<Expr>, Expr)>),
    Unary(UnOp, Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// `and` where the flag is true, else `or`.
    Logic(bool, Vec<Expr>),
    Compare(Box<Expr>, Vec<(CmpOp, Expr)>),
    If {
        condition: Box<Expr>,
        then: Box<Expr>,
        other: Box<Expr>,
    },
    Call {
        callee: Box<Expr>,
        args: Vec<Arg>,
    },
    Attr(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    Slice(Box<Expr>, [Option<Box<Expr>>; 3]),
    Comprehension(Box<Comprehension>),
    Lambda {
        params: Vec<Param>,
        body: Box<Expr>,
    },
    Star(Box<Expr>),
}

/// A piece of an f-string.
#[derive(Debug, Clone)]
pub(crate) enum Fragment {
    Text(String),
    Field { value: Expr, conversion: Option<char>, spec: Vec<Fragment> },
}

#[derive(Debug, Clone)]
pub(crate) enum Arg {
    Plain(Expr),
    Named(String, Expr),
    Star(Expr),
    DoubleStar(Expr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Collection {
    List,
    Set,
    Dict,
}

#[derive(Debug, Clone)]
pub(crate) struct Comprehension {
    pub(crate) kind: Collection,
    pub(crate) element: Expr,
    pub(crate) value: Option<Expr>,
    pub(crate) clauses: Vec<Clause>,
}

#[derive(Debug, Clone)]
pub(crate) struct Clause {
    pub(crate) target: Expr,
    pub(crate) iterable: Expr,
    pub(crate) conditions: Vec<Expr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ParamKind {
    Plain,
    Rest,
    Named,
}

#[derive(Debug, Clone)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) default: Option<Expr>,
    pub(crate) kind: ParamKind,
}

#[derive(Debug, Clone)]
pub(crate) struct Stmt {
    pub(crate) node: StmtNode,
    pub(crate) pos: Pos,
}

pub(crate) type Block = Vec<Stmt>;

#[derive(Debug, Clone)]
pub(crate) enum StmtNode {
    Expr(Expr),
    Assign { targets: Vec<Expr>, value: Expr },
    Augmented { target: Expr, op: BinOp, value: Expr },
    If { arms: Vec<(Expr, Block)>, other: Block },
    For { target: Expr, iterable: Expr, body: Block, other: Block },
    While { condition: Expr, body: Block, other: Block },
    Try { body: Block, handlers: Vec<Handler>, other: Block, finally: Block },
    Def { name: String, params: Vec<Param>, body: Block },
    Return(Option<Expr>),
    Raise(Option<Expr>),
    Assert { condition: Expr, message: Option<Expr> },
    Del(Vec<Expr>),
    Global(Vec<String>),
    Break,
    Continue,
    Pass,
}

#[derive(Debug, Clone)]
pub(crate) struct Handler {
    pub(crate) class: Option<Expr>,
    pub(crate) name: Option<String>,
    pub(crate) body: Block,
    pub(crate) pos: Pos,
}

impl Expr {
    /// A node over its children, refused when the tree would be deeper than `nesting`.
    pub(crate) fn new(node: Node, pos: Pos, nesting: u32) -> Result<Expr, Error> {
        let depth = node.deepest_child().saturating_add(1);
        if depth > nesting {
            return Err(Error::over("nesting", u64::from(nesting), u64::from(depth))
                .at(pos)
                .with_hint("split the expression over several lines with names"));
        }
        Ok(Expr { node, pos, depth })
    }
}

fn deepest<'a>(exprs: impl IntoIterator<Item = &'a Expr>) -> u32 {
    exprs.into_iter().map(|e| e.depth).max().unwrap_or(0)
}

fn deepest_fragment(fragments: &[Fragment]) -> u32 {
    let depth = |fragment: &Fragment| match fragment {
        Fragment::Text(_) => 0,
        Fragment::Field { value, spec, .. } => {
            let in_spec = spec.iter().map(|f| match f {
                Fragment::Text(_) => 0,
                Fragment::Field { value, .. } => value.depth,
            });
            value.depth.max(in_spec.max().unwrap_or(0))
        }
    };
    fragments.iter().map(depth).max().unwrap_or(0)
}

impl Node {
    fn deepest_child(&self) -> u32 {
        match self {
            Node::Const(_) | Node::Name(_) => 0,
            Node::FString(fragments) => deepest_fragment(fragments),
            Node::List(items) | Node::Tuple(items) | Node::Set(items) | Node::Logic(_, items) => deepest(items),
            Node::Dict(pairs) => deepest(pairs.iter().flat_map(|(k, v)| k.iter().chain([v]))),
            Node::Unary(_, e) | Node::Attr(e, _) | Node::Star(e) => e.depth,
            Node::Binary(_, a, b) | Node::Index(a, b) => a.depth.max(b.depth),
            Node::Compare(first, rest) => first.depth.max(deepest(rest.iter().map(|(_, e)| e))),
            Node::If { condition, then, other } => condition.depth.max(then.depth).max(other.depth),
            Node::Call { callee, args } => callee.depth.max(deepest(args.iter().map(|arg| match arg {
                Arg::Plain(e) | Arg::Named(_, e) | Arg::Star(e) | Arg::DoubleStar(e) => e,
            }))),
            Node::Slice(e, parts) => e.depth.max(deepest(parts.iter().flatten().map(|part| &**part))),
            Node::Comprehension(comp) => {
                let clauses = comp.clauses.iter();
                let in_clauses = clauses.flat_map(|c| [&c.target, &c.iterable].into_iter().chain(&c.conditions));
                deepest(in_clauses.chain([&comp.element]).chain(&comp.value))
            }
            Node::Lambda { params, body } => body.depth.max(deepest(params.iter().flat_map(|p| &p.default))),
        }
    }
}
