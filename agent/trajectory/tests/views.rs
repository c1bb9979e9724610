//! The rows that training gets, and prompts rebuilt token for token.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod sample;

use expect_test::expect_file;
use mote_trajectory::*;
use proptest::prelude::*;

#[test]
fn rows_of_every_view() {
    let mut records = sample::records();
    if let Record::Turn(turn) = &mut records[3] {
        turn.mark = None;
        turn.prompt_delta_ids = Recorded::Value((0..640).collect());
    }
    let trajectory = Trajectory::assemble(records).expect("a header");
    let mut text = String::new();
    for view in [View::Rft, View::Kto, View::Ranking, View::Grpo] {
        for mut row in trajectory.rows(view).expect("rows") {
            shorten(&mut row);
            text += &(serde_json::to_string_pretty(&row).expect("text") + "\n");
        }
    }
    expect_file!["../fixtures/views-v1.json"].assert_eq(&text);
}

/// Leaves the first ids of a long prompt, to keep the fixture readable.
fn shorten(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Array(items) if items.len() == 640 => items.truncate(3),
        serde_json::Value::Array(items) => items.iter_mut().for_each(shorten),
        serde_json::Value::Object(fields) => fields.iter_mut().for_each(|(_, value)| shorten(value)),
        _ => {}
    }
}

#[test]
fn a_person_can_label_what_nobody_else_did() {
    let mut records = sample::records();
    let Record::Sealed { outcome, .. } = &mut records[10] else { panic!("record 10 seals") };
    outcome.success = Recorded::Absent(Reason::NotJudged);
    let label = |records: &[Record]| Trajectory::assemble(records.to_vec()).expect("a header").label();
    assert_eq!(label(&records[..11]), None);
    assert_eq!(label(&records), Some((true, LabelSource::Person)));
    let Record::Feedback(feedback) = &mut records[11] else { panic!("record 11 is feedback") };
    feedback.verdict = Verdict::Bad;
    let trajectory = Trajectory::assemble(records).expect("a header");
    assert_eq!(trajectory.rows(View::Rft).expect("rows"), Vec::<serde_json::Value>::new());
    assert_eq!(trajectory.rows(View::Kto).expect("rows")[0]["label"], false);
}

/// What one generated turn's prompt is made of: how much of the context before it stays, in percent, and what is new.
type Step = (u32, Vec<u32>, Vec<u32>);

proptest! {
    #[test]
    fn every_prompt_is_rebuilt_token_for_token(
        steps in prop::collection::vec((0..=100u32, prop::collection::vec(0..50_000u32, 0..20),
            prop::collection::vec(0..50_000u32, 0..10)), 1..12),
    ) {
        let steps: Vec<Step> = steps;
        let mut records = vec![Record::Opened(sample::header())];
        let (mut held, mut prompts) = (Vec::new(), Vec::new());
        for (kept, delta, own) in steps {
            let mark = held.len() * kept as usize / 100;
            let is_cut = mark < held.len();
            held.truncate(mark);
            held.extend(&delta);
            prompts.push(held.clone());
            let i = u32::try_from(records.len()).expect("small") - 1;
            let mut turn = sample::program(i);
            turn.prompt_delta_ids = Recorded::Value(delta);
            turn.mark = is_cut.then_some(u32::try_from(mark).expect("small"));
            turn.token_ids = Recorded::Value(own.clone());
            if let Recorded::Value(context) = &mut turn.context {
                context.n_tokens = Recorded::Value(u32::try_from(held.len()).expect("small"));
            }
            held.extend(own);
            records.push(Record::Turn(turn));
            let observation = Turn::new(i + 1, 0, Role::Tool, TurnKind::Observation, "seen", Reason::NotGenerated);
            records.push(Record::Turn(observation));
            prompts.push(Vec::new());
        }
        let trajectory = Trajectory::assemble(records).expect("a header");
        for turn in &trajectory.turns {
            let rebuilt = trajectory.prompt_ids(turn.i);
            match turn.kind {
                TurnKind::Program => prop_assert_eq!(rebuilt, Recorded::Value(prompts[turn.i as usize].clone())),
                _ => prop_assert_eq!(rebuilt, Recorded::Absent(Reason::NotGenerated)),
            }
        }
    }
}

#[test]
fn a_prompt_that_cannot_be_rebuilt_says_why() {
    let mut records = sample::records();
    let absent = |records: &[Record]| Trajectory::assemble(records.to_vec()).expect("a header").prompt_ids(0);
    assert_eq!(absent(&records), Recorded::Absent(Reason::Corrupt));
    let Record::Turn(turn) = &mut records[3] else { panic!("record 3 is a turn") };
    turn.prompt_delta_ids = Recorded::Absent(Reason::Withheld);
    assert_eq!(absent(&records), Recorded::Absent(Reason::Withheld));
}

#[test]
fn every_text_of_every_record_can_be_replaced() {
    let mut records = sample::records();
    let mut places = Vec::new();
    for record in &mut records {
        record.texts(&mut |place, text| {
            places.push(place.to_owned());
            match text {
                Text::Plain(text) => *text = "gone".to_owned(),
                Text::Json(text) => *text = JsonText::new("\"gone\"").expect("json"),
            }
        });
    }
    let json = serde_json::to_string(&Trajectory::assemble(records).expect("a header")).expect("text");
    for words in ["Tokyo", "22:26", "right", "one program", "Names the time"] {
        assert!(!json.contains(words), "{words} is left in {json}");
    }
    assert!(places.contains(&"/turns/0/calls/1/result/excerpt".to_owned()), "{places:?}");
}
