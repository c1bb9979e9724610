//! What operators do: arithmetic, comparison, hashing, truth. All of it charges work and bounds its depth.

use crate::ast::{BinOp, CmpOp, UnOp};
use crate::error::Error;
use crate::heap::{ENTRY_BYTES, Heap, Object, Outcome, Trap, raise, raise_with};
use crate::table::Table;
use crate::value::{Builtin, Class, Id, TypeName, Value};
use std::cell::Cell;
use std::cmp::Ordering;

/// A number, bools being whole ones.
#[derive(Clone, Copy)]
pub(crate) enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    pub(crate) fn of(value: Value) -> Option<Number> {
        match value {
            Value::Bool(b) => Some(Number::Int(i64::from(b))),
            Value::Int(n) => Some(Number::Int(n)),
            Value::Float(n) => Some(Number::Float(n)),
            _ => None,
        }
    }

    pub(crate) fn float(self) -> f64 {
        match self {
            Number::Int(n) => n as f64,
            Number::Float(n) => n,
        }
    }

    pub(crate) fn order(self, other: Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
            (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b),
            (Number::Int(a), Number::Float(b)) => order_int_float(a, b),
            (Number::Float(a), Number::Int(b)) => order_int_float(b, a).map(Ordering::reverse),
        }
    }
}

fn order_int_float(a: i64, b: f64) -> Option<Ordering> {
    const TOP: f64 = 9_223_372_036_854_775_808.0;
    if b.is_nan() {
        None
    } else if b >= TOP {
        Some(Ordering::Less)
    } else if b < -TOP {
        Some(Ordering::Greater)
    } else {
        let whole = b.trunc();
        Some(a.cmp(&(whole as i64)).then_with(|| 0.0f64.partial_cmp(&(b - whole)).unwrap_or(Ordering::Equal)))
    }
}

/// The whole number that equals `n`, if it is one and fits.
pub(crate) fn whole(n: f64) -> Option<i64> {
    (n.fract() == 0.0 && (-9.2e18..9.2e18).contains(&n)).then_some(n as i64)
}

pub(crate) fn overflow<T>() -> Outcome<T> {
    raise_with(Class::OverflowError, "whole number does not fit 64 bits", "use floats: write 1.0 * a")
}

/// Checks a depth of recursion against the bound on values.
pub(crate) fn check_depth(heap: &Heap, depth: u32) -> Outcome<()> {
    if depth >= heap.nesting {
        let error = Error::over("nesting of values", u64::from(heap.nesting), u64::from(depth) + 1);
        return Err(Trap::Fatal(Box::new(error)));
    }
    Ok(())
}

/// The value of an index, which is a whole number or a bool.
pub(crate) fn index_of(value: Value) -> Option<i64> {
    match value {
        Value::Int(n) => Some(n),
        Value::Bool(b) => Some(i64::from(b)),
        _ => None,
    }
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
            Value::Object(_) => match self.object(value) {
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

    pub(crate) fn equal(&self, a: Value, b: Value) -> Outcome<bool> {
        self.equal_at(a, b, 0)
    }

    fn equal_at(&self, a: Value, b: Value, depth: u32) -> Outcome<bool> {
        self.work(1)?;
        if let (Some(x), Some(y)) = (Number::of(a), Number::of(b)) {
            return Ok(x.order(y) == Some(Ordering::Equal));
        }
        let (Value::Object(x), Value::Object(y)) = (a, b) else { return Ok(a == b) };
        if x == y {
            return Ok(true);
        }
        check_depth(self, depth)?;
        match (self.get(x)?, self.get(y)?) {
            (Object::Str(x), Object::Str(y)) => {
                self.work(x.text.len() as u64 / 64)?;
                Ok(x.text == y.text)
            }
            (Object::List(x), Object::List(y)) | (Object::Tuple(x), Object::Tuple(y)) => {
                if x.len() != y.len() {
                    return Ok(false);
                }
                for (x, y) in x.iter().zip(y) {
                    if !self.equal_at(*x, *y, depth + 1)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Object::Dict(x), Object::Dict(y)) => {
                if x.len() != y.len() {
                    return Ok(false);
                }
                for (key, value) in x.iter() {
                    let found = self.find_in(y, key)?.and_then(|slot| y.value_at(slot));
                    match found {
                        Some(other) if self.equal_at(value, other, depth + 1)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
            (Object::Set(x), Object::Set(y)) => Ok(x.len() == y.len() && self.subset(x, y)?),
            (Object::Range { start: a, stop: b, step: c }, Object::Range { start: d, stop: e, step: f }) => {
                let (n, m) = (range_len(*a, *b, *c), range_len(*d, *e, *f));
                Ok(n == m && (n == 0 || (a == d && (n == 1 || c == f))))
            }
            (Object::Method { receiver: a, name: b }, Object::Method { receiver: c, name: d }) => Ok(a == c && b == d),
            _ => Ok(false),
        }
    }

    fn subset(&self, x: &Table, y: &Table) -> Outcome<bool> {
        for (key, _) in x.iter() {
            if self.find_in(y, key)?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Orders two values; None where they compare as neither, as NaN does.
    pub(crate) fn order(&self, a: Value, b: Value, sign: &str) -> Outcome<Option<Ordering>> {
        self.order_at(a, b, sign, 0)
    }

    fn order_at(&self, a: Value, b: Value, sign: &str, depth: u32) -> Outcome<Option<Ordering>> {
        self.work(1)?;
        if let (Some(x), Some(y)) = (Number::of(a), Number::of(b)) {
            return Ok(x.order(y));
        }
        check_depth(self, depth)?;
        match (self.object(a), self.object(b)) {
            (Some(Object::Str(x)), Some(Object::Str(y))) => {
                self.work(x.text.len().min(y.text.len()) as u64 / 64)?;
                Ok(Some(x.text.cmp(&y.text)))
            }
            (Some(Object::List(x)), Some(Object::List(y))) | (Some(Object::Tuple(x)), Some(Object::Tuple(y))) => {
                for (x, y) in x.iter().zip(y) {
                    if !self.equal_at(*x, *y, depth + 1)? {
                        return self.order_at(*x, *y, sign, depth + 1);
                    }
                }
                Ok(Some(x.len().cmp(&y.len())))
            }
            _ => {
                let message = format!(
                    "'{sign}' not supported between instances of '{}' and '{}'",
                    self.type_name(a),
                    self.type_name(b)
                );
                match (self.text(a).is_some(), self.text(b).is_some(), a, b) {
                    (true, false, _, Value::Int(_) | Value::Float(_))
                    | (false, true, Value::Int(_) | Value::Float(_), _) => {
                        raise_with(Class::TypeError, message, "turn the string into a number first: float(x)")
                    }
                    (.., Value::None, _) | (.., Value::None) => {
                        raise_with(Class::TypeError, message, "leave out None first: if x is not None")
                    }
                    _ => raise(Class::TypeError, message),
                }
            }
        }
    }

    pub(crate) fn compare(&self, op: CmpOp, a: Value, b: Value) -> Outcome<bool> {
        let order = |sign: &str| self.order(a, b, sign);
        if let (Some(Object::Set(x)), Some(Object::Set(y))) = (self.object(a), self.object(b)) {
            match op {
                CmpOp::Le => return self.subset(x, y),
                CmpOp::Lt => return Ok(x.len() < y.len() && self.subset(x, y)?),
                CmpOp::Ge => return self.subset(y, x),
                CmpOp::Gt => return Ok(y.len() < x.len() && self.subset(y, x)?),
                _ => {}
            }
        }
        Ok(match op {
            CmpOp::Eq => self.equal(a, b)?,
            CmpOp::Ne => !self.equal(a, b)?,
            CmpOp::Lt => order("<")? == Some(Ordering::Less),
            CmpOp::Le => order("<=")?.is_some_and(Ordering::is_le),
            CmpOp::Gt => order(">")? == Some(Ordering::Greater),
            CmpOp::Ge => order(">=")?.is_some_and(Ordering::is_ge),
            CmpOp::In => self.contains(b, a)?,
            CmpOp::NotIn => !self.contains(b, a)?,
            CmpOp::Is => self.same(a, b),
            CmpOp::IsNot => !self.same(a, b),
        })
    }

    fn same(&self, a: Value, b: Value) -> bool {
        match (self.text(a), self.text(b)) {
            (Some(x), Some(y)) => x == y,
            _ => a == b,
        }
    }

    pub(crate) fn contains(&self, container: Value, value: Value) -> Outcome<bool> {
        match self.object(container) {
            Some(Object::Str(text)) => match self.text(value) {
                Some(part) => {
                    self.work(text.text.len() as u64 / 16)?;
                    Ok(text.text.contains(part))
                }
                None => raise_with(
                    Class::TypeError,
                    format!("'in <string>' requires string as left operand, not {}", self.type_name(value)),
                    "write str(x) in text",
                ),
            },
            Some(Object::List(items) | Object::Tuple(items)) => {
                for item in items {
                    if self.equal(*item, value)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Some(Object::Dict(table) | Object::Set(table)) => Ok(self.find_in(table, value)?.is_some()),
            Some(Object::Range { start, stop, step }) => Ok(match Number::of(value) {
                Some(Number::Int(n)) => in_range(n, *start, *stop, *step),
                Some(Number::Float(n)) => whole(n).is_some_and(|n| in_range(n, *start, *stop, *step)),
                None => false,
            }),
            _ => raise(Class::TypeError, format!("argument of type '{}' is not iterable", self.type_name(container))),
        }
    }

    /// FNV-1a with a last mix. It must stay as it is: decoded states hold it.
    pub(crate) fn hash(&self, value: Value) -> Outcome<u64> {
        let mut state = 0xcbf2_9ce4_8422_2325;
        self.hash_into(value, &mut state, 0)?;
        state ^= state >> 32;
        Ok(state.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn hash_into(&self, value: Value, state: &mut u64, depth: u32) -> Outcome<()> {
        self.work(1)?;
        let mut feed = |bytes: &[u8]| {
            for byte in bytes {
                *state = (*state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        match value {
            Value::None | Value::Unbound => feed(b"n"),
            Value::Bool(b) => feed(&i64::from(b).to_le_bytes()),
            Value::Int(n) => feed(&n.to_le_bytes()),
            Value::Float(n) => match whole(n) {
                Some(n) => feed(&n.to_le_bytes()),
                None => feed(&n.to_bits().to_le_bytes()),
            },
            Value::Builtin(b) => feed(b.name().as_bytes()),
            Value::Class(c) => feed(c.name().as_bytes()),
            Value::Type(t) => feed(t.name().as_bytes()),
            Value::Json => feed(b"json"),
            Value::Server(n) | Value::Tool(n) => feed(&n.to_le_bytes()),
            Value::Object(id) => match self.get(id)? {
                Object::Str(text) => {
                    self.work(text.text.len() as u64 / 64)?;
                    feed(text.text.as_bytes());
                }
                Object::Tuple(items) => {
                    check_depth(self, depth)?;
                    feed(b"(");
                    for item in items {
                        self.hash_into(*item, state, depth + 1)?;
                    }
                }
                Object::List(_) | Object::Dict(_) | Object::Set(_) => {
                    let message = format!("unhashable type: '{}'", self.type_name(value));
                    return raise_with(Class::TypeError, message, "use a str, a number or a tuple as key");
                }
                _ => feed(&id.0.to_le_bytes()),
            },
        }
        Ok(())
    }

    /// The slot of a key. Charges each comparison, so that colliding keys cost fuel.
    pub(crate) fn find_in(&self, table: &Table, key: Value) -> Outcome<Option<usize>> {
        self.find_hashed(table, self.hash(key)?, key)
    }

    pub(crate) fn find_hashed(&self, table: &Table, hash: u64, key: Value) -> Outcome<Option<usize>> {
        let n_compared = Cell::new(0);
        let found = table.find(hash, |other| {
            n_compared.set(n_compared.get() + 1);
            self.same_key(key, other, 0)
        });
        self.work(n_compared.get())?;
        Ok(found)
    }

    fn same_key(&self, a: Value, b: Value, depth: u32) -> bool {
        if let (Some(x), Some(y)) = (Number::of(a), Number::of(b)) {
            return x.order(y) == Some(Ordering::Equal);
        }
        match (self.object(a), self.object(b)) {
            (Some(Object::Str(x)), Some(Object::Str(y))) => x.text == y.text,
            (Some(Object::Tuple(x)), Some(Object::Tuple(y))) => {
                depth < self.nesting
                    && x.len() == y.len()
                    && x.iter().zip(y).all(|(x, y)| self.same_key(*x, *y, depth + 1))
            }
            _ => a == b,
        }
    }

    /// Sets a key of a dict, or adds an element to a set.
    pub(crate) fn insert(&mut self, id: Id, key: Value, value: Value) -> Outcome<()> {
        let hash = self.hash(key)?;
        let (Object::Dict(table) | Object::Set(table)) = self.get(id)? else { return Err(crate::heap::corrupt()) };
        let found = self.find_hashed(table, hash, key)?;
        self.change_table(id, |table| match found {
            Some(slot) => table.set_at(slot, value),
            None => table.push(hash, key, value),
        })
    }

    /// The table of distinct keys, each with its value; later values win.
    pub(crate) fn table(&self, pairs: impl IntoIterator<Item = (Value, Value)>) -> Outcome<Table> {
        let mut table = Table::default();
        for (key, value) in pairs {
            let hash = self.hash(key)?;
            match self.find_hashed(&table, hash, key)? {
                Some(slot) => table.set_at(slot, value),
                None => {
                    self.would_fit((table.slots() as u64 + 1) * ENTRY_BYTES)?;
                    table.push(hash, key, value);
                }
            }
        }
        Ok(table)
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
                let n = x.text.len() + y.text.len();
                self.work(n as u64 / 64)?;
                self.would_fit(n as u64)?;
                let mut text = String::with_capacity(n);
                text.push_str(&x.text);
                text.push_str(&y.text);
                self.string(text)
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
                self.store(Object::Dict(table))
            }
            (BinOp::Or | BinOp::And | BinOp::Sub | BinOp::Xor, Some(Object::Set(x)), Some(Object::Set(y))) => {
                let table = self.set_operation(op, x, y)?;
                self.store(Object::Set(table))
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
                pairs.push((key, value));
            }
        }
        if matches!(op, BinOp::Or | BinOp::Xor) {
            for (key, value) in y.iter() {
                if self.find_in(x, key)?.is_none() {
                    pairs.push((key, value));
                }
            }
        }
        self.table(pairs)
    }

    fn joined(&self, x: &[Value], y: &[Value]) -> Outcome<Vec<Value>> {
        let n = x.len() + y.len();
        self.room(n)?;
        self.work(n as u64 / 8)?;
        Ok([x, y].concat())
    }

    fn repeated(&mut self, a: Value, b: Value) -> Outcome<Value> {
        let Some(n) = index_of(b) else { return self.no_operator(BinOp::Mul, a, b) };
        let n = usize::try_from(n.max(0)).unwrap_or(usize::MAX);
        match self.object(a) {
            Some(Object::Str(text)) => {
                let bytes = text.text.len().saturating_mul(n);
                self.would_fit(bytes as u64)?;
                self.work(bytes as u64 / 64)?;
                let text = text.text.repeat(if text.text.is_empty() { 0 } else { n });
                self.string(text)
            }
            Some(Object::List(items) | Object::Tuple(items)) => {
                let total = items.len().saturating_mul(n);
                self.room(total)?;
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
                for (key, value) in self.pairs(b) {
                    self.insert(id, key, value)?;
                }
                Ok(a)
            }
            _ => self.binary(op, a, b),
        }
    }

    /// The entries of a dict or set.
    pub(crate) fn pairs(&self, value: Value) -> Vec<(Value, Value)> {
        match self.object(value) {
            Some(Object::Dict(table) | Object::Set(table)) => table.iter().collect(),
            _ => Vec::new(),
        }
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
    let span = i128::from(high) - i128::from(low);
    let step = i128::from(step).abs();
    u64::try_from((span + step - 1) / step).unwrap_or(u64::MAX)
}

fn in_range(n: i64, start: i64, stop: i64, step: i64) -> bool {
    let inside = if step > 0 { start <= n && n < stop } else { stop < n && n <= start };
    step != 0 && inside && (i128::from(n) - i128::from(start)) % i128::from(step) == 0
}

fn arithmetic(op: BinOp, x: Number, y: Number) -> Outcome<Option<Value>> {
    if let (Number::Int(a), Number::Int(b)) = (x, y) {
        return int_arithmetic(op, a, b).map(Some);
    }
    let (a, b) = (x.float(), y.float());
    Ok(Some(Value::Float(match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => a * b,
        BinOp::Div if b == 0.0 => return raise(Class::ZeroDivisionError, "float division by zero"),
        BinOp::Div => a / b,
        BinOp::FloorDiv if b == 0.0 => return raise(Class::ZeroDivisionError, "float floor division by zero"),
        BinOp::FloorDiv => float_divmod(a, b).0,
        BinOp::Mod if b == 0.0 => return raise(Class::ZeroDivisionError, "float modulo"),
        BinOp::Mod => float_divmod(a, b).1,
        BinOp::Pow => return float_pow(a, b).map(|n| Some(Value::Float(n))),
        _ => return Ok(None),
    })))
}

fn float_pow(a: f64, b: f64) -> Outcome<f64> {
    if a == 0.0 && b < 0.0 {
        return raise(Class::ZeroDivisionError, "0.0 cannot be raised to a negative power");
    }
    if a < 0.0 && a.is_finite() && b.is_finite() && b.fract() != 0.0 {
        return raise_with(
            Class::ValueError,
            "root of a negative number",
            "complex numbers are not part of the language",
        );
    }
    let result = a.powf(b);
    if result.is_infinite() && a.is_finite() && b.is_finite() {
        return raise(Class::OverflowError, "(34, 'Numerical result out of range')");
    }
    Ok(result)
}

/// Quotient rounded down and remainder with the sign of `b`, by CPython's `float_divmod`.
pub(crate) fn float_divmod(a: f64, b: f64) -> (f64, f64) {
    let mut rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest != 0.0 {
        if (b < 0.0) != (rest < 0.0) {
            rest += b;
            quotient -= 1.0;
        }
    } else {
        rest = 0.0f64.copysign(b);
    }
    let floor = if quotient != 0.0 {
        let floor = quotient.floor();
        if quotient - floor > 0.5 { floor + 1.0 } else { floor }
    } else {
        0.0f64.copysign(a / b)
    };
    (floor, rest)
}

pub(crate) fn int_divmod(a: i64, b: i64) -> Option<(i64, i64)> {
    let (mut quotient, mut rest) = (a.checked_div(b)?, a.checked_rem(b)?);
    if rest != 0 && (rest < 0) != (b < 0) {
        rest += b;
        quotient -= 1;
    }
    Some((quotient, rest))
}

fn int_arithmetic(op: BinOp, a: i64, b: i64) -> Outcome<Value> {
    let result = match op {
        BinOp::Add => a.checked_add(b),
        BinOp::Sub => a.checked_sub(b),
        BinOp::Mul => a.checked_mul(b),
        BinOp::Div if b == 0 => return raise(Class::ZeroDivisionError, "division by zero"),
        BinOp::Div => return Ok(Value::Float(a as f64 / b as f64)),
        BinOp::FloorDiv if b == 0 => return raise(Class::ZeroDivisionError, "integer division or modulo by zero"),
        BinOp::FloorDiv => int_divmod(a, b).map(|(q, _)| q),
        BinOp::Mod if b == 0 => return raise(Class::ZeroDivisionError, "integer modulo by zero"),
        BinOp::Mod => Some(int_divmod(a, b).map_or(0, |(_, r)| r)),
        BinOp::Pow if b < 0 && a == 0 => {
            return raise(Class::ZeroDivisionError, "0.0 cannot be raised to a negative power");
        }
        BinOp::Pow if b < 0 => return Ok(Value::Float((a as f64).powf(b as f64))),
        BinOp::Pow => match a {
            0 | 1 => Some(if b == 0 { 1 } else { a }),
            -1 => Some(if b % 2 == 0 { 1 } else { -1 }),
            _ => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        },
        BinOp::And => Some(a & b),
        BinOp::Or => Some(a | b),
        BinOp::Xor => Some(a ^ b),
        BinOp::Shl | BinOp::Shr if b < 0 => return raise(Class::ValueError, "negative shift count"),
        BinOp::Shl if a == 0 => Some(0),
        BinOp::Shl => u32::try_from(b)
            .ok()
            .and_then(|b| 1i64.checked_shl(b))
            .and_then(|f| if f < 0 { None } else { a.checked_mul(f) }),
        BinOp::Shr => Some(a >> b.min(63)),
    };
    result.map_or_else(overflow, |n| Ok(Value::Int(n)))
}
