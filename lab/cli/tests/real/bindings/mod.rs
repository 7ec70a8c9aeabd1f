//! The library in Node and Python under the stacks of others. The first two tests build it; the
//! others need root and the stacks (`make arena-deps`), and the call to Chromium needs that, too.

mod link;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use serde_json::Value;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// Stacks whose packets a controller of this project paces.
const STACKS: [&str; 5] =
    ["pion-weir", "werift-weir", "aiortc-weir", "webrtc-rs-weir", "str0m-weir"];
/// A link that is narrower than the sender's maximum.
const SCENARIO: &str = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"12s\"\n\
    [network]\nup = { capacity = \"1Mbps\", delay = \"25ms\", queue = \"300ms\" }\n\
    down = { delay = \"25ms\" }\n\
    [call]\nvideo = { width = 640, height = 360, fps = 30, content = \"film\" }\n\
    [media]\nmin_bitrate = \"30kbps\"\nstart_bitrate = \"300kbps\"\nmax_bitrate = \"1500kbps\"\n\
    [[flow]]\n";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn told(output: &Output) -> String {
    let [out, error] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{out}{error}")
}

/// Runs a script of the project. Returns what it prints.
fn script(name: &str, words: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = Command::new(root().join("scripts/build").join(name));
    let output = command.args(words).envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{name}: {}", told(&output));
    String::from_utf8(output.stdout).unwrap().trim().into()
}

fn runs(program: &str) -> bool {
    let is_there = Command::new(program).arg("--version").output().is_ok();
    if !is_there {
        println!("skipped: {program} is not installed");
    }
    is_there
}

#[test]
fn the_library_in_node_does_what_it_promises() {
    if !runs("node") {
        return;
    }
    let lacks = script("go-wasm.sh", &["--missing"], &[]);
    if !lacks.is_empty() {
        println!("skipped: {lacks}");
        return;
    }
    script("go-wasm.sh", &[], &[]);
    let folder = root().join("library/node");
    let output = Command::new("node").args(["--test", "test/"]).current_dir(folder).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", told(&output));
    assert!(!told(&output).contains("# pass 0"), "{}", told(&output));
}

#[test]
fn the_library_in_python_does_what_it_promises() {
    if !runs("python3") {
        return;
    }
    let made = script("c-library.sh", &["build"], &[("PROFILE", "dev")]);
    let mut libraries = Vec::new();
    for entry in fs::read_dir(root().join(&made)).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().unwrap().contains("libweir.so.") {
            libraries.push(path);
        }
    }
    let library = libraries.last().unwrap();
    vectors_are_reproduced(library);
    let output = Command::new("python3")
        .args(["-m", "unittest", "discover", "-s", "tests"])
        .env("WEIR_LIBRARY", library)
        .current_dir(root().join("library/python"))
        .output()
        .unwrap();
    let told = told(&output);
    assert!(output.status.success() && told.contains("OK") && !told.contains("skipped"), "{told}");
}

/// The runner of the vectors, with and without its tolerance, and with a vector that is not ours.
fn vectors_are_reproduced(library: &Path) {
    let vectors = root().join("vectors");
    let other = tempfile::tempdir().unwrap();
    fs::create_dir(other.path().join("gcc")).unwrap();
    let text = fs::read_to_string(vectors.join("gcc/receiver-limit-twcc.jsonl")).unwrap();
    let (begin, end) = text.split_at(text.rfind("[\"target\",").unwrap() + 10);
    fs::write(other.path().join("gcc/x.jsonl"), format!("{begin}1{end}")).unwrap();
    plays(library, other.path(), &["--tolerance"], 1, "want [\"target\"");
    let count = glob(&vectors).len();
    assert!(count >= 6, "{count}");
    plays(library, &vectors, &["--tolerance"], 0, &format!("{count} vectors, "));
    // All of them, where `make vectors` has made them.
    let all = Path::new(WEIR).ancestors().nth(2).unwrap().join("vectors");
    let all = if all.exists() { all } else { vectors };
    plays(library, &all, &[], 0, &format!("{} vectors, ", glob(&all).len()));
}

/// The runner ends with this code, and says this.
fn plays(library: &Path, folder: &Path, more: &[&str], code: i32, says: &str) {
    let output = Command::new("python3")
        .arg(root().join("vectors/run.py"))
        .args([Path::new("--library"), library, Path::new("--folder"), folder])
        .args(more)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", told(&output));
    assert!(told(&output).contains(says), "{}", told(&output));
}

/// The vectors in a folder, of all controllers.
fn glob(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let Ok(inside) = fs::read_dir(entry.unwrap().path()) else { continue };
        files.extend(inside.map(|file| file.unwrap().path()));
    }
    files.retain(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
    files
}

/// Whether a call failed because it may not make a network.
fn needs_root(output: &Output) -> bool {
    let told = told(output);
    let needs = output.status.code() == Some(2) && told.contains("root");
    if needs {
        println!("skipped: {told}");
    }
    needs
}

#[test]
fn a_stack_under_our_controller_uses_most_of_the_link_and_loses_little() {
    let doctor = Command::new(WEIR).args(["arena", "doctor"]).current_dir(root()).output();
    let doctor = String::from_utf8(doctor.unwrap().stdout).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("short.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    for stack in STACKS {
        let row = doctor.lines().find(|line| line.starts_with(&format!("{stack} "))).unwrap();
        if row.contains("is not installed") {
            println!("skipped: {stack}: make arena-deps");
            continue;
        }
        let call = Command::new(WEIR)
            .args(["call", scenario.to_str().unwrap(), "--stack", stack, "--out"])
            .arg(folder.path().join(stack))
            .current_dir(root())
            .output()
            .unwrap();
        if needs_root(&call) {
            return;
        }
        assert!(call.status.success(), "{stack}: {}", told(&call));
        let record = weir_record::find(&folder.path().join(stack)).unwrap().remove(0);
        let summary = fs::read_to_string(record.join("summary.json")).unwrap();
        let summary: Value = serde_json::from_str(&summary).unwrap();
        let flow = &summary["flows"][0];
        // The start bitrate alone would use 0.3 of the link.
        assert!(flow["utilization"].as_f64().unwrap() > 0.5, "{stack}: {}", told(&call));
        assert!(flow["loss_ratio"]["mean"].as_f64().unwrap() < 0.05, "{stack}: {}", told(&call));
    }
}
