//! What is charged, and how what grows grows.
//!
//! Two sums make up what a program takes: `used`, the capacity of all that outlives an instruction, and `scratch`, that of
//! what an instruction works on before its result is stored. Room is charged before it is taken, by its capacity and not its
//! length; while something moves to a larger place, both places are charged. `scratch` only grows until the instruction ends,
//! or what it counts is stored, so that it never lacks behind what is held. What is small by design, such as the text of an
//! error, is charged once and for all with [`RESERVE_BYTES`].

use super::{Heap, Outcome, Trap};
use crate::error::Error;
use crate::value::Value;

/// Charged for each machine: error texts, and what formats of numbers and calls of few arguments work on.
pub(crate) const RESERVE_BYTES: u64 = 8 << 10;

impl Heap {
    /// Charges work: one instruction, or one element handled inside a built-in.
    #[inline]
    pub(crate) fn work(&self, n: u64) -> Outcome<()> {
        let fuel = self.fuel.get().saturating_add(n);
        if fuel > self.fuel_limit {
            return Err(self.out_of_fuel(fuel));
        }
        self.fuel.set(fuel);
        Ok(())
    }

    #[cold]
    fn out_of_fuel(&self, fuel: u64) -> Trap {
        self.fuel.set(self.fuel_limit);
        let error = Error::over("fuel", self.fuel_limit, fuel).with_hint("loop over fewer items");
        Trap::Fatal(Box::new(error))
    }

    fn with(&self, bytes: u64) -> u64 {
        self.used.saturating_add(self.scratch.get()).saturating_add(bytes)
    }

    /// Whether so much fits beside all that is held.
    pub(crate) fn fits(&self, bytes: u64) -> bool {
        self.with(bytes) <= self.limit
    }

    /// Refuses what would not fit beside all that is held; charges nothing.
    pub(crate) fn would_fit(&self, bytes: u64) -> Outcome<()> {
        let used = self.with(bytes);
        if used > self.limit {
            let error = Error::over("memory", self.limit, used).with_hint("keep fewer or smaller values");
            return Err(Trap::Fatal(Box::new(error)));
        }
        Ok(())
    }

    pub(crate) fn charge(&mut self, bytes: u64) -> Outcome<()> {
        self.would_fit(bytes)?;
        self.used = self.used.saturating_add(bytes);
        Ok(())
    }

    pub(crate) fn discharge(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
    }

    /// Charges what lives no longer than the instruction.
    pub(crate) fn scratch(&self, bytes: u64) -> Outcome<()> {
        self.would_fit(bytes)?;
        self.scratch.set(self.scratch.get().saturating_add(bytes));
        Ok(())
    }

    /// Takes back what [`Heap::scratch`] charged for something that is gone.
    pub(crate) fn release(&self, bytes: u64) {
        self.scratch.set(self.scratch.get().saturating_sub(bytes));
    }

    /// An instruction has ended, and with it all it worked on.
    #[inline]
    pub(crate) fn settle(&self) {
        self.scratch.set(0);
    }

    /// The capacity that holds `n` more, if that is another one: half as much again where that fits, else just enough, for
    /// which the copying is charged as work. The old capacity stays charged meanwhile.
    fn larger<T>(&self, len: usize, capacity: usize, n: usize) -> Outcome<Option<usize>> {
        const LEAST: usize = 4;
        let need = len.saturating_add(n);
        if need <= capacity {
            return Ok(None);
        }
        let generous = need.max(capacity.saturating_add(capacity / 2)).max(LEAST);
        if self.fits(bytes_of::<T>(generous)) {
            return Ok(Some(generous));
        }
        self.work(len as u64 / 8)?;
        self.would_fit(bytes_of::<T>(need))?;
        Ok(Some(need))
    }

    /// A vector under construction with room for `n`.
    pub(crate) fn vec<T>(&self, n: usize) -> Outcome<Vec<T>> {
        self.scratch(bytes_of::<T>(n))?;
        Ok(Vec::with_capacity(n))
    }

    /// A vector under construction that holds what `items` does.
    pub(crate) fn copied(&self, items: &[Value]) -> Outcome<Vec<Value>> {
        let mut out = self.vec(items.len())?;
        out.extend_from_slice(items);
        Ok(out)
    }

    /// Adds a value to a vector under construction.
    pub(crate) fn grow<T>(&self, items: &mut Vec<T>, value: T) -> Outcome<()> {
        self.work(1)?;
        if let Some(capacity) = self.larger::<T>(items.len(), items.capacity(), 1)? {
            self.scratch(bytes_of::<T>(capacity))?;
            let before = bytes_of::<T>(items.capacity());
            items.reserve_exact(capacity.saturating_sub(items.len()));
            self.release(before);
        }
        items.push(value);
        Ok(())
    }

    /// Makes room for `n` more bytes in a text under construction.
    pub(crate) fn room_in_text(&self, text: &mut String, n: usize) -> Outcome<()> {
        if let Some(capacity) = self.larger::<u8>(text.len(), text.capacity(), n)? {
            self.scratch(capacity as u64)?;
            let before = text.capacity() as u64;
            text.reserve_exact(capacity.saturating_sub(text.len()));
            self.release(before);
        }
        Ok(())
    }

    /// Adds to a text under construction.
    pub(crate) fn write(&self, text: &mut String, piece: &str) -> Outcome<()> {
        self.work(piece.len() as u64 / 64)?;
        self.room_in_text(text, piece.len())?;
        text.push_str(piece);
        Ok(())
    }

    /// A copy of a text, under construction.
    pub(crate) fn copied_text(&self, text: &str) -> Outcome<String> {
        self.work(text.len() as u64 / 64)?;
        self.scratch(text.len() as u64)?;
        Ok(text.to_owned())
    }

    /// Makes room for `n` more in a vector that outlives the instruction.
    #[inline]
    pub(crate) fn kept_room<T>(&mut self, items: &mut Vec<T>, n: usize) -> Outcome<()> {
        if items.capacity().saturating_sub(items.len()) >= n {
            return Ok(());
        }
        if let Some(capacity) = self.larger::<T>(items.len(), items.capacity(), n)? {
            let before = items.capacity();
            items.reserve_exact(capacity.saturating_sub(items.len()));
            self.settle_change::<T>(before, items.capacity());
        }
        Ok(())
    }

    /// As [`Heap::kept_room`] for what only grows, where the capacity follows from the length: [`chunked`].
    pub(crate) fn kept_chunk<T>(&mut self, items: &mut Vec<T>, n: usize) -> Outcome<()> {
        let capacity = chunked(items.len().saturating_add(n));
        if items.capacity() < capacity {
            self.would_fit(bytes_of::<T>(capacity))?;
            let before = items.capacity();
            items.reserve_exact(capacity.saturating_sub(items.len()));
            self.settle_change::<T>(before, items.capacity());
        }
        Ok(())
    }

    /// As [`Heap::kept_room`], for a text.
    pub(crate) fn kept_text_room(&mut self, text: &mut String, n: usize) -> Outcome<()> {
        if let Some(capacity) = self.larger::<u8>(text.len(), text.capacity(), n)? {
            let before = text.capacity();
            text.reserve_exact(capacity.saturating_sub(text.len()));
            self.settle_change::<u8>(before, text.capacity());
        }
        Ok(())
    }

    /// Gives room back that a vector has not used for long, where the smaller place fits beside it.
    pub(crate) fn kept_shrink<T>(&mut self, items: &mut Vec<T>) {
        let wanted = items.len().saturating_mul(2);
        let before = items.capacity();
        if before > wanted.saturating_mul(2).saturating_add(16) && self.fits(bytes_of::<T>(wanted)) {
            items.shrink_to(wanted);
            self.settle_change::<T>(before, items.capacity());
        }
    }

    fn settle_change<T>(&mut self, before: usize, after: usize) {
        self.discharge(bytes_of::<T>(before));
        self.used = self.used.saturating_add(bytes_of::<T>(after));
    }
}

/// The capacity of a vector of `n` that [`Heap::kept_chunk`] gives room.
pub(crate) fn chunked(n: usize) -> usize {
    const CHUNK: usize = 8;
    n.div_ceil(CHUNK).saturating_mul(CHUNK)
}

/// What so many take.
pub(crate) fn bytes_of<T>(n: usize) -> u64 {
    (n as u64).saturating_mul(size_of::<T>() as u64)
}
