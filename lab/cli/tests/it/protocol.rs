//! Generated scenarios and scores, through the program.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

struct Weir(tempfile::TempDir);

impl Weir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Runs the program in the folder.
    fn output(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args(args).current_dir(self.folder()).output().unwrap()
    }

    fn text(&self, args: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.output(args);
        assert!(status.success(), "{args:?}: {}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    }

    /// The one line in which the program refuses to run.
    fn refused(&self, args: &[&str]) -> String {
        let Output { status, stderr, .. } = self.output(args);
        let text = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(2), "{args:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    }
}

#[test]
fn scenarios_of_a_seed_are_written_and_run() {
    let weir = Weir::new();
    assert_eq!(weir.text(&["research", "generate", "--families"]).lines().count(), 14);
    assert!(
        weir.text(&["research", "generate", "1-24", "--out", "a"]).starts_with("24 scenarios in a")
    );
    let file = weir.folder().join("a/steps/13.toml");
    assert_eq!(fs::read_to_string(file).unwrap(), weir.text(&["research", "generate", "13"]));
    assert_eq!(
        weir.text(&["research", "generate", "1-24", "--family", "walk", "--out", "b"])[..1],
        *"2"
    );
    // Each seed gives a radio link, and those of the open sets only if one is asked for.
    assert!(
        weir.text(&["research", "generate", "1-24", "--family", "radio", "--out", "c"])
            .starts_with("24 ")
    );
    assert!(
        weir.refused(&["research", "generate", "350", "--family", "radio"])
            .contains("sealed until")
    );
    let table = weir.text(&["run", "a/constant/12.toml", "--controller", "sluice"]);
    assert!(table.contains("sluice"), "{table}");
}

#[test]
fn each_mistake_in_the_options_is_one_line() {
    let weir = Weir::new();
    assert!(weir.refused(&["research", "generate", "x"]).contains("is not a seed"));
    assert!(weir.refused(&["research", "generate", "1-2"]).contains("--out"));
    assert!(
        weir.refused(&["research", "generate", "1", "--family", "wlak"])
            .contains("constant, steps")
    );
    assert!(
        weir.refused(&["research", "generate", "--set", "test"]).contains("sealed-3 and sealed-4")
    );
    assert!(weir.refused(&["research", "generate"]).contains("required"));
    let score = ["research", "score", "lund/no-jitter", "--controller", "sluice,gcc"];
    assert!(weir.refused(&[&score[..], &["--own", "nada"]].concat()).contains("--own 'nada'"));
    let with = |set| weir.refused(&[&score[..], &["--set", set]].concat());
    assert!(with("sluice.q_mim=1").contains("did you mean 'q_min'?"));
    let run = ["run", "lund/no-jitter", "--controller", "sluice", "--set", "sluice.q_min=1"];
    assert!(weir.refused(&[&run[..], &["--out", "runs"]].concat()).contains("--set"));
}

#[test]
fn sealed_scenarios_open_with_a_reason_that_is_logged() {
    let weir = Weir::new();
    for seeds in ["350", "300-301", "700-701", "--set=sealed", "--set=sealed-4"] {
        assert!(weir.refused(&["research", "generate", seeds]).contains("sealed until"));
    }
    let log = weir.folder().join("log.tsv");
    assert!(!log.exists());
    weir.text(&["research", "generate", "301", "--open-seal", "a test", "--seal-log", "log.tsv"]);
    weir.text(&["research", "generate", "302", "--open-seal", "another", "--seal-log", "log.tsv"]);
    let log = fs::read_to_string(log).unwrap();
    let lines: Vec<Vec<&str>> = log.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0][2..], ["301-301", "a test"]);
    // Without its log nothing is opened.
    weir.refused(&[
        "research",
        "generate",
        "301",
        "--open-seal",
        "x",
        "--seal-log",
        "absent/log.tsv",
    ]);
}

#[test]
fn statistics_of_a_trace_and_of_a_scenario_are_printed() {
    let weir = Weir::new();
    // One packet every 25 ms for a second, then an outage of a second.
    let lines: Vec<String> = (0..40).map(|n| (n * 25).to_string()).chain(["2000".into()]).collect();
    fs::write(weir.folder().join("drive.up"), lines.join("\n")).unwrap();
    let list: Value = serde_json::from_str(&weir.text(&["trace", "drive.up", "--json"])).unwrap();
    assert_eq!(list[0]["outage_share"], 0.5);
    assert_eq!((&list[0]["source"], &list[0]["name"]), (&"drive.up".into(), &"up".into()));
    let table = weir.text(&["trace", "drive.up", "rfc8867/5.1", "--markdown"]);
    assert!(table.contains("| drive.up | up | 2 | 0.24 | 1.00 | "), "{table}");
    assert!(table.contains("| rfc8867/5.1 | up | 100 | "), "{table}");
    assert!(weir.refused(&["trace", "absent.up"]).contains("absent.up"));
    fs::write(weir.folder().join("wrong.up"), "x").unwrap();
    assert!(weir.refused(&["trace", "wrong.up"]).contains("wrong.up"));
}

#[test]
fn scores_are_printed_and_constants_change_them() {
    let weir = Weir::new();
    weir.text(&["research", "generate", "1", "13", "--out", "a"]);
    let score = [
        "research",
        "score",
        "a/steps/1.toml",
        "a/steps/13.toml",
        "--controller",
        "sluice,gcc-2013",
    ];
    let json = |more: &[&str]| -> Value {
        let text = weir.text(&[&score[..], &["--seeds", "2", "--json"], more].concat());
        serde_json::from_str(&text).unwrap()
    };
    let whole = json(&[]);
    assert_eq!(whole["runs"].as_array().unwrap().len(), 8);
    let regret = |of: &Value, index: usize| of["controllers"][index]["regret"].as_f64().unwrap();
    assert!(regret(&whole, 0) < regret(&whole, 1), "sluice is no worse than gcc-2013");
    let slow = json(&["--set", "sluice.g_start=0.01", "--set", "sluice.g_climb=0.01"]);
    assert!(regret(&slow, 0) > regret(&whole, 0) + 0.05, "without growth the regret is larger");
    assert_eq!(regret(&slow, 1), regret(&whole, 1));
    let tables = weir.text(&[&score[..], &["--seeds", "2", "--markdown"]].concat());
    assert!(
        tables.contains("| sluice against gcc-2013 |")
            && tables.contains("weir research score a/steps")
    );
    let constants = weir.text(&["research", "score", "--list-constants"]);
    assert!(constants.contains("q_min 5\n"), "{constants}");
}

#[test]
fn a_rule_that_is_needed_shows_what_it_is_worth_with_any_number_of_jobs() {
    let weir = Weir::new();
    weir.text(&["research", "generate", "1", "13", "--out", "a"]);
    let ablate = ["research", "ablate", "a/steps/*.toml", "--seeds", "2", "--only"];
    let table = |more: &[&str]| weir.text(&[&ablate[..], more].concat());
    let rules = "S-9,S-31,G_CLIMB";
    let text = table(&[rules, "--jobs", "1"]);
    assert_eq!(text, table(&[rules, "--jobs", "3"]));
    let found: Vec<Value> = serde_json::from_str(&table(&[rules, "--json"])).unwrap();
    let change = |of: &Value| of["change"].as_str().unwrap().to_owned();
    let names: Vec<String> = found.iter().map(change).collect();
    assert_eq!(names, ["S-9 off", "S-31 off", "g_climb 0.9 -> 0.45", "g_climb 0.9 -> 1.8"]);
    let lost = |index: usize| found[index]["lost"].as_f64().unwrap();
    assert!(lost(2) > 0.01 && found[2]["moved"] == 4, "{found:?}");
    assert_eq!((&found[1]["loss"], lost(1)), (&"not asked".into(), 0.0));
    let slow = weir.text(&[&ablate[..], &["S-9", "--set", "sluice.g_climb=0.45"]].concat());
    assert!(slow.contains("S-9 off") && slow != table(&["S-9"]));
    assert!(weir.refused(&[&ablate[..], &["S-99"]].concat()).contains("--only 'S-99'"));
    let both = [&ablate[..5], &["--change", "S-9=0,S-31=0"]].concat();
    let both: Value = serde_json::from_str(&weir.text(&[&both[..], &["--json"]].concat())).unwrap();
    assert_eq!(both[0]["scenarios"], found[0]["scenarios"], "S-31 is not asked");
}
