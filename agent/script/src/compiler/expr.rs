//! Expressions and targets to instructions.

use super::{Compiler, Scope, interned};
use crate::ast::*;
use crate::code::Op;
use crate::error::{Error, Pos};

impl Compiler {
    pub(super) fn expr(&mut self, expr: &Expr) -> Result<(), Error> {
        let pos = expr.pos;
        let op = match &expr.node {
            Node::Const(value) => return self.constant(value.clone(), pos),
            Node::Name(name) => return self.load(name, pos, false),
            Node::FString(fragments) => return self.fragments(fragments, pos),
            Node::List(items) => return self.items(items, Collection::List, pos),
            Node::Set(items) => return self.items(items, Collection::Set, pos),
            Node::Tuple(items) => {
                if items.iter().any(|item| matches!(item.node, Node::Star(_))) {
                    let tuple = interned(&mut self.scope().code.globals, "tuple");
                    self.emit(Op::LoadGlobal(tuple), pos)?;
                    self.items(items, Collection::List, pos)?;
                    Op::Call { n_plain: 1, n_named: 0, first: 0 }
                } else {
                    self.exprs(items)?;
                    Op::MakeTuple(items.len() as u32)
                }
            }
            Node::Dict(pairs) => return self.dict(pairs, pos),
            Node::Unary(op, operand) => {
                if let (UnOp::Neg, Node::Const(Const::Int(n))) = (op, &operand.node) {
                    return self.constant(Const::Int(n.saturating_neg()), pos);
                }
                self.expr(operand)?;
                Op::Unary(*op)
            }
            Node::Binary(op, left, right) => {
                self.expr(left)?;
                self.expr(right)?;
                Op::Binary(*op)
            }
            Node::Logic(and, operands) => {
                let mut ends = Vec::new();
                for (i, operand) in operands.iter().enumerate() {
                    self.expr(operand)?;
                    if i.saturating_add(1) < operands.len() {
                        ends.push(self.emit(if *and { Op::JumpIfFalseOrPop(0) } else { Op::JumpIfTrueOrPop(0) }, pos)?);
                    }
                }
                ends.into_iter().for_each(|end| self.land(end));
                return Ok(());
            }
            Node::Compare(first, rest) => return self.comparison(first, rest, pos),
            Node::If { condition, then, other } => {
                self.expr(condition)?;
                let skip = self.emit(Op::JumpIfFalse(0), pos)?;
                self.expr(then)?;
                let end = self.emit(Op::Jump(0), pos)?;
                self.land(skip);
                self.expr(other)?;
                self.land(end);
                return Ok(());
            }
            Node::Call { callee, args } => return self.call(callee, args, pos),
            Node::Attr(value, name) => {
                self.expr(value)?;
                Op::GetAttr(self.attr_name(name))
            }
            Node::Index(value, index) => {
                self.expr(value)?;
                self.expr(index)?;
                Op::GetItem
            }
            Node::Slice(value, parts) => {
                self.expr(value)?;
                self.slice_parts(parts, pos)?;
                Op::GetSlice
            }
            Node::Comprehension(comp) => return self.comprehension(comp, false, pos),
            Node::Lambda { params, body } => return self.lambda(params, body, pos),
            Node::Star(_) => {
                return Err(Error::syntax(pos, "`*` stands where no list is built").with_hint("write [*values]"));
            }
        };
        self.emit(op, pos)?;
        Ok(())
    }

    fn exprs(&mut self, exprs: &[Expr]) -> Result<(), Error> {
        exprs.iter().try_for_each(|e| self.expr(e))
    }

    fn slice_parts(&mut self, parts: &[Option<Box<Expr>>; 3], pos: Pos) -> Result<(), Error> {
        for part in parts {
            match part {
                Some(part) => self.expr(part)?,
                None => self.constant(Const::None, pos)?,
            }
        }
        Ok(())
    }

    fn items(&mut self, items: &[Expr], kind: Collection, pos: Pos) -> Result<(), Error> {
        let make = |n: usize| if kind == Collection::List { Op::MakeList(n as u32) } else { Op::MakeSet(n as u32) };
        let plain = items.iter().position(|item| matches!(item.node, Node::Star(_))).unwrap_or(items.len());
        let (head, tail) = items.split_at(plain);
        self.exprs(head)?;
        self.emit(make(head.len()), pos)?;
        for item in tail {
            match &item.node {
                Node::Star(inner) => self.expr(inner)?,
                _ => {
                    self.expr(item)?;
                    self.emit(Op::MakeList(1), item.pos)?;
                }
            }
            self.emit(Op::Extend, item.pos)?;
        }
        Ok(())
    }

    fn dict(&mut self, pairs: &[(Option<Expr>, Expr)], pos: Pos) -> Result<(), Error> {
        let plain = pairs.iter().position(|(key, _)| key.is_none()).unwrap_or(pairs.len());
        let (head, tail) = pairs.split_at(plain);
        for (key, value) in head {
            if let Some(key) = key {
                self.expr(key)?;
            }
            self.expr(value)?;
        }
        self.emit(Op::MakeDict(head.len() as u32), pos)?;
        for (key, value) in tail {
            if let Some(key) = key {
                self.expr(key)?;
                self.expr(value)?;
                self.emit(Op::MakeDict(1), value.pos)?;
            } else {
                self.expr(value)?;
            }
            self.emit(Op::Extend, value.pos)?;
        }
        Ok(())
    }

    fn comparison(&mut self, first: &Expr, rest: &[(CmpOp, Expr)], pos: Pos) -> Result<(), Error> {
        self.expr(first)?;
        let mut falls = Vec::new();
        for (i, (op, right)) in rest.iter().enumerate() {
            self.expr(right)?;
            if i.saturating_add(1) < rest.len() {
                self.emit(Op::Dup, pos)?;
                self.emit(Op::RotateThree, pos)?;
                self.emit(Op::Compare(*op), pos)?;
                falls.push(self.emit(Op::JumpIfFalseOrPop(0), pos)?);
            } else {
                self.emit(Op::Compare(*op), pos)?;
            }
        }
        if falls.is_empty() {
            return Ok(());
        }
        let end = self.emit(Op::Jump(0), pos)?;
        falls.into_iter().for_each(|fall| self.land(fall));
        self.emit(Op::Swap, pos)?;
        self.emit(Op::Pop, pos)?;
        self.land(end);
        Ok(())
    }

    fn fragments(&mut self, fragments: &[Fragment], pos: Pos) -> Result<(), Error> {
        for fragment in fragments {
            match fragment {
                Fragment::Text(text) => self.constant(Const::Str(text.clone()), pos)?,
                Fragment::Field { value, conversion, spec } => {
                    self.expr(value)?;
                    self.fragments(spec, value.pos)?;
                    self.emit(Op::Format(matches!(conversion, Some('r' | 'a'))), value.pos)?;
                }
            }
        }
        self.emit(Op::Join(fragments.len() as u32), pos)?;
        Ok(())
    }

    fn call(&mut self, callee: &Expr, args: &[Arg], pos: Pos) -> Result<(), Error> {
        if self.is_gather(callee) {
            return self.gather(args, pos);
        }
        self.plain_call(callee, args, false, pos)
    }

    /// A call; with `defer`, a tool is not called yet.
    pub(super) fn plain_call(&mut self, callee: &Expr, args: &[Arg], defer: bool, pos: Pos) -> Result<(), Error> {
        let method = match &callee.node {
            Node::Attr(value, name) => {
                self.expr(value)?;
                let owner = match &value.node {
                    Node::Name(owner) => Some(self.attr_name(owner)),
                    _ => None,
                };
                Some((self.attr_name(name), owner, callee.pos))
            }
            Node::Name(name) => {
                self.load(name, callee.pos, true)?;
                None
            }
            _ => {
                self.expr(callee)?;
                None
            }
        };
        if args.iter().any(|a| matches!(a, Arg::Star(_) | Arg::DoubleStar(_))) {
            self.spread(args, pos)?;
            let op = match method {
                Some((name, owner, _)) if defer => Op::DeferSpread { name, owner },
                Some((name, owner, _)) => Op::CallMethodSpread { name, owner },
                None => Op::CallSpread,
            };
            self.emit(op, method.map_or(pos, |(_, _, at)| at))?;
            return Ok(());
        }
        let mut names = Vec::new();
        for arg in args {
            match arg {
                Arg::Named(name, value) => {
                    names.push(name.clone());
                    self.expr(value)?;
                }
                Arg::Plain(value) | Arg::Star(value) | Arg::DoubleStar(value) => self.expr(value)?,
            }
        }
        let n_named = names.len() as u32;
        let n_plain = (args.len() as u32).saturating_sub(n_named);
        let code = &mut self.scope().code;
        let first = code.names.len() as u32;
        code.names.extend(names.into_iter().map(Into::into));
        let op = match method {
            Some((name, owner, _)) if defer => Op::Defer { name, owner, n_plain, n_named, first },
            Some((name, owner, _)) => Op::CallMethod { name, owner, n_plain, n_named, first },
            None => Op::Call { n_plain, n_named, first },
        };
        self.emit(op, method.map_or(pos, |(_, _, at)| at))?;
        Ok(())
    }

    fn spread(&mut self, args: &[Arg], pos: Pos) -> Result<(), Error> {
        self.emit(Op::MakeList(0), pos)?;
        for arg in args {
            match arg {
                Arg::Plain(value) => {
                    self.expr(value)?;
                    self.emit(Op::MakeList(1), value.pos)?;
                    self.emit(Op::Extend, value.pos)?;
                }
                Arg::Star(value) => {
                    self.expr(value)?;
                    self.emit(Op::Extend, value.pos)?;
                }
                _ => {}
            }
        }
        self.emit(Op::MakeDict(0), pos)?;
        for arg in args {
            match arg {
                Arg::Named(name, value) => {
                    self.constant(Const::Str(name.clone()), value.pos)?;
                    self.expr(value)?;
                    self.emit(Op::MakeDict(1), value.pos)?;
                    self.emit(Op::ExtendKeywords, value.pos)?;
                }
                Arg::DoubleStar(value) => {
                    self.expr(value)?;
                    self.emit(Op::ExtendKeywords, value.pos)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn comprehension(&mut self, comp: &Comprehension, defer: bool, pos: Pos) -> Result<(), Error> {
        let make = match comp.kind {
            Collection::List => Op::MakeList(0),
            Collection::Set => Op::MakeSet(0),
            Collection::Dict => Op::MakeDict(0),
        };
        let n_names = self.scope().names.len();
        let out = self.scope().slot("");
        self.emit(make, pos)?;
        self.emit(Op::StoreLocal(out), pos)?;
        let mut loops = Vec::new();
        for clause in &comp.clauses {
            self.expr(&clause.iterable)?;
            self.emit(Op::Iterate, clause.iterable.pos)?;
            let start = self.here();
            loops.push((start, self.emit(Op::Next(0), clause.target.pos)?));
            self.bind_hidden(&clause.target);
            self.assign(&clause.target)?;
            for condition in &clause.conditions {
                self.expr(condition)?;
                self.emit(Op::JumpIfFalse(start), condition.pos)?;
            }
        }
        self.emit(Op::LoadLocal(out), pos)?;
        if defer {
            self.deferred(&comp.element)?;
        } else {
            self.expr(&comp.element)?;
        }
        match &comp.value {
            Some(value) => {
                self.expr(value)?;
                self.emit(Op::AddPair, pos)?;
            }
            None => {
                self.emit(Op::Add, pos)?;
            }
        }
        while let Some((start, exit)) = loops.pop() {
            self.emit(Op::Jump(start), pos)?;
            self.land(exit);
        }
        self.scope().names.truncate(n_names);
        self.emit(Op::LoadLocal(out), pos)?;
        Ok(())
    }

    fn bind_hidden(&mut self, target: &Expr) {
        match &target.node {
            Node::Name(name) => {
                self.scope().bind(name);
            }
            Node::Tuple(items) | Node::List(items) => items.iter().for_each(|item| self.bind_hidden(item)),
            Node::Star(inner) => self.bind_hidden(inner),
            _ => {}
        }
    }

    fn lambda(&mut self, params: &[Param], body: &Expr, pos: Pos) -> Result<(), Error> {
        let mut n_defaults = 0u32;
        for default in params.iter().filter_map(|p| p.default.as_ref()) {
            self.expr(default)?;
            n_defaults = n_defaults.saturating_add(1);
        }
        let mut scope = Scope::new("lambda", true);
        scope.is_lambda = true;
        for param in params {
            scope.bind(&param.name);
            scope.code.params.push(param.kind);
        }
        let mut free = Vec::new();
        names_read(body, &mut free);
        for name in free {
            if scope.local(&name).is_none() && self.scope().local(&name).is_some() {
                scope.captures.push(name.clone());
                scope.bind(&name);
            }
        }
        scope.code.n_captured = scope.captures.len() as u32;
        let captures = scope.captures.clone();
        self.inner.push(scope);
        self.expr(body)?;
        self.emit(Op::Return, pos)?;
        self.finish(pos)?;
        let code = (self.codes.len() as u32).saturating_sub(1);
        for name in &captures {
            self.load(name, pos, false)?;
        }
        self.emit(Op::MakeFunction { code, n_defaults, n_captured: captures.len() as u32 }, pos)?;
        Ok(())
    }

    pub(super) fn load(&mut self, name: &str, pos: Pos, called: bool) -> Result<(), Error> {
        let scope = self.scope();
        let op = match scope.local(name) {
            Some(slot) => Op::LoadLocal(slot),
            None => {
                let global = interned(&mut scope.code.globals, name);
                if called { Op::LoadCallee(global) } else { Op::LoadGlobal(global) }
            }
        };
        self.emit(op, pos)?;
        Ok(())
    }

    pub(super) fn store(&mut self, name: &str, pos: Pos) -> Result<(), Error> {
        let scope = self.scope();
        let op = match scope.local(name) {
            Some(slot) => Op::StoreLocal(slot),
            None => Op::StoreGlobal(interned(&mut scope.code.globals, name)),
        };
        self.emit(op, pos)?;
        Ok(())
    }

    /// Stores the value on top of the stack.
    pub(super) fn assign(&mut self, target: &Expr) -> Result<(), Error> {
        let pos = target.pos;
        let op = match &target.node {
            Node::Name(name) => return self.store(name, pos),
            Node::Attr(value, name) => {
                self.expr(value)?;
                Op::SetAttr(self.attr_name(name))
            }
            Node::Index(value, index) => {
                self.expr(value)?;
                self.expr(index)?;
                Op::SetItem
            }
            Node::Slice(value, parts) => {
                self.expr(value)?;
                self.slice_parts(parts, pos)?;
                Op::SetSlice
            }
            Node::Tuple(items) | Node::List(items) => {
                let star = items.iter().position(|item| matches!(item.node, Node::Star(_)));
                let op = match star {
                    Some(at) => Op::UnpackRest {
                        before: at as u32,
                        after: items.len().saturating_sub(at).saturating_sub(1) as u32,
                    },
                    None => Op::Unpack(items.len() as u32),
                };
                self.emit(op, pos)?;
                for item in items {
                    match &item.node {
                        Node::Star(inner) => self.assign(inner)?,
                        _ => self.assign(item)?,
                    }
                }
                return Ok(());
            }
            _ => return Err(Error::syntax(pos, "cannot assign to this").with_hint("put a name on the left of `=`")),
        };
        self.emit(op, pos)?;
        Ok(())
    }

    pub(super) fn augmented(&mut self, target: &Expr, op: BinOp, value: &Expr, pos: Pos) -> Result<(), Error> {
        match &target.node {
            Node::Attr(owner, name) => {
                let name = self.attr_name(name);
                self.expr(owner)?;
                self.emit(Op::Dup, pos)?;
                self.emit(Op::GetAttr(name), target.pos)?;
                self.expr(value)?;
                self.emit(Op::Augment(op), pos)?;
                self.emit(Op::Swap, pos)?;
                self.emit(Op::SetAttr(name), target.pos)?;
            }
            Node::Index(owner, index) => {
                self.expr(owner)?;
                self.expr(index)?;
                self.emit(Op::DupTwo, pos)?;
                self.emit(Op::GetItem, target.pos)?;
                self.expr(value)?;
                self.emit(Op::Augment(op), pos)?;
                self.emit(Op::RotateThree, pos)?;
                self.emit(Op::SetItem, target.pos)?;
            }
            Node::Name(name) if op == BinOp::Add => {
                let scope = self.scope();
                let (load, grow) = match scope.local(name) {
                    Some(slot) => (Op::LoadGrowing(slot), Op::Grow(slot)),
                    None => {
                        let global = interned(&mut scope.code.globals, name);
                        (Op::LoadGlobalGrowing(global), Op::GrowGlobal(global))
                    }
                };
                self.emit(load, target.pos)?;
                self.expr(value)?;
                self.emit(grow, pos)?;
            }
            _ => {
                self.expr(target)?;
                self.expr(value)?;
                self.emit(Op::Augment(op), pos)?;
                self.assign(target)?;
            }
        }
        Ok(())
    }

    pub(super) fn delete(&mut self, target: &Expr) -> Result<(), Error> {
        let pos = target.pos;
        let op = match &target.node {
            Node::Name(name) => {
                let scope = self.scope();
                match scope.local(name) {
                    Some(slot) => Op::DeleteLocal(slot),
                    None => Op::DeleteGlobal(interned(&mut scope.code.globals, name)),
                }
            }
            Node::Attr(value, name) => {
                self.expr(value)?;
                Op::DeleteAttr(self.attr_name(name))
            }
            Node::Index(value, index) => {
                self.expr(value)?;
                self.expr(index)?;
                Op::DeleteItem
            }
            Node::Slice(value, parts) => {
                self.expr(value)?;
                self.slice_parts(parts, pos)?;
                Op::DeleteSlice
            }
            _ => return Err(Error::syntax(pos, "cannot delete this").with_hint("delete a name, an item or a slice")),
        };
        self.emit(op, pos)?;
        Ok(())
    }
}

/// Every name that an expression reads, whatever binds it.
fn names_read(expr: &Expr, names: &mut Vec<String>) {
    match &expr.node {
        Node::Const(_) => {}
        Node::Name(name) => names.push(name.clone()),
        Node::FString(fragments) => names_in_fragments(fragments, names),
        Node::List(items) | Node::Tuple(items) | Node::Set(items) | Node::Logic(_, items) => {
            items.iter().for_each(|e| names_read(e, names));
        }
        Node::Dict(pairs) => {
            for (key, value) in pairs {
                key.iter().chain([value]).for_each(|e| names_read(e, names));
            }
        }
        Node::Unary(_, e) | Node::Attr(e, _) | Node::Star(e) => names_read(e, names),
        Node::Binary(_, a, b) | Node::Index(a, b) => [a, b].into_iter().for_each(|e| names_read(e, names)),
        Node::Compare(first, rest) => {
            names_read(first, names);
            rest.iter().for_each(|(_, e)| names_read(e, names));
        }
        Node::If { condition, then, other } => [condition, then, other].into_iter().for_each(|e| names_read(e, names)),
        Node::Call { callee, args } => {
            names_read(callee, names);
            for arg in args {
                match arg {
                    Arg::Plain(e) | Arg::Named(_, e) | Arg::Star(e) | Arg::DoubleStar(e) => names_read(e, names),
                }
            }
        }
        Node::Slice(e, parts) => {
            names_read(e, names);
            parts.iter().flatten().for_each(|e| names_read(e, names));
        }
        Node::Comprehension(comp) => {
            for clause in &comp.clauses {
                names_read(&clause.iterable, names);
                clause.conditions.iter().for_each(|e| names_read(e, names));
            }
            [&comp.element].into_iter().chain(&comp.value).for_each(|e| names_read(e, names));
        }
        Node::Lambda { params, body } => {
            params.iter().filter_map(|p| p.default.as_ref()).for_each(|e| names_read(e, names));
            names_read(body, names);
        }
    }
}

fn names_in_fragments(fragments: &[Fragment], names: &mut Vec<String>) {
    for fragment in fragments {
        if let Fragment::Field { value, spec, .. } = fragment {
            names_read(value, names);
            names_in_fragments(spec, names);
        }
    }
}
