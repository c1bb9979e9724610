//! How much of the machine other programs took meanwhile: with as many threads as cores, any other work is felt.

use std::fs;
use std::time::Instant;

use rustix::param::clock_ticks_per_second;

/// Since when, and what the machine had done for others until then.
pub(super) struct OtherLoad {
    started: Instant,
    before: Option<Work>,
}

/// Ticks that all cores worked for others.
struct Work {
    ticks: u64,
    n_cores: usize,
}

impl OtherLoad {
    pub(super) fn start() -> OtherLoad {
        OtherLoad { started: Instant::now(), before: for_others() }
    }

    /// What part of all cores' time others took; none where the system does not tell.
    pub(super) fn part(&self) -> Option<f64> {
        let (now, before) = (for_others()?, self.before.as_ref()?);
        let taken_s = now.ticks.saturating_sub(before.ticks) as f64 / clock_ticks_per_second() as f64;
        Some(taken_s / self.started.elapsed().as_secs_f64() / now.n_cores.max(1) as f64)
    }
}

fn for_others() -> Option<Work> {
    let all = fs::read_to_string("/proc/stat").ok()?;
    let own = fs::read_to_string("/proc/self/stat").ok()?;
    let n_cores = all.lines().filter(|line| line.starts_with("cpu")).count().checked_sub(1)?;
    Some(Work { ticks: busy(&all)?.checked_sub(own_ticks(&own)?)?, n_cores })
}

/// Ticks of all cores in `/proc/stat` that were not idle; what a hypervisor took counts.
fn busy(stat: &str) -> Option<u64> {
    let fields: Vec<u64> = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().flat_map(str::parse).collect();
    let [user, nice, system, _idle, _io, irq, soft_irq, stolen, ..] = fields[..] else { return None };
    Some(user + nice + system + irq + soft_irq + stolen)
}

/// Ticks of user and system time in `/proc/self/stat`. The name in it may hold spaces and parentheses.
fn own_ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_taken_from_their_fields() {
        assert_eq!(busy("cpu  1 2 4 1000 2000 8 16 32 0 0\ncpu0 1"), Some(63));
        assert_eq!(busy("cpu  1 2 3\n"), None);
        let stat = "7 (a ) b) R 1 7 7 0 -1 4194304 100 0 0 0 250 17 3 4 20 0 2 0 9 1 1";
        assert_eq!(own_ticks(stat), Some(267));
        assert_eq!(own_ticks("7 (a"), None);
    }

    #[test]
    fn this_machine_answers() {
        let load = OtherLoad::start();
        assert!(load.part().is_some_and(|part| part >= 0.0));
    }
}
