//! The budgets of a run: each with a default, each counted, each named when it ends the run.

use std::fmt;
use std::time::{Duration, Instant};

/// The limits of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Programs the model may write.
    pub turns: usize,
    /// Tool calls and moves.
    pub calls: usize,
    /// Programs in a row that fail.
    pub errors: usize,
    /// Stages.
    pub stages: usize,
    /// Tokens that the model may generate in all.
    pub tokens: usize,
    /// Tokens of one program.
    pub program_tokens: usize,
    /// Bytes of one observation in the prompt.
    pub observation_bytes: usize,
    /// Wall time.
    pub wall: Duration,
}

impl Default for Budgets {
    fn default() -> Self {
        Budgets {
            turns: 8,
            calls: 40,
            errors: 3,
            stages: 10,
            tokens: 4_096,
            program_tokens: 400,
            observation_bytes: 1_500,
            wall: Duration::from_secs(900),
        }
    }
}

/// What of the budgets is used.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// Programs written.
    pub turns: usize,
    /// Tool calls and moves made.
    pub calls: usize,
    /// Calls that did not fit a signature or named no tool.
    pub invalid_calls: usize,
    /// Stages begun.
    pub stages: usize,
    /// Tokens generated.
    pub tokens: usize,
    /// Prompt tokens of the last turn.
    pub prompt_tokens: usize,
    /// Prompt tokens that were in the KV cache, over all turns.
    pub cached_tokens: usize,
    /// Prompt tokens that were prefilled, over all turns.
    pub prefilled_tokens: usize,
    started: Instant,
}

impl Default for Spent {
    fn default() -> Self {
        Spent {
            turns: 0,
            calls: 0,
            invalid_calls: 0,
            stages: 0,
            tokens: 0,
            prompt_tokens: 0,
            cached_tokens: 0,
            prefilled_tokens: 0,
            started: Instant::now(),
        }
    }
}

impl Spent {
    /// Time since the run began.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The first budget that is used up, if any.
    pub fn exceeded(&self, budgets: &Budgets) -> Option<Exceeded> {
        let seconds = |duration: Duration| usize::try_from(duration.as_secs()).unwrap_or(usize::MAX);
        [
            ("turns", budgets.turns, self.turns),
            ("tool calls", budgets.calls, self.calls),
            ("generated tokens", budgets.tokens, self.tokens),
            ("seconds", seconds(budgets.wall), seconds(self.elapsed())),
        ]
        .into_iter()
        .find(|&(_, limit, used)| used >= limit)
        .map(|(what, limit, used)| Exceeded { what, limit, used })
    }
}

/// A budget that is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exceeded {
    /// Which.
    pub what: &'static str,
    /// How much was allowed.
    pub limit: usize,
    /// How much is used.
    pub used: usize,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the budget of {} is used up: {} of {}", self.what, self.used, self.limit)
    }
}
