//! Tensors that were read for the last time, for outputs of the same shape. So the large buffers of a batch are neither asked of
//! the system nor cleared anew for every matrix, which cost a tenth of the time of a prefill.

use tract_core::internal::*;

/// Tensors that are kept: a layer has rows of fewer different lengths.
const MAX_TENSORS: usize = 4;

/// At most [`MAX_TENSORS`] tensors of f32.
#[derive(Debug, Default)]
pub(crate) struct Spare(Vec<Tensor>);

impl Spare {
    /// A tensor of f32 of this shape, its elements of any value. Those of another number of rows, of an earlier batch, go.
    pub(crate) fn take(&mut self, shape: &[usize]) -> TractResult<Tensor> {
        if let Some(found) = self.0.iter().position(|tensor| tensor.shape() == shape) {
            return Ok(self.0.swap_remove(found));
        }
        self.0.retain(|tensor| tensor.shape().first() == shape.first());
        Tensor::zero::<f32>(shape)
    }

    /// Keeps the tensor, if nothing else holds it, instead of the one that was kept first.
    pub(crate) fn put(&mut self, value: TValue) {
        if value.is_exclusive() && value.datum_type() == f32::datum_type() {
            if self.0.len() == MAX_TENSORS {
                self.0.remove(0);
            }
            self.0.push(value.into_tensor());
        }
    }
}
