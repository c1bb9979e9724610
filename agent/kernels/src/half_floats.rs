//! Conversion of slices between f16 bits and f32, with the CPU's own instruction where it has one.

use crate::Error;
use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

/// Converts f16 bits to f32, exactly. Both slices have the same length.
pub fn f16_to_f32(bits: &[u16], out: &mut [f32]) -> Result<(), Error> {
    Error::check_length("f32 output", bits.len(), out.len())?;
    bits.reinterpret_cast::<f16>().convert_to_f32_slice(out);
    Ok(())
}

/// Converts f32 to f16 bits, rounding to nearest even; what is too large becomes infinite. Both slices have the same length.
pub fn f32_to_f16(values: &[f32], out: &mut [u16]) -> Result<(), Error> {
    Error::check_length("f16 output", values.len(), out.len())?;
    out.reinterpret_cast_mut::<f16>().convert_from_f32_slice(values);
    Ok(())
}
