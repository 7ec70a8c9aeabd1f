//! The example of a stranger's controller: a crate that the workspace does not know.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn a_controller_outside_the_workspace_runs_and_its_records_make_a_report() {
    let example = root().join("examples/own-controller");
    // The workspace's lock has all that the example needs, so nothing is fetched.
    fs::copy(root().join("Cargo.lock"), example.join("Cargo.lock")).unwrap();
    let runs = tempfile::tempdir().unwrap();
    let out = runs.path().to_str().unwrap();
    let target = env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from);
    let run = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--offline", "--", "lund/rmcat-ns3", out])
        .current_dir(&example)
        .env("CARGO_TARGET_DIR", target.join("examples"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{stderr}");
    let stdout = String::from_utf8(run.stdout).unwrap();
    assert!(stdout.contains("keeps to the contract"), "{stdout}");
    for controller in ["gcc", "cautious"] {
        let line = format!("lund/rmcat-ns3 {controller}: utilization 0.");
        assert!(stdout.contains(&line), "{stdout}");
    }
    let compare = Command::new(WEIR).args(["compare", out, out]).output().unwrap();
    let told = String::from_utf8(compare.stdout).unwrap();
    assert!(compare.status.success() && told.contains("cautious"), "{told}");
    if !root().join("lab/web/dist/report.html").is_file() {
        println!("skipped: the report viewer is not built: make web");
        return;
    }
    let report = runs.path().join("report.html");
    let drawn = Command::new(WEIR).args(["report", out, "-o"]).arg(&report).output().unwrap();
    let stderr = String::from_utf8_lossy(&drawn.stderr);
    assert!(drawn.status.success(), "{stderr}");
    assert!(fs::read_to_string(&report).unwrap().contains("cautious"));
}

#[test]
fn what_the_programs_readme_shows_is_what_happens() {
    let page = fs::read_to_string(root().join("lab/cli/README.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let commands: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("$ weir ")).collect();
    assert_eq!(commands.len(), 3);
    for command in commands {
        if command.starts_with("report") && !root().join("lab/web/dist/report.html").is_file() {
            continue;
        }
        let mut weir = Command::new(WEIR);
        let output = weir.args(command.split(' ')).current_dir(folder.path()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "weir {command}: {stderr}");
    }
}
