//! `mote doctor`: what this machine has and lacks.

use serde::Serialize;

use crate::cli::Globals;
use crate::doctor::{self, Check, Level};
use crate::error::Result;

/// The exit code when something is so wrong that `mote run` cannot work.
const BROKEN: u8 = 1;

#[derive(Serialize)]
struct Report {
    status: Level,
    checks: Vec<Check>,
}

pub(crate) fn run(globals: &Globals) -> Result<u8> {
    let checks = doctor::examine(&globals.home, &globals.cancel);
    let status = checks.iter().map(|check| check.status).max().unwrap_or(Level::Ok);
    let code = if status == Level::Error { BROKEN } else { 0 };
    if globals.out.json() {
        globals.out.object(&Report { status, checks })?;
    } else {
        for check in &checks {
            globals.out.line(&line(check))?;
        }
    }
    Ok(code)
}

fn line(check: &Check) -> String {
    let status = match check.status {
        Level::Ok => "ok",
        Level::Warning => "warning",
        Level::Error => "error",
    };
    let mut text = format!("{status:<8} {}: {}", check.name, check.found);
    if let Some(fix) = &check.fix {
        text.push_str(&format!("\n         fix: {fix}"));
    }
    text
}
