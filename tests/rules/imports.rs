//! Who may import whom, between packages and between the modules of `mote`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::source;
use crate::tree;

/// A package, the workspace packages it may depend on, and those only its tests may depend on.
const PACKAGES: [(&str, &[&str], &[&str]); 10] = [
    ("mote-kernels", &[], &[]),
    ("mote-script", &[], &[]),
    ("mote-script-fuzz", &["mote-script"], &[]),
    ("mote-script-bench", &["mote-script"], &[]),
    ("mote-trajectory", &[], &[]),
    ("mote-model", &["mote-kernels"], &[]),
    ("mote-model-fuzz", &["mote-model"], &[]),
    ("mote-toolpacks", &[], &["mote-script"]),
    ("mote", &["mote-kernels", "mote-model", "mote-script", "mote-toolpacks", "mote-trajectory"], &[]),
    ("mote-tests", &[], &[]),
];

/// An outside package (or the start of its name) and the packages that may depend on it.
const OUTSIDE: [(&str, &[&str]); 6] = [
    ("tract-", &["mote-model"]),
    ("memmap2", &["mote-model", "mote"]),
    ("tokenizers", &["mote-model"]),
    ("rusqlite", &["mote", "mote-toolpacks"]),
    ("rmcp", &["mote"]),
    ("tokio", &["mote"]),
];

/// A module of `mote` and the modules it knows nothing of.
const MODULES: [(&str, &[&str]); 7] = [
    ("agent/src/error.rs", &["bundles", "cli", "context", "session", "store", "tools"]),
    ("agent/src/home.rs", &["bundles", "cli", "context", "session", "store", "tools"]),
    ("agent/src/bundles.rs", &["cli", "context", "session", "store", "tools"]),
    ("agent/src/store", &["cli", "context", "session", "tools"]),
    ("agent/src/tools", &["cli", "context", "session"]),
    ("agent/src/context", &["cli", "session", "store"]),
    ("agent/src/session", &["cli"]),
];

#[test]
fn packages_import_only_whom_they_may() {
    let mut faults = Vec::new();
    for (path, manifest) in manifests() {
        let name = manifest["package"]["name"].as_str().unwrap().to_owned();
        let Some((_, normal, dev)) = PACKAGES.iter().find(|(package, ..)| *package == name) else {
            faults.push(format!("{}: a new package: add it to ARCHITECTURE.md and to this rule", path.display()));
            continue;
        };
        for (table, allowed) in [
            ("dependencies", normal.to_vec()),
            ("build-dependencies", normal.to_vec()),
            ("dev-dependencies", [*normal, *dev].concat()),
        ] {
            for dependency in names(&manifest, table) {
                let ours = PACKAGES.iter().any(|(package, ..)| *package == dependency);
                if ours && !allowed.contains(&dependency.as_str()) {
                    faults.push(format!("{name} may not import {dependency}"));
                }
                if table != "dev-dependencies"
                    && let Some((_, users)) = OUTSIDE.iter().find(|(start, _)| dependency.starts_with(start))
                    && !users.contains(&name.as_str())
                {
                    faults.push(format!("{name} may not use {dependency}: only {} may", users.join(", ")));
                }
            }
        }
    }
    tree::none("who may import whom is broken", &faults);
}

#[test]
fn modules_know_only_what_lies_below_them() {
    let mut faults = Vec::new();
    for source in source::program() {
        for (place, unknown) in MODULES {
            for module in
                unknown.iter().filter(|module| source.is_in(place) && source.names(&format!("crate::{module}")))
            {
                faults.push(format!("{} may not use crate::{module}", source.path.display()));
            }
        }
    }
    tree::none("a module imports from above", &faults);
}

#[test]
fn every_package_takes_lints_and_licence_from_the_workspace() {
    let mut faults = Vec::new();
    for (path, manifest) in manifests() {
        let from_workspace = |value: Option<&toml::Value>| {
            value.and_then(|value| value.get("workspace")).and_then(toml::Value::as_bool) == Some(true)
        };
        if !from_workspace(manifest.get("lints")) {
            faults.push(format!("{}: no `[lints] workspace = true`", path.display()));
        }
        if !from_workspace(manifest["package"].get("license")) {
            faults.push(format!("{}: no `license.workspace = true`", path.display()));
        }
    }
    tree::none("a package goes its own way", &faults);
}

fn manifests() -> Vec<(PathBuf, toml::Value)> {
    tree::files(&["Cargo.toml"])
        .into_iter()
        .map(|path| (path.clone(), tree::read(&path).parse::<toml::Table>().map(toml::Value::Table).unwrap()))
        .filter(|(_, manifest)| manifest.get("package").is_some())
        .collect()
}

fn names(manifest: &toml::Value, table: &str) -> Vec<String> {
    let mut found: BTreeMap<String, ()> = BTreeMap::new();
    let mut tables: Vec<&toml::Value> = manifest.get(table).into_iter().collect();
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        tables.extend(targets.values().filter_map(|target| target.get(table)));
    }
    for entries in tables.into_iter().filter_map(toml::Value::as_table) {
        found.extend(entries.keys().map(|name| (name.clone(), ())));
    }
    found.into_keys().collect()
}
