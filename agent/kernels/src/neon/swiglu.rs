//! The gated activation, eight elements at once.

use std::arch::aarch64::*;

use super::exp::exp;
use super::{load, store};

#[target_feature(enable = "neon")]
pub(super) fn swiglu(gate: &[f32], up: &[f32], out: &mut [f32]) {
    let ((gates, gate_rest), (ups, up_rest)) = (gate.as_chunks(), up.as_chunks());
    let (outs, out_rest) = out.as_chunks_mut();
    for ((gate, up), out) in gates.iter().zip(ups).zip(outs) {
        gated(gate, up, out);
    }
    let (mut gate, mut up, mut out) = ([0.0; 8], [0.0; 8], [0.0; 8]);
    gate[..gate_rest.len()].copy_from_slice(gate_rest);
    up[..up_rest.len()].copy_from_slice(up_rest);
    gated(&gate, &up, &mut out);
    out_rest.copy_from_slice(&out[..out_rest.len()]);
}

#[inline]
#[target_feature(enable = "neon")]
fn gated(gate: &[f32; 8], up: &[f32; 8], out: &mut [f32; 8]) {
    let ([a, b], [up_a, up_b]) = (load(gate), load(up));
    store(out, [vmulq_f32(silu(a), up_a), vmulq_f32(silu(b), up_b)]);
}

/// `x / (1 + exp(-x))`.
#[inline]
#[target_feature(enable = "neon")]
fn silu(x: float32x4_t) -> float32x4_t {
    vdivq_f32(x, vaddq_f32(vdupq_n_f32(1.0), exp(vnegq_f32(x))))
}
