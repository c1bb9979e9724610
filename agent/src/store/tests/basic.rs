//! The queue and the notes on a good day.

use expect_test::expect;
use mote_toolpacks::{Note, Notes as _};
use mote_trajectory::{Feedback, MAX_RECORD_BYTES, Timestamp, Trajectory, Verdict};

use super::*;

#[test]
fn a_trajectory_comes_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let records = sample();
    let store = Store::open(&folder.path().join("deep/mote.db")).unwrap();
    let id = {
        let Record::Opened(header) = &records[0] else { panic!("the first record is the header") };
        let mut writer = store.queue().begin(header.clone()).unwrap();
        records[1..10].iter().for_each(|record| writer.append(record).unwrap());
        let Record::Sealed { outcome, .. } = &records[10] else { panic!("record 10 seals") };
        let chain = writer.seal(outcome.clone()).unwrap();
        assert_eq!(chain.prev_digest.0, [0; 32]);
        assert!(writer.append(&records[1]).is_err());
        assert!(writer.seal(outcome.clone()).is_err());
        writer.id()
    };
    drop(store);

    let store = Store::open(&folder.path().join("deep/mote.db")).unwrap();
    records[11..].iter().for_each(|record| store.queue().annotate(id, record).unwrap());
    let loaded = store.queue().load(id).unwrap();
    let mut expected = Trajectory::assemble(records).unwrap();
    expected.outcome.bytes_written = loaded.outcome.bytes_written;
    expected.chain = loaded.chain;
    assert_eq!(loaded, expected);
    assert!(loaded.outcome.bytes_written.value().is_some_and(|&n| n > 500));
    assert_eq!(store.queue().verify().unwrap(), Verification { trajectories: 1, records: 14, ..Default::default() });
}

#[test]
fn trajectories_are_chained_in_the_order_of_sealing() {
    let folder = tempfile::tempdir().unwrap();
    let queue = Store::open(&folder.path().join("mote.db")).unwrap().queue();
    let mut first = queue.begin(header(1)).unwrap();
    let mut second = queue.begin(header(2)).unwrap();
    let second = second.seal(outcome(None)).unwrap();
    let first = first.seal(outcome(None)).unwrap();
    assert_eq!(first.prev_digest, second.self_digest);
}

#[test]
fn ids_are_found_by_their_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let queue = Store::open(&folder.path().join("mote.db")).unwrap().queue();
    let mut said_all = said(&queue.find("last").unwrap_err(), folder.path());
    for i in [8, 9, 200] {
        queue.begin(header(i)).unwrap();
    }
    assert_eq!(queue.find("last").unwrap(), header(200).traj_id);
    assert_eq!(queue.find("68").unwrap(), header(200).traj_id);
    assert_eq!(queue.find(&header(9).traj_id.to_string()).unwrap(), header(9).traj_id);
    for text in ["0", "", "XYZ", "ü"] {
        said_all += &said(&queue.find(text).unwrap_err(), folder.path());
    }
    said_all += &said(&queue.load(header(1).traj_id).unwrap_err(), folder.path());
    expect![[r#"
        Failed: queue is empty
          hint: run a task: mote run ".."
        Failed: id fits 2 trajectories: 0
          hint: give more of it: 09144GJ289144GJ289144GJ289, 081040G2081040G2081040G208
        Failed: no such trajectory: 
          hint: `mote queue list` shows them; `last` is the newest
        Failed: no such trajectory: XYZ
          hint: `mote queue list` shows them; `last` is the newest
        Failed: no such trajectory: ü
          hint: `mote queue list` shows them; `last` is the newest
        Failed: no such trajectory: 01040G2081040G2081040G2081
    "#]]
    .assert_eq(&said_all);
}

#[test]
fn what_does_not_fit_is_refused_with_limit_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("mote.db")).unwrap();
    let limits = Limits { trajectory_bytes: 10_000, ..Limits::default() };
    let mut writer = store.queue_within(limits).begin(header(1)).unwrap();
    let mut said_all = said(&writer.append(&turn(0, &"x".repeat(MAX_RECORD_BYTES))).unwrap_err(), folder.path());
    writer.append(&turn(0, &noise(8_000))).unwrap();
    said_all += &said(&writer.append(&turn(1, &noise(8_000))).unwrap_err(), folder.path());
    writer.append(&turn(1, "short")).unwrap();
    let notes = store.notes();
    let refused = [notes.put(&"k".repeat(201), "text"), notes.put("key", &"x".repeat(70_000))];
    refused.into_iter().for_each(|refused| said_all += &format!("{}\n", refused.unwrap_err()));
    writer.seal(outcome(None)).unwrap();
    assert_eq!(store.queue().load(writer.id()).unwrap().turns.len(), 2);
    expect![[r#"
        Failed: record too large: limit 1048576 bytes, used 1048609
        Failed: too many bytes of a trajectory: limit 10000, used 13699
          hint: end the task: what was recorded is kept
        limit reached, bytes of a note's key: limit 200, used 201
        hint: shorten it, or delete notes that are not needed
        limit reached, bytes of a note: limit 65536, used 70000
        hint: shorten it, or delete notes that are not needed
    "#]]
    .assert_eq(&said_all);
}

#[test]
fn an_open_trajectory_belongs_to_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("mote.db")).unwrap();
    let queue = store.queue();
    let id = queue.begin(header(1)).unwrap().id();
    assert_eq!(queue.list().unwrap()[0].state, State::Open);
    let note = Feedback { at: Timestamp::now(), verdict: Verdict::Good, text: None };
    assert!(queue.annotate(id, &Record::Feedback(note.clone())).is_err());
    let owner = format!("UPDATE trajectories SET owner = '{}'", super::super::owner::named(1).unwrap());
    store.run(|connection| connection.execute(&owner, []).map(drop)).unwrap();
    let mut said_all = said(&queue.resume(id).unwrap_err(), folder.path());

    abandon(&store);
    assert_eq!(queue.list().unwrap()[0].state, State::Crashed);
    let mut writer = queue.resume(id).unwrap();
    writer.append(&turn(0, "again")).unwrap();
    writer.seal(outcome(None)).unwrap();
    said_all += &said(&queue.resume(id).unwrap_err(), folder.path());
    queue.annotate(id, &Record::Feedback(note.clone())).unwrap();
    let loaded = queue.load(id).unwrap();
    assert_eq!((loaded.turns.len(), loaded.feedback), (1, vec![note]));
    expect![[r#"
        TryAgain: trajectory is written by another process: 01040G2081040G2081040G2081
          hint: wait for the other mote to end
        Failed: trajectory is sealed already: 01040G2081040G2081040G2081
    "#]]
    .assert_eq(&said_all);
}

#[test]
fn what_teaches_least_is_dropped_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("mote.db")).unwrap();
    let fill = |i: u8, success: Option<Option<bool>>| {
        let mut writer = store.queue().begin(header(i)).unwrap();
        writer.append(&turn(0, &noise(20_000))).unwrap();
        if let Some(success) = success {
            writer.seal(outcome(success)).unwrap();
        }
    };
    fill(1, None);
    abandon(&store);
    fill(2, Some(Some(true)));
    fill(3, Some(Some(false)));
    fill(4, Some(None));
    fill(5, Some(Some(true)));
    fill(6, Some(Some(true)));
    let note = Feedback { at: Timestamp::now(), verdict: Verdict::Bad, text: None };
    store.queue().annotate(header(2).traj_id, &Record::Feedback(note)).unwrap();
    let mut order = Vec::new();
    for quota_bytes in [100_000, 80_000, 60_000, 40_000, 20_000, 0] {
        let before = store.queue().list().unwrap();
        let id = store.queue_within(Limits { quota_bytes, ..Limits::default() }).begin(header(9)).unwrap().id();
        let after = store.queue().list().unwrap();
        order.extend(before.iter().filter(|entry| !after.contains(entry)).map(|entry| entry.id.to_bytes()[0]));
        store.run(|db| db.execute("DELETE FROM trajectories WHERE id = ?1", [id.to_bytes()]).map(drop)).unwrap();
        store.run(|db| db.execute("DELETE FROM records WHERE key / ?1 > 6", [record::MAX_RECORDS]).map(drop)).unwrap();
    }
    assert_eq!(order, [5, 6, 4, 3, 1, 2]);
    let counts = store.queue().counts().unwrap();
    assert_eq!((counts.open, counts.sealed, counts.crashed, counts.dropped, counts.n_bytes), (0, 0, 0, 6, 0));
}

#[test]
fn notes_last() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mote.db");
    let notes = Store::open(&path).unwrap().notes();
    notes.put("garden", "water the Ümlaut plant").unwrap();
    notes.put("door", "green").unwrap();
    notes.put("door", "blue").unwrap();
    drop(notes);
    let notes = Store::open(&path).unwrap().notes();
    let note = |key: &str, text: &str| Note { key: key.to_owned(), text: text.to_owned() };
    assert_eq!(notes.get("door").unwrap().as_deref(), Some("blue"));
    assert_eq!(notes.search("ümlaut", 10).unwrap(), [note("garden", "water the Ümlaut plant")]);
    assert_eq!(notes.search("", 1).unwrap(), [note("door", "blue")]);
    assert!(notes.delete("door").unwrap());
    assert!(!notes.delete("door").unwrap());
    assert_eq!(notes.get("door").unwrap(), None);
}
