//! Tokens to expressions, by binding power.

use super::{MOST_NESTED_FSTRINGS, Parser, check_target};
use crate::ast::*;
use crate::error::{Error, Pos};
use crate::lexer::{self, Piece, Tok};

/// Binding power of unary `-`: between the products and `**`.
const UNARY_POWER: u8 = 11;

impl Parser {
    /// One expression or several with commas between, which are a tuple.
    pub(super) fn expression_list(&mut self) -> Result<Expr, Error> {
        let pos = self.pos();
        let first = self.starred()?;
        if !self.at(",") {
            if let Node::Star(_) = first.node {
                return Err(Error::syntax(pos, "`*` stands alone").with_hint("write [*values]"));
            }
            return Ok(first);
        }
        let mut items = vec![first];
        while self.eat(",") {
            if self.ends_statement()
                || matches!(self.peek(), Tok::Sign("=" | ")" | "]" | "}" | ":" | "in") | Tok::Sign("+="))
            {
                break;
            }
            items.push(self.starred()?);
        }
        self.build(Node::Tuple(items), pos)
    }

    fn starred(&mut self) -> Result<Expr, Error> {
        let pos = self.pos();
        if self.eat("*") {
            let inner = self.expression()?;
            return self.build(Node::Star(Box::new(inner)), pos);
        }
        self.expression()
    }

    /// What stands between `for` and `in`.
    pub(super) fn target_list(&mut self) -> Result<Expr, Error> {
        let pos = self.pos();
        let mut items = Vec::new();
        let mut tuple = false;
        loop {
            let at = self.pos();
            let star = self.eat("*");
            self.enter()?;
            let item = self.postfix()?;
            self.leave();
            items.push(if star { self.build(Node::Star(Box::new(item)), at)? } else { item });
            if !self.eat(",") {
                break;
            }
            tuple = true;
            if self.at("in") {
                break;
            }
        }
        let target = match items.pop() {
            Some(one) if !tuple => one,
            last => {
                items.extend(last);
                self.build(Node::Tuple(items), pos)?
            }
        };
        check_target(&target)?;
        Ok(target)
    }

    pub(super) fn expression(&mut self) -> Result<Expr, Error> {
        self.enter()?;
        let pos = self.pos();
        let expr = if self.eat("lambda") {
            let params = self.params(":")?;
            self.expect(":", "after the parameters of `lambda`")?;
            let body = Box::new(self.expression()?);
            self.build(Node::Lambda { params, body }, pos)?
        } else {
            let then = self.or_expression()?;
            if self.eat("if") {
                let condition = Box::new(self.or_expression()?);
                if !self.eat("else") {
                    return Err(Error::syntax(
                        self.pos(),
                        format!("expected `else`, found {}", self.peek().describe()),
                    )
                    .with_hint("write `a if condition else b`"));
                }
                let other = Box::new(self.expression()?);
                self.build(Node::If { condition, then: Box::new(then), other }, pos)?
            } else {
                then
            }
        };
        if self.at(":=") {
            return Err(Error::unsupported(
                self.pos(),
                "`:=` is not part of the language",
                "assign on a line of its own",
            ));
        }
        self.leave();
        Ok(expr)
    }

    fn or_expression(&mut self) -> Result<Expr, Error> {
        self.logic("or", |parser| parser.logic("and", Parser::not_expression))
    }

    fn logic(&mut self, word: &str, operand: impl Fn(&mut Parser) -> Result<Expr, Error>) -> Result<Expr, Error> {
        let pos = self.pos();
        let first = operand(self)?;
        if !self.at(word) {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.eat(word) {
            operands.push(operand(self)?);
        }
        self.build(Node::Logic(word == "and", operands), pos)
    }

    fn not_expression(&mut self) -> Result<Expr, Error> {
        let pos = self.pos();
        if self.eat("not") {
            self.enter()?;
            let operand = Box::new(self.not_expression()?);
            self.leave();
            return self.build(Node::Unary(UnOp::Not, operand), pos);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expr, Error> {
        let pos = self.pos();
        let first = self.binary(0)?;
        let mut rest = Vec::new();
        while let Some(op) = self.comparison_sign()? {
            rest.push((op, self.binary(0)?));
        }
        if rest.is_empty() { Ok(first) } else { self.build(Node::Compare(Box::new(first), rest), pos) }
    }

    fn comparison_sign(&mut self) -> Result<Option<CmpOp>, Error> {
        let Tok::Sign(sign) = *self.peek() else { return Ok(None) };
        let op = match (sign, self.peek_second()) {
            ("not", Tok::Sign("in")) => {
                self.idx = self.idx.saturating_add(1);
                CmpOp::NotIn
            }
            ("is", Tok::Sign("not")) => {
                self.idx = self.idx.saturating_add(1);
                CmpOp::IsNot
            }
            _ => match COMPARISONS.iter().find(|(s, _)| *s == sign) {
                Some((_, op)) => *op,
                None => return Ok(None),
            },
        };
        self.idx = self.idx.saturating_add(1);
        if self.at("=") {
            return Err(Error::syntax(self.pos(), "unexpected `=` in a comparison").with_hint("write `==`"));
        }
        Ok(Some(op))
    }

    fn binary(&mut self, least: u8) -> Result<Expr, Error> {
        let pos = self.pos();
        let mut left = self.unary()?;
        while let Tok::Sign(sign) = *self.peek() {
            let Some((_, op, power)) = BINARY.iter().find(|(s, _, _)| *s == sign) else { break };
            if *power < least {
                break;
            }
            let op_pos = self.pos();
            self.idx = self.idx.saturating_add(1);
            let right = if *op == BinOp::Pow {
                self.enter()?;
                let right = self.binary(UNARY_POWER)?;
                self.leave();
                right
            } else {
                self.binary(power.saturating_add(1))?
            };
            left =
                self.build(Node::Binary(*op, Box::new(left), Box::new(right)), if least == 0 { op_pos } else { pos })?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, Error> {
        let pos = self.pos();
        let op = match self.peek() {
            Tok::Sign("-") => UnOp::Neg,
            Tok::Sign("+") => UnOp::Pos,
            Tok::Sign("~") => UnOp::Invert,
            Tok::Sign("await") => {
                self.idx = self.idx.saturating_add(1);
                return self.postfix();
            }
            _ => return self.postfix(),
        };
        self.idx = self.idx.saturating_add(1);
        if op == UnOp::Neg && *self.peek() == Tok::Least && *self.peek_second() != Tok::Sign("**") {
            self.idx = self.idx.saturating_add(1);
            return self.build(Node::Const(Const::Int(i64::MIN)), pos);
        }
        self.enter()?;
        let operand = self.binary(UNARY_POWER)?;
        self.leave();
        self.build(Node::Unary(op, Box::new(operand)), pos)
    }

    pub(super) fn postfix(&mut self) -> Result<Expr, Error> {
        let mut expr = self.atom()?;
        loop {
            let pos = self.pos();
            if self.eat(".") {
                let name_pos = self.pos();
                let name = match self.peek().clone() {
                    Tok::Sign(word) if lexer::KEYWORDS.contains(&word) => {
                        self.idx = self.idx.saturating_add(1);
                        word.to_owned()
                    }
                    _ => self.name("a name after `.`")?,
                };
                expr = self.build(Node::Attr(Box::new(expr), name), name_pos)?;
            } else if self.eat("(") {
                let args = self.arguments()?;
                let at = expr.pos;
                expr = self.build(Node::Call { callee: Box::new(expr), args }, at)?;
            } else if self.eat("[") {
                expr = self.subscript(expr, pos)?;
            } else {
                return Ok(expr);
            }
        }
    }

    fn subscript(&mut self, value: Expr, pos: Pos) -> Result<Expr, Error> {
        let mut parts: [Option<Box<Expr>>; 3] = [None, None, None];
        let mut n_colons = 0usize;
        if !self.at(":") {
            let index = self.expression_list()?;
            if self.eat("]") {
                return self.build(Node::Index(Box::new(value), Box::new(index)), pos);
            }
            parts[0] = Some(Box::new(index));
        }
        while self.eat(":") {
            n_colons = n_colons.saturating_add(1);
            if n_colons > 2 {
                return Err(Error::syntax(self.pos(), "too many `:` in a slice"));
            }
            if !self.at(":") && !self.at("]") {
                let part = Some(Box::new(self.expression()?));
                if let Some(place) = parts.get_mut(n_colons) {
                    *place = part;
                }
            }
        }
        self.expect("]", "after the index")?;
        self.build(Node::Slice(Box::new(value), parts), pos)
    }

    fn arguments(&mut self) -> Result<Vec<Arg>, Error> {
        let mut args: Vec<Arg> = Vec::new();
        while !self.eat(")") {
            let pos = self.pos();
            let arg = if self.eat("**") {
                Arg::DoubleStar(self.expression()?)
            } else if self.eat("*") {
                Arg::Star(self.expression()?)
            } else if let (Tok::Name(name), Tok::Sign("=")) = (self.peek().clone(), self.peek_second()) {
                self.idx = self.idx.saturating_add(2);
                if args.iter().any(|a| matches!(a, Arg::Named(other, _) if *other == name)) {
                    return Err(Error::syntax(pos, format!("argument given twice: `{name}`")));
                }
                Arg::Named(name, self.expression()?)
            } else if let (Tok::Sign(word), Tok::Sign("=")) = (self.peek().clone(), self.peek_second())
                && lexer::KEYWORDS.contains(&word)
            {
                return Err(Error::syntax(pos, format!("reserved word as an argument: `{word}`"))
                    .with_hint(format!("write `{word}_=`, or see the tool's signature")));
            } else {
                let value = self.expression()?;
                if self.at("for") {
                    let comp = self.clauses(Collection::List, value, None, pos)?;
                    if !self.at(")") || !args.is_empty() {
                        return Err(Error::syntax(pos, "generator expression beside other arguments")
                            .with_hint("put it in brackets: f([x for x in xs], ..)"));
                    }
                    Arg::Plain(comp)
                } else {
                    if args.iter().any(|a| matches!(a, Arg::Named(..) | Arg::DoubleStar(_))) {
                        return Err(Error::syntax(pos, "positional argument after a named one")
                            .with_hint("name it too: f(a=1, b=2)"));
                    }
                    Arg::Plain(value)
                }
            };
            args.push(arg);
            if !self.eat(",") {
                self.expect(")", "after the arguments")?;
                break;
            }
        }
        Ok(args)
    }

    fn clauses(&mut self, kind: Collection, element: Expr, value: Option<Expr>, pos: Pos) -> Result<Expr, Error> {
        let mut clauses = Vec::new();
        while self.eat("for") {
            let target = self.target_list()?;
            self.expect("in", "after the loop variable")?;
            self.enter()?;
            let iterable = self.or_expression()?;
            let mut conditions = Vec::new();
            while self.eat("if") {
                conditions.push(self.or_expression()?);
            }
            self.leave();
            clauses.push(Clause { target, iterable, conditions });
        }
        if let Node::Star(_) = element.node {
            return Err(Error::syntax(pos, "`*` in a comprehension")
                .with_hint("use two `for` clauses: [x for xs in lists for x in xs]"));
        }
        self.build(Node::Comprehension(Box::new(Comprehension { kind, element, value, clauses })), pos)
    }

    fn atom(&mut self) -> Result<Expr, Error> {
        let pos = self.pos();
        let tok = self.peek().clone();
        let node = match tok {
            Tok::Name(name) => Node::Name(name),
            Tok::Int(n) => Node::Const(Const::Int(n)),
            Tok::Least => return Err(lexer::whole_number(pos)),
            Tok::Float(n) => Node::Const(Const::Float(n)),
            Tok::Sign("None") => Node::Const(Const::None),
            Tok::Sign("True") => Node::Const(Const::Bool(true)),
            Tok::Sign("False") => Node::Const(Const::Bool(false)),
            Tok::Str(_) | Tok::FString(_) => return self.strings(),
            Tok::Sign("(") => return self.parenthesized(),
            Tok::Sign("[") => return self.list(),
            Tok::Sign("{") => return self.braces(),
            Tok::Sign("yield") => {
                return Err(Error::unsupported(
                    pos,
                    "`yield` is not part of the language",
                    "collect the values in a list and return it",
                ));
            }
            Tok::Sign("lambda" | "not") => {
                return Err(
                    Error::syntax(pos, format!("unexpected {}", tok.describe())).with_hint("put it in parentheses")
                );
            }
            other => {
                let error = Error::syntax(pos, format!("expected a value, found {}", other.describe()));
                let before =
                    |back: usize| self.idx.checked_sub(back).and_then(|idx| self.tokens.get(idx)).map(|t| &t.tok);
                return Err(match other {
                    _ if before(1) == before(2) && matches!(before(1), Some(Tok::Sign("+" | "-"))) => {
                        error.with_hint("write `x += 1` or `x -= 1`")
                    }
                    Tok::Sign(">") if before(1) == Some(&Tok::Sign("=")) => error.with_hint("write `lambda x: ..`"),
                    Tok::Sign("//") => error.with_hint("write `#` before a comment"),
                    Tok::Sign("=") => error.with_hint("write `==` to compare"),
                    Tok::Sign(".") => error.with_hint("write `None` where a value is left out"),
                    Tok::Sign(word) if lexer::KEYWORDS.contains(&word) => {
                        error.with_hint("the word is reserved: choose another name")
                    }
                    Tok::Newline | Tok::End => error.with_hint("finish the line: a value is missing at its end"),
                    _ => error.with_hint("put a value, a name or a call here"),
                });
            }
        };
        self.idx = self.idx.saturating_add(1);
        self.build(node, pos)
    }

    fn parenthesized(&mut self) -> Result<Expr, Error> {
        let pos = self.pos();
        self.idx = self.idx.saturating_add(1);
        if self.eat(")") {
            return self.build(Node::Tuple(Vec::new()), pos);
        }
        let expr = self.expression_list()?;
        if self.at("for") {
            let comp = self.clauses(Collection::List, expr, None, pos)?;
            self.expect(")", "after the comprehension")?;
            return Ok(comp);
        }
        self.expect(")", "after the expression")?;
        Ok(expr)
    }

    fn list(&mut self) -> Result<Expr, Error> {
        let pos = self.pos();
        self.idx = self.idx.saturating_add(1);
        let mut items = Vec::new();
        while !self.eat("]") {
            items.push(self.starred()?);
            if items.len() == 1 && self.at("for") {
                let comp = match items.pop() {
                    Some(element) => self.clauses(Collection::List, element, None, pos)?,
                    None => break,
                };
                self.expect("]", "after the comprehension")?;
                return Ok(comp);
            }
            if !self.eat(",") {
                self.expect("]", "after the items")?;
                break;
            }
        }
        self.build(Node::List(items), pos)
    }

    fn braces(&mut self) -> Result<Expr, Error> {
        let pos = self.pos();
        self.idx = self.idx.saturating_add(1);
        let mut pairs = Vec::new();
        let mut items = Vec::new();
        while !self.eat("}") {
            if self.eat("**") {
                self.enter()?;
                pairs.push((None, self.or_expression()?));
                self.leave();
            } else {
                let key = self.starred()?;
                if self.eat(":") {
                    let value = self.expression()?;
                    if self.at("for") && pairs.is_empty() {
                        let comp = self.clauses(Collection::Dict, key, Some(value), pos)?;
                        self.expect("}", "after the comprehension")?;
                        return Ok(comp);
                    }
                    pairs.push((Some(key), value));
                } else if self.at("for") && items.is_empty() {
                    let comp = self.clauses(Collection::Set, key, None, pos)?;
                    self.expect("}", "after the comprehension")?;
                    return Ok(comp);
                } else {
                    items.push(key);
                }
            }
            if !pairs.is_empty() && !items.is_empty() {
                return Err(Error::syntax(self.pos(), "expected `:` after a key").with_hint("write {\"key\": value}"));
            }
            if !self.eat(",") {
                self.expect("}", "after the items")?;
                break;
            }
        }
        self.build(if items.is_empty() { Node::Dict(pairs) } else { Node::Set(items) }, pos)
    }

    fn strings(&mut self) -> Result<Expr, Error> {
        let pos = self.pos();
        let mut fragments = Vec::new();
        loop {
            match self.peek().clone() {
                Tok::Str(text) => fragments.push(Fragment::Text(text)),
                Tok::FString(pieces) => fragments.extend(self.fragments(pieces)?),
                _ => break,
            }
            self.idx = self.idx.saturating_add(1);
        }
        let mut joined: Vec<Fragment> = Vec::new();
        for fragment in fragments {
            match (joined.last_mut(), fragment) {
                (Some(Fragment::Text(before)), Fragment::Text(text)) => before.push_str(&text),
                (_, fragment) => joined.push(fragment),
            }
        }
        let node = match joined.as_slice() {
            [] => Node::Const(Const::Str(String::new())),
            [Fragment::Text(text)] => Node::Const(Const::Str(text.clone())),
            _ => Node::FString(joined),
        };
        self.build(node, pos)
    }

    fn fragments(&mut self, pieces: Vec<Piece>) -> Result<Vec<Fragment>, Error> {
        let mut fragments = Vec::new();
        for piece in pieces {
            fragments.push(match piece {
                Piece::Text(text) => Fragment::Text(text),
                Piece::Field { source, pos, conversion, spec } => {
                    let value = self.field(&source, pos)?;
                    Fragment::Field { value, conversion, spec: self.fragments(spec)? }
                }
            });
        }
        Ok(fragments)
    }

    fn field(&mut self, source: &str, pos: Pos) -> Result<Expr, Error> {
        if self.fstrings >= MOST_NESTED_FSTRINGS {
            let (limit, used) = (u64::from(MOST_NESTED_FSTRINGS), u64::from(self.fstrings).saturating_add(1));
            return Err(Error::over("f-string nesting", limit, used).at(pos));
        }
        let tokens = lexer::expression_tokens(source, pos)?;
        let mut inner = Parser {
            tokens,
            idx: 0,
            depth: self.depth,
            nesting: self.nesting,
            fstrings: self.fstrings.saturating_add(1),
        };
        let value = inner.expression_list()?;
        if *inner.peek() != Tok::End {
            return Err(Error::syntax(
                inner.pos(),
                format!("expected `}}` after the value, found {}", inner.peek().describe()),
            ));
        }
        Ok(value)
    }
}
