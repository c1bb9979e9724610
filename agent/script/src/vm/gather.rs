//! Calls that are made side by side: `gather` hands them out in one suspension and takes their results in written order.
//!
//! Invariants: a call that is put off is checked when it is written and again when it is made, because what its arguments
//! hold may have changed; while a `gather` waits, its list lies on top of the stack, over whether exceptions are results.

use super::{Call, CallError, Flow, Vm, Waiting};
use crate::args::Args;
use crate::error::{Error, Kind};
use crate::heap::{Object, Outcome, Pending, Trap, corrupt};
use crate::value::Value;
use serde_json::Value as Json;

impl Vm {
    /// Goes on after [`super::Step::Calls`] with the results in the order of the calls. Where some have failed, the first of these
    /// raises, or all are results with `return_exceptions=True`.
    pub fn resume_all(&mut self, results: Vec<Result<Json, CallError>>) -> super::Step {
        if self.waiting != Waiting::Calls(u32::try_from(results.len()).unwrap_or(u32::MAX)) {
            return super::Step::Failed(Error::new(Kind::State, "no program waits for so many results"));
        }
        self.waiting = Waiting::Nothing;
        self.heap.settle();
        self.collect();
        let delivered = self.deliver_all(results);
        self.go_on(delivered)
    }

    /// Pushes a call that is to be made later.
    pub(super) fn defer(&mut self, tool: u32, args: Args) -> Outcome<Flow> {
        let line = self.pos().line;
        let Args { plain, named } = args;
        self.checked_call(tool, self.copied_args(&plain, &named)?, line)?;
        let pending = Box::new(Pending { tool, plain, named, line });
        let pending = self.heap.store(Object::Pending(pending))?;
        self.push(pending)?;
        Ok(Flow::Next)
    }

    pub(super) fn gather(&mut self) -> Outcome<Flow> {
        let (option, list) = (self.pop()?, self.pop()?);
        let mut items = self.heap.collected(list)?;
        if let [only] = items.as_slice()
            && matches!(self.heap.object(*only), Some(Object::List(_) | Object::Tuple(_)))
        {
            items = self.heap.collected(*only)?;
        }
        let n = items.iter().filter(|item| self.pending(**item).is_some()).count();
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        if n == 0 {
            let list = self.heap.list(items)?;
            self.push(list)?;
            return Ok(Flow::Next);
        }
        if n > self.limits.gathered {
            let error = Error::over("concurrent call", u64::from(self.limits.gathered), u64::from(n));
            return Err(Trap::Fatal(Box::new(error.with_hint("gather fewer calls at a time"))));
        }
        let calls = self.calls(&items)?;
        self.count_calls(n)?;
        let list = self.heap.list(items)?;
        self.push(option)?;
        self.push(list)?;
        Ok(Flow::Calls(calls))
    }

    /// The calls that are put off in a list; all their arguments together have to fit beside the values held.
    fn calls(&mut self, items: &[Value]) -> Outcome<Vec<Call>> {
        let n = items.iter().filter(|item| self.pending(**item).is_some()).count();
        let mut calls = self.heap.vec(n)?;
        for item in items {
            let Some(Pending { tool, plain, named, line }) = self.pending(*item) else { continue };
            let (tool, line, args) = (*tool, *line, self.copied_args(plain, named)?);
            calls.push(self.checked_call(tool, args, line)?);
        }
        Ok(calls)
    }

    fn copied_args(&self, plain: &[Value], named: &[(String, Value)]) -> Outcome<Args> {
        let mut copied = self.heap.vec(named.len())?;
        for (name, value) in named {
            copied.push((self.heap.copied_text(name)?, *value));
        }
        Ok(Args { plain: self.heap.copied(plain)?, named: copied })
    }

    fn deliver_all(&mut self, results: Vec<Result<Json, CallError>>) -> Outcome<()> {
        let list = *self.stack.last().ok_or_else(corrupt)?;
        let Value::Object(id) = list else { return Err(corrupt()) };
        let items = self.heap.items(list).ok_or_else(corrupt)?;
        let places: Vec<usize> =
            (0..).zip(items).filter(|(_, i)| self.pending(**i).is_some()).map(|(at, _)| at).collect();
        if places.len() != results.len() {
            return Err(corrupt());
        }
        let mut first_failure = None;
        for (at, result) in places.into_iter().zip(results) {
            let value = match result {
                Ok(json) => self.heap.of_json(&json)?,
                Err(error) => {
                    let exception = self.failed_call(&error)?;
                    first_failure.get_or_insert(exception);
                    exception
                }
            };
            self.heap.change_list(id, 0, |items| {
                if let Some(item) = items.get_mut(at) {
                    *item = value;
                }
            })?;
        }
        self.pop()?;
        let keep = self.pop()?;
        match first_failure {
            Some(exception) if !self.heap.truthy(keep) => Err(Trap::Thrown(exception)),
            _ => self.push(list),
        }
    }

    fn pending(&self, value: Value) -> Option<&Pending> {
        match self.heap.object(value) {
            Some(Object::Pending(pending)) => Some(pending),
            _ => None,
        }
    }
}
