//! Adapters against f64, and selected rows against all rows, bit for bit.

use super::{kinds, noise, pools};
use crate::matmul::{matmul_by, matmul_rows_by};
use crate::{Activations, Adapter, Dispatch, Error, Kind, MAX_RANK, Matrix, Pool, f32_to_f16, matmul, pack};
use proptest::prelude::*;

fn halves(seed: u64, len: usize) -> Vec<u8> {
    let mut bits = vec![0; len];
    f32_to_f16(&noise(seed, len), &mut bits).unwrap();
    bits.into_iter().flat_map(u16::to_le_bytes).collect()
}

fn float(halves: &[u8], index: usize) -> f64 {
    half::f16::from_le_bytes([halves[2 * index], halves[2 * index + 1]]).to_f64()
}

/// The second product of every row and token in f64, and the sum of magnitudes that its rounding is a part of.
fn reference(x: &[f32], [rows, cols, rank]: [usize; 3], a: &[u8], b: &[u8], scale: f32) -> Vec<(f64, f64)> {
    let mut out = Vec::new();
    for x in x.chunks(cols) {
        let project = |r: usize| {
            let terms = x.iter().enumerate().map(|(c, x)| f64::from(*x) * float(a, r * cols + c));
            terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()))
        };
        let projected: Vec<(f64, f64)> = (0..rank).map(project).collect();
        out.extend((0..rows).map(|row| {
            let terms = projected.iter().enumerate().map(|(r, (sum, size))| {
                let factor = f64::from(scale) * float(b, row * rank + r);
                (factor * sum, factor.abs() * size)
            });
            terms.fold((0.0, 0.0), |(sum, size), term| (sum + term.0, size + term.1))
        }));
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// The two products round once an element each, the sum with the matmul once more.
    #[test]
    fn every_backend_adds_its_adapter(
        kind in kinds(), rows in 1usize..70, groups in 1usize..4, rank in 1usize..MAX_RANK + 1, tokens in 1usize..6,
        seed: u64,
    ) {
        let cols = 32 * groups;
        let bytes = pack(kind, rows, cols, &noise(seed, rows * cols)).unwrap();
        let (a, b) = (halves(seed ^ 1, rank * cols), halves(seed ^ 2, rows * rank));
        let plain = Matrix::new(kind, rows, cols, &bytes).unwrap();
        let adapted = plain.with_adapter(Adapter::new(rank, [rows, cols], &a, &b, 0.7).unwrap()).unwrap();
        let x = noise(seed ^ 3, tokens * cols);
        let want = reference(&x, [rows, cols, rank], &a, &b, 0.7);
        for pool in pools() {
            for by in Dispatch::available() {
                let mut activations = Activations::new();
                activations.quantize_for_by(by, &pool, &x, &adapted).unwrap();
                let (mut without, mut with) = (vec![f32::NAN; rows * tokens], vec![f32::NAN; rows * tokens]);
                matmul_by(by, &pool, &plain, &activations, &mut without).unwrap();
                matmul_by(by, &pool, &adapted, &activations, &mut with).unwrap();
                for ((without, with), (want, size)) in without.iter().zip(&with).zip(&want) {
                    let error = (f64::from(*with) - f64::from(*without) - want).abs();
                    let bound = f64::from(f32::EPSILON) * ((cols + rank) as f64 * size + f64::from(with.abs() + without.abs()));
                    prop_assert!(error <= bound, "{}: {without} {with} {want}", by.name());
                }
            }
        }
    }

    #[test]
    fn selected_rows_are_those_of_all(
        kind in kinds(), rows in 1u32..200, groups in 1usize..4, adapted: bool, seed: u64,
        chosen in prop::collection::vec(0u32..200, 0..40), sorted: bool,
    ) {
        let (n_rows, cols) = (rows as usize, 32 * groups);
        let mut chosen: Vec<u32> = chosen.into_iter().map(|row| row % rows).collect();
        if sorted {
            chosen.sort_unstable();
        }
        let bytes = pack(kind, n_rows, cols, &noise(seed, n_rows * cols)).unwrap();
        let (a, b) = (halves(seed ^ 1, 5 * cols), halves(seed ^ 2, n_rows * 5));
        let mut w = Matrix::new(kind, n_rows, cols, &bytes).unwrap();
        if adapted {
            w = w.with_adapter(Adapter::new(5, [n_rows, cols], &a, &b, 2.0).unwrap()).unwrap();
        }
        for pool in pools() {
            for by in Dispatch::available() {
                let mut activations = Activations::new();
                activations.quantize_for_by(by, &pool, &noise(seed ^ 3, cols), &w).unwrap();
                let (mut all, mut some) = (vec![f32::NAN; n_rows], vec![f32::NAN; chosen.len()]);
                matmul_by(by, &pool, &w, &activations, &mut all).unwrap();
                matmul_rows_by(by, &pool, &w, &activations, &chosen, &mut some).unwrap();
                for (row, some) in chosen.iter().zip(&some) {
                    prop_assert_eq!(some.to_bits(), all[*row as usize].to_bits(), "{} {}", by.name(), row);
                }
            }
        }
    }
}

#[test]
fn wrong_shapes_are_refused() -> Result<(), Error> {
    let bytes = pack(Kind::Q4, 8, 32, &[0.5; 256])?;
    let w = Matrix::new(Kind::Q4, 8, 32, &bytes)?;
    let (a, b) = (halves(1, 32 * 4), halves(2, 8 * 4));
    let refused = |adapter: Result<Adapter<'_>, Error>| adapter.unwrap_err().to_string();
    assert_eq!(refused(Adapter::new(0, [8, 32], &[], &[], 1.0)), "adapter rank must be a positive multiple of 1: 0");
    assert_eq!(refused(Adapter::new(65, [8, 32], &a, &b, 1.0)), "adapter rank is over its limit of 64: 65");
    assert_eq!(
        refused(Adapter::new(4, [8, 32], &a[1..], &b, 1.0)),
        "wrong length of bytes of adapter a, expected 256: 255"
    );
    assert_eq!(
        refused(Adapter::new(4, [usize::MAX, 32], &a, &b, 1.0)),
        format!("wrong length of bytes of adapter b, expected {}: 64", usize::MAX)
    );
    let adapter = Adapter::new(4, [8, 32], &a, &b, 1.0)?;
    assert!(Matrix::new(Kind::Q4, 0, 32, &[])?.with_adapter(adapter).is_err());
    let (pool, mut activations) = (Pool::new(1)?, Activations::new());
    activations.quantize(&pool, &[1.0; 32], 32)?;
    let message = matmul(&pool, &w.with_adapter(adapter)?, &activations, &mut [0.0; 8]).map_err(|e| e.to_string());
    assert_eq!(message, Err("wrong length of activations for an adapter, expected 4: 0".to_owned()));
    let rows = |rows: &[u32]| {
        crate::matmul_rows(&pool, &w, &activations, rows, &mut vec![0.0; rows.len()]).map_err(|e| e.to_string())
    };
    assert_eq!(rows(&[]), Ok(()));
    assert_eq!(rows(&[7, 0]), Ok(()));
    assert_eq!(rows(&[0, 8]), Err("matrix row is over its limit of 7: 8".to_owned()));
    Ok(())
}
