//! The gated activation, eight elements at once.

use std::arch::x86_64::*;

use super::exp::exp;
use super::{load, store};

#[target_feature(enable = "avx2,fma,f16c")]
pub(super) fn swiglu(gate: &[f32], up: &[f32], out: &mut [f32]) {
    let ((gates, gate_rest), (ups, up_rest)) = (gate.as_chunks(), up.as_chunks());
    let (outs, out_rest) = out.as_chunks_mut();
    for ((gate, up), out) in gates.iter().zip(ups).zip(outs) {
        store(out, gated(load(gate), load(up)));
    }
    let (mut gate, mut up, mut out) = ([0.0; 8], [0.0; 8], [0.0; 8]);
    gate[..gate_rest.len()].copy_from_slice(gate_rest);
    up[..up_rest.len()].copy_from_slice(up_rest);
    store(&mut out, gated(load(&gate), load(&up)));
    out_rest.copy_from_slice(&out[..out_rest.len()]);
}

#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn gated(gate: __m256, up: __m256) -> __m256 {
    let negative = _mm256_xor_ps(gate, _mm256_set1_ps(-0.0));
    let divisor = _mm256_add_ps(_mm256_set1_ps(1.0), exp(negative));
    _mm256_mul_ps(_mm256_div_ps(gate, divisor), up)
}
