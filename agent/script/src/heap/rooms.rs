//! The capacities that a stored state keeps, because what is charged follows from them: a machine that was stored goes on
//! exactly as one that was not.
//!
//! They come from bytes that are not trusted: their sum is held against what is charged and against the length of the state
//! before any is taken.

use super::{Heap, Object, Outcome, SLOT_BYTES, bytes_of, corrupt};
use crate::table::{self, Table};
use crate::value::Value;
use serde::{Deserialize, Serialize};

/// Spare bytes that a state may ask for beside what its length allows.
const SPARE_BYTES: u64 = 4 << 20;
/// Spare bytes that each byte of a state may ask for.
const SPARE_TIMES: u64 = 128;

/// Capacities that are not those of a vector just long enough.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rooms {
    arena: u32,
    objects: Vec<(u32, u32)>,
    pub(crate) stack: u32,
    pub(crate) frames: u32,
    pub(crate) printed: u32,
}

impl Rooms {
    /// Refuses more spare room than a state of `n_bytes` can have come by.
    pub(crate) fn check(spare: u64, n_bytes: usize) -> Outcome<()> {
        let most = (n_bytes as u64).saturating_mul(SPARE_TIMES).saturating_add(SPARE_BYTES);
        if spare > most { Err(corrupt()) } else { Ok(()) }
    }
}

impl Object {
    /// The capacity of what grows, and the least that holds what is there.
    fn room(&self) -> Option<(usize, usize)> {
        match self {
            Object::Str(text) => Some((text.text.capacity(), text.text.len())),
            Object::List(items) => Some((items.capacity(), items.len())),
            Object::Dict(table) | Object::Set(table) => Some((table.room(), 0)),
            _ => None,
        }
    }
}

impl Heap {
    /// The capacities beside which a state is stored.
    pub(crate) fn rooms(&self, stack: usize, frames: usize, printed: usize) -> Rooms {
        let rooms = self.objects.iter().enumerate().filter_map(|(idx, object)| {
            let (room, least) = object.as_ref()?.room()?;
            (room != least).then_some((idx as u32, room as u32))
        });
        Rooms {
            arena: self.objects.capacity() as u32,
            objects: rooms.collect(),
            stack: stack as u32,
            frames: frames as u32,
            printed: printed as u32,
        }
    }

    /// Takes the capacities of a state of `n_bytes` again, recounts, and rebuilds what is not stored. `base` is what is
    /// charged for other things.
    pub(crate) fn restore(&mut self, rooms: &Rooms, n_bytes: usize, base: u64) -> Outcome<()> {
        let mut spare = u64::from(rooms.arena).saturating_mul(SLOT_BYTES);
        for (idx, room) in &rooms.objects {
            let object = self.objects.get(*idx as usize).and_then(Option::as_ref).ok_or_else(corrupt)?;
            spare = spare.saturating_add(match object {
                Object::Str(_) => u64::from(*room),
                Object::List(_) => bytes_of::<Value>(*room as usize),
                Object::Dict(_) | Object::Set(_) if *room as usize == Table::room_for(*room as usize) => {
                    table::bytes_of_room(*room as usize)
                }
                _ => return Err(corrupt()),
            });
        }
        Rooms::check(spare, n_bytes)?;
        self.objects.shrink_to_fit();
        self.objects.reserve_exact((rooms.arena as usize).saturating_sub(self.objects.len()));
        self.objects.iter_mut().flatten().for_each(Object::trim);
        for (idx, room) in &rooms.objects {
            let room = *room as usize;
            match self.objects.get_mut(*idx as usize).and_then(Option::as_mut) {
                Some(Object::Str(text)) => text.text.reserve_exact(room.saturating_sub(text.text.len())),
                Some(Object::List(items)) => items.reserve_exact(room.saturating_sub(items.len())),
                Some(Object::Dict(table) | Object::Set(table)) => table.restore_room(room),
                _ => return Err(corrupt()),
            }
        }
        self.recount(base)
    }

    fn recount(&mut self, base: u64) -> Outcome<()> {
        let objects = self.objects.iter().flatten();
        let slots = super::slots_bytes(self.objects.capacity());
        let sum = objects.fold(slots, |sum, object| sum.saturating_add(object.bytes()));
        let miscounted = self.objects.iter().flatten().any(|object| match object {
            Object::Str(text) => text.n_chars != text.text.chars().count() as u64,
            Object::Range { step, .. } => *step == 0,
            _ => false,
        });
        if miscounted || self.used != sum.saturating_add(base) {
            return Err(corrupt());
        }
        self.n_free = self.objects.iter().filter(|slot| slot.is_none()).count() as u32;
        let free = self.objects.iter().position(Option::is_none).unwrap_or(self.objects.len());
        self.lowest_free = self.lowest_free.min(free as u32);
        Ok(())
    }
}
