//! `eval`: an expression of numbers, operators, parentheses and functions.
//!
//! Python's operators and precedence, and besides them what people write: `^` for power, `×`, `÷`, and `17.5% of 2480`.
//! Length, nesting and the size of every number are bounded; a recursion goes at most [`MAX_DEPTH`] deep.

use super::number::{MAX_BITS, Number, decimal, divided_by_zero, power};
use crate::context::Call;
use crate::{Error, bounds};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};

const MAX_EXPRESSION_BYTES: usize = 2000;
const MAX_DEPTH: usize = 64;
const MAX_FACTORIAL: u64 = 450;
const MAX_ROUND_DIGITS: i64 = 100;
const FUNCTIONS: &str = "abs, ceil, comb, cos, exp, factorial, floor, gcd, lcm, log, log10, log2, max, min, pow, round, sin, sqrt, sum, tan";

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(BigRational),
    Name(String),
    Symbol(&'static str),
}

/// The value of `expression`.
pub(super) fn evaluate(expression: &str, call: &Call<'_>) -> Result<Number, Error> {
    if expression.len() > MAX_EXPRESSION_BYTES {
        return Err(Error::limit("expression in bytes", MAX_EXPRESSION_BYTES as u64, expression.len() as u64));
    }
    let tokens = tokens(expression)?;
    if tokens.is_empty() {
        return Err(Error::invalid("the expression is empty").with_hint("write it as 12 * (3 + 4)"));
    }
    let mut parser = Parser { tokens: &tokens, at: 0, depth: 0, share_end: 0, call };
    let value = parser.sum()?;
    match parser.tokens.get(parser.at) {
        None => Ok(value),
        Some(token) => Err(unexpected(token)),
    }
}

/// Longer symbols first.
const SYMBOLS: [(&str, &str); 15] = [
    ("**", "**"),
    ("//", "//"),
    ("+", "+"),
    ("-", "-"),
    ("−", "-"),
    ("*", "*"),
    ("×", "*"),
    ("·", "*"),
    ("/", "/"),
    ("÷", "/"),
    ("%", "%"),
    ("^", "**"),
    ("(", "("),
    (")", ")"),
    (",", ","),
];

fn tokens(expression: &str) -> Result<Vec<Token>, Error> {
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_ascii_digit() || first == '.' {
            let length = number_length(rest);
            let number = decimal(&rest[..length].replace('_', ""));
            let number = number
                .ok_or_else(|| Error::invalid(format!("is no number: {}", bounds::shorten(&rest[..length], 40))))?;
            tokens.push(Token::Number(number));
            length
        } else if first.is_alphabetic() {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len());
            let name = rest[..length].to_lowercase();
            tokens.push(Token::Name(name.strip_prefix("math.").unwrap_or(&name).to_owned()));
            length
        } else if let Some((written, symbol)) = SYMBOLS.iter().find(|(written, _)| rest.starts_with(written)) {
            tokens.push(Token::Symbol(symbol));
            written.len()
        } else {
            return Err(Error::invalid(format!("unknown sign in the expression: {first}"))
                .with_hint("write it with + - * / ** % ( ) and functions"));
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// The length of the number at the start of `text`: digits with `_`, a point, an exponent.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        bytes[from..].iter().position(|b| !b.is_ascii_digit() && *b != b'_').map_or(bytes.len(), |n| from + n)
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1 + sign);
        }
    }
    end
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    /// Where a share such as `10%` ended last.
    share_end: usize,
    call: &'a Call<'a>,
}

impl Parser<'_> {
    fn take(&mut self, symbol: &str) -> bool {
        let found = matches!(self.tokens.get(self.at), Some(Token::Symbol(s)) if *s == symbol);
        self.at += usize::from(found);
        found
    }

    fn sum(&mut self) -> Result<Number, Error> {
        self.call.check()?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::limit("nesting of the expression", MAX_DEPTH as u64, self.depth as u64));
        }
        let mut value = self.product()?;
        loop {
            let minus = match () {
                () if self.take("+") => false,
                () if self.take("-") => true,
                () => break,
            };
            let right = self.product()?;
            if self.share_end == self.at {
                return Err(Error::invalid("adding a bare percent is ambiguous").with_hint("write 200 + 10% of 200"));
            }
            value = both(
                &value,
                &right,
                |a, b| if minus { a - b } else { a + b },
                |a, b| if minus { a - b } else { a + b },
            )?;
        }
        self.depth -= 1;
        Ok(value)
    }

    fn product(&mut self) -> Result<Number, Error> {
        let mut value = self.signed()?;
        loop {
            if self.take("*") {
                let right = self.signed()?;
                value = both(&value, &right, |a, b| a * b, |a, b| a * b)?;
            } else if self.take("//") {
                let right = nonzero(self.signed()?)?;
                value = floor(&both(&value, &right, |a, b| a / b, |a, b| a / b)?)?;
            } else if self.take("/") {
                let right = nonzero(self.signed()?)?;
                value = both(&value, &right, |a, b| a / b, |a, b| a / b)?;
            } else if self.take("%") {
                value = self.after_percent(&value)?;
            } else {
                return Ok(value);
            }
        }
    }

    /// `7.5% of 40`, a trailing `%`, or Python's remainder.
    fn after_percent(&mut self, left: &Number) -> Result<Number, Error> {
        let hundred = Number::integer(100);
        let share = both(left, &hundred, |a, b| a / b, |a, b| a / b)?;
        match self.tokens.get(self.at) {
            Some(Token::Name(of)) if of == "of" => {
                self.at += 1;
                let right = self.signed()?;
                both(&share, &right, |a, b| a * b, |a, b| a * b)
            }
            Some(Token::Number(_) | Token::Name(_) | Token::Symbol("(" | "-" | "+")) => {
                let right = nonzero(self.signed()?)?;
                let times = floor(&both(left, &right, |a, b| a / b, |a, b| a / b)?)?;
                let whole = both(&times, &right, |a, b| a * b, |a, b| a * b)?;
                both(left, &whole, |a, b| a - b, |a, b| a - b)
            }
            _ => {
                self.share_end = self.at;
                Ok(share)
            }
        }
    }

    fn signed(&mut self) -> Result<Number, Error> {
        let mut negative = false;
        loop {
            match () {
                () if self.take("-") => negative = !negative,
                () if self.take("+") => {}
                () => break,
            }
        }
        let value = self.power()?;
        if negative { both(&Number::integer(0), &value, |a, b| a - b, |a, b| a - b) } else { Ok(value) }
    }

    fn power(&mut self) -> Result<Number, Error> {
        let base = self.atom()?;
        if !self.take("**") {
            return Ok(base);
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error::limit("nesting of the expression", MAX_DEPTH as u64, self.depth as u64));
        }
        let exponent = self.signed()?;
        self.depth -= 1;
        bounded(power(&base, &exponent)?)
    }

    fn atom(&mut self) -> Result<Number, Error> {
        let token = self.tokens.get(self.at).ok_or_else(|| Error::invalid("the expression ends too early"))?;
        self.at += 1;
        match token {
            Token::Number(number) => Number::exact_within_bounds(number.clone()),
            Token::Symbol("(") => {
                let value = self.sum()?;
                if self.take(")") { Ok(value) } else { Err(Error::invalid("a parenthesis is not closed")) }
            }
            Token::Name(name) => match name.as_str() {
                "pi" | "π" => Ok(Number::Float(std::f64::consts::PI)),
                "e" => Ok(Number::Float(std::f64::consts::E)),
                name => {
                    let arguments = self.arguments(name)?;
                    bounded(function(name, &arguments)?)
                }
            },
            Token::Symbol(_) => Err(unexpected(token)),
        }
    }

    fn arguments(&mut self, name: &str) -> Result<Vec<Number>, Error> {
        if !self.take("(") {
            return Err(Error::invalid(format!("unknown word in the expression: {}", bounds::shorten(name, 40)))
                .with_hint(format!("functions: {FUNCTIONS}")));
        }
        let mut arguments = Vec::new();
        while !self.take(")") {
            if !arguments.is_empty() && !self.take(",") {
                return Err(Error::invalid(format!("the arguments are not closed: {}", bounds::shorten(name, 40))));
            }
            arguments.push(self.sum()?);
        }
        Ok(arguments)
    }
}

fn unexpected(token: &Token) -> Error {
    let shown = match token {
        Token::Number(number) => Number::Exact(number.clone()).to_string(),
        Token::Name(name) => name.clone(),
        Token::Symbol(symbol) => (*symbol).to_owned(),
    };
    Error::invalid(format!("not expected here in the expression: {}", bounds::shorten(&shown, 40)))
}

fn both(
    left: &Number,
    right: &Number,
    exact: impl Fn(&BigRational, &BigRational) -> BigRational,
    float: impl Fn(f64, f64) -> f64,
) -> Result<Number, Error> {
    match (left, right) {
        (Number::Exact(a), Number::Exact(b)) => Number::exact_within_bounds(exact(a, b)),
        _ => Number::float(float(left.to_f64(), right.to_f64())),
    }
}

fn bounded(value: Number) -> Result<Number, Error> {
    match value {
        Number::Exact(x) => Number::exact_within_bounds(x),
        Number::Float(x) => Number::float(x),
    }
}

fn nonzero(value: Number) -> Result<Number, Error> {
    if value.to_f64() == 0.0 && !matches!(&value, Number::Exact(x) if !x.is_zero()) {
        return Err(divided_by_zero());
    }
    Ok(value)
}

fn floor(value: &Number) -> Result<Number, Error> {
    match value {
        Number::Exact(x) => Ok(Number::Exact(x.floor())),
        Number::Float(x) => Number::float(x.floor()),
    }
}

fn function(name: &str, arguments: &[Number]) -> Result<Number, Error> {
    let float = |f: fn(f64) -> f64, x: &Number| Number::float(f(x.to_f64()));
    match (name, arguments) {
        ("sqrt", [x]) => x.sqrt(),
        ("abs", [Number::Exact(x)]) => Ok(Number::Exact(x.abs())),
        ("abs", [x]) => float(f64::abs, x),
        ("floor", [x]) => floor(x),
        ("ceil", [Number::Exact(x)]) => Ok(Number::Exact(x.ceil())),
        ("ceil", [x]) => float(f64::ceil, x),
        ("round", [x]) => round(x, 0),
        ("round", [x, digits]) => round(x, whole(name, digits)?.to_i64().unwrap_or(i64::MAX)),
        ("pow", [base, exponent]) => power(base, exponent),
        ("min" | "max", [first, rest @ ..]) => Ok(rest.iter().fold(first.clone(), |best, x| {
            let less = x.to_f64() < best.to_f64();
            if less == (name == "min") && x != &best { x.clone() } else { best }
        })),
        ("sum", terms) => terms.iter().try_fold(Number::integer(0), |sum, x| both(&sum, x, |a, b| a + b, |a, b| a + b)),
        ("sin", [x]) => float(f64::sin, x),
        ("cos", [x]) => float(f64::cos, x),
        ("tan", [x]) => float(f64::tan, x),
        ("exp", [x]) => float(f64::exp, x),
        ("log" | "ln", [x]) => float(f64::ln, x),
        ("log", [x, base]) => Number::float(x.to_f64().log(base.to_f64())),
        ("log2", [x]) => float(f64::log2, x),
        ("log10", [x]) => float(f64::log10, x),
        ("factorial", [n]) => {
            let n = small(name, n, MAX_FACTORIAL)?;
            Ok(Number::integer((1..=n).fold(BigInt::from(1), |product, i| product * i)))
        }
        ("comb", [n, k]) => {
            let (n, k) = (small(name, n, MAX_BITS)?, small(name, k, MAX_BITS)?);
            let k = if k > n { return Ok(Number::integer(0)) } else { k.min(n - k) };
            Ok(Number::integer((0..k).fold(BigInt::from(1), |product, i| product * (n - i) / (i + 1))))
        }
        ("gcd", [a, b]) => Ok(Number::integer(gcd(whole(name, a)?, whole(name, b)?))),
        ("lcm", [a, b]) => {
            let (a, b) = (whole(name, a)?, whole(name, b)?);
            let divisor = gcd(a.clone(), b.clone());
            Ok(Number::integer(if divisor.is_zero() { divisor } else { (a * b).abs() / divisor }))
        }
        _ => Err(Error::invalid(format!(
            "no such function of {}: {}",
            bounds::counted(arguments.len(), "argument"),
            bounds::shorten(name, 40)
        ))
        .with_hint(format!("functions: {FUNCTIONS}"))),
    }
}

/// Half to even, as in Python.
fn round(x: &Number, digits: i64) -> Result<Number, Error> {
    if digits.abs() > MAX_ROUND_DIGITS {
        return Err(Error::limit("digits to round to", MAX_ROUND_DIGITS as u64, digits.unsigned_abs()));
    }
    let Number::Exact(x) = x else {
        let exact = BigRational::from_float(x.to_f64()).ok_or_else(|| Error::invalid("is no finite number"))?;
        return round(&Number::Exact(exact), digits);
    };
    let scale = decimal(&format!("1e{digits}")).ok_or_else(|| Error::invalid("digits out of range"))?;
    let scaled = x * &scale;
    let (below, two) = (scaled.floor(), BigInt::from(2));
    let twice_rest = (&scaled - &below) * &two;
    let up = twice_rest > one() || (twice_rest == one() && !(below.to_integer() % &two).is_zero());
    Ok(Number::Exact(if up { below + one() } else { below } / scale))
}

fn one() -> BigRational {
    BigRational::from_integer(1.into())
}

fn whole(name: &str, x: &Number) -> Result<BigInt, Error> {
    match x {
        Number::Exact(x) if x.is_integer() => Ok(x.to_integer()),
        _ => Err(Error::invalid(format!("{name} takes whole numbers, not: {x}"))),
    }
}

fn small(name: &str, x: &Number, limit: u64) -> Result<u64, Error> {
    let n = whole(name, x)?;
    if n.is_negative() {
        return Err(Error::invalid(format!("{name} takes no negative number: {n}")));
    }
    let used = n.to_u64().unwrap_or(u64::MAX);
    if used > limit { Err(Error::limit(&format!("argument of {name}"), limit, used)) } else { Ok(used) }
}

fn gcd(a: BigInt, b: BigInt) -> BigInt {
    let (mut a, mut b) = (a.abs(), b.abs());
    while !b.is_zero() {
        (a, b) = (b.clone(), a % b);
    }
    a
}
