//! One trajectory with every kind of record and field, the same at every run.

use mote_trajectory::*;

pub(crate) fn number(number: f32) -> Finite {
    Finite::new(number).expect("finite")
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(1_780_000_000_000 + ms).expect("in range")
}

fn digest(of: &str) -> Sha256 {
    Sha256::of(of.as_bytes())
}

pub(crate) fn header() -> Header {
    Header {
        traj_id: "01KR0Q5V00ABCDEFGHJKMNPQRS".parse().expect("an id"),
        task_id: "tokyo-time".to_owned(),
        group_id: Some("group-7".to_owned()),
        created_at: at(0),
        clock_trusted: true,
        device: Device {
            id_hash: digest("device"),
            target: "generic-x86_64".to_owned(),
            arch: "x86_64".to_owned(),
            os: "linux".to_owned(),
            binary_version: "0.1.0".to_owned(),
        },
        policy: Recorded::Value(Policy {
            bundle_sha256: digest("bundle"),
            adapter_sha256: None,
            quantization: "q4_1".to_owned(),
            tokenizer_sha256: digest("tokenizer"),
            template_sha256: Recorded::Absent(Reason::None),
            policy_version: 0,
            generation: 0,
        }),
        sampling: Recorded::Value(Sampling {
            temperature: number(0.7),
            top_p: number(0.95),
            min_p: number(0.0),
            seed: 42,
        }),
        recording: Recording::Light,
        toolspace: Toolspace { catalogue_sha256: Recorded::Value(digest("catalogue")), n_servers: 7, n_tools: 41 },
        mode: Mode::Ptc,
        task: Task {
            query: "What time is it in Tokyo?".to_owned(),
            source: TaskSource::Person,
            reference: None,
            checker: None,
        },
        consent: false,
    }
}

pub(crate) fn program(i: u32) -> Turn {
    Turn {
        spans: vec![
            Span { kind: SpanKind::Reason, start: 0, end: 20 },
            Span { kind: SpanKind::Select, start: 25, end: 33 },
            Span { kind: SpanKind::Act, start: 25, end: 51 },
        ],
        prompt_delta_ids: Recorded::Value(vec![1, 5, 9, 300]),
        mark: Some(128),
        token_ids: Recorded::Value(vec![17, 49_151, 2]),
        forced: Recorded::Value(vec![2]),
        logprobs: Finite::all(&[-0.3, -1.25, 0.0]),
        logprobs_free: Recorded::Absent(Reason::Masked),
        grammar_sha256: Recorded::Value(digest("grammar")),
        loss: true,
        context: Recorded::Value(Context {
            n_tokens: Recorded::Value(640),
            n_cached: Recorded::Value(512),
            prompt_sha256: digest("prompt"),
            fragments: vec![Fragment {
                kind: "shortlist".to_owned(),
                n_tokens: Recorded::Value(120),
                dropped: 2,
                elided: 0,
            }],
        }),
        prefill_ms: Recorded::Value(310),
        decode_ms: Recorded::Value(95),
        ..Turn::new(
            i,
            0,
            Role::Assistant,
            TurnKind::Program,
            "# the zone is named\nt = time.now(zone=\"Asia/Tokyo\")\nprint(t)",
            Reason::NotMeasured,
        )
    }
}

pub(crate) fn call(call_id: u32) -> Call {
    Call {
        call_id,
        parent: None,
        server: "time".to_owned(),
        tool: "now".to_owned(),
        arguments: JsonText::new(r#"{"zone":"Asia/Tokyo","absent":{"\u0000absent":"forged"}}"#).expect("json"),
        valid: true,
        error_class: None,
        started_at: at(405),
        latency_ms: Recorded::default(),
        result: Recorded::default(),
        mutating: false,
        proof_sha256: Recorded::Absent(Reason::None),
    }
}

/// The records of a whole trajectory, in order.
pub(crate) fn records() -> Vec<Record> {
    let mut records = vec![
        Record::Opened(header()),
        Record::Stage(Stage::new(
            0,
            Configuration {
                q: "tell the time in Tokyo".to_owned(),
                sigma: "one program".to_owned(),
                tools: vec!["time.now".to_owned()],
                knowledge: String::new(),
                context_mode: ContextMode::Full,
            },
            0,
        )),
        Record::Selection(Selection {
            turn: 0,
            query_text: "What time is it in Tokyo?".to_owned(),
            rationale: None,
            candidates: vec!["time.now".to_owned(), "time.convert".to_owned()],
            scores: vec![number(0.9), number(0.4)],
            source: SelectionSource::Harness,
            chosen: vec!["time.now".to_owned()],
            gold: None,
            reward: None,
        }),
        Record::Turn(program(0)),
        Record::CallIntent { turn: 0, call: call(1) },
        Record::CallResult(CallEnd {
            turn: 0,
            call_id: 1,
            error_class: None,
            latency_ms: 2,
            result: Recorded::Value(CallResult {
                ok: true,
                bytes: 27,
                truncated: false,
                sha256: digest("result"),
                excerpt: "\"2026-05-28T22:26:40+09:00\"".to_owned(),
                simulated: false,
            }),
            proof_sha256: Recorded::Value(digest("proof")),
        }),
        Record::ProgramEnd(ProgramEnd { turn: 0, vm: VmUse { fuel: 31, bytes: 512, suspensions: 1 } }),
        Record::Turn(Turn::new(
            1,
            0,
            Role::Tool,
            TurnKind::Observation,
            "2026-05-28T22:26:40+09:00",
            Reason::NotGenerated,
        )),
        Record::Turn(Turn::new(2, 0, Role::Assistant, TurnKind::Answer, "22:26 in Tokyo", Reason::Scripted)),
        Record::StageEnd(StageEnd {
            i: 0,
            ended_by: EndedBy::Answer,
            summary: Recorded::Value("told the time".to_owned()),
            request: Some(Request { why: "done".to_owned(), requirements: "none".to_owned() }),
        }),
    ];
    let outcome = Outcome {
        status: Status::Complete,
        success: Recorded::Value(true),
        label_source: LabelSource::Checker,
        answer: Recorded::Value("22:26 in Tokyo".to_owned()),
        n_calls: 1,
        n_prompt_tokens: Recorded::Value(640),
        n_new_tokens: Recorded::Value(3),
        wall_ms: Recorded::Value(420),
        bytes_written: Recorded::Absent(Reason::NotMeasured),
    };
    let mut hasher = ChainHasher::default();
    for record in &records {
        hasher.push(&encode(record).expect("fits"));
    }
    let chain = hasher.seal(Sha256([0; 32]), &outcome).expect("encodes");
    records.extend([
        Record::Sealed { outcome, chain },
        Record::Feedback(Feedback { at: at(60_000), verdict: Verdict::Good, text: Some("right".to_owned()) }),
        Record::Judged(Judgement {
            rubric: vec![Rubric {
                criteria_name: "Names the time".to_owned(),
                criteria_description: "The answer holds the time in Tokyo".to_owned(),
                weight: 10,
            }],
            judge: Judge { model: "judge-30b".to_owned(), prompt_sha256: digest("judge"), scores: vec![number(0.95)] },
            reward: Reward {
                fulfillment: number(0.95),
                appropriateness: number(1.0),
                grounding: number(1.0),
                parameters: number(0.5),
                alpha: [number(0.4), number(0.2), number(0.2), number(0.2)],
                total: number(0.88),
            },
        }),
        Record::Redacted(Redaction { place: "/turns/1/content".to_owned(), kind: "path".to_owned(), n: 1 }),
    ]);
    records
}
