//! A file holds one idea.

use crate::tree;

/// More lines than this are two ideas.
const MAX_LINES: usize = 600;

/// More lines than this are looked at: the test prints them.
const AIM_LINES: usize = 400;

#[test]
fn files_are_short() {
    let mut faults = Vec::new();
    for path in tree::files(&[".rs", ".py"]) {
        match tree::read(&path).lines().count() {
            n_lines if n_lines > MAX_LINES => faults.push(format!("{}: {n_lines} lines", path.display())),
            n_lines if n_lines > AIM_LINES => println!("{}: {n_lines} lines, aim under {AIM_LINES}", path.display()),
            _ => {}
        }
    }
    tree::none(&format!("files over {MAX_LINES} lines"), &faults);
}

#[test]
fn rust_files_open_with_what_they_are_for() {
    let faults: Vec<String> = tree::files(&[".rs"])
        .into_iter()
        .filter(|path| {
            let text = tree::read(path);
            let first = text.lines().find(|line| !line.trim().is_empty());
            !first.is_some_and(|line| line.starts_with("//!"))
        })
        .map(|path| path.display().to_string())
        .collect();
    tree::none("a file without a module doc", &faults);
}
