//! The voice agent of `examples/voice-agent` talks through emulated networks, on both stacks.
//!
//! Needs root, Python with `venv`, and PyPI for the stacks.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// What the agent itself takes for a turn: 0.4 s of silence end a phrase, and 0.3 s are to think.
const OWN_GAP_MS: f64 = 700.0;

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/voice-agent")
}

/// A Python with the stacks; `None` after a line that says what is missing.
fn python() -> Option<PathBuf> {
    // SAFETY: geteuid reads a number of the calling process and cannot fail.
    if unsafe { libc::geteuid() } != 0 || !Path::new("/dev/net/tun").exists() {
        println!("skipped: needs root and /dev/net/tun for emulated networks");
        return None;
    }
    let folder = Path::new(WEIR).ancestors().nth(2).unwrap().join("voice-agent");
    let python = folder.join("bin/python");
    let made = Command::new("python3").args(["-m", "venv"]).arg(&folder).output();
    if !made.is_ok_and(|made| made.status.success()) {
        println!("skipped: python3 cannot make an environment: apt-get install python3-venv");
        return None;
    }
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]);
    let got = pip.arg(example().join("requirements.txt")).output().unwrap();
    if !got.status.success() {
        println!("skipped: PyPI does not give examples/voice-agent/requirements.txt");
        return None;
    }
    Some(python)
}

/// The cells of a table's rows, without its head.
fn rows(table: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for line in table.lines().skip(2) {
        let cells = line.trim_matches('|').split('|');
        rows.push(cells.map(|cell| cell.trim().to_owned()).collect());
    }
    rows
}

fn number(cell: &str) -> f64 {
    cell.parse().unwrap_or_else(|_| panic!("{cell} is no number"))
}

#[test]
fn an_agent_answers_every_phrase_and_hears_it_whole_where_nothing_is_lost() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut measure = Command::new(example().join("measure.sh"));
    measure.arg(folder.path()).args(["7", "audio/clean"]);
    let made = measure.env("WEIR", WEIR).env("PYTHON", python).output().unwrap();
    let complaint = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{complaint}");
    let table = String::from_utf8(made.stdout).unwrap();
    let rows = rows(&table);
    assert_eq!(rows.len(), 2, "{table}");
    for row in &rows {
        let [_, _, phrases, gap, _, interruptions, unanswered, lost, taken_out, ..] = &row[..]
        else {
            panic!("{table}");
        };
        assert!(number(phrases) >= 2.0, "{table}");
        assert!(number(gap) > OWN_GAP_MS, "{table}");
        assert_eq!([interruptions.as_str(), unanswered.as_str()], ["0", "0"], "{table}");
        assert!(number(lost) < 15.0 && number(taken_out) < 300.0, "{table}");
    }
    // libwebrtc counts what it made up, and aiortc does not.
    let made_up: Vec<&str> = rows.iter().map(|row| row[10].as_str()).collect();
    assert_eq!(made_up[0], "-", "{table}");
    assert!(number(made_up[1]) < 5.0, "{table}");
}
