//! `journal`: the last lines of the system log or of the kernel's ring buffer.
//!
//! Read are text logs (`/var/log/syslog` and its like) and `/dev/kmsg`. The binary files of systemd-journald are not: no
//! well-kept reader without a system library exists; where only they are there, the error says so.

use super::place;
use crate::arguments::Arguments;
use crate::bounds::{Rows, shorten};
use crate::context::Call;
use crate::files::{self, Lines};
use crate::{Error, ErrorKind, matcher};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{Seek, SeekFrom};

const SYSTEM_LOGS: [&str; 3] = ["/var/log/syslog", "/var/log/messages", "/var/log/daemon.log"];
const KERNEL_LOGS: [&str; 2] = ["/var/log/kern.log", "/var/log/dmesg"];
/// Journald's own folders, to tell why there is no text log.
const BINARY_LOGS: [&str; 2] = ["/var/log/journal", "/run/log/journal"];
/// Only the end of a long log is read.
const MAX_LOG_BYTES: u64 = 16 << 20;
const MAX_KMSG_BYTES: usize = 4 << 20;
/// The kernel's records are shorter than this.
const KMSG_RECORD_BYTES: usize = 8192;
const MAX_ENTRY_CHARS: usize = 500;

pub(super) fn journal(arguments: &Arguments, call: &Call<'_>) -> Result<Value, Error> {
    let (n_wanted, source) = (arguments.count("lines")?.min(call.context.limits.max_entries), arguments.str("source")?);
    let contains = match arguments.str("contains")? {
        "" => None,
        text => Some(matcher::compile(text, false, true)?),
    };
    let mut last = Last { entries: VecDeque::new(), n_wanted, contains };
    let read_from = read(call, source, &mut last)?;
    let mut rows = Rows::new(call, usize::MAX);
    for entry in last.entries {
        if !rows.push(entry.as_str().into(), &entry) {
            break;
        }
    }
    let (count, truncated) = (rows.len(), rows.truncated());
    let (entries, text) = rows.finish(|| format!("no such line in {read_from}"));
    Ok(json!({"source": read_from, "count": count, "entries": entries, "truncated": truncated, "text": text}))
}

/// The last wanted entries.
struct Last {
    entries: VecDeque<String>,
    n_wanted: usize,
    contains: Option<regex::Regex>,
}

impl Last {
    fn push(&mut self, line: &str) {
        if line.is_empty() || self.contains.as_ref().is_some_and(|regex| !regex.is_match(line)) {
            return;
        }
        self.entries.push_back(shorten(line, MAX_ENTRY_CHARS));
        if self.entries.len() > self.n_wanted {
            self.entries.pop_front();
        }
    }
}

/// Reads the first log there is and says which.
fn read(call: &Call<'_>, source: &str, last: &mut Last) -> Result<&'static str, Error> {
    let mut refused = None;
    let text_logs: &[&str] = if source == "kernel" { &[] } else { &SYSTEM_LOGS };
    let kernel_logs: &[&str] = if source == "system" { &[] } else { &KERNEL_LOGS };
    let attempts = text_logs.iter().chain(kernel_logs).copied();
    let kmsg = (source != "system").then_some("/dev/kmsg");
    let attempts = if source == "kernel" {
        kmsg.into_iter().chain(attempts).collect::<Vec<_>>()
    } else {
        attempts.chain(kmsg).collect()
    };
    for path in attempts {
        let read = if path == "/dev/kmsg" { read_kmsg(call, last) } else { read_text(call, path, last) };
        match read {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) if matches!(e.kind(), ErrorKind::Cancelled | ErrorKind::Limit { .. }) => return Err(e),
            Err(e) => refused = refused.or(Some(e)),
        }
    }
    if let Some(e) = refused {
        return Err(e);
    }
    let binary = BINARY_LOGS.iter().find(|path| place(call, path).is_dir());
    let error = Error::new(ErrorKind::Unsupported, "this machine has no log that can be read");
    Err(match binary {
        Some(path) => error.with_hint(format!(
            "the binary journal in {path} cannot be read; let journald forward to syslog (ForwardToSyslog=yes)"
        )),
        None => error,
    })
}

fn read_text(call: &Call<'_>, path: &str, last: &mut Last) -> Result<(), Error> {
    let failed = |e: std::io::Error| Error::io("read", path, &e);
    let mut file = files::open(&place(call, path), path)?;
    let skipped = file.metadata().map_err(failed)?.len().saturating_sub(MAX_LOG_BYTES);
    file.seek(SeekFrom::Start(skipped)).map_err(failed)?;
    let mut lines = Lines::new(file, path);
    if skipped > 0 {
        lines.next(call)?;
    }
    while let Some(line) = lines.next(call)? {
        last.push(line.trim_end());
    }
    Ok(())
}

/// One `read` gives one record, `EAGAIN` when all are read, `EPIPE` when one was overwritten meanwhile.
fn read_kmsg(call: &Call<'_>, last: &mut Last) -> Result<(), Error> {
    let failed = |e: Errno| Error::io("read", "/dev/kmsg", &e.into());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(place(call, "/dev/kmsg"), flags, Mode::empty()).map_err(failed)?;
    let (mut record, mut bytes_read) = (vec![0; KMSG_RECORD_BYTES], 0);
    while bytes_read < MAX_KMSG_BYTES {
        call.check()?;
        let n = match rustix::io::read(&file, &mut record) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(n) => n,
            Err(Errno::PIPE | Errno::INTR) => {
                bytes_read += 1;
                continue;
            }
            Err(e) => return Err(failed(e)),
        };
        bytes_read += n;
        for line in String::from_utf8_lossy(&record[..n]).lines().filter(|line| !line.starts_with(' ')) {
            last.push(&kernel_line(line));
        }
    }
    Ok(())
}

/// `6,339,5140900,-;text` as `[    5.140900] text`, as `dmesg` writes it.
fn kernel_line(record: &str) -> String {
    let Some((head, text)) = record.split_once(';') else { return record.to_owned() };
    match head.split(',').nth(2).and_then(|micros| micros.parse::<u64>().ok()) {
        Some(micros) => format!("[{:5}.{:06}] {text}", micros / 1_000_000, micros % 1_000_000),
        None => text.to_owned(),
    }
}
