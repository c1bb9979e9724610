//! `math`: exact where arithmetic is (fractions of big integers), float where it is not (`sin`, most roots).
//!
//! A result holds `result`, a number the action language can go on with, and `exact`, all digits or a fraction. Whole numbers
//! beyond 64 bits come as a string of digits in both.

mod eval;
mod number;
mod units;

use crate::arguments::Arguments;
use crate::context::Call;
use crate::{Error, catalogue};
use num_rational::BigRational;
use num_traits::{ToPrimitive, Zero};
use number::Number;
use serde_json::{Value, json};

const MAX_NUMBERS: usize = 20_000;

pub(crate) fn call(tool: &str, arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    match tool {
        "eval" => eval(arguments, call),
        "percent" => percent(arguments),
        "percent_of" => percent_of(arguments),
        "percent_change" => percent_change(arguments),
        "sqrt" => sqrt(arguments),
        "convert" => convert(arguments),
        "statistics" => statistics(arguments),
        _ => Err(catalogue::not_built(tool)),
    }
}

fn eval(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let expression = arguments.str("expression")?.trim();
    let found = eval::evaluate(expression, call)?;
    Ok(json!({
        "expression": expression, "result": found.value(), "exact": found.exact(),
        "text": format!("{expression} = {found}"),
    }))
}

fn percent(arguments: &Arguments) -> Result<Value, Error> {
    let (percent, of) = (exact(arguments, "percent")?, exact(arguments, "of")?);
    let found = Number::Exact(&percent * &of / hundred());
    Ok(json!({
        "percent": Number::Exact(percent.clone()).value(), "of": Number::Exact(of.clone()).value(),
        "result": found.value(), "exact": found.exact(),
        "text": format!("{}% of {} is {found}", Number::Exact(percent), Number::Exact(of)),
    }))
}

fn percent_of(arguments: &Arguments) -> Result<Value, Error> {
    let (part, whole) = (exact(arguments, "part")?, exact(arguments, "whole")?);
    if whole.is_zero() {
        return Err(Error::invalid("the whole must not be: 0"));
    }
    let found = Number::Exact(&part / &whole * hundred());
    Ok(json!({
        "part": Number::Exact(part.clone()).value(), "whole": Number::Exact(whole.clone()).value(),
        "result": found.value(), "exact": found.exact(),
        "text": format!("{} is {found}% of {}", Number::Exact(part), Number::Exact(whole)),
    }))
}

fn percent_change(arguments: &Arguments) -> Result<Value, Error> {
    let (old, new) = (exact(arguments, "old")?, exact(arguments, "new")?);
    if old.is_zero() {
        return Err(Error::invalid("the old value must not be: 0"));
    }
    let found = Number::Exact((&new - &old) / &old * hundred());
    Ok(json!({
        "old": Number::Exact(old.clone()).value(), "new": Number::Exact(new.clone()).value(),
        "result": found.value(), "exact": found.exact(),
        "text": format!("from {} to {} is a change of {found}%", Number::Exact(old), Number::Exact(new)),
    }))
}

fn sqrt(arguments: &Arguments) -> Result<Value, Error> {
    Ok(Number::Exact(exact(arguments, "x")?).sqrt()?.value())
}

fn convert(arguments: &Arguments) -> Result<Value, Error> {
    let (from, to) = (arguments.str("from_unit")?.trim(), arguments.str("to_unit")?.trim());
    let value = exact(arguments, "value")?;
    let found = Number::Exact(units::convert(&value, from, to)?);
    let value = Number::Exact(value);
    Ok(json!({
        "value": value.value(), "from_unit": from, "to_unit": to, "result": found.value(), "exact": found.exact(),
        "text": format!("{value} {from} is {found} {to}"),
    }))
}

fn statistics(arguments: &Arguments) -> Result<Value, Error> {
    let given = arguments.get("numbers").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if given.is_empty() {
        return Err(Error::invalid("the list of numbers is empty"));
    }
    if given.len() > MAX_NUMBERS {
        return Err(Error::limit("numbers", MAX_NUMBERS as u64, given.len() as u64));
    }
    let mut numbers: Vec<f64> = given.iter().filter_map(Value::as_f64).collect();
    numbers.sort_by(f64::total_cmp);
    let n = numbers.len();
    // Exact sums of spread-out floats grow without end; numbers as people write them stay small.
    let small = numbers.iter().all(|x| *x == 0.0 || (SMALLEST..LARGEST).contains(&x.abs()));
    let (sum, mean) = if small {
        let sum = given.iter().map(number::from_json).sum::<Result<BigRational, Error>>()?;
        let mean = &sum / BigRational::from_integer(n.into());
        (Number::Exact(sum), Number::Exact(mean))
    } else {
        let sum: f64 = numbers.iter().sum();
        (Number::float(sum)?, Number::float(sum / n as f64)?)
    };
    let middle = f64::midpoint(numbers[(n - 1) / 2], numbers[n / 2]);
    let mean_float = mean.to_f64();
    let variance = numbers.iter().map(|x| (x - mean_float).powi(2)).sum::<f64>() / (n.max(2) - 1) as f64;
    let (median, stdev) = (Number::float(middle)?, Number::float(variance.sqrt())?);
    let (min, max) = (Number::float(numbers[0])?, Number::float(numbers[n - 1])?);
    Ok(json!({
        "n": n, "sum": sum.value(), "mean": mean.value(), "median": median.value(), "stdev": stdev.value(),
        "min": min.value(), "max": max.value(),
        "text": format!(
            "{}: mean {mean}, median {median}, standard deviation {stdev}, min {min}, max {max}, sum {sum}",
            crate::bounds::counted(n, "number")
        ),
    }))
}

/// Between these, a float written out has at most about 30 digits.
const SMALLEST: f64 = 1e-15;
const LARGEST: f64 = 1e15;

fn exact(arguments: &Arguments, key: &str) -> Result<BigRational, Error> {
    number::from_json(arguments.get(key).unwrap_or(&Value::Null))
}

fn hundred() -> BigRational {
    BigRational::from_integer(100.into())
}

impl Number {
    fn to_f64(&self) -> f64 {
        match self {
            Self::Exact(x) => x.to_f64().unwrap_or(f64::NAN),
            Self::Float(x) => *x,
        }
    }
}
