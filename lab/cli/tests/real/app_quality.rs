//! What is seen in an application under test, by tags: a page whose policy forbids workers and
//! foreign scripts, in Chromium and in Firefox.
//!
//! Needs root, Chromium, Firefox, ffmpeg, Node, and the packages of `examples/apps/peerjs` (`make
//! npm-deps`).
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// One way, without any queue.
const DELAY_MS: f64 = 20.0;
/// A delay that a Firefox takes part in may be measured so much too short: its clock has steps of a
/// millisecond, and `docs/reference/quality.md` says what that comes to.
const FIREFOX_OFF_MS: f64 = 4.0;
const SCENARIO: &str = r#"
title = "An application that is watched"
source = "a test"
description = "2 Mbit/s up"
duration = "10s"
[network.up]
capacity = "2Mbps"
queue = "300ms"
delay = "20ms"
[network.down]
capacity = "20Mbps"
delay = "20ms"
[participant.p2]
[call]
video = { width = 640, height = 360, fps = 30, content = "film" }
[[flow]]
"#;

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").canonicalize().unwrap()
}

fn playwright() -> PathBuf {
    match std::env::var_os("WEIR_PLAYWRIGHT") {
        Some(place) => place.into(),
        None => tests().join("../../../examples/apps/peerjs/node_modules/playwright-core"),
    }
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
    for program in ["chromium", "firefox-esr", "node"] {
        if Command::new(program).arg("--version").output().is_err() {
            return Some(program.into());
        }
    }
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        return Some("ffmpeg".into());
    }
    (!playwright().exists()).then(|| "make npm-deps".into())
}

fn number(value: &Value, member: &str) -> f64 {
    value[member].as_f64().unwrap_or_else(|| panic!("no {member} in {value}"))
}

#[test]
fn a_page_under_a_strict_policy_is_seen_in_chromium_and_in_firefox() {
    if let Some(what) = missing() {
        println!("skipped: needs {what}");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let scenario = place.path().join("watched.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    let out = place.path().join("runs");
    let output = Command::new(WEIR)
        .current_dir(tests().join("strict-app"))
        .env("WEIR_PLAYWRIGHT", playwright())
        .arg("call")
        .arg(&scenario)
        .args(["--app", "http://{server}:9000/", "--join", "join.mjs"])
        .args(["--serve-app", "exec node server.mjs", "--browsers", "chromium,firefox"])
        .args(["--quality", "--attempts", "1", "--seed", "1", "--out"])
        .arg(&out)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let record = weir_record::find(&out).unwrap().remove(0);
    let call: Value = serde_json::from_slice(&fs::read(record.join("call.json")).unwrap()).unwrap();
    let seen = call["quality"].as_array().unwrap_or_else(|| panic!("no quality: {errors} {call}"));
    let pairs: Vec<[&str; 2]> =
        seen.iter().map(|it| [it["from"].as_str().unwrap(), it["to"].as_str().unwrap()]).collect();
    assert_eq!(pairs, [["p2", "p1"], ["p1", "p2"]], "{errors}");
    for one in seen {
        let screen = &one["screen"];
        // A busy machine shows few pictures, but of these nearly every tag can be read.
        let (read, all) = (number(screen, "read"), number(screen, "seen"));
        assert!(all > 20.0 && read >= 0.98 * all, "{one}");
        assert!(number(screen, "matched") >= 0.9 * read, "{one}");
        assert!(number(&one["shown_delay_ms"], "min") >= DELAY_MS - FIREFOX_OFF_MS, "{one}");
        let picture = &one["picture"];
        assert!(number(picture, "pictures") >= 3.0, "{one}");
        // The wrong frame of the film would have some 15 dB.
        assert!(number(&picture["psnr_db"], "mean") > 25.0, "{one}");
    }
    // Firefox reads only what is on screen.
    assert_eq!(number(&seen[1]["track"], "seen"), 0.0);
    assert!(number(&seen[0]["track"], "seen") > 20.0, "{}", seen[0]);
}
