//! Numbers: their order, and arithmetic with 64-bit checked whole numbers and Python's rounding of quotients.
//!
//! Pure functions: no heap, so no charge either; each is constant work.

use crate::ast::BinOp;
use crate::heap::{Outcome, raise, raise_with};
use crate::value::{Class, Value};
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

/// The least power of two above all whole numbers.
const TOP: f64 = 9_223_372_036_854_775_808.0;

fn order_int_float(a: i64, b: f64) -> Option<Ordering> {
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
    (n.fract() == 0.0 && (-TOP..TOP).contains(&n)).then_some(n as i64)
}

/// What is before the point, as `int(n)` gives it.
pub(crate) fn truncated(n: f64) -> Outcome<i64> {
    match whole(n.trunc()) {
        Some(n) => Ok(n),
        None if n.is_nan() => raise(Class::ValueError, "cannot convert float NaN to integer"),
        None if n.is_infinite() => raise(Class::OverflowError, "cannot convert float infinity to integer"),
        None => overflow(),
    }
}

pub(crate) fn overflow<T>() -> Outcome<T> {
    raise_with(Class::OverflowError, "whole number does not fit 64 bits", "use floats: write 1.0 * a")
}

/// The value of an index, which is a whole number or a bool.
pub(crate) fn index_of(value: Value) -> Option<i64> {
    match value {
        Value::Int(n) => Some(n),
        Value::Bool(b) => Some(i64::from(b)),
        _ => None,
    }
}

/// What `op` makes of two numbers; None where it is not defined for floats.
pub(super) fn arithmetic(op: BinOp, x: Number, y: Number) -> Outcome<Option<Value>> {
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
        rest = rest.checked_add(b)?;
        quotient = quotient.checked_sub(1)?;
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
