//! The pool: each chunk once, whatever the threads, the nesting and the panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::cores::{Cores, fast_ones};
use crate::{ErrorKind, MAX_THREADS, Pool};

fn counted(pool: &Pool, chunks: usize) {
    let counts: Vec<AtomicUsize> = (0..chunks).map(|_| AtomicUsize::new(0)).collect();
    let busy: Vec<AtomicBool> = (0..pool.threads()).map(|_| AtomicBool::new(false)).collect();
    pool.run(chunks, &|chunk, worker| {
        assert!(!busy[worker].swap(true, Ordering::AcqRel));
        counts[chunk].fetch_add(1, Ordering::Relaxed);
        busy[worker].store(false, Ordering::Release);
    });
    assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
}

#[test]
fn each_chunk_runs_once() {
    for threads in [0, 1, 2, 3, 8] {
        let pool = Pool::new(threads).unwrap();
        assert_eq!(pool.threads(), threads.max(1));
        for chunks in [0, 1, 2, 3, 7, 8, 9, 1000] {
            counted(&pool, chunks);
        }
    }
}

#[test]
fn many_small_jobs() {
    let pool = Pool::new(4).unwrap();
    for job in 0..20_000 {
        counted(&pool, job % 7);
    }
}

#[test]
fn jobs_after_sleep() {
    let pool = Pool::new(3).unwrap();
    for _ in 0..5 {
        std::thread::sleep(Duration::from_millis(20));
        counted(&pool, 50);
    }
}

#[test]
fn dropped_busy_and_idle() {
    for pause_ms in [0, 0, 0, 20] {
        let pool = Pool::new(4).unwrap();
        counted(&pool, 5);
        std::thread::sleep(Duration::from_millis(pause_ms));
        drop(pool);
    }
}

#[test]
fn nested_runs_are_run_on_the_spot() {
    let (pool, other) = (Pool::new(3).unwrap(), Pool::new(3).unwrap());
    let total = AtomicUsize::new(0);
    pool.run(10, &|_, _| {
        pool.run(10, &|_, worker| {
            assert_eq!(worker, 0);
            other.run(2, &|_, _| {
                total.fetch_add(1, Ordering::Relaxed);
            });
        });
    });
    assert_eq!(total.into_inner(), 200);
}

#[test]
fn callers_take_turns() {
    let pool = Pool::new(3).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..200).for_each(|_| counted(&pool, 9)));
        }
    });
}

#[test]
fn a_panic_is_raised_after_the_other_chunks() {
    for threads in [2, 4] {
        let pool = Pool::new(threads).unwrap();
        for bad in 0..20 {
            let done = Mutex::new(Vec::new());
            let result = catch_unwind(AssertUnwindSafe(|| {
                pool.run(20, &|chunk, _| {
                    assert_ne!(chunk, bad, "chunk {chunk} is bad");
                    done.lock().unwrap().push(chunk);
                });
            }));
            let message = result.unwrap_err().downcast::<String>().unwrap();
            assert!(message.contains(&format!("chunk {bad} is bad")), "{message}");
            assert_eq!(done.into_inner().unwrap().len(), 19);
            counted(&pool, 10);
        }
    }
}

/// A Rockchip RK3588 (four A76, four A55), an Intel CPU with efficiency cores, equal cores of which some clock better.
#[test]
fn threads_run_on_the_fast_cores() {
    let rk3588: Vec<_> = [530, 530, 530, 530, 1024, 1024, 1020, 1020].into_iter().enumerate().collect();
    assert_eq!(fast_ones(&rk3588, 2), Some(vec![4, 5, 6, 7]));
    assert_eq!(fast_ones(&rk3588, 4), Some(vec![4, 5, 6, 7]));
    assert_eq!(fast_ones(&rk3588, 5), None);
    assert_eq!(fast_ones(&rk3588[..4], 2), None);
    let hybrid = [(0, 5_800_000), (1, 5_800_000), (2, 5_600_000), (3, 4_300_000)];
    assert_eq!(fast_ones(&hybrid, 3), Some(vec![0, 1, 2]));
    assert_eq!(fast_ones(&hybrid[..3], 2), None);
    assert_eq!(fast_ones(&[], 2), None);
    assert_eq!(fast_ones(&[(3, u64::MAX), (9, 1)], 1), Some(vec![3]));
}

#[test]
fn a_bound_pool_runs_as_any() {
    for pool in [Pool::new(2).unwrap(), Pool::named("test", 2, Cores::ALL).unwrap()] {
        std::thread::scope(|scope| {
            scope.spawn(|| counted(&pool, 50));
        });
    }
}

#[test]
fn too_many_threads_are_refused() {
    let error = Pool::new(MAX_THREADS + 1).map(|_| ()).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Limit, "threads is over its limit of 256: 257".to_owned())
    );
}

/// Parked workers use no CPU time: less than a fifth of the time that one spinning thread would use.
#[cfg(target_os = "linux")]
#[test]
fn idle_when_idle() {
    let cpu_ticks = || {
        let mut ticks = 0;
        for task in std::fs::read_dir("/proc/self/task").unwrap().flatten() {
            let Ok(stat) = std::fs::read_to_string(task.path().join("stat")) else { continue };
            let Some((name, fields)) = stat.rsplit_once(") ") else { continue };
            if name.ends_with("mote-idle") {
                ticks += fields.split(' ').skip(11).take(2).map(|v| v.parse::<u64>().unwrap()).sum::<u64>();
            }
        }
        ticks
    };
    let pool = Pool::named("mote-idle", 4, Cores::ALL).unwrap();
    counted(&pool, 100);
    std::thread::sleep(Duration::from_millis(50));
    let before = cpu_ticks();
    std::thread::sleep(Duration::from_millis(500));
    assert!(cpu_ticks() - before <= 10);
}
