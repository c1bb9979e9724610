//! One mutable slice, handed out in parts to the chunks of a parallel run.

use std::marker::PhantomData;
use std::ops::Range;

/// A mutable slice that several threads write, each its own elements.
pub(crate) struct Disjoint<'a, T> {
    start: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: the only access is `part`, whose contract is that no element is in two parts at once.
unsafe impl<T: Send> Sync for Disjoint<'_, T> {}

impl<'a, T> Disjoint<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// The elements of `range`, cut off at the end of the slice.
    ///
    /// # Safety
    /// No element of `range` is in another part that is alive.
    #[expect(clippy::mut_from_ref, reason = "the contract above makes the parts distinct")]
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        let end = range.end.min(self.len);
        let start = range.start.min(end);
        // SAFETY: start <= end <= len; the caller keeps parts distinct, and `self` borrows the slice mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), end - start) }
    }
}
