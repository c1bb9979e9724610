//! `mote script fmt`: programs in their canonical form.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use mote_script::Limits;
use serde_json::{Value, json};
use similar::TextDiff;

use super::{FAILED, error_json, read};
use crate::cli::Globals;
use crate::error::{Error, ErrorKind, Result};

#[derive(Args, Debug)]
pub(super) struct FmtArgs {
    /// The programs; `-` reads standard input and writes standard output
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Change nothing: show what would change, with exit code 1
    #[arg(long)]
    check: bool,
}

pub(super) fn run(arguments: &FmtArgs, globals: &Globals) -> Result<u8> {
    let mut files = Vec::new();
    let mut code = 0;
    for file in &arguments.files {
        let source = read::source(file, &globals.cancel)?;
        let name = file.display().to_string();
        let mut said = json!({ "file": name });
        match mote_script::canonical(&source, &Limits::default()) {
            Err(error) => {
                globals.out.message(&format!("{name}: {}", error.report(&source).trim_end()));
                said["error"] = error_json(&error);
                code = FAILED;
            }
            Ok(form) => {
                said["changed"] = Value::from(form != source);
                if arguments.check {
                    if form != source {
                        let diff = TextDiff::from_lines(&source, &form);
                        let diff = diff.unified_diff().context_radius(2).header(&name, "canonical").to_string();
                        show(&diff, "diff", &mut said, globals)?;
                        code = FAILED;
                    }
                } else if file == Path::new("-") {
                    show(&form, "text", &mut said, globals)?;
                } else if form != source {
                    replace(file, &form)?;
                }
            }
        }
        files.push(said);
    }
    if globals.out.json() {
        globals.out.object(&json!({ "ok": code == 0, "files": files }))?;
    }
    Ok(code)
}

fn show(text: &str, key: &str, said: &mut Value, globals: &Globals) -> Result<()> {
    if globals.out.json() {
        said[key] = Value::from(text);
        return Ok(());
    }
    globals.out.text(text)
}

/// Puts another text in the place of a file's, as a whole or not at all.
fn replace(file: &Path, text: &str) -> Result<()> {
    let write = || {
        let target = fs::canonicalize(file)?;
        let mut new = tempfile::NamedTempFile::new_in(target.parent().unwrap_or(Path::new(".")))?;
        new.write_all(text.as_bytes())?;
        new.as_file().set_permissions(fs::metadata(&target)?.permissions())?;
        new.as_file().sync_all()?;
        new.persist(&target)?;
        Ok(())
    };
    write().map_err(|error: std::io::Error| {
        Error::new(ErrorKind::Failed, format!("cannot write the program ({error}): {}", file.display()))
    })
}
