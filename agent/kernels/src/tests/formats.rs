//! Sizes, refusals, and what the packer and the row lookup agree on.

use super::{kinds, noise, noise_bytes};
use crate::{ErrorKind, Kind, Matrix, checked_matrix_bytes, f16_to_f32, f32_to_f16, matrix_bytes, pack};
use proptest::prelude::*;

#[test]
fn sizes_follow_the_document() {
    assert_eq!(matrix_bytes(Kind::Q4m, 960, 576), 345_600);
    assert_eq!(matrix_bytes(Kind::Q4, 9, 32), 2 * 144);
    assert_eq!(matrix_bytes(Kind::Q8, 8, 64), 2 * 272);
    assert_eq!(matrix_bytes(Kind::Q8, 0, 64), 0);
    assert_eq!(checked_matrix_bytes(Kind::Q4, 8, 33), None);
    assert_eq!(checked_matrix_bytes(Kind::Q4, usize::MAX, usize::MAX / 32 * 32), None);
    assert_eq!(checked_matrix_bytes(Kind::Q8, usize::MAX, 32), None);
    assert_eq!(matrix_bytes(Kind::Q8, usize::MAX, 32), usize::MAX);
}

#[test]
fn bytes_stand_where_the_document_says() {
    let mut w = vec![0.0; 8 * 32];
    w[3 * 32 + 13] = -8.0;
    let packed = pack(Kind::Q4, 8, 32, &w).unwrap();
    let (vector, byte) = (13 / 8, 4 * 3 + 13 % 4);
    assert_eq!(packed[2 * 3..2 * 3 + 2], half::f16::from_f32(1.0).to_le_bytes());
    assert_eq!(packed[16 + 32 * vector + byte], 0x08);
    let packed = pack(Kind::Q8, 8, 32, &w).unwrap();
    assert_eq!(packed[16 + 32 * (13 / 4) + byte] as i8, -127);
}

#[test]
fn wrong_shapes_are_refused() {
    let message = |result: Result<Matrix<'_>, crate::Error>| {
        let error = result.unwrap_err();
        (error.kind(), error.to_string())
    };
    assert_eq!(
        message(Matrix::new(Kind::Q4, 8, 33, &[])),
        (ErrorKind::Shape, "matrix columns must be a positive multiple of 32: 33".to_owned())
    );
    assert_eq!(
        message(Matrix::new(Kind::Q4, 8, 32, &[0; 143])),
        (ErrorKind::Shape, "wrong length of matrix bytes, expected 144: 143".to_owned())
    );
    assert_eq!(message(Matrix::new(Kind::Q8, usize::MAX, usize::MAX - 31, &[])).0, ErrorKind::Shape);
    let matrix = Matrix::new(Kind::Q4, 8, 32, &[0; 144]).unwrap();
    assert_eq!(matrix.row_to_f32(8, &mut [0.0; 32]).unwrap_err().to_string(), "matrix row is over its limit of 7: 8");
    assert!(matrix.row_to_f32(7, &mut [0.0; 31]).is_err());
    assert!(Matrix::new(Kind::Q4, 0, 32, &[]).unwrap().row_to_f32(0, &mut [0.0; 32]).is_err());
    assert!(pack(Kind::Q4, 8, 32, &[0.0; 255]).is_err());
    assert!(pack(Kind::Q4, usize::MAX, 64, &[0.0; 255]).is_err());
}

proptest! {
    /// Rounding moves a weight by half a step. The 4-bit symmetric form has its extreme at -8, so that the other end may be
    /// cut by half a step more. f16 scales add a part in 2,048 of the largest weight.
    #[test]
    fn packed_rows_come_back(kind in kinds(), rows in 1usize..20, groups in 1usize..4, seed: u64) {
        let cols = groups * 32;
        let w = noise(seed, rows * cols);
        let packed = pack(kind, rows, cols, &w).unwrap();
        let matrix = Matrix::new(kind, rows, cols, &packed).unwrap();
        let mut row = vec![0.0; cols];
        for r in 0..rows {
            matrix.row_to_f32(r, &mut row).unwrap();
            for (got, want) in row.chunks(32).zip(w[r * cols..][..cols].chunks(32)) {
                let (low, high) = want.iter().fold((0f32, 0f32), |(l, h), &v| (l.min(v), h.max(v)));
                let extreme = high.max(-low);
                let step = match kind {
                    Kind::Q4 => extreme / 8.0 * 2.0,
                    Kind::Q4m => (high - low) / 15.0,
                    Kind::Q8 => extreme / 127.0,
                };
                for (got, want) in got.iter().zip(want) {
                    prop_assert!((got - want).abs() <= 0.5 * step + (high - low) / 1024.0, "{got} {want}");
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_a_matrix(kind in kinds(), rows in 1usize..20, seed: u64) {
        let bytes = noise_bytes(seed, matrix_bytes(kind, rows, 64));
        let matrix = Matrix::new(kind, rows, 64, &bytes).unwrap();
        matrix.row_to_f32(rows - 1, &mut [0.0; 64]).unwrap();
    }

    #[test]
    fn half_floats_are_exact_and_round(bits: Vec<u16>) {
        let mut floats = vec![0.0; bits.len()];
        f16_to_f32(&bits, &mut floats).unwrap();
        let mut back = vec![0; bits.len()];
        f32_to_f16(&floats, &mut back).unwrap();
        for ((bits, float), back) in bits.iter().zip(&floats).zip(&back) {
            prop_assert!(bits == back || float.is_nan());
            prop_assert_eq!(float.to_bits(), half::f16::from_bits(*bits).to_f32().to_bits());
        }
        prop_assert!(f16_to_f32(&bits, &mut vec![0.0; bits.len() + 1]).is_err());
        prop_assert!(f32_to_f16(&floats, &mut vec![0; bits.len() + 1]).is_err());
    }
}
