//! What each instruction does.

use super::{Flow, Frame, Handler, Loaded, MOST_HANDLERS, Vm, over_if, quick};
use crate::ast::ParamKind;
use crate::code::Op;
use crate::error::nearest;
use crate::heap::{Bound, Heap, Object, Outcome, Trap, corrupt, raise, raise_with};
use crate::substitutes;
use crate::value::{Builtin, Class, Value};

impl Vm {
    pub(super) fn step(&mut self) -> Outcome<Flow> {
        let (code_idx, at, base) = match self.frames.last_mut() {
            Some(Frame::Code { code, ip, base, .. }) => {
                let at = *ip;
                *ip = at.wrapping_add(1);
                (*code, at, *base as usize)
            }
            Some(Frame::Each(_)) => return self.step_each(),
            None => return Ok(Flow::Done),
        };
        self.heap.work(1)?;
        let loaded = self.codes.get(code_idx as usize).and_then(Option::as_ref).ok_or_else(corrupt)?;
        let op = *loaded.code.ops.get(at as usize).ok_or_else(corrupt)?;
        match op {
            Op::Const(idx) => {
                let value = *loaded.consts.get(idx as usize).ok_or_else(corrupt)?;
                self.push(value)?;
            }
            Op::LoadLocal(slot) => {
                let place = self.stack.get_mut(base.saturating_add(slot as usize)).ok_or_else(corrupt)?;
                let value = match *place {
                    Value::Unbound => self.unbound_local(code_idx, slot)?,
                    Value::Growing(id, _) => {
                        *place = Value::Object(id);
                        *place
                    }
                    value => value,
                };
                self.push(value)?;
            }
            Op::LoadGrowing(slot) => {
                let value = *self.stack.get(base.saturating_add(slot as usize)).ok_or_else(corrupt)?;
                let value = if value == Value::Unbound { self.unbound_local(code_idx, slot)? } else { value };
                self.push(value)?;
            }
            Op::LoadGlobalGrowing(idx) => {
                let slot = slot_of(loaded, idx)?;
                let value = match self.globals.get(slot).map(|g| g.value) {
                    Some(value @ Value::Growing(..)) => value,
                    _ => self.global(slot)?,
                };
                self.push(value)?;
            }
            Op::Grow(slot) => {
                let (b, a) = (self.pop()?, self.pop()?);
                let at = base.saturating_add(slot as usize);
                let place = *self.stack.get(at).ok_or_else(corrupt)?;
                let grown = self.grown(a, b, place)?;
                *self.stack.get_mut(at).ok_or_else(corrupt)? = grown;
            }
            Op::GrowGlobal(idx) => {
                let slot = slot_of(loaded, idx)?;
                let (b, a) = (self.pop()?, self.pop()?);
                let place = self.globals.get(slot).ok_or_else(corrupt)?.value;
                let grown = self.grown(a, b, place)?;
                self.globals.get_mut(slot).ok_or_else(corrupt)?.value = grown;
            }
            Op::StoreLocal(slot) => {
                let value = self.pop()?;
                *self.stack.get_mut(base.saturating_add(slot as usize)).ok_or_else(corrupt)? = value;
            }
            Op::DeleteLocal(slot) => {
                let place = self.stack.get_mut(base.saturating_add(slot as usize)).ok_or_else(corrupt)?;
                if std::mem::replace(place, Value::Unbound) == Value::Unbound {
                    self.unbound_local(code_idx, slot)?;
                }
            }
            Op::LoadGlobal(idx) => {
                let slot = slot_of(loaded, idx)?;
                let value = self.global(slot)?;
                self.push(value)?;
            }
            Op::LoadCallee(idx) => {
                let slot = slot_of(loaded, idx)?;
                let mut value = self.global(slot)?;
                let fallback = self.globals.get(slot).map_or(Value::Unbound, |g| g.fallback);
                if !self.heap.is_callable(value) && self.heap.is_callable(fallback) {
                    value = fallback;
                }
                self.push(value)?;
            }
            Op::StoreGlobal(idx) => {
                let slot = slot_of(loaded, idx)?;
                let value = self.pop()?;
                self.globals.get_mut(slot).ok_or_else(corrupt)?.value = value;
            }
            Op::DeleteGlobal(idx) => {
                let slot = slot_of(loaded, idx)?;
                let place = &mut self.globals.get_mut(slot).ok_or_else(corrupt)?.value;
                if std::mem::replace(place, Value::Unbound) == Value::Unbound {
                    return self.unknown_name(slot);
                }
            }
            Op::Pop => {
                self.pop()?;
            }
            Op::Dup => {
                let top = *self.stack.last().ok_or_else(corrupt)?;
                self.push(top)?;
            }
            Op::DupTwo => {
                let [.., a, b] = *self.stack.as_slice() else { return Err(corrupt()) };
                self.push(a)?;
                self.push(b)?;
            }
            Op::Swap => {
                let (b, a) = (self.pop()?, self.pop()?);
                self.push(b)?;
                self.push(a)?;
            }
            Op::RotateThree => {
                let (c, b, a) = (self.pop()?, self.pop()?, self.pop()?);
                self.push(c)?;
                self.push(a)?;
                self.push(b)?;
            }
            Op::Unary(op) => {
                let value = self.pop()?;
                let result = self.heap.unary(op, value)?;
                self.push(result)?;
            }
            Op::Binary(op) => {
                let (b, a) = (self.pop()?, self.pop()?);
                let result = match quick::binary(op, a, b) {
                    Some(result) => result,
                    None => self.heap.binary(op, a, b)?,
                };
                self.push(result)?;
            }
            Op::Augment(op) => {
                let (b, a) = (self.pop()?, self.pop()?);
                let result = match quick::binary(op, a, b) {
                    Some(result) => result,
                    None => self.heap.augment(op, a, b)?,
                };
                self.push(result)?;
            }
            Op::Compare(op) => {
                let (b, a) = (self.pop()?, self.pop()?);
                let result = match quick::compare(op, a, b) {
                    Some(result) => result,
                    None => self.heap.compare(op, a, b)?,
                };
                self.push(Value::Bool(result))?;
            }
            Op::Jump(to) => self.jump(to),
            Op::JumpIfFalse(to) => {
                let value = self.pop()?;
                if !self.heap.truthy(value) {
                    self.jump(to);
                }
            }
            Op::JumpIfTrue(to) => {
                let value = self.pop()?;
                if self.heap.truthy(value) {
                    self.jump(to);
                }
            }
            Op::JumpIfFalseOrPop(to) => {
                if self.heap.truthy(*self.stack.last().ok_or_else(corrupt)?) {
                    self.pop()?;
                } else {
                    self.jump(to);
                }
            }
            Op::JumpIfTrueOrPop(to) => {
                if self.heap.truthy(*self.stack.last().ok_or_else(corrupt)?) {
                    self.jump(to);
                } else {
                    self.pop()?;
                }
            }
            Op::MakeList(n) => {
                let items = self.pop_many(n)?;
                let list = self.heap.list(items)?;
                self.push(list)?;
            }
            Op::MakeTuple(n) => {
                let items = self.pop_many(n)?;
                let tuple = self.heap.tuple(items)?;
                self.push(tuple)?;
            }
            Op::MakeSet(n) => {
                let items = self.pop_many(n)?;
                let table = self.heap.table(items.into_iter().map(|item| (item, Value::None)))?;
                let set = self.heap.set(table)?;
                self.push(set)?;
            }
            Op::MakeDict(n) => {
                let items = self.pop_many(n.checked_mul(2).ok_or_else(corrupt)?)?;
                let pairs = items.as_chunks::<2>().0.iter().map(|[key, value]| (*key, *value));
                let table = self.heap.table(pairs)?;
                let dict = self.heap.dict(table)?;
                self.push(dict)?;
            }
            Op::Add => {
                let (value, target) = (self.pop()?, self.pop()?);
                let Value::Object(id) = target else { return Err(corrupt()) };
                match self.heap.get(id)? {
                    Object::List(_) => self.heap.change_list(id, 1, |items| items.push(value))?,
                    Object::Set(_) => self.heap.insert(id, value, Value::None)?,
                    _ => return Err(corrupt()),
                }
            }
            Op::AddPair => {
                let (value, key, target) = (self.pop()?, self.pop()?, self.pop()?);
                let Value::Object(id) = target else { return Err(corrupt()) };
                self.heap.insert(id, key, value)?;
            }
            Op::Extend => {
                let (values, target) = (self.pop()?, *self.stack.last().ok_or_else(corrupt)?);
                extend(&mut self.heap, target, values)?;
            }
            Op::ExtendKeywords => {
                let (values, target) = (self.pop()?, *self.stack.last().ok_or_else(corrupt)?);
                extend_keywords(&mut self.heap, target, values)?;
            }
            Op::Iterate => {
                let value = self.pop()?;
                let iter = self.heap.iterate(value)?;
                self.push(iter)?;
            }
            Op::Next(to) => {
                let iter = *self.stack.last().ok_or_else(corrupt)?;
                match self.heap.advance(iter)? {
                    Some(value) => self.push(value)?,
                    None => {
                        self.pop()?;
                        self.jump(to);
                    }
                }
            }
            Op::GetAttr(idx) => {
                let name = loaded.code.names.get(idx as usize).ok_or_else(corrupt)?.clone();
                let value = self.pop()?;
                let found = match value {
                    Value::Server(_) => Value::Tool(self.tool_of(value, &name)?),
                    _ => self.heap.get_attr(value, &name)?,
                };
                self.push(found)?;
            }
            Op::SetAttr(idx) => {
                let name = loaded.code.names.get(idx as usize).ok_or_else(corrupt)?.clone();
                let (owner, value) = (self.pop()?, self.pop()?);
                self.heap.set_attr(owner, &name, value)?;
            }
            Op::DeleteAttr(idx) => {
                let name = loaded.code.names.get(idx as usize).ok_or_else(corrupt)?.clone();
                let owner = self.pop()?;
                let key = self.heap.str(&name)?;
                self.heap.delete_item(owner, key)?;
            }
            Op::GetItem => {
                let (index, value) = (self.pop()?, self.pop()?);
                let found = self.heap.get_item(value, index)?;
                self.push(found)?;
            }
            Op::SetItem => {
                let (index, owner, value) = (self.pop()?, self.pop()?, self.pop()?);
                self.heap.set_item(owner, index, value)?;
            }
            Op::DeleteItem => {
                let (index, owner) = (self.pop()?, self.pop()?);
                self.heap.delete_item(owner, index)?;
            }
            Op::GetSlice => {
                let parts = self.slice_parts()?;
                let value = self.pop()?;
                let part = self.heap.get_slice(value, parts)?;
                self.push(part)?;
            }
            Op::SetSlice => {
                let parts = self.slice_parts()?;
                let (owner, value) = (self.pop()?, self.pop()?);
                self.heap.set_slice(owner, parts, Some(value))?;
            }
            Op::DeleteSlice => {
                let parts = self.slice_parts()?;
                let owner = self.pop()?;
                self.heap.set_slice(owner, parts, None)?;
            }
            Op::Format(repr) => {
                let (spec, mut value) = (self.pop()?, self.pop()?);
                if repr {
                    let text = self.heap.repr(value)?;
                    value = self.heap.string(text)?;
                }
                let spec = self.heap.text(spec).ok_or_else(corrupt)?;
                let text = self.heap.format(value, spec)?;
                let text = self.heap.string(text)?;
                self.push(text)?;
            }
            Op::Join(n) => {
                let parts = self.pop_many(n)?;
                let bytes: usize = parts.iter().filter_map(|part| self.heap.text(*part)).map(str::len).sum();
                let mut text = String::new();
                self.heap.room_in_text(&mut text, bytes)?;
                for part in parts.iter().filter_map(|part| self.heap.text(*part)) {
                    self.heap.write(&mut text, part)?;
                }
                let text = self.heap.string(text)?;
                self.push(text)?;
            }
            Op::Unpack(n) => {
                let value = self.pop()?;
                let items = self.heap.unpack(value, n as usize)?;
                for item in items.into_iter().rev() {
                    self.push(item)?;
                }
            }
            Op::UnpackRest { before, after } => {
                let value = self.pop()?;
                let items = self.heap.unpack_rest(value, before as usize, after as usize)?;
                for item in items.into_iter().rev() {
                    self.push(item)?;
                }
            }
            Op::Call { n_plain, n_named, first } => {
                if n_named == 0 && self.quick_call(n_plain)? {
                    return Ok(Flow::Next);
                }
                let args = self.pop_args(code_idx, n_plain, n_named, first)?;
                let callee = self.pop()?;
                return self.call(callee, args);
            }
            Op::CallMethod { name, owner, n_plain, n_named, first } => {
                if n_named == 0 && self.quick_method(code_idx, name, n_plain)? {
                    return Ok(Flow::Next);
                }
                let args = self.pop_args(code_idx, n_plain, n_named, first)?;
                let receiver = self.pop()?;
                return self.call_method(code_idx, receiver, name, owner, args, false);
            }
            Op::CallSpread => {
                let args = self.pop_spread()?;
                let callee = self.pop()?;
                return self.call(callee, args);
            }
            Op::CallMethodSpread { name, owner } => {
                let args = self.pop_spread()?;
                let receiver = self.pop()?;
                return self.call_method(code_idx, receiver, name, owner, args, false);
            }
            Op::Defer { name, owner, n_plain, n_named, first } => {
                let args = self.pop_args(code_idx, n_plain, n_named, first)?;
                let receiver = self.pop()?;
                return self.call_method(code_idx, receiver, name, owner, args, true);
            }
            Op::DeferSpread { name, owner } => {
                let args = self.pop_spread()?;
                let receiver = self.pop()?;
                return self.call_method(code_idx, receiver, name, owner, args, true);
            }
            Op::Gather => return self.gather(),
            Op::MakeFunction { code, n_defaults, n_captured } => {
                let captured = self.pop_many(n_captured)?;
                let defaults = self.pop_many(n_defaults)?;
                let plain = self.loaded(code)?.code.params.iter().filter(|p| **p == ParamKind::Plain).count();
                if defaults.len() > plain {
                    return Err(corrupt());
                }
                let bound = Box::new(Bound { defaults, captured });
                let function = self.heap.store(Object::Function { code, bound })?;
                self.push(function)?;
            }
            Op::Return => {
                let value = self.pop()?;
                self.stack.truncate(base);
                self.frames.pop();
                if self.frames.is_empty() {
                    return Ok(Flow::Done);
                }
                self.deliver(value)?;
            }
            Op::Try(target) => {
                let height = self.stack.len() as u32;
                if let Some(Frame::Code { handlers, .. }) = self.frames.last_mut() {
                    let (limit, used) = (MOST_HANDLERS, handlers.len().saturating_add(1));
                    if handlers.push(Handler { target, height }).is_err() {
                        return over_if(true, "open try block", limit, used).map(|()| Flow::Next);
                    }
                }
            }
            Op::EndTry => {
                if let Some(Frame::Code { handlers, .. }) = self.frames.last_mut() {
                    handlers.pop();
                }
            }
            Op::Raise => {
                let value = self.pop()?;
                return self.raise_value(value);
            }
            Op::Matches => {
                let (class, exception) = (self.pop()?, self.pop()?);
                let caught = self.matches(exception, class)?;
                self.push(Value::Bool(caught))?;
            }
            Op::Show => {
                let value = self.pop()?;
                if value != Value::None {
                    let text = self.heap.display(value)?;
                    self.print_text(&text)?;
                    self.print_text("\n")?;
                }
            }
        }
        Ok(Flow::Next)
    }

    fn jump(&mut self, to: u32) {
        if let Some(Frame::Code { ip, .. }) = self.frames.last_mut() {
            *ip = to;
        }
    }

    fn slice_parts(&mut self) -> Outcome<[Value; 3]> {
        let (step, stop, start) = (self.pop()?, self.pop()?, self.pop()?);
        Ok([start, stop, step])
    }

    fn global(&mut self, slot: usize) -> Outcome<Value> {
        let global = self.globals.get_mut(slot).ok_or_else(corrupt)?;
        if let Value::Growing(id, _) = global.value {
            global.value = Value::Object(id);
        }
        match (global.value, global.fallback) {
            (Value::Unbound, Value::Unbound) => self.unknown_name(slot),
            (Value::Unbound, fallback) => Ok(fallback),
            (value, _) => Ok(value),
        }
    }

    /// A local that is not assigned yet means the server of its name, if there is one.
    fn unbound_local(&self, code: u32, slot: u32) -> Outcome<Value> {
        let name = self.loaded(code)?.code.locals.get(slot as usize).ok_or_else(corrupt)?;
        if let Value::Server(at) = self.meaning(name) {
            return Ok(Value::Server(at));
        }
        let message = format!("cannot access local variable '{name}' where it is not associated with a value");
        raise_with(Class::UnboundLocalError, message, format!("assign `{name}` first, or declare `global {name}`"))
    }

    fn unknown_name<T>(&self, slot: usize) -> Outcome<T> {
        let name = &self.globals.get(slot).ok_or_else(corrupt)?.name;
        let known = substitutes::name(name);
        let message = format!("name '{name}' is not defined");
        if let Some(hint) = known {
            return raise_with(Class::NameError, message, hint);
        }
        if let Some(tool) = self.tools.iter().find(|t| !t.server.is_empty() && t.name == *name) {
            return raise_with(Class::NameError, message, format!("write {}", tool.line()));
        }
        let variables = self.globals.iter().filter(|g| g.value != Value::Unbound).map(|g| g.name.as_str());
        let servers = self.servers.iter().map(String::as_str);
        let moves = self.tools.iter().filter(|t| t.server.is_empty()).map(|t| t.name.as_str());
        let builtins = Builtin::ALL.iter().map(|b| b.name());
        match nearest(name, variables.chain(servers).chain(moves).chain(builtins)) {
            Some(near) => raise_with(Class::NameError, message, format!("did you mean `{near}`?")),
            None if self.servers.is_empty() => raise(Class::NameError, message),
            None => raise_with(
                Class::NameError,
                message,
                format!("assign it first; the servers are {}", self.servers.join(", ")),
            ),
        }
    }

    fn raise_value(&mut self, value: Value) -> Outcome<Flow> {
        match value {
            Value::Class(class) => {
                let exception = self.heap.exception(class, Vec::new(), None, String::new())?;
                Err(Trap::Thrown(exception))
            }
            _ if matches!(self.heap.object(value), Some(Object::Exception { .. })) => Err(Trap::Thrown(value)),
            _ => raise_with(
                Class::TypeError,
                "exceptions must derive from BaseException",
                "write raise ValueError(\"why\")",
            ),
        }
    }

    fn matches(&self, exception: Value, class: Value) -> Outcome<bool> {
        let Some(Object::Exception { class: found, .. }) = self.heap.object(exception) else { return Err(corrupt()) };
        let one = |class: Value| match class {
            Value::Class(class) => Ok(found.is(class)),
            _ => raise_with(
                Class::TypeError,
                "catching classes that do not inherit from BaseException is not allowed",
                "write except Exception as e",
            ),
        };
        match self.heap.items(class) {
            Some(classes) => {
                for class in classes {
                    if one(*class)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            None => one(class),
        }
    }
}

fn slot_of(loaded: &Loaded, idx: u32) -> Outcome<usize> {
    loaded.slots.get(idx as usize).map(|slot| *slot as usize).ok_or_else(corrupt)
}

fn extend(heap: &mut Heap, target: Value, values: Value) -> Outcome<()> {
    let Value::Object(id) = target else { return Err(corrupt()) };
    match heap.get(id)? {
        Object::List(_) => {
            let items = heap.collected(values)?;
            heap.change_list(id, items.len(), |list| list.extend(items))
        }
        Object::Set(_) => {
            for item in heap.collected(values)? {
                heap.insert(id, item, Value::None)?;
            }
            Ok(())
        }
        Object::Dict(_) if heap.type_name(values) == "dict" => heap.merge(id, values),
        Object::Dict(_) => raise(Class::TypeError, format!("'{}' object is not a mapping", heap.type_name(values))),
        _ => Err(corrupt()),
    }
}

fn extend_keywords(heap: &mut Heap, target: Value, values: Value) -> Outcome<()> {
    if let (Value::Object(id), Some(Object::Dict(given))) = (target, heap.object(values)) {
        for (key, _) in given.iter() {
            if heap.lookup(id, key)?.is_some() {
                let name = heap.text(key).unwrap_or_default();
                return raise(Class::TypeError, format!("got multiple values for keyword argument '{name}'"));
            }
        }
    }
    extend(heap, target, values)
}
