//! The logits that are known: rows of the vocabulary's width, each after a number of tokens.

use std::ops::Range;

use crate::error::{Error, ErrorKind, Result};

/// Rows of logits after consecutive numbers of tokens.
#[derive(Clone)]
pub(crate) struct Logits {
    width: usize,
    /// The numbers of tokens that the rows come after.
    known: Range<usize>,
    rows: Vec<f32>,
    /// Whether only some elements of the one row are known.
    sparse: bool,
}

impl Logits {
    pub(crate) fn new(width: usize) -> Logits {
        Logits { width, known: 0..0, rows: Vec::new(), sparse: false }
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Whether only some elements of a row are known.
    pub(crate) fn is_sparse(&self) -> bool {
        self.sparse
    }

    /// Replaces the rows by `n` that come after `first` tokens and each one more.
    pub(crate) fn keep(&mut self, first: usize, n: usize, rows: &[f32]) {
        self.rows.clear();
        self.rows.extend_from_slice(rows);
        self.known = first..first + n;
        self.sparse = false;
    }

    /// The row after so many tokens.
    pub(crate) fn after(&self, n_tokens: usize) -> Option<&[f32]> {
        let row = self.known.contains(&n_tokens).then(|| n_tokens - self.known.start)?;
        self.rows.get(row * self.width..(row + 1) * self.width)
    }

    pub(crate) fn forget_after(&mut self, n_tokens: usize) {
        self.known.end = self.known.end.min(n_tokens + 1);
    }

    /// Puts the elements that were kept, in order those `at`, where they belong in a whole row.
    pub(crate) fn scatter(&mut self, at: &[u32]) -> Result<()> {
        if at.len() != self.rows.len() || at.last().is_some_and(|&last| last as usize >= self.width) {
            let message = format!("the graph should give {} logits: {}", at.len(), self.rows.len());
            return Err(Error::new(ErrorKind::Runtime, message));
        }
        self.rows.resize(self.width, 0.0);
        for (from, &to) in at.iter().enumerate().rev() {
            self.rows[to as usize] = self.rows[from];
        }
        self.sparse = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattered_elements_lie_where_they_belong() {
        let mut logits = Logits::new(6);
        logits.keep(9, 1, &[1.0, 2.0, 3.0]);
        logits.scatter(&[0, 2, 5]).unwrap();
        let row = logits.after(9).unwrap();
        assert_eq!((row[0], row[2], row[5]), (1.0, 2.0, 3.0));
        assert!(logits.is_sparse() && logits.after(8).is_none());
        logits.forget_after(8);
        assert!(logits.after(9).is_none());
        assert!(logits.scatter(&[0, 6]).is_err());
    }
}
