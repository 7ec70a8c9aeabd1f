//! `weir serve` in a real browser: sliders move, and the emulator's packets are slow, late, uneven
//! and lost.
//!
//! Needs root, Chromium, Node and the viewer's packages (`make web`).

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::left::{MARK, wait_until_none_lives};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

fn web() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../web")
}

/// What this machine lacks.
fn missing() -> Option<&'static str> {
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok();
    [
        (rustix::process::geteuid().is_root(), "root for network namespaces"),
        (Path::new("/dev/net/tun").exists(), "/dev/net/tun"),
        (runs("chromium"), "chromium"),
        (runs("node"), "node"),
        (web().join("dist/serve.html").exists(), "make web"),
        (web().join("node_modules/playwright-core").exists(), "make web"),
    ]
    .into_iter()
    .find(|(is_there, _)| !is_there)
    .map(|(_, what)| what)
}

/// A running `weir serve`, which ends as by Ctrl-C.
struct Served {
    program: Child,
    address: String,
}

impl Served {
    fn start(out: &Path) -> Self {
        let mut weir = Command::new(WEIR);
        weir.arg("serve").arg("--out").arg(out).env(MARK, out).stderr(Stdio::piped());
        let mut program = weir.spawn().unwrap();
        let mut told = BufReader::new(program.stderr.take().unwrap()).lines();
        let line = told.next().unwrap().unwrap();
        let address = line.strip_prefix("weir: open ").unwrap_or_else(|| panic!("{line}")).into();
        std::thread::spawn(move || told.for_each(drop));
        Self { program, address }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        kill_process(Pid::from_child(&self.program), Signal::TERM).unwrap();
        assert!(self.program.wait().unwrap().success() || std::thread::panicking());
    }
}

#[test]
fn sliders_act_on_packets_and_are_recorded_and_ctrl_c_leaves_no_process() {
    if let Some(what) = missing() {
        println!("skipped: needs {what}");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let served = Served::start(&place.path().join("runs"));
    let pictures = std::env::var("WEIR_PICTURES").map_or(place.path().into(), PathBuf::from);
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/page.mjs");
    let mut node = Command::new("node");
    let drove = node.arg(driver).args([&served.address]).arg(web()).arg(pictures).output().unwrap();
    let (output, errors) =
        (String::from_utf8_lossy(&drove.stdout), String::from_utf8_lossy(&drove.stderr));
    assert!(drove.status.success(), "{errors}");
    let seen: Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    assert_eq!(seen["complaints"], Value::Array(vec![]));
    assert_eq!(seen["wrong"], seen["line"]);
    assert!(
        seen["before"].as_f64() < Some(200.0) && seen["after"].as_f64() >= Some(400.0),
        "{seen}"
    );
    assert_eq!(
        (&seen["told"], &seen["title"]),
        (&"200ms".into(), &"Weir report: demo/first-call".into())
    );
    let sliders = &seen["sliders"];
    assert!(sliders["slow"].as_f64() > sliders["unhurried"].as_f64().map(|ms| ms + 20.0), "{seen}");
    assert!(sliders["uneven"].as_f64() > Some(40.0), "{seen}");
    assert!(sliders["lost"].as_f64() > Some(0.0), "{seen}");
    // Another link runs.
    drop(served);
    wait_until_none_lives(&place.path().join("runs"));

    // Ctrl-C stopped that link as the button does, and it has a whole record too.
    assert!(the_one_below(&place.path().join("runs/serve-2")).join("summary.json").exists());
    let run = the_one_below(&place.path().join("runs/serve-1"));
    let call: Value = serde_json::from_slice(&fs::read(run.join("call.json")).unwrap()).unwrap();
    let changes = call["changes"].as_array().unwrap();
    let changes: Vec<&str> = changes.iter().map(|it| it["change"].as_str().unwrap()).collect();
    assert_eq!(changes, ["capacity 0.050 Mbit/s", "delay 200 ms", "jitter 200 ms", "loss 50 %"]);
}

/// The only record below a folder.
fn the_one_below(folder: &Path) -> PathBuf {
    let mut place = folder.to_path_buf();
    while !place.join("run.json").exists() {
        let mut entries = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path());
        let (one, other) = (entries.next().unwrap(), entries.next());
        assert_eq!(other, None);
        place = one;
    }
    place
}
