//! `processes`: what runs, with its memory and CPU share.
//!
//! The CPU share is measured between two readings a moment apart, so that it says what is busy now.

use super::{parsed, place, round};
use crate::arguments::Arguments;
use crate::bounds::{Rows, human_size};
use crate::context::Call;
use crate::{Error, catalogue};
use procfs_core::FromRead;
use procfs_core::process::Stat;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const MAX_PROCESSES: usize = 32_768;
const BETWEEN_READINGS: Duration = Duration::from_millis(200);
const POLL: Duration = Duration::from_millis(20);

pub(super) fn processes(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let (sort, limit, name) =
        (arguments.str("sort")?, arguments.count("limit")?, arguments.str("name")?.to_lowercase());
    let (started, pause) = (Instant::now(), BETWEEN_READINGS.min(call.context.limits.timeout / 4));
    let before: HashMap<i32, u64> = read_all(call)?.iter().map(|stat| (stat.pid, ticks(stat))).collect();
    while started.elapsed() < pause {
        call.check()?;
        std::thread::sleep(POLL);
    }
    let after = read_all(call)?;
    let possible = started.elapsed().as_secs_f64() * rustix::param::clock_ticks_per_second() as f64;
    let cpu = |stat: &Stat| {
        let used = before.get(&stat.pid).map_or(0, |before| ticks(stat).saturating_sub(*before));
        round(used as f64 * 100.0 / possible, 10.0)
    };
    let n_running = after.len();
    let mut found: Vec<(f64, Stat)> = after
        .into_iter()
        .filter(|stat| stat.comm.to_lowercase().contains(&name))
        .map(|stat| (cpu(&stat), stat))
        .collect();
    match sort {
        "memory" => found.sort_by_key(|(_, stat)| (std::cmp::Reverse(stat.rss), stat.pid)),
        "cpu" => found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.pid.cmp(&b.1.pid))),
        "name" => found.sort_by(|a, b| (&a.1.comm, a.1.pid).cmp(&(&b.1.comm, b.1.pid))),
        "pid" => found.sort_by_key(|(_, stat)| stat.pid),
        _ => return Err(catalogue::not_built("processes")),
    }
    let count = found.len();
    let page_bytes = rustix::param::page_size() as u64;
    let mut rows = Rows::new(call, usize::MAX);
    for (cpu, stat) in found.into_iter().take(limit) {
        let bytes = stat.rss.saturating_mul(page_bytes);
        let memory = human_size(bytes);
        let line = format!("{} ({}): {memory}, {cpu:.1}% CPU", stat.comm, stat.pid);
        let row = json!({
            "pid": stat.pid, "name": stat.comm, "memory_bytes": bytes, "memory": memory, "cpu_percent": cpu,
            "state": state(stat.state),
        });
        if !rows.push(row, &line) {
            break;
        }
    }
    let truncated = rows.truncated();
    let (processes, text) = rows.finish(|| format!("no running process has a name with {name}"));
    Ok(json!({
        "count": count, "n_running": n_running, "processes": processes, "truncated": truncated, "text": text,
    }))
}

/// Every process that can be read; one that ends meanwhile is left out.
fn read_all(call: &Call<'_>) -> Result<Vec<Stat>, Error> {
    let entries = std::fs::read_dir(place(call, "/proc")).map_err(|_| super::not_told("/proc"))?;
    let mut found = Vec::new();
    for entry in entries.filter_map(Result::ok).take(MAX_PROCESSES) {
        call.check()?;
        let name = entry.file_name();
        let Some(pid) = name.to_str().filter(|name| name.bytes().all(|b| b.is_ascii_digit())) else { continue };
        found.extend(parsed(call, &format!("/proc/{pid}/stat"), Stat::from_read));
    }
    Ok(found)
}

fn ticks(stat: &Stat) -> u64 {
    stat.utime.saturating_add(stat.stime)
}

fn state(letter: char) -> &'static str {
    match letter {
        'R' => "running",
        'S' | 'I' => "sleeping",
        'D' => "waiting for disk",
        'T' | 't' => "stopped",
        'Z' => "zombie",
        _ => "other",
    }
}
