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

impl QMatMul {
    /// The rows of the matrix that are wanted, if not all.
    fn chosen_rows<'a>(&self, output_rows: Option<&'a [u32]>) -> Option<&'a [u32]> {
        output_rows.filter(|_| self.is_output)
    }
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

    fn wanted_width(&self, workspace: &Workspace) -> usize {
        self.chosen_rows(workspace.output_rows.as_deref()).map_or(self.width(), <[u32]>::len)
    }

    fn eval(&self, workspace: &mut Workspace, input: &Tensor, output: &mut [f32]) -> TractResult<()> {
        if output.is_empty() {
            return Ok(());
        }
        let Workspace { pool, activations, adapter, output_rows, .. } = workspace;
        let mut weight = self.weight.matrix()?;
        if let Some(adapter) = adapter {
            weight = adapter.apply(self.weight.name(), weight)?;
        }
        activations.quantize_for(pool, input.try_as_plain_ram()?.as_slice::<f32>()?, &weight)?;
        match self.chosen_rows(output_rows.as_deref()) {
            Some(rows) => matmul_rows(pool, &weight, activations, rows, output)?,
            None => matmul(pool, &weight, activations, output)?,
        }
        Ok(())
    }
}
