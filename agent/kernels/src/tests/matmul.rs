//! Quantization and matmul: integers exact against the scalar backend, floats within the bound of their sums.

use super::{kinds, noise, noise_bytes, pools};
use crate::format::GROUP;
use crate::matmul::matmul_by;
use crate::{Activations, Dispatch, Error, Kind, Matrix, Pool, matmul, matrix_bytes, pack};
use proptest::prelude::*;

fn quantized(by: &Dispatch, pool: &Pool, x: &[f32], cols: usize) -> Activations {
    let mut a = Activations::new();
    a.quantize_by(by, pool, x, cols).unwrap();
    a
}

/// The scales of one token by their bits, all NaN alike.
fn scales(a: &Activations, token: usize) -> Vec<(u32, u32, [i16; 2])> {
    let bits = |v: f32| if v.is_nan() { u32::MAX } else { v.to_bits() };
    a.scales(token).iter().map(|group| (bits(group.scale), bits(group.offset), group.sums)).collect()
}

/// The matmul in f64 from the decoded weights, and the sum of magnitudes that a rounding error is a part of.
fn reference(w: &Matrix<'_>, a: &Activations) -> Vec<(f64, f64)> {
    let mut rows = vec![vec![0.0; w.cols()]; w.rows()];
    for (r, row) in rows.iter_mut().enumerate() {
        w.row_to_f32(r, row).unwrap();
    }
    let mut y = Vec::new();
    for token in 0..a.tokens() {
        for row in &rows {
            let terms = row.iter().zip(a.quants(token)).enumerate().map(|(column, (w, q))| {
                f64::from(*w) * f64::from(*q) * f64::from(a.scales(token)[column / GROUP].scale)
            });
            y.push(terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs())));
        }
    }
    y
}

/// A sum of `n` terms rounds `n` times, each term twice or thrice before; the decoded weights of the reference round
/// twice. With a minimum, the two parts of a term may be larger than the term: 15 steps at most against a minimum of
/// `15 / 2` steps around zero, so that 4 covers it for weights packed around zero.
fn bound(groups: usize, size: f64) -> f64 {
    4.0 * (groups as f64 + 6.0) * f64::from(f32::EPSILON) * size + 1e-30
}

fn check(kind: Kind, rows: usize, groups: usize, tokens: usize, seed: u64, offset: usize) {
    let cols = groups * GROUP;
    let packed = pack(kind, rows, cols, &noise(seed, rows * cols)).unwrap();
    let mut bytes = vec![0; offset];
    bytes.extend(packed);
    let w = Matrix::new(kind, rows, cols, &bytes[offset..]).unwrap();
    let x = noise(seed ^ 1, tokens * cols);
    for pool in pools() {
        let scalar = quantized(&crate::scalar::TABLE, &pool, &x, cols);
        for by in Dispatch::available() {
            let a = quantized(by, &pool, &x, cols);
            for token in 0..tokens {
                assert_eq!(a.quants(token), scalar.quants(token));
                assert_eq!(scales(&a, token), scales(&scalar, token));
            }
            let mut y = vec![f32::NAN; rows * tokens];
            matmul_by(by, &pool, &w, &a, &mut y).unwrap();
            for (i, (y, (want, size))) in y.iter().zip(reference(&w, &a)).enumerate() {
                let error = (f64::from(*y) - want).abs();
                assert!(error <= bound(groups, size), "{} {kind:?} [{i}]: {y} {want}", by.name());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_backend_multiplies(
        kind in kinds(), rows in 1usize..70, groups in 1usize..7, tokens in 1usize..12, seed: u64, offset in 0usize..5,
    ) {
        check(kind, rows, groups, tokens, seed, offset);
    }

    /// One hot weights and activations make the sum one exact integer: every position of the layout is found.
    #[test]
    fn every_position_is_found(kind in kinds(), row in 0usize..24, column in 0usize..96, tokens in 1usize..9) {
        let mut w = vec![0.0; 24 * 96];
        w[row * 96 + column] = if kind == Kind::Q4m { 15.0 } else { -8.0 };
        let bytes = pack(kind, 24, 96, &w).unwrap();
        let matrix = Matrix::new(kind, 24, 96, &bytes).unwrap();
        let mut decoded = [0.0; 96];
        matrix.row_to_f32(row, &mut decoded).unwrap();
        let mut x = vec![0.0; 96 * tokens];
        (0..tokens).for_each(|t| x[t * 96 + column] = 127.0);
        let pool = Pool::new(1).unwrap();
        for by in Dispatch::available() {
            let a = quantized(by, &pool, &x, 96);
            let mut y = vec![0.0; 24 * tokens];
            matmul_by(by, &pool, &matrix, &a, &mut y).unwrap();
            for (i, y) in y.into_iter().enumerate() {
                let want = if i % 24 == row { decoded[column] * 127.0 } else { 0.0 };
                prop_assert!((y - want).abs() <= want.abs() * f32::EPSILON, "{}: {y} {want}", by.name());
            }
        }
    }

    /// The largest integers of both sides: nothing saturates or wraps, even for the quant -128 that no packer writes.
    #[test]
    fn extremes_stay_exact(kind in kinds(), byte in prop_oneof![Just(0u8), Just(0x7f), Just(0x80), Just(0xff)], sign: bool) {
        let mut bytes = vec![byte; matrix_bytes(kind, 8, 64)];
        for group in bytes.chunks_exact_mut(kind.group_bytes()) {
            group[..16].copy_from_slice(&half::f16::ONE.to_le_bytes().repeat(8));
            if kind == Kind::Q4m {
                group[16..32].fill(0);
            }
        }
        let w = Matrix::new(kind, 8, 64, &bytes).unwrap();
        let pool = Pool::new(1).unwrap();
        for tokens in [1, 4, 5] {
            let x = vec![if sign { -127.0 } else { 127.0 }; 64 * tokens];
            for by in Dispatch::available() {
                let a = quantized(by, &pool, &x, 64);
                let mut y = vec![0.0; 8 * tokens];
                matmul_by(by, &pool, &w, &a, &mut y).unwrap();
                for (y, (want, _)) in y.iter().zip(reference(&w, &a)) {
                    prop_assert_eq!(f64::from(*y), want);
                }
            }
        }
    }

    /// Content that no packer writes: infinite and NaN scales and activations give the numbers they give, on all backends
    /// finite in the same places.
    #[test]
    fn hostile_content_is_only_numbers(kind in kinds(), seed: u64, tokens in 1usize..6, poison in 0usize..64) {
        let bytes = noise_bytes(seed, matrix_bytes(kind, 13, 64));
        let w = Matrix::new(kind, 13, 64, &bytes).unwrap();
        let pool = Pool::new(1).unwrap();
        let mut x = noise(seed, tokens * 64);
        x[poison] = [f32::NAN, f32::INFINITY, f32::MIN_POSITIVE, 1e-40][poison % 4];
        let mut outputs = Vec::new();
        for by in Dispatch::available() {
            let a = quantized(by, &pool, &x, 64);
            let scalar = quantized(&crate::scalar::TABLE, &pool, &x, 64);
            prop_assert_eq!(a.quants(0), scalar.quants(0));
            prop_assert_eq!(scales(&a, 0), scales(&scalar, 0));
            let mut y = vec![0.0f32; 13 * tokens];
            matmul_by(by, &pool, &w, &a, &mut y).unwrap();
            outputs.push(y.iter().map(|v| v.is_nan()).collect::<Vec<_>>());
        }
        for output in &outputs {
            prop_assert_eq!(output, &outputs[outputs.len() - 1]);
        }
    }

    #[test]
    fn tiny_and_huge_activations_quantize_alike(exponent in -45i32..39, seed: u64) {
        let pool = Pool::new(1).unwrap();
        let x: Vec<f32> = noise(seed, 96).iter().map(|v| v * 10f32.powi(exponent)).collect();
        let scalar = quantized(&crate::scalar::TABLE, &pool, &x, 96);
        for by in Dispatch::available() {
            let a = quantized(by, &pool, &x, 96);
            prop_assert_eq!(a.quants(0), scalar.quants(0));
            prop_assert_eq!(scales(&a, 0), scales(&scalar, 0));
        }
    }
}

#[test]
fn edges_of_the_blocking() {
    for kind in [Kind::Q4, Kind::Q4m, Kind::Q8] {
        for rows in [1, 7, 8, 9, 15, 16, 17] {
            for tokens in [1, 2, 3, 4, 5, 7, 8, 9, 16, 17] {
                check(kind, rows, 2, tokens, 7, 1);
            }
        }
    }
    check(Kind::Q4m, 576, 18, 1, 3, 0);
    check(Kind::Q4, 1000, 3, 1, 3, 0);
    check(Kind::Q8, 300, 80, 5, 3, 0);
    check(Kind::Q4, 17, 65, 4, 3, 0);
    check(Kind::Q4m, 20, 33, 131, 3, 3);
    check(Kind::Q4, 41, 45, 257, 3, 0);
    check(Kind::Q8, 33, 21, 259, 3, 0);
}

#[test]
fn many_tokens_are_many_single_ones() {
    let pool = Pool::new(2).unwrap();
    let (rows, cols) = (40, 40 * 32);
    for (tokens, kind) in
        [2, 3, 4, 6, 11, 18, 40].into_iter().flat_map(|n| [Kind::Q4, Kind::Q4m, Kind::Q8].map(|k| (n, k)))
    {
        let x = noise(5, tokens * cols);
        let bytes = pack(kind, rows, cols, &noise(4, rows * cols)).unwrap();
        let w = Matrix::new(kind, rows, cols, &bytes).unwrap();
        for by in Dispatch::available() {
            let mut all = vec![0.0; rows * tokens];
            matmul_by(by, &pool, &w, &quantized(by, &pool, &x, cols), &mut all).unwrap();
            for (x, all) in x.chunks(cols).zip(all.chunks(rows)) {
                let mut one = vec![0.0; rows];
                let a = quantized(by, &pool, x, cols);
                matmul_by(by, &pool, &w, &a, &mut one).unwrap();
                assert_eq!(all, one, "{}", by.name());
            }
        }
    }
}

#[test]
fn empty_and_mismatched_are_told_apart() -> Result<(), Error> {
    let pool = Pool::new(1)?;
    let bytes = pack(Kind::Q4, 8, 32, &[0.5; 256])?;
    let w = Matrix::new(Kind::Q4, 8, 32, &bytes)?;
    let mut a = Activations::new();
    matmul(&pool, &w, &a, &mut [])?;
    a.quantize(&pool, &[], 64)?;
    assert_eq!((a.tokens(), a.cols()), (0, 64));
    matmul(&pool, &w, &a, &mut [])?;
    assert!(a.quantize(&pool, &[0.0; 33], 32).is_err());
    assert!(a.quantize(&pool, &[0.0; 33], 33).is_err());
    assert!(a.quantize(&pool, &[], 0).is_err());
    a.quantize(&pool, &[0.0; 64], 64)?;
    let message = matmul(&pool, &w, &a, &mut [0.0; 8]).map_err(|error| error.to_string());
    assert_eq!(message, Err("wrong length of activation columns, expected 32: 64".to_owned()));
    a.quantize(&pool, &[0.0; 64], 32)?;
    assert!(matmul(&pool, &w, &a, &mut [0.0; 15]).is_err());
    matmul(&pool, &Matrix::new(Kind::Q8, 0, 32, &[])?, &a, &mut [])
}
