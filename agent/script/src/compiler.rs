//! Statements to instructions. Expressions are in `expr`.
//!
//! Names: at the top of a program all names are global, so that they persist; in a `def` what is assigned is local, as in
//! Python. Variables of comprehensions are hidden locals. A `lambda` captures locals around it by value; a `def` captures
//! nothing. `finally` blocks are compiled once for each way out, within `Limits::instructions`.

mod expr;
mod gather;

use crate::ast::*;
use crate::code::{Code, Op, Program};
use crate::error::{Error, Pos};
use crate::limits::Limits;
use crate::parser;
use std::rc::Rc;

/// Functions of one source.
const MOST_FUNCTIONS: usize = 1_000;
/// The built-in whose arguments are compiled in a way of their own.
const GATHER: &str = "gather";

/// Compiles a source within `limits`.
///
/// # Errors
/// Kinds `Syntax`, `Unsupported` and `Limit`, with line, column and usually a hint.
pub fn compile(source: &str, limits: &Limits) -> Result<Program, Error> {
    let limits = limits.clamped();
    if source.len() as u64 > limits.source_bytes {
        return Err(
            Error::over("source size", limits.source_bytes, source.len() as u64).with_hint("write a shorter program")
        );
    }
    let block = parser::program(source, limits.nesting)?;
    let mut compiler =
        Compiler { outer: Scope::new("program", false), inner: Vec::new(), codes: Vec::new(), n_ops: 0, limits };
    compiler.program(&block)?;
    compiler.codes.iter_mut().for_each(Code::trim);
    Ok(Program { codes: compiler.codes })
}

struct Compiler {
    /// The program's own statements.
    outer: Scope,
    /// The functions under compilation, innermost last.
    inner: Vec<Scope>,
    codes: Vec<Code>,
    n_ops: u32,
    limits: Limits,
}

/// One function under compilation.
struct Scope {
    code: Code,
    /// Names that are local, the latest binding last; a comprehension adds and removes its own.
    names: Vec<(String, u32)>,
    captures: Vec<String>,
    globals_declared: Vec<String>,
    blocks: Vec<Frame>,
    is_lambda: bool,
    in_function: bool,
    exception: Option<u32>,
    in_finally: bool,
}

/// What `break`, `continue` and `return` have to leave.
#[derive(Clone)]
enum Frame {
    Loop { start: u32, breaks: Vec<usize> },
    Try,
    Finally(Rc<Block>),
}

impl Scope {
    fn new(name: &str, in_function: bool) -> Scope {
        Scope {
            code: Code { name: name.to_owned(), ..Code::default() },
            names: Vec::new(),
            captures: Vec::new(),
            globals_declared: Vec::new(),
            blocks: Vec::new(),
            is_lambda: false,
            in_function,
            exception: None,
            in_finally: false,
        }
    }

    fn slot(&mut self, name: &str) -> u32 {
        self.code.locals.push(name.to_owned());
        (self.code.locals.len() as u32).saturating_sub(1)
    }

    fn bind(&mut self, name: &str) -> u32 {
        let slot = self.slot(name);
        self.names.push((name.to_owned(), slot));
        slot
    }

    fn local(&self, name: &str) -> Option<u32> {
        self.names.iter().rev().find(|(n, _)| n == name).map(|(_, slot)| *slot)
    }
}

fn interned(list: &mut Vec<String>, name: &str) -> u32 {
    match list.iter().position(|n| n == name) {
        Some(idx) => idx as u32,
        None => {
            list.push(name.to_owned());
            (list.len() as u32).saturating_sub(1)
        }
    }
}

impl Compiler {
    fn scope(&mut self) -> &mut Scope {
        self.inner.last_mut().unwrap_or(&mut self.outer)
    }

    fn emit(&mut self, op: Op, pos: Pos) -> Result<usize, Error> {
        self.n_ops = self.n_ops.saturating_add(1);
        if self.n_ops > self.limits.instructions {
            let limit = u64::from(self.limits.instructions);
            return Err(Error::over("instruction", limit, u64::from(self.n_ops))
                .at(pos)
                .with_hint("write a shorter program"));
        }
        let code = &mut self.scope().code;
        code.ops.push(op);
        code.positions.push(pos);
        Ok(code.ops.len().saturating_sub(1))
    }

    fn here(&mut self) -> u32 {
        self.scope().code.ops.len() as u32
    }

    /// Points the jump at `idx` to the next instruction.
    fn land(&mut self, idx: usize) {
        let here = self.here();
        if let Some(
            Op::Jump(to)
            | Op::JumpIfFalse(to)
            | Op::JumpIfTrue(to)
            | Op::JumpIfFalseOrPop(to)
            | Op::JumpIfTrueOrPop(to)
            | Op::Next(to)
            | Op::Try(to),
        ) = self.scope().code.ops.get_mut(idx)
        {
            *to = here;
        }
    }

    fn constant(&mut self, value: Const, pos: Pos) -> Result<(), Error> {
        let consts = &mut self.scope().code.consts;
        let same = |c: &Const| match (c, &value) {
            (Const::Float(a), Const::Float(b)) => a.to_bits() == b.to_bits(),
            (a, b) => a == b,
        };
        let idx = match consts.iter().rev().take(32).position(same) {
            Some(back) => consts.len().saturating_sub(1).saturating_sub(back),
            None => {
                consts.push(value);
                consts.len().saturating_sub(1)
            }
        };
        self.emit(Op::Const(idx as u32), pos)?;
        Ok(())
    }

    fn attr_name(&mut self, name: &str) -> u32 {
        let names = &mut self.scope().code.names;
        match names.iter().position(|n| **n == *name) {
            Some(idx) => idx as u32,
            None => {
                names.push(name.into());
                (names.len() as u32).saturating_sub(1)
            }
        }
    }

    fn program(&mut self, block: &[Stmt]) -> Result<(), Error> {
        let end = block.last().map_or(Pos { line: 1, column: 1 }, |s| s.pos);
        if let Some((Stmt { node: StmtNode::Expr(expr), pos }, before)) = block.split_last() {
            self.block(before)?;
            self.expr(expr)?;
            self.emit(Op::Show, *pos)?;
        } else {
            self.block(block)?;
        }
        self.finish(end)
    }

    fn finish(&mut self, pos: Pos) -> Result<(), Error> {
        self.constant(Const::None, pos)?;
        self.emit(Op::Return, pos)?;
        let scope = self.inner.pop();
        self.codes.push(scope.map_or_else(|| std::mem::take(&mut self.outer.code), |scope| scope.code));
        if self.codes.len() > MOST_FUNCTIONS {
            return Err(Error::over("function", MOST_FUNCTIONS as u64, self.codes.len() as u64).at(pos));
        }
        Ok(())
    }

    fn block(&mut self, block: &[Stmt]) -> Result<(), Error> {
        block.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), Error> {
        let pos = stmt.pos;
        match &stmt.node {
            StmtNode::Pass => {}
            StmtNode::Expr(expr) => {
                self.expr(expr)?;
                self.emit(Op::Pop, pos)?;
            }
            StmtNode::Assign { targets, value } => {
                self.expr(value)?;
                if let Some((last, before)) = targets.split_last() {
                    for target in before {
                        self.emit(Op::Dup, pos)?;
                        self.assign(target)?;
                    }
                    self.assign(last)?;
                }
            }
            StmtNode::Augmented { target, op, value } => self.augmented(target, *op, value, pos)?,
            StmtNode::If { arms, other } => {
                let mut ends = Vec::new();
                for (condition, body) in arms {
                    self.expr(condition)?;
                    let skip = self.emit(Op::JumpIfFalse(0), condition.pos)?;
                    self.block(body)?;
                    ends.push(self.emit(Op::Jump(0), pos)?);
                    self.land(skip);
                }
                self.block(other)?;
                ends.into_iter().for_each(|end| self.land(end));
            }
            StmtNode::While { condition, body, other } => {
                let start = self.here();
                self.expr(condition)?;
                let exit = self.emit(Op::JumpIfFalse(0), condition.pos)?;
                self.loop_body(start, body, pos)?;
                self.land(exit);
                self.loop_end(other, false, pos)?;
            }
            StmtNode::For { target, iterable, body, other } => {
                self.expr(iterable)?;
                self.emit(Op::Iterate, iterable.pos)?;
                let start = self.here();
                let exit = self.emit(Op::Next(0), pos)?;
                self.assign_after_start(target, start, body, pos)?;
                self.land(exit);
                self.loop_end(other, true, pos)?;
            }
            StmtNode::Try { body, handlers, other, finally } => self.try_stmt(body, handlers, other, finally, pos)?,
            StmtNode::Def { name, params, body } => self.def(name, params, body, pos)?,
            StmtNode::Return(value) => {
                if !self.scope().in_function {
                    return Err(Error::syntax(pos, "`return` outside of a function")
                        .with_hint("write answer(..) to end the task"));
                }
                match value {
                    Some(value) => self.expr(value)?,
                    None => self.constant(Const::None, pos)?,
                }
                self.leave_blocks(false, pos)?;
                self.emit(Op::Return, pos)?;
            }
            StmtNode::Break => {
                self.check_loop("break", pos)?;
                self.leave_blocks(true, pos)?;
                let jump = self.emit(Op::Jump(0), pos)?;
                if let Some(Frame::Loop { breaks, .. }) = self.inner_loop() {
                    breaks.push(jump);
                }
            }
            StmtNode::Continue => {
                self.check_loop("continue", pos)?;
                self.leave_blocks(true, pos)?;
                if let Some(Frame::Loop { start, .. }) = self.inner_loop() {
                    let start = *start;
                    self.emit(Op::Jump(start), pos)?;
                }
            }
            StmtNode::Raise(value) => {
                match (value, self.scope().exception) {
                    (Some(value), _) => self.expr(value)?,
                    (None, Some(slot)) => {
                        self.emit(Op::LoadLocal(slot), pos)?;
                    }
                    (None, None) => {
                        return Err(Error::syntax(pos, "`raise` with nothing to raise")
                            .with_hint("write raise ValueError(\"why\")"));
                    }
                }
                self.emit(Op::Raise, pos)?;
            }
            StmtNode::Assert { condition, message } => {
                self.expr(condition)?;
                let skip = self.emit(Op::JumpIfTrue(0), condition.pos)?;
                let class = interned(&mut self.scope().code.globals, "AssertionError");
                self.emit(Op::LoadGlobal(class), pos)?;
                let n_plain = message.iter().len() as u32;
                if let Some(message) = message {
                    self.expr(message)?;
                }
                self.emit(Op::Call { n_plain, n_named: 0, first: 0 }, pos)?;
                self.emit(Op::Raise, pos)?;
                self.land(skip);
            }
            StmtNode::Del(targets) => targets.iter().try_for_each(|target| self.delete(target))?,
            StmtNode::Global(names) => {
                for name in names {
                    if self.scope().in_function && !self.scope().globals_declared.contains(name) {
                        return Err(Error::syntax(pos, format!("parameter declared global: `{name}`")));
                    }
                }
            }
        }
        Ok(())
    }

    fn assign_after_start(&mut self, target: &Expr, start: u32, body: &[Stmt], pos: Pos) -> Result<(), Error> {
        self.assign(target)?;
        self.loop_body(start, body, pos)
    }

    fn loop_body(&mut self, start: u32, body: &[Stmt], pos: Pos) -> Result<(), Error> {
        self.scope().blocks.push(Frame::Loop { start, breaks: Vec::new() });
        self.block(body)?;
        self.emit(Op::Jump(start), pos)?;
        Ok(())
    }

    /// The `else` of a loop, which `break` skips; a `for` that is left early drops its iterator.
    fn loop_end(&mut self, other: &[Stmt], iterator: bool, pos: Pos) -> Result<(), Error> {
        let breaks = match self.scope().blocks.pop() {
            Some(Frame::Loop { breaks, .. }) => breaks,
            _ => Vec::new(),
        };
        self.block(other)?;
        if breaks.is_empty() {
            return Ok(());
        }
        if !iterator {
            breaks.into_iter().for_each(|at| self.land(at));
            return Ok(());
        }
        let skip = self.emit(Op::Jump(0), pos)?;
        breaks.into_iter().for_each(|at| self.land(at));
        self.emit(Op::Pop, pos)?;
        self.land(skip);
        Ok(())
    }

    fn inner_loop(&mut self) -> Option<&mut Frame> {
        self.scope().blocks.iter_mut().rev().find(|f| matches!(f, Frame::Loop { .. }))
    }

    fn check_loop(&mut self, word: &str, pos: Pos) -> Result<(), Error> {
        match self.inner_loop() {
            Some(_) => Ok(()),
            None => Err(Error::syntax(pos, format!("`{word}` outside of a loop"))
                .with_hint("put it inside of a `for` or `while`; raise ends the program")),
        }
    }

    /// Emits what must happen on the way out of the inner blocks: to the loop around, or out of the function.
    fn leave_blocks(&mut self, to_loop: bool, pos: Pos) -> Result<(), Error> {
        if self.scope().in_finally && !to_loop {
            return Err(Error::unsupported(
                pos,
                "`return` in a `finally` block is not part of the language",
                "move the statement below the block",
            ));
        }
        let mut saved = Vec::new();
        while let Some(frame) = self.scope().blocks.pop() {
            let stop = to_loop && matches!(frame, Frame::Loop { .. });
            saved.push(frame.clone());
            match frame {
                _ if stop => break,
                Frame::Loop { .. } => {}
                Frame::Try => {
                    self.emit(Op::EndTry, pos)?;
                }
                Frame::Finally(body) => {
                    self.emit(Op::EndTry, pos)?;
                    self.finally_body(&body)?;
                }
            }
        }
        saved.reverse();
        self.scope().blocks.extend(saved);
        Ok(())
    }

    fn finally_body(&mut self, body: &[Stmt]) -> Result<(), Error> {
        let outer = std::mem::replace(&mut self.scope().in_finally, true);
        let blocks = std::mem::take(&mut self.scope().blocks);
        let result = self.block(body);
        self.scope().blocks = blocks;
        self.scope().in_finally = outer;
        result
    }

    fn try_stmt(
        &mut self,
        body: &[Stmt],
        handlers: &[Handler],
        other: &[Stmt],
        finally: &[Stmt],
        pos: Pos,
    ) -> Result<(), Error> {
        if finally.is_empty() {
            return self.try_except(body, handlers, other, pos);
        }
        let guard = self.emit(Op::Try(0), pos)?;
        self.scope().blocks.push(Frame::Finally(Rc::new(finally.to_vec())));
        if handlers.is_empty() {
            self.block(body)?;
        } else {
            self.try_except(body, handlers, other, pos)?;
        }
        self.scope().blocks.pop();
        self.emit(Op::EndTry, pos)?;
        self.finally_body(finally)?;
        let end = self.emit(Op::Jump(0), pos)?;
        self.land(guard);
        let slot = self.scope().slot("");
        self.emit(Op::StoreLocal(slot), pos)?;
        self.finally_body(finally)?;
        self.emit(Op::LoadLocal(slot), pos)?;
        self.emit(Op::Raise, pos)?;
        self.land(end);
        Ok(())
    }

    fn try_except(&mut self, body: &[Stmt], handlers: &[Handler], other: &[Stmt], pos: Pos) -> Result<(), Error> {
        let guard = self.emit(Op::Try(0), pos)?;
        self.scope().blocks.push(Frame::Try);
        self.block(body)?;
        self.scope().blocks.pop();
        self.emit(Op::EndTry, pos)?;
        self.block(other)?;
        let mut ends = vec![self.emit(Op::Jump(0), pos)?];
        self.land(guard);
        let slot = self.scope().slot("");
        self.emit(Op::StoreLocal(slot), pos)?;
        let outer = self.scope().exception.replace(slot);
        for handler in handlers {
            let mut skip = None;
            if let Some(class) = &handler.class {
                self.emit(Op::LoadLocal(slot), handler.pos)?;
                self.expr(class)?;
                self.emit(Op::Matches, class.pos)?;
                skip = Some(self.emit(Op::JumpIfFalse(0), handler.pos)?);
            }
            if let Some(name) = &handler.name {
                self.emit(Op::LoadLocal(slot), handler.pos)?;
                self.store(name, handler.pos)?;
            }
            self.block(&handler.body)?;
            ends.push(self.emit(Op::Jump(0), handler.pos)?);
            if let Some(skip) = skip {
                self.land(skip);
            }
        }
        self.scope().exception = outer;
        self.emit(Op::LoadLocal(slot), pos)?;
        self.emit(Op::Raise, pos)?;
        ends.into_iter().for_each(|end| self.land(end));
        Ok(())
    }

    fn def(&mut self, name: &str, params: &[Param], body: &[Stmt], pos: Pos) -> Result<(), Error> {
        if self.scope().in_function {
            return Err(Error::unsupported(
                pos,
                "`def` inside a function is not part of the language",
                "move it to the top of the program and pass what it needs",
            ));
        }
        if name == GATHER {
            return Err(Error::unsupported(pos, "`gather` is built in and cannot be defined", "choose another name"));
        }
        let defaults: Vec<&Expr> = params.iter().filter_map(|p| p.default.as_ref()).collect();
        for default in &defaults {
            self.expr(default)?;
        }
        let mut scope = Scope::new(name, true);
        for param in params {
            scope.bind(&param.name);
            scope.code.params.push(param.kind);
        }
        let mut assigned = Vec::new();
        assigned_in(body, &mut assigned, &mut scope.globals_declared);
        for name in assigned {
            if scope.local(&name).is_none() && !scope.globals_declared.contains(&name) {
                scope.bind(&name);
            }
        }
        if let Some(name) = scope.globals_declared.iter().find(|g| scope.local(g).is_some()).cloned() {
            return Err(Error::syntax(pos, format!("parameter declared global: `{name}`")));
        }
        self.inner.push(scope);
        self.block(body)?;
        self.finish(pos)?;
        let code = (self.codes.len() as u32).saturating_sub(1);
        self.emit(Op::MakeFunction { code, n_defaults: defaults.len() as u32, n_captured: 0 }, pos)?;
        self.store(name, pos)
    }
}

/// The names that a function's statements assign, and those it declares global.
fn assigned_in(block: &[Stmt], names: &mut Vec<String>, globals: &mut Vec<String>) {
    for stmt in block {
        match &stmt.node {
            StmtNode::Assign { targets, .. } => targets.iter().for_each(|t| assigned_by(t, names)),
            StmtNode::Augmented { target, .. } => assigned_by(target, names),
            StmtNode::For { target, body, other, .. } => {
                assigned_by(target, names);
                assigned_in(body, names, globals);
                assigned_in(other, names, globals);
            }
            StmtNode::While { body, other, .. } => {
                assigned_in(body, names, globals);
                assigned_in(other, names, globals);
            }
            StmtNode::If { arms, other } => {
                arms.iter().for_each(|(_, body)| assigned_in(body, names, globals));
                assigned_in(other, names, globals);
            }
            StmtNode::Try { body, handlers, other, finally } => {
                for block in [body, other, finally] {
                    assigned_in(block, names, globals);
                }
                for handler in handlers {
                    names.extend(handler.name.clone());
                    assigned_in(&handler.body, names, globals);
                }
            }
            StmtNode::Del(targets) => targets.iter().for_each(|t| assigned_by(t, names)),
            StmtNode::Global(declared) => globals.extend(declared.iter().cloned()),
            _ => {}
        }
    }
}

fn assigned_by(target: &Expr, names: &mut Vec<String>) {
    match &target.node {
        Node::Name(name) => names.push(name.clone()),
        Node::Tuple(items) | Node::List(items) => items.iter().for_each(|item| assigned_by(item, names)),
        Node::Star(inner) => assigned_by(inner, names),
        _ => {}
    }
}
