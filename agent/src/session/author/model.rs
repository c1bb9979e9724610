//! The local model as author: keeps one conversation whose KV cache follows the prompt.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use mote_model::{Adapter, Conversation, GenerateOptions, Grammar, Model, Sampling, Speculate, Stop};

use super::card::CardFile;
use super::{Author, Decoded, Progress, Request, Written};
use crate::context::{FragmentKind, Piece, Prompt, Style};
use crate::error::{Error, ErrorKind, Result};

/// How a model writes.
#[derive(Clone, Debug, Default)]
pub struct ModelAuthorOptions {
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// Whether all output rows are computed, for recording.
    pub full_recording: bool,
    /// Whether drafts are evaluated along.
    pub speculate: Speculate,
    /// Changes what the model says.
    pub adapter: Option<Adapter>,
    /// Folder in which the KV cache of the card is kept between runs.
    pub snapshots: Option<PathBuf>,
}

/// Writes programs with the model of a bundle.
pub struct ModelAuthor {
    model: Model,
    conversation: Conversation,
    options: ModelAuthorOptions,
    stop_texts: Vec<String>,
    grammar: Option<(String, Grammar)>,
}

impl ModelAuthor {
    /// Opens a conversation.
    pub fn new(model: Model, style: Style, options: ModelAuthorOptions) -> Result<ModelAuthor> {
        let mut conversation = model.conversation()?;
        conversation.set_adapter(options.adapter.as_ref())?;
        let stop_texts = match style {
            Style::Completion => vec!["\n\n".to_owned()],
            Style::Chat(_) => Vec::new(),
        };
        Ok(ModelAuthor { model, conversation, options, stop_texts, grammar: None })
    }

    /// Fills an empty conversation with the card; gives how many tokens of it came from its file.
    fn begin(&mut self, prompt: &Prompt, progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>) -> Result<usize> {
        let card = prompt.fragments().first().filter(|fragment| fragment.kind == FragmentKind::Card);
        let (Some(card), Some(folder)) = (card.and_then(|card| card.ids.as_ref()), &self.options.snapshots) else {
            return Ok(0);
        };
        let adapter = self.options.adapter.as_ref();
        let file = CardFile::new(folder, &self.model, adapter, card);
        if let Some(conversation) = file.restore(&self.model, adapter, card) {
            self.conversation = conversation;
            return Ok(card.len());
        }
        let started = Instant::now();
        self.conversation.prefill(card, progress)?;
        file.keep(&mut self.conversation, started.elapsed());
        Ok(0)
    }

    /// The compiled grammar of the last program, if it is the same.
    fn kept_grammar(&self, lark: &str) -> Option<Grammar> {
        self.grammar.as_ref().filter(|(text, _)| text == lark).map(|(_, grammar)| grammar.clone())
    }

    /// Keeps what the cache and `ids` have in common, and gives how many tokens that is.
    fn rewind(&mut self, ids: &[u32]) -> (usize, Option<usize>) {
        let held = self.conversation.tokens();
        let common = held.iter().zip(ids).take_while(|(a, b)| a == b).count();
        let mark = (common < held.len()).then_some(common);
        if mark.is_some() {
            self.conversation.truncate(common);
        }
        (common, mark)
    }
}

impl Author for ModelAuthor {
    fn encode(&self, pieces: &[Piece]) -> Result<Option<Vec<u32>>> {
        let tokenizer = self.model.tokenizer();
        let mut ids = Vec::new();
        for piece in pieces {
            ids.extend(match piece {
                Piece::Control(text) => tokenizer.encode(text)?,
                Piece::Text(text) => tokenizer.encode_plain(text)?,
            });
        }
        Ok(Some(ids))
    }

    fn window(&self) -> Option<usize> {
        Some(self.model.context())
    }

    fn write(
        &mut self,
        request: Request<'_>,
        progress: &mut dyn FnMut(Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Written> {
        let ids = request
            .prompt
            .ids()
            .ok_or_else(|| Error::new(ErrorKind::Failed, "a fragment of the prompt has no token ids"))?;
        let kept = self.kept_grammar(request.grammar);
        let started = Instant::now();
        let total = ids.len();
        let n_restored = match self.conversation.is_empty() {
            true => Some(self.begin(request.prompt, &mut |done, _| progress(Progress::Prefill(done, total)))?),
            false => None,
        };
        let (n_held, mark) = self.rewind(&ids);
        let n_cached = n_restored.unwrap_or(n_held);
        let tokenizer = self.model.tokenizer().clone();
        let grammar = std::thread::scope(|scope| {
            let compiling = kept.is_none().then(|| scope.spawn(|| Grammar::compile(&tokenizer, request.grammar)));
            self.conversation.prefill(&ids[n_held..], &mut |done, total| progress(Progress::Prefill(done, total)))?;
            match (kept, compiling) {
                (Some(grammar), _) => Ok(grammar),
                (None, Some(compiling)) => compiling
                    .join()
                    .map_err(|_| Error::new(ErrorKind::Failed, "compiling the grammar of a program panicked"))?
                    .map_err(Error::from),
                (None, None) => Err(Error::new(ErrorKind::Failed, "no grammar was compiled")),
            }
        })?;
        self.grammar = Some((request.grammar.to_owned(), grammar.clone()));
        let prefill_ms = millis(started);
        let options = GenerateOptions {
            max_tokens: request.max_tokens,
            sampling: self.options.sampling,
            stop_texts: self.stop_texts.clone(),
            logprobs: self.options.full_recording,
            speculate: self.options.speculate,
            ..GenerateOptions::default()
        };
        let started = Instant::now();
        let completion =
            self.conversation.generate(&options, Some(&grammar), &mut |token| progress(Progress::Token(token.text)))?;
        if completion.stop == Stop::Cancelled {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled"));
        }
        let decoded = Decoded {
            n_prompt: ids.len(),
            n_cached,
            mark,
            cut: matches!(completion.stop, Stop::MaxTokens | Stop::ContextFull),
            prefill_ms,
            decode_ms: millis(started),
            ids: completion.tokens,
            forced: completion.forced,
            logprobs: completion.logprobs,
            logprobs_free: completion.logprobs_free,
        };
        Ok(Written { program: completion.text, decoded: Some(decoded) })
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
