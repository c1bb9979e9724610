//! Fork-join pool that joins on *chunks done*, not on workers: a worker that is not scheduled never delays the caller.
//!
//! One word holds the number of chunks (high half) and the next chunk (low half). Whoever adds one to it and finds the
//! next chunk below the number owns that chunk; its job can't end before the chunk is reported done, so the job may be
//! borrowed. A worker that comes late finds nothing to claim, or a chunk of a later job, which is as good.
//!
//! Whoever waits spins for some microseconds, then yields its core; a worker parks when a gap is longer than those within a
//! decode step: an idle pool uses no CPU. On a busy machine the first yield takes that long. Workers of a pool of two
//! threads or more run on the fast cores ([`crate::cores`]); the pool sets no priorities.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Error;
use crate::cores::Cores;

/// The most threads of one pool; no board has more cores that a memory bus feeds.
pub const MAX_THREADS: usize = 256;

/// The most chunks of one run: half of the low word, so that late claims can't overflow it.
pub const MAX_CHUNKS: usize = 1 << 30;

/// How long a thread keeps its core while it waits: about one chunk of a decode, after which the thread that is waited for
/// may need the core.
const SPIN: Duration = Duration::from_micros(10);

/// How long a worker waits before it parks: longer than the serial work between two matmuls of a decode step.
const AWAKE: Duration = Duration::from_micros(100);

/// Looks between two looks at the clock.
const LOOKS_PER_CLOCK: u32 = 32;

type Job = dyn Fn(usize, usize) + Sync;

/// Threads that run the chunks of one job at a time. The caller of [`Pool::run`] is one of them.
pub struct Pool {
    shared: Arc<Shared>,
    threads: usize,
    callers: Mutex<()>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    claim: Line<Claim>,
    done: Line<AtomicUsize>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    stop: AtomicBool,
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    wake: Condvar,
}

/// What each claim reads: the job comes along with the ticket.
struct Claim {
    ticket: AtomicU64,
    job: UnsafeCell<Option<*const Job>>,
}

/// Two cache lines, which some CPUs fetch together, for what several cores write.
#[repr(align(128))]
struct Line<T>(T);

// SAFETY: `job` is written only while no chunk is live (see `Pool::run`), and read only by owners of a live chunk.
unsafe impl Sync for Shared {}
// SAFETY: the pointer in `job` is to a `Sync` closure, and is used only while its owner waits in `Pool::run`.
unsafe impl Send for Shared {}

thread_local! {
    static IN_CHUNK: Cell<bool> = const { Cell::new(false) };
}

impl Pool {
    /// Starts `threads - 1` workers; with the caller of [`Pool::run`] that is `threads`, in 1..=[`MAX_THREADS`]. Where a
    /// machine has fast and slow cores, the workers are bound to the fast ones; the caller is left where it is.
    pub fn new(threads: usize) -> Result<Self, Error> {
        Self::named("mote-kernels", threads, if threads > 1 { Cores::detect(threads) } else { Cores::ALL })
    }

    /// With a name for the threads, of which the system shows 15 bytes.
    pub(crate) fn named(name: &str, threads: usize, cores: Cores) -> Result<Self, Error> {
        Error::check_limit("threads", MAX_THREADS, threads)?;
        let threads = threads.max(1);
        let shared = Arc::new(Shared {
            claim: Line(Claim { ticket: AtomicU64::new(0), job: UnsafeCell::new(None) }),
            done: Line(AtomicUsize::new(0)),
            panic: Mutex::new(None),
            stop: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            wake: Condvar::new(),
        });
        let mut pool = Self { shared, threads, callers: Mutex::new(()), workers: Vec::with_capacity(threads) };
        for worker in 1..threads {
            let shared = Arc::clone(&pool.shared);
            let builder = std::thread::Builder::new().name(name.to_owned());
            pool.workers.push(
                builder
                    .spawn(move || {
                        cores.bind_this_thread();
                        shared.work(worker);
                    })
                    .map_err(Error::Thread)?,
            );
        }
        Ok(pool)
    }

    /// Threads, the caller's included.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Calls `job(chunk, worker)` once for each chunk in `0..chunks` and returns when all are done.
    ///
    /// `worker` is below [`Pool::threads`], and no two chunks of this run are in progress with the same one. Called from
    /// inside a chunk, of this or another pool, the chunks are run on the spot. Calls from several threads take turns. A
    /// panic in a chunk is raised here, after all other chunks are done. More than [`MAX_CHUNKS`] are run in parts.
    pub fn run(&self, chunks: usize, job: &(dyn Fn(usize, usize) + Sync)) {
        if self.threads == 1 || chunks <= 1 || IN_CHUNK.get() {
            (0..chunks).for_each(|chunk| job(chunk, 0));
            return;
        }
        let mut first = 0;
        while first < chunks {
            let n = MAX_CHUNKS.min(chunks - first);
            self.run_part(n, &|chunk, worker| job(first + chunk, worker));
            first += n;
        }
    }

    fn run_part(&self, chunks: usize, job: &(dyn Fn(usize, usize) + Sync)) {
        let shared = &*self.shared;
        let turn = lock(&self.callers);
        let job: *const (dyn Fn(usize, usize) + Sync + '_) = job;
        // SAFETY: only the lifetime changes; the pointer is used only for live chunks, and this call outlives them.
        let job = unsafe { std::mem::transmute::<*const (dyn Fn(usize, usize) + Sync + '_), *const Job>(job) };
        // SAFETY: no chunk is live: the last run ended when all of its chunks were done, and `turn` keeps others out.
        unsafe { *shared.claim.0.job.get() = Some(job) };
        shared.done.0.store(0, Ordering::Relaxed);
        shared.claim.0.ticket.store((chunks as u64) << 32, Ordering::SeqCst);
        if shared.sleepers.load(Ordering::SeqCst) > 0 {
            drop(lock(&shared.sleep));
            shared.wake.notify_all();
        }
        shared.claim_all(0);
        let mut waiting = Waiting::default();
        while shared.done.0.load(Ordering::Acquire) < chunks {
            waiting.pause();
        }
        let panic = lock(&shared.panic).take();
        drop(turn);
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        drop(lock(&self.shared.sleep));
        self.shared.wake.notify_all();
        for worker in self.workers.drain(..) {
            // A worker catches every panic of a chunk, so that there is nothing to report.
            let _ = worker.join();
        }
    }
}

impl Shared {
    fn has_chunk(&self, order: Ordering) -> bool {
        let ticket = self.claim.0.ticket.load(order);
        (ticket & u64::from(u32::MAX)) < ticket >> 32
    }

    fn claim_all(&self, worker: usize) {
        loop {
            let ticket = self.claim.0.ticket.fetch_add(1, Ordering::AcqRel);
            let (chunks, chunk) = (ticket >> 32, ticket & u64::from(u32::MAX));
            if chunk >= chunks {
                return;
            }
            // SAFETY: this thread owns a live chunk, so that `job` is set, and is not written until `done` is counted.
            let job = unsafe { (*self.claim.0.job.get()).map(|job| &*job) };
            IN_CHUNK.set(true);
            let result = catch_unwind(AssertUnwindSafe(|| job.map(|job| job(chunk as usize, worker))));
            IN_CHUNK.set(false);
            if let Err(panic) = result {
                let mut first = lock(&self.panic);
                if first.is_none() {
                    *first = Some(panic);
                } else {
                    // The drop of a payload may panic too, which would leave this chunk undone for ever.
                    std::mem::forget(panic);
                }
            }
            self.done.0.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn work(&self, worker: usize) {
        let mut waiting = Waiting::default();
        while !self.stop.load(Ordering::Relaxed) {
            if self.has_chunk(Ordering::Acquire) {
                self.claim_all(worker);
                waiting = Waiting::default();
            } else if waiting.elapsed < AWAKE {
                waiting.pause();
            } else {
                self.park();
                waiting = Waiting::default();
            }
        }
    }

    /// Sleeps until a run or the drop of the pool. The order of `sleepers` before the look at the ticket, and of the
    /// ticket before `sleepers` in `run`, means that one of the two sees the other.
    fn park(&self) {
        let mut sleep = lock(&self.sleep);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while !self.has_chunk(Ordering::SeqCst) && !self.stop.load(Ordering::SeqCst) {
            sleep = self.wake.wait(sleep).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One wait of a thread.
#[derive(Default)]
struct Waiting {
    looks: u32,
    since: Option<Instant>,
    elapsed: Duration,
}

impl Waiting {
    /// Lets a moment pass.
    fn pause(&mut self) {
        if self.elapsed < SPIN {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
        self.looks = self.looks.wrapping_add(1);
        if self.elapsed >= SPIN || self.looks.is_multiple_of(LOOKS_PER_CLOCK) {
            self.elapsed = self.since.get_or_insert_with(Instant::now).elapsed();
        }
    }
}

/// None of these mutexes guards anything that a panic could leave half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
