//! Browsers as terminals of the IMS: a call through Kamailio, with bearers in a cellular cell.

use std::path::Path;
use std::process::{Command, Output};
use std::{fs, thread};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_weir");

/// Six seconds of a call from a terminal of a cell to a wired host.
const SCENARIO: &str = r#"
title = "A short call from a cell"
source = "A test"
description = "Six seconds."
duration = "6s"
network = { kind = "cellular", bandwidth = "5MHz", scheduler = "qos", terminal.ue.sinr = 20 }
flow = [{ terminal = "ue" }, { terminal = "ue", direction = "down" }]
media = { max_bitrate = "1000kbps" }
"#;

fn weir(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().unwrap()
}

/// Takes the IMS down when the test ends, in whatever way.
struct Running;

impl Running {
    /// Starts the IMS, or says why it cannot run here.
    fn start() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: an IMS needs root");
            return None;
        }
        let output = weir(&["ims", "up"]);
        let error = String::from_utf8_lossy(&output.stderr);
        for reason in ["missing Debian packages", "is running already", "install kamailio"] {
            if error.contains(reason) {
                println!("skipped: {}", error.trim());
                return None;
            }
        }
        assert!(output.status.success(), "{error}");
        Some(Self)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let output = weir(&["ims", "down"]);
        assert!(thread::panicking() || output.status.success());
    }
}

/// The messages of a record, in order: from, to, name and text.
fn messages(record: &Path) -> Vec<[String; 4]> {
    let text = fs::read_to_string(record.join("messages.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let word = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    lines.map(|line| ["from", "to", "name", "text"].map(|key| word(&line, key))).collect()
}

#[test]
fn browsers_call_through_the_ims_and_get_a_bearer_in_the_cell() {
    let Some(_running) = Running::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("cell.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    let out = folder.path().join("runs");
    let paths = [&scenario, &out].map(|path| path.to_str().unwrap());
    let rest = ["--quick", "--attempts", "1", "--ims", "alice,bob", "--out", paths[1]];
    let output = weir(&[&["call", paths[0]], &rest[..]].concat());
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("no Chromium") || error.contains("apt-get install chromium") {
        println!("skipped: {}", error.trim());
        return;
    }
    assert!(output.status.success() && !error.contains("calls succeeded"), "{error}");
    let place = fs::read_dir(&out).unwrap().next().unwrap().unwrap().path();
    let record = fs::read_dir(place).unwrap().next().unwrap().unwrap().path();
    assert!(record.join("call.json").exists() && record.join("phases.json").exists());
    let messages = messages(&record);
    let place_of = |from: &str, to: &str, name: &str| {
        let is_it = |one: &[String; 4]| (&*one[0], &*one[1], &*one[2]) == (from, to, name);
        let found = messages.iter().position(is_it);
        found.unwrap_or_else(|| panic!("no {name} from {from} to {to}"))
    };
    // The cell has the bearer before the caller hears that the callee's side has resources.
    let installed = messages.iter().position(|one| one[2] == "install").unwrap();
    assert!(messages[installed][3].contains("video QCI 2"), "{}", messages[installed][3]);
    let taken = place_of("network", "pcrf", "cell: ok");
    assert!(installed < taken && taken < place_of("epcscf", "alice", "183 INVITE"));
    assert!(place_of("alice", "epcscf", "BYE") < place_of("pcrf", "network", "remove"));
    // Nothing in the network touches the media: each side reads what the other one wrote.
    let body = |at: usize| messages[at][3].split_once("\r\n\r\n").unwrap().1.to_owned();
    let offer = body(place_of("alice", "epcscf", "INVITE"));
    assert_eq!(offer, body(place_of("epcscf", "bob", "INVITE")));
    assert!(offer.contains("UDP/TLS/RTP/SAVPF") && !offer.contains("BUNDLE"), "{offer}");
    let answer = body(place_of("bob", "epcscf", "183 INVITE"));
    assert_eq!(answer, body(place_of("epcscf", "alice", "183 INVITE")));
    let checked = weir(&["ims", "check", record.to_str().unwrap()]);
    let rules = String::from_utf8(checked.stdout).unwrap();
    assert!(rules.ends_with("rules hold, 0 are broken\n"), "{rules}");
    // Each phase up to the first picture, and the messages, are in the report.
    let phases = fs::read_to_string(record.join("phases.json")).unwrap();
    assert!(phases.contains("REGISTER to the first picture"), "{phases}");
    let report = folder.path().join("report.html");
    let output = weir(&["report", paths[1], "-o", report.to_str().unwrap()]);
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("without the report viewer") {
        println!("skipped: {}", error.trim());
        return;
    }
    let page = fs::read_to_string(report).unwrap();
    for part in ["\"signalling\":[{\"title\":", "alice calls bob", "\"name\":\"183 INVITE\""] {
        assert!(page.contains(part), "no {part}");
    }
}
