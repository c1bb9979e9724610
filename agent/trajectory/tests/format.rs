//! The bytes and the JSON form: every record comes back, hostile bytes are refused, released files still open.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod sample;

use expect_test::{expect, expect_file};
use mote_trajectory::*;
use proptest::prelude::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

#[test]
fn bytes_of_version_1_stay() {
    let lines: String = sample::records().iter().map(|record| hex(&encode(record).expect("fits")) + "\n").collect();
    expect_file!["../fixtures/trajectory-v1.hex"].assert_eq(&lines);
}

#[test]
fn a_file_of_version_1_still_opens() {
    let records: Vec<Record> = include_str!("../fixtures/trajectory-v1.hex")
        .lines()
        .map(|line| decode(&unhex(line)).expect("version 1 is read"))
        .collect();
    assert_eq!(records, sample::records());
}

#[test]
fn the_json_form_has_every_field() {
    let trajectory = Trajectory::assemble(sample::records()).expect("a header");
    let json = serde_json::to_string_pretty(&trajectory).expect("serializes") + "\n";
    expect_file!["../fixtures/trajectory-v1.json"].assert_eq(&json);
}

#[test]
fn errors_say_what_to_do() {
    let mut newer = encode(&sample::records()[0]).expect("fits");
    newer[0] = 9;
    let mut longer = encode(&sample::records()[0]).expect("fits");
    longer.push(0);
    let mut turn = sample::program(0);
    turn.content = "x".repeat(MAX_RECORD_BYTES);
    let errors = [
        decode(&newer).expect_err("refused"),
        decode(&longer).expect_err("refused"),
        decode(&[]).expect_err("refused"),
        decode(&[FORMAT_VERSION, 200]).expect_err("refused"),
        decode(&vec![FORMAT_VERSION; MAX_RECORD_BYTES + 1]).expect_err("refused"),
        encode(&Record::Turn(turn)).expect_err("refused"),
        Trajectory::assemble(Vec::new()).expect_err("refused"),
        "nonsense".parse::<TrajectoryId>().expect_err("refused"),
        "nonsense".parse::<Sha256>().expect_err("refused"),
        JsonText::new("{").expect_err("refused"),
    ];
    let messages: String = errors.iter().map(|error| format!("{:?}: {error}\n", error.kind())).collect();
    expect![[r#"
        Version: unknown trajectory format version: 9
        this binary reads version 1; a newer one may read it
        Malformed: malformed record: bytes after its end
        Malformed: malformed record: no bytes
        Malformed: malformed record: Hit the end of buffer, expected more data
        TooLarge: record too large: limit 1048576 bytes, used 1048577
        TooLarge: record too large: limit 1048576 bytes, used 1048727
        NoHeader: trajectory without a header record
        Malformed: malformed trajectory id: nonsense
        Malformed: malformed sha256: nonsense
        Malformed: malformed json text: EOF while parsing an object at line 1 column 1
    "#]]
    .assert_eq(&messages);
}

#[test]
fn numbers_that_are_none_are_absent_and_refused() {
    assert_eq!(Finite::all(&[0.0, f32::NAN]), Recorded::Absent(Reason::NotFinite));
    let bytes = encode(&Record::Selection(Selection {
        turn: 0,
        query_text: String::new(),
        rationale: None,
        candidates: Vec::new(),
        scores: vec![sample::number(1.0)],
        source: SelectionSource::Find,
        chosen: Vec::new(),
        gold: None,
        reward: None,
    }))
    .expect("fits");
    let one = bytes.windows(4).position(|four| four == 1.0f32.to_le_bytes()).expect("the score");
    let mut infinite = bytes;
    infinite[one..one + 4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    assert_eq!(decode(&infinite).expect_err("refused").kind(), ErrorKind::Malformed);
}

#[test]
fn a_chain_shows_what_was_changed() {
    let mut bytes: Vec<Vec<u8>> = sample::records().iter().map(|record| encode(record).expect("fits")).collect();
    let check = |bytes: &[Vec<u8>]| verify(bytes.iter().map(Vec::as_slice)).expect("decodes");
    assert_eq!(check(&bytes), Some(true));
    assert_eq!(check(&bytes[..10]), None);
    bytes.swap(2, 3);
    assert_eq!(check(&bytes), Some(false));
    bytes.swap(2, 3);
    bytes.remove(4);
    assert_eq!(check(&bytes), Some(false));
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,40}", Just("\0absent".to_owned()), Just("\"\\\n".to_owned())]
}

fn numbers() -> impl Strategy<Value = Recorded<Vec<Finite>>> {
    prop::collection::vec(any::<f32>(), 0..20).prop_map(|numbers| Finite::all(&numbers))
}

fn ids() -> impl Strategy<Value = Recorded<Vec<u32>>> {
    prop_oneof![
        prop::collection::vec(any::<u32>(), 0..20).prop_map(Recorded::Value),
        Just(Recorded::Absent(Reason::Masked))
    ]
}

fn record() -> impl Strategy<Value = Record> {
    let arguments = prop::collection::btree_map(text(), text(), 0..4);
    prop_oneof![
        prop::sample::select(sample::records()),
        (any::<u32>(), text(), ids(), ids(), numbers(), numbers(), any::<bool>(), any::<Option<u32>>()).prop_map(
            |(i, content, token_ids, forced, logprobs, logprobs_free, loss, mark)| Record::Turn(Turn {
                token_ids,
                forced,
                logprobs,
                logprobs_free,
                loss,
                mark,
                ..Turn::new(i, i / 2, Role::Assistant, TurnKind::Program, content, Reason::NotMeasured)
            })
        ),
        (0..4u32, 0..4u32, text(), arguments, any::<bool>()).prop_map(|(turn, call_id, tool, arguments, valid)| {
            let arguments = JsonText::from(&serde_json::json!(arguments));
            Record::CallIntent { turn, call: Call { tool, arguments, valid, ..sample::call(call_id) } }
        }),
        (any::<[u8; 16]>(), text(), -377_705_023_201_000..253_402_207_200_999i64).prop_map(|(id, query, ms)| {
            let mut header = sample::header();
            header.traj_id = TrajectoryId::from_bytes(id);
            header.created_at = Timestamp::from_unix_ms(ms).expect("in range");
            header.task.query = query;
            Record::Opened(header)
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(record in record()) {
        prop_assert_eq!(decode(&encode(&record).expect("fits")).expect("decodes"), record);
    }

    #[test]
    fn random_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = decode(&bytes);
        let mut versioned = vec![FORMAT_VERSION];
        versioned.extend(bytes);
        if let Ok(record) = decode(&versioned) {
            prop_assert_eq!(decode(&encode(&record).expect("fits")).expect("decodes"), record);
        }
    }

    #[test]
    fn damaged_records_are_refused_or_read(record in record(), cut in any::<prop::sample::Index>(), flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = encode(&record).expect("fits");
        for (at, byte) in flips {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = decode(&bytes[..cut.index(bytes.len())]);
        if let Ok(record) = decode(&bytes) {
            let trajectory = Trajectory::assemble([Record::Opened(sample::header()), record]).expect("a header");
            prop_assert!(serde_json::to_value(&trajectory).expect("serializes").is_object());
        }
    }

    #[test]
    fn any_order_of_records_assembles_to_json(records in prop::collection::vec(record(), 0..30)) {
        let opened = records.iter().any(|record| matches!(record, Record::Opened(_)));
        match Trajectory::assemble(records) {
            Ok(trajectory) => prop_assert!(serde_json::to_value(&trajectory).expect("serializes").is_object()),
            Err(error) => prop_assert!(!opened && error.kind() == ErrorKind::NoHeader),
        }
    }

    #[test]
    fn ids_and_digests_are_read_as_they_are_written(id in any::<[u8; 16]>(), digest in any::<[u8; 32]>()) {
        let id = TrajectoryId::from_bytes(id);
        prop_assert_eq!(id.to_string().parse::<TrajectoryId>().expect("an id"), id);
        prop_assert_eq!(Sha256(digest).to_string().parse::<Sha256>().expect("a digest"), Sha256(digest));
    }

    #[test]
    fn ids_of_any_text_are_refused_or_read(text in ".{0,30}") {
        let _ = text.parse::<TrajectoryId>();
    }

    #[test]
    fn numbers_in_json_are_the_same_numbers(number in any::<f32>()) {
        if let Some(finite) = Finite::new(number) {
            let json = serde_json::to_value(finite).expect("serializes");
            prop_assert_eq!(json.as_f64().expect("a number") as f32, number);
        }
    }
}
