//! A compiled program as text: its instructions with what their operands mean.

use crate::ast::Const;
use crate::code::{Code, Op, Program};
use std::fmt;

/// The longest that a constant is shown, in characters.
const SHOWN: usize = 40;

/// The instructions, function by function: line, place, instruction, what its operand names.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, code) in self.codes.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            writeln!(f, "{}: {} instructions", code.name, code.ops.len())?;
            let mut line = 0;
            for (place, (op, pos)) in code.ops.iter().zip(&code.positions).enumerate() {
                let shown = if pos.line == line { String::new() } else { pos.line.to_string() };
                line = pos.line;
                let text = format!("{op:?}");
                match self.meaning(code, *op) {
                    Some(meaning) => writeln!(f, "{shown:>5}  {place:>4}  {text}  {meaning}")?,
                    None => writeln!(f, "{shown:>5}  {place:>4}  {text}")?,
                }
            }
        }
        Ok(())
    }
}

impl Program {
    fn meaning(&self, code: &Code, op: Op) -> Option<String> {
        let name = |names: &[String], idx: u32| names.get(idx as usize).cloned();
        let attribute = |idx: u32| code.names.get(idx as usize).map(|name| name.to_string());
        match op {
            Op::Const(idx) => code.consts.get(idx as usize).map(constant),
            Op::LoadLocal(slot)
            | Op::StoreLocal(slot)
            | Op::DeleteLocal(slot)
            | Op::LoadGrowing(slot)
            | Op::Grow(slot) => name(&code.locals, slot),
            Op::LoadGlobalGrowing(idx)
            | Op::GrowGlobal(idx)
            | Op::LoadGlobal(idx)
            | Op::StoreGlobal(idx)
            | Op::DeleteGlobal(idx)
            | Op::LoadCallee(idx) => name(&code.globals, idx),
            Op::GetAttr(idx) | Op::SetAttr(idx) | Op::DeleteAttr(idx) => attribute(idx),
            Op::CallMethod { name: idx, .. }
            | Op::CallMethodSpread { name: idx, .. }
            | Op::Defer { name: idx, .. }
            | Op::DeferSpread { name: idx, .. } => attribute(idx),
            Op::MakeFunction { code: idx, .. } => self.codes.get(idx as usize).map(|code| code.name.clone()),
            _ => None,
        }
    }
}

fn constant(value: &Const) -> String {
    match value {
        Const::None => "None".to_owned(),
        Const::Bool(true) => "True".to_owned(),
        Const::Bool(false) => "False".to_owned(),
        Const::Int(n) => n.to_string(),
        Const::Float(n) => crate::display::float(*n),
        Const::Str(text) => {
            let short: String = text.chars().take(SHOWN).collect();
            let rest = if short.len() < text.len() { ".." } else { "" };
            format!("{}{rest}", crate::display::quoted(&short))
        }
    }
}
