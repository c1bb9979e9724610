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

    fn eval(&self, _workspace: &mut Workspace, input: TValue) -> TractResult<Tensor> {
        let ids = input.try_as_plain_ram()?;
        let ids = ids.as_slice::<i64>()?;
        let matrix = self.weight.matrix()?;
        let mut output = Tensor::zero::<f32>(&[ids.len(), self.width()])?;
        {
            let mut rows = output.try_as_plain_ram_mut()?;
            let rows = rows.as_slice_mut::<f32>()?;
            for (row, &id) in rows.chunks_exact_mut(self.width()).zip(ids) {
                let id = usize::try_from(id).with_context(|| format!("token id is negative: {id}"))?;
                matrix.row_to_f32(id, row)?;
            }
        }
        Ok(output)
    }
}
