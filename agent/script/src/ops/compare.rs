//! Equality, order, identity and membership, by Python's rules. Every visited value is charged, every descent bounded.

use super::{Number, check_depth, in_range, range_len, whole};
use crate::ast::CmpOp;
use crate::heap::{Heap, Object, Outcome, raise, raise_with};
use crate::table::Table;
use crate::value::{Class, Value};
use std::cmp::Ordering;

impl Heap {
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
                    if !self.equal_at(*x, *y, depth.saturating_add(1))? {
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
                        Some(other) if self.equal_at(value, other, depth.saturating_add(1))? => {}
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
                    if !self.equal_at(*x, *y, depth.saturating_add(1))? {
                        return self.order_at(*x, *y, sign, depth.saturating_add(1));
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
                    _ if self.type_name(a) == "dict" => {
                        raise_with(Class::TypeError, message, "say by what: sorted(xs, key=lambda x: x.size)")
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
}
