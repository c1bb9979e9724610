//! `mote.Embed`: token ids to rows of the embedding.

use tract_core::internal::*;

use super::{RowOp, Workspace};
use crate::weights::Weight;

#[derive(Debug)]
pub(crate) struct Embed {
    pub(crate) weight: Weight,
}

impl RowOp for Embed {
    fn name(&self) -> &'static str {
        "Embed"
    }

    fn input_width(&self) -> Option<usize> {
        None
    }

    fn width(&self) -> usize {
        self.weight.cols()
    }

    fn eval(&self, _workspace: &mut Workspace, input: &Tensor, output: &mut [f32]) -> TractResult<()> {
        let ids = input.try_as_plain_ram()?;
        let matrix = self.weight.matrix()?;
        for (row, &id) in output.chunks_exact_mut(self.width()).zip(ids.as_slice::<i64>()?) {
            let id = usize::try_from(id).with_context(|| format!("token id is negative: {id}"))?;
            matrix.row_to_f32(id, row)?;
        }
        Ok(())
    }
}
