//! The walk over a program's tree: which names are set where they are read, and which tools are named.

use super::{MOST_LISTED, Reached, ToolUse, UnsetName, check};
use crate::ast::{Arg, Comprehension, Expr, Fragment, Node, Param, Stmt, StmtNode};
use crate::error::{Pos, nearest};
use crate::methods;
use crate::signature::Signature;
use crate::value::{Builtin, Class};
use std::collections::BTreeSet;

pub(super) struct Walk<'a> {
    tools: &'a [Signature],
    moves: &'a [Signature],
    /// Names that have a value so far: variables of earlier programs, then those that are set on the way.
    set: BTreeSet<String>,
    /// Names that the program sets at its top somewhere.
    ever: BTreeSet<String>,
    /// Names of the functions, lambdas and comprehensions around, innermost last.
    locals: Vec<BTreeSet<String>>,
    reached: Reached,
    pub(super) calls: Vec<ToolUse>,
    pub(super) moves_used: Vec<ToolUse>,
    pub(super) functions: Vec<String>,
    pub(super) sets: Vec<String>,
    pub(super) unset: Vec<UnsetName>,
    pub(super) repeats: bool,
    pub(super) cut: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(tools: &'a [Signature], moves: &'a [Signature], known: &[String]) -> Walk<'a> {
        Walk {
            tools,
            moves,
            set: known.iter().cloned().collect(),
            ever: BTreeSet::new(),
            locals: Vec::new(),
            reached: Reached::Once,
            calls: Vec::new(),
            moves_used: Vec::new(),
            functions: Vec::new(),
            sets: Vec::new(),
            unset: Vec::new(),
            repeats: false,
            cut: false,
        }
    }

    pub(super) fn program(&mut self, block: &[Stmt]) {
        let mut names = Vec::new();
        assigned(block, &mut names);
        for name in names {
            if self.ever.insert(name.clone()) {
                self.sets.push(name);
            }
        }
        self.block(block);
        self.sets.retain(|name| !self.functions.contains(name));
        let later: Vec<bool> = self.unset.iter().map(|unset| self.ever.contains(&unset.name)).collect();
        for (unset, later) in self.unset.iter_mut().zip(later) {
            unset.set_later = later;
        }
    }

    fn block(&mut self, block: &[Stmt]) {
        block.iter().for_each(|stmt| self.stmt(stmt));
    }

    /// Walks what is reached as `reached` says, at the most as often as what is around it.
    fn within(&mut self, reached: Reached, walk: impl FnOnce(&mut Self)) {
        let outer = self.reached;
        self.reached = outer.max(reached);
        self.repeats |= reached == Reached::Repeatedly;
        walk(self);
        self.reached = outer;
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.node {
            StmtNode::Expr(value) => self.expr(value),
            StmtNode::Assign { targets, value } => {
                self.expr(value);
                targets.iter().for_each(|target| self.target(target));
            }
            StmtNode::Augmented { target, value, .. } => {
                self.expr(target);
                self.expr(value);
                self.target(target);
            }
            StmtNode::If { arms, other } => {
                for (condition, body) in arms {
                    self.expr(condition);
                    self.within(Reached::Perhaps, |walk| walk.block(body));
                }
                self.within(Reached::Perhaps, |walk| walk.block(other));
            }
            StmtNode::For { target, iterable, body, other } => {
                self.expr(iterable);
                self.within(Reached::Repeatedly, |walk| {
                    walk.target(target);
                    walk.block(body);
                });
                self.within(Reached::Perhaps, |walk| walk.block(other));
            }
            StmtNode::While { condition, body, other } => {
                self.within(Reached::Repeatedly, |walk| {
                    walk.expr(condition);
                    walk.block(body);
                });
                self.within(Reached::Perhaps, |walk| walk.block(other));
            }
            StmtNode::Try { body, handlers, other, finally } => {
                self.block(body);
                for handler in handlers {
                    self.within(Reached::Perhaps, |walk| {
                        handler.class.iter().for_each(|class| walk.expr(class));
                        handler.name.iter().for_each(|name| walk.bind(name));
                        walk.block(&handler.body);
                    });
                }
                self.within(Reached::Perhaps, |walk| walk.block(other));
                self.block(finally);
            }
            StmtNode::Def { name, params, body } => {
                self.bind(name);
                self.functions.push(name.clone());
                let mut names = Vec::new();
                assigned(body, &mut names);
                let mut globals = Vec::new();
                declared(body, &mut globals);
                names.retain(|name| !globals.contains(name));
                self.function(params, names, |walk| walk.block(body));
            }
            StmtNode::Return(value) | StmtNode::Raise(value) => value.iter().for_each(|value| self.expr(value)),
            StmtNode::Assert { condition, message } => {
                self.expr(condition);
                message.iter().for_each(|message| self.expr(message));
            }
            StmtNode::Del(targets) => {
                for target in targets {
                    match &target.node {
                        Node::Name(name) if self.locals.is_empty() => {
                            self.expr(target);
                            self.set.remove(name);
                        }
                        _ => self.expr(target),
                    }
                }
            }
            StmtNode::Global(_) | StmtNode::Break | StmtNode::Continue | StmtNode::Pass => {}
        }
    }

    fn function(&mut self, params: &[Param], names: Vec<String>, body: impl FnOnce(&mut Self)) {
        params.iter().flat_map(|param| &param.default).for_each(|default| self.expr(default));
        self.locals.push(params.iter().map(|param| param.name.clone()).chain(names).collect());
        self.within(Reached::Repeatedly, body);
        self.locals.pop();
    }

    fn bind(&mut self, name: &str) {
        if !self.locals.iter().any(|names| names.contains(name)) {
            self.set.insert(name.to_owned());
        }
    }

    fn target(&mut self, target: &Expr) {
        match &target.node {
            Node::Name(name) => self.bind(name),
            Node::Tuple(items) | Node::List(items) => items.iter().for_each(|item| self.target(item)),
            Node::Star(inner) => self.target(inner),
            _ => self.expr(target),
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.node {
            Node::Const(_) => {}
            Node::Name(name) => self.read(name, expr.pos),
            Node::FString(fragments) => self.fragments(fragments),
            Node::List(items) | Node::Tuple(items) | Node::Set(items) => items.iter().for_each(|item| self.expr(item)),
            Node::Dict(pairs) => {
                pairs.iter().flat_map(|(key, value)| key.iter().chain([value])).for_each(|e| self.expr(e))
            }
            Node::Unary(_, inner) | Node::Star(inner) => self.expr(inner),
            Node::Binary(_, a, b) | Node::Index(a, b) => {
                self.expr(a);
                self.expr(b);
            }
            Node::Logic(_, items) => {
                if let Some((first, others)) = items.split_first() {
                    self.expr(first);
                    self.within(Reached::Perhaps, |walk| others.iter().for_each(|item| walk.expr(item)));
                }
            }
            Node::Compare(first, rest) => {
                self.expr(first);
                rest.iter().for_each(|(_, item)| self.expr(item));
            }
            Node::If { condition, then, other } => {
                self.expr(condition);
                self.within(Reached::Perhaps, |walk| {
                    walk.expr(then);
                    walk.expr(other);
                });
            }
            Node::Call { callee, args } => self.call(callee, args),
            Node::Attr(owner, name) => match self.tool(owner, name) {
                Some(tool) => self.tool_use(tool, expr.pos, None),
                None => self.expr(owner),
            },
            Node::Slice(value, parts) => {
                self.expr(value);
                parts.iter().flatten().for_each(|part| self.expr(part));
            }
            Node::Comprehension(comprehension) => self.comprehension(comprehension),
            Node::Lambda { params, body } => self.function(params, Vec::new(), |walk| walk.expr(body)),
        }
    }

    fn fragments(&mut self, fragments: &[Fragment]) {
        for fragment in fragments {
            if let Fragment::Field { value, spec, .. } = fragment {
                self.expr(value);
                self.fragments(spec);
            }
        }
    }

    fn comprehension(&mut self, comprehension: &Comprehension) {
        let mut clauses = comprehension.clauses.iter();
        if let Some(first) = comprehension.clauses.first() {
            self.expr(&first.iterable);
        }
        self.within(Reached::Repeatedly, |walk| {
            let depth = walk.locals.len();
            let first = clauses.next();
            for (clause, outer) in first.map(|c| (c, true)).into_iter().chain(clauses.map(|c| (c, false))) {
                if !outer {
                    walk.expr(&clause.iterable);
                }
                let mut names = Vec::new();
                target_names(&clause.target, &mut names);
                walk.locals.push(names.into_iter().collect());
                clause.conditions.iter().for_each(|condition| walk.expr(condition));
            }
            walk.expr(&comprehension.element);
            comprehension.value.iter().for_each(|value| walk.expr(value));
            walk.locals.truncate(depth);
        });
    }

    fn call(&mut self, callee: &Expr, args: &[Arg]) {
        match &callee.node {
            Node::Attr(owner, name) => match self.tool(owner, name) {
                Some(tool) => self.tool_use(tool, callee.pos, Some(args)),
                None => self.expr(owner),
            },
            Node::Name(name) if self.moves.iter().any(|m| m.name == *name) => {
                self.tool_use((String::new(), name.clone()), callee.pos, Some(args));
            }
            _ => self.expr(callee),
        }
        for arg in args {
            let (Arg::Plain(value) | Arg::Named(_, value) | Arg::Star(value) | Arg::DoubleStar(value)) = arg;
            self.expr(value);
        }
    }

    /// The server and tool that `owner.name` means, where it means one.
    fn tool(&self, owner: &Expr, name: &str) -> Option<(String, String)> {
        let Node::Name(server) = &owner.node else { return None };
        let of_server = |tool: &&Signature| tool.server == *server;
        if server.is_empty() || !self.tools.iter().any(|tool| of_server(&tool)) {
            return None;
        }
        let exists = self.tools.iter().filter(of_server).any(|tool| tool.name == *name);
        let shadowed = self.set.contains(server) || self.locals.iter().any(|names| names.contains(server));
        let is_method =
            || ["str", "list", "tuple", "dict", "set", "json", "float"].iter().any(|t| methods::has(t, name));
        (if shadowed { exists && !is_method() } else { true }).then(|| (server.clone(), name.to_owned()))
    }

    fn tool_use(&mut self, (server, name): (String, String), pos: Pos, args: Option<&[Arg]>) {
        let all = if server.is_empty() { self.moves } else { self.tools };
        let signature = all.iter().find(|tool| tool.server == server && tool.name == name);
        let tool = if server.is_empty() { name.clone() } else { format!("{server}.{name}") };
        let mut found = ToolUse {
            tool,
            line: pos.line,
            column: pos.column,
            reached: self.reached,
            known: signature.is_some(),
            called: args.is_some(),
            open: args.is_none(),
            given: Vec::new(),
            missing: Vec::new(),
            wrong: Vec::new(),
            hint: None,
        };
        match (signature, args) {
            (Some(signature), Some(args)) => check(&mut found, signature, args),
            (Some(_), None) => {}
            (None, _) => {
                let of_server = || all.iter().filter(|tool| tool.server == server);
                let near = nearest(&name, of_server().map(|tool| tool.name.as_str()));
                let line = near.and_then(|near| of_server().find(|tool| tool.name == near)).map(Signature::line);
                found.hint = line.map(|line| format!("did you mean {line}?"));
            }
        }
        let list = if server.is_empty() { &mut self.moves_used } else { &mut self.calls };
        if list.len() < MOST_LISTED { list.push(found) } else { self.cut = true }
    }

    fn read(&mut self, name: &str, pos: Pos) {
        let is_local = self.locals.iter().any(|names| names.contains(name));
        let in_function = !self.locals.is_empty() && self.ever.contains(name);
        let is_known = is_local
            || in_function
            || self.set.contains(name)
            || name == "json"
            || Builtin::named(name).is_some()
            || Class::named(name).is_some()
            || self.tools.iter().any(|tool| tool.server == name)
            || self.moves.iter().any(|m| m.name == name);
        if is_known || self.unset.iter().any(|unset| unset.name == name) {
            return;
        }
        if self.unset.len() >= MOST_LISTED {
            self.cut = true;
            return;
        }
        let names = self.set.iter().chain(&self.ever).chain(self.locals.iter().flatten()).map(String::as_str);
        let servers = self.tools.iter().map(|tool| tool.server.as_str()).filter(|server| !server.is_empty());
        let moves = self.moves.iter().map(|m| m.name.as_str());
        let builtins = Builtin::ALL.iter().map(|builtin| builtin.name());
        let others = names.chain(servers).chain(moves).chain(builtins).filter(|other| *other != name);
        let near = nearest(name, others).map(str::to_owned);
        self.unset.push(UnsetName {
            name: name.to_owned(),
            line: pos.line,
            column: pos.column,
            set_later: false,
            near,
        });
    }
}

fn target_names(target: &Expr, names: &mut Vec<String>) {
    match &target.node {
        Node::Name(name) => names.push(name.clone()),
        Node::Tuple(items) | Node::List(items) => items.iter().for_each(|item| target_names(item, names)),
        Node::Star(inner) => target_names(inner, names),
        _ => {}
    }
}

/// The blocks directly inside of a statement, function bodies apart.
fn inner_blocks(stmt: &Stmt) -> Vec<&[Stmt]> {
    match &stmt.node {
        StmtNode::If { arms, other } => {
            arms.iter().map(|(_, body)| body.as_slice()).chain([other.as_slice()]).collect()
        }
        StmtNode::For { body, other, .. } | StmtNode::While { body, other, .. } => vec![body, other],
        StmtNode::Try { body, handlers, other, finally } => {
            let handlers = handlers.iter().map(|handler| handler.body.as_slice());
            [body.as_slice(), other, finally].into_iter().chain(handlers).collect()
        }
        _ => Vec::new(),
    }
}

/// The names that a block sets, as they come.
fn assigned(block: &[Stmt], names: &mut Vec<String>) {
    for stmt in block {
        match &stmt.node {
            StmtNode::Assign { targets, .. } => targets.iter().for_each(|target| target_names(target, names)),
            StmtNode::Augmented { target, .. } | StmtNode::For { target, .. } => target_names(target, names),
            StmtNode::Def { name, body, .. } => {
                names.push(name.clone());
                declared(body, names);
            }
            StmtNode::Try { handlers, .. } => names.extend(handlers.iter().filter_map(|handler| handler.name.clone())),
            _ => {}
        }
        inner_blocks(stmt).into_iter().for_each(|inner| assigned(inner, names));
    }
}

/// The names that a block declares global.
fn declared(block: &[Stmt], names: &mut Vec<String>) {
    for stmt in block {
        if let StmtNode::Global(globals) = &stmt.node {
            names.extend(globals.iter().cloned());
        }
        inner_blocks(stmt).into_iter().for_each(|inner| declared(inner, names));
    }
}
