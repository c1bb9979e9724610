//! The bounds of a program, all on by default, and what of them is used.
//!
//! [`Limits`] may be lowered or raised by a manifest, but never above [`Limits::CEILING`], which keeps recursion in this
//! crate within any thread's stack and a decoded state within reason.

use serde::{Deserialize, Serialize};

/// The bounds under which a program is compiled and run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Instructions of one program; work inside a built-in is counted per element.
    pub fuel: u64,
    /// Bytes of all values, counted before they are allocated.
    pub bytes: u64,
    /// Nesting of expressions and blocks in the source, and of values that are compared, printed or converted.
    pub nesting: u32,
    /// Functions of the program that are active at a time.
    pub frames: u32,
    /// Tool calls and moves of one program.
    pub calls: u32,
    /// Tool calls of one `gather`.
    pub gathered: u32,
    /// Times that one program stops and hands out its state.
    pub suspensions: u32,
    /// Bytes that one program prints.
    pub printed_bytes: u64,
    /// Bytes of the source of one program.
    pub source_bytes: u64,
    /// Instructions that one source may compile to.
    pub instructions: u32,
}

impl Limits {
    /// The most that any `Limits` is taken to mean.
    pub const CEILING: Limits = Limits {
        fuel: 1 << 40,
        bytes: 1 << 32,
        nesting: 120,
        frames: 1_000,
        calls: 100_000,
        gathered: 256,
        suspensions: 100_000,
        printed_bytes: 1 << 26,
        source_bytes: 1 << 22,
        instructions: 1 << 20,
    };

    pub(crate) fn clamped(self) -> Limits {
        self.least(&Limits::CEILING)
    }

    /// The lower of each bound.
    pub(crate) fn least(self, other: &Limits) -> Limits {
        Limits {
            fuel: self.fuel.min(other.fuel),
            bytes: self.bytes.min(other.bytes),
            nesting: self.nesting.min(other.nesting),
            frames: self.frames.min(other.frames),
            calls: self.calls.min(other.calls),
            gathered: self.gathered.min(other.gathered),
            suspensions: self.suspensions.min(other.suspensions),
            printed_bytes: self.printed_bytes.min(other.printed_bytes),
            source_bytes: self.source_bytes.min(other.source_bytes),
            instructions: self.instructions.min(other.instructions),
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            fuel: 5_000_000,
            bytes: 16 << 20,
            nesting: 100,
            frames: 100,
            calls: 100,
            gathered: 16,
            suspensions: 100,
            printed_bytes: 64 << 10,
            source_bytes: 64 << 10,
            instructions: 50_000,
        }
    }
}

/// What the running program has used, `bytes` being those of all live values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Instructions run.
    pub fuel: u64,
    /// Bytes of values held now.
    pub bytes: u64,
    /// Tool calls and moves made.
    pub calls: u32,
    /// Times the program stopped and handed out its state.
    pub suspensions: u32,
    /// Bytes printed.
    pub printed: u64,
    /// Calls that named no tool of a server or did not fit its signature, caught or not.
    pub invalid_calls: u32,
}
