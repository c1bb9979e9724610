//! Opens files that are regular: the opening of a pipe would wait for its other end.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The file at `path`; [`io::ErrorKind::InvalidInput`] where there is something else.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    File::open(path)
}
