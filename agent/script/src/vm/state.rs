//! The state as bytes and back.
//!
//! A state opens with a magic and a version; another version is refused. Behind the machine stand the capacities of what
//! grows, because what is charged follows from them. Decoded bytes are not trusted: sizes are recounted, limits clamped, and
//! every operand is checked when it is used, so that hostile bytes end in an error.

use super::{Frame, Global, Loaded, MOST_CODES, MOST_GLOBALS, MOST_STACK, Vm, Waiting};
use crate::error::{Error, Kind};
use crate::heap::{Outcome, RESERVE_BYTES, Rooms, bytes_of, chunked};
use crate::limits::Limits;
use crate::value::Value;

const MAGIC: &[u8; 4] = b"mote";
const VERSION: u8 = 3;

impl Vm {
    /// The whole state, fit for [`Vm::decode`].
    pub fn encode(&self) -> Vec<u8> {
        let mut head = MAGIC.to_vec();
        head.push(VERSION);
        let rooms = self.heap.rooms(self.stack.capacity(), self.frames.capacity(), self.printed.capacity());
        postcard::to_extend(&(self, rooms), head).unwrap_or_default()
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
        let ((mut vm, rooms), left): ((Vm, Rooms), &[u8]) =
            postcard::take_from_bytes(rest).map_err(|_| refuse("state is corrupt"))?;
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
        if !consistent || vm.restore(&rooms, bytes.len()).is_err() {
            return Err(refuse("state is corrupt"));
        }
        Ok(vm)
    }

    /// Takes the capacities that the machine had again, and checks that they are what is charged.
    fn restore(&mut self, rooms: &Rooms, n_bytes: usize) -> Outcome<()> {
        let spare = [
            bytes_of::<Value>(rooms.stack as usize),
            bytes_of::<Frame>(rooms.frames as usize),
            u64::from(rooms.printed),
        ];
        Rooms::check(spare.into_iter().fold(0, u64::saturating_add), n_bytes)?;
        restore_room(&mut self.stack, rooms.stack as usize);
        restore_room(&mut self.frames, rooms.frames as usize);
        self.printed.shrink_to_fit();
        self.printed.reserve_exact((rooms.printed as usize).saturating_sub(self.printed.len()));
        let (n_codes, n_globals) = (chunked(self.codes.len()), chunked(self.globals.len()));
        restore_room(&mut self.codes, n_codes);
        restore_room(&mut self.globals, n_globals);
        for loaded in self.codes.iter_mut().flatten() {
            loaded.code.trim();
            loaded.consts.shrink_to_fit();
            loaded.slots.shrink_to_fit();
        }
        let own = [
            bytes_of::<Value>(self.stack.capacity()),
            bytes_of::<Frame>(self.frames.capacity()),
            self.printed.capacity() as u64,
            bytes_of::<Option<Loaded>>(self.codes.capacity()),
            bytes_of::<Global>(self.globals.capacity()),
        ];
        let names = self.globals.iter().map(|global| global.name.len() as u64);
        let codes = self.codes.iter().flatten().map(Loaded::bytes);
        let base = own.into_iter().chain(names).chain(codes).fold(RESERVE_BYTES, u64::saturating_add);
        self.heap.restore(rooms, n_bytes, base)
    }
}

fn restore_room<T>(items: &mut Vec<T>, room: usize) {
    items.shrink_to_fit();
    items.reserve_exact(room.saturating_sub(items.len()));
}
