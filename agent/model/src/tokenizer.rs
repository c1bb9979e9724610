//! Text to token ids and back, and the trie of the vocabulary for grammar masks.
//!
//! The ids are those of the `tokenizers` library. Special tokens have two readings: [`Tokenizer::encode`] recognizes them,
//! for text the harness writes; [`Tokenizer::encode_plain`] never does, for text that comes from outside.

use std::sync::{Arc, OnceLock};

use llguidance::ParserFactory;
use tokenizers::models::bpe::BPE;
use tokenizers::{DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, TokenizerImpl};
use toktrie::{InferenceCapabilities, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};

use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{Manifest, SpecialTokens};
use crate::map::give_back_freed_memory;
use crate::vocabulary::Vocabulary;
use crate::well_formed::WellFormed;

/// Far more text than any context window holds; keeps a mistake from filling memory.
const MAX_TEXT_BYTES: usize = 16 << 20;

/// The tokenizer of a bundle; clones share it.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<Inner>,
    grammars: Arc<OnceLock<std::result::Result<ParserFactory, String>>>,
}

/// The library's tokenizer with the one kind of model that the families here have. So the vocabulary is read straight into
/// its tables; the library's own type of any model reads it into a JSON tree first.
pub(crate) type Bpe = TokenizerImpl<BPE, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

struct Inner {
    tokenizer: Bpe,
    vocabulary: Vocabulary,
    special: SpecialTokens,
    add_bos: bool,
}

impl Tokenizer {
    /// Reads `tokenizer.json` and checks it against the model's vocabulary.
    pub(crate) fn read(json: Vec<u8>, manifest: &Manifest) -> Result<Tokenizer> {
        let error = |e: &dyn std::fmt::Display| {
            Error::bundle(ErrorKind::Tokenizer, format!("tokenizer.json cannot be read: {e}"))
        };
        // The library panics inside text that cannot be read as JSON, so that is found first.
        serde_json::from_slice::<WellFormed>(&json).map_err(|e| error(&e))?;
        let mut tokenizer: Bpe = serde_json::from_slice(&json).map_err(|e| error(&e))?;
        drop(json);
        tokenizer.with_padding(None).with_truncation(None).map_err(|e| error(&e))?;
        let vocabulary = Vocabulary::new(&tokenizer, manifest.architecture.vocab)?;
        let special = &manifest.special_tokens;
        let mut ids = special.stop.iter().chain(&special.bos).chain(&special.eos);
        if let Some(id) = ids.find(|&&id| vocabulary.bytes(id).is_empty()) {
            let message = format!("tokenizer.json: no token for an id of the manifest's special_tokens: {id}");
            return Err(Error::bundle(ErrorKind::Tokenizer, message));
        }
        let inner = Inner { tokenizer, vocabulary, special: special.clone(), add_bos: manifest.add_bos };
        give_back_freed_memory();
        Ok(Tokenizer { inner: Arc::new(inner), grammars: Arc::default() })
    }

    /// Ids of a text in which special tokens are recognized. Adds no `bos`.
    ///
    /// # Errors
    /// `Tokenizer` for more than 16 MiB of text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        self.inner.encode(text)
    }

    /// Ids of a text that is only text: what reads like a special token is cut so that it cannot become one.
    ///
    /// # Errors
    /// `Tokenizer` for more than 16 MiB of text.
    pub fn encode_plain(&self, text: &str) -> Result<Vec<u32>> {
        self.inner.encode_plain(text)
    }

    /// Ids of a whole prompt: [`Tokenizer::encode`] after `bos`, if this model wants one.
    ///
    /// # Errors
    /// `Tokenizer` for more than 16 MiB of text.
    pub fn encode_prompt(&self, text: &str) -> Result<Vec<u32>> {
        let mut ids: Vec<u32> = self.inner.special.bos.filter(|_| self.inner.add_bos).into_iter().collect();
        ids.extend(self.encode(text)?);
        Ok(ids)
    }

    /// The text of the ids, special tokens included; bytes that are no UTF-8 become U+FFFD.
    pub fn decode(&self, ids: &[u32]) -> String {
        let bytes: Vec<u8> = ids.iter().flat_map(|&id| self.token_bytes(id)).copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The bytes a token stands for; empty for an id without a token.
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        self.inner.vocabulary.bytes(id)
    }

    /// Whether the token is markup, not text.
    pub fn is_special(&self, id: u32) -> bool {
        self.inner.vocabulary.is_special(id)
    }

    /// Rows of the model's vocabulary.
    pub fn n_vocab(&self) -> usize {
        self.inner.vocabulary.len()
    }

    /// The ids with a role.
    pub fn special(&self) -> &SpecialTokens {
        &self.inner.special
    }

    /// The compiler of grammars for this vocabulary, made at the first use.
    pub(crate) fn grammars(&self) -> Result<&ParserFactory> {
        let made = self.grammars.get_or_init(|| {
            let made = self.inner.clone().parser_factory().map_err(|e| e.to_string());
            give_back_freed_memory();
            made
        });
        made.as_ref().map_err(|e| Error::new(ErrorKind::Grammar, format!("the vocabulary cannot be masked: {e}")))
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer").field("n_vocab", &self.n_vocab()).finish_non_exhaustive()
    }
}

impl Inner {
    fn encode(&self, text: &str) -> Result<Vec<u32>> {
        if text.len() > MAX_TEXT_BYTES {
            let message = format!("the text is longer than {MAX_TEXT_BYTES} bytes: {}", text.len());
            return Err(Error::new(ErrorKind::Tokenizer, message));
        }
        let encoding = self.tokenizer.encode_fast(text, false);
        let encoding =
            encoding.map_err(|e| Error::new(ErrorKind::Tokenizer, format!("the text cannot be encoded: {e}")))?;
        Ok(encoding.get_ids().to_vec())
    }

    fn encode_plain(&self, text: &str) -> Result<Vec<u32>> {
        let mut cuts: Vec<usize> = Vec::new();
        for special in self.vocabulary.special_texts() {
            let first_char = special.chars().next().map_or(0, char::len_utf8);
            cuts.extend(text.match_indices(special).map(|(at, _)| at + first_char));
        }
        cuts.push(text.len());
        cuts.sort_unstable();
        let mut ids = Vec::new();
        let mut start = 0;
        for cut in cuts {
            ids.extend(self.encode(&text[start..cut])?);
            start = cut;
        }
        Ok(ids)
    }

    fn parser_factory(self: Arc<Self>) -> std::result::Result<ParserFactory, Box<dyn std::error::Error + Send + Sync>> {
        let n_vocab = self.vocabulary.len() as u32;
        let words: Vec<Vec<u8>> = (0..n_vocab)
            .map(|id| match self.vocabulary.is_special(id) {
                true => [&[TokTrie::SPECIAL_TOKEN_MARKER], self.vocabulary.bytes(id)].concat(),
                false => self.vocabulary.bytes(id).to_vec(),
            })
            .collect();
        let mut stops = self.special.stop.clone();
        stops.extend(self.special.eos.filter(|eos| !stops.contains(eos)));
        let eos = *stops.first().ok_or("the manifest names no stop token")?;
        let trie = TokTrie::from(&TokRxInfo::new(n_vocab, eos), &words).with_eos_tokens(&stops);
        let environment: TokEnv = Arc::new(MaskEnvironment { trie, inner: self });
        let capabilities = InferenceCapabilities { ff_tokens: true, ..Default::default() };
        let slices = llguidance::earley::SlicedBiasComputer::general_slices();
        let mut factory = ParserFactory::new(&environment, capabilities, &slices)?;
        factory.quiet().limits_mut().verbose_errors = false;
        Ok(factory)
    }
}

/// What the mask library asks of a tokenizer.
struct MaskEnvironment {
    trie: TokTrie,
    inner: Arc<Inner>,
}

impl TokenizerEnv for MaskEnvironment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            self.inner.encode_plain(text).unwrap_or_else(|_| self.trie.greedy_tokenize(text.as_bytes()))
        })
    }
}
