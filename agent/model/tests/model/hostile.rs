//! Bundles that are broken by accident or on purpose: refused with a message that names the field, and never a panic.

use std::fs;
use std::ops::ControlFlow;

use expect_test::{Expect, expect};
use mote_model::{Bundle, Error, ErrorKind, GenerateOptions, Grammar};
use proptest::prelude::*;

use crate::fixtures::{BUNDLES, Files, fixture, load, prefill};

/// The last part of a message differs from machine to machine where it holds a path.
fn check(files: &Files, expected: &Expect) {
    let dir = files.write();
    let error = load(dir.path()).unwrap_err().to_string();
    expected.assert_eq(&error.replace(&dir.path().display().to_string(), "DIR"));
}

/// An index entry's field replaced by text of the same length, so that the header still holds.
fn with_index(from: &str, to: &str) -> Files {
    assert_eq!(from.len(), to.len());
    Files::read("tiny-llama").replace("weights.bin", from, to).sealed()
}

fn with_header(at: usize, bytes: &[u8]) -> Files {
    let mut files = Files::read("tiny-llama");
    files.file("weights.bin")[at..at + bytes.len()].copy_from_slice(bytes);
    files.sealed()
}

#[test]
fn a_missing_file_is_named() {
    for name in ["manifest.json", "model.onnx", "weights.bin", "tokenizer.json"] {
        let mut files = Files::read("tiny-llama");
        files.0.remove(name);
        let error = load(files.write().path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Missing);
        assert!(error.message().starts_with("no such file: ") && error.message().ends_with(name), "{error}");
    }
}

#[test]
fn a_truncated_file_is_named() {
    for name in ["model.onnx", "weights.bin", "tokenizer.json"] {
        let mut files = Files::read("tiny-llama");
        let bytes = files.file(name).len();
        for keep in [0, 1, bytes / 2, bytes - 1] {
            files.file(name).truncate(keep);
            let error = load(files.write().path()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Truncated);
            assert_eq!(error.message(), format!("{name}: the manifest says {bytes} bytes: {keep}"));
            files = Files::read("tiny-llama");
        }
    }
    let mut files = Files::read("tiny-llama");
    files.file("manifest.json").truncate(200);
    assert_eq!(load(files.write().path()).unwrap_err().kind(), ErrorKind::Truncated);
}

#[test]
fn a_manifest_of_another_kind_is_refused() {
    let llama = || Files::read("tiny-llama");
    let manifest = |from: &str, to: &str| llama().replace("manifest.json", from, to);
    check(
        &manifest("\"format_version\": 1", "\"format_version\": 2"),
        &expect![[r#"
        manifest.json: format_version is not 1: 2
        hint: a newer mote reads this bundle"#]],
    );
    check(
        &manifest("mote-bundle", "other"),
        &expect![[r#"
        manifest.json: format is not mote-bundle: other
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &manifest("\"family\": \"llama\"", "\"family\": \"mamba\""),
        &expect![[r#"
        manifest.json: architecture.family is unknown: mamba
        hint: this build runs the families llama and qwen3"#]],
    );
    check(
        &manifest("\"layers\": 2", "\"layers\": 99999999"),
        &expect![[r#"
        manifest.json: architecture.layers is outside 1 to 512: 99999999
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &manifest("\"kv_heads\": 2", "\"kv_heads\": 3"),
        &expect![[r#"
        manifest.json: architecture.kv_heads does not divide heads: 3
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &manifest("\"head_dim\": 16", "\"head_dim\": 0"),
        &expect![[r#"
        manifest.json: architecture.head_dim is outside 1 to 256: 0
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &manifest("\"hidden\": 64", "\"hidden\": 96"),
        &expect![[r#"
        weights.bin: embed should be 500 x 96: 500 x 64
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &manifest("\"eos\": 2", "\"eos\": 700"),
        &expect![[r#"
        manifest.json: special_tokens: id outside the vocabulary of 500: 700
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &manifest("\"vocab\": 500,", ""),
        &expect![[r#"
        manifest.json cannot be read: missing field `vocab` at line 20 column 3
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &manifest("\"weights.bin\"", "\"../weights.bin\""),
        &expect![[r#"
        manifest.json: files has an unknown name: ../weights.bin
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
}

#[test]
fn a_file_that_was_changed_is_named() {
    for name in ["model.onnx", "tokenizer.json"] {
        let mut files = Files::read("tiny-llama");
        let middle = files.file(name).len() / 2;
        files.file(name)[middle] ^= 1;
        let error = load(files.write().path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::HashMismatch);
        assert!(error.message().starts_with(name), "{error}");
    }
    let mut files = Files::read("tiny-llama");
    files.file("weights.bin")[4097] ^= 1;
    let dir = files.write();
    let error = Bundle::open(dir.path()).unwrap().verify(&mut |_, _| ControlFlow::Continue(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::HashMismatch);
    assert!(error.message().starts_with("weights.bin: sha256 is not "), "{error}");
}

#[test]
fn a_whole_bundle_verifies_and_can_be_cancelled() {
    for name in BUNDLES {
        let bundle = Bundle::open(&fixture(name)).unwrap();
        let mut last = (0, 0);
        bundle
            .verify(&mut |done, total| {
                last = (done, total);
                ControlFlow::Continue(())
            })
            .unwrap();
        assert!(last.0 == last.1 && last.0 > 0);
        assert_eq!(bundle.verify(&mut |_, _| ControlFlow::Break(())).unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(bundle.id().len(), 64);
    }
}

#[test]
fn a_weights_header_out_of_range_is_refused() {
    check(
        &with_header(0, b"X"),
        &expect![[r#"
        weights.bin: header: no magic MOTEWTS
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &with_header(8, &[9]),
        &expect![[r#"
        weights.bin: version is not 1: 9
        hint: a newer mote reads this bundle"#]],
    );
    check(
        &with_header(12, &[0xff; 4]),
        &expect![[r#"
        weights.bin: header: more than 4096 tensors: 4294967295
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &with_header(12, &[1, 0]),
        &expect![[r#"
        weights.bin: index: the header says 1 tensors: 10
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &with_header(16, &[0xff; 8]),
        &expect![[r#"
        weights.bin: header: index lies outside the file: 18446744073709551615 + 906
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &with_header(24, &[0xff; 8]),
        &expect![[r#"
        weights.bin: header: index longer than 4194304 bytes: 18446744073709551615
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &with_header(32, &[0xff; 8]),
        &expect![[r#"
        weights.bin: the header says 18446744073709551615 bytes: 141674
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &with_header(32, &[1, 0, 0, 0]),
        &expect![[r#"
        weights.bin: longer than the 1 bytes its header says: 141674
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &with_header(100, &[1]),
        &expect![[r#"
        weights.bin: header: bytes 40 to 4096 are not zero
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
}

#[test]
fn a_weights_index_that_does_not_hold_is_refused() {
    check(
        &with_index("\"offset\":4096,", "\"offset\":4095,"),
        &expect![[r#"
        weights.bin: embed: offset is not a multiple of 4096: 4095
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &with_index("\"offset\":4096,", "\"offset\":0,   "),
        &expect![[r#"
        weights.bin: embed: overlaps what ends at 4096: 0
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &with_index("\"group\":32", "\"group\":64"),
        &expect![[r#"
        weights.bin: embed: group is not 32: 64
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &with_index("\"name\":\"l0.o\"", "\"name\":\"l1.o\""),
        &expect![[r#"
        weights.bin: index: a name is there twice
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &with_index("\"name\":\"l0.o\"", "\"name\":\"zz.o\""),
        &expect![[r#"
        weights.bin: index: no such tensor: l0.o
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &with_index("\"kind\":\"q4\"", "\"kind\":\"q9\""),
        &expect![[r#"
        weights.bin: index cannot be read: unknown variant `q9`, expected one of `f32`, `q4`, `q4m`, `q8` at line 1 column 118
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &with_index("\"rows\":500", "\"rows\":508"),
        &expect![[r#"
        weights.bin: embed: bytes should be 34816: 34272
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &with_index("\"cols\":64", "\"cols\":63"),
        &expect![[r#"
        weights.bin: embed: cols is not a multiple of 32: 63
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
}

#[test]
fn a_graph_that_does_not_hold_is_refused() {
    let graph = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        Files::read("tiny-llama").replace("model.onnx", from, to).sealed()
    };
    check(
        &graph("QMatMul", "QMatMil"),
        &expect![[r#"
        model.onnx: node QMatMil l0.qkv.out: unknown operator: mote.QMatMil
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &graph("weight\"\nl0.gate_up", "weight\"\nl7.gate_up"),
        &expect![[r#"
            model.onnx: node QMatMul l0.gate_up.out: weights.bin: index: no such tensor: l7.gate_up
            hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &graph("weight\"\u{4}l0.o", "weight\"\u{4}embd"),
        &expect![[r#"
            model.onnx: node QMatMul l0.o.out: weights.bin: index: no such tensor: embd
            hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &graph("l0.attended", "l0.attendee"),
        &expect![[r#"
        model.onnx: node RMSNormalization l0.ffn_norm.out: no value has the name: l0.attended
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &graph("SwiGlu", "Einsum"),
        &expect![[r#"
        model.onnx: node Einsum l0.swiglu.out: unknown operator: mote.Einsum
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &graph("logits", "lagits"),
        &expect![[r#"
        model.onnx: no value has the name: logits
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &graph("ids", "idz"),
        &expect![[r#"
        model.onnx: node Embed embed.out: no value has the name: idz
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
}

#[test]
fn a_tokenizer_that_does_not_belong_is_refused() {
    let tokenizer = |from: &str, to: &str| Files::read("tiny-llama").replace("tokenizer.json", from, to).sealed();
    check(
        &tokenizer("{", "{{"),
        &expect![[r#"
        tokenizer.json cannot be read: key must be a string at line 1 column 2
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    let deep = format!("{{\"deep\": {}1{},", "[".repeat(200), "]".repeat(200));
    check(
        &tokenizer("{", &deep),
        &expect![[r#"
            tokenizer.json cannot be read: recursion limit exceeded at line 1 column 136
            hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &tokenizer("\"ByteLevel\"", "\"BytesLevel\""),
        &expect![[r#"
        tokenizer.json cannot be read: data did not match any variant of untagged enum PreTokenizerUntagged at line 1 column 618
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &Files::read("tiny-llama").replace("manifest.json", "\"vocab\": 500", "\"vocab\": 499"),
        &expect![[r#"
        weights.bin: embed should be 499 x 64: 500 x 64
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    let with_vocabulary = |vocabulary: &str| {
        let mut files = Files::read("tiny-llama");
        let decoder = r#"{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}"#;
        let model = format!(r#"{{"type": "BPE", "vocab": {vocabulary}, "merges": []}}"#);
        *files.file("tokenizer.json") =
            format!(r#"{{"version": "1.0", "added_tokens": [], "model": {model}, "decoder": {decoder}}}"#).into_bytes();
        files.sealed()
    };
    check(
        &with_vocabulary(r#"{"a": 600}"#),
        &expect![[r#"
        tokenizer.json: token id outside the model's vocabulary of 500: 600
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
    check(
        &with_vocabulary(r#"{"a": 2}"#),
        &expect![[r#"
        tokenizer.json: no token for an id of the manifest's special_tokens: 0
        hint: export the bundle again with model-export, or import a good copy with: mote model import PATH"#]],
    );
}

#[test]
fn a_scale_that_is_not_finite_is_found_by_verifying() {
    for (name, bad) in [("tiny-llama", [0x00, 0x7e]), ("tiny-qwen3", [0x00, 0x7c])] {
        let mut files = Files::read(name);
        files.file("weights.bin")[4096 + 6..4096 + 8].copy_from_slice(&bad);
        let dir = files.sealed().write();
        let error = Bundle::open(dir.path()).unwrap().verify(&mut |_, _| ControlFlow::Continue(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Format);
        assert_eq!(error.message(), "weights.bin: embed: a scale is not finite in group: 0");
    }
}

#[test]
fn logits_that_are_not_finite_end_the_completion() {
    let mut files = Files::read("tiny-llama");
    let weights = files.file("weights.bin");
    let nan = [0x00, 0x7e];
    weights[4096..4112].as_chunks_mut::<2>().0.fill(nan);
    let model = load(files.sealed().write().path()).unwrap();
    let mut conversation = model.conversation().unwrap();
    prefill(&mut conversation, &[0, 1, 2, 3]).unwrap();
    let error =
        conversation.generate(&GenerateOptions::default(), None, &mut |_| ControlFlow::Continue(())).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Runtime);
    assert!(error.message().ends_with("is not finite: NaN"), "{error}");
}

/// Opens, loads and uses a bundle; whatever comes of it, it must come back.
fn use_it(files: &Files) -> Result<(), Error> {
    let dir = files.write();
    let model = load(dir.path())?;
    let mut conversation = model.conversation()?;
    prefill(&mut conversation, &model.tokenizer().encode("count to three")?)?;
    let grammar = Grammar::compile(model.tokenizer(), "start: /[a-z]+/ \" = \" /[0-9]+/")?;
    let options = GenerateOptions { max_tokens: 3, ..GenerateOptions::default() };
    conversation.generate(&options, Some(&grammar), &mut |_| ControlFlow::Continue(()))?;
    Ok(())
}

#[derive(Debug, Clone)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Insert(prop::sample::Index, Vec<u8>),
    Digits(prop::sample::Index, u64),
}

fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        (index(), 1..=255u8).prop_map(|(at, mask)| Damage::Flip(at, mask)),
        index().prop_map(Damage::Cut),
        (index(), prop::collection::vec(any::<u8>(), 1..9)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        (index(), any::<u64>()).prop_map(|(at, number)| Damage::Digits(at, number)),
    ]
}

/// Parts of a file where damage is worth doing: all of the small ones, header and index of the weights.
fn apply(damage: &Damage, name: &str, bytes: &mut Vec<u8>) {
    let index_start = if name == "weights.bin" { bytes.len() - 1200 } else { 0 };
    let at = |index: &prop::sample::Index| {
        let at = index.index(bytes.len() - index_start + if index_start > 0 { 64 } else { 0 });
        if index_start > 0 && at < 64 { at } else { index_start + at - if index_start > 0 { 64 } else { 0 } }
    };
    match damage {
        Damage::Flip(index, mask) => {
            let at = at(index);
            bytes[at] ^= mask;
        }
        Damage::Cut(index) => {
            let at = at(index);
            bytes.truncate(at);
        }
        Damage::Insert(index, new) => {
            let at = at(index);
            bytes.splice(at..at, new.iter().copied());
        }
        Damage::Digits(index, number) => {
            let from = at(index);
            let Some(start) = bytes[from..].iter().position(u8::is_ascii_digit).map(|n| from + n) else { return };
            let end = bytes[start..].iter().position(|b| !b.is_ascii_digit()).map_or(bytes.len(), |n| start + n);
            bytes.splice(start..end, number.to_string().into_bytes());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_panics(
        bundle in prop::sample::select(BUNDLES.to_vec()),
        name in prop::sample::select(vec!["manifest.json", "model.onnx", "weights.bin", "tokenizer.json"]),
        damages in prop::collection::vec(damage(), 1..4),
        sealed in prop::bool::weighted(0.8),
    ) {
        let mut files = Files::read(bundle);
        for damage in &damages {
            if files.file(name).len() > 1300 {
                apply(damage, name, files.file(name));
            }
        }
        let parses = serde_json::from_slice::<serde_json::Value>(&files.0["manifest.json"]).is_ok_and(|m| m["files"].is_object());
        let files = if sealed && parses { files.sealed() } else { files };
        if let Err(error) = use_it(&files) {
            prop_assert!(!error.message().is_empty() && error.message().len() < 2000, "{error}");
        }
    }
}

#[test]
fn every_truncation_of_the_weights_is_refused_when_the_manifest_agrees() {
    let original = Files::read("tiny-llama");
    let bytes = original.0["weights.bin"].len();
    for keep in (0..bytes).step_by(997).chain(0..64).chain(4090..4100).chain((bytes - 1000..bytes).step_by(3)) {
        let mut files = original.clone();
        files.file("weights.bin").truncate(keep);
        let dir = files.sealed().write();
        let kind = load(dir.path()).unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::Truncated | ErrorKind::Io), "{keep}: {kind:?}");
    }
    assert!(fs::exists(fixture("tiny-llama")).unwrap());
}
