//! What the store promises, tried: against a model, against `kill -9`, against bad disks and damaged files.

mod basic;
mod crash;
mod faults;
mod model;

use mote_trajectory::{
    CallEnd, Header, LabelSource, Outcome, Reason, Record, Recorded, Role, Status, TrajectoryId, Turn, TurnKind, decode,
};

use super::*;

/// The records of the trajectory that is kept for format version 1, without its call proof, which is made up.
pub(crate) fn sample() -> Vec<Record> {
    let unhex = |line: &str| -> Vec<u8> {
        (0..line.len()).step_by(2).map(|at| u8::from_str_radix(&line[at..at + 2], 16).unwrap()).collect()
    };
    include_str!("../../../trajectory/fixtures/trajectory-v1.hex")
        .lines()
        .map(|line| match decode(&unhex(line)).unwrap() {
            Record::CallResult(end) => {
                Record::CallResult(CallEnd { proof_sha256: Recorded::Absent(Reason::NotMeasured), ..end })
            }
            record => record,
        })
        .collect()
}

/// The sample's header, for trajectory number `i`.
fn header(i: u8) -> Header {
    let Record::Opened(header) = sample().remove(0) else { panic!("the first record is the header") };
    Header { traj_id: TrajectoryId::from_bytes([i; 16]), ..header }
}

fn turn(i: u32, content: &str) -> Record {
    Record::Turn(Turn::new(i, 0, Role::Tool, TurnKind::Observation, content, Reason::NotGenerated))
}

fn outcome(success: Option<bool>) -> Outcome {
    Outcome {
        status: Status::Complete,
        success: Recorded::or_absent(success, Reason::NotJudged),
        label_source: LabelSource::None,
        answer: Recorded::Value("42".to_owned()),
        ..Outcome::crashed(0)
    }
}

/// Text that zstd cannot shorten much.
fn noise(n_bytes: usize) -> String {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'!' + (state % 94) as u8)
    };
    (0..n_bytes).map(|_| next()).collect()
}

/// Makes every unsealed trajectory one that a process which is gone has left behind.
fn abandon(store: &Store) {
    store.run(|connection| connection.execute("UPDATE trajectories SET owner = 'gone 1 1'", []).map(drop)).unwrap();
}

/// The messages of an error and its hint, with the folder's name taken out.
fn said(error: &Error, folder: &Path) -> String {
    format!("{:?}: {error}\n", error.kind()).replace(&folder.display().to_string(), "DIR")
}
