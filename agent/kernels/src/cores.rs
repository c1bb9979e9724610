//! Which CPUs the threads of a pool run on: where a machine has fast and slow cores, only the fast ones.
//!
//! All threads share one set, within which the system moves them: a thread bound to one core would wait for whatever else
//! runs there. Where all cores are alike, or the system does not tell, or there are fewer fast ones than threads, nothing
//! is bound. A set that this process may not leave (a cgroup's, `taskset`'s) is respected.

#[cfg(target_os = "linux")]
use rustix::thread::CpuSet;

/// A core is fast if it has at least so many tenths of the capacity of the fastest one: efficiency cores have less, the
/// better clocked ones among equal cores don't make the others slow.
const FAST_TENTHS: u64 = 8;

/// The CPUs to bind threads to; none if they may stay where they are.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy)]
pub(crate) struct Cores(Option<CpuSet>);

#[cfg(target_os = "linux")]
impl Cores {
    /// For a pool of so many threads.
    pub(crate) fn detect(threads: usize) -> Self {
        let Ok(allowed) = rustix::thread::sched_getaffinity(None) else { return Self::ALL };
        let capacities: Vec<(usize, u64)> = (0..CpuSet::MAX_CPU)
            .filter(|cpu| allowed.is_set(*cpu))
            .map_while(|cpu| capacity(cpu).map(|capacity| (cpu, capacity)))
            .collect();
        let known_all = capacities.len() == allowed.count() as usize;
        let fast = if known_all { fast_ones(&capacities, threads) } else { None };
        Self(fast.map(|cpus| {
            let mut set = CpuSet::new();
            cpus.into_iter().for_each(|cpu| set.set(cpu));
            set
        }))
    }

    /// Any CPU.
    pub(crate) const ALL: Self = Self(None);

    /// Binds the calling thread; a system that refuses leaves it where it is, where it is as correct, but slower.
    pub(crate) fn bind_this_thread(&self) {
        if let Some(set) = &self.0 {
            rustix::thread::sched_setaffinity(None, set).unwrap_or_default();
        }
    }
}

/// Elsewhere nothing is bound.
#[cfg(not(target_os = "linux"))]
#[derive(Clone, Copy)]
pub(crate) struct Cores;

#[cfg(not(target_os = "linux"))]
impl Cores {
    pub(crate) const ALL: Self = Self;

    pub(crate) fn detect(_threads: usize) -> Self {
        Self
    }

    pub(crate) fn bind_this_thread(&self) {}
}

/// What Linux tells of a CPU: the capacity that its scheduler reckons with (ARM), else the highest frequency.
#[cfg(target_os = "linux")]
fn capacity(cpu: usize) -> Option<u64> {
    ["cpu_capacity", "cpufreq/cpuinfo_max_freq"].into_iter().find_map(|name| {
        let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/{name}")).ok()?;
        text.trim().parse().ok()
    })
}

/// The fast ones of CPUs and their capacities; none if all are, or if they are fewer than the threads.
pub(crate) fn fast_ones(capacities: &[(usize, u64)], threads: usize) -> Option<Vec<usize>> {
    let largest = capacities.iter().map(|(_, capacity)| *capacity).max()?;
    let is_fast = |capacity: u64| u128::from(capacity) * 10 >= u128::from(largest) * u128::from(FAST_TENTHS);
    let fast: Vec<usize> = capacities.iter().filter(|(_, capacity)| is_fast(*capacity)).map(|(cpu, _)| *cpu).collect();
    (fast.len() < capacities.len() && fast.len() >= threads).then_some(fast)
}
