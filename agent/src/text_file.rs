//! Reading a text that a person names: a regular file, a pipe such as `<(..)` or standard input.
//!
//! Bounded in bytes, and never stuck: opening does not wait for the other end of a pipe, and reading waits in steps of
//! [`POLL`], so that a cancel ends it. Whether a text is a program or a configuration is the caller's business.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::cancel::{Cancel, POLL};
use crate::error::{Error, ErrorKind, Result};

/// What is read in one go.
const CHUNK_BYTES: usize = 64 << 10;

/// A kind of text, for the limit and the message when it cannot be read.
#[derive(Clone, Copy, Debug)]
pub struct TextFile {
    /// As in "cannot read the script".
    pub what: &'static str,
    /// The most bytes.
    pub max_bytes: usize,
    /// Whose fault it is when it cannot be read.
    pub kind: ErrorKind,
    /// The next step then.
    pub hint: Option<&'static str>,
}

impl TextFile {
    /// Reads the text at `path`.
    ///
    /// # Errors
    /// Of the kind given if it cannot be read, is no UTF-8 or longer than its limit; `Cancelled`.
    pub fn read(&self, path: &Path, cancel: &Cancel) -> Result<String> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let opened = rustix::fs::open(path, flags, Mode::empty());
        let mut file = opened.map(File::from).map_err(|error| self.unreadable(path, &io::Error::from(error)))?;
        self.read_from(&mut file, path, cancel)
    }

    /// Reads the text on standard input.
    ///
    /// # Errors
    /// As [`TextFile::read`].
    pub fn read_stdin(&self, cancel: &Cancel) -> Result<String> {
        self.read_from(&mut Unbuffered(io::stdin().as_fd()), Path::new("-"), cancel)
    }

    fn read_from(&self, source: &mut (impl Read + AsFd), path: &Path, cancel: &Cancel) -> Result<String> {
        let mut bytes = Vec::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            if cancel.is_cancelled() {
                return Err(Error::new(ErrorKind::Cancelled, "cancelled"));
            }
            if !is_ready(source.as_fd()).map_err(|error| self.unreadable(path, &error))? {
                continue;
            }
            match source.read(&mut chunk) {
                Ok(0) => break,
                Ok(n) => bytes.extend_from_slice(&chunk[..n]),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(error) => return Err(self.unreadable(path, &error)),
            }
            if bytes.len() > self.max_bytes {
                let limit = self.max_bytes;
                return Err(self.unreadable(path, &format!("longer than its limit of {limit} bytes")));
            }
        }
        String::from_utf8(bytes).map_err(|_| self.unreadable(path, &"it is no UTF-8 text"))
    }

    fn unreadable(&self, path: &Path, why: &dyn std::fmt::Display) -> Error {
        let error = Error::new(self.kind, format!("cannot read {} ({why}): {}", self.what, path.display()));
        match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// Whether a read would not wait, after at most [`POLL`]. A pipe that nobody has opened for writing yet is not ready, which
/// tells it from one that has ended.
fn is_ready(source: BorrowedFd<'_>) -> io::Result<bool> {
    let wait = Timespec::try_from(POLL).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(&source, PollFlags::IN)], Some(&wait)) {
        Ok(n_ready) => Ok(n_ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Reads past the buffer of standard input, which a poll cannot see.
struct Unbuffered<'a>(BorrowedFd<'a>);

impl Read for Unbuffered<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(self.0, into)?)
    }
}

impl AsFd for Unbuffered<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use expect_test::{Expect, expect};

    use super::*;

    const TEXT: TextFile =
        TextFile { what: "the text", max_bytes: 100_000, kind: ErrorKind::Usage, hint: Some("write one") };

    fn check(content: &[u8], expected: Expect) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("text"), content).unwrap();
        let read = TEXT.read(&folder.path().join("text"), &Cancel::default());
        let shown = read.map_or_else(|error| error.to_string(), |text| format!("{} bytes", text.len()));
        expected.assert_eq(&shown.replace(folder.path().to_str().unwrap(), "FOLDER"));
    }

    #[test]
    fn a_text_is_read_within_its_limit() {
        check(b"hello", expect!["5 bytes"]);
        check(&[b'x'; 100_000], expect!["100000 bytes"]);
        check(
            &[b'x'; 100_001],
            expect![[r#"
            cannot read the text (longer than its limit of 100000 bytes): FOLDER/text
              hint: write one"#]],
        );
        check(
            b"\xff",
            expect![[r#"
            cannot read the text (it is no UTF-8 text): FOLDER/text
              hint: write one"#]],
        );
    }

    #[test]
    fn a_pipe_is_read_as_it_comes_and_a_cancel_ends_the_wait() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || {
                std::thread::sleep(Duration::from_millis(100));
                let mut file = File::options().write(true).open(pipe).unwrap();
                for _ in 0..2 {
                    file.write_all(&[b'x'; 50_000]).unwrap();
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        });
        assert_eq!(TEXT.read(&pipe, &Cancel::default()).unwrap().len(), 100_000);
        writer.join().unwrap();

        let (cancel, started) = (Cancel::default(), Instant::now());
        let from_outside = std::thread::spawn({
            let cancel = cancel.clone();
            move || {
                std::thread::sleep(Duration::from_millis(100));
                cancel.cancel();
            }
        });
        assert_eq!(TEXT.read(&pipe, &cancel).unwrap_err().kind(), ErrorKind::Cancelled);
        assert!(started.elapsed() < Duration::from_secs(10));
        from_outside.join().unwrap();
    }
}
