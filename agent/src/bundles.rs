//! The store of bundles: one folder a bundle below [`Home::bundles`], and a file that names the default one.
//!
//! A bundle gets its name from its manifest. A folder appears under its name whole or not at all: it is written beside
//! its place and renamed into it. What a bundle holds is the business of `mote_model`.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use mote_model::Bundle;

use crate::error::{Error, ErrorKind, Result};
use crate::home::Home;
use crate::machine;

/// The file in the bundles folder that holds the name of the default bundle.
const DEFAULT_FILE: &str = "default";

/// The file that makes a folder a bundle.
const MANIFEST_FILE: &str = "manifest.json";

/// The longest name of a bundle, in bytes: a common limit of file systems less room for a suffix.
const MAX_NAME_BYTES: usize = 200;

/// Starts the name of a folder that is being written; what a crash leaves behind starts with it too.
const UNFINISHED: &str = ".import-";

/// What is read, written and checked for a cancel in one go: a huge page, for which the page cache then keeps one folio.
const COPY_CHUNK_BYTES: usize = 2 << 20;

const WHOLE_BUNDLE_HINT: &str =
    "give the folder of a whole bundle, as model-export writes it: manifest.json and the files that it names";

/// A part of an import, for the one who shows progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Files are copied into the store.
    Copy,
    /// The copies are read again and hashed.
    Verify,
}

/// A bundle that is now in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Its name in the store.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Bytes of its files, the manifest not counted.
    pub bytes: u64,
    /// Whether it is the default now.
    pub is_default: bool,
}

/// Copies the bundle in `source` into the store under the name of its manifest, and verifies the copy. It becomes the
/// default if there is none yet or `as_default` asks for it. `progress` hears bytes done and total, and may break off.
///
/// A bundle that is there already with the same manifest is replaced, which mends a damaged copy.
///
/// # Errors
/// `Configuration` if the bundle is damaged, has a name that no folder may have, or another one has its name; `TryAgain` if the
/// disk is full; `Cancelled`. The store is then as it was.
pub fn import(
    home: &Home,
    source: &Path,
    as_default: bool,
    progress: &mut dyn FnMut(Part, u64, u64) -> ControlFlow<()>,
) -> Result<Imported> {
    let bundle = Bundle::open(source).map_err(|error| match error.kind() {
        mote_model::ErrorKind::Missing => Error::from(error).with_hint(WHOLE_BUNDLE_HINT),
        _ => error.into(),
    })?;
    let name = bundle.manifest().name.clone();
    if !is_name(&name) {
        return Err(Error::new(
            ErrorKind::Configuration,
            format!("the manifest's name cannot name a folder: {name:?}"),
        )
        .with_hint("export the bundle again with a --name of letters, digits, `.`, `_` and `-`"));
    }
    let folder = home.bundles().join(&name);
    if let Ok(present) = Bundle::open(&folder)
        && present.id() != bundle.id()
    {
        return Err(Error::new(
            ErrorKind::Configuration,
            format!("another bundle is imported under this name: {name}"),
        )
        .with_hint(format!("export this one with another --name, or remove {}", folder.display())));
    }
    let files: Vec<(&str, u64)> =
        bundle.manifest().files.iter().map(|(name, record)| (name.as_str(), record.bytes)).collect();
    let bytes = files.iter().map(|(_, bytes)| bytes).sum();
    fs::create_dir_all(home.bundles()).map_err(|error| unwritable(&home.bundles(), &error))?;
    need_room(&home.bundles(), bytes)?;

    let unfinished = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempdir_in(home.bundles())
        .map_err(|error| unwritable(&home.bundles(), &error))?;
    let mut done = 0;
    for (file, _) in files.iter().chain(&[(MANIFEST_FILE, 0)]) {
        copy(&source.join(file), &unfinished.path().join(file), &mut |n_bytes| {
            done += n_bytes;
            progress(Part::Copy, done.min(bytes), bytes)
        })?;
    }
    Bundle::open(unfinished.path())?.verify(&mut |done, total| progress(Part::Verify, done, total))?;
    put_in_place(unfinished, &folder)?;

    let is_default = as_default || default_name(home)?.is_none();
    if is_default {
        set_default(home, &name)?;
    }
    Ok(Imported { name, folder, bytes, is_default })
}

fn need_room(folder: &Path, bytes: u64) -> Result<()> {
    match machine::free_disk(folder) {
        Some(free) if free < bytes => Err(Error::new(
            ErrorKind::TryAgain,
            format!("not enough free disk for the bundle, in bytes: needs {bytes}, free {free}"),
        )
        .with_hint(NO_ROOM_HINT)),
        _ => Ok(()),
    }
}

fn copy(from: &Path, to: &Path, progress: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<()> {
    if std::fs::metadata(from).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Error::new(ErrorKind::Configuration, format!("not a regular file: {}", from.display())));
    }
    let mut source = File::open(from).map_err(|error| unreadable(from, &error))?;
    let mut target = File::create_new(to).map_err(|error| unwritable(to, &error))?;
    let mut chunk = vec![0; COPY_CHUNK_BYTES];
    loop {
        let n_bytes = source.read(&mut chunk).map_err(|error| unreadable(from, &error))?;
        if n_bytes == 0 {
            return target.sync_all().map_err(|error| unwritable(to, &error));
        }
        target.write_all(&chunk[..n_bytes]).map_err(|error| unwritable(to, &error))?;
        if progress(n_bytes as u64).is_break() {
            return Err(Error::new(ErrorKind::Cancelled, "cancelled: nothing was imported"));
        }
    }
}

/// Gives a finished folder its name. A folder that has it goes away only once the new one is complete on disk.
fn put_in_place(unfinished: tempfile::TempDir, folder: &Path) -> Result<()> {
    let failed = |error: io::Error| unwritable(folder, &error);
    let store = folder.parent().unwrap_or(folder);
    sync_folder(unfinished.path()).map_err(failed)?;
    if folder.exists() {
        let old = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(store).map_err(failed)?;
        fs::rename(folder, old.path().join("old")).map_err(failed)?;
    }
    fs::rename(unfinished.path(), folder).map_err(failed)?;
    let _moved = unfinished.keep();
    sync_folder(store).map_err(failed)
}

fn set_default(home: &Home, name: &str) -> Result<()> {
    let folder = home.bundles();
    let write = || -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&folder)?;
        writeln!(file, "{name}")?;
        file.as_file().sync_all()?;
        file.persist(folder.join(DEFAULT_FILE)).map_err(|error| error.error)?;
        sync_folder(&folder)
    };
    write().map_err(|error| unwritable(&folder.join(DEFAULT_FILE), &error))
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The folder of the bundle that `model` means: a path (with a separator in it), else a name in the store, else a folder
/// of that name here; without `model` the default of the store.
///
/// # Errors
/// `Configuration` with the next step if there is no such bundle. Whether its content is right is not looked at.
pub fn resolve(home: &Home, model: Option<&str>) -> Result<PathBuf> {
    match model {
        Some(text) => named(home, text),
        None => match default_name(home)? {
            Some(name) => named(home, &name),
            None => Err(Error::new(ErrorKind::Configuration, "no model: no bundle is imported yet").with_hint(
                "run `make model` in the source tree, or `mote model import PATH` with the folder of a bundle",
            )),
        },
    }
}

fn named(home: &Home, text: &str) -> Result<PathBuf> {
    let stored = home.bundles().join(text);
    let candidates = if is_name(text) { vec![stored, PathBuf::from(text)] } else { vec![PathBuf::from(text)] };
    if let Some(found) = candidates.into_iter().find(|folder| folder.join(MANIFEST_FILE).is_file()) {
        return Ok(found);
    }
    let names = names(home)?;
    let hint = if names.is_empty() {
        "give the folder of a bundle, or import one with `mote model import PATH`".to_owned()
    } else {
        format!("imported bundles: {}", names.join(", "))
    };
    Err(Error::new(ErrorKind::Configuration, format!("no such bundle: {text}")).with_hint(hint))
}

/// The names of the imported bundles, sorted.
///
/// # Errors
/// `Configuration` if the folder cannot be read; a folder that does not exist holds no bundles.
pub fn names(home: &Home) -> Result<Vec<String>> {
    let folder = home.bundles();
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(unreadable(&folder, &error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(&folder, &error))?;
        if let Some(name) = entry.file_name().to_str()
            && is_name(name)
            && entry.path().join(MANIFEST_FILE).is_file()
        {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// The name of the default bundle, if one was chosen.
///
/// # Errors
/// `Configuration` if the file that holds it cannot be read or holds something else.
pub fn default_name(home: &Home) -> Result<Option<String>> {
    let file = home.bundles().join(DEFAULT_FILE);
    match fs::read_to_string(&file) {
        Ok(text) if is_name(text.trim()) => Ok(Some(text.trim().to_owned())),
        Ok(_) => Err(Error::new(ErrorKind::Configuration, format!("not the name of a bundle in: {}", file.display()))
            .with_hint("choose the default again with `mote model import --default PATH`, or remove the file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(&file, &error)),
    }
}

/// Whether `text` may name a bundle: a plain folder name that no path and no hidden or temporary folder can have.
fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME_BYTES
        && text != DEFAULT_FILE
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
}

const NO_ROOM_HINT: &str = "free some space, or set MOTE_HOME to a folder on another file system";

fn unwritable(path: &Path, error: &io::Error) -> Error {
    let message = format!("cannot write ({error}): {}", path.display());
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Error::new(ErrorKind::TryAgain, message).with_hint(NO_ROOM_HINT)
        }
        _ => Error::new(ErrorKind::Configuration, message)
            .with_hint("check that the state folder can be written, or set MOTE_HOME to another one"),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Configuration, format!("cannot read ({error}): {}", path.display()))
        .with_hint("check that the state folder belongs to you, or set MOTE_HOME to another one")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home_with(names: &[&str], default: Option<&str>) -> (tempfile::TempDir, Home) {
        let root = tempfile::tempdir().unwrap();
        let home = Home::at(root.path());
        for name in names {
            fs::create_dir_all(home.bundles().join(name)).unwrap();
            fs::write(home.bundles().join(name).join(MANIFEST_FILE), "{}").unwrap();
        }
        if let Some(default) = default {
            fs::write(home.bundles().join(DEFAULT_FILE), default).unwrap();
        }
        (root, home)
    }

    #[test]
    fn the_default_is_what_the_file_names() {
        let (_root, home) = home_with(&["a", "b"], Some("b\n"));
        assert_eq!(resolve(&home, None).unwrap(), home.bundles().join("b"));
        assert_eq!(resolve(&home, Some("a")).unwrap(), home.bundles().join("a"));
    }

    #[test]
    fn a_path_is_taken_as_it_is() {
        let (_root, home) = home_with(&["a"], None);
        let path = home.bundles().join("a");
        assert_eq!(resolve(&home, path.to_str()).unwrap(), path);
    }

    #[test]
    fn what_is_missing_is_said_with_the_next_step() {
        let (_root, empty) = home_with(&[], None);
        expect_test::expect![[r"
            no model: no bundle is imported yet
              hint: run `make model` in the source tree, or `mote model import PATH` with the folder of a bundle"]]
        .assert_eq(&resolve(&empty, None).unwrap_err().to_string());

        let (_root, home) = home_with(&["a", "b"], Some("gone"));
        expect_test::expect![[r"
            no such bundle: gone
              hint: imported bundles: a, b"]]
        .assert_eq(&resolve(&home, None).unwrap_err().to_string());
    }

    #[test]
    fn names_leave_out_what_is_no_bundle() {
        let (_root, home) = home_with(&["b", "a", ".import-1"], Some("a"));
        fs::create_dir(home.bundles().join("empty")).unwrap();
        assert_eq!(names(&home).unwrap(), ["a", "b"]);
    }

    #[test]
    fn a_default_that_is_no_name_is_refused() {
        let (_root, home) = home_with(&["a"], Some("../a"));
        assert_eq!(default_name(&home).unwrap_err().kind(), ErrorKind::Configuration);
    }
}
