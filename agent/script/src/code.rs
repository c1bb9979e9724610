//! What a source compiles to: instructions for the stack machine in `vm`.
//!
//! A decoded [`Code`] is not trusted: the VM checks every operand when it uses it.

use crate::ast::{BinOp, CmpOp, Const, ParamKind, UnOp};
use crate::error::Pos;
use crate::heap::bytes_of;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A compiled source, ready for [`crate::Vm::start`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// The functions of the source; the last is the program itself.
    pub(crate) codes: Vec<Code>,
}

/// One function, or the program's own statements.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Code {
    pub(crate) name: String,
    pub(crate) ops: Vec<Op>,
    pub(crate) positions: Vec<Pos>,
    pub(crate) consts: Vec<Const>,
    /// Attribute names, method names and names of arguments.
    pub(crate) names: Vec<Arc<str>>,
    /// Global names; the VM resolves them to its slots when it loads the code.
    pub(crate) globals: Vec<String>,
    /// Local names, parameters first, then what a `lambda` captures, then the others.
    pub(crate) locals: Vec<String>,
    pub(crate) params: Vec<ParamKind>,
    pub(crate) n_captured: u32,
}

impl Code {
    /// Drops the room that was left for growth.
    pub(crate) fn trim(&mut self) {
        self.name.shrink_to_fit();
        self.ops.shrink_to_fit();
        self.positions.shrink_to_fit();
        self.names.shrink_to_fit();
        self.globals.shrink_to_fit();
        self.locals.shrink_to_fit();
        self.params.shrink_to_fit();
        self.globals.iter_mut().chain(&mut self.locals).for_each(String::shrink_to_fit);
    }

    /// What it has allocated, constants apart.
    pub(crate) fn bytes(&self) -> u64 {
        const COUNTED: usize = 2 * size_of::<usize>();
        let shared = |name: &Arc<str>| name.len().saturating_add(COUNTED).next_multiple_of(align_of::<usize>()) as u64;
        let strings = self.globals.iter().chain(&self.locals).chain([&self.name]).map(|name| name.capacity() as u64);
        let names = self.names.iter().map(shared).chain(strings).fold(0u64, u64::saturating_add);
        [
            bytes_of::<Op>(self.ops.capacity()),
            bytes_of::<Pos>(self.positions.capacity()),
            bytes_of::<Arc<str>>(self.names.capacity()),
            bytes_of::<String>(self.globals.capacity().saturating_add(self.locals.capacity())),
            bytes_of::<ParamKind>(self.params.capacity()),
        ]
        .into_iter()
        .fold(names, u64::saturating_add)
    }
}

/// One instruction. Operands index into [`Code`]; jumps are absolute.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Op {
    Const(u32),
    LoadLocal(u32),
    StoreLocal(u32),
    DeleteLocal(u32),
    /// As `LoadLocal`, but a growing string stays one: the `Grow` that follows knows whether it was read in between.
    LoadGrowing(u32),
    LoadGlobalGrowing(u32),
    /// Pops `b` and `a`, and stores `a += b`.
    Grow(u32),
    GrowGlobal(u32),
    LoadGlobal(u32),
    StoreGlobal(u32),
    DeleteGlobal(u32),
    /// As `LoadGlobal`, but a value that cannot be called yields to the server, move or built-in of that name.
    LoadCallee(u32),
    Pop,
    Dup,
    DupTwo,
    Swap,
    /// Moves the top value below the two under it.
    RotateThree,
    Unary(UnOp),
    Binary(BinOp),
    Augment(BinOp),
    Compare(CmpOp),
    Jump(u32),
    JumpIfFalse(u32),
    JumpIfTrue(u32),
    JumpIfFalseOrPop(u32),
    JumpIfTrueOrPop(u32),
    MakeList(u32),
    MakeTuple(u32),
    MakeSet(u32),
    /// Of so many pairs.
    MakeDict(u32),
    /// Pops a value and the list or set under it, which receives it.
    Add,
    /// Pops a value, a key and the dict under them, which receives both.
    AddPair,
    /// Pops an iterable and extends the list, set or dict under it, which stays.
    Extend,
    /// As `Extend` on a dict of keyword arguments, none of which may come twice.
    ExtendKeywords,
    Iterate,
    /// Pushes the next value of the iterator on top, or pops it and jumps.
    Next(u32),
    GetAttr(u32),
    SetAttr(u32),
    DeleteAttr(u32),
    GetItem,
    SetItem,
    DeleteItem,
    GetSlice,
    SetSlice,
    DeleteSlice,
    /// Pops a spec and a value, pushes the formatted string; the flag asks for `repr` first.
    Format(bool),
    Join(u32),
    Unpack(u32),
    UnpackRest {
        before: u32,
        after: u32,
    },
    /// Positional arguments, then named ones, whose names are a run of `names` from `first`.
    Call {
        n_plain: u32,
        n_named: u32,
        first: u32,
    },
    /// As `Call` on a method of the value under the arguments. `owner` is the name that the value was read from, if any.
    CallMethod {
        name: u32,
        owner: Option<u32>,
        n_plain: u32,
        n_named: u32,
        first: u32,
    },
    /// A call whose arguments are one list and one dict.
    CallSpread,
    /// As `CallSpread` on a method.
    CallMethodSpread {
        name: u32,
        owner: Option<u32>,
    },
    /// As `CallMethod`, but where that is a tool, pushes the call in place of making it.
    Defer {
        name: u32,
        owner: Option<u32>,
        n_plain: u32,
        n_named: u32,
        first: u32,
    },
    /// As `Defer`; the arguments are one list and one dict.
    DeferSpread {
        name: u32,
        owner: Option<u32>,
    },
    /// Pops whether exceptions are results and a list; makes the calls in the list side by side and pushes their results.
    Gather,
    /// Pops captured values, then defaults, and pushes the function.
    MakeFunction {
        code: u32,
        n_defaults: u32,
        n_captured: u32,
    },
    Return,
    /// Exceptions jump to the target, with the exception as the only value above today's height.
    Try(u32),
    EndTry,
    Raise,
    /// Pops a class or tuple of classes and an exception; pushes whether it is one.
    Matches,
    /// Prints the value of a bare last expression, unless it is None.
    Show,
}
