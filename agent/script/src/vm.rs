//! The machine: one step an instruction, until a tool call, the end or a failure.
//!
//! Invariants: garbage is collected only between instructions, with globals, stack, frames and constants as roots; a frame
//! is pushed or a value delivered for every call, never both; no operand of a decoded program is trusted. Calls are in
//! `call`, storing the state in `state`, what an instruction does in `step`.

mod call;
mod gather;
mod quick;
mod state;
mod step;

use crate::code::{Code, Op, Program};
use crate::error::{Error, Kind, Pos};
use crate::heap::{Heap, Object, Outcome, Trap, bytes_of, corrupt};
use crate::limits::{Limits, Usage};
use crate::signature::{self, Signature};
use crate::value::{Builtin, Class, Value};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// Values on the stack, locals included: one mebibyte.
const MOST_STACK: usize = 1 << 16;
/// Functions and programs held, those of earlier programs included.
const MOST_CODES: usize = 4_096;
/// Global names, assigned or only read.
const MOST_GLOBALS: usize = 10_000;
/// `try` blocks that are open in one function at a time; one with `except` and `finally` counts twice.
const MOST_HANDLERS: usize = 16;
/// Values for which the stack has room from the start.
const LEAST_STACK: usize = 64;
/// Frames for which there is room from the start.
const LEAST_FRAMES: usize = 4;

/// Where a program stands after [`Vm::start`] or [`Vm::resume`].
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The program waits for the result of a tool call or move.
    Call(Call),
    /// The program waits for the results of the calls of one `gather`: make them side by side, then [`Vm::resume_all`].
    Calls(Vec<Call>),
    /// The program has ended.
    Done,
    /// The program has failed; variables keep what they held.
    Failed(Error),
}

/// A tool call whose arguments fit the tool's schema, or one of the agent's moves.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The server's name in the language; empty for a move.
    pub server: String,
    /// The tool's name in the language.
    pub tool: String,
    /// The arguments by their names on the wire.
    pub arguments: Map<String, Json>,
    /// The line of the call.
    pub line: u32,
}

/// A tool call that failed; the program sees it as an exception.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallError {
    /// A short class such as `timeout` or `denied`. The name of an exception of the language raises that one, anything
    /// else raises `ToolError`, which shows it as `e.kind`.
    pub kind: String,
    /// What happened.
    pub message: String,
}

/// A variable of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// What it holds, such as `list[12] of {name: str, size: int}`.
    pub shape: String,
}

/// The machine that runs programs one after another over the same variables.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vm {
    limits: Limits,
    heap: Heap,
    codes: Vec<Option<Loaded>>,
    globals: Vec<Global>,
    tools: Vec<Signature>,
    servers: Vec<String>,
    frames: Vec<Frame>,
    stack: Vec<Value>,
    printed: String,
    usage: Usage,
    /// Counts programs, to tell this program's lines from those of functions of earlier ones.
    program: u32,
    waiting: Waiting,
}

/// What a program waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Waiting {
    Nothing,
    Call,
    /// The results of so many calls of one `gather`.
    Calls(u32),
}

/// A code with its constants as values and its globals as slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Loaded {
    code: Code,
    consts: Vec<Value>,
    slots: Vec<u32>,
    program: u32,
}

/// A global name; `fallback` is the server, move or built-in that it means while it is unbound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Global {
    name: String,
    value: Value,
    fallback: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Frame {
    Code { code: u32, ip: u32, base: u32, handlers: heapless::Vec<Handler, MOST_HANDLERS> },
    Each(Each),
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Handler {
    target: u32,
    height: u32,
}

/// A built-in that calls a function for each of its items.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Each {
    goal: Goal,
    callee: Value,
    /// A list of the items; one of rows where `spread`.
    items: Value,
    /// A list of what the function gave so far.
    results: Value,
    next: u32,
    spread: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Goal {
    Sorted { reverse: bool },
    Sort { list: Value, reverse: bool },
    Extreme { builtin: Builtin, default: Option<Value> },
    Map,
    Filter,
}

/// How an instruction ended.
enum Flow {
    Next,
    Done,
    Call(Box<Call>),
    Calls(Vec<Call>),
}

impl Vm {
    /// A machine without variables.
    pub fn new(limits: Limits) -> Vm {
        let limits = limits.clamped();
        Vm {
            heap: Heap::new(&limits),
            limits,
            codes: Vec::new(),
            globals: Vec::new(),
            tools: Vec::new(),
            servers: Vec::new(),
            frames: Vec::new(),
            stack: Vec::new(),
            printed: String::new(),
            usage: Usage::default(),
            program: 0,
            waiting: Waiting::Nothing,
        }
    }

    /// Runs a program until its first call, its end or its failure. A program that waits is given up. Variables stay from
    /// program to program; what is used of the limits, bytes apart, starts anew. `tools` are all that can be called;
    /// the moves are there in any case.
    pub fn start(&mut self, program: Program, tools: &[Signature]) -> Step {
        self.reset();
        self.printed.clear();
        self.heap.settle();
        self.heap.kept_shrink(&mut self.stack);
        self.heap.kept_shrink(&mut self.frames);
        self.usage = Usage::default();
        self.heap.fuel.set(0);
        self.program = self.program.wrapping_add(1);
        self.tools = Vec::new();
        self.tools.extend_from_slice(tools);
        self.tools.extend(
            signature::moves().into_iter().filter(|m| !tools.iter().any(|t| t.server.is_empty() && t.name == m.name)),
        );
        self.servers = Vec::new();
        for tool in tools.iter().filter(|t| !t.server.is_empty()) {
            if !self.servers.contains(&tool.server) {
                self.servers.push(tool.server.clone());
            }
        }
        let mut globals = std::mem::take(&mut self.globals);
        for global in &mut globals {
            global.fallback = self.meaning(&global.name);
        }
        self.globals = globals;
        match self.load(program) {
            Ok(()) => self.run(),
            Err(trap) => self.fail(trap),
        }
    }

    /// Goes on after [`Step::Call`] with the call's result.
    pub fn resume(&mut self, result: Result<Json, CallError>) -> Step {
        if self.waiting != Waiting::Call {
            return Step::Failed(Error::new(Kind::State, "no program waits for one result"));
        }
        self.waiting = Waiting::Nothing;
        self.heap.settle();
        self.collect();
        let delivered = match result {
            Ok(json) => self.heap.of_json(&json).and_then(|value| self.deliver(value)),
            Err(error) => self.failed_call(&error).and_then(|exception| Err(Trap::Thrown(exception))),
        };
        self.go_on(delivered)
    }

    fn go_on(&mut self, delivered: Outcome<()>) -> Step {
        match delivered {
            Ok(()) => self.run(),
            Err(trap) => match self.unwind(trap) {
                None => self.run(),
                Some(error) => self.end_with(error),
            },
        }
    }

    /// What was printed since the last time this was asked.
    pub fn take_printed(&mut self) -> String {
        self.heap.discharge(self.printed.capacity() as u64);
        std::mem::take(&mut self.printed)
    }

    /// The variables and their shapes, in the order in which programs first named them.
    pub fn variables(&self) -> Vec<Variable> {
        let bound = self.globals.iter().filter(|g| g.value != Value::Unbound);
        bound.map(|g| Variable { name: g.name.clone(), shape: self.heap.shape(g.value) }).collect()
    }

    /// A variable's value as JSON; None where it is unbound or holds what JSON cannot.
    pub fn variable_json(&self, name: &str) -> Option<Json> {
        let global = self.globals.iter().find(|g| g.name == name && g.value != Value::Unbound)?;
        let fuel = self.heap.fuel.get();
        self.heap.fuel.set(0);
        let json = self.heap.to_json(global.value).ok();
        self.heap.fuel.set(fuel);
        self.heap.settle();
        json
    }

    /// What the program has used so far.
    pub fn usage(&self) -> Usage {
        Usage { fuel: self.heap.fuel.get(), bytes: self.heap.used(), ..self.usage }
    }

    fn reset(&mut self) {
        self.frames.clear();
        self.stack.clear();
        self.waiting = Waiting::Nothing;
    }

    fn end_with(&mut self, error: Error) -> Step {
        self.reset();
        Step::Failed(error)
    }

    fn fail(&mut self, trap: Trap) -> Step {
        let error = self.unwind(trap).unwrap_or_else(|| Error::new(Kind::State, "state is corrupt"));
        self.end_with(error)
    }

    fn run(&mut self) -> Step {
        loop {
            if self.heap.wants_collection() {
                self.collect();
            }
            self.heap.settle();
            match self.step() {
                Ok(Flow::Next) => {}
                Ok(Flow::Done) => {
                    self.reset();
                    return Step::Done;
                }
                Ok(Flow::Call(call)) => {
                    self.waiting = Waiting::Call;
                    return Step::Call(*call);
                }
                Ok(Flow::Calls(calls)) => {
                    self.waiting = Waiting::Calls(calls.len() as u32);
                    return Step::Calls(calls);
                }
                Err(trap) => {
                    if let Some(error) = self.unwind(trap) {
                        return self.end_with(error);
                    }
                }
            }
        }
    }

    /// Takes a program's functions in and pushes the frame of its statements.
    fn load(&mut self, program: Program) -> Outcome<()> {
        self.collect();
        let mut in_use = vec![false; self.codes.len()];
        for code in self.heap.codes_in_use() {
            if let Some(used) = in_use.get_mut(code as usize) {
                *used = true;
            }
        }
        for (slot, in_use) in self.codes.iter_mut().zip(in_use) {
            if !in_use && let Some(loaded) = slot.take() {
                self.heap.discharge(loaded.bytes());
            }
        }
        let free = self.codes.iter().enumerate().filter(|(_, slot)| slot.is_none()).map(|(idx, _)| idx);
        let mut places = self.heap.vec(program.codes.len())?;
        places.extend(free.chain(self.codes.len()..).take(program.codes.len()).map(|idx| idx as u32));
        let n_codes = self.codes.len().max(places.last().map_or(0, |last| (*last as usize).saturating_add(1)));
        over_if(n_codes > MOST_CODES, "function", MOST_CODES, n_codes)?;
        let n_more = n_codes.saturating_sub(self.codes.len());
        self.heap.kept_chunk(&mut self.codes, n_more)?;
        self.codes.resize(n_codes, None);
        for (mut code, place) in program.codes.into_iter().zip(&places) {
            for op in &mut code.ops {
                if let Op::MakeFunction { code, .. } = op {
                    *code = places.get(*code as usize).copied().ok_or_else(corrupt)?;
                }
            }
            self.heap.would_fit(code.bytes())?;
            code.trim();
            let mut slots = self.heap.vec(code.globals.len())?;
            for name in &code.globals {
                slots.push(self.global_slot(name)?);
            }
            let consts = std::mem::take(&mut code.consts);
            let values = self.heap.vec(consts.len())?;
            let mut loaded = Loaded { code, consts: values, slots, program: self.program };
            self.heap.charge(loaded.bytes())?;
            for constant in consts {
                loaded.consts.push(match constant {
                    crate::ast::Const::None => Value::None,
                    crate::ast::Const::Bool(b) => Value::Bool(b),
                    crate::ast::Const::Int(n) => Value::Int(n),
                    crate::ast::Const::Float(n) => Value::Float(n),
                    crate::ast::Const::Str(text) => self.heap.short_string(text)?,
                });
            }
            if let Some(slot) = self.codes.get_mut(*place as usize) {
                *slot = Some(loaded);
            }
        }
        let main = places.last().copied().ok_or_else(corrupt)?;
        self.heap.kept_room(&mut self.stack, LEAST_STACK)?;
        self.heap.kept_room(&mut self.frames, LEAST_FRAMES)?;
        self.push_frame(main, Vec::new())
    }

    fn global_slot(&mut self, name: &str) -> Outcome<u32> {
        if let Some(at) = self.globals.iter().position(|g| g.name == name) {
            return Ok(at as u32);
        }
        over_if(self.globals.len() >= MOST_GLOBALS, "name", MOST_GLOBALS, self.globals.len().saturating_add(1))?;
        let fallback = self.meaning(name);
        self.heap.kept_chunk(&mut self.globals, 1)?;
        self.heap.charge(name.len() as u64)?;
        self.globals.push(Global { name: name.to_owned(), value: Value::Unbound, fallback });
        Ok((self.globals.len() as u32).saturating_sub(1))
    }

    /// What a name means that no program has assigned.
    fn meaning(&self, name: &str) -> Value {
        if let Some(at) = self.servers.iter().position(|s| s == name) {
            return Value::Server(at as u32);
        }
        if let Some(at) = self.tools.iter().position(|t| t.server.is_empty() && t.name == name) {
            return Value::Tool(at as u32);
        }
        if name == "json" {
            return Value::Json;
        }
        let class = Class::named(name).map(Value::Class);
        Builtin::named(name).map(Value::Builtin).or(class).unwrap_or(Value::Unbound)
    }

    /// Pushes a frame whose first locals are given.
    fn push_frame(&mut self, code: u32, locals: Vec<Value>) -> Outcome<()> {
        self.check_frames()?;
        let n_locals = self.loaded(code)?.code.locals.len();
        let base = self.stack.len();
        let end = base.saturating_add(n_locals.max(locals.len()));
        over_if(end > MOST_STACK, "stack", MOST_STACK, end)?;
        self.heap.kept_room(&mut self.stack, end.saturating_sub(base))?;
        self.stack.extend(locals);
        self.stack.resize(end, Value::Unbound);
        self.enter(code, base)
    }

    /// Pushes the frame of a function whose locals lie on the stack from `base`.
    fn enter(&mut self, code: u32, base: usize) -> Outcome<()> {
        self.heap.kept_room(&mut self.frames, 1)?;
        self.frames.push(Frame::Code { code, ip: 0, base: base as u32, handlers: heapless::Vec::new() });
        Ok(())
    }

    fn loaded(&self, code: u32) -> Outcome<&Loaded> {
        self.codes.get(code as usize).and_then(Option::as_ref).ok_or_else(corrupt)
    }

    fn push(&mut self, value: Value) -> Outcome<()> {
        if self.stack.len() >= self.stack.capacity() {
            over_if(self.stack.len() >= MOST_STACK, "stack", MOST_STACK, MOST_STACK.saturating_add(1))?;
            self.heap.kept_room(&mut self.stack, 1)?;
        }
        self.stack.push(value);
        Ok(())
    }

    fn pop(&mut self) -> Outcome<Value> {
        self.stack.pop().ok_or_else(corrupt)
    }

    fn pop_many(&mut self, n: u32) -> Outcome<Vec<Value>> {
        let at = self.stack.len().checked_sub(n as usize).ok_or_else(corrupt)?;
        let popped = self.heap.copied(self.stack.get(at..).ok_or_else(corrupt)?)?;
        self.stack.truncate(at);
        Ok(popped)
    }

    /// Hands a value to whoever waits for it: the stack, or the built-in on top.
    fn deliver(&mut self, value: Value) -> Outcome<()> {
        match self.frames.last() {
            Some(Frame::Each(each)) => {
                let Value::Object(id) = each.results else { return Err(corrupt()) };
                self.heap.change_list(id, 1, |results| results.push(value))
            }
            _ => self.push(value),
        }
    }

    fn collect(&mut self) {
        let globals = self.globals.iter().map(|g| g.value);
        let consts = self.codes.iter().flatten().flat_map(|loaded| loaded.consts.iter().copied());
        let frames = self.frames.iter().flat_map(|frame| match frame {
            Frame::Each(each) => each.values(),
            Frame::Code { .. } => [Value::Unbound; 4],
        });
        self.heap.collect(self.stack.iter().copied().chain(globals).chain(consts).chain(frames));
    }

    /// Where the program stands: the innermost of its own lines.
    fn pos(&self) -> Pos {
        let own = self.frames.iter().rev().filter_map(|frame| match frame {
            Frame::Code { code, ip, .. } => {
                let loaded = self.loaded(*code).ok().filter(|loaded| loaded.program == self.program)?;
                loaded.code.positions.get((*ip as usize).saturating_sub(1)).copied()
            }
            Frame::Each(_) => None,
        });
        own.into_iter().next().unwrap_or_default()
    }

    /// Turns a trap into a jump to its handler, or into the error that ends the program.
    fn unwind(&mut self, trap: Trap) -> Option<Error> {
        let pos = self.pos();
        let thrown = match trap {
            Trap::Fatal(error) => return Some(error.at(pos)),
            Trap::Thrown(value) => Ok(value),
            Trap::Raise(raise) => self.heap.str(&raise.message).and_then(|message| {
                let args = if raise.message.is_empty() { Vec::new() } else { vec![message] };
                self.heap.exception(raise.class, args, raise.hint, String::new())
            }),
        };
        let exception = match thrown {
            Ok(exception) => exception,
            Err(Trap::Fatal(error)) => return Some(error.at(pos)),
            Err(_) => return Some(Error::new(Kind::State, "state is corrupt").at(pos)),
        };
        if let Value::Object(id) = exception
            && let Ok(Object::Exception { detail, .. }) = self.heap.get_mut(id)
            && detail.pos.line == 0
        {
            detail.pos = pos;
        }
        while let Some(frame) = self.frames.last_mut() {
            if let Frame::Code { ip, base, handlers, .. } = frame {
                if let Some(handler) = handlers.pop() {
                    *ip = handler.target;
                    self.stack.truncate((handler.height.max(*base)) as usize);
                    return match self.push(exception) {
                        Ok(()) => None,
                        Err(Trap::Fatal(error)) => Some(error.at(pos)),
                        Err(_) => Some(Error::new(Kind::State, "state is corrupt").at(pos)),
                    };
                }
                self.stack.truncate(*base as usize);
            }
            self.frames.pop();
        }
        Some(self.uncaught(exception))
    }

    fn uncaught(&self, exception: Value) -> Error {
        let Some(Object::Exception { class, detail, .. }) = self.heap.object(exception) else {
            return Error::new(Kind::State, "state is corrupt");
        };
        let fuel = self.heap.fuel.replace(0);
        let mut message = self.heap.display(exception).unwrap_or_default();
        self.heap.fuel.set(fuel);
        message.truncate(message.floor_char_boundary(1_000));
        let error = Error::raised(class.name(), message).at(detail.pos);
        match &detail.hint {
            Some(hint) => error.with_hint(hint.clone()),
            None => error,
        }
    }
}

impl Each {
    /// The values that it holds.
    fn values(&self) -> [Value; 4] {
        let own = match self.goal {
            Goal::Sort { list, .. } => list,
            Goal::Extreme { default, .. } => default.unwrap_or(Value::Unbound),
            _ => Value::Unbound,
        };
        [self.callee, self.items, self.results, own]
    }
}

impl Loaded {
    /// What it has allocated.
    fn bytes(&self) -> u64 {
        let values = bytes_of::<Value>(self.consts.capacity()).saturating_add(bytes_of::<u32>(self.slots.capacity()));
        self.code.bytes().saturating_add(values)
    }
}

fn over_if(over: bool, what: &str, limit: usize, used: usize) -> Outcome<()> {
    if over {
        return Err(Trap::Fatal(Box::new(Error::over(what, limit as u64, used as u64))));
    }
    Ok(())
}
