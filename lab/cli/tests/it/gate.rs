//! `weir check` as a gate in CI: exit codes, doubt, the flows that failed, and the JUnit file.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// A scenario with these flows, and its file.
struct File {
    _folder: tempfile::TempDir,
    path: PathBuf,
    text: String,
}

impl File {
    fn new(flows: &str) -> Self {
        let text = format!(
            "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"10s\"\n\
             [network.up]\ncapacity = \"3Mbps\"\ndelay = \"20ms\"\nloss = \"3%\"\n{flows}\n"
        );
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        fs::write(&path, &text).unwrap();
        Self { _folder: folder, path, text }
    }

    /// Writes the scenario with this single expectation.
    fn expects(&self, expectation: &str) {
        fs::write(&self.path, format!("{}[[expect]]\n{expectation}\n", self.text)).unwrap();
    }

    fn weir(&self, command: &str, args: &[&str]) -> Output {
        let path = self.path.display().to_string();
        let args = [&[command, &path, "--controller", "nada"][..], args].concat();
        Command::new(env!("CARGO_BIN_EXE_weir")).args(args).env_remove("COLUMNS").output().unwrap()
    }

    fn check(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = self.weir("check", args);
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    }

    /// Runs `check` with a JUnit file; returns the exit code and the content of the file.
    fn junit(&self, args: &[&str]) -> (Option<i32>, String) {
        let path = self.path.with_extension("xml").display().to_string();
        let (code, text) = self.check(&[args, &["--junit", &path]].concat());
        (code, fs::read_to_string(path).unwrap_or(text))
    }

    /// The mean of a metric over the seeds 1 to 3.
    fn mean(&self, metric: &str) -> f64 {
        let output = self.weir("run", &["--seeds", "3", "--json"]);
        let runs: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let value = |run: &Value| run["flows"][0][metric]["mean"].as_f64().unwrap();
        runs.iter().map(value).sum::<f64>() / 3.0
    }
}

#[test]
fn an_expectation_in_doubt_passes_unless_the_gate_is_strict() {
    let file = File::new("[[flow]]");
    // Slightly on the wrong side of the limit, by less than the seeds differ.
    let limit = file.mean("loss_ratio") * 0.999;
    file.expects(&format!("text = \"e\"\nmetric = \"loss_ratio.mean\"\nbelow = {limit}"));
    let (code, text) = file.check(&["--seeds", "3"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("in doubt  e            media-1") && !text.contains("replay"), "{text}");
    let (code, text) = file.check(&["--seeds", "3", "--strict"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("1 in doubt (--strict: failed)") && text.contains("replay"), "{text}");
    let (_, xml) = file.junit(&["--seeds", "3"]);
    assert!(xml.contains("failures=\"0\"") && xml.contains("in doubt: measured 0.0"), "{xml}");
    let (_, xml) = file.junit(&["--seeds", "3", "--strict"]);
    assert!(xml.contains("failures=\"1\""), "{xml}");
}

#[test]
fn a_metric_that_the_flow_cannot_have_is_an_error_at_reading() {
    let file = File::new("[[flow]]");
    file.expects("metric = \"freeze_duration_s\"\nbelow = 1");
    for command in ["check", "run"] {
        let output = file.weir(command, &[]);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        for words in ["mine.toml:11: expect[1].metric: ", "media-1", "repair = { nack = true }"] {
            assert!(error.contains(words), "{error}");
        }
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn good_time_needs_pictures_that_have_a_model() {
    let flow = "[[flow]]\nrepair = { nack = true }\nquality = true";
    let expectation = "metric = \"good_ratio\"\nabove = 0.1";
    let file = File::new(flow);
    file.expects(expectation);
    let (code, text) = file.check(&[]);
    assert_eq!(code, Some(2));
    assert!(text.contains("good_ratio of media-1, whose pictures have no model"), "{text}");
    let encoder = "source = { kind = \"encoder\" }\n[call.video]\ncontent = \"film\"";
    let file = File::new(&format!("{flow}\n{encoder}"));
    file.expects(expectation);
    let (code, text) = file.check(&["--list"]);
    assert!(code.is_some_and(|code| code < 2), "{text}");
    assert!(!text.contains(" - "), "{text}");
}

#[test]
fn a_failed_expectation_names_the_flow_that_failed() {
    let file =
        File::new("[[flow]]\n[[flow]]\nmax_bitrate = \"200kbps\"\nstart_bitrate = \"200kbps\"");
    file.expects("text = \"e\"\nflow = \"every\"\nmetric = \"rate_mbps.mean\"\nabove = 0.3");
    let (code, text) = file.check(&[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("FAILS    e            media-2"), "{text}");
    let (_, xml) = file.junit(&[]);
    assert!(xml.contains("flow media-2"), "{xml}");
    let runs = file.weir("run", &["--json"]);
    let runs: Value = serde_json::from_slice(&runs.stdout).unwrap();
    assert_eq!(runs[0]["expect"][0]["flow"], "media-2");
}

#[test]
fn the_replay_of_a_scenario_without_media_names_no_controller() {
    let file = File::new("[[flow]]\nkind = \"tcp\"");
    file.expects("flow = \"tcp-1\"\ntext = \"e\"\nmetric = \"rate_mbps.mean\"\nabove = 100");
    let (code, text) = file.check(&[]);
    assert_eq!(code, Some(1), "{text}");
    let replay = format!("\nreplay: weir run {} --seed 1\n", file.path.display());
    assert!(text.contains(&replay), "{text}");
}

#[test]
fn a_junit_file_has_times_class_names_and_intervals() {
    let file = File::new("[[flow]]");
    file.expects("text = \"e\"\nmetric = \"rate_mbps.mean\"\nabove = 0.01");
    let (code, xml) = file.junit(&["--seeds", "3"]);
    assert_eq!(code, Some(0), "{xml}");
    let case = xml.lines().find(|line| line.contains("<testcase")).unwrap();
    assert!(case.contains("classname=\"") && case.contains("mine_toml.nada\""), "{case}");
    assert!(case.contains(" time=\""), "{case}");
    let times = xml.lines().filter(|line| line.contains("<testsuite") && line.contains("time=\""));
    assert_eq!(times.count(), 2, "{xml}");
    let out = xml.lines().find(|line| line.contains("<system-out>")).unwrap();
    assert!(out.contains(" ± ") && out.contains("(95 %), limit at least 0.01"), "{out}");
    assert!(out.contains("holds with 3 of 3 seeds"), "{out}");
    file.expects("text = \"e\"\nmetric = \"rate_mbps.mean\"\nabove = 100");
    let (code, xml) = file.junit(&["--seeds", "3"]);
    assert_eq!(code, Some(1), "{xml}");
    let failure = xml.lines().find(|line| line.contains("<failure")).unwrap();
    assert!(failure.contains(" ± ") && failure.contains("flow media-1"), "{failure}");
}

#[test]
fn help_says_what_each_exit_code_means() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_weir")).args(["check", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "0 no expectation failed",
        "1 an expectation failed",
        "With --strict, also",
        "2 could not run",
    ] {
        assert!(words.contains(said), "{said}: {help}");
    }
}

#[test]
fn what_only_a_real_run_can_meet_is_told_and_alone_is_an_error() {
    let file = File::new("[[flow]]");
    let real = "text = \"r\"\nmetric = \"calls.success_ratio\"\nabove = 0.5";
    let both =
        format!("text = \"s\"\nmetric = \"rate_mbps.mean\"\nabove = 0.01\n[[expect]]\n{real}");
    file.expects(&both);
    let (code, text) = file.check(&[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("weir: 1 expectation is of calls or participants"), "{text}");
    file.expects(real);
    let (code, text) = file.check(&[]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("--engine call for those of calls and participants"), "{text}");
}
