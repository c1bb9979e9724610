//! A number: an exact fraction as long as arithmetic allows, then a float.

use crate::{Error, ErrorKind};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Pow, Signed, ToPrimitive, Zero};
use serde_json::Value;
use std::fmt;

/// Bits of a numerator or denominator; 4,096 bits are 1,233 digits.
pub(super) const MAX_BITS: u64 = 4096;
/// Digits after the point up to which a decimal is written out rather than rounded.
const MAX_DECIMALS: usize = 15;
const SIGNIFICANT_DIGITS: usize = 10;
const MAX_EXPONENT: i32 = 400;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Number {
    Exact(BigRational),
    Float(f64),
}

/// A JSON number as it was written: `17.5` is 35/2, not the nearest float.
pub(super) fn from_json(value: &Value) -> Result<BigRational, Error> {
    value
        .as_number()
        .and_then(|number| decimal(&number.to_string()))
        .ok_or_else(|| Error::invalid(format!("is no number in range: {value}")))
}

/// `12`, `-0.5`, `1.5e-3`.
pub(super) fn decimal(text: &str) -> Option<BigRational> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    if exponent.abs() > MAX_EXPONENT || mantissa.len() > MAX_EXPONENT as usize {
        return None;
    }
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: BigInt = format!("{whole}{fraction}").parse().ok()?;
    let shift = exponent - i32::try_from(fraction.len()).ok()?;
    let power = BigRational::from_integer(Pow::pow(BigInt::from(10), shift.unsigned_abs()));
    let number = BigRational::from_integer(digits);
    Some(if shift < 0 { number / power } else { number * power })
}

impl Number {
    pub(super) fn integer(n: impl Into<BigInt>) -> Self {
        Self::Exact(BigRational::from_integer(n.into()))
    }

    /// A float that is a number; one that is integral and small becomes exact again.
    pub(super) fn float(x: f64) -> Result<Self, Error> {
        match x {
            x if !x.is_finite() => Err(Error::invalid("the result is no finite number")),
            x if x.fract() == 0.0 && x.abs() < 1e15 => Ok(Self::integer(x as i64)),
            x => Ok(Self::Float(x)),
        }
    }

    pub(super) fn exact_within_bounds(x: BigRational) -> Result<Self, Error> {
        let used = x.numer().bits().max(x.denom().bits());
        if used > MAX_BITS {
            return Err(Error::limit("size of a number in bits", MAX_BITS, used));
        }
        Ok(Self::Exact(x))
    }

    pub(super) fn sqrt(&self) -> Result<Self, Error> {
        match self {
            Self::Exact(x) if x.is_negative() => Err(no_root()),
            Self::Exact(x) => {
                let root = BigRational::new(x.numer().sqrt(), x.denom().sqrt());
                if &root * &root == *x {
                    return Ok(Self::Exact(root));
                }
                Self::float(x.to_f64().unwrap_or(f64::NAN).sqrt())
            }
            Self::Float(x) if *x < 0.0 => Err(no_root()),
            Self::Float(x) => Self::float(x.sqrt()),
        }
    }

    /// As JSON: an integer where it is one, a string of digits beyond 64 bits, else the nearest float.
    pub(super) fn value(&self) -> Value {
        match self {
            Self::Exact(x) if x.is_integer() => {
                x.to_integer().to_i64().map_or_else(|| x.to_integer().to_string().into(), Value::from)
            }
            Self::Exact(x) => x.to_f64().map_or(Value::Null, |x| round_significant(x).into()),
            Self::Float(x) => round_significant(*x).into(),
        }
    }

    /// All digits or a fraction; `None` for a float.
    pub(super) fn exact(&self) -> Option<String> {
        match self {
            Self::Exact(x) => Some(written_out(x).unwrap_or_else(|| x.to_string())),
            Self::Float(_) => None,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.value()) {
            (Self::Exact(x), value) => match (written_out(x), value) {
                (Some(digits), _) => f.write_str(&digits),
                (None, value) => write!(f, "{value}"),
            },
            (Self::Float(_), value) => write!(f, "{value}"),
        }
    }
}

/// The decimal form, when it ends within [`MAX_DECIMALS`].
fn written_out(x: &BigRational) -> Option<String> {
    if x.is_integer() {
        return Some(x.to_integer().to_string());
    }
    let mut scaled = x.clone();
    let mut decimals = 0;
    while !scaled.is_integer() {
        if decimals == MAX_DECIMALS {
            return None;
        }
        scaled *= BigInt::from(10);
        decimals += 1;
    }
    let digits = format!("{:0>width$}", scaled.to_integer().abs().to_string(), width = decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    Some(format!("{}{whole}.{fraction}", if x.is_negative() { "-" } else { "" }))
}

/// Ten significant digits: what follows in a float that is not exact is noise to a reader.
fn round_significant(x: f64) -> f64 {
    let written = format!("{x:.*e}", SIGNIFICANT_DIGITS - 1);
    written.parse().unwrap_or(x)
}

fn no_root() -> Error {
    Error::invalid("a negative number has no square root")
}

/// `base` to the power of `exponent`, exact for whole exponents.
pub(super) fn power(base: &Number, exponent: &Number) -> Result<Number, Error> {
    if let (Number::Exact(base), Number::Exact(whole)) = (base, exponent)
        && whole.is_integer()
    {
        let whole = whole.to_integer();
        if base.is_zero() && whole.is_negative() {
            return Err(divided_by_zero());
        }
        if base.is_zero() || base.abs().is_one() {
            let odd = whole.bit(0);
            return Ok(match (whole.is_zero(), base.is_negative() && !odd) {
                (true, _) | (_, true) => Number::integer(1),
                _ => Number::Exact(base.clone()),
            });
        }
        let bits = base.numer().bits().max(base.denom().bits());
        let used = whole.abs().to_u64().and_then(|n| n.checked_mul(bits)).unwrap_or(u64::MAX);
        if used > MAX_BITS {
            return Err(Error::limit("size of a power in bits", MAX_BITS, used));
        }
        let n = whole.to_i32().ok_or_else(|| Error::limit("exponent", MAX_BITS, used))?;
        return Ok(Number::Exact(Pow::pow(base, n)));
    }
    if *exponent == Number::Exact(BigRational::new(1.into(), 2.into())) {
        return base.sqrt();
    }
    Number::float(base.to_f64().powf(exponent.to_f64()))
}

pub(super) fn divided_by_zero() -> Error {
    Error::new(ErrorKind::InvalidArgument, "division by zero")
}
