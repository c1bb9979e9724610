//! What bounds a decoded token: the weights it reads, read as fast as the memory gives them, and multiplied by the kernels
//! without the graph, attention or norms. Both go over the mapped weights themselves, with as many threads as the model has.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::{Duration, Instant};

use mote_kernels::{Activations, Matrix, Pool, matmul};
use mote_model::Model;

use crate::error::{Error, ErrorKind, Result};

/// One measurement takes this long, or one pass if that is longer.
const TIME: Duration = Duration::from_millis(400);

/// All of a round take about this long.
pub(super) const ROUND_TIME: Duration = Duration::from_millis(800);

/// The matrices of a model and a pool of its own.
pub(super) struct Alone<'a> {
    pool: Pool,
    matrices: Vec<Matrix<'a>>,
    /// By number of columns.
    activations: BTreeMap<usize, Activations>,
}

impl<'a> Alone<'a> {
    /// # Errors
    /// Those of the bundle, and `Failed` if the system refuses threads.
    pub(super) fn new(model: &'a Model) -> Result<Alone<'a>> {
        let pool = Pool::new(model.threads()).map_err(|error| failed(&error))?;
        let matrices = model.bundle().decode_matrices()?;
        let mut activations = BTreeMap::new();
        for matrix in &matrices {
            let cols = matrix.cols();
            if let Entry::Vacant(vacant) = activations.entry(cols) {
                let mut quantized = Activations::new();
                quantized.quantize(&pool, &vec![0.5; cols], cols).map_err(|error| failed(&error))?;
                vacant.insert(quantized);
            }
        }
        Ok(Alone { pool, matrices, activations })
    }

    /// Bytes of weights that a token reads.
    pub(super) fn bytes(&self) -> usize {
        self.matrices.iter().map(|matrix| matrix.bytes().len()).sum()
    }

    /// Weights that a token is multiplied with.
    pub(super) fn n_weights(&self) -> usize {
        self.matrices.iter().map(|matrix| matrix.rows() * matrix.cols()).sum()
    }

    /// Passes over the weights a second that a plain read reaches.
    pub(super) fn read(&self) -> Result<f64> {
        let parts: Vec<&[u8]> = self.matrices.iter().map(|matrix| matrix.bytes()).collect();
        passes(|| {
            mote_kernels::read(&self.pool, &parts);
            Ok(())
        })
    }

    /// Passes over the weights a second that the kernels reach.
    pub(super) fn multiply(&self) -> Result<f64> {
        let rows = self.matrices.iter().map(Matrix::rows).max().unwrap_or(0);
        let mut y = vec![0.0; rows];
        passes(|| {
            for matrix in &self.matrices {
                if let Some(a) = self.activations.get(&matrix.cols()) {
                    matmul(&self.pool, matrix, a, &mut y[..matrix.rows()]).map_err(|error| failed(&error))?;
                }
            }
            Ok(())
        })
    }
}

/// How often a second a pass is done.
fn passes(mut pass: impl FnMut() -> Result<()>) -> Result<f64> {
    let started = Instant::now();
    let mut n = 0;
    while n == 0 || started.elapsed() < TIME {
        pass()?;
        n += 1;
    }
    Ok(f64::from(n) / started.elapsed().as_secs_f64())
}

fn failed(error: &mote_kernels::Error) -> Error {
    Error::new(ErrorKind::Failed, format!("the kernels cannot be measured: {error}"))
}
