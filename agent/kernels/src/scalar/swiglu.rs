//! The gated activation, one element after the other.

pub(super) fn swiglu(gate: &[f32], up: &[f32], out: &mut [f32]) {
    for ((gate, up), out) in gate.iter().zip(up).zip(out) {
        *out = silu(*gate) * up;
    }
}

/// `x / (1 + exp(-x))`.
fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}
