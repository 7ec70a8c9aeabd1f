//! `weir run --as-called`, and scenarios whose encoder has no model.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Writes a scenario of 4 s with this source and this table of its calls.
fn scenario(folder: &tempfile::TempDir, source: &str, video: &str) -> PathBuf {
    let file = folder.path().join("mine.toml");
    let text = format!(
        "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"4s\"\n[network.up]\n\
         capacity = \"3Mbps\"\nqueue = \"300ms\"\ndelay = \"20ms\"\n[call.video]\n{video}\n\
         [[flow]]\nmax_bitrate = \"2Mbps\"\nsource = {{ {source} }}\n"
    );
    fs::write(&file, text).unwrap();
    file
}

fn weir(file: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.arg("run").arg(file).args(options).output().unwrap()
}

/// Bad input: exit 2, nothing on stdout, one line on stderr, which is returned.
fn refused(file: &Path, options: &[&str]) -> String {
    let Output { status, stdout, stderr } = weir(file, options);
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!((status.code(), stdout.len()), (Some(2), 0), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr
}

const FILM: &str = "width = 640\nheight = 360\ncontent = \"film\"";

#[test]
fn a_bad_driver_is_refused_in_one_line_with_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    let controller = ["--controller", "nada"];
    let filler = scenario(&folder, "kind = \"filler\", driver = \"pipeline\"", FILM);
    let said = refused(&filler, &controller);
    assert!(said.contains("mine.toml:15: ") && said.contains("only the source encoder"), "{said}");
    let unknown = scenario(&folder, "kind = \"encoder\", driver = \"phone\"", FILM);
    let said = refused(&unknown, &controller);
    assert!(said.contains("expected \"browser\" or \"pipeline\""), "{said}");
    let noise = scenario(&folder, "kind = \"encoder\", driver = \"pipeline\"", "");
    let said = refused(&noise, &controller);
    assert!(said.contains("was measured with VP8"), "{said}");
}

#[test]
fn as_called_each_controller_drives_the_encoder_that_a_call_would_have() {
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(&folder, "kind = \"filler\"", FILM);
    let options = ["--controller", "chromium,gcc,nada", "--as-called", "--json"];
    let Output { status, stdout, stderr } = weir(&file, &options);
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let runs: Value = serde_json::from_slice(&stdout).unwrap();
    let mut names = Vec::new();
    let mut rates = Vec::new();
    for run in runs.as_array().unwrap() {
        names.push(run["controller"].as_str().unwrap());
        rates.push(run["flows"][0]["rate_mbps"]["mean"].as_f64().unwrap());
    }
    assert_eq!(names, ["gcc", "gcc", "nada"], "gcc stands for Chromium");
    assert!(rates.iter().all(|rate| *rate > 0.1), "{rates:?}");
    assert_ne!(rates[0], rates[1], "a browser's encoder is not a pipeline's");
    let filler = weir(&file, &["--controller", "nada", "--json"]);
    let filler: Value = serde_json::from_slice(&filler.stdout).unwrap();
    assert_ne!(filler[0]["flows"][0]["rate_mbps"]["mean"].as_f64(), Some(rates[2]));
}

#[test]
fn as_called_makes_no_records_and_refuses_what_has_no_model() {
    let folder = tempfile::tempdir().unwrap();
    let file = scenario(&folder, "kind = \"filler\"", "");
    let said = refused(&file, &["--controller", "nada", "--as-called"]);
    assert!(said.contains("was measured with VP8"), "{said}");
    let out = folder.path().join("runs");
    let options = ["--controller", "nada", "--as-called", "--out", out.to_str().unwrap()];
    assert_eq!(weir(&file, &options).status.code(), Some(2));
    assert!(!out.exists());
}
