//! The models of a browser's receiver with the packets of two calls that Chromium made on
//! 2026-11-28 (`weir call audio/bursts audio/handover --quality --capture --seed 1`), beside what
//! it reported of them.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use flate2::read::GzDecoder;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// Unpacks the records below a folder.
fn unpack(to: &Path) {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replayed");
    for call in fs::read_dir(kept).unwrap() {
        let call = call.unwrap().path();
        let record = to.join(call.file_name().unwrap());
        fs::create_dir(&record).unwrap();
        for packed in fs::read_dir(&call).unwrap() {
            let packed = packed.unwrap().path();
            let mut content = GzDecoder::new(File::open(&packed).unwrap());
            let mut file = File::create(record.join(packed.file_stem().unwrap())).unwrap();
            std::io::copy(&mut content, &mut file).unwrap();
        }
    }
}

fn validate(folder: &Path) -> (Option<i32>, String, String) {
    let words = ["research", "validate", "playout"];
    let output = Command::new(WEIR).args(words).arg(folder).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), told, String::from_utf8(output.stderr).unwrap())
}

#[test]
fn jitter_buffer_and_neteq_are_within_a_tenth_of_what_chromium_reported() {
    let folder = tempfile::tempdir().unwrap();
    unpack(folder.path());
    let (code, told, errors) = validate(folder.path());
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{told}");
    assert!(told.contains("| audio/bursts | chromium | 1 |"), "{told}");
    assert!(told.contains("6 of 6 values differ by at most"), "{told}");
}

#[test]
fn a_damaged_capture_and_a_folder_without_calls_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let (code, _, errors) = validate(folder.path());
    assert_eq!(code, Some(2));
    assert!(errors.contains("no record of a call with its captures"), "{errors}");
    unpack(folder.path());
    fs::write(folder.path().join("bursts/host-1.pcapng"), "no capture").unwrap();
    let (code, _, errors) = validate(folder.path());
    assert_eq!((code, errors.lines().count()), (Some(2), 1), "{errors}");
    assert!(errors.contains("host-1.pcapng"), "{errors}");
}

#[test]
fn other_models_take_no_records() {
    let output =
        Command::new(WEIR).args(["research", "validate", "wifi", "calls"]).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("only `weir research validate playout` takes records"), "{errors}");
}
