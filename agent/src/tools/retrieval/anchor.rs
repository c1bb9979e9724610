//! The anchor: texts as points in the model's own embedding layer, after a small trained projection.
//!
//! A text's embedding is the weighted sum of the rows of its tokens, projected and brought to length one; a tool is chosen with
//! p(t) = softmax(-gamma ||e' - e_t||^2). The projection is trained by `trainer/anchor`, which describes how; the file's layout is in
//! docs/retrieval.md. It belongs to one embedding table: [`Anchor::of`] compares the lengths of some rows and gives none for another.
//! Embeddings keep eight bits a value.

use std::collections::HashMap;

use mote_model::{Bundle, EmbeddingTable, Tokenizer};
use sha2::{Digest, Sha256};

use super::words::words;
use crate::error::{Error, ErrorKind, Result};

const TRAINED: &[u8] = include_bytes!("../../../../trainer/anchor/smollm2-135m-instruct.anchor");
const MAGIC: &[u8; 8] = b"MOTEANC\0";
const VERSION: u32 = 1;

/// Rows of another quantization of the same table differ by less; those of another checkpoint by more.
const PROBE_TOLERANCE: f32 = 0.02;

/// The anchor of a bundle.
#[derive(Clone, Debug)]
pub struct Anchor {
    table: EmbeddingTable,
    tokenizer: Tokenizer,
    trained: Trained,
    sha256: [u8; 32],
}

/// What is in the file; `weights` is `[dim, hidden]`, `tokens` the logarithms of token weights.
#[derive(Clone, Debug)]
struct Trained {
    hidden: usize,
    row_scale: f32,
    gamma: f32,
    share: f32,
    probes: Vec<(u32, f32)>,
    bias: Vec<f32>,
    scales: Vec<f32>,
    weights: Vec<i8>,
    token_weights: Vec<f32>,
}

/// A unit vector in eight bits a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Embedding {
    pub(super) scale: f32,
    pub(super) values: Vec<i8>,
}

/// Token ids of words that were met before.
pub(super) type KnownWords = HashMap<String, Vec<u32>>;

impl Anchor {
    /// The trained anchor, if it was trained on this bundle's embedding layer.
    ///
    /// # Errors
    /// Those of the bundle; the anchor itself is part of this program.
    pub fn of(bundle: &Bundle) -> Result<Option<Anchor>> {
        let table = bundle.embedding_table()?;
        let trained = Trained::parse(TRAINED).ok_or_else(|| {
            Error::new(ErrorKind::Failed, format!("the anchor cannot be read, in bytes: {}", TRAINED.len()))
        })?;
        if !trained.fits(&table)? {
            return Ok(None);
        }
        let (tokenizer, sha256) = (bundle.tokenizer().clone(), Sha256::digest(TRAINED).into());
        Ok(Some(Anchor { table, tokenizer, trained, sha256 }))
    }

    /// The hash of the projection: embeddings made by different ones can't be compared.
    pub(crate) fn sha256(&self) -> &[u8; 32] {
        &self.sha256
    }

    /// Values of an embedding.
    pub(crate) fn dim(&self) -> usize {
        self.trained.bias.len()
    }

    /// What ln p(t) counts for beside BM25, times gamma.
    pub(super) fn sharpness(&self) -> f32 {
        self.trained.share * self.trained.gamma
    }

    /// The embedding of a text; of no token, all zero.
    ///
    /// # Errors
    /// Those of the tokenizer.
    pub(super) fn embed<'a>(
        &self,
        texts: impl IntoIterator<Item = &'a str>,
        known: &mut KnownWords,
    ) -> Result<Embedding> {
        let trained = &self.trained;
        let mut row = vec![0.0; trained.hidden];
        let mut pooled = vec![0.0; trained.hidden];
        let mut total = 0.0;
        for word in texts.into_iter().flat_map(words) {
            let tokens = match known.get(&word) {
                Some(tokens) => tokens,
                None => {
                    let tokens = self.tokenizer.encode_plain(&format!(" {word}"))?;
                    known.entry(word).or_insert(tokens)
                }
            };
            for &token in tokens {
                let weight = trained.token_weights.get(token as usize).copied().unwrap_or_default();
                self.table.row(token, &mut row)?;
                pooled.iter_mut().zip(&row).for_each(|(sum, value)| *sum += weight * value);
                total += weight;
            }
        }
        Ok(Embedding::quantize(&trained.project(&pooled, total)))
    }
}

impl Trained {
    fn parse(file: &[u8]) -> Option<Trained> {
        let mut left = file.strip_prefix(MAGIC)?;
        let mut take = |n_bytes: usize| left.split_off(..n_bytes);
        let [version, hidden, dim, vocab] = [(); 4].map(|()| take(4).map(u32_at));
        if version? != VERSION {
            return None;
        }
        let (hidden, dim, vocab) = (hidden? as usize, dim? as usize, vocab? as usize);
        let [row_scale, gamma, share, token_scale] = [(); 4].map(|()| take(4).map(f32_at));
        let n_probes = u32_at(take(4)?) as usize;
        let probes =
            take(n_probes.checked_mul(8)?)?.chunks_exact(8).map(|it| (u32_at(&it[..4]), f32_at(&it[4..]))).collect();
        let bias = take(4 * dim)?.chunks_exact(4).map(f32_at).collect();
        let scales = take(4 * dim)?.chunks_exact(4).map(f32_at).collect();
        let weights = take(dim.checked_mul(hidden)?)?.iter().map(|&byte| byte as i8).collect();
        let token_scale = token_scale?;
        let token_weights = take(vocab)?.iter().map(|&byte| (f32::from(byte as i8) * token_scale).exp()).collect();
        let (row_scale, gamma, share) = (row_scale?, gamma?, share?);
        left.is_empty().then_some(Trained {
            hidden,
            row_scale,
            gamma,
            share,
            probes,
            bias,
            scales,
            weights,
            token_weights,
        })
    }

    fn fits(&self, table: &EmbeddingTable) -> Result<bool> {
        if (table.width(), table.rows()) != (self.hidden, self.token_weights.len()) {
            return Ok(false);
        }
        let mut row = vec![0.0; self.hidden];
        for &(token, length) in &self.probes {
            table.row(token, &mut row)?;
            let found = row.iter().map(|value| value * value).sum::<f32>().sqrt();
            if (found - length).abs() > PROBE_TOLERANCE * length {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn project(&self, pooled: &[f32], total: f32) -> Vec<f32> {
        let rows = self.weights.chunks_exact(self.hidden).zip(&self.scales).zip(&self.bias);
        let project = |((weights, scale), bias): ((&[i8], &f32), &f32)| {
            let dot: f32 = weights.iter().zip(pooled).map(|(&weight, value)| f32::from(weight) * value).sum();
            self.row_scale * dot * scale + total * bias
        };
        let projected: Vec<f32> = rows.map(project).collect();
        let length = projected.iter().map(|value| value * value).sum::<f32>().sqrt().max(1e-9);
        projected.into_iter().map(|value| value / length).collect()
    }
}

impl Embedding {
    fn quantize(vector: &[f32]) -> Embedding {
        let largest = vector.iter().fold(1e-9_f32, |largest, value| largest.max(value.abs()));
        let scale = largest / 127.0;
        Embedding { scale, values: vector.iter().map(|value| (value / scale).round_ties_even() as i8).collect() }
    }
}

fn u32_at(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte))
}

fn f32_at(bytes: &[u8]) -> f32 {
    f32::from_bits(u32_at(bytes))
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    /// A bundle with random weights.
    pub(in super::super) fn tiny_bundle() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/bundles/tiny-llama")
    }

    /// A random projection of the tiny bundle's embedding layer.
    pub(in super::super) fn made_up(seed: u32) -> Anchor {
        let bundle = Bundle::open(&tiny_bundle()).unwrap();
        let table = bundle.embedding_table().unwrap();
        let (hidden, dim) = (table.width(), 24);
        let byte = |idx: usize| (idx as u32 ^ seed).wrapping_mul(2_654_435_761).rotate_right(13) as i8;
        let trained = Trained {
            hidden,
            row_scale: 1.0,
            gamma: 9.0,
            share: 1.6,
            probes: vec![],
            bias: vec![0.0; dim],
            scales: vec![0.01; dim],
            weights: (0..dim * hidden).map(byte).collect(),
            token_weights: vec![1.0; table.rows()],
        };
        let sha256 = Sha256::digest(seed.to_le_bytes()).into();
        Anchor { table, tokenizer: bundle.tokenizer().clone(), trained, sha256 }
    }

    #[test]
    fn the_trained_anchor_is_whole() {
        let trained = Trained::parse(TRAINED).unwrap();
        assert_eq!((trained.hidden, trained.bias.len(), trained.token_weights.len()), (576, 256, 49152));
        assert!(trained.gamma > 0.0 && trained.share > 0.0 && trained.bias.iter().all(|value| value.is_finite()));
    }

    #[test]
    fn a_damaged_anchor_is_refused() {
        for n_bytes in [0, 7, 8, 12, 40, 44, 200, 5000, TRAINED.len() - 1] {
            assert!(Trained::parse(&TRAINED[..n_bytes]).is_none(), "{n_bytes}");
        }
        assert!(Trained::parse(&[TRAINED, b"\0"].concat()).is_none());
        assert!(Trained::parse(&[MAGIC, [0xff; 64].as_slice()].concat()).is_none());
    }

    #[test]
    fn eight_bits_keep_a_vector() {
        let vector = [0.6, -0.8, 0.0];
        let kept = Embedding::quantize(&vector);
        let back = kept.values.iter().map(|&value| f32::from(value) * kept.scale);
        assert!(back.zip(vector).all(|(kept, value)| (kept - value).abs() <= kept_within(&vector)));
        assert_eq!(Embedding::quantize(&[0.0; 4]).values, [0; 4]);
    }

    fn kept_within(vector: &[f32]) -> f32 {
        vector.iter().fold(0.0_f32, |largest, value| largest.max(value.abs())) / 254.0 + 1e-6
    }
}
