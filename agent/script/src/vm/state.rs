//! The state as bytes and back.
//!
//! A state opens with a magic and a version; another version is refused. Decoded bytes are not trusted: sizes are
//! recounted, limits clamped, and every operand is checked when it is used, so that hostile bytes end in an error.

use super::{Frame, MOST_CODES, MOST_GLOBALS, MOST_STACK, Vm, Waiting};
use crate::error::{Error, Kind};
use crate::limits::Limits;

const MAGIC: &[u8; 4] = b"mote";
const VERSION: u8 = 3;

impl Vm {
    /// The whole state, fit for [`Vm::decode`].
    pub fn encode(&self) -> Vec<u8> {
        let mut head = MAGIC.to_vec();
        head.push(VERSION);
        postcard::to_extend(self, head).unwrap_or_default()
    }

    /// Lowers the limits to those given, where they are lower. A state carries the limits it was made under: whoever
    /// decodes one that a stranger may have touched calls this.
    pub fn restrict(&mut self, limits: &Limits) {
        self.limits = self.limits.least(limits);
        self.heap.restrict(&self.limits);
    }

    /// The machine that [`Vm::encode`] wrote.
    ///
    /// # Errors
    /// Kind `State` for bytes that are no state, of another version, or not consistent.
    pub fn decode(bytes: &[u8]) -> Result<Vm, Error> {
        let refuse = |message: &str| Error::new(Kind::State, message);
        let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| refuse("bytes are no state of a program"))?;
        let rest = match rest.split_first() {
            Some((&VERSION, rest)) => rest,
            Some((version, _)) => return Err(refuse(&format!("unknown version of a state: {version}"))),
            None => return Err(refuse("state is cut short")),
        };
        let (mut vm, left): (Vm, &[u8]) = postcard::take_from_bytes(rest).map_err(|_| refuse("state is corrupt"))?;
        if !left.is_empty() {
            return Err(refuse("state is followed by other bytes"));
        }
        vm.limits = vm.limits.clamped();
        let consistent = vm.codes.len() <= MOST_CODES
            && vm.globals.len() <= MOST_GLOBALS
            && vm.stack.len() <= MOST_STACK
            && vm.frames.len() <= vm.limits.frames as usize
            && vm.frames.iter().all(|frame| match frame {
                Frame::Code { base, .. } => *base as usize <= vm.stack.len(),
                Frame::Each(_) => true,
            })
            && vm.usage.printed <= vm.limits.printed_bytes
            && vm.printed.len() as u64 <= vm.usage.printed
            && vm.heap.limit == vm.limits.bytes
            && vm.heap.fuel_limit == vm.limits.fuel
            && vm.heap.nesting == vm.limits.nesting
            && (vm.waiting == Waiting::Nothing) == vm.frames.is_empty();
        let base = vm.codes.iter().flatten().map(super::Loaded::bytes).sum();
        if !consistent || vm.heap.restore(base).is_err() {
            return Err(refuse("state is corrupt"));
        }
        Ok(vm)
    }
}
