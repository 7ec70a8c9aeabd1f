//! A driver that is asked for its version and never tells it: `weir` ends when it is told to, and
//! all that the driver started ends with it. Needs root, for namespaces.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Variable in the environment of all processes of a test; its value is the folder of the test.
const MARK: &str = "WEIR_TEST_VERSIONS";
/// One process stays in the driver's group, one leaves it.
const DRIVER: &str = "sleep 1000 & setsid sleep 1000 & sleep 1000";
/// Processes of such a driver: the shell and three others.
const STARTED: usize = 4;
/// A test that waits for longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// A stack `mine` whose driver never tells its version.
fn arena() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let stack = folder.path().join("mine");
    fs::create_dir(&stack).unwrap();
    fs::write(stack.join("driver.sh"), format!("{DRIVER}\n")).unwrap();
    let manifest = "title = \"t\"\nhome = \"h\"\nlicence = \"MIT\"\ncontrol = \"c\"\n\
        feedback = [\"twcc\"]\nencoder = \"e\"\ninstall = \"make\"\n\
        driver = [\"/bin/sh\", \"driver.sh\"]\n";
    fs::write(stack.join("stack.toml"), manifest).unwrap();
    folder
}

fn start(folder: &Path, words: &[&str]) -> Child {
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    weir.args(words).arg("--arena").arg(folder).current_dir(folder).env(MARK, folder);
    weir.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The processes with this program, or any if it is empty, that the test has started.
fn marked(folder: &Path, program: &str) -> Vec<String> {
    let mark = format!("{MARK}={}", folder.display());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if String::from_utf8_lossy(&environment).contains(&mark) && line.contains(program) {
            found.push(line);
        }
    }
    found
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Ways to ask a driver for its version.
const COMMANDS: [&[&str]; 3] = [
    &["call", "rfc8867/5.1", "--stack", "mine"],
    &["arena", "--stacks", "mine", "--out", "runs"],
    &["arena", "doctor"],
];

#[test]
fn a_signal_ends_the_wait_for_a_version_and_all_of_the_driver() {
    for words in COMMANDS {
        for signal in [Signal::TERM, Signal::INT, Signal::KILL] {
            let folder = arena();
            let mut weir = start(folder.path(), words);
            let runs = || marked(folder.path(), "sleep 1000").len() + 1 == STARTED;
            wait_until("the driver does not start", runs);
            kill_process(Pid::from_child(&weir), signal).unwrap();
            wait_until(&format!("{words:?}: it does not end by {signal:?}"), || {
                !marked(folder.path(), "").iter().any(|line| line.contains("weir"))
            });
            let ended = weir.wait().unwrap();
            assert!(!ended.success(), "{words:?}: {ended}");
            wait_until(&format!("{words:?}: the driver outlives {signal:?}"), || {
                marked(folder.path(), "").is_empty()
            });
        }
    }
}

#[test]
fn a_call_that_waits_for_a_version_says_that_it_was_interrupted() {
    let folder = arena();
    let weir = start(folder.path(), COMMANDS[0]);
    wait_until("the driver does not start", || !marked(folder.path(), "driver.sh").is_empty());
    kill_process(Pid::from_child(&weir), Signal::TERM).unwrap();
    let done = weir.wait_with_output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(130), "{said}");
    assert!(said.lines().count() == 1 && said.starts_with("weir: interrupted"), "{said}");
}
