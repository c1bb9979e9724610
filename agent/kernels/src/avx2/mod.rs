//! The backend for x86-64 with AVX2, FMA and F16C.

pub(crate) fn detect() -> Option<&'static crate::Dispatch> {
    None
}
