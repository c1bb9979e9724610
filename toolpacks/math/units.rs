//! Units: exact factors to the base unit of each dimension, by the definitions of SI, the international yard and pound (1959)
//! and the US gallon. Data: `KB` is 1000 bytes, `KiB` 1024.

use super::number::decimal;
use crate::{Error, ErrorKind, bounds};
use num_rational::BigRational;

/// Dimension, factor to its base unit as `numerator/denominator`, names. The first name is the one shown in hints.
const UNITS: [(&str, &str, &[&str]); 74] = [
    ("length", "1e-9", &["nm", "nanometre", "nanometer"]),
    ("length", "1e-6", &["um", "µm", "micrometre", "micrometer", "micron"]),
    ("length", "1e-3", &["mm", "millimetre", "millimeter"]),
    ("length", "1e-2", &["cm", "centimetre", "centimeter"]),
    ("length", "1e-1", &["dm", "decimetre", "decimeter"]),
    ("length", "1", &["m", "metre", "meter"]),
    ("length", "1e3", &["km", "kilometre", "kilometer"]),
    ("length", "0.0254", &["inch", "inches", "in", "\""]),
    ("length", "0.3048", &["foot", "feet", "ft", "'"]),
    ("length", "0.9144", &["yard", "yd"]),
    ("length", "1609.344", &["mile", "mi"]),
    ("length", "1852", &["nautical mile", "nmi"]),
    ("mass", "1e-6", &["mg", "milligram"]),
    ("mass", "1e-3", &["g", "gram", "gramme"]),
    ("mass", "1", &["kg", "kilo", "kilogram", "kilogramme"]),
    ("mass", "1e3", &["t", "tonne", "ton", "metric ton"]),
    ("mass", "0.028349523125", &["ounce", "oz"]),
    ("mass", "0.45359237", &["lb", "pound", "lbs"]),
    ("mass", "6.35029318", &["stone", "st"]),
    ("temperature", "1", &["kelvin", "k"]),
    ("temperature", "1", &["celsius", "c", "°c", "degree celsius", "degrees celsius", "centigrade"]),
    ("temperature", "5/9", &["fahrenheit", "f", "°f", "degree fahrenheit", "degrees fahrenheit"]),
    ("volume", "1e-6", &["ml", "millilitre", "milliliter", "cm3", "cubic centimetre"]),
    ("volume", "1e-5", &["cl", "centilitre", "centiliter"]),
    ("volume", "1e-4", &["dl", "decilitre", "deciliter"]),
    ("volume", "1e-3", &["litre", "liter", "l"]),
    ("volume", "1", &["m3", "m³", "cubic metre", "cubic meter"]),
    ("volume", "0.003785411784", &["gallon", "gal", "us gallon"]),
    ("volume", "0.00454609", &["imperial gallon", "uk gallon"]),
    ("volume", "0.000946352946", &["quart", "qt"]),
    ("volume", "0.000473176473", &["pint", "pt"]),
    ("volume", "0.0002365882365", &["cup"]),
    ("volume", "0.0000295735295625", &["fluid ounce", "fl oz", "floz"]),
    ("volume", "0.00001478676478125", &["tablespoon", "tbsp"]),
    ("volume", "0.00000492892159375", &["teaspoon", "tsp"]),
    ("area", "1e-4", &["cm2", "cm²", "square centimetre", "square centimeter"]),
    ("area", "1", &["m2", "m²", "square metre", "square meter"]),
    ("area", "1e6", &["km2", "km²", "square kilometre", "square kilometer"]),
    ("area", "1e4", &["hectare", "ha"]),
    ("area", "4046.8564224", &["acre"]),
    ("area", "0.09290304", &["square foot", "square feet", "ft2", "sq ft"]),
    ("area", "2589988.110336", &["square mile", "mi2"]),
    ("speed", "1", &["m/s", "mps", "metres per second", "meters per second"]),
    ("speed", "5/18", &["km/h", "kmh", "kph", "kilometres per hour", "kilometers per hour"]),
    ("speed", "0.44704", &["mph", "miles per hour", "mi/h"]),
    ("speed", "463/900", &["knot", "kn", "kt"]),
    ("data", "1/8", &["bit"]),
    ("data", "1", &["byte", "b"]),
    ("data", "1e3", &["kb", "kilobyte"]),
    ("data", "1e6", &["mb", "megabyte"]),
    ("data", "1e9", &["gb", "gigabyte"]),
    ("data", "1e12", &["tb", "terabyte"]),
    ("data", "1024", &["kib", "kibibyte"]),
    ("data", "1048576", &["mib", "mebibyte"]),
    ("data", "1073741824", &["gib", "gibibyte"]),
    ("data", "1099511627776", &["tib", "tebibyte"]),
    ("time", "1e-3", &["ms", "millisecond"]),
    ("time", "1", &["second", "s", "sec"]),
    ("time", "60", &["minute", "min"]),
    ("time", "3600", &["hour", "h", "hr"]),
    ("time", "86400", &["day", "d"]),
    ("time", "604800", &["week"]),
    ("time", "31557600", &["year", "julian year"]),
    ("energy", "1", &["joule", "j"]),
    ("energy", "1e3", &["kj", "kilojoule"]),
    ("energy", "3600", &["wh", "watt hour"]),
    ("energy", "3600000", &["kwh", "kilowatt hour"]),
    ("energy", "4184", &["kcal", "kilocalorie"]),
    ("energy", "4.184", &["cal", "calorie"]),
    ("power", "1", &["watt", "w"]),
    ("power", "1e3", &["kw", "kilowatt"]),
    ("pressure", "1", &["pascal", "pa"]),
    ("pressure", "100", &["hpa", "hectopascal", "mbar", "millibar"]),
    ("pressure", "1e5", &["bar"]),
];

struct Unit {
    dimension: &'static str,
    factor: BigRational,
    /// Added after multiplying: where this scale's zero lies on the base scale.
    offset: BigRational,
}

/// `value` of the unit `from` in the unit `to`.
pub(super) fn convert(value: &BigRational, from: &str, to: &str) -> Result<BigRational, Error> {
    let (from_unit, to_unit) = (find(from)?, find(to)?);
    if from_unit.dimension != to_unit.dimension {
        return Err(Error::invalid(format!(
            "{} is a unit of {}, not of {}: {}",
            bounds::shorten(from, 40),
            from_unit.dimension,
            to_unit.dimension,
            bounds::shorten(to, 40)
        ))
        .with_hint(format!("units of {}: {}", from_unit.dimension, names(from_unit.dimension))));
    }
    let base = value * &from_unit.factor + from_unit.offset;
    Ok((base - to_unit.offset) / to_unit.factor)
}

fn find(asked: &str) -> Result<Unit, Error> {
    let lower = asked.trim().to_lowercase();
    let name = lower.trim_start_matches("degrees ").trim_start_matches("degree ");
    let singular = name.strip_suffix('s').unwrap_or(name);
    let named = |wanted: &str| UNITS.iter().find(|(_, _, names)| names.contains(&wanted));
    let Some((dimension, factor, names)) = named(name).or_else(|| named(singular)) else {
        return Err(Error::new(ErrorKind::NotFound, format!("no such unit: {}", bounds::shorten(asked, 40)))
            .with_hint("such as km, mile, kg, lb, celsius, litre, km/h, MB, hour"));
    };
    let offset = match names[0] {
        "celsius" => "273.15",
        "fahrenheit" => "45967/180",
        _ => "0",
    };
    Ok(Unit { dimension, factor: fraction(factor)?, offset: fraction(offset)? })
}

fn fraction(text: &str) -> Result<BigRational, Error> {
    let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
    match (decimal(numerator), decimal(denominator)) {
        (Some(numerator), Some(denominator)) => Ok(numerator / denominator),
        _ => Err(Error::new(ErrorKind::Unsupported, format!("a unit's factor does not parse: {text}"))),
    }
}

fn names(dimension: &str) -> String {
    let names = UNITS.iter().filter(|(of, _, _)| *of == dimension).map(|(_, _, names)| names[0]);
    names.collect::<Vec<_>>().join(", ")
}
