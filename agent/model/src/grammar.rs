//! A grammar compiled to masks over the vocabulary.
//!
//! The text of the grammar is llguidance's Lark dialect. Compilation and every mask are bounded by llguidance's own limits
//! (items, lexer fuel, states); passing one is an error of kind `Grammar`.

use llguidance::Matcher;
use llguidance::api::TopLevelGrammar;
use toktrie::SimpleVob;

use crate::error::{Error, ErrorKind, Result};
use crate::tokenizer::Tokenizer;

/// A grammar of ten thousand tools with long names is under a megabyte.
const MAX_GRAMMAR_BYTES: usize = 4 << 20;

/// A compiled grammar. It holds no state of a completion: the same value serves any number of them.
#[derive(Clone)]
pub struct Grammar {
    start: Matcher,
}

impl Grammar {
    /// Compiles a grammar in Lark form for a vocabulary.
    ///
    /// # Errors
    /// `Grammar` with llguidance's reason, or for a text of more than 4 MiB.
    pub fn compile(tokenizer: &Tokenizer, lark: &str) -> Result<Grammar> {
        if lark.len() > MAX_GRAMMAR_BYTES {
            return Err(Error::new(
                ErrorKind::Grammar,
                format!("the grammar is longer than {MAX_GRAMMAR_BYTES} bytes: {}", lark.len()),
            ));
        }
        let parser = tokenizer.grammars()?.create_parser(TopLevelGrammar::from_lark(lark.to_string()));
        let start = Matcher::new(parser);
        match start.get_error() {
            Some(e) => Err(Error::new(ErrorKind::Grammar, format!("the grammar does not compile: {e}"))),
            None => Ok(Grammar { start }),
        }
    }

    pub(crate) fn walk(&self) -> Walk {
        Walk { matcher: self.start.clone() }
    }
}

impl std::fmt::Debug for Grammar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Grammar")
    }
}

/// One completion's way through a grammar.
pub(crate) struct Walk {
    matcher: Matcher,
}

impl Walk {
    /// Whether the text is complete and nothing can follow.
    pub(crate) fn is_finished(&self) -> bool {
        self.matcher.is_stopped()
    }

    /// The tokens that must come next, whatever the model says.
    pub(crate) fn forced(&mut self) -> Result<Vec<u32>> {
        let tokens = self.matcher.compute_ff_tokens();
        self.check().map(|()| tokens)
    }

    /// The tokens that may come next.
    pub(crate) fn mask(&mut self) -> Result<SimpleVob> {
        self.matcher.compute_mask_or_eos().map_err(|e| error(&e))
    }

    /// How many of the tokens, from the first on, the grammar allows one after the other.
    pub(crate) fn n_allowed(&mut self, tokens: &[u32]) -> Result<usize> {
        if tokens.is_empty() {
            return Ok(0);
        }
        self.matcher.validate_tokens(tokens).map_err(|e| error(&e))
    }

    /// Takes the token that came.
    pub(crate) fn accept(&mut self, token: u32) -> Result<()> {
        self.matcher.consume_token(token).map_err(|e| error(&e))
    }

    fn check(&self) -> Result<()> {
        self.matcher.get_error().map_or(Ok(()), |e| Err(error(&e)))
    }
}

fn error(e: &dyn std::fmt::Display) -> Error {
    Error::new(ErrorKind::Grammar, format!("the grammar cannot go on: {e}"))
        .hint("simplify the grammar, or decode without it")
}
