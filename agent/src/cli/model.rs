//! `mote model`: the store of bundles, and what one model says without an agent.

use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use mote_model::{Bundle, Manifest};
use serde::Serialize;

use crate::bundles::{self, Part};
use crate::cli::load::{LoadArgs, memory_json};
use crate::cli::progress::{Progress, Unit};
use crate::cli::{Globals, bench, generate};
use crate::error::{Error, ErrorKind, Result};

#[derive(Subcommand, Debug)]
pub(crate) enum ModelCommand {
    /// Verify a bundle and copy it into the store
    Import(ImportArgs),
    /// List the imported bundles; `*` marks the default
    List,
    /// Show what a model is, and what memory it takes
    Show(LoadArgs),
    /// Read every file of a bundle and compare its hash
    Verify(VerifyArgs),
    /// Measure load, prefill and decode
    Bench(bench::BenchArgs),
    /// Continue a prompt, without an agent
    Generate(generate::GenerateArgs),
}

#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// The folder of a bundle
    path: PathBuf,
    /// Make it the default even if there is one
    #[arg(long)]
    default: bool,
}

#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// Name in the store, or path of a folder; the default bundle if not given
    model: Option<String>,
}

pub(crate) fn run(command: ModelCommand, globals: &Globals) -> Result<u8> {
    match command {
        ModelCommand::Import(arguments) => import(&arguments, globals),
        ModelCommand::List => list(globals),
        ModelCommand::Show(arguments) => show(&arguments, globals),
        ModelCommand::Verify(arguments) => verify(&arguments, globals),
        ModelCommand::Bench(arguments) => bench::run(&arguments, globals),
        ModelCommand::Generate(arguments) => generate::run(&arguments, globals),
    }
}

fn import(arguments: &ImportArgs, globals: &Globals) -> Result<u8> {
    let mut copy = Progress::new(globals.out, "copying", Unit::Bytes);
    let mut verify = Progress::new(globals.out, "verifying", Unit::Bytes);
    let imported = bundles::import(&globals.home, &arguments.path, arguments.default, &mut |part, done, total| {
        match part {
            Part::Copy => copy.update(done, total),
            Part::Verify => verify.update(done, total),
        }
        go_on(globals)
    })?;
    drop((copy, verify));
    if globals.out.json() {
        globals.out.object(&serde_json::json!({
            "name": imported.name, "folder": imported.folder, "bytes": imported.bytes, "default": imported.is_default
        }))?;
    } else {
        let role = if imported.is_default { ", the default" } else { "" };
        globals.out.line(&format!("imported{role}: {}, {} MiB", imported.name, imported.bytes >> 20))?;
    }
    Ok(0)
}

/// One row of the list; a bundle that cannot be opened has an `error` in place of what it is.
#[derive(Serialize)]
struct Row {
    name: String,
    default: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<About>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct About {
    id: String,
    family: String,
    quantization: String,
    license: String,
    context_length: usize,
    bytes: u64,
}

fn list(globals: &Globals) -> Result<u8> {
    let default = bundles::default_name(&globals.home)?;
    let row = |name: String| {
        let opened = Bundle::open(&globals.home.bundles().join(&name));
        let is_default = default.as_ref() == Some(&name);
        match opened {
            Ok(bundle) => Row { name, default: is_default, about: Some(about(&bundle)), error: None },
            Err(error) => Row { name, default: is_default, about: None, error: Some(error.message().to_owned()) },
        }
    };
    let rows: Vec<Row> = bundles::names(&globals.home)?.into_iter().map(row).collect();
    if globals.out.json() {
        globals.out.object(&serde_json::json!({ "bundles": rows }))?;
        return Ok(0);
    }
    if rows.is_empty() {
        globals.out.message(
            "no bundle is imported yet\n  hint: run `make model` in the source tree, or `mote model import PATH`",
        );
    }
    for row in rows {
        let mark = if row.default { '*' } else { ' ' };
        let what = match (row.about, row.error) {
            (Some(about), _) => format!(
                "{}, {}, {} MiB, {} tokens of context, {}",
                about.family,
                about.quantization,
                about.bytes >> 20,
                about.context_length,
                about.license
            ),
            (None, error) => format!("damaged: {}", error.unwrap_or_default()),
        };
        globals.out.line(&format!("{mark} {}: {what}", row.name))?;
    }
    Ok(0)
}

fn about(bundle: &Bundle) -> About {
    let manifest = bundle.manifest();
    About {
        id: bundle.id().to_owned(),
        family: manifest.architecture.family.clone(),
        quantization: manifest.quantization.clone(),
        license: manifest.license.clone(),
        context_length: manifest.context_length,
        bytes: manifest.files.values().map(|record| record.bytes).sum(),
    }
}

/// What the manifest tells: nothing is loaded, so that a model that does not fit is shown too.
fn show(arguments: &LoadArgs, globals: &Globals) -> Result<u8> {
    let folder = arguments.folder(globals)?;
    let manifest = Manifest::read(&folder)?;
    let memory = arguments.options(&manifest)?.memory_need(&manifest)?;
    if globals.out.json() {
        globals.out.object(&serde_json::json!({
            "name": manifest.name, "folder": folder, "family": manifest.architecture.family,
            "quantization": manifest.quantization, "license": manifest.license, "source": manifest.source,
            "context_length": manifest.context_length, "architecture": manifest.architecture,
            "memory": memory_json(&memory)
        }))?;
        return Ok(0);
    }
    let line = |name: &str, value: &dyn std::fmt::Display| globals.out.line(&format!("{name:<10} {value}"));
    let a = &manifest.architecture;
    line("model", &manifest.name)?;
    line("folder", &folder.display())?;
    line("family", &a.family)?;
    line("shape", &format!("{} layers of {}, vocabulary {}", a.layers, a.hidden, a.vocab))?;
    line("weights", &manifest.quantization)?;
    line("license", &manifest.license)?;
    line("context", &format!("{} of {} tokens", memory.context, manifest.context_length))?;
    line("memory", &memory)?;
    Ok(0)
}

fn verify(arguments: &VerifyArgs, globals: &Globals) -> Result<u8> {
    let folder = bundles::resolve(&globals.home, arguments.model.as_deref())?;
    let bundle = Bundle::open(&folder)?;
    let mut progress = Progress::new(globals.out, "verifying", Unit::Bytes);
    bundle.verify(&mut |done, total| {
        progress.update(done, total);
        go_on(globals)
    })?;
    drop(progress);
    if globals.out.json() {
        globals.out.object(
            &serde_json::json!({ "name": bundle.manifest().name, "folder": folder, "id": bundle.id(), "ok": true }),
        )?;
    } else {
        globals.out.line(&format!("every file is as the manifest says: {}", folder.display()))?;
    }
    Ok(0)
}

/// Breaks off once someone pressed Ctrl-C.
pub(crate) fn go_on(globals: &Globals) -> ControlFlow<()> {
    if globals.cancel.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// The error of work that was broken off.
pub(crate) fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "cancelled")
}
