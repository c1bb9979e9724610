//! The chain of digests that shows whether a record was changed, left out or put in another order.
//!
//! `self_digest` = SHA-256(`prev_digest` + SHA-256(the SHA-256 of each record's bytes before the sealing one) +
//! SHA-256(the outcome's postcard)). It is over digests, so that a record which is redacted or dropped can leave its
//! digest behind. Records after the sealing one (feedback, judgements) are outside of it.

use sha2::Digest as _;

use crate::{Chain, Error, Outcome, Record, Sha256, decode};

/// Runs along with the records of one trajectory as they are written.
#[derive(Debug, Clone, Default)]
pub struct ChainHasher(sha2::Sha256);

impl ChainHasher {
    /// Takes in the next record's bytes, as [`crate::encode`] gave them.
    pub fn push(&mut self, record: &[u8]) {
        self.0.update(Sha256::of(record).0);
    }

    /// The link that seals the trajectory with `outcome`, after the one whose digest is `prev_digest`.
    ///
    /// # Errors
    /// If the outcome cannot be encoded.
    pub fn seal(self, prev_digest: Sha256, outcome: &Outcome) -> Result<Chain, Error> {
        let mut whole = prev_digest.0.to_vec();
        whole.extend(<[u8; 32]>::from(self.0.finalize()));
        whole.extend(Sha256::of(&postcard::to_stdvec(outcome)?).0);
        Ok(Chain { prev_digest, self_digest: Sha256::of(&whole) })
    }
}

/// Whether the records whose bytes these are, in order, are those that were sealed; `None` if they are not sealed.
///
/// # Errors
/// If a record's bytes do not decode.
pub fn verify<'a>(records: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<bool>, Error> {
    let mut hasher = ChainHasher::default();
    for bytes in records {
        match decode(bytes)? {
            Record::Sealed { outcome, chain } => return Ok(Some(hasher.seal(chain.prev_digest, &outcome)? == chain)),
            _ => hasher.push(bytes),
        }
    }
    Ok(None)
}
