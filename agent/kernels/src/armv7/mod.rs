//! The backend for armv7 with NEON and VFPv4, as Cortex-A7, A15 and A53 in 32 bits have; one without VFPv4 can't convert f16.
//!
//! Only the matmul is its own, in inline assembly, as neither the intrinsics nor `target_feature` are stable for this
//! target. Everything else is scalar.

mod matmul;

static TABLE: crate::Dispatch =
    crate::Dispatch { name: "neon", gemv: matmul::gemv, gemm: matmul::gemm, ..crate::scalar::TABLE };

/// The kernel's list of what the CPU has: pairs of words, key and value (`getauxval(3)`).
const AUXILIARY_VECTOR: &str = "/proc/self/auxv";

/// The key of the CPU's features, and the features that are needed (Linux, `arch/arm/include/uapi/asm/hwcap.h`).
const AT_HWCAP: usize = 16;
const HWCAP_NEON_AND_VFPV4: usize = 1 << 12 | 1 << 16;

/// The table, if the CPU has what it needs; none where the kernel does not say.
pub(crate) fn detect() -> Option<&'static crate::Dispatch> {
    let words = std::fs::read(AUXILIARY_VECTOR).unwrap_or_default();
    let mut pairs = words.as_chunks::<{ size_of::<usize>() }>().0.as_chunks::<2>().0.iter();
    let features = pairs.find_map(|pair| {
        let [key, value] = pair.map(usize::from_ne_bytes);
        (key == AT_HWCAP).then_some(value)
    });
    let needed = |features: usize| features & HWCAP_NEON_AND_VFPV4 == HWCAP_NEON_AND_VFPV4;
    features.is_some_and(needed).then_some(&TABLE)
}
