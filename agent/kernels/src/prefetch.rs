//! Asks the CPU for memory before it is used.

use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Bytes that a CPU fetches at once.
const LINE_BYTES: usize = 64;

/// The bytes from `ahead` bytes behind the start, as many as the slice has, which may lie outside of any object: a prefetch of
/// what is not there does nothing.
#[inline]
pub(crate) fn prefetch(bytes: &[u8], ahead: usize) {
    for line in (0..bytes.len()).step_by(LINE_BYTES) {
        let address = bytes.as_ptr().wrapping_add(ahead + line);
        // SAFETY: a prefetch reads nothing that the program sees, and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
}
