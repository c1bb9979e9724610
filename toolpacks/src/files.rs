//! Files as tools may read them: regular ones only, opened without blocking, line by line with bounds.
//!
//! A path is taken as given, relative to the working folder; who may read what is the business of policy and the sandbox.

use crate::context::Call;
use crate::{Error, ErrorKind};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// One call reads no more than this from files, however many.
pub(crate) const MAX_READ_BYTES: u64 = 256 << 20;
/// The rest of a longer line is skipped: no text line of use to a model is longer.
pub(crate) const MAX_LINE_BYTES: usize = 16 << 10;
/// A file with a null byte this early is taken as binary, as grep and git do.
const BINARY_PROBE_BYTES: usize = 8000;

/// `path` seen from the working folder; `~/` is the home folder.
pub(crate) fn resolve(call: &Call<'_>, path: &str) -> PathBuf {
    let home = || std::env::var_os("HOME").filter(|home| !home.is_empty());
    match path.strip_prefix("~/").or(if path == "~" { Some("") } else { None }) {
        Some(rest) => home().map_or_else(|| PathBuf::from(path), |home| Path::new(&home).join(rest)),
        None => call.context.working_dir.join(path),
    }
}

/// Opens a regular file; a pipe, a device or a folder is refused before anything could wait on it.
pub(crate) fn open(path: &Path, shown: &str) -> Result<File, Error> {
    let regular = |metadata: std::io::Result<std::fs::Metadata>| -> Result<(), Error> {
        let kind = metadata.map_err(|e| Error::io("read", shown, &e))?.file_type();
        if kind.is_dir() {
            return Err(Error::invalid(format!("is a folder: {shown}")).with_hint("list it with fs.list(path=..)"));
        }
        if !kind.is_file() {
            return Err(Error::new(ErrorKind::Unsupported, format!("is a device, pipe or socket: {shown}")));
        }
        Ok(())
    };
    regular(std::fs::metadata(path))?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file =
        File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|e| Error::io("read", shown, &e.into()))?);
    regular(file.metadata())?;
    refuse_processes(path, shown)?;
    Ok(file)
}

/// What of a process in `/proc` holds secrets: its environment and its memory.
fn refuse_processes(path: &Path, shown: &str) -> Result<(), Error> {
    let real = std::fs::canonicalize(path).map_err(|e| Error::io("read", shown, &e))?;
    let is_secret = ["environ", "mem", "auxv"].iter().any(|name| real.file_name().is_some_and(|file| file == *name));
    if real.starts_with("/proc") && is_secret {
        let message = format!("is the environment or memory of a process, which may hold secrets: {shown}");
        return Err(Error::new(ErrorKind::Permission, message));
    }
    Ok(())
}

/// The whole of a file of at most `max_bytes`.
pub(crate) fn read_whole(call: &Call<'_>, path: &str, max_bytes: u64) -> Result<Vec<u8>, Error> {
    let file = open(&resolve(call, path), path)?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(|e| Error::io("read", path, &e))?;
    if bytes.len() as u64 > max_bytes {
        return Err(Error::limit("file size in bytes", max_bytes, bytes.len() as u64));
    }
    Ok(bytes)
}

/// The lines of a text file or of a given text.
pub(crate) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    bytes_read: u64,
    n_line_ends: usize,
    cut: bool,
    shown: String,
}

impl Lines<File> {
    /// Opens a text file.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] when it is binary.
    pub(crate) fn open(path: &Path, shown: &str) -> Result<Self, Error> {
        let mut lines = Self::new(open(path, shown)?, shown);
        let start = lines.reader.fill_buf().map_err(|e| Error::io("read", shown, &e))?;
        if start[..start.len().min(BINARY_PROBE_BYTES)].contains(&0) {
            return Err(Error::new(ErrorKind::Unsupported, format!("is a binary file: {shown}"))
                .with_hint("its size and kind: fs.stat(path=..)"));
        }
        Ok(lines)
    }
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(reader: R, shown: &str) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            line: Vec::new(),
            bytes_read: 0,
            n_line_ends: 0,
            cut: false,
            shown: shown.into(),
        }
    }

    /// The same lines behind a pointer, so that a file and a text are of one type.
    pub(crate) fn boxed<'a>(self) -> Lines<Box<dyn Read + 'a>>
    where
        R: 'a,
    {
        let buffered = std::io::Cursor::new(self.reader.buffer().to_vec());
        let reader: Box<dyn Read + 'a> = Box::new(buffered.chain(self.reader.into_inner()));
        Lines {
            reader: BufReader::with_capacity(64 << 10, reader),
            line: self.line,
            bytes_read: 0,
            n_line_ends: 0,
            cut: false,
            shown: self.shown,
        }
    }

    /// Line ends read so far: one less than lines when the last has none.
    pub(crate) fn n_line_ends(&self) -> usize {
        self.n_line_ends
    }

    /// Whether the end of the last line was skipped, because the line is longer than [`MAX_LINE_BYTES`].
    pub(crate) fn cut(&self) -> bool {
        self.cut
    }

    /// Bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes_read
    }

    /// The next line without its end, bytes that are no UTF-8 replaced; `None` after the last.
    pub(crate) fn next(&mut self, call: &Call<'_>) -> Result<Option<String>, Error> {
        self.line.clear();
        self.cut = false;
        let (mut any, mut ended) = (false, false);
        while !ended {
            call.check()?;
            let chunk = self.reader.fill_buf().map_err(|e| Error::io("read", &self.shown, &e))?;
            if chunk.is_empty() {
                break;
            }
            any = true;
            let (part, used) = match chunk.iter().position(|b| *b == b'\n') {
                Some(end) => (&chunk[..end], end + 1),
                None => (chunk, chunk.len()),
            };
            ended = used > part.len();
            self.n_line_ends += usize::from(ended);
            let room = MAX_LINE_BYTES - self.line.len().min(MAX_LINE_BYTES);
            self.cut |= part.len() > room;
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            self.reader.consume(used);
            self.bytes_read += used as u64;
            if self.bytes_read > MAX_READ_BYTES {
                return Err(Error::limit("bytes read", MAX_READ_BYTES, self.bytes_read));
            }
        }
        if !any {
            return Ok(None);
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(Some(String::from_utf8_lossy(&self.line).into_owned()))
    }
}
