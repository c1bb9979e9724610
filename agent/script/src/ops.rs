//! What operators do. All of it charges work and bounds its depth.

mod compare;
mod hash;
mod number;

pub(crate) use number::{Number, float_divmod, index_of, int_divmod, overflow, truncated, whole};

use crate::ast::{BinOp, UnOp};
use crate::error::Error;
use crate::heap::{Heap, Object, Outcome, Trap, bytes_of, raise, raise_with};
use crate::table::Table;
use crate::value::{Builtin, Class, TypeName, Value};
use number::arithmetic;

/// Checks a depth of recursion against the bound on values.
pub(crate) fn check_depth(heap: &Heap, depth: u32) -> Outcome<()> {
    if depth >= heap.nesting {
        let error = Error::over("nesting of values", u64::from(heap.nesting), u64::from(depth).saturating_add(1));
        return Err(Trap::Fatal(Box::new(error)));
    }
    Ok(())
}
impl Heap {
    pub(crate) fn type_name(&self, value: Value) -> &'static str {
        match value {
            Value::Unbound => "unbound",
            Value::None => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Builtin(b) if is_type(b) => "type",
            Value::Builtin(_) => TypeName::Builtin.name(),
            Value::Class(_) | Value::Type(_) => "type",
            Value::Json => "module",
            Value::Server(_) => "server",
            Value::Tool(_) => "tool",
            Value::Object(_) | Value::Growing(..) => match self.object(value) {
                Some(Object::Str(_)) => "str",
                Some(Object::List(_)) => "list",
                Some(Object::Tuple(_)) => "tuple",
                Some(Object::Dict(_)) => "dict",
                Some(Object::Set(_)) => "set",
                Some(Object::Range { .. }) => "range",
                Some(Object::Iter { .. }) => "iterator",
                Some(Object::Function { .. }) => "function",
                Some(Object::Method { .. }) => TypeName::Builtin.name(),
                Some(Object::Exception { class, .. }) => class.name(),
                Some(Object::Pending(_)) => TypeName::Pending.name(),
                None => "unbound",
            },
        }
    }

    /// What `type(value)` gives.
    pub(crate) fn type_of(&self, value: Value) -> Value {
        if let Some(Object::Exception { class, .. }) = self.object(value) {
            return Value::Class(*class);
        }
        let name = self.type_name(value);
        match (Builtin::named(name), TypeName::named(name)) {
            (_, Some(name)) if name == TypeName::Type => Value::Type(name),
            (Some(builtin), _) => Value::Builtin(builtin),
            (None, Some(name)) => Value::Type(name),
            (None, None) => Value::None,
        }
    }

    pub(crate) fn truthy(&self, value: Value) -> bool {
        match value {
            Value::None | Value::Unbound => false,
            Value::Bool(b) => b,
            Value::Int(n) => n != 0,
            Value::Float(n) => n != 0.0,
            _ => self.length(value) != Some(0),
        }
    }

    /// The number of elements, where a value has some.
    pub(crate) fn length(&self, value: Value) -> Option<u64> {
        Some(match self.object(value)? {
            Object::Str(text) => text.n_chars,
            Object::List(items) | Object::Tuple(items) => items.len() as u64,
            Object::Dict(table) | Object::Set(table) => table.len() as u64,
            Object::Range { start, stop, step } => range_len(*start, *stop, *step),
            _ => return None,
        })
    }

    pub(crate) fn unary(&mut self, op: UnOp, value: Value) -> Outcome<Value> {
        let sign = match (op, Number::of(value)) {
            (UnOp::Not, _) => return Ok(Value::Bool(!self.truthy(value))),
            (UnOp::Neg, Some(Number::Int(n))) => return n.checked_neg().map_or_else(overflow, |n| Ok(Value::Int(n))),
            (UnOp::Neg, Some(Number::Float(n))) => return Ok(Value::Float(-n)),
            (UnOp::Pos, Some(Number::Int(n))) => return Ok(Value::Int(n)),
            (UnOp::Pos, Some(Number::Float(n))) => return Ok(Value::Float(n)),
            (UnOp::Invert, Some(Number::Int(n))) => return Ok(Value::Int(!n)),
            (UnOp::Neg, None) => "-",
            (UnOp::Pos, None) => "+",
            (UnOp::Invert, _) => "~",
        };
        raise(Class::TypeError, format!("bad operand type for unary {sign}: '{}'", self.type_name(value)))
    }

    pub(crate) fn binary(&mut self, op: BinOp, a: Value, b: Value) -> Outcome<Value> {
        if let (Value::Bool(x), Value::Bool(y)) = (a, b) {
            match op {
                BinOp::And => return Ok(Value::Bool(x & y)),
                BinOp::Or => return Ok(Value::Bool(x | y)),
                BinOp::Xor => return Ok(Value::Bool(x ^ y)),
                _ => {}
            }
        }
        if let (Some(x), Some(y)) = (Number::of(a), Number::of(b))
            && let Some(result) = arithmetic(op, x, y)?
        {
            return Ok(result);
        }
        match (op, self.object(a), self.object(b)) {
            (BinOp::Add, Some(Object::Str(x)), Some(Object::Str(y))) => {
                let n = x.text.len().saturating_add(y.text.len());
                let mut text = String::new();
                self.room_in_text(&mut text, n)?;
                self.write(&mut text, &x.text)?;
                self.write(&mut text, &y.text)?;
                let n_chars = x.n_chars.saturating_add(y.n_chars);
                self.counted_string(text, n_chars)
            }
            (BinOp::Add, Some(Object::List(x)), Some(Object::List(y))) => {
                let items = self.joined(x, y)?;
                self.list(items)
            }
            (BinOp::Add, Some(Object::Tuple(x)), Some(Object::Tuple(y))) => {
                let items = self.joined(x, y)?;
                self.tuple(items)
            }
            (BinOp::Mul, Some(_), None) => self.repeated(a, b),
            (BinOp::Mul, None, Some(_)) => self.repeated(b, a),
            (BinOp::Mod, Some(Object::Str(_)), _) => self.percent_format(a, b),
            (BinOp::Or, Some(Object::Dict(x)), Some(Object::Dict(y))) => {
                let table = self.table(x.iter().chain(y.iter()))?;
                self.dict(table)
            }
            (BinOp::Or | BinOp::And | BinOp::Sub | BinOp::Xor, Some(Object::Set(x)), Some(Object::Set(y))) => {
                let table = self.set_operation(op, x, y)?;
                self.set(table)
            }
            _ => self.no_operator(op, a, b),
        }
    }

    pub(crate) fn set_operation(&self, op: BinOp, x: &Table, y: &Table) -> Outcome<Table> {
        let mut pairs = Vec::new();
        for (key, value) in x.iter() {
            let keep = match op {
                BinOp::Or => true,
                BinOp::And => self.find_in(y, key)?.is_some(),
                _ => self.find_in(y, key)?.is_none(),
            };
            if keep {
                self.grow(&mut pairs, (key, value))?;
            }
        }
        if matches!(op, BinOp::Or | BinOp::Xor) {
            for (key, value) in y.iter() {
                if self.find_in(x, key)?.is_none() {
                    self.grow(&mut pairs, (key, value))?;
                }
            }
        }
        self.table(pairs)
    }

    fn joined(&self, x: &[Value], y: &[Value]) -> Outcome<Vec<Value>> {
        let n = x.len().saturating_add(y.len());
        self.work(n as u64 / 8)?;
        let mut out = self.vec(n)?;
        out.extend_from_slice(x);
        out.extend_from_slice(y);
        Ok(out)
    }

    fn repeated(&mut self, a: Value, b: Value) -> Outcome<Value> {
        let Some(n) = index_of(b) else { return self.no_operator(BinOp::Mul, a, b) };
        let n = usize::try_from(n.max(0)).unwrap_or(usize::MAX);
        match self.object(a) {
            Some(Object::Str(text)) => {
                let bytes = text.text.len().saturating_mul(n);
                self.scratch(bytes as u64)?;
                self.work(bytes as u64 / 64)?;
                let text = text.text.repeat(if text.text.is_empty() { 0 } else { n });
                self.string(text)
            }
            Some(Object::List(items) | Object::Tuple(items)) => {
                let total = items.len().saturating_mul(n);
                self.scratch(bytes_of::<Value>(total))?;
                self.work(total as u64 / 8)?;
                let items = items.repeat(if items.is_empty() { 0 } else { n });
                match self.object(a) {
                    Some(Object::List(_)) => self.list(items),
                    _ => self.tuple(items),
                }
            }
            _ => self.no_operator(BinOp::Mul, a, b),
        }
    }

    fn no_operator<T>(&self, op: BinOp, a: Value, b: Value) -> Outcome<T> {
        let sign = crate::ast::BINARY.iter().find(|(_, o, _)| *o == op).map_or("?", |(s, _, _)| s);
        let sign = if op == BinOp::Pow { "** or pow()" } else { sign };
        let (left, right) = (self.type_name(a), self.type_name(b));
        if op == BinOp::Add && left == "str" {
            let message = format!("can only concatenate str (not \"{right}\") to str");
            return raise_with(Class::TypeError, message, "write f\"{a}{b}\", or str(b)");
        }
        let message = format!("unsupported operand type(s) for {sign}: '{left}' and '{right}'");
        match (left, right) {
            (_, "str") if op == BinOp::Add => raise_with(Class::TypeError, message, "write f\"{a}{b}\", or float(b)"),
            ("str", _) | (_, "str") => {
                raise_with(Class::TypeError, message, "turn the string into a number first: float(x)")
            }
            ("dict", _) | (_, "dict") => raise_with(Class::TypeError, message, "take a key of the dict: d[\"key\"]"),
            ("NoneType", _) | (_, "NoneType") => {
                raise_with(Class::TypeError, message, "the value is None: check what the call returned")
            }
            _ => raise(Class::TypeError, message),
        }
    }

    /// `a op= b`: lists, sets and dicts change in place, so that their other names see it.
    pub(crate) fn augment(&mut self, op: BinOp, a: Value, b: Value) -> Outcome<Value> {
        let Value::Object(id) = a else { return self.binary(op, a, b) };
        match (op, self.get(id)?) {
            (BinOp::Add, Object::List(_)) => {
                let items = self.collected(b)?;
                let n = items.len();
                self.change_list(id, n, |list| list.extend(items))?;
                Ok(a)
            }
            (BinOp::Or, Object::Dict(_) | Object::Set(_)) if self.type_name(a) == self.type_name(b) => {
                for (key, value) in self.pairs(b)? {
                    self.insert(id, key, value)?;
                }
                Ok(a)
            }
            _ => self.binary(op, a, b),
        }
    }

    /// The entries of a dict or set.
    pub(crate) fn pairs(&self, value: Value) -> Outcome<Vec<(Value, Value)>> {
        let Some(Object::Dict(table) | Object::Set(table)) = self.object(value) else { return Ok(Vec::new()) };
        self.work(table.len() as u64 / 8)?;
        let mut out = self.vec(table.len())?;
        out.extend(table.iter());
        Ok(out)
    }
}

/// Whether a built-in is a type and not only a function.
pub(crate) fn is_type(builtin: Builtin) -> bool {
    use Builtin::*;
    matches!(builtin, Bool | Dict | Float | Int | List | Range | Set | Str | Tuple | Type)
}

pub(crate) fn range_len(start: i64, stop: i64, step: i64) -> u64 {
    let (low, high) = if step > 0 { (start, stop) } else { (stop, start) };
    if step == 0 || low >= high {
        return 0;
    }
    let span = i128::from(high).saturating_sub(i128::from(low));
    let step = i128::from(step).abs();
    let n = span.saturating_add(step).saturating_sub(1).checked_div(step);
    n.and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX)
}

fn in_range(n: i64, start: i64, stop: i64, step: i64) -> bool {
    let inside = if step > 0 { start <= n && n < stop } else { stop < n && n <= start };
    let away = i128::from(n).saturating_sub(i128::from(start));
    inside && away.checked_rem(i128::from(step)) == Some(0)
}
