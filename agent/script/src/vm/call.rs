//! Calls: functions of the program, built-ins, methods, tools and moves.

use super::{Call, CallError, Each, Flow, Frame, Goal, Vm};
use crate::args::Args;
use crate::ast::ParamKind;
use crate::display::cut;
use crate::error::{Error, nearest};
use crate::heap::{Bound, Object, Outcome, Trap, corrupt, raise, raise_with};
use crate::json::weight;
use crate::methods;
use crate::schema::Schema;
use crate::signature::Signature;
use crate::value::{Builtin, Class, Id, Value};
use serde_json::{Map, Value as Json};

impl Vm {
    pub(super) fn pop_args(&mut self, code: u32, n_plain: u32, n_named: u32, first: u32) -> Outcome<Args> {
        let values = self.pop_many(n_named)?;
        let plain = self.pop_many(n_plain)?;
        if n_named == 0 {
            return Ok(Args { plain, named: Vec::new() });
        }
        let names = &self.loaded(code)?.code.names;
        let mut named = self.heap.vec(values.len())?;
        for (name, value) in names.iter().skip(first as usize).zip(values) {
            named.push((self.heap.copied_text(name)?, value));
        }
        if named.len() != n_named as usize {
            return Err(corrupt());
        }
        Ok(Args { plain, named })
    }

    pub(super) fn pop_spread(&mut self) -> Outcome<Args> {
        let (named, plain) = (self.pop()?, self.pop()?);
        let plain = self.heap.collected(plain)?;
        let pairs = self.heap.pairs(named)?;
        let mut args = Args { plain, named: self.heap.vec(pairs.len())? };
        for (key, value) in pairs {
            let Some(name) = self.heap.text(key) else { return raise(Class::TypeError, "keywords must be strings") };
            args.named.push((self.heap.copied_text(name)?, value));
        }
        Ok(args)
    }

    /// Calls a value: delivers its result, pushes a frame, or hands out a tool call.
    pub(super) fn call(&mut self, callee: Value, args: Args) -> Outcome<Flow> {
        let result = match callee {
            Value::Builtin(builtin) => return self.call_builtin(builtin, args),
            Value::Tool(tool) => return self.call_tool(tool, args),
            Value::Class(class) => {
                if !args.named.is_empty() {
                    return raise(Class::TypeError, format!("{}() takes no keyword arguments", class.name()));
                }
                self.heap.exception(class, args.plain, None, String::new())?
            }
            _ => match self.heap.object(callee) {
                Some(Object::Function { .. }) => return self.call_function(callee, args),
                Some(Object::Method { receiver, name }) => {
                    let (receiver, name) = (*receiver, name.clone());
                    return self.call_own_method(receiver, &name, args);
                }
                _ => return self.not_callable(callee),
            },
        };
        self.deliver(result)?;
        Ok(Flow::Next)
    }

    fn not_callable<T>(&self, callee: Value) -> Outcome<T> {
        let message = format!("'{}' object is not callable", self.heap.type_name(callee));
        match callee {
            Value::Server(at) => {
                let names = self.tool_names(at);
                raise_with(Class::TypeError, message, format!("call one of its tools: {names}"))
            }
            Value::None => raise_with(Class::TypeError, message, "the value is None: check what the call returned"),
            _ => raise_with(Class::TypeError, message, format!("its shape is {}", self.heap.shape(callee))),
        }
    }

    fn tool_names(&self, server: u32) -> String {
        const SHOWN: usize = 20;
        let server = self.servers.get(server as usize).map_or("", String::as_str);
        let names: Vec<&str> =
            self.tools.iter().filter(|t| t.server == server).map(|t| t.name.as_str()).take(SHOWN).collect();
        names.join(", ")
    }

    fn call_builtin(&mut self, builtin: Builtin, mut args: Args) -> Outcome<Flow> {
        match builtin {
            Builtin::Print => {
                self.print(args)?;
                self.deliver(Value::None)?;
                return Ok(Flow::Next);
            }
            Builtin::Map | Builtin::Filter => {
                let name = builtin.name();
                if args.plain.len() < 2 || !args.named.is_empty() {
                    return raise_with(
                        Class::TypeError,
                        format!("{name}() must have at least two arguments"),
                        format!("write {name}(f, xs)"),
                    );
                }
                let callee = args.plain.remove(0);
                let spread = builtin == Builtin::Map && args.plain.len() > 1;
                let items = if spread {
                    self.heap.call_builtin(Builtin::Zip, args)?
                } else {
                    let items = self.heap.collected(args.plain.first().copied().ok_or_else(corrupt)?)?;
                    self.heap.list(items)?
                };
                if builtin == Builtin::Filter && callee == Value::None {
                    return self.each(Goal::Filter, Value::Builtin(Builtin::Bool), items, false);
                }
                return self.each(
                    if spread || builtin == Builtin::Map { Goal::Map } else { Goal::Filter },
                    callee,
                    items,
                    spread,
                );
            }
            Builtin::Sorted | Builtin::Max | Builtin::Min => {
                if let Some(key) = args.take("key").filter(|key| *key != Value::None) {
                    let goal = if builtin == Builtin::Sorted {
                        Goal::Sorted { reverse: args.take("reverse").is_some_and(|v| self.heap.truthy(v)) }
                    } else {
                        Goal::Extreme { builtin, default: args.take("default") }
                    };
                    if let Some((name, _)) = args.named.first() {
                        return raise(
                            Class::TypeError,
                            format!("'{name}' is an invalid keyword argument for {}()", builtin.name()),
                        );
                    }
                    let items = self.heap.choices(&args, builtin.name())?;
                    let items = self.heap.list(items)?;
                    return self.each(goal, key, items, false);
                }
            }
            _ => {}
        }
        let result = self.heap.call_builtin(builtin, args)?;
        self.deliver(result)?;
        Ok(Flow::Next)
    }

    fn each(&mut self, goal: Goal, callee: Value, items: Value, spread: bool) -> Outcome<Flow> {
        if !self.heap.is_callable(callee) {
            return self.not_callable(callee);
        }
        let frames = self.frames.len().saturating_add(1);
        if frames > self.limits.frames as usize {
            let error = Error::over("call depth", u64::from(self.limits.frames), frames as u64);
            return Err(Trap::Fatal(Box::new(error)));
        }
        let results = self.heap.list(Vec::new())?;
        self.heap.kept_room(&mut self.frames, 1)?;
        self.frames.push(Frame::Each(Each { goal, callee, items, results, next: 0, spread }));
        Ok(Flow::Next)
    }

    /// Calls the function for the next item, or ends the built-in.
    pub(super) fn step_each(&mut self) -> Outcome<Flow> {
        self.heap.work(1)?;
        let Some(Frame::Each(each)) = self.frames.last_mut() else { return Err(corrupt()) };
        let at = each.next as usize;
        each.next = each.next.saturating_add(1);
        let each = *each;
        let items = self.heap.items(each.items).ok_or_else(corrupt)?;
        if let Some(item) = items.get(at) {
            let plain = match each.spread {
                true => self.heap.copied(self.heap.items(*item).ok_or_else(corrupt)?)?,
                false => self.heap.copied(&[*item])?,
            };
            return self.call(each.callee, Args { plain, named: Vec::new() });
        }
        let items = self.heap.collected(each.items)?;
        let results = self.heap.collected(each.results)?;
        if items.len() != results.len() {
            return Err(corrupt());
        }
        let value = match each.goal {
            Goal::Map => each.results,
            Goal::Filter => {
                let mut kept = self.heap.vec(items.len())?;
                let pairs = items.iter().zip(&results);
                kept.extend(pairs.filter(|(_, keep)| self.heap.truthy(**keep)).map(|(item, _)| *item));
                self.heap.list(kept)?
            }
            Goal::Sorted { reverse } => {
                let sorted = self.heap.sorted(&items, &results, reverse)?;
                self.heap.list(sorted)?
            }
            Goal::Sort { list: Value::Object(id), reverse } => {
                let sorted = self.heap.sorted(&items, &results, reverse)?;
                self.heap.replace_items(id, &sorted)?;
                Value::None
            }
            Goal::Sort { .. } => return Err(corrupt()),
            Goal::Extreme { builtin, default } => self.heap.extreme(builtin, &items, &results, default)?,
        };
        self.frames.pop();
        self.deliver(value)?;
        Ok(Flow::Next)
    }

    fn call_function(&mut self, function: Value, args: Args) -> Outcome<Flow> {
        let Some(Object::Function { code, bound }) = self.heap.object(function) else {
            return Err(corrupt());
        };
        let (code, Bound { defaults, captured }) = (*code, &**bound);
        let (defaults, captured) = (self.heap.copied(defaults)?, self.heap.copied(captured)?);
        let loaded = &self.loaded(code)?.code;
        let plain_only = loaded.params.iter().all(|kind| *kind == ParamKind::Plain);
        if plain_only && args.named.is_empty() && args.plain.len() == loaded.params.len() {
            let mut locals = self.heap.vec(args.plain.len().saturating_add(captured.len()))?;
            locals.extend(args.plain);
            locals.extend(captured);
            self.push_frame(code, locals)?;
            return Ok(Flow::Next);
        }
        let name = self.heap.copied_text(&loaded.name)?;
        let mut params: Vec<(String, ParamKind)> = self.heap.vec(loaded.params.len())?;
        for (local, kind) in loaded.locals.iter().zip(&loaded.params) {
            params.push((self.heap.copied_text(local)?, *kind));
        }
        let n_plain = params.iter().filter(|(_, kind)| *kind == ParamKind::Plain).count();
        let mut locals = self.heap.vec(params.len().saturating_add(captured.len()))?;
        locals.resize(params.len(), Value::Unbound);
        let mut rest = Vec::new();
        for (i, value) in args.plain.iter().enumerate() {
            match locals.get_mut(i).filter(|_| i < n_plain) {
                Some(local) => *local = *value,
                None => self.heap.grow(&mut rest, *value)?,
            }
        }
        let signature = || {
            let names: Vec<&str> = params.iter().map(|(name, _)| name.as_str()).collect();
            format!("write {name}({})", names.join(", "))
        };
        let mut others = Vec::new();
        for (given, value) in args.named {
            let at = params.iter().position(|(name, kind)| *name == given && *kind == ParamKind::Plain);
            match at.and_then(|at| locals.get_mut(at)) {
                Some(local) if *local == Value::Unbound => *local = value,
                Some(_) => {
                    return raise_with(
                        Class::TypeError,
                        format!("{name}() got multiple values for argument '{given}'"),
                        signature(),
                    );
                }
                None if params.iter().any(|(_, kind)| *kind == ParamKind::Named) => {
                    self.heap.grow(&mut others, (given, value))?;
                }
                None => {
                    let message = format!("{name}() got an unexpected keyword argument '{given}'");
                    return raise_with(Class::TypeError, message, signature());
                }
            }
        }
        let plain = locals.get_mut(..n_plain).ok_or_else(corrupt)?;
        for (local, default) in plain.iter_mut().rev().zip(defaults.iter().rev()) {
            if *local == Value::Unbound {
                *local = *default;
            }
        }
        let mut plain = params.iter().zip(&locals).take(n_plain);
        if let Some(((missing, _), _)) = plain.find(|(_, local)| **local == Value::Unbound) {
            let message = format!("{name}() missing required argument: '{missing}'");
            return raise_with(Class::TypeError, message, signature());
        }
        let n_given = args.plain.len();
        for (local, (_, kind)) in locals.iter_mut().zip(&params) {
            match kind {
                ParamKind::Plain => {}
                ParamKind::Rest => *local = self.heap.tuple(std::mem::take(&mut rest))?,
                ParamKind::Named => {
                    let mut pairs = self.heap.vec(others.len())?;
                    for (name, value) in &others {
                        pairs.push((self.heap.str(name)?, *value));
                    }
                    let table = self.heap.table(pairs)?;
                    *local = self.heap.dict(table)?;
                }
            }
        }
        if !rest.is_empty() {
            let message = format!("{name}() takes {n_plain} positional arguments but {n_given} were given");
            return raise_with(Class::TypeError, message, signature());
        }
        locals.extend(captured);
        self.push_frame(code, locals)?;
        Ok(Flow::Next)
    }

    /// `receiver.name(..)`: its own method first, then a dict's key, then the tool of the server of the receiver's name.
    pub(super) fn call_method(
        &mut self,
        code: u32,
        receiver: Value,
        name: u32,
        owner: Option<u32>,
        args: Args,
        defer: bool,
    ) -> Outcome<Flow> {
        let names = &self.loaded(code)?.code.names;
        let owner = match owner {
            Some(owner) => Some(names.get(owner as usize).ok_or_else(corrupt)?.clone()),
            None => None,
        };
        let name = names.get(name as usize).ok_or_else(corrupt)?.clone();
        if let Value::Server(_) = receiver {
            let tool = self.called_tool(receiver, &name)?;
            return if defer { self.defer(tool, args) } else { self.call_tool(tool, args) };
        }
        if methods::has(self.heap.method_type(receiver), &name) {
            return self.call_own_method(receiver, &name, args);
        }
        if let Some(found) = self.heap.key(receiver, &name)?
            && self.heap.is_callable(found)
        {
            return self.call(found, args);
        }
        let shadowed = owner.map_or(Value::Unbound, |owner| self.meaning(&owner));
        match shadowed {
            Value::Server(_) => {
                let tool = self.called_tool(shadowed, &name)?;
                if defer { self.defer(tool, args) } else { self.call_tool(tool, args) }
            }
            Value::Json if methods::has("json", &name) => self.call_own_method(shadowed, &name, args),
            _ => {
                let found = self.heap.get_attr(receiver, &name)?;
                self.call(found, args)
            }
        }
    }

    fn call_own_method(&mut self, receiver: Value, name: &str, mut args: Args) -> Outcome<Flow> {
        if let (Value::Object(id), "sort", Some(Object::List(_))) = (receiver, name, self.heap.object(receiver))
            && let Some(key) = args.take("key").filter(|key| *key != Value::None)
        {
            return self.sort_by(id, receiver, key, args);
        }
        let result = self.heap.call_method(receiver, name, args)?;
        self.deliver(result)?;
        Ok(Flow::Next)
    }

    fn sort_by(&mut self, id: Id, receiver: Value, key: Value, mut args: Args) -> Outcome<Flow> {
        let reverse = args.take("reverse").is_some_and(|v| self.heap.truthy(v));
        args.bind::<0>("sort", [], 0)?;
        let items = self.heap.collected(receiver)?;
        let items = self.heap.list(items)?;
        self.each(Goal::Sort { list: Value::Object(id), reverse }, key, items, false)
    }

    fn called_tool(&mut self, server: Value, name: &str) -> Outcome<u32> {
        let found = self.tool_of(server, name);
        self.usage.invalid_calls = self.usage.invalid_calls.saturating_add(u32::from(found.is_err()));
        found
    }

    /// The tool of a server by its name in the language or on the wire.
    pub(super) fn tool_of(&self, server: Value, name: &str) -> Outcome<u32> {
        let Value::Server(at) = server else { return Err(corrupt()) };
        let server = self.servers.get(at as usize).ok_or_else(corrupt)?;
        let of_server = |tool: &&Signature| tool.server == *server;
        let found = self.tools.iter().position(|t| of_server(&t) && t.name == name);
        if let Some(at) = found.or_else(|| self.tools.iter().position(|t| of_server(&t) && t.wire_name == name)) {
            return Ok(at as u32);
        }
        let message = format!("server '{server}' has no tool '{name}'");
        let names = self.tools.iter().filter(of_server).map(|t| t.name.as_str());
        let elsewhere = self.tools.iter().find(|t| !t.server.is_empty() && t.name == name);
        let hint = match (nearest(name, names), elsewhere) {
            (_, Some(other)) => format!("did you mean {}?", other.line()),
            (Some(near), None) => {
                let line = self.tools.iter().find(|t| of_server(t) && t.name == near).map(Signature::line);
                format!("did you mean {}?", line.unwrap_or_default())
            }
            (None, None) => format!("its tools are {}", self.tool_names(at)),
        };
        raise_with(Class::AttributeError, message, hint)
    }

    fn call_tool(&mut self, tool: u32, args: Args) -> Outcome<Flow> {
        let call = self.checked_call(tool, args, self.pos().line)?;
        self.count_calls(1)?;
        Ok(Flow::Call(Box::new(call)))
    }

    /// A call whose arguments fit its signature.
    pub(super) fn checked_call(&mut self, tool: u32, args: Args, line: u32) -> Outcome<Call> {
        let signature = self.tools.get(tool as usize).ok_or_else(corrupt)?;
        match self.arguments(signature, args) {
            Ok(arguments) => {
                Ok(Call { server: signature.server.clone(), tool: signature.name.clone(), arguments, line })
            }
            Err(Trap::Raise(mut raise)) => {
                raise.hint.get_or_insert_with(|| format!("write {}", signature.line()));
                self.usage.invalid_calls = self.usage.invalid_calls.saturating_add(1);
                Err(Trap::Raise(raise))
            }
            Err(fatal) => Err(fatal),
        }
    }

    /// Counts the calls of one suspension, if their limits allow them.
    pub(super) fn count_calls(&mut self, n: u32) -> Outcome<()> {
        for (what, limit, used, more) in [
            ("tool call", self.limits.calls, self.usage.calls, n),
            ("suspension", self.limits.suspensions, self.usage.suspensions, 1),
        ] {
            let wanted = u64::from(used).saturating_add(u64::from(more));
            if wanted > u64::from(limit) {
                let error = Error::over(what, u64::from(limit), wanted);
                return Err(Trap::Fatal(Box::new(error.with_hint("call fewer tools in one program"))));
            }
        }
        self.usage.calls = self.usage.calls.saturating_add(n);
        self.usage.suspensions = self.usage.suspensions.saturating_add(1);
        Ok(())
    }

    /// Matches arguments to a signature and checks them against its schema.
    fn arguments(&self, signature: &Signature, args: Args) -> Outcome<Map<String, Json>> {
        let path = signature.path();
        let mut given: Vec<Option<Value>> = vec![None; signature.params.len()];
        let mut gathered = None;
        if let [only] = signature.params.as_slice()
            && matches!(only.schema, Schema::Array(_))
            && !args.plain.is_empty()
            && (args.plain.len() > 1 || args.plain.first().is_some_and(|first| self.heap.items(*first).is_none()))
        {
            let mut items = self.heap.vec(args.plain.len())?;
            for value in &args.plain {
                items.push(self.heap.to_json(*value)?);
            }
            gathered = Some(Json::Array(items));
        } else {
            if args.plain.len() > given.len() {
                return raise(
                    Class::TypeError,
                    format!("{path}() takes {} arguments but {} were given", given.len(), args.plain.len()),
                );
            }
            for (slot, value) in given.iter_mut().zip(&args.plain) {
                *slot = Some(*value);
            }
        }
        for (name, value) in args.named {
            let param = signature.params.iter().position(|p| p.name == name);
            let param = param.or_else(|| signature.params.iter().position(|p| p.wire_name == name));
            match param.and_then(|at| given.get_mut(at)) {
                Some(place) if place.is_none() => *place = Some(value),
                Some(_) => {
                    return raise(Class::TypeError, format!("{path}() got multiple values for argument '{name}'"));
                }
                None => {
                    let near = nearest(&name, signature.params.iter().map(|p| p.name.as_str()));
                    let near = near.map(|near| format!(", did you mean `{near}`?")).unwrap_or_default();
                    return raise(Class::TypeError, format!("{path}() got an unexpected argument '{name}'{near}"));
                }
            }
        }
        let mut arguments = self.heap.json_map(signature.params.len())?;
        for (param, value) in signature.params.iter().zip(given) {
            let json = match value {
                Some(value) => self.heap.to_json(value)?,
                None => match gathered.take() {
                    Some(json) => json,
                    None if param.required => {
                        return raise(Class::TypeError, format!("{path}() missing argument: {}", param.name));
                    }
                    None => continue,
                },
            };
            let is_null = json.is_null();
            if param.schema != Schema::Any {
                self.heap.scratch(weight(&json).saturating_mul(2))?;
            }
            match param.schema.fit(json) {
                Ok(json) => {
                    arguments.insert(self.heap.copied_text(&param.wire_name)?, json);
                }
                Err(_) if is_null && !param.required => {}
                Err(wrong) => {
                    let wrong = cut(&wrong, 600);
                    return raise(Class::TypeError, format!("{path}() argument '{}': {wrong}", param.name));
                }
            }
        }
        Ok(arguments)
    }

    /// The exception that a failed call raises.
    pub(super) fn failed_call(&mut self, error: &CallError) -> Outcome<Value> {
        let class = Class::named(&error.kind).unwrap_or(Class::ToolError);
        let message = self.heap.str(&error.message)?;
        self.heap.would_fit(error.kind.len() as u64)?;
        self.heap.exception(class, vec![message], None, error.kind.clone())
    }

    fn print(&mut self, mut args: Args) -> Outcome<()> {
        args.take("flush");
        args.take("file");
        let mut ends = [" ".to_owned(), "\n".to_owned()];
        for (end, name) in ends.iter_mut().zip(["sep", "end"]) {
            match args.take(name) {
                None | Some(Value::None) => {}
                Some(value) => *end = self.heap.copied_text(self.heap.text_arg(name, value)?)?,
            }
        }
        if let Some((name, _)) = args.named.first() {
            let message = format!("'{name}' is an invalid keyword argument for print()");
            return raise_with(Class::TypeError, message, "write print(a, b, sep=\" \", end=\"\\n\")");
        }
        for (i, value) in args.plain.iter().enumerate() {
            if i > 0 {
                self.print_text(&ends[0])?;
            }
            let text = self.heap.display(*value)?;
            self.print_text(&text)?;
            self.heap.release(text.capacity() as u64);
        }
        self.print_text(&ends[1])
    }

    /// Appends to what was printed; at the limit, what fits is kept and the program fails.
    pub(super) fn print_text(&mut self, text: &str) -> Outcome<()> {
        let used = self.usage.printed.saturating_add(text.len() as u64);
        let limit = self.limits.printed_bytes;
        if used > limit {
            let room = limit.saturating_sub(self.usage.printed) as usize;
            let fits = text.get(..text.floor_char_boundary(room)).unwrap_or("");
            self.heap.kept_text_room(&mut self.printed, fits.len())?;
            self.printed.push_str(fits);
            self.usage.printed = self.usage.printed.saturating_add(fits.len() as u64);
            let error =
                Error::over("printed bytes", limit, used).with_hint("print fewer items: xs[:20], or only counts");
            return Err(Trap::Fatal(Box::new(error)));
        }
        self.heap.kept_text_room(&mut self.printed, text.len())?;
        self.printed.push_str(text);
        self.usage.printed = used;
        Ok(())
    }
}
