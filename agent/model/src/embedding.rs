//! The embedding layer by itself: rows of the table, for who compares texts without running the model.

use crate::error::{Error, ErrorKind, Result};
use crate::weights::Weight;

/// The embedding table of a bundle, mapped; clones share the map.
#[derive(Clone, Debug)]
pub struct EmbeddingTable {
    pub(crate) weight: Weight,
}

impl EmbeddingTable {
    /// Tokens in the table.
    pub fn rows(&self) -> usize {
        self.weight.rows()
    }

    /// Floats of a row.
    pub fn width(&self) -> usize {
        self.weight.cols()
    }

    /// Writes the embedding of a token.
    ///
    /// # Errors
    /// `Argument` for an id outside the vocabulary or a slice that is not one row wide.
    pub fn row(&self, token: u32, out: &mut [f32]) -> Result<()> {
        let row = self.weight.matrix()?.row_to_f32(token as usize, out);
        row.map_err(|e| Error::new(ErrorKind::Argument, format!("embedding: {e}")))
    }
}
