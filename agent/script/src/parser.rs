//! Tokens to statements.
//!
//! Recursion is bounded by `Limits::nesting`: blocks and expressions count into one depth. What Python has and the
//! language leaves out is refused here, with what to write in its place. Expressions are in `expr`.

mod expr;

use crate::ast::*;
use crate::error::{Error, Pos};
use crate::lexer::{self, KEYWORDS, Tok, Token};
use crate::substitutes;

/// Expressions in an f-string inside an f-string and so on.
const MOST_NESTED_FSTRINGS: u32 = 4;

pub(crate) fn program(source: &str, nesting: u32) -> Result<Block, Error> {
    let mut parser = Parser { tokens: lexer::tokens(source)?, idx: 0, depth: 0, nesting, fstrings: 0 };
    let mut block = Vec::new();
    while *parser.peek() != Tok::End {
        if *parser.peek() == Tok::Indent {
            return Err(
                Error::syntax(parser.pos(), "unexpected indentation").with_hint("start the line at the left margin")
            );
        }
        parser.statement_line(&mut block)?;
    }
    Ok(block)
}

struct Parser {
    tokens: Vec<Token>,
    idx: usize,
    depth: u32,
    nesting: u32,
    fstrings: u32,
}

impl Parser {
    fn peek(&self) -> &Tok {
        self.tokens.get(self.idx).map_or(&Tok::End, |t| &t.tok)
    }

    fn peek_second(&self) -> &Tok {
        self.tokens.get(self.idx.saturating_add(1)).map_or(&Tok::End, |t| &t.tok)
    }

    fn pos(&self) -> Pos {
        self.tokens.get(self.idx).or(self.tokens.last()).map_or(Pos::default(), |t| t.pos)
    }

    fn at(&self, sign: &str) -> bool {
        matches!(self.peek(), Tok::Sign(s) if *s == sign)
    }

    fn eat(&mut self, sign: &str) -> bool {
        let found = self.at(sign);
        self.idx = self.idx.saturating_add(usize::from(found));
        found
    }

    fn expect(&mut self, sign: &str, place: &str) -> Result<(), Error> {
        if self.eat(sign) {
            return Ok(());
        }
        let error = Error::syntax(self.pos(), format!("expected `{sign}` {place}, found {}", self.peek().describe()));
        Err(match self.peek() {
            Tok::Sign("=") if sign == ":" => error.with_hint("write `==` to compare"),
            Tok::Sign("if") if sign == ":" => error.with_hint("write `elif`"),
            Tok::Sign("{") if sign == ":" => error.with_hint("write `:` and indent the block by four spaces"),
            _ if sign == ":" => error.with_hint("end the line with `:`, the block below is indented by four spaces"),
            _ if sign == "in" => error.with_hint("write `for x in xs:`, to count `for i in range(n):`"),
            Tok::Name(_) | Tok::Str(_) | Tok::Int(_) | Tok::Float(_) => {
                error.with_hint("put a comma or an operator between the two")
            }
            _ => error.with_hint(format!("write `{sign}` here")),
        })
    }

    fn name(&mut self, what: &str) -> Result<String, Error> {
        match self.peek().clone() {
            Tok::Name(name) => {
                self.idx = self.idx.saturating_add(1);
                Ok(name)
            }
            other => {
                let error = Error::syntax(self.pos(), format!("expected {what}, found {}", other.describe()));
                Err(match other {
                    Tok::Sign(word) if KEYWORDS.contains(&word) => {
                        error.with_hint("the word is reserved: choose another name")
                    }
                    _ => error,
                })
            }
        }
    }

    fn enter(&mut self) -> Result<(), Error> {
        self.depth = self.depth.saturating_add(1);
        if self.depth > self.nesting {
            return Err(Error::over("nesting", u64::from(self.nesting), u64::from(self.depth)).at(self.pos()));
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn build(&self, node: Node, pos: Pos) -> Result<Expr, Error> {
        Expr::new(node, pos, self.nesting)
    }

    fn block(&mut self, after: &str) -> Result<Block, Error> {
        self.expect(":", after)?;
        self.enter()?;
        let mut block = Vec::new();
        if *self.peek() == Tok::Newline {
            let pos = self.pos();
            self.idx = self.idx.saturating_add(1);
            if *self.peek() != Tok::Indent {
                return Err(Error::syntax(pos, format!("expected an indented block {after}"))
                    .with_hint("indent the block by four spaces, or write `pass`"));
            }
            self.idx = self.idx.saturating_add(1);
            while !matches!(self.peek(), Tok::Dedent | Tok::End) {
                if *self.peek() == Tok::Indent {
                    return Err(Error::syntax(self.pos(), "unexpected indentation")
                        .with_hint("indent each block by four spaces"));
                }
                self.statement_line(&mut block)?;
            }
            if *self.peek() == Tok::Dedent {
                self.idx = self.idx.saturating_add(1);
            }
        } else {
            self.simple_line(&mut block)?;
        }
        self.leave();
        Ok(block)
    }

    fn statement_line(&mut self, block: &mut Block) -> Result<(), Error> {
        let pos = self.pos();
        let Tok::Sign(word) = *self.peek() else { return self.simple_line(block) };
        let node = match word {
            "if" => self.if_statement()?,
            "for" => self.for_statement()?,
            "while" => self.while_statement()?,
            "try" => self.try_statement()?,
            "def" => self.def_statement()?,
            "class" => {
                return Err(Error::unsupported(
                    pos,
                    "`class` is not part of the language",
                    "use a dict: {\"name\": value}, read as d.name",
                ));
            }
            "with" => {
                return Err(Error::unsupported(
                    pos,
                    "`with` is not part of the language",
                    "call the tool directly: text = fs.read(path=\"..\")",
                ));
            }
            "async" => {
                return Err(Error::unsupported(
                    pos,
                    "`async` is not part of the language",
                    "call tools directly; side by side: a, b = gather(server.tool(..), server.tool(..))",
                ));
            }
            "@" => {
                return Err(Error::unsupported(
                    pos,
                    "decorators are not part of the language",
                    "call the function directly",
                ));
            }
            _ => return self.simple_line(block),
        };
        block.push(Stmt { node, pos });
        Ok(())
    }

    fn simple_line(&mut self, block: &mut Block) -> Result<(), Error> {
        loop {
            let pos = self.pos();
            let node = self.simple_statement()?;
            block.push(Stmt { node, pos });
            if self.eat(";") && *self.peek() != Tok::Newline {
                continue;
            }
            return match self.peek() {
                Tok::Newline => {
                    self.idx = self.idx.saturating_add(1);
                    Ok(())
                }
                Tok::End => Ok(()),
                found => {
                    let error =
                        Error::syntax(self.pos(), format!("expected the end of the line, found {}", found.describe()));
                    Err(match (found, self.idx.checked_sub(1).and_then(|i| self.tokens.get(i)).map(|t| &t.tok)) {
                        (_, Some(Tok::Name(name))) if substitutes::statement(name).is_some() => {
                            error.with_hint(substitutes::statement(name).unwrap_or_default())
                        }
                        (Tok::Sign(word), _) if KEYWORDS.contains(word) => error.with_hint("put a new line before it"),
                        (Tok::Sign("="), _) => error.with_hint("assign on a line of its own"),
                        (Tok::Indent, _) => error.with_hint("end the line above with `:` to open a block"),
                        (Tok::Name(_) | Tok::Str(_) | Tok::Int(_) | Tok::Float(_), _) => {
                            error.with_hint("put an operator, a comma or a new line between the two")
                        }
                        _ => error,
                    })
                }
            };
        }
    }

    fn simple_statement(&mut self) -> Result<StmtNode, Error> {
        let pos = self.pos();
        let Tok::Sign(word) = *self.peek() else { return self.expression_statement() };
        let bare = |parser: &mut Parser, node| {
            parser.idx = parser.idx.saturating_add(1);
            Ok(node)
        };
        match word {
            "pass" => bare(self, StmtNode::Pass),
            "break" => bare(self, StmtNode::Break),
            "continue" => bare(self, StmtNode::Continue),
            "return" => {
                self.idx = self.idx.saturating_add(1);
                let value = if self.ends_statement() { None } else { Some(self.expression_list()?) };
                Ok(StmtNode::Return(value))
            }
            "raise" => {
                self.idx = self.idx.saturating_add(1);
                let value = if self.ends_statement() { None } else { Some(self.expression()?) };
                if self.eat("from") {
                    self.expression()?;
                }
                Ok(StmtNode::Raise(value))
            }
            "assert" => {
                self.idx = self.idx.saturating_add(1);
                let condition = self.expression()?;
                let message = if self.eat(",") { Some(self.expression()?) } else { None };
                Ok(StmtNode::Assert { condition, message })
            }
            "del" => {
                self.idx = self.idx.saturating_add(1);
                let targets = match self.expression_list()? {
                    Expr { node: Node::Tuple(items), .. } => items,
                    one => vec![one],
                };
                for target in &targets {
                    if !matches!(target.node, Node::Name(_) | Node::Attr(..) | Node::Index(..) | Node::Slice(..)) {
                        return Err(Error::syntax(target.pos, "cannot delete this")
                            .with_hint("delete a name, an item or a slice"));
                    }
                }
                Ok(StmtNode::Del(targets))
            }
            "global" => {
                self.idx = self.idx.saturating_add(1);
                let mut names = vec![self.name("a name")?];
                while self.eat(",") {
                    names.push(self.name("a name")?);
                }
                Ok(StmtNode::Global(names))
            }
            "import" | "from" => {
                let substitute = match self.peek_second() {
                    Tok::Name(module) => substitutes::module(module),
                    _ => None,
                };
                Err(Error::unsupported(
                    pos,
                    format!("`{word}` is not part of the language"),
                    substitute.unwrap_or("delete the line: servers and built-ins are there by name"),
                ))
            }
            "nonlocal" => Err(Error::unsupported(
                pos,
                "`nonlocal` is not part of the language",
                "return the value, or use `global`",
            )),
            "yield" => Err(Error::unsupported(
                pos,
                "`yield` is not part of the language",
                "collect the values in a list and return it",
            )),
            "else" | "elif" | "except" | "finally" => {
                Err(Error::syntax(pos, format!("`{word}` without its opening statement"))
                    .with_hint("align it with its `if`, `for`, `while` or `try`"))
            }
            _ => self.expression_statement(),
        }
    }

    fn ends_statement(&self) -> bool {
        matches!(self.peek(), Tok::Newline | Tok::End | Tok::Sign(";"))
    }

    fn expression_statement(&mut self) -> Result<StmtNode, Error> {
        let first = self.expression_list()?;
        if self.eat(":") {
            check_target(&first)?;
            self.expression()?;
            if !self.at("=") {
                return Ok(StmtNode::Pass);
            }
        }
        if let Tok::Sign(sign) = *self.peek()
            && let Some((_, op)) = AUGMENTED.iter().find(|(s, _)| *s == sign)
        {
            self.idx = self.idx.saturating_add(1);
            if !matches!(first.node, Node::Name(_) | Node::Attr(..) | Node::Index(..)) {
                return Err(Error::syntax(first.pos, format!("cannot assign to this with `{sign}`"))
                    .with_hint("put a single name on the left"));
            }
            return Ok(StmtNode::Augmented { target: first, op: *op, value: self.expression_list()? });
        }
        if !self.at("=") {
            return Ok(StmtNode::Expr(first));
        }
        let mut sides = vec![first];
        while self.eat("=") {
            sides.push(self.expression_list()?);
        }
        let Some(value) = sides.pop() else { return Ok(StmtNode::Pass) };
        for target in &sides {
            check_target(target)?;
        }
        Ok(StmtNode::Assign { targets: sides, value })
    }

    fn if_statement(&mut self) -> Result<StmtNode, Error> {
        let mut arms = Vec::new();
        self.idx = self.idx.saturating_add(1);
        loop {
            let condition = self.expression()?;
            arms.push((condition, self.block("after the condition")?));
            if !self.eat("elif") {
                break;
            }
        }
        Ok(StmtNode::If { arms, other: self.else_block()? })
    }

    fn else_block(&mut self) -> Result<Block, Error> {
        if self.eat("else") { self.block("after `else`") } else { Ok(Vec::new()) }
    }

    fn for_statement(&mut self) -> Result<StmtNode, Error> {
        self.idx = self.idx.saturating_add(1);
        let target = self.target_list()?;
        self.expect("in", "after the loop variable")?;
        let iterable = self.expression_list()?;
        let body = self.block("after the `for` line")?;
        Ok(StmtNode::For { target, iterable, body, other: self.else_block()? })
    }

    fn while_statement(&mut self) -> Result<StmtNode, Error> {
        self.idx = self.idx.saturating_add(1);
        let condition = self.expression()?;
        let body = self.block("after the condition")?;
        Ok(StmtNode::While { condition, body, other: self.else_block()? })
    }

    fn try_statement(&mut self) -> Result<StmtNode, Error> {
        let pos = self.pos();
        self.idx = self.idx.saturating_add(1);
        let body = self.block("after `try`")?;
        let mut handlers: Vec<Handler> = Vec::new();
        while self.at("except") {
            let pos = self.pos();
            self.idx = self.idx.saturating_add(1);
            if handlers.last().is_some_and(|h| h.class.is_none()) {
                return Err(
                    Error::syntax(pos, "`except` after one that catches all").with_hint("put the bare `except:` last")
                );
            }
            let class = if self.at(":") { None } else { Some(self.expression_list()?) };
            let name = if self.eat("as") { Some(self.name("a name after `as`")?) } else { None };
            handlers.push(Handler { class, name, body: self.block("after `except`")?, pos });
        }
        let other = if handlers.is_empty() { Vec::new() } else { self.else_block()? };
        let finally = if self.eat("finally") { self.block("after `finally`")? } else { Vec::new() };
        if handlers.is_empty() && finally.is_empty() {
            return Err(Error::syntax(pos, "`try` without `except` or `finally`")
                .with_hint("add `except Exception as e:` below"));
        }
        Ok(StmtNode::Try { body, handlers, other, finally })
    }

    fn def_statement(&mut self) -> Result<StmtNode, Error> {
        self.idx = self.idx.saturating_add(1);
        let name = self.name("a function name")?;
        self.expect("(", "after the function name")?;
        let params = self.params(")")?;
        self.expect(")", "after the parameters")?;
        if self.eat("->") {
            self.expression()?;
        }
        Ok(StmtNode::Def { name, params, body: self.block("after the parameters")? })
    }

    fn params(&mut self, end: &str) -> Result<Vec<Param>, Error> {
        let mut params: Vec<Param> = Vec::new();
        while !self.at(end) {
            let pos = self.pos();
            if self.eat("/") {
                return Err(Error::unsupported(pos, "`/` in parameters is not part of the language", "leave it out"));
            }
            let kind = if self.eat("**") {
                ParamKind::Named
            } else if self.eat("*") {
                ParamKind::Rest
            } else {
                ParamKind::Plain
            };
            if kind == ParamKind::Rest && (self.at(",") || self.at(end)) {
                return Err(Error::unsupported(
                    pos,
                    "a bare `*` in parameters is not part of the language",
                    "leave it out",
                ));
            }
            let name = self.name("a parameter name")?;
            if params.iter().any(|p| p.name == name) {
                return Err(Error::syntax(pos, format!("parameter named twice: `{name}`")));
            }
            if end == ")" && self.eat(":") {
                self.expression()?;
            }
            let default = if kind == ParamKind::Plain && self.eat("=") { Some(self.expression()?) } else { None };
            if let Some(last) = params.last() {
                let order = match (last.kind, kind) {
                    (ParamKind::Plain, ParamKind::Plain) => last.default.is_none() || default.is_some(),
                    (ParamKind::Plain, _) | (ParamKind::Rest, ParamKind::Named) => true,
                    _ => false,
                };
                if !order {
                    return Err(Error::syntax(pos, format!("parameter out of order: `{name}`"))
                        .with_hint("order them: plain, with default, *args, **kwargs"));
                }
            }
            params.push(Param { name, default, kind });
            if !self.eat(",") {
                break;
            }
        }
        Ok(params)
    }
}

/// Refuses what cannot stand left of `=` or after `for`.
fn check_target(target: &Expr) -> Result<(), Error> {
    let hint = match &target.node {
        Node::Name(_) | Node::Attr(..) | Node::Index(..) | Node::Slice(..) => return Ok(()),
        Node::Tuple(items) | Node::List(items) => {
            let mut n_stars = 0u32;
            for item in items {
                match &item.node {
                    Node::Star(inner) => {
                        n_stars = n_stars.saturating_add(1);
                        check_target(inner)?;
                    }
                    _ => check_target(item)?,
                }
            }
            if n_stars > 1 {
                return Err(Error::syntax(target.pos, "more than one `*` on the left of `=`"));
            }
            return Ok(());
        }
        Node::Compare(..) => "write `==` only to compare, `=` to assign",
        Node::Call { .. } => "put the name on the left: x = f(..)",
        Node::Const(_) => "put the name on the left and the value on the right",
        _ => "put a name on the left of `=`",
    };
    Err(Error::syntax(target.pos, "cannot assign to this").with_hint(hint))
}
