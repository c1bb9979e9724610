//! A weights file that is cut while a model uses it: one line and an exit code, in place of a signal.

use std::fs::OpenOptions;
use std::process::Command;

use crate::fixtures::{Files, load, prefill};
use mote_model::LOST_FILE_EXIT_CODE;

/// Names the bundle to cut, and so makes the test below the child.
const VARIABLE: &str = "MOTE_TEST_LOST_FILE";

#[test]
fn a_file_that_shrinks_under_the_map_ends_the_process_with_a_message() {
    if let Some(dir) = std::env::var_os(VARIABLE) {
        let model = load(dir.as_ref()).unwrap();
        let mut conversation = model.conversation().unwrap();
        prefill(&mut conversation, &[5, 6, 7]).unwrap();
        let weights = OpenOptions::new().write(true).open(std::path::Path::new(&dir).join("weights.bin")).unwrap();
        weights.set_len(4096).unwrap();
        prefill(&mut conversation, &[5, 6, 7]).unwrap();
        panic!("the lost pages were read");
    }
    let dir = Files::read("tiny-llama").write();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lost_file::a_file_that_shrinks_under_the_map_ends_the_process_with_a_message"])
        .env(VARIABLE, dir.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&child.stderr);
    assert_eq!(child.status.code(), Some(LOST_FILE_EXIT_CODE), "{:?} {stderr}", child.status);
    assert!(stderr.contains("mote: a mapped file of the model became shorter while it was read"), "{stderr}");
}
