//! Conversion of slices between f16 bits and f32, with the CPU's own instruction where it has one.

use crate::Error;

/// Converts f16 bits to f32, exactly. Both slices have the same length.
pub fn f16_to_f32(bits: &[u16], out: &mut [f32]) -> Result<(), Error> {
    Error::check_length("f32 output", bits.len(), out.len())?;
    convert::to_f32(bits, out);
    Ok(())
}

/// Converts f32 to f16 bits, rounding to nearest even; what is too large becomes infinite. Both slices have the same length.
pub fn f32_to_f16(values: &[f32], out: &mut [u16]) -> Result<(), Error> {
    Error::check_length("f16 output", values.len(), out.len())?;
    convert::from_f32(values, out);
    Ok(())
}

/// `half` detects the CPU's instruction itself.
#[cfg(not(target_arch = "aarch64"))]
mod convert {
    use half::f16;
    use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

    pub(super) fn to_f32(bits: &[u16], out: &mut [f32]) {
        bits.reinterpret_cast::<f16>().convert_to_f32_slice(out);
    }

    pub(super) fn from_f32(values: &[f32], out: &mut [u16]) {
        out.reinterpret_cast_mut::<f16>().convert_from_f32_slice(values);
    }
}

/// Here `half` would ask for arithmetic in f16, which Cortex-A53 and A72 lack, before it converts by an instruction.
#[cfg(target_arch = "aarch64")]
mod convert {
    use crate::neon::half_floats;

    pub(super) fn to_f32(bits: &[u16], out: &mut [f32]) {
        // SAFETY: NEON is part of this target.
        unsafe { half_floats::to_f32(bits, out) };
    }

    pub(super) fn from_f32(values: &[f32], out: &mut [u16]) {
        // SAFETY: NEON is part of this target.
        unsafe { half_floats::from_f32(values, out) };
    }
}
