//! `mote.SwiGlu`: `silu(gate) * up` of rows that hold gate and up side by side.

use tract_core::internal::*;

use super::{RowOp, Workspace};

#[derive(Debug)]
pub(crate) struct SwiGlu {
    pub(crate) ffn: usize,
}

impl RowOp for SwiGlu {
    fn name(&self) -> &'static str {
        "SwiGlu"
    }

    fn input_width(&self) -> Option<usize> {
        Some(2 * self.ffn)
    }

    fn width(&self) -> usize {
        self.ffn
    }

    fn eval(&self, workspace: &mut Workspace, input: &Tensor, output: &mut [f32]) -> TractResult<()> {
        let rows = input.try_as_plain_ram()?;
        Ok(mote_kernels::swiglu(&workspace.pool, rows.as_slice::<f32>()?, self.ffn, output)?)
    }
}
