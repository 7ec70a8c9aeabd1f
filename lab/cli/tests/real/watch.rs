//! The rules in a page: a call of Chromium whose way up shrinks says so itself.
//!
//! Needs root, Chromium, Node, the viewer's packages (`make web`) and the target
//! wasm32-unknown-unknown of Rust.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// When the way up of the example's network shrinks, in s since the beginning of the run.
const DROP_S: f64 = 7.0;

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What this machine lacks.
fn missing() -> Option<String> {
    // SAFETY: geteuid reads a number of the calling process and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Some("root for network namespaces".into());
    }
    if !Path::new("/dev/net/tun").exists() {
        return Some("/dev/net/tun".into());
    }
    for program in ["chromium", "node"] {
        if Command::new(program).arg("--version").output().is_err() {
            return Some(program.into());
        }
    }
    if !project().join("lab/web/node_modules/playwright-core").exists() {
        return Some("make web".into());
    }
    let script = project().join("scripts/build/watch-wasm.sh");
    let output = Command::new(script).arg("--missing").output().unwrap();
    let lacks = String::from_utf8(output.stdout).unwrap();
    (!lacks.is_empty()).then(|| lacks.trim().into())
}

/// The beginning of the run in ms since 1970: the last report of `p1` has both times.
fn began_ms(out: &Path) -> f64 {
    let record = weir_record::find(out).unwrap().remove(0);
    let call: Value =
        serde_json::from_str(&fs::read_to_string(record.join("call.json")).unwrap()).unwrap();
    let intervals = call["peers"][0]["intervals"].as_array().unwrap();
    let last_s = intervals.last().unwrap()["time_s"].as_f64().unwrap();
    let dump = fs::read_to_string(record.join("p1.rtcstats")).unwrap();
    let mut last_ms = 0.0;
    for line in dump.lines().filter(|line| line.starts_with("[\"getStats\"")) {
        let event: Value = serde_json::from_str(line).unwrap();
        last_ms = event[3].as_f64().unwrap();
    }
    last_ms - last_s * 1e3
}

#[test]
fn a_page_says_within_three_seconds_that_its_way_up_is_full() {
    if let Some(what) = missing() {
        println!("skipped: needs {what}");
        return;
    }
    let script = project().join("scripts/build/watch-wasm.sh");
    assert!(Command::new(script).arg("--quick").status().unwrap().success());
    let place = tempfile::tempdir().unwrap();
    let found = place.path().join("found.jsonl");
    let out = place.path().join("runs");
    let output = Command::new(WEIR)
        .current_dir(project().join("examples/apps/watch"))
        .env("WEIR_PLAYWRIGHT", project().join("lab/web/node_modules/playwright-core"))
        .args(["call", "../networks/drop.toml", "--app", "http://{server}:9000/"])
        .args(["--join", "join.mjs", "--serve-app"])
        .arg(format!("exec node server.mjs > '{}'", found.display()))
        .arg("--out")
        .arg(&out)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let began_ms = began_ms(&out);
    let found = fs::read_to_string(found).unwrap();
    let mut full_s = Vec::new();
    for line in found.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let findings = line["findings"].as_array().unwrap();
        if line["name"] == "p1" && findings.iter().any(|it| it["cause"] == "uplink_capacity") {
            full_s.push((line["at_ms"].as_f64().unwrap() - began_ms) / 1e3);
        }
    }
    let in_time = DROP_S..DROP_S + 3.0;
    assert!(full_s.iter().any(|s| in_time.contains(s)), "{full_s:?}\n{found}\n{errors}");
}
