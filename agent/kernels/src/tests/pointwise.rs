//! Norm, rotation and gate against f64.

use super::{noise, pools};
use crate::swiglu::swiglu_by;
use crate::{Dispatch, Pool, rms_norm, rope, rope_table, swiglu};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// `exp` within 2 units in the last place, then an addition, a division and a product. A divisor over `f32::MAX` is
    /// infinite, and the result zero instead of up to `100^2 / f32::MAX`.
    #[test]
    fn every_backend_gates(ffn in 1usize..70, tokens in 1usize..4, seed: u64, scale in 0.1f32..100.0) {
        let gate_up: Vec<f32> = noise(seed, 2 * ffn * tokens).iter().map(|v| v * scale).collect();
        for pool in pools() {
            for by in Dispatch::available() {
                let mut out = vec![f32::NAN; ffn * tokens];
                swiglu_by(by, &pool, &gate_up, ffn, &mut out).unwrap();
                for (out, row) in out.chunks(ffn).zip(gate_up.chunks(2 * ffn)) {
                    for (i, out) in out.iter().enumerate() {
                        let (gate, up) = (f64::from(row[i]), f64::from(row[ffn + i]));
                        let want = gate / (1.0 + (-gate).exp()) * up;
                        let error = (f64::from(*out) - want).abs();
                        prop_assert!(error <= 6.0 * f64::from(f32::EPSILON) * want.abs() + 1e-34, "{}: {out} {want}", by.name());
                    }
                }
            }
        }
    }

    #[test]
    fn norm_is_the_norm(len in 1usize..70, rows in 1usize..4, seed: u64) {
        let (x, weight) = (noise(seed, len * rows), noise(seed ^ 1, len));
        let mut out = x.clone();
        rms_norm(&mut out, &weight, 1e-5).unwrap();
        for (x, out) in x.chunks(len).zip(out.chunks(len)) {
            let mean = x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / len as f64;
            for ((x, w), out) in x.iter().zip(&weight).zip(out) {
                let want = f64::from(*x) * f64::from(*w) / (mean + 1e-5).sqrt();
                let relative = (len as f64 / 8.0 + 16.0) * f64::from(f32::EPSILON);
                prop_assert!((f64::from(*out) - want).abs() <= relative * want.abs() + 1e-35);
            }
        }
    }

    #[test]
    fn rotation_turns_pairs(half_dim in 1usize..65, position in 0usize..300, seed: u64) {
        let head_dim = 2 * half_dim;
        let table = rope_table(head_dim, 10_000.0, position + 1);
        let x = noise(seed, head_dim);
        let mut out = x.clone();
        rope(&mut out, &table[position * head_dim..][..head_dim]).unwrap();
        for i in 0..half_dim {
            let angle = position as f64 * 10_000f64.powf(-2.0 * i as f64 / head_dim as f64);
            let (a, b) = (f64::from(x[i]), f64::from(x[i + half_dim]));
            let (want_a, want_b) = (a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin());
            prop_assert!((f64::from(out[i]) - want_a).abs() < 1e-6 && (f64::from(out[i + half_dim]) - want_b).abs() < 1e-6);
        }
    }
}

#[test]
fn extreme_gates_saturate_alike() {
    let pool = Pool::new(1).unwrap();
    let gates = [0.0, -0.0, 1e-40, 87.0, -87.0, 89.0, -89.0, -104.0, 1e30, -1e30, f32::MAX, f32::NAN, f32::INFINITY];
    let gate_up: Vec<f32> = gates.iter().copied().chain(std::iter::repeat_n(2.0, gates.len())).collect();
    for by in Dispatch::available() {
        let mut out = [f32::NAN; 13];
        swiglu_by(by, &pool, &gate_up, 13, &mut out).unwrap();
        for (gate, out) in gates.into_iter().zip(out) {
            let want = f64::from(gate) / (1.0 + (-f64::from(gate)).exp()) * 2.0;
            let close = (f64::from(out) - want).abs() <= 1e-6 * want.abs() + 1e-35;
            let over = want.abs() > f64::from(f32::MAX) && out.is_infinite();
            assert!(close || over || (want.is_nan() && out.is_nan()), "{} {gate}: {out} {want}", by.name());
        }
    }
}

#[test]
fn wrong_lengths_are_refused() {
    let pool = Pool::new(1).unwrap();
    assert!(rms_norm(&mut [0.0; 9], &[1.0; 4], 1e-5).is_err());
    assert!(rms_norm(&mut [0.0; 9], &[], 1e-5).is_err());
    assert!(rope(&mut [0.0; 9], &[0.0; 9]).is_err());
    assert!(rope(&mut [0.0; 8], &[0.0; 9]).is_err());
    assert!(swiglu(&pool, &[0.0; 9], 4, &mut [0.0; 4]).is_err());
    assert!(swiglu(&pool, &[0.0; 8], 0, &mut [0.0; 4]).is_err());
    swiglu(&pool, &[], 4, &mut []).unwrap();
    assert!(rope_table(8, 1e4, 0).is_empty());
}
