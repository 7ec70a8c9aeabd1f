//! The arena with the stacks that are installed here. It needs root and Chromium.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn weir(words: &[&str]) -> Output {
    Command::new(WEIR).args(words).current_dir(root()).output().unwrap()
}

/// A short scenario, so that a cell takes seconds.
const SCENARIO: &str = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"8s\"\n\
    [network]\nup = { capacity = \"1Mbps\", delay = \"25ms\" }\ndown = { delay = \"25ms\" }\n\
    [call]\nvideo = { width = 480, height = 270, fps = 15, content = \"film\" }\n\
    [[flow]]\nmax_bitrate = \"800kbps\"\n";

#[test]
fn the_doctor_tells_how_to_install_what_is_missing() {
    let told = weir(&["arena", "doctor"]);
    let text = String::from_utf8(told.stdout).unwrap();
    for stack in ["aiortc", "pion", "pion-weir", "str0m", "wrtc"] {
        assert!(text.lines().any(|line| line.starts_with(stack)), "{text}");
    }
    assert_eq!(told.status.success(), !text.contains("is not installed"), "{text}");
}

#[test]
fn a_stack_that_nobody_knows_is_one_line_with_those_that_there_are() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let refused = weir(&["arena", "--stacks", "janus", "--out", out]);
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("it has aiortc, pion, pion-weir, str0m, wrtc"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn an_installed_stack_sends_a_call_and_a_second_run_finds_it_done() {
    let doctor = String::from_utf8(weir(&["arena", "doctor"]).stdout).unwrap();
    let pion = doctor.lines().find(|line| line.starts_with("pion ")).unwrap();
    if pion.contains("is not installed") {
        println!("skipped: no stacks of the arena: make arena-deps");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("short.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    let out = folder.path().join("runs");
    let words = ["arena", "--stacks", "pion", "--scenarios", scenario.to_str().unwrap(), "--out"];
    let words = [&words[..], &[out.to_str().unwrap()]].concat();
    let made = weir(&words);
    let complaint = String::from_utf8(made.stderr).unwrap();
    if !made.status.success() && complaint.contains("root") {
        println!("skipped: {complaint}");
        return;
    }
    assert!(made.status.success(), "{complaint}");
    let text = String::from_utf8(made.stdout).unwrap();
    let row = text.lines().find(|line| line.starts_with("pion")).unwrap();
    let used: f64 = row.split_whitespace().nth(2).unwrap().parse().expect(row);
    assert!(used > 0.1, "{row}");
    let again = weir(&words);
    assert_eq!(String::from_utf8(again.stdout).unwrap(), text);
}
