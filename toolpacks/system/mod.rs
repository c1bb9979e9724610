//! `system`: the state of this machine, from `/proc`, `/sys` and `/var/log` under `CallContext::system_root`.
//!
//! Linux only, no child process, no privilege. What a machine does not have (a sensor, a text log) is said, not guessed.

mod disk;
mod journal;
mod network;
mod process;
mod sensor;

use crate::arguments::Arguments;
use crate::bounds::human_size;
use crate::context::Call;
use crate::{Error, ErrorKind, catalogue, files};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use procfs_core::{FromRead, LoadAverage, Meminfo, ProcResult, Uptime};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Take};
use std::path::PathBuf;

/// A file of `/proc` or `/sys` is read no further.
const MAX_PROC_BYTES: u64 = 1 << 20;

pub(crate) fn call(tool: &str, arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    match tool {
        "disk" => disk::disk(arguments, call),
        "disks" => disk::disks(call),
        "memory" => memory(call),
        "load" => load(call),
        "temperature" => sensor::temperature(call),
        "processes" => process::processes(arguments, call),
        "network" => network::network(call),
        "uptime" => uptime(call),
        "info" => info(call),
        "journal" => journal::journal(arguments, call),
        _ => Err(catalogue::not_built(tool)),
    }
}

/// A place of the machine, or of the folder that simulates one.
fn place(call: &Call<'_>, path: &str) -> PathBuf {
    call.context.system_root.join(path.trim_start_matches('/'))
}

fn open(call: &Call<'_>, path: &str) -> Result<Take<File>, Error> {
    match files::open(&place(call, path), path) {
        Ok(file) => Ok(file.take(MAX_PROC_BYTES)),
        Err(e) if e.kind() == ErrorKind::NotFound => Err(not_told(path)),
        Err(e) => Err(e),
    }
}

fn parsed<T>(call: &Call<'_>, path: &str, parse: impl Fn(Take<File>) -> ProcResult<T>) -> Result<T, Error> {
    parse(open(call, path)?).map_err(|_| Error::new(ErrorKind::Unsupported, format!("unknown form of: {path}")))
}

fn not_told(path: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("this machine does not have: {path}"))
}

/// A short file of `/proc` or `/sys`, trimmed; `None` when it cannot be read, as some sensors cannot.
fn short_text(call: &Call<'_>, path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    open(call, path).ok()?.read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    Some(text).filter(|text| !text.is_empty())
}

fn memory(call: &Call<'_>) -> Result<Value, Error> {
    let found = parsed(call, "/proc/meminfo", Meminfo::from_read)?;
    let available = found.mem_available.unwrap_or(found.mem_free).min(found.mem_total);
    let used = found.mem_total - available;
    let (total_text, available_text) = (human_size(found.mem_total), human_size(available));
    Ok(json!({
        "total_bytes": found.mem_total, "used_bytes": used, "available_bytes": available,
        "total": total_text, "used": human_size(used), "available": available_text,
        "used_percent": percent(used, found.mem_total),
        "swap_total_bytes": found.swap_total, "swap_used_bytes": found.swap_total.saturating_sub(found.swap_free),
        "text": format!("{available_text} of {total_text} memory are available"),
    }))
}

fn load(call: &Call<'_>) -> Result<Value, Error> {
    let found = parsed(call, "/proc/loadavg", LoadAverage::from_read)?;
    let n_cpus = n_cpus(call);
    let [one, five, fifteen] = [found.one, found.five, found.fifteen].map(|x| round(f64::from(x), 100.0));
    Ok(json!({
        "one": one, "five": five, "fifteen": fifteen, "n_cpus": n_cpus,
        "percent": round(one * 100.0 / n_cpus.max(1) as f64, 10.0),
        "text": format!("load {one}, {five}, {fifteen} on {n_cpus} CPUs"),
    }))
}

fn uptime(call: &Call<'_>) -> Result<Value, Error> {
    let found = parsed(call, "/proc/uptime", Uptime::from_read)?;
    let seconds = found.uptime as i64;
    let uptime = spelled(seconds);
    let booted = Timestamp::now()
        .checked_sub(SignedDuration::from_secs(seconds))
        .map_err(|_| Error::new(ErrorKind::Unsupported, "the clock of this machine is out of range"))?
        .to_zoned_datetime(TimeZone::try_system().unwrap_or(TimeZone::UTC))
        .strftime("%Y-%m-%d %H:%M")
        .to_string();
    Ok(json!({
        "seconds": seconds, "uptime": uptime, "booted": booted, "text": format!("up for {uptime}, since {booted}"),
    }))
}

fn info(call: &Call<'_>) -> Result<Value, Error> {
    let hostname = short_text(call, "/proc/sys/kernel/hostname").unwrap_or_else(|| "unknown".to_owned());
    let kernel = short_text(call, "/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
    let release = short_text(call, "/etc/os-release").or_else(|| short_text(call, "/usr/lib/os-release"));
    let os = release.as_deref().and_then(|text| field(text, "PRETTY_NAME", '=')).unwrap_or_else(|| "Linux".to_owned());
    let board = short_text(call, "/proc/device-tree/model").map(|model| model.trim_end_matches('\0').to_owned());
    let cpuinfo = short_text(call, "/proc/cpuinfo").unwrap_or_default();
    let cpu = ["model name", "Model", "Hardware"].iter().find_map(|name| field(&cpuinfo, name, ':')).or(board);
    let (n_cpus, architecture) = (n_cpus(call), std::env::consts::ARCH);
    let cpu_text = cpu.as_ref().map_or(String::new(), |cpu| format!(" ({cpu})"));
    Ok(json!({
        "hostname": hostname, "os": os, "kernel": kernel, "architecture": architecture, "cpu": cpu, "n_cpus": n_cpus,
        "text": format!("{hostname}: {os}, Linux {kernel}, {architecture}, {n_cpus} CPUs{cpu_text}"),
    }))
}

/// The value behind `name` in lines of `name<separator>value`, without quotes.
fn field(text: &str, name: &str, separator: char) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(separator)?;
        (key.trim() == name).then(|| value.trim().trim_matches('"').to_owned())
    })
}

fn n_cpus(call: &Call<'_>) -> usize {
    let cpuinfo = short_text(call, "/proc/cpuinfo").unwrap_or_default();
    cpuinfo.lines().filter(|line| line.starts_with("processor")).count().max(1)
}

/// `3 days 4 hours`: the two biggest units.
fn spelled(seconds: i64) -> String {
    let parts = [
        (seconds / 86_400, "day"),
        (seconds / 3600 % 24, "hour"),
        (seconds / 60 % 60, "minute"),
        (seconds % 60, "second"),
    ];
    let words = parts.iter().filter(|(n, _)| *n > 0).take(2);
    let words: Vec<String> = words.map(|(n, unit)| format!("{n} {unit}{}", if *n == 1 { "" } else { "s" })).collect();
    if words.is_empty() { "0 seconds".to_owned() } else { words.join(" ") }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { round(part as f64 * 100.0 / whole as f64, 10.0) }
}

fn round(x: f64, steps: f64) -> f64 {
    (x * steps).round() / steps
}
