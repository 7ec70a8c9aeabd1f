//! `weir arena` as a gate, on records that are there already: it makes no call for these, so no
//! network and no stack is needed. real_arena makes the calls.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use serde_json::{Value, json};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
/// A driver that only tells its version.
const DRIVER: &str = "/bin/echo mine";

/// Half of the link must be used, by a sender of at most `max`.
fn scenario(max: &str) -> String {
    format!(
        "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"20s\"\n[network.up]\n\
         capacity = \"1Mbps\"\ndelay = \"20ms\"\n[media]\nmin_bitrate = \"30kbps\"\n\
         start_bitrate = \"300kbps\"\nmax_bitrate = \"{max}\"\n[[flow]]\n\
         [[section]]\nname = \"late\"\nfrom = \"10s\"\nto = \"20s\"\n\
         [[expect]]\ntext = \"half of the link is used\"\nmetric = \"utilization\"\n\
         section = \"late\"\nabove = 0.5\n"
    )
}

fn weir(folder: &Path, words: &[&str]) -> Output {
    Command::new(WEIR).args(words).current_dir(folder).output().unwrap()
}

/// The only folder in a folder.
fn only(folder: &Path) -> PathBuf {
    let mut entries = fs::read_dir(folder).unwrap();
    let first = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none(), "{}", folder.display());
    first
}

/// Puts a simulated run in the place of a call that the stack `mine` made with this driver.
fn record(folder: &Path, max: &str, driver: &str) {
    fs::write(folder.join("s.toml"), scenario(max)).unwrap();
    let simulated = weir(folder, &["run", "s.toml", "--controller", "gcc", "--out", "runs"]);
    assert!(simulated.status.success(), "{}", String::from_utf8_lossy(&simulated.stderr));
    let cell = only(&folder.join("runs"));
    let call = cell.join("stack_mine-call-seed1");
    fs::rename(only(&cell), &call).unwrap();
    let file = call.join("run.json");
    let mut run: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    run["engine"] = json!("call");
    run["controller"] = json!("--stack mine");
    run["subject"] = json!({ "kind": "stack", "name": "mine", "driver": driver });
    run["command"] = json!(format!("weir call s.toml --seed 1 --stack mine --driver {driver}"));
    fs::write(&file, run.to_string()).unwrap();
}

/// Copies the run of one folder to another as its second run.
fn copy_as_second(from: &Path, to: &Path) {
    let first = only(&from.join("runs")).join("stack_mine-call-seed1");
    let second = only(&to.join("runs")).join("stack_mine-call-seed2");
    fs::create_dir(&second).unwrap();
    for entry in fs::read_dir(&first).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, second.join(path.file_name().unwrap())).unwrap();
    }
    let file = second.join("run.json");
    let mut run: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    run["seed"] = json!("2");
    // Its sender may have had another maximum.
    run["scenario_text"] = json!(fs::read_to_string(to.join("s.toml")).unwrap());
    fs::write(&file, run.to_string()).unwrap();
}

/// What all of these runs have in common.
const GATE: [&str; 11] = [
    "arena",
    "--stacks",
    "mine",
    "--driver",
    DRIVER,
    "--scenarios",
    "s.toml",
    "--junit",
    "arena.xml",
    "--out",
    "runs",
];

fn gate(folder: &Path, runs: &str) -> (Option<i32>, String, String) {
    gate_with(folder, &["--runs", runs])
}

fn gate_with(folder: &Path, options: &[&str]) -> (Option<i32>, String, String) {
    let made = weir(folder, &[&GATE[..], options].concat());
    let [out, error] = [made.stdout, made.stderr].map(|text| String::from_utf8(text).unwrap());
    (made.status.code(), out, error)
}

#[test]
fn a_gate_is_green_if_every_expectation_holds() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), "1500kbps", "'/bin/echo mine'");
    let (code, out, error) = gate(folder.path(), "1");
    assert_eq!(code, Some(0), "{out}{error}");
    assert!(out.contains("green, 1 of 1 hold") && out.contains("0 of 1 cells red"), "{out}");
    let cases = fs::read_to_string(folder.path().join("arena.xml")).unwrap();
    assert!(cases.contains("tests=\"1\" failures=\"0\""), "{cases}");
    // Of a failed call it would be the same.
    assert!(cases.contains("classname=\"s_toml.mine-sender\""), "{cases}");
}

#[test]
fn a_cell_of_several_runs_says_how_many_and_how_far_they_differ() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), "1500kbps", "'/bin/echo mine'");
    let (_, one, _) = gate(folder.path(), "1");
    let row = one.lines().find(|line| line.starts_with("mine ")).unwrap();
    assert_eq!(row.split_whitespace().nth(2), Some("1"), "{row}");
    assert!(!row.contains('±'), "one run has no spread: {row}");
    copy_as_second(folder.path(), folder.path());
    let (_, two, error) = gate(folder.path(), "2");
    let row = two.lines().find(|line| line.starts_with("mine ")).expect(&error);
    assert_eq!(row.split_whitespace().nth(2), Some("2"), "{row}");
    assert!(row.contains("±0.00"), "equal runs do not differ: {row}");
}

#[test]
fn a_red_gate_names_the_cause_and_the_command_that_repeats_the_run() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), "300kbps", "'/bin/echo mine'");
    let (code, out, error) = gate(folder.path(), "1");
    assert_eq!(code, Some(1), "{out}{error}");
    let cause = "controller: its target was 300 of 1000 kbit/s and stayed at 300, with neither \
                 queue nor loss";
    let replay = "replay: weir call s.toml --seed 1 --stack mine --driver '/bin/echo mine'";
    assert!(
        out.contains("red, 0 of 1 hold") && out.contains(cause) && out.contains(replay),
        "{out}"
    );
    let cases = fs::read_to_string(folder.path().join("arena.xml")).unwrap();
    assert!(cases.contains("failures=\"1\"") && cases.contains(cause), "{cases}");
}

#[test]
fn an_expectation_in_doubt_is_amber_and_passes_unless_the_gate_is_strict() {
    let [folder, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    record(folder.path(), "300kbps", "'/bin/echo mine'");
    record(other.path(), "600kbps", "'/bin/echo mine'");
    copy_as_second(other.path(), folder.path());
    let (code, out, error) = gate(folder.path(), "2");
    assert_eq!(code, Some(0), "{out}{error}");
    assert!(
        out.contains("amber, 0 of 1 hold, 1 in doubt") && out.contains("0 of 1 cells red"),
        "{out}"
    );
    let (code, out, error) = gate_with(folder.path(), &["--runs", "2", "--strict"]);
    assert_eq!(code, Some(1), "{out}{error}");
    assert!(out.contains("controller: its target was 300 of 1000 kbit/s"), "{out}");
    let cases = fs::read_to_string(folder.path().join("arena.xml")).unwrap();
    assert!(cases.contains("failures=\"1\""), "{cases}");
}

#[test]
fn a_run_that_does_not_say_what_was_seen_is_refused_if_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), "1500kbps", "'/bin/echo mine'");
    let (code, out, error) = gate_with(folder.path(), &["--quality"]);
    assert_eq!(code, Some(2), "{out}{error}");
    assert!(error.contains("was made without --quality: choose another --out"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn a_gate_that_judges_nothing_or_by_an_old_limit_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), "1500kbps", "'/bin/echo mine'");
    let file = folder.path().join("s.toml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("above = 0.5", "above = 0.99")).unwrap();
    let (code, out, error) = gate(folder.path(), "1");
    assert_eq!(code, Some(2), "{out}{error}");
    assert!(error.contains("it was made from another version of the scenario"), "{error}");
    fs::write(&file, text.split("[[expect]]").next().unwrap()).unwrap();
    let (code, out, error) = gate(folder.path(), "1");
    assert_eq!(code, Some(2), "{out}{error}");
    assert!(error.contains("s.toml expects nothing, so a gate would always pass"), "{error}");
}

#[test]
fn a_gate_does_not_pass_by_runs_that_were_not_made() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.toml"), scenario("1500kbps")).unwrap();
    let (code, out, error) = gate_with(folder.path(), &["--no-calls"]);
    assert_eq!(code, Some(2), "{out}{error}");
    assert!(out.contains("0 of 0 cells red, 0 not judged, 1 without a run"), "{out}");
}

#[test]
fn the_run_of_another_driver_is_not_taken_for_this_ones() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), "1500kbps", "./other");
    let (code, out, error) = gate(folder.path(), "1");
    assert_eq!(code, Some(2), "{out}{error}");
    assert!(
        error.contains("is the record of another run: it is the record of `weir call s.toml")
            && error.contains("--driver ./other")
            && error.contains("choose another --out"),
        "{error}"
    );
}

/// The commands of the findings' page are gates on these scenarios.
#[test]
fn every_finding_has_something_to_judge_by() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    for entry in fs::read_dir(root.join("arena/findings")).unwrap() {
        let file = entry.unwrap().path().join("scenario.toml");
        // Those of servers have participants, and are no gates.
        let is_call = fs::read_to_string(&file).is_ok_and(|text| !text.contains("[participant."));
        if !is_call {
            continue;
        }
        fs::copy(&file, folder.path().join("s.toml")).unwrap();
        let (code, out, error) = gate_with(folder.path(), &["--no-calls"]);
        assert_eq!(code, Some(2), "{out}{error}");
        assert!(out.contains("1 without a run"), "{}: {error}", file.display());
        count += 1;
    }
    assert!(count >= 8, "{count} findings");
}

/// A call of pion, whose record is among the findings of the arena.
const FINDING: &str = "arena/findings/pion-minimum";

#[test]
fn the_page_has_a_calls_figures_and_leads_from_a_red_cell_to_its_cause() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let scenario = format!("{FINDING}/scenario.toml");
    let cell = folder.path().join(scenario.replace('/', "__"));
    let call = cell.join("stack_before-call-seed1");
    fs::create_dir(&cell).unwrap();
    let packed = root.join(FINDING).join("before.tar.gz");
    let unpacked = Command::new("tar").arg("-xzf").arg(packed).arg("-C").arg(&cell).status();
    assert!(unpacked.unwrap().success());
    fs::rename(cell.join("before"), &call).unwrap();
    let file = call.join("run.json");
    let mut run: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    run["subject"]["driver"] = json!(format!("'{DRIVER}'"));
    fs::write(&file, run.to_string()).unwrap();
    let [out, page] = [folder.path().to_path_buf(), folder.path().join("page.html")];
    let made = Command::new(WEIR)
        .args(["arena", "--stacks", "before", "--driver", DRIVER, "--scenarios", &scenario])
        .args([Path::new("--out"), &out, Path::new("--page"), &page])
        .current_dir(&root)
        .output()
        .unwrap();
    assert_eq!(made.status.code(), Some(1), "{}", String::from_utf8_lossy(&made.stderr));
    let page = fs::read_to_string(page).unwrap();
    let summary = fs::read_to_string(call.join("summary.json")).unwrap();
    let flow = &serde_json::from_str::<Value>(&summary).unwrap()["flows"][0];
    let share = format!("<b>{:.0} %</b>", 100.0 * flow["utilization"].as_f64().unwrap());
    let lost = format!("{:.1} % lost", 100.0 * flow["loss_ratio"]["mean"].as_f64().unwrap());
    let replay = format!("replay: weir call {scenario} --seed 1 --stack before");
    let anchor = "before-arena-findings-pion-minimum-scenario-toml";
    for part in [
        "pion/webrtc v4.2.26, Chromium 156.0.8078.108",
        &share,
        &lost,
        &format!("<a href=\"#{anchor}\">"),
        &format!("<section id=\"{anchor}\">"),
        "controller: its target was ",
        &replay,
        "<polyline class=target points=\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // It needs no network.
    assert!(!page.contains("http") && !page.contains("src="), "{page}");
}
