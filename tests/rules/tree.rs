//! The files of the repository, without what is built or fetched.

use std::path::{Path, PathBuf};

use walkdir::WalkDir;

/// Folders that hold what is built, fetched or made by running.
const NOT_OURS: [&str; 7] = ["target", "dist", ".cache", ".mote", ".venv", "__pycache__", "node_modules"];

/// The top of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf()
}

/// Every file whose name ends in one of `endings`, relative to the top, sorted.
pub(crate) fn files(endings: &[&str]) -> Vec<PathBuf> {
    let root = root();
    let mut found: Vec<PathBuf> = WalkDir::new(&root)
        .into_iter()
        .filter_entry(|entry| {
            let name = entry.file_name().to_str().unwrap();
            entry.depth() == 0 || !(NOT_OURS.contains(&name) || name == ".git")
        })
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| entry.path().strip_prefix(&root).unwrap().to_path_buf())
        .filter(|path| endings.iter().any(|ending| path.to_str().unwrap().ends_with(ending)))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no file ends in {endings:?}: the rules look at the wrong folder");
    found
}

/// The text of a file given relative to the top.
pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Fails with every line of `faults`, if there are any.
pub(crate) fn none(rule: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{rule}\n  {}", faults.join("\n  "));
}
