//! What a server writes, bounded: no message and no flood between two calls can use more memory or time than stated.
//!
//! A [`BoundedReader`] stands between a server's standard output and rmcp. It fails when one line is longer than
//! [`MAX_MESSAGE_BYTES`] or when more than [`MAX_CALL_BYTES`] came since the last [`StreamState::begin`], and remembers why, and the
//! first line that could be no message, so that the error can say it. [`drain`] keeps the end of what goes to standard error.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

/// One line of JSON-RPC: far above a result that a program on a board can use, far below its memory.
pub(crate) const MAX_MESSAGE_BYTES: usize = 8 << 20;

/// All that may come for one call, notifications included.
pub(crate) const MAX_CALL_BYTES: usize = 32 << 20;

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

/// A reader that passes on what `state` allows.
#[derive(Debug)]
pub(crate) struct BoundedReader<R> {
    inner: R,
    state: Arc<StreamState>,
}

impl<R> BoundedReader<R> {
    pub(crate) fn new(inner: R, state: Arc<StreamState>) -> Self {
        BoundedReader { inner, state }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for BoundedReader<R> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        match Pin::new(&mut self.inner).poll_read(cx, buf) {
            Poll::Ready(Ok(())) => {
                let result = self.state.lock().take(buf.filled().get(before..).unwrap_or_default());
                Poll::Ready(result)
            }
            other => other,
        }
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
