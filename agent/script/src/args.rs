//! The arguments of a call to a built-in or a method, and how they are matched to names.

use crate::error::nearest;
use crate::heap::{Heap, Outcome, raise, raise_with};
use crate::value::{Class, Value};

#[derive(Debug, Default)]
pub(crate) struct Args {
    pub(crate) plain: Vec<Value>,
    pub(crate) named: Vec<(String, Value)>,
}

impl Args {
    /// Matches the arguments to `names`, the first `n_required` of which must be there; others are `Unbound`.
    pub(crate) fn bind<const N: usize>(&self, what: &str, names: [&str; N], n_required: usize) -> Outcome<[Value; N]> {
        let mut bound = [Value::Unbound; N];
        if self.plain.len() > N {
            let message = format!("{what}() takes at most {N} arguments ({} given)", self.plain.len());
            return raise_with(Class::TypeError, message, format!("write {what}({})", names.join(", ")));
        }
        for (place, value) in bound.iter_mut().zip(&self.plain) {
            *place = *value;
        }
        for (name, value) in &self.named {
            match names.iter().position(|n| n == name).and_then(|at| bound.get_mut(at)) {
                Some(place) if *place == Value::Unbound => *place = *value,
                Some(_) => {
                    return raise(Class::TypeError, format!("{what}() got multiple values for argument '{name}'"));
                }
                None => {
                    let message = format!("{what}() got an unexpected keyword argument '{name}'");
                    let hint = match nearest(name, names) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("write {what}({})", names.join(", ")),
                    };
                    return raise_with(Class::TypeError, message, hint);
                }
            }
        }
        match names.iter().zip(&bound).take(n_required).find(|(_, value)| **value == Value::Unbound) {
            Some((missing, _)) => {
                let message = format!("{what}() missing required argument: '{missing}'");
                raise_with(Class::TypeError, message, format!("write {what}({})", names.join(", ")))
            }
            None => Ok(bound),
        }
    }

    /// Takes a named argument out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.named.iter().position(|(n, _)| n == name)?;
        Some(self.named.remove(at).1)
    }
}

impl Heap {
    pub(crate) fn text_arg(&self, what: &str, value: Value) -> Outcome<&str> {
        match self.text(value) {
            Some(text) => Ok(text),
            None => raise_with(
                Class::TypeError,
                format!("{what} must be str, not {}", self.type_name(value)),
                "write str(x)",
            ),
        }
    }

    pub(crate) fn int_arg(&self, what: &str, value: Value) -> Outcome<i64> {
        match crate::ops::index_of(value) {
            Some(n) => Ok(n),
            None => raise_with(
                Class::TypeError,
                format!("{what} must be an integer, not {}", self.type_name(value)),
                "write int(x)",
            ),
        }
    }
}
