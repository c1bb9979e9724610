//! The built-in functions that call no function of the program. Those with a `key=`, `map` and `filter` are in `vm::call`.

use crate::args::Args;
use crate::ast::BinOp;
use crate::display;
use crate::heap::{Heap, Object, Outcome, Trap, corrupt, raise, raise_with};
use crate::ops::{Number, float_divmod, index_of, int_divmod, is_type, overflow, range_len, truncated, whole};
use crate::value::{Builtin, Class, Value};
use std::cmp::Ordering;

impl Heap {
    pub(crate) fn call_builtin(&mut self, builtin: Builtin, mut args: Args) -> Outcome<Value> {
        let name = builtin.name();
        match builtin {
            Builtin::Len => {
                let [value] = args.bind(name, ["obj"], 1)?;
                match self.length(value) {
                    Some(n) => Ok(Value::Int(n as i64)),
                    None => {
                        let message = format!("object of type '{}' has no len()", self.type_name(value));
                        raise_with(Class::TypeError, message, format!("its shape is {}", self.shape(value)))
                    }
                }
            }
            Builtin::Range => self.range(&args),
            Builtin::Sum => {
                let [values, start] = args.bind(name, ["iterable", "start"], 1)?;
                let mut total = if start == Value::Unbound { Value::Int(0) } else { start };
                for value in self.collected(values)? {
                    total = self.binary(BinOp::Add, total, value)?;
                }
                Ok(total)
            }
            Builtin::Abs => {
                let [value] = args.bind(name, ["x"], 1)?;
                match Number::of(value) {
                    Some(Number::Int(n)) => n.checked_abs().map_or_else(overflow, |n| Ok(Value::Int(n))),
                    Some(Number::Float(n)) => Ok(Value::Float(n.abs())),
                    None => raise(Class::TypeError, format!("bad operand type for abs(): '{}'", self.type_name(value))),
                }
            }
            Builtin::Round => self.round(&args),
            Builtin::Int => self.int(&args),
            Builtin::Float => self.float(&args),
            Builtin::Str => {
                let [value] = args.bind(name, ["object"], 0)?;
                if self.text(value).is_some() {
                    return Ok(value);
                }
                let text = if value == Value::Unbound { String::new() } else { self.display(value)? };
                self.string(text)
            }
            Builtin::Repr => {
                let [value] = args.bind(name, ["obj"], 1)?;
                let text = self.repr(value)?;
                self.string(text)
            }
            Builtin::Bool => {
                let [value] = args.bind(name, ["x"], 0)?;
                Ok(Value::Bool(self.truthy(value)))
            }
            Builtin::List | Builtin::Tuple => {
                let [values] = args.bind(name, ["iterable"], 0)?;
                let items = if values == Value::Unbound { Vec::new() } else { self.collected(values)? };
                if builtin == Builtin::List { self.list(items) } else { self.tuple(items) }
            }
            Builtin::Set => {
                let [values] = args.bind(name, ["iterable"], 0)?;
                let items = if values == Value::Unbound { Vec::new() } else { self.collected(values)? };
                let table = self.table(items.into_iter().map(|item| (item, Value::None)))?;
                self.set(table)
            }
            Builtin::Dict => {
                let dict = self.dict(Default::default())?;
                let named = std::mem::take(&mut args.named);
                let [other] = args.bind(name, ["mapping"], 0)?;
                let Value::Object(id) = dict else { return Err(corrupt()) };
                if other != Value::Unbound {
                    self.merge(id, other)?;
                }
                for (key, value) in named {
                    let key = self.str(&key)?;
                    self.insert(id, key, value)?;
                }
                Ok(dict)
            }
            Builtin::Enumerate => {
                let [values, start] = args.bind(name, ["iterable", "start"], 1)?;
                let start = if start == Value::Unbound { 0 } else { self.int_arg("start", start)? };
                let mut out = Vec::new();
                for (i, value) in self.collected(values)?.into_iter().enumerate() {
                    let pair = self.tuple_of(&[Value::Int(start.saturating_add(i as i64)), value])?;
                    self.grow(&mut out, pair)?;
                }
                self.list(out)
            }
            Builtin::Zip => {
                let strict = args.take("strict").is_some_and(|v| self.truthy(v));
                let mut columns = self.vec(args.plain.len())?;
                for values in &args.plain {
                    columns.push(self.collected(*values)?);
                }
                let n = columns.iter().map(Vec::len).min().unwrap_or(0);
                if strict && columns.iter().any(|column| column.len() != n) {
                    return raise(Class::ValueError, "zip() argument 2 is shorter than argument 1");
                }
                let mut out = Vec::new();
                for i in 0..n {
                    let mut row = self.vec(columns.len())?;
                    row.extend(columns.iter().filter_map(|column| column.get(i).copied()));
                    let row = self.tuple(row)?;
                    self.grow(&mut out, row)?;
                }
                self.list(out)
            }
            Builtin::Any | Builtin::All => {
                let [values] = args.bind(name, ["iterable"], 1)?;
                let stop = builtin == Builtin::Any;
                let values = self.collected(values)?;
                let stopped = values.into_iter().any(|value| self.truthy(value) == stop);
                Ok(Value::Bool(stopped == stop))
            }
            Builtin::Reversed => {
                let [values] = args.bind(name, ["sequence"], 1)?;
                let mut items = self.collected(values)?;
                items.reverse();
                self.list(items)
            }
            Builtin::Iter => {
                let [values] = args.bind(name, ["iterable"], 1)?;
                self.iterate(values)
            }
            Builtin::Next => {
                let [values, default] = args.bind(name, ["iterator", "default"], 1)?;
                let iter = self.iterate(values)?;
                match (self.advance(iter)?, default) {
                    (Some(value), _) => Ok(value),
                    (None, Value::Unbound) => raise_with(Class::StopIteration, "", "give a default: next(xs, None)"),
                    (None, default) => Ok(default),
                }
            }
            Builtin::Type => {
                let [value] = args.bind(name, ["object"], 1)?;
                Ok(self.type_of(value))
            }
            Builtin::IsInstance => {
                let [value, class] = args.bind(name, ["obj", "class"], 2)?;
                self.is_instance(value, class).map(Value::Bool)
            }
            Builtin::Callable => {
                let [value] = args.bind(name, ["obj"], 1)?;
                Ok(Value::Bool(self.is_callable(value)))
            }
            Builtin::Chr => {
                let [value] = args.bind(name, ["i"], 1)?;
                match u32::try_from(self.int_arg("the code", value)?).ok().and_then(char::from_u32) {
                    Some(c) => self.str(&c.to_string()),
                    None => raise(Class::ValueError, "chr() arg not in range(0x110000)"),
                }
            }
            Builtin::Ord => {
                let [value] = args.bind(name, ["c"], 1)?;
                let text = self.text_arg("the character", value)?;
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (Some(c), None) => Ok(Value::Int(i64::from(u32::from(c)))),
                    _ => {
                        let n = text.chars().count();
                        raise(Class::TypeError, format!("ord() expected a character, but string of length {n} found"))
                    }
                }
            }
            Builtin::Bin | Builtin::Oct | Builtin::Hex => {
                let [value] = args.bind(name, ["x"], 1)?;
                let n = self.int_arg("the number", value)?;
                let kind = match builtin {
                    Builtin::Bin => "#b",
                    Builtin::Oct => "#o",
                    _ => "#x",
                };
                let text = self.format(Value::Int(n), kind)?;
                self.string(text)
            }
            Builtin::Format => {
                let [value, spec] = args.bind(name, ["value", "spec"], 1)?;
                let spec = if spec == Value::Unbound { "" } else { self.text_arg("the spec", spec)? };
                let text = self.format(value, spec)?;
                self.string(text)
            }
            Builtin::Divmod => {
                let [a, b] = args.bind(name, ["x", "y"], 2)?;
                let quotient = self.binary(BinOp::FloorDiv, a, b)?;
                let rest = self.binary(BinOp::Mod, a, b)?;
                self.tuple_of(&[quotient, rest])
            }
            Builtin::Pow => {
                let [a, b, modulus] = args.bind(name, ["base", "exp", "mod"], 2)?;
                if modulus == Value::Unbound {
                    return self.binary(BinOp::Pow, a, b);
                }
                let (a, b) = (self.int_arg("the base", a)?, self.int_arg("the exponent", b)?);
                pow_mod(a, b, self.int_arg("the modulus", modulus)?)
            }
            Builtin::GetAttr | Builtin::HasAttr => {
                let [value, attr, default] = args.bind(name, ["obj", "name", "default"], 2)?;
                let attr = self.copied_text(self.text_arg("the attribute name", attr)?)?;
                match (self.get_attr(value, &attr), builtin, default) {
                    (Ok(_), Builtin::HasAttr, _) => Ok(Value::Bool(true)),
                    (Ok(found), ..) => Ok(found),
                    (Err(Trap::Raise(raise)), Builtin::HasAttr, _) if raise.class == Class::AttributeError => {
                        Ok(Value::Bool(false))
                    }
                    (Err(Trap::Raise(raise)), _, default)
                        if raise.class == Class::AttributeError && default != Value::Unbound =>
                    {
                        Ok(default)
                    }
                    (Err(trap), ..) => Err(trap),
                }
            }
            Builtin::Max | Builtin::Min => {
                let default = args.take("default");
                let items = self.choices(&args, name)?;
                self.extreme(builtin, &items, &items, default)
            }
            Builtin::Sorted => {
                let reverse = args.take("reverse").is_some_and(|v| self.truthy(v));
                if let Some((other, _)) = args.named.iter().find(|(given, _)| given != "iterable") {
                    let message = format!("sorted() got an unexpected keyword argument '{other}'");
                    return raise_with(
                        Class::TypeError,
                        message,
                        "write sorted(xs, key=lambda x: x.size, reverse=True)",
                    );
                }
                let [values] = args.bind(name, ["iterable"], 1)?;
                let items = self.collected(values)?;
                let sorted = self.sorted(&items, &items, reverse)?;
                self.list(sorted)
            }
            Builtin::Gather => {
                args.take("return_exceptions");
                if let Some((name, _)) = args.named.first() {
                    return raise(Class::TypeError, format!("'{name}' is an invalid keyword argument for gather()"));
                }
                self.list(args.plain)
            }
            Builtin::Map | Builtin::Filter | Builtin::Print => Err(corrupt()),
        }
    }

    /// What `max` and `min` choose from: one iterable, or the arguments themselves.
    pub(crate) fn choices(&mut self, args: &Args, name: &str) -> Outcome<Vec<Value>> {
        match args.plain.as_slice() {
            [] => raise_with(
                Class::TypeError,
                format!("{name} expected at least 1 argument, got 0"),
                format!("write {name}(xs) or {name}(a, b)"),
            ),
            [one] => self.collected(*one),
            many => self.copied(many),
        }
    }

    /// The first item whose key is the greatest or least.
    pub(crate) fn extreme(
        &self,
        builtin: Builtin,
        items: &[Value],
        keys: &[Value],
        default: Option<Value>,
    ) -> Outcome<Value> {
        let (wanted, sign) = if builtin == Builtin::Max { (Ordering::Greater, ">") } else { (Ordering::Less, "<") };
        let mut best: Option<(Value, Value)> = None;
        for (item, key) in items.iter().zip(keys) {
            let better = match best {
                Some((_, best)) => self.order(*key, best, sign)? == Some(wanted),
                None => true,
            };
            if better {
                best = Some((*item, *key));
            }
        }
        match (best, default) {
            (Some((item, _)), _) => Ok(item),
            (None, Some(default)) => Ok(default),
            (None, None) => {
                let message = format!("{}() arg is an empty sequence", builtin.name());
                raise_with(Class::ValueError, message, format!("give a default: {}(xs, default=0)", builtin.name()))
            }
        }
    }

    fn range(&mut self, args: &Args) -> Outcome<Value> {
        let [a, b, c] = args.bind("range", ["start", "stop", "step"], 1)?;
        let number = |heap: &Heap, value: Value| match index_of(value) {
            Some(n) => Ok(n),
            None => raise_with(
                Class::TypeError,
                format!("'{}' object cannot be interpreted as an integer", heap.type_name(value)),
                "write range(len(xs)) or range(int(x))",
            ),
        };
        let (start, stop) =
            if b == Value::Unbound { (0, number(self, a)?) } else { (number(self, a)?, number(self, b)?) };
        let step = if c == Value::Unbound { 1 } else { number(self, c)? };
        if step == 0 {
            return raise(Class::ValueError, "range() arg 3 must not be zero");
        }
        if range_len(start, stop, step) > i64::MAX as u64 {
            return overflow();
        }
        self.store(Object::Range { start, stop, step })
    }

    fn round(&mut self, args: &Args) -> Outcome<Value> {
        let [value, digits] = args.bind("round", ["number", "ndigits"], 1)?;
        let digits = match digits {
            Value::Unbound | Value::None => None,
            digits => Some(self.int_arg("ndigits", digits)?),
        };
        match (Number::of(value), digits) {
            (None, _) => {
                let message = format!("type {} doesn't define __round__ method", self.type_name(value));
                raise_with(Class::TypeError, message, "turn it into a number first: float(x)")
            }
            (Some(Number::Int(n)), None | Some(0..)) => Ok(Value::Int(n)),
            (Some(Number::Int(n)), Some(digits)) => {
                let Some(unit) =
                    u32::try_from(digits.saturating_neg()).ok().and_then(|d| 10i128.checked_pow(d.min(37)))
                else {
                    return Ok(Value::Int(0));
                };
                let n = i128::from(n);
                let (quotient, rest) = (n.div_euclid(unit), n.rem_euclid(unit));
                let up = rest.saturating_mul(2) > unit || (rest.saturating_mul(2) == unit && quotient % 2 != 0);
                i64::try_from(quotient.saturating_add(i128::from(up)).saturating_mul(unit))
                    .map_or_else(|_| overflow(), |n| Ok(Value::Int(n)))
            }
            (Some(Number::Float(n)), None) => match whole(n.round_ties_even()) {
                Some(n) => Ok(Value::Int(n)),
                None if n.is_nan() => raise(Class::ValueError, "cannot convert float NaN to integer"),
                None => overflow(),
            },
            (Some(Number::Float(n)), Some(digits)) => Ok(Value::Float(round_float(n, digits))),
        }
    }

    fn int(&mut self, args: &Args) -> Outcome<Value> {
        let [value, base] = args.bind("int", ["x", "base"], 0)?;
        match (value, Number::of(value)) {
            (Value::Unbound, _) => return Ok(Value::Int(0)),
            (_, Some(Number::Int(n))) => return Ok(Value::Int(n)),
            (_, Some(Number::Float(n))) => {
                return truncated(n).map(Value::Int);
            }
            _ => {}
        }
        let Some(text) = self.text(value) else {
            let message = format!("int() argument must be a string or a real number, not '{}'", self.type_name(value));
            return raise_with(Class::TypeError, message, format!("its shape is {}", self.shape(value)));
        };
        let base = if base == Value::Unbound { 10 } else { self.int_arg("base", base)? };
        let trimmed = text.trim_matches(crate::methods::is_space);
        let (negative, digits) = match trimmed.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
        };
        self.scratch((text.len() as u64).saturating_mul(2))?;
        self.work(text.len() as u64 / 16)?;
        let prefix = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find(|(p, b)| {
            digits.get(..2).is_some_and(|start| start.eq_ignore_ascii_case(p)) && (base == *b || base == 0)
        });
        let (digits, radix) = match prefix {
            Some((_, radix)) => (digits.get(2..).unwrap_or(""), radix),
            None => (digits, if base == 0 { 10 } else { base }),
        };
        if !(2..=36).contains(&radix) {
            return raise(Class::ValueError, "int() base must be >= 2 and <= 36, or 0");
        }
        let well_formed = !digits.is_empty()
            && !digits.starts_with('_')
            && !digits.ends_with('_')
            && !digits.contains("__")
            && digits.chars().all(|c| c == '_' || c.is_digit(radix as u32));
        if !well_formed {
            let message = format!("invalid literal for int() with base {base}: {}", display::quoted(text));
            return raise_with(Class::ValueError, message, "write int(float(x)) for text with a point");
        }
        let mut signed = String::with_capacity(digits.len().saturating_add(1));
        signed.push_str(if negative { "-" } else { "" });
        signed.extend(digits.chars().filter(|c| *c != '_'));
        i64::from_str_radix(&signed, radix as u32).map_or_else(|_| overflow(), |n| Ok(Value::Int(n)))
    }

    fn float(&mut self, args: &Args) -> Outcome<Value> {
        let [value] = args.bind("float", ["x"], 0)?;
        if value == Value::Unbound {
            return Ok(Value::Float(0.0));
        }
        if let Some(number) = Number::of(value) {
            return Ok(Value::Float(number.float()));
        }
        let Some(text) = self.text(value) else {
            let message =
                format!("float() argument must be a string or a real number, not '{}'", self.type_name(value));
            return raise_with(Class::TypeError, message, format!("its shape is {}", self.shape(value)));
        };
        self.scratch((text.len() as u64).saturating_mul(6))?;
        self.work(text.len() as u64 / 16)?;
        let trimmed = text.trim_matches(crate::methods::is_space);
        let plain: String = trimmed.replace('_', "").to_ascii_lowercase();
        let bad_underscore = trimmed.starts_with('_') || trimmed.ends_with('_') || trimmed.contains("__");
        match plain.parse::<f64>() {
            Ok(n) if !bad_underscore => Ok(Value::Float(n)),
            _ => {
                let message = format!("could not convert string to float: {}", display::quoted(text));
                raise_with(Class::ValueError, message, "strip units and separators first: x.replace(\",\", \"\")")
            }
        }
    }

    fn is_instance(&self, value: Value, class: Value) -> Outcome<bool> {
        self.is_instance_at(value, class, 0)
    }

    fn is_instance_at(&self, value: Value, class: Value, depth: u32) -> Outcome<bool> {
        crate::ops::check_depth(self, depth)?;
        match class {
            Value::Class(class) => {
                Ok(matches!(self.object(value), Some(Object::Exception { class: found, .. }) if found.is(class)))
            }
            Value::Builtin(Builtin::Int) if matches!(value, Value::Bool(_)) => Ok(true),
            Value::Builtin(builtin) if is_type(builtin) => Ok(self.type_of(value) == class),
            Value::Type(_) => Ok(self.type_of(value) == class),
            _ => match self.items(class) {
                Some(classes) => {
                    for class in classes {
                        if self.is_instance_at(value, *class, depth.saturating_add(1))? {
                            return Ok(true);
                        }
                    }
                    Ok(false)
                }
                None => raise_with(
                    Class::TypeError,
                    "isinstance() arg 2 must be a type or a tuple of types",
                    "write isinstance(x, str) or isinstance(x, (int, float))",
                ),
            },
        }
    }

    pub(crate) fn is_callable(&self, value: Value) -> bool {
        match value {
            Value::Builtin(_) | Value::Class(_) | Value::Type(_) | Value::Tool(_) => true,
            _ => matches!(self.object(value), Some(Object::Function { .. } | Object::Method { .. })),
        }
    }
}

fn pow_mod(base: i64, exponent: i64, modulus: i64) -> Outcome<Value> {
    if modulus == 0 {
        return raise(Class::ValueError, "pow() 3rd argument cannot be 0");
    }
    if exponent < 0 {
        return raise(Class::ValueError, "base is not invertible for the given modulus");
    }
    let wide = i128::from(modulus).abs();
    let (mut result, mut square, mut left) = (1i128, i128::from(base), exponent);
    let times = |a: i128, b: i128| a.saturating_mul(b).checked_rem_euclid(wide).unwrap_or(0);
    square = times(square, 1);
    result = times(result, 1);
    while left > 0 {
        if left & 1 == 1 {
            result = times(result, square);
        }
        square = times(square, square);
        left >>= 1;
    }
    let result = result as i64;
    Ok(Value::Int(int_divmod(result, modulus).map_or(0, |(_, rest)| rest)))
}

/// Rounds to so many decimals, halves to even on the exact decimal value, as CPython does.
fn round_float(n: f64, digits: i64) -> f64 {
    if !n.is_finite() || digits > 323 {
        return n;
    }
    if digits >= 0 {
        return format!("{n:.*}", digits as usize).parse().unwrap_or(n);
    }
    if digits < -308 {
        return 0.0f64.copysign(n);
    }
    let unit = 10f64.powi(digits.saturating_neg() as i32);
    let (quotient, rest) = float_divmod(n.abs(), unit);
    let up = rest > unit / 2.0 || (rest == unit / 2.0 && quotient % 2.0 != 0.0);
    ((quotient + if up { 1.0 } else { 0.0 }) * unit).copysign(n)
}
