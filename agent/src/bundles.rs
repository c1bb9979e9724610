//! The store of bundles: one folder a bundle below [`Home::bundles`], and a file that names the default one.
//!
//! A bundle gets its name from its manifest. A folder appears under its name whole or not at all: it is written beside
//! its place and renamed into it. What a bundle holds is the business of `mote_model`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::home::Home;

/// The file in the bundles folder that holds the name of the default bundle.
const DEFAULT_FILE: &str = "default";

/// The file that makes a folder a bundle.
const MANIFEST_FILE: &str = "manifest.json";

/// The longest name of a bundle, in bytes: a common limit of file systems less room for a suffix.
const MAX_NAME_BYTES: usize = 200;

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

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::new(ErrorKind::Configuration, format!("cannot read {}: {error}", path.display()))
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
