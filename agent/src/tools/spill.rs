//! Images, sounds and other blobs in results, kept as files: a program and a prompt get the path.
//!
//! The folder lies in the cache and is bounded: the oldest files go when new ones need their room. A file is named by its content, so that
//! the same blob is kept once.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::catalogue::sha256_hex;

/// What all files together may take.
const MAX_BYTES: u64 = 64 << 20;

/// Files in the folder.
const MAX_FILES: usize = 1024;

/// Characters of a digest that name a file.
const NAME_CHARS: usize = 24;

/// Ends of names by what a server says that the content is.
const ENDS: [(&str, &str); 9] = [
    ("image/png", "png"),
    ("image/jpeg", "jpg"),
    ("image/gif", "gif"),
    ("image/webp", "webp"),
    ("image/svg+xml", "svg"),
    ("audio/wav", "wav"),
    ("audio/mpeg", "mp3"),
    ("application/pdf", "pdf"),
    ("application/zip", "zip"),
];

/// The folder.
#[derive(Clone, Debug)]
pub(crate) struct Spill(PathBuf);

impl Spill {
    /// The folder below the cache; it is made when something is first kept.
    pub(crate) fn below(cache: &Path) -> Spill {
        Spill(cache.join("results"))
    }

    /// Keeps a blob that comes as base64; gives its file and its size, or why there is no file.
    pub(crate) fn keep(&self, base64: &str, mime: Option<&str>) -> Result<(PathBuf, usize), String> {
        let bytes = base64::decode(base64).map_err(|error| format!("it is no base64: {error}"))?;
        let end = ENDS.iter().find(|(known, _)| Some(*known) == mime).map_or("bin", |(_, end)| end);
        let digest = sha256_hex([bytes.as_slice()]);
        let path = self.0.join(format!("{}.{end}", digest.get(..NAME_CHARS).unwrap_or(&digest)));
        if !path.exists() {
            self.write(&path, &bytes).map_err(|error| format!("it cannot be kept: {error}"))?;
        }
        Ok((path, bytes.len()))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        fs::create_dir_all(&self.0)?;
        self.make_room(bytes.len() as u64);
        let mut fresh = tempfile::NamedTempFile::new_in(&self.0)?;
        fresh.write_all(bytes)?;
        fresh.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Removes the oldest files until `n_bytes` more fit; one that cannot be removed stays.
    fn make_room(&self, n_bytes: u64) {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter_map(|entry| {
                let metadata = entry.metadata().ok()?;
                Some((metadata.modified().ok()?, metadata.len(), entry.path()))
            })
            .collect();
        files.sort();
        let (mut used, mut n_files) = (files.iter().map(|(_, size, _)| size).sum::<u64>(), files.len());
        for (_, size, path) in files {
            if used.saturating_add(n_bytes) <= MAX_BYTES && n_files < MAX_FILES {
                return;
            }
            if fs::remove_file(path).is_ok() {
                used -= size;
                n_files -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_kept_once_and_the_oldest_make_room() {
        let cache = tempfile::tempdir().unwrap();
        let spill = Spill::below(cache.path());
        let (path, n_bytes) = spill.keep("aGVsbG8=", Some("image/png")).unwrap();
        assert_eq!((fs::read(&path).unwrap(), n_bytes), (b"hello".to_vec(), 5));
        assert_eq!(path.extension().unwrap(), "png");
        assert_eq!(spill.keep("aGVsbG8=", Some("image/png")).unwrap().0, path);
        assert!(spill.keep("not base64!", None).unwrap_err().starts_with("it is no base64"));
        for n in 0..12u8 {
            let blob = base64::encode(vec![n; 6 << 20]);
            spill.keep(&blob, None).unwrap();
        }
        let sizes =
            fs::read_dir(cache.path().join("results")).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
        assert!(sizes.sum::<u64>() <= MAX_BYTES);
        assert!(!path.exists());
    }
}
