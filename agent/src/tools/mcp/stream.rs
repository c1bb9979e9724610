//! What a server writes, bounded: no message and no flood between two calls can use more memory or time than stated.
//!
//! A [`BoundedReader`] stands between a server's standard output and rmcp. It fails when one line is longer than
//! [`MAX_MESSAGE_BYTES`] or when more than [`MAX_CALL_BYTES`] came since the last [`StreamState::begin`], and remembers why, and the
//! first line that could be no message, so that the error can say it. An answer that cannot be read is put right or becomes an
//! error of its call: rmcp would skip it, and the call would wait for it. [`drain`] keeps the end of what goes to standard error.

use std::borrow::Cow;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

/// One line of JSON-RPC: far above a result that a program on a board can use, far below its memory.
pub(crate) const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// All that may come for one call, notifications included.
pub(crate) const MAX_CALL_BYTES: usize = 32 << 20;

/// How much is read at a time.
const CHUNK_BYTES: usize = 8 << 10;

/// JSON-RPC's code for what is no JSON.
const PARSE_ERROR: i32 = -32_700;

/// How much of standard error is kept for a message.
const MAX_TAIL_BYTES: usize = 2048;

/// How much of a line that is no message is kept.
const MAX_STRAY_BYTES: usize = 120;

/// What is known of a server's output; shared between the reader and whoever reports.
#[derive(Debug, Default)]
pub(crate) struct StreamState(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    line_bytes: usize,
    call_bytes: usize,
    stray: Vec<u8>,
    stray_open: bool,
    overflow: Option<String>,
}

impl StreamState {
    /// Starts a new allowance of [`MAX_CALL_BYTES`].
    pub(crate) fn begin(&self) {
        self.lock().call_bytes = 0;
    }

    /// Which bound was passed, if one was: then all else that ended is a consequence.
    pub(crate) fn overflow(&self) -> Option<String> {
        self.lock().overflow.clone()
    }

    /// What the server printed that is no message, if it did.
    pub(crate) fn stray(&self) -> Option<String> {
        let seen = self.lock();
        let stray = String::from_utf8_lossy(&seen.stray).trim().to_owned();
        (!stray.is_empty()).then(|| format!("it prints what is no message: {stray:?}"))
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.call_bytes += bytes.len();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.note_stray(piece);
            self.line_bytes += piece.len();
            self.check("message", self.line_bytes, MAX_MESSAGE_BYTES)?;
            if piece.ends_with(b"\n") {
                self.line_bytes = 0;
            }
        }
        self.check("output for one call", self.call_bytes, MAX_CALL_BYTES)
    }

    fn note_stray(&mut self, piece: &[u8]) {
        if self.line_bytes == 0 {
            let first = piece.iter().find(|byte| !byte.is_ascii_whitespace());
            self.stray_open = self.stray.is_empty() && first.is_some_and(|byte| *byte != b'{' && *byte != b'[');
        }
        if self.stray_open {
            let room = MAX_STRAY_BYTES.saturating_sub(self.stray.len());
            self.stray.extend(piece.iter().take(room));
        }
    }

    fn check(&mut self, what: &str, used: usize, limit: usize) -> io::Result<()> {
        if used <= limit {
            return Ok(());
        }
        let text = format!("its {what} is too big, in bytes: limit {limit}, used more");
        self.overflow = Some(text.clone());
        Err(io::Error::new(io::ErrorKind::FileTooLarge, text))
    }
}

/// A reader that passes on what `state` allows, whole lines at a time.
#[derive(Debug)]
pub(crate) struct BoundedReader<R> {
    inner: R,
    state: Arc<StreamState>,
    line: Vec<u8>,
    ready: io::Cursor<Vec<u8>>,
}

impl<R> BoundedReader<R> {
    pub(crate) fn new(inner: R, state: Arc<StreamState>) -> Self {
        BoundedReader { inner, state, line: Vec::new(), ready: io::Cursor::default() }
    }

    fn accept(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.state.lock().take(bytes)?;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
        Ok(())
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.ready.get_mut().extend_from_slice(&readable(&line));
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedReader<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let room = buf.initialize_unfilled();
            let n_bytes = io::Read::read(&mut self.ready, room)?;
            if n_bytes > 0 || room.is_empty() {
                buf.advance(n_bytes);
                return Poll::Ready(Ok(()));
            }
            self.ready = io::Cursor::default();
            let mut bytes = [0; CHUNK_BYTES];
            let mut chunk = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.inner).poll_read(cx, &mut chunk) {
                Poll::Ready(Ok(())) if chunk.filled().is_empty() && self.line.is_empty() => return Poll::Ready(Ok(())),
                Poll::Ready(Ok(())) if chunk.filled().is_empty() => self.end_line(),
                Poll::Ready(Ok(())) => self.accept(chunk.filled())?,
                other => return other,
            }
        }
    }
}

/// What tells an answer from a request; everything else is skipped, however deep it is.
#[derive(Deserialize)]
struct Answer {
    id: Value,
    method: Option<IgnoredAny>,
}

/// A line as rmcp can read it: with marks in the place of bytes that are no UTF-8, or with an error in the place of an answer
/// that is no JSON for it (nested too deep, a number out of range, half a character).
fn readable(line: &[u8]) -> Cow<'_, [u8]> {
    let is_message = line.trim_ascii_start().first().is_some_and(|byte| matches!(byte, b'{' | b'['));
    if !is_message || serde_json::from_slice::<Value>(line).is_ok() {
        return Cow::Borrowed(line);
    }
    let text = String::from_utf8_lossy(line);
    let Err(error) = serde_json::from_str::<Value>(&text) else {
        return Cow::Owned(text.into_owned().into_bytes());
    };
    match serde_json::from_str(&text) {
        Ok(Answer { id, method: None }) => {
            let message = format!("its answer cannot be read as JSON: {error}");
            let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": PARSE_ERROR, "message": message}});
            Cow::Owned(format!("{error}\n").into_bytes())
        }
        _ => Cow::Borrowed(line),
    }
}

/// Reads standard error to its end so that the server never waits for us, and keeps the last lines.
pub(crate) async fn drain(mut stderr: impl AsyncRead + Unpin, tail: Arc<Mutex<Vec<u8>>>) {
    let mut chunk = [0; 1024];
    while let Ok(n_bytes @ 1..) = stderr.read(&mut chunk).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(chunk.get(..n_bytes).unwrap_or_default());
        let excess = tail.len().saturating_sub(MAX_TAIL_BYTES);
        tail.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(line: &[u8]) -> String {
        String::from_utf8(readable(line).into_owned()).unwrap()
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_put_right_or_fails_its_call() {
        assert_eq!(shown(b"{\"id\": 1, \"result\": \"\xff\"}\n"), "{\"id\": 1, \"result\": \"\u{fffd}\"}\n");
        let deep = format!("{{\"id\": 7, \"result\": {}{}}}\n", "[".repeat(5000), "]".repeat(5000));
        let said = "its answer cannot be read as JSON: recursion limit exceeded at line 1 column 147";
        let error = json!({"jsonrpc": "2.0", "id": 7, "error": {"code": -32700, "message": said}});
        assert_eq!(shown(deep.as_bytes()), format!("{error}\n"));
        for same in ["{\"id\": 1, \"method\": \"a\", \"params\": 1e999}\n", "prose\n", "{\n", "{\"id\": 1}\n", ""] {
            assert_eq!(shown(same.as_bytes()), same);
        }
    }

    proptest! {
        #[test]
        fn lines_come_out_as_they_went_in(lines in "([a-z]{0,5}\n){0,9}[a-z]{0,5}", size in 1usize..9) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let mut reader = BoundedReader::new(lines.as_bytes(), Arc::default());
            let mut out = Vec::new();
            runtime.block_on(async {
                let mut chunk = vec![0; size];
                while let Ok(n_bytes @ 1..) = reader.read(&mut chunk).await {
                    out.extend_from_slice(&chunk[..n_bytes]);
                }
            });
            prop_assert_eq!(String::from_utf8(out).unwrap(), lines);
        }
    }
}
