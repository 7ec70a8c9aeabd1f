//! The examples do what their pages say. The commands of the pages themselves run in `snippets.rs`.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use flate2::read::GzDecoder;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

#[test]
fn the_example_trace_is_what_its_script_makes_and_its_scenario_runs() {
    let folder = root().join("examples/train");
    let made = Command::new("node").arg(folder.join("make-trace.mjs")).output();
    match made {
        Ok(made) => {
            let packed = File::open(folder.join("train.mahi.gz")).unwrap();
            let mut kept = Vec::new();
            GzDecoder::new(packed).read_to_end(&mut kept).unwrap();
            assert!(made.status.success() && made.stdout == kept, "run make-trace.mjs again");
        }
        Err(_) => println!("skipped: the script of the trace: no Node.js"),
    }
    run(Command::new(WEIR).arg("check").arg(folder.join("train.toml")));
}

// The text and HTML of the draft need tools that `make lint` uses where they are installed.
#[test]
fn the_internet_draft_of_sluice_has_every_rule_of_its_page() {
    let folder = tempfile::tempdir().unwrap();
    let script = root().join("scripts/release/draft.mjs");
    let made = Command::new("node").arg(script).arg("--out").arg(folder.path()).output();
    let Ok(made) = made else {
        println!("skipped: the Internet-Draft: no Node.js");
        return;
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let draft = fs::read_to_string(folder.path().join("draft-weir-rmcat-sluice.md")).unwrap();
    let page = root().join("docs/reference/controllers/sluice.md");
    let page = fs::read_to_string(page).unwrap();
    let mut rules = 0;
    for line in page.lines() {
        let Some((rule, _)) = line.strip_prefix("**S-").and_then(|rest| rest.split_once(", "))
        else {
            continue;
        };
        assert!(draft.contains(&format!("\n## S-{rule}: ")), "S-{rule} is not in the draft");
        rules += 1;
    }
    assert_eq!(rules, 30);
    assert!(!draft.contains("](") && !draft.contains("<!--"), "links of the book are left");
}

/// A Python that has a library; `None` after a line that says what is missing.
fn python_with(library: &str) -> Option<PathBuf> {
    // `make test` creates this Python if the system's Python lacks the libraries.
    let own = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python/bin/python3");
    let python = if own.is_file() { own } else { "python3".into() };
    let has_it = Command::new(&python).args(["-c", &format!("import {library}")]).output();
    if has_it.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    println!("skipped: no {library}: scripts/build/deps.sh --test-all installs it");
    None
}

#[test]
fn the_turns_of_the_voice_agent_are_those_of_conversations_that_are_known() {
    let Some(python) = python_with("numpy") else { return };
    let mut tests = Command::new(python);
    tests.args(["-B", "-m", "unittest", "test_turns"]);
    run(tests.current_dir(root().join("examples/voice-agent")));
}

#[test]
fn the_examples_in_python_read_what_the_program_writes() {
    let folder = tempfile::tempdir().unwrap();
    let (records, summaries) = (folder.path().join("runs"), folder.path().join("runs.json"));
    let arguments = ["run", "demo/first-call", "repair/random-loss", "--controller", "gcc,scream"];
    let output = run(Command::new(WEIR).args(arguments).arg("--json").arg("--out").arg(&records));
    fs::write(&summaries, output.stdout).unwrap();
    for library in ["pandas", "polars"] {
        let Some(python) = python_with(library) else { continue };
        let script = root().join(format!("examples/records/with_{library}.py"));
        let output = run(Command::new(&python).arg(script).arg(&records).arg(&summaries));
        let text = String::from_utf8(output.stdout).unwrap();
        for word in ["received_mbps", "over-use", "media-1-down", "utilization"] {
            assert!(text.contains(word), "{library}: {word}: {text}");
        }
    }
}
