//! Asks the CPU for memory before it is used. On others than x86-64 it does nothing: whether it helps there is not measured.

/// What lies `ahead` bytes behind the start of the slice, as many bytes as that has. This may be outside of any object: a
/// prefetch of what is not there does nothing.
#[inline]
#[cfg(target_arch = "x86_64")]
pub(crate) fn prefetch<T>(slice: &[T], ahead: usize) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    /// Bytes that a CPU fetches at once.
    const LINE_BYTES: usize = 64;
    for line in (0..size_of_val(slice)).step_by(LINE_BYTES) {
        let address = slice.as_ptr().cast::<u8>().wrapping_add(ahead + line);
        // SAFETY: a prefetch reads nothing that the program sees, and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
}

#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn prefetch<T>(_slice: &[T], _ahead: usize) {}
