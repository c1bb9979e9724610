//! Bundles, whole and damaged: each fault ends in one message with the next step and its exit code, and the store stays as
//! it was.

use std::fs;
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};

use crate::program::Program;

/// A copy of the tiny random model, below the root of the program.
pub(crate) fn tiny(program: &Program) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/bundles/tiny-llama");
    let folder = program.root().join("tiny");
    fs::create_dir(&folder).unwrap();
    for file in ["manifest.json", "model.onnx", "weights.bin", "tokenizer.json"] {
        fs::copy(source.join(file), folder.join(file)).unwrap();
    }
    folder
}

/// Changes a text in the manifest.
fn edit(folder: &Path, from: &str, to: &str) {
    let file = folder.join("manifest.json");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains(from), "no {from} in {text}");
    fs::write(file, text.replace(from, to)).unwrap();
}

/// Imports a bundle that `damage` changed: what is said, and that nothing is left in the store.
fn check(damage: impl Fn(&Path), expected: Expect) {
    let program = Program::new();
    damage(&tiny(&program));
    expected.assert_eq(&program.run(&["model", "import", "tiny"]));
    let left: Vec<_> = fs::read_dir(program.root().join("home/bundles")).into_iter().flatten().collect();
    assert!(left.is_empty(), "left in the store: {left:?}");
}

#[test]
fn a_folder_that_is_not_there() {
    check(
        |folder| fs::remove_dir_all(folder).unwrap(),
        expect![[r#"
        exit 78
        -- stderr
        mote: no such file: tiny/manifest.json
          hint: give the folder of a whole bundle, as model-export writes it: manifest.json and the files that it names
    "#]],
    );
}

#[test]
fn a_missing_file() {
    check(
        |folder| fs::remove_file(folder.join("weights.bin")).unwrap(),
        expect![[r#"
        exit 78
        -- stderr
        mote: no such file: tiny/weights.bin
          hint: give the folder of a whole bundle, as model-export writes it: manifest.json and the files that it names
    "#]],
    );
}

#[test]
fn a_truncated_file() {
    let cut = |folder: &Path| {
        fs::File::options().write(true).open(folder.join("weights.bin")).unwrap().set_len(5000).unwrap()
    };
    check(
        cut,
        expect![[r#"
        exit 78
        -- stderr
        mote: weights.bin: the manifest says 141674 bytes: 5000
          hint: export the bundle again with model-export, or import a good copy with: mote model import PATH
    "#]],
    );
}

#[test]
fn a_manifest_that_does_not_parse() {
    check(
        |folder| fs::write(folder.join("manifest.json"), "{\"format\": ").unwrap(),
        expect![[r#"
        exit 78
        -- stderr
        mote: manifest.json cannot be read: EOF while parsing a value at line 1 column 11
          hint: export the bundle again with model-export, or import a good copy with: mote model import PATH
    "#]],
    );
}

#[test]
fn another_format_version() {
    check(
        |folder| edit(folder, "\"format_version\": 1", "\"format_version\": 99"),
        expect![[r#"
        exit 78
        -- stderr
        mote: manifest.json: format_version is not 1: 99
          hint: a newer mote reads this bundle
    "#]],
    );
}

#[test]
fn an_unknown_architecture() {
    check(
        |folder| edit(folder, "\"family\": \"llama\"", "\"family\": \"mamba\""),
        expect![[r#"
        exit 78
        -- stderr
        mote: manifest.json: architecture.family is unknown: mamba
          hint: this build runs the families llama and qwen3
    "#]],
    );
}

#[test]
fn a_name_that_is_a_path() {
    check(
        |folder| edit(folder, "\"name\": \"tiny-llama\"", "\"name\": \"../tiny\""),
        expect![[r#"
        exit 78
        -- stderr
        mote: the manifest's name cannot name a folder: "../tiny"
          hint: export the bundle again with a --name of letters, digits, `.`, `_` and `-`
    "#]],
    );
}

#[test]
fn a_flipped_bit_in_the_weights() {
    let flip = |folder: &Path| {
        let file = folder.join("weights.bin");
        let mut bytes = fs::read(&file).unwrap();
        bytes[4096] ^= 1;
        fs::write(file, bytes).unwrap();
    };
    check(
        flip,
        expect![[r#"
        exit 78
        -- stderr
        mote: weights.bin: sha256 is not 795c8d1dd00dd41bef1ba6b3ac18cd106043fc5ac024127ef2f3af1aba7899a3: 5f72f63a15ac4c0f12c42559d0d11549c348aa3a526bdcedba9f5d6a7d5cab56
          hint: export the bundle again with model-export, or import a good copy with: mote model import PATH
    "#]],
    );
}

#[test]
fn a_bundle_is_imported_listed_verified_and_used() {
    let program = Program::new();
    tiny(&program);
    let import = program.run(&["model", "import", "tiny"]);
    expect![[r#"
        exit 0
        -- stdout
        imported, the default: tiny-llama, 0 MiB
    "#]]
    .assert_eq(&import);
    expect![[r#"
        exit 0
        -- stdout
        * tiny-llama: llama, q432, 0 MiB, 512 tokens of context, apache-2.0
    "#]]
    .assert_eq(&program.run(&["model", "list"]));
    expect![[r#"
        exit 0
        -- stdout
        every file is as the manifest says: ROOT/home/bundles/tiny-llama
    "#]]
    .assert_eq(&program.run(&["model", "verify"]));
    let first = program.run(&["model", "generate", "--raw-ids", "1,2,3", "--max-tokens", "8", "--ids"]);
    assert!(first.starts_with("exit 0\n-- stdout\n"), "{first}");
    let same = program.run(&[
        "model",
        "generate",
        "--model",
        "tiny-llama",
        "--raw-ids",
        "1,2,3",
        "--max-tokens",
        "8",
        "--ids",
    ]);
    assert_eq!(first, same);
}

#[test]
fn a_damaged_bundle_in_the_store_is_found_and_mended_by_another_import() {
    let program = Program::new();
    tiny(&program);
    program.run(&["model", "import", "tiny"]);
    let weights = program.root().join("home/bundles/tiny-llama/weights.bin");
    fs::write(&weights, "").unwrap();
    expect![[r#"
        exit 0
        -- stdout
        * tiny-llama: damaged: weights.bin: the manifest says 141674 bytes: 0
    "#]]
    .assert_eq(&program.run(&["model", "list"]));
    expect![[r#"
        exit 78
        -- stderr
        mote: weights.bin: the manifest says 141674 bytes: 0
          hint: export the bundle again with model-export, or import a good copy with: mote model import PATH
    "#]]
    .assert_eq(&program.run(&["model", "generate", "a"]));
    program.run(&["model", "import", "tiny"]);
    assert!(program.run(&["model", "verify"]).starts_with("exit 0\n"));
}

#[test]
fn another_bundle_under_the_same_name_is_refused() {
    let program = Program::new();
    let folder = tiny(&program);
    program.run(&["model", "import", "tiny"]);
    edit(&folder, "\"license\": ", "\"license\":  ");
    expect![[r#"
        exit 78
        -- stderr
        mote: another bundle is imported under this name: tiny-llama
          hint: export this one with another --name, or remove ROOT/home/bundles/tiny-llama
    "#]]
    .assert_eq(&program.run(&["model", "import", "tiny"]));
}

#[test]
fn without_a_bundle_the_message_says_how_to_get_one() {
    let program = Program::new();
    expect![[r#"
        exit 78
        -- stderr
        mote: no model: no bundle is imported yet
          hint: run `make model` in the source tree, or `mote model import PATH` with the folder of a bundle
    "#]]
    .assert_eq(&program.run(&["model", "generate", "a"]));
    expect![[r#"
        exit 78
        -- stdout
        {"error":{"kind":"configuration","message":"no such bundle: nope","hint":"give the folder of a bundle, or import one with `mote model import PATH`"}}
        -- stderr
        mote: no such bundle: nope
          hint: give the folder of a bundle, or import one with `mote model import PATH`
    "#]].assert_eq(&program.run(&["model", "generate", "a", "--model", "nope", "--json"]));
}

#[test]
fn a_prompt_longer_than_the_window() {
    let program = Program::new();
    tiny(&program);
    let ids = ["1"; 9].join(",");
    expect![[r#"
        exit 2
        -- stderr
        mote: the context window of 8 tokens is full: 9
          hint: shorten the prompt, or load the model with a larger context
    "#]]
    .assert_eq(&program.run(&["model", "generate", "--model", "./tiny", "--context", "8", "--raw-ids", &ids]));
}

#[test]
fn arguments_that_make_no_sense() {
    let program = Program::new();
    tiny(&program);
    let generate =
        |more: &[&str]| program.run(&[&["model", "generate", "--model", "./tiny", "--raw-ids", "1"], more].concat());
    expect![[r#"
        exit 2
        -- stderr
        mote: the context is longer than the model's 512 tokens: 100000000
          hint: ask for a smaller context
    "#]]
    .assert_eq(&generate(&["--context", "100000000"]));
    expect![[r#"
        exit 2
        -- stderr
        mote: sampling: temperature is not between 0 and 100: -1
    "#]]
    .assert_eq(&generate(&["--temperature", "-1"]));
    expect![[r#"
        exit 2
        -- stderr
        mote: cannot read the grammar (No such file or directory (os error 2)): nowhere.lark
    "#]]
    .assert_eq(&generate(&["--grammar", "nowhere.lark"]));
    expect![[r#"
        exit 2
        -- stderr
        mote: token id outside the vocabulary of 500: 4000000
    "#]]
    .assert_eq(&program.run(&["model", "generate", "--model", "./tiny", "--raw-ids", "4000000"]));
}
