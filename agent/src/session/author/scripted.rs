//! A scripted model: programs from a file, one a turn, in place of generation.

use std::collections::VecDeque;
use std::ops::ControlFlow;

use super::{Author, Progress, Request, Written};
use crate::context::Piece;
use crate::error::{Error, ErrorKind, Result};

/// The line that stands between two programs.
const SEPARATOR: &str = "---";

/// Gives the programs of a script in order.
#[derive(Clone, Debug)]
pub struct ScriptedAuthor {
    programs: VecDeque<String>,
}

impl ScriptedAuthor {
    /// Reads programs separated by a line `---`.
    pub fn parse(script: &str) -> ScriptedAuthor {
        let mut programs = VecDeque::from([String::new()]);
        for line in script.lines() {
            if line.trim_end() == SEPARATOR {
                programs.push_back(String::new());
            } else if let Some(program) = programs.back_mut() {
                program.push_str(line);
                program.push('\n');
            }
        }
        programs.retain(|program| !program.trim().is_empty());
        ScriptedAuthor { programs }
    }
}

impl Author for ScriptedAuthor {
    fn encode(&self, _: &[Piece]) -> Result<Option<Vec<u32>>> {
        Ok(None)
    }

    fn window(&self) -> Option<usize> {
        None
    }

    fn write(&mut self, _: Request<'_>, progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>) -> Result<Written> {
        let program = self.programs.pop_front().ok_or_else(|| {
            Error::new(ErrorKind::Failed, "the script has no program left for this turn")
                .with_hint("end the last program with answer(..), or add one after a line ---")
        })?;
        match progress(Progress::Token(&program)) {
            ControlFlow::Continue(()) => Ok(Written { program, decoded: None }),
            ControlFlow::Break(()) => Err(Error::new(ErrorKind::Cancelled, "cancelled")),
        }
    }
}
