//! Documents and manifests say what is there.

use std::path::Path;

use regex::Regex;

use crate::tree;

#[test]
fn every_manifest_parses() {
    let mut faults = Vec::new();
    for path in tree::files(&[".toml"]) {
        if let Err(error) = tree::read(&path).parse::<toml::Table>() {
            faults.push(format!("{}: {error}", path.display()));
        }
    }
    for path in tree::files(&[".toml"]).into_iter().filter(|path| path.ends_with("toolpack.toml")) {
        let manifest: toml::Table = tree::read(&path).parse().unwrap();
        if manifest.get("summary").and_then(toml::Value::as_str).is_none_or(|summary| summary.trim().is_empty()) {
            faults.push(format!("{}: no summary", path.display()));
        }
    }
    tree::none("a manifest that does not parse", &faults);
}

#[test]
fn every_link_in_a_document_resolves() {
    let link = Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let fence = Regex::new(r"(?ms)^```.*?^```").unwrap();
    let mut faults = Vec::new();
    for path in tree::files(&[".md"]) {
        let text = tree::read(&path);
        let text = fence.replace_all(&text, "");
        for target in link.captures_iter(&text).map(|found| found.get(1).unwrap().as_str()) {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            if file.contains("://") || file.starts_with("mailto:") {
                continue;
            }
            let full = match file {
                "" => path.clone(),
                file => path.parent().unwrap().join(file),
            };
            if !tree::root().join(&full).exists() {
                faults.push(format!("{}: no such file: {target}", path.display()));
            } else if !anchor.is_empty() && !anchors(&tree::read(&full)).contains(&anchor.to_owned()) {
                faults.push(format!("{}: no such heading: {target}", path.display()));
            }
        }
    }
    tree::none("a link that leads nowhere", &faults);
}

#[test]
fn the_table_of_documents_is_whole() {
    let table = tree::read(Path::new("docs/README.md"));
    let faults: Vec<String> = tree::files(&[".md"])
        .iter()
        .filter(|path| path.parent() == Some(Path::new("docs")))
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .filter(|name| name != "README.md" && !table.contains(&format!("({name})")))
        .collect();
    tree::none("a document that docs/README.md does not list", &faults);
}

#[test]
fn architecture_shows_every_package() {
    let text = tree::read(Path::new("ARCHITECTURE.md"));
    let workspace: toml::Table = tree::read(Path::new("Cargo.toml")).parse().unwrap();
    let faults: Vec<String> = workspace["workspace"]["members"]
        .as_array()
        .unwrap()
        .iter()
        .map(|member| member.as_str().unwrap().to_owned())
        .filter(|member| !text.contains(&format!("`{member}/`")))
        .collect();
    tree::none("a package that ARCHITECTURE.md does not show", &faults);
}

/// The anchors of a document's headings, as the usual renderers make them.
fn anchors(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            line.trim_start_matches('#')
                .trim()
                .to_lowercase()
                .chars()
                .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
                .map(|c| if c == ' ' { '-' } else { c })
                .collect()
        })
        .collect()
}
