//! `gather(a.b(..), c.d(..))`: tool calls that stand in its arguments are made side by side.
//!
//! A call is put off where its value would be an argument, or an item of a list or comprehension that becomes the
//! arguments; in any other place it is made at once. So no name ever holds a call that is still to be made. The spelling
//! is `asyncio.gather`'s, which models know; `await` and `asyncio.` before it are read and mean nothing.

use super::{Compiler, GATHER};
use crate::ast::*;
use crate::code::Op;
use crate::error::{Error, Pos};

/// The one option, by asyncio's name.
const RETURN_EXCEPTIONS: &str = "return_exceptions";

impl Compiler {
    pub(super) fn is_gather(&mut self, callee: &Expr) -> bool {
        match &callee.node {
            Node::Name(name) => name == GATHER && self.scope().local(name).is_none(),
            Node::Attr(owner, name) => {
                let module = matches!(&owner.node, Node::Name(owner) if owner == "asyncio");
                module && name == GATHER && self.scope().local("asyncio").is_none()
            }
            _ => false,
        }
    }

    pub(super) fn gather(&mut self, args: &[Arg], pos: Pos) -> Result<(), Error> {
        let mut option = None;
        self.emit(Op::MakeList(0), pos)?;
        for arg in args {
            match arg {
                Arg::Plain(value) => {
                    if args.len() == 1 {
                        self.deferred_items(value, true)?;
                    } else {
                        self.deferred(value)?;
                    }
                    self.emit(Op::MakeList(1), value.pos)?;
                    self.emit(Op::Extend, value.pos)?;
                }
                Arg::Star(value) => {
                    self.deferred_items(value, false)?;
                    self.emit(Op::Extend, value.pos)?;
                }
                Arg::Named(name, value) if name == RETURN_EXCEPTIONS => option = Some(value),
                Arg::Named(_, value) | Arg::DoubleStar(value) => {
                    let error = Error::syntax(value.pos, "`gather` takes calls, not named arguments");
                    return Err(error.with_hint("write a, b = gather(server.tool(..), server.tool(..))"));
                }
            }
        }
        match option {
            Some(value) => self.expr(value)?,
            None => self.constant(Const::Bool(false), pos)?,
        }
        self.emit(Op::Gather, pos)?;
        Ok(())
    }

    /// An expression whose value is a call that is put off, where it is one.
    pub(super) fn deferred(&mut self, expr: &Expr) -> Result<(), Error> {
        match &expr.node {
            Node::Call { callee, args } if matches!(callee.node, Node::Attr(..)) && !self.is_gather(callee) => {
                self.plain_call(callee, args, true, expr.pos)
            }
            Node::If { condition, then, other } => {
                self.expr(condition)?;
                let skip = self.emit(Op::JumpIfFalse(0), expr.pos)?;
                self.deferred(then)?;
                let end = self.emit(Op::Jump(0), expr.pos)?;
                self.land(skip);
                self.deferred(other)?;
                self.land(end);
                Ok(())
            }
            _ => self.expr(expr),
        }
    }

    /// An expression whose items may be calls that are put off; with `itself`, so may a call in its place.
    fn deferred_items(&mut self, expr: &Expr, itself: bool) -> Result<(), Error> {
        match &expr.node {
            Node::List(items) | Node::Tuple(items) if !items.iter().any(|i| matches!(i.node, Node::Star(_))) => {
                items.iter().try_for_each(|item| self.deferred(item))?;
                self.emit(Op::MakeList(items.len() as u32), expr.pos)?;
                Ok(())
            }
            Node::Comprehension(comp) if comp.kind == Collection::List => self.comprehension(comp, true, expr.pos),
            _ if itself => self.deferred(expr),
            _ => self.expr(expr),
        }
    }
}
