//! The bytes of every token, which is what the grammar masks, streaming and stop texts work on.
//!
//! Byte-level tokenizers (GPT-2, Llama 3, Qwen) write a byte as one printable character; SentencePiece ones (Llama 2) write
//! a space as `▁` and a byte outside the vocabulary as `<0xNN>`. Both forms come apart here, once, into one flat buffer.

use tokenizers::{DecoderWrapper, Model};

use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::Bpe;

/// The grammar's trie counts the bytes of a token in ten bits.
const MAX_TOKEN_BYTES: usize = 512;
/// The grammar's trie counts its nodes, at most one a byte, in 22 bits.
const MAX_VOCABULARY_BYTES: usize = 1 << 22;

/// The bytes of every token id.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    special: Vec<bool>,
}

#[derive(Clone, Copy)]
enum Spelling {
    ByteLevel,
    ByteFallback,
}

impl Vocabulary {
    /// Reads the vocabulary of a tokenizer for a model of `n_vocab` rows; ids without a token have no bytes.
    pub(crate) fn new(tokenizer: &Bpe, n_vocab: usize) -> Result<Vocabulary> {
        let spelling = spelling(tokenizer.get_decoder())?;
        let byte_of = byte_of_char();
        let model = tokenizer.get_model();
        let added = tokenizer.get_added_tokens_decoder();
        let mut vocabulary =
            Vocabulary { bytes: Vec::new(), ends: Vec::with_capacity(n_vocab), special: Vec::with_capacity(n_vocab) };
        let mut n_in_model = 0;
        for id in 0..n_vocab as u32 {
            let in_model = model.id_to_token(id);
            n_in_model += usize::from(in_model.is_some());
            let (bytes, special) = match (added.get(&id), in_model) {
                (Some(token), _) => (token.content.clone().into_bytes(), token.special),
                (None, Some(text)) => (spelled(spelling, &byte_of, text), false),
                (None, None) => (Vec::new(), false),
            };
            vocabulary.push(id, &bytes, special)?;
        }
        let mut outside = added.keys().copied().find(|&id| id as usize >= n_vocab);
        if n_in_model < model.get_vocab_size() {
            outside = outside.or_else(|| model.get_vocab().into_values().find(|&id| id as usize >= n_vocab));
        }
        match outside {
            Some(id) => Err(error(format!("token id outside the model's vocabulary of {n_vocab}: {id}"))),
            None => Ok(vocabulary),
        }
    }

    fn push(&mut self, id: u32, bytes: &[u8], special: bool) -> Result<()> {
        if bytes.len() > MAX_TOKEN_BYTES {
            return Err(error(format!("token {id} is longer than {MAX_TOKEN_BYTES} bytes: {}", bytes.len())));
        }
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len() as u32);
        self.special.push(special);
        if self.bytes.len() > MAX_VOCABULARY_BYTES {
            return Err(error(format!("all tokens together are longer than {MAX_VOCABULARY_BYTES} bytes")));
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes a token stands for; none for an id without a token.
    pub(crate) fn bytes(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let Some(&end) = self.ends.get(id) else { return &[] };
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.bytes[start as usize..end as usize]
    }

    pub(crate) fn is_special(&self, id: u32) -> bool {
        self.special.get(id as usize).copied().unwrap_or(false)
    }

    pub(crate) fn special_texts(&self) -> impl Iterator<Item = &str> {
        let ids = (0..self.len() as u32).filter(|&id| self.is_special(id));
        ids.filter_map(|id| std::str::from_utf8(self.bytes(id)).ok()).filter(|text| !text.is_empty())
    }
}

fn spelling(decoder: Option<&DecoderWrapper>) -> Result<Spelling> {
    let parts = match decoder {
        Some(DecoderWrapper::Sequence(sequence)) => sequence.get_decoders(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    for part in parts {
        match part {
            DecoderWrapper::ByteLevel(_) => return Ok(Spelling::ByteLevel),
            DecoderWrapper::ByteFallback(_) => return Ok(Spelling::ByteFallback),
            _ => {}
        }
    }
    Err(error("its decoder is neither ByteLevel nor ByteFallback".into()))
}

/// The printable stand-ins of GPT-2's byte-level encoding: printable Latin-1 bytes stand for themselves, the other 68 bytes
/// are counted up from U+0100.
fn byte_of_char() -> impl Fn(char) -> Option<u8> {
    let is_own = |b: u8| matches!(b, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    let others: Vec<u8> = (0..=255).filter(|&b| !is_own(b)).collect();
    move |c| match u32::from(c) {
        code @ 0..=255 => Some(code as u8).filter(|&b| is_own(b)),
        code => others.get(code as usize - 256).copied(),
    }
}

fn spelled(spelling: Spelling, byte_of: impl Fn(char) -> Option<u8>, text: String) -> Vec<u8> {
    let bytes = match spelling {
        Spelling::ByteLevel => text.chars().map(byte_of).collect::<Option<Vec<u8>>>(),
        Spelling::ByteFallback => Some(fallback_bytes(&text)),
    };
    bytes.unwrap_or_else(|| text.into_bytes())
}

fn fallback_bytes(text: &str) -> Vec<u8> {
    let hex = text.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>')).filter(|hex| hex.len() == 2);
    match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
        Some(byte) => vec![byte],
        None => text.replace('▁', " ").into_bytes(),
    }
}

fn error(message: String) -> Error {
    Error::bundle(ErrorKind::Tokenizer, format!("tokenizer.json: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_level_characters_cover_every_byte_once() {
        let byte_of = byte_of_char();
        let mut bytes: Vec<u8> = (0..400).filter_map(char::from_u32).filter_map(&byte_of).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!(
            (byte_of('Ġ'), byte_of('Ċ'), byte_of('a'), byte_of('é')),
            (Some(b' '), Some(b'\n'), Some(b'a'), Some(0xe9))
        );
    }

    #[test]
    fn fallback_spells_bytes_and_spaces() {
        assert_eq!(fallback_bytes("<0x0A>"), b"\n");
        assert_eq!(fallback_bytes("▁the"), b" the");
        assert_eq!(fallback_bytes("<0xZZ>"), b"<0xZZ>");
    }
}
