//! The common cases of calls and operators, without the detour over argument lists. Each gives what the general way gives:
//! that is what runs where a case here does not apply.

use super::{Vm, over_if};
use crate::ast::{BinOp, CmpOp, ParamKind};
use crate::error::Error;
use crate::heap::{Object, Outcome, Trap, corrupt};
use crate::value::Value;

/// Arithmetic on whole numbers that fits.
#[inline]
pub(super) fn binary(op: BinOp, a: Value, b: Value) -> Option<Value> {
    let (Value::Int(a), Value::Int(b)) = (a, b) else { return None };
    let result = match op {
        BinOp::Add => a.checked_add(b),
        BinOp::Sub => a.checked_sub(b),
        BinOp::Mul => a.checked_mul(b),
        BinOp::Mod if b > 0 => a.checked_rem_euclid(b),
        BinOp::FloorDiv if b > 0 => a.checked_div_euclid(b),
        _ => None,
    };
    result.map(Value::Int)
}

/// Comparison of whole numbers.
#[inline]
pub(super) fn compare(op: CmpOp, a: Value, b: Value) -> Option<bool> {
    let (Value::Int(a), Value::Int(b)) = (a, b) else { return None };
    match op {
        CmpOp::Eq => Some(a == b),
        CmpOp::Ne => Some(a != b),
        CmpOp::Lt => Some(a < b),
        CmpOp::Le => Some(a <= b),
        CmpOp::Gt => Some(a > b),
        CmpOp::Ge => Some(a >= b),
        _ => None,
    }
}

impl Vm {
    /// Calls a function of the program with as many plain arguments as it has parameters; whether this was one.
    pub(super) fn quick_call(&mut self, n_plain: u32) -> Outcome<bool> {
        let n_plain = n_plain as usize;
        let Some(at) = self.stack.len().checked_sub(n_plain.saturating_add(1)) else { return Err(corrupt()) };
        let Some(callee @ Value::Object(_)) = self.stack.get(at).copied() else { return Ok(false) };
        let Some(Object::Function { code, bound }) = self.heap.object(callee) else { return Ok(false) };
        let code = *code;
        let loaded = &self.loaded(code)?.code;
        let fits = loaded.params.len() == n_plain && loaded.params.iter().all(|kind| *kind == ParamKind::Plain);
        if !fits || !bound.captured.is_empty() {
            return Ok(false);
        }
        let n_locals = loaded.locals.len();
        self.check_frames()?;
        let end = at.saturating_add(n_locals.max(n_plain));
        over_if(end > super::MOST_STACK, "stack", super::MOST_STACK, end)?;
        let more = end.saturating_sub(self.stack.len());
        self.heap.kept_room(&mut self.stack, more)?;
        self.stack.remove(at);
        self.stack.resize(end, Value::Unbound);
        self.enter(code, at)?;
        Ok(true)
    }

    /// Refuses one more active function than the limit allows.
    pub(super) fn check_frames(&self) -> Outcome<()> {
        let frames = self.frames.len().saturating_add(1);
        if frames > self.limits.frames as usize {
            let error = Error::over("call depth", u64::from(self.limits.frames), frames as u64);
            return Err(Trap::Fatal(Box::new(error.with_hint("write a loop in place of the recursion"))));
        }
        Ok(())
    }

    /// `xs.append(x)` and `d.get(k)`; whether this was one.
    pub(super) fn quick_method(&mut self, code: u32, name: u32, n_plain: u32) -> Outcome<bool> {
        let Some(at) = self.stack.len().checked_sub((n_plain as usize).saturating_add(1)) else {
            return Err(corrupt());
        };
        let Some(receiver @ Value::Object(id)) = self.stack.get(at).copied() else { return Ok(false) };
        let name = self.loaded(code)?.code.names.get(name as usize).ok_or_else(corrupt)?;
        let result = match (self.heap.object(receiver), &**name, self.stack.get(at.saturating_add(1)..)) {
            (Some(Object::List(_)), "append", Some([item])) => {
                let item = *item;
                self.heap.change_list(id, 1, |items| items.push(item))?;
                Value::None
            }
            (Some(Object::Dict(_)), "get", Some([key, rest @ ..])) if rest.len() < 2 => {
                let default = rest.first().copied().unwrap_or(Value::None);
                self.heap.lookup(id, *key)?.unwrap_or(default)
            }
            _ => return Ok(false),
        };
        self.stack.truncate(at);
        self.push(result)?;
        Ok(true)
    }

    /// What a variable holds after `a += b`, where `place` is what it holds now and `a` what it held before `b` was made.
    pub(super) fn grown(&mut self, a: Value, b: Value, place: Value) -> Outcome<Value> {
        if let Some(sum) = binary(BinOp::Add, a, b) {
            return Ok(sum);
        }
        let a = match a {
            Value::Growing(id, len) => {
                let untouched = a == place && self.heap.text(a).is_some_and(|text| text.len() == len as usize);
                if untouched && let Some(len) = self.heap.append(id, b)? {
                    return Ok(Value::Growing(id, len));
                }
                if untouched { Value::Object(id) } else { self.heap.prefix(id, len)? }
            }
            a => a,
        };
        let result = self.heap.augment(BinOp::Add, a, b)?;
        match (result, self.heap.text(result).map(|text| u32::try_from(text.len()))) {
            (Value::Object(id), Some(Ok(len))) => Ok(Value::Growing(id, len)),
            _ => Ok(result),
        }
    }
}
