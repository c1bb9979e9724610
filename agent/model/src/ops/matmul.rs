//! `mote.QMatMul`: rows times a packed, quantized matrix.

use mote_kernels::{matmul, matmul_rows};
use tract_core::internal::*;

use super::{RowOp, Workspace};
use crate::weights::Weight;

#[derive(Debug)]
pub(crate) struct QMatMul {
    pub(crate) weight: Weight,
    /// Whether it gives the logits.
    pub(crate) is_output: bool,
}

impl RowOp for QMatMul {
    fn name(&self) -> &'static str {
        "QMatMul"
    }

    fn input_width(&self) -> Option<usize> {
        Some(self.weight.cols())
    }

    fn width(&self) -> usize {
        self.weight.rows()
    }

    fn eval(&self, workspace: &mut Workspace, input: TValue) -> TractResult<Tensor> {
        let Workspace { pool, activations, adapter, output_rows, .. } = workspace;
        let chosen = output_rows.as_deref().filter(|_| self.is_output);
        let mut output = Tensor::zero::<f32>(&[input.shape()[0], chosen.map_or(self.width(), <[u32]>::len)])?;
        if output.len() == 0 {
            return Ok(output);
        }
        let mut weight = self.weight.matrix()?;
        if let Some(adapter) = adapter {
            weight = adapter.apply(self.weight.name(), weight)?;
        }
        activations.quantize_for(pool, input.try_as_plain_ram()?.as_slice::<f32>()?, &weight)?;
        let mut y = output.try_as_plain_ram_mut()?;
        let y = y.as_slice_mut::<f32>()?;
        match chosen {
            Some(rows) => matmul_rows(pool, &weight, activations, rows, y)?,
            None => matmul(pool, &weight, activations, y)?,
        }
        Ok(output)
    }
}
