//! `mote.QMatMul`: rows times a packed, quantized matrix.

use mote_kernels::matmul;
use tract_core::internal::*;

use super::{RowOp, Workspace};
use crate::weights::Weight;

#[derive(Debug)]
pub(crate) struct QMatMul {
    pub(crate) weight: Weight,
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
        let mut output = Tensor::zero::<f32>(&[input.shape()[0], self.width()])?;
        if output.len() == 0 {
            return Ok(output);
        }
        let rows = input.try_as_plain_ram()?;
        workspace.activations.quantize(&workspace.pool, rows.as_slice::<f32>()?, self.weight.cols())?;
        let weight = self.weight.matrix()?;
        matmul(
            &workspace.pool,
            &weight,
            &workspace.activations,
            output.try_as_plain_ram_mut()?.as_slice_mut::<f32>()?,
        )?;
        Ok(output)
    }
}
