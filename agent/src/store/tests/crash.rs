//! `kill -9` at any moment: every acknowledged record is there afterwards.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::*;

const ROUNDS: u8 = 20;
/// Where the child finds the store, and which trajectory it writes.
const CHILD: &str = "MOTE_TEST_CHILD_STORE";

/// Appends until it is killed and says what was acknowledged; does nothing unless it is the child.
#[test]
fn child_that_appends() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let queue = Store::open(Path::new(&path)).unwrap().queue();
    let i = queue.list().unwrap().len() as u8;
    let mut writer = queue.begin(header(i)).unwrap();
    let mut stdout = std::io::stdout().lock();
    for turn_idx in 0.. {
        writer.append(&turn(turn_idx, &noise(turn_idx as usize * 37 % 3_000))).unwrap();
        writeln!(stdout, "acknowledged {i} {turn_idx}").unwrap();
        stdout.flush().unwrap();
    }
}

#[test]
fn acknowledged_records_survive_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mote.db");
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["store::tests::crash::child_that_appends", "--exact", "--nocapture"])
            .env(CHILD, &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.by_ref().map_while(std::result::Result::ok).find(|line| line.starts_with("acknowledged"));
        assert_eq!(first, Some(format!("acknowledged {round} 0")));
        let more = lines.by_ref().map_while(std::result::Result::ok).filter(|line| line.starts_with("acknowledged"));
        let before: Vec<String> = more.take(usize::from(round % 5)).collect();
        sleep(Duration::from_micros(u64::from(round) * 1_357 % 20_000));
        child.kill().unwrap();
        child.wait().unwrap();
        let last = lines.map_while(std::result::Result::ok).filter(|line| line.starts_with("acknowledged")).last();
        let last =
            last.or(before.last().cloned()).map_or(0, |line| line.rsplit(' ').next().unwrap().parse().unwrap_or(0));
        acknowledged.push(last);
    }

    let store = Store::open(&path).unwrap();
    assert!(store.notices().is_empty(), "{:?}", store.notices());
    for (i, &last) in acknowledged.iter().enumerate() {
        let trajectory = store.queue().load(header(i as u8).traj_id).unwrap();
        assert_eq!(trajectory.gaps, []);
        let found: Vec<u32> = trajectory.turns.iter().map(|turn| turn.i).collect();
        assert_eq!(found, (0..found.len() as u32).collect::<Vec<_>>());
        assert!(found.len() as u32 > last, "round {i}: acknowledged {last}, found {}", found.len());
        assert!(found.len() as u32 <= last + 2, "round {i}: acknowledged {last}, found {}", found.len());
    }
    assert!(acknowledged.iter().sum::<u32>() > u32::from(ROUNDS), "the rounds were too short: {acknowledged:?}");
    let counts = store.queue().counts().unwrap();
    assert_eq!((counts.open, counts.crashed), (0, u64::from(ROUNDS)));
    assert_eq!(store.queue().verify().unwrap().n_damages, 0);
}
