//! The queue against a model of it, over random steps: nothing appended is lost, nothing sealed changes, what is dropped
//! is dropped in order.

use mote_trajectory::{Assembler, Trajectory};
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

#[derive(Debug, Clone)]
enum Step {
    Begin { quota_bytes: u64 },
    Append { which: Index, n_bytes: usize },
    Seal { which: Index, success: Option<bool> },
    Crash,
    Resume { which: Index },
    Corrupt { which: Index, record: Index, byte: Index },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => prop_oneof![Just(1 << 20), 0..30_000u64].prop_map(|quota_bytes| Step::Begin { quota_bytes }),
        8 => (any::<Index>(), 0..3_000usize).prop_map(|(which, n_bytes)| Step::Append { which, n_bytes }),
        3 => (any::<Index>(), any::<Option<bool>>()).prop_map(|(which, success)| Step::Seal { which, success }),
        1 => Just(Step::Crash),
        1 => any::<Index>().prop_map(|which| Step::Resume { which }),
        1 => any::<[Index; 3]>().prop_map(|[which, record, byte]| Step::Corrupt { which, record, byte }),
    ]
}

struct Modelled {
    id: TrajectoryId,
    records: Vec<Option<Record>>,
    state: State,
    /// The order of dropping among those that are not open.
    teaches: u8,
    writer: Option<Writer>,
}

impl Modelled {
    fn assembled(&self) -> Option<Trajectory> {
        let mut assembler = Assembler::default();
        self.records.iter().for_each(|record| match record {
            Some(record) => assembler.push(record.clone()),
            None => assembler.push_corrupt(),
        });
        assembler.finish().ok()
    }
}

struct Tried {
    path: PathBuf,
    store: Store,
    modelled: Vec<Modelled>,
    n_begun: u8,
    n_corrupt: u64,
}

impl Tried {
    fn apply(&mut self, step: Step) {
        match step {
            Step::Begin { quota_bytes } => self.begin(quota_bytes),
            Step::Append { which, n_bytes } => {
                let Some(modelled) = self.pick(which, |one| one.writer.is_some()) else { return };
                let record = turn(modelled.records.len() as u32, &noise(n_bytes));
                modelled.writer.as_mut().unwrap().append(&record).unwrap();
                modelled.records.push(Some(record));
            }
            Step::Seal { which, success } => {
                let Some(modelled) = self.pick(which, |one| one.writer.is_some()) else { return };
                let mut writer = modelled.writer.take().unwrap();
                let mut outcome = outcome(success);
                outcome.bytes_written = Recorded::Value(writer.bytes_written());
                let chain = writer.seal(outcome.clone()).unwrap();
                modelled.records.push(Some(Record::Sealed { outcome, chain }));
                modelled.state = State::Sealed;
                modelled.teaches = match success {
                    Some(true) => 0,
                    None => 1,
                    Some(false) => 2,
                };
            }
            Step::Crash => {
                for modelled in self.modelled.iter_mut().filter(|one| one.state == State::Open) {
                    (modelled.writer, modelled.state) = (None, State::Crashed);
                }
                self.store = Store::open(&self.path).unwrap();
                assert!(self.store.notices().is_empty());
                abandon(&self.store);
            }
            Step::Resume { which } => {
                let queue = self.store.queue();
                let Some(modelled) = self.pick(which, |one| one.state == State::Crashed) else { return };
                modelled.writer = Some(queue.resume(modelled.id).unwrap());
                modelled.state = State::Open;
            }
            Step::Corrupt { which, record, byte } => self.corrupt(which, record, byte),
        }
    }

    fn begin(&mut self, quota_bytes: u64) {
        let sizes = self.store.queue().list().unwrap();
        let size = |id| sizes.iter().find(|entry| entry.id == id).unwrap().n_bytes;
        let mut order: Vec<(u8, TrajectoryId)> = self
            .modelled
            .iter()
            .filter(|one| one.state != State::Open)
            .map(|one| (if one.state == State::Crashed { 3 } else { one.teaches }, one.id))
            .collect();
        order.sort();
        let mut used: u64 = order.iter().map(|&(_, id)| size(id)).sum();
        for (_, id) in order {
            if used > quota_bytes {
                used -= size(id);
                self.modelled.retain(|one| one.id != id);
            }
        }
        let header = header(self.n_begun);
        let limits = Limits { quota_bytes, ..Limits::default() };
        self.modelled.push(Modelled {
            id: header.traj_id,
            records: vec![Some(Record::Opened(header.clone()))],
            state: State::Open,
            teaches: 0,
            writer: Some(self.store.queue_within(limits).begin(header).unwrap()),
        });
        self.n_begun += 1;
    }

    fn corrupt(&mut self, which: Index, record: Index, byte: Index) {
        let store = self.store.clone();
        let Some(modelled) = self.pick(which, |_| true) else { return };
        let at = record.index(modelled.records.len());
        if modelled.records[at].take().is_none() {
            return;
        }
        let id = modelled.id.to_bytes();
        store
            .run(|connection| {
                let (key, mut payload): (i64, Vec<u8>) = connection.query_row(
                    "SELECT key, payload FROM records
                     WHERE key = ?1 + ?2 * (SELECT n FROM trajectories WHERE id = ?3)",
                    (at as i64, record::MAX_RECORDS, id),
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )?;
                let byte = byte.index(payload.len());
                payload[byte] ^= 0x40;
                connection.execute("UPDATE records SET payload = ?1 WHERE key = ?2", (payload, key)).map(drop)
            })
            .unwrap();
        self.n_corrupt += 1;
    }

    fn pick(&mut self, which: Index, wanted: impl Fn(&Modelled) -> bool) -> Option<&mut Modelled> {
        let mut wanted: Vec<&mut Modelled> = self.modelled.iter_mut().filter(|one| wanted(one)).collect();
        if wanted.is_empty() { None } else { Some(wanted.swap_remove(which.index(wanted.len()))) }
    }

    fn check(&self) {
        let listed: Vec<(TrajectoryId, State)> =
            self.store.queue().list().unwrap().iter().rev().map(|entry| (entry.id, entry.state)).collect();
        let modelled: Vec<(TrajectoryId, State)> = self.modelled.iter().map(|one| (one.id, one.state)).collect();
        assert_eq!(listed, modelled);
        for modelled in &self.modelled {
            assert_eq!(self.store.queue().load(modelled.id).ok(), modelled.assembled());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_queue_is_its_model(steps in prop::collection::vec(step(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mote.db");
        let store = Store::open(&path).unwrap();
        let mut tried = Tried { path, store, modelled: Vec::new(), n_begun: 0, n_corrupt: 0 };
        for step in steps {
            tried.apply(step);
            tried.check();
        }
        let corrupt = tried.modelled.iter().flat_map(|one| &one.records).filter(|record| record.is_none()).count() as u64;
        let found = tried.store.queue().verify().unwrap();
        prop_assert!(found.n_damages >= corrupt && (corrupt > 0) == (found.n_damages > 0), "{found:?}");
    }
}
