//! Progress of long work on stderr: a bar with an estimate for a person who watches, now and then a line for a log.
//!
//! Work that is done within [`QUIET`] shows nothing.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::Out;

/// Shorter work needs no bar; a person starts to wonder after about this time.
const QUIET: Duration = Duration::from_millis(400);

/// How often a log that no person watches gets a line.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Tokens,
    /// A measure that says nothing to a person; its part of the whole is shown.
    Work,
}

/// The progress of one piece of work; dropping it clears the bar.
pub(crate) struct Progress {
    out: Out,
    label: &'static str,
    unit: Unit,
    started: Instant,
    logged: Instant,
    bar: Option<ProgressBar>,
}

impl Progress {
    pub(crate) fn new(out: Out, label: &'static str, unit: Unit) -> Progress {
        let now = Instant::now();
        Progress { out, label, unit, started: now, logged: now, bar: None }
    }

    /// Says how far the work is.
    pub(crate) fn update(&mut self, done: u64, total: u64) {
        if self.out.interactive() {
            if self.bar.is_none() && self.started.elapsed() >= QUIET && done < total {
                self.bar = Some(bar(self.label, self.unit, total, self.started.elapsed()));
            }
            if let Some(bar) = &self.bar {
                bar.set_length(total);
                bar.set_position(done);
            }
        } else if self.logged.elapsed() >= LOG_EVERY && done < total {
            self.logged = Instant::now();
            self.out.message(&log_line(self.label, self.unit, done, total, self.started.elapsed()));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(label: &'static str, unit: Unit, total: u64, elapsed: Duration) -> ProgressBar {
    let template = match unit {
        Unit::Bytes => "{msg} {bar:24} {bytes} of {total_bytes}, {eta} left",
        Unit::Tokens => "{msg} {bar:24} {pos} of {len} tokens, {eta} left",
        Unit::Work => "{msg} {bar:24} {percent}%, {eta} left",
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr())
        .with_style(style)
        .with_message(label)
        .with_elapsed(elapsed)
}

fn log_line(label: &str, unit: Unit, done: u64, total: u64, elapsed: Duration) -> String {
    let mut line = match unit {
        Unit::Bytes => format!("{label}: {done} of {total} bytes"),
        Unit::Tokens => format!("{label}: {done} of {total} tokens"),
        Unit::Work => format!("{label}: {}%", done.saturating_mul(100) / total.max(1)),
    };
    if done > 0 {
        let left = elapsed.as_secs_f64() / done as f64 * total.saturating_sub(done) as f64;
        line.push_str(&format!(", about {left:.0} s left"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_extrapolates_what_is_done() {
        let line = |done| log_line("prefill", Unit::Tokens, done, 400, Duration::from_secs(10));
        assert_eq!(line(100), "prefill: 100 of 400 tokens, about 30 s left");
        assert_eq!(line(0), "prefill: 0 of 400 tokens");
        assert_eq!(log_line("measuring", Unit::Work, 3, 12, Duration::from_secs(3)), "measuring: 25%, about 9 s left");
    }
}
