//! A Rust file as the rules see it: its paths (with `use` groups written out), macros and keywords, without test code.

use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::tree;

/// What the rules ask of a file.
pub(crate) struct Source {
    /// Relative to the top of the repository.
    pub(crate) path: PathBuf,
    /// Every path in the code, such as `std::process::Command::new`; a single name is a path too.
    pub(crate) paths: Vec<String>,
    /// The names of the macros that are called.
    pub(crate) macros: Vec<String>,
}

impl Source {
    /// Whether the file lies in or is `place`, given relative to the top.
    pub(crate) fn is_in(&self, place: &str) -> bool {
        self.path.starts_with(place)
    }

    /// Whether `wanted`, whole segments, stands somewhere in a path.
    pub(crate) fn names(&self, wanted: &str) -> bool {
        let wanted = format!("::{wanted}::");
        self.paths.iter().any(|path| format!("::{path}::").contains(&wanted))
    }
}

/// The Rust files of the program: neither below a `tests`, `bench`, `benches`, `examples` or `fuzz` folder nor named `tests.rs`.
pub(crate) fn program() -> Vec<Source> {
    let is_test = |path: &Path| {
        path.file_name().is_some_and(|name| name == "tests.rs")
            || path
                .iter()
                .any(|part| ["tests", "bench", "benches", "examples", "fuzz"].contains(&part.to_str().unwrap()))
    };
    tree::files(&[".rs"]).into_iter().filter(|path| !is_test(path)).map(|path| read(&path)).collect()
}

fn read(path: &Path) -> Source {
    let text = tree::read(path);
    let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut source = Source { path: path.to_path_buf(), paths: Vec::new(), macros: Vec::new() };
    collect(&without_tests(tokens), "", &mut source);
    source
}

/// Drops every item that follows `#[cfg(test)]`, up to its body or semicolon.
fn without_tests(tokens: TokenStream) -> Vec<TokenTree> {
    let mut kept = Vec::new();
    let mut skipping = false;
    for token in tokens {
        let ends = match &token {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
            TokenTree::Punct(punct) => punct.as_char() == ';',
            _ => false,
        };
        if skipping {
            skipping = !ends;
            continue;
        }
        skipping = matches!(&token, TokenTree::Group(group)
            if group.delimiter() == Delimiter::Bracket && group.stream().to_string().replace(' ', "") == "cfg(test)");
        kept.push(token);
    }
    kept
}

fn collect(tokens: &[TokenTree], prefix: &str, source: &mut Source) {
    let mut path = String::new();
    let mut colons = 0;
    let finish = |path: &mut String, source: &mut Source| {
        if !path.is_empty() {
            source.paths.push(format!("{prefix}{path}"));
            path.clear();
        }
    };
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                match (path.is_empty(), colons) {
                    (false, 2) => path.push_str("::"),
                    _ => finish(&mut path, source),
                }
                path.push_str(&ident.to_string());
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            TokenTree::Group(group) => {
                let inner = without_tests(group.stream());
                if group.delimiter() == Delimiter::Brace && colons == 2 {
                    let below = format!("{prefix}{path}::");
                    path.clear();
                    collect(&inner, &below, source);
                } else {
                    finish(&mut path, source);
                    collect(&inner, "", source);
                }
                colons = 0;
            }
            other => {
                if matches!(other, TokenTree::Punct(punct) if punct.as_char() == '!') && !path.is_empty() {
                    source.macros.push(path.clone());
                }
                finish(&mut path, source);
                colons = 0;
            }
        }
    }
    finish(&mut path, source);
}

#[test]
fn paths_macros_and_test_code_are_told_apart() {
    let text = r#"
        use std::{fs, process::{Command, Stdio}};
        /// unsafe in a comment
        fn f(x: ::tokio::io::Empty) { println!("rusqlite"); a::b!(); let y = c::<D>::e(); }
        #[cfg(test)]
        mod tests { fn g() { unsafe { h() } } }
        fn i() {}
    "#;
    let mut source = Source { path: PathBuf::new(), paths: Vec::new(), macros: Vec::new() };
    collect(&without_tests(text.parse().unwrap()), "", &mut source);
    for present in ["std::fs", "process::Command", "std::process::Stdio", "tokio::io::Empty", "i"] {
        assert!(source.names(present), "{present} in {:?}", source.paths);
    }
    for absent in ["unsafe", "rusqlite", "h", "tokio::Empty"] {
        assert!(!source.names(absent), "{absent} in {:?}", source.paths);
    }
    assert_eq!(source.macros, ["println", "a::b"]);
}
