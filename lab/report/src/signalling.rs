//! The signalling of calls through an IMS: the messages and phases that `weir ims` and `weir call
//! --ims` write into the folder of a call.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use weir_record::RecordError;
use weir_scenario::files;

const MESSAGES: &str = "messages.jsonl";
const PHASES: &str = "phases.json";
const RUN: &str = "run.json";
/// Maximum size of each file, in bytes.
const MOST: u64 = 1 << 26;

/// The messages of a call between the parts of an IMS, and how long its phases took.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Signalling {
    /// Both users; with a scenario, its name and the seed too.
    pub title: String,
    /// The terminals and parts, in the order in which they appear.
    pub parts: Vec<String>,
    pub phases: Vec<Phase>,
    /// In the order of time.
    pub messages: Vec<SignallingMessage>,
}

/// A phase of a call, such as from INVITE to 180.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct Phase {
    pub name: String,
    pub duration_ms: f64,
}

/// A message between two parts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(super) struct SignallingMessage {
    /// Since the first message.
    pub time_ms: f64,
    pub from: String,
    pub to: String,
    /// `SIP`, `Diameter`, `HTTP` or `bearer`; `media` for the first picture.
    pub protocol: String,
    /// Method, status or command.
    pub name: String,
    pub text: String,
}

/// A line of `messages.jsonl`.
#[derive(Deserialize)]
struct Line {
    time_ns: String,
    from: String,
    to: String,
    protocol: String,
    name: String,
    text: String,
}

/// What is read of `phases.json`.
#[derive(Deserialize)]
struct Phases {
    caller: String,
    callee: String,
    phases_ms: Map<String, Value>,
}

/// What is read of `run.json`.
#[derive(Deserialize)]
struct Run {
    scenario: String,
    /// A text, as all seeds in records.
    seed: String,
}

/// The folders in and below `folder` that a report can show, sorted by path: records of runs, and
/// calls of `weir ims` without media.
///
/// # Errors
/// If a folder cannot be read.
pub fn find(folder: &Path) -> Result<Vec<PathBuf>, RecordError> {
    weir_record::find_with(folder, &|folder| is_run(folder) || is_there(folder))
}

/// Whether the folder is the record of a run.
pub(super) fn is_run(folder: &Path) -> bool {
    folder.join(RUN).is_file()
}

/// Whether the folder has the signalling of a call.
pub(super) fn is_there(folder: &Path) -> bool {
    folder.join(MESSAGES).is_file() && folder.join(PHASES).is_file()
}

/// The signalling of those folders that have it, by title.
pub(super) fn of(folders: &[PathBuf]) -> Result<Vec<Signalling>, RecordError> {
    let distinct: BTreeSet<&PathBuf> = folders.iter().filter(|one| is_there(one)).collect();
    let mut all = distinct.into_iter().map(|folder| read(folder)).collect::<Result<Vec<_>, _>>()?;
    all.sort_by(|a, b| a.title.cmp(&b.title));
    Ok(all)
}

fn read(folder: &Path) -> Result<Signalling, RecordError> {
    let phases: Phases = json(&folder.join(PHASES), &text(&folder.join(PHASES))?)?;
    let path = folder.join(MESSAGES);
    let messages = messages(&path, &text(&path)?)?;
    let mut parts: Vec<String> = Vec::new();
    for part in messages.iter().flat_map(|one| [&one.from, &one.to]) {
        if !parts.contains(part) {
            parts.push(part.clone());
        }
    }
    let mut title = format!("{} calls {}", phases.caller, phases.callee);
    if is_run(folder) {
        let path = folder.join(RUN);
        let run: Run = json(&path, &text(&path)?)?;
        title = format!("{}, seed {}: {title}", run.scenario, run.seed);
    }
    let durations = phases.phases_ms.into_iter().map(|(name, value)| (name, value.as_f64()));
    let phases =
        durations.filter_map(|(name, value)| Some(Phase { name, duration_ms: value? })).collect();
    Ok(Signalling { title, parts, phases, messages })
}

fn messages(path: &Path, text: &str) -> Result<Vec<SignallingMessage>, RecordError> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let line: Line = json(path, line)?;
        let time: u64 = line.time_ns.parse().map_err(|_| damaged(path, "a time is no number"))?;
        lines.push((time, line));
    }
    lines.sort_by_key(|(time, _)| *time);
    let start = lines.first().map_or(0, |(time, _)| *time);
    let messages = lines.into_iter().map(|(time, line)| SignallingMessage {
        time_ms: super::rounded((time - start) as f64 / 1e6, 1),
        from: line.from,
        to: line.to,
        protocol: line.protocol,
        name: line.name,
        text: line.text,
    });
    Ok(messages.collect())
}

fn text(path: &Path) -> Result<String, RecordError> {
    files::read_text(path, MOST).map_err(|error| RecordError::Io { path: path.into(), error })
}

fn json<T: for<'de> Deserialize<'de>>(path: &Path, text: &str) -> Result<T, RecordError> {
    serde_json::from_str(text).map_err(|error| damaged(path, &error.to_string()))
}

fn damaged(path: &Path, what: &str) -> RecordError {
    RecordError::Damaged { path: path.into(), what: what.into() }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::AtomicBool;

    use serde_json::json;

    use super::super::Report;
    use super::*;

    fn line(time_ns: u64, from: &str, to: &str, name: &str) -> String {
        let line = json!({ "time_ns": time_ns.to_string(), "from": from, "to": to,
            "protocol": "SIP", "name": name, "text": format!("{name} sip:ims.test SIP/2.0\r\n") });
        format!("{line}\n")
    }

    fn write(folder: &Path, messages: &str) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(MESSAGES), messages).unwrap();
        let phases = json!({ "caller": "alice", "callee": "bob",
            "phases_ms": { "registration": 12.5, "INVITE to 180": 3.0 }, "messages": 2 });
        fs::write(folder.join(PHASES), phases.to_string()).unwrap();
    }

    #[test]
    fn a_call_without_media_has_a_report_of_its_messages() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("calls/1");
        let both = line(2_500_000, "pcscf", "alice", "401 REGISTER")
            + &line(1_000_000, "alice", "pcscf", "REGISTER");
        write(&folder, &both);
        let found = find(place.path()).unwrap();
        assert_eq!(found, [folder]);
        let stop = AtomicBool::new(false);
        // A folder that is named twice is shown once.
        let twice = [found[0].clone(), found[0].clone()];
        let report = Report::of(&twice, "weir report calls", &stop).unwrap().unwrap();
        let report: Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(report["title"], "Weir report: alice calls bob");
        let [one] = &report["signalling"].as_array().unwrap()[..] else { panic!("{report}") };
        assert_eq!(one["parts"], json!(["alice", "pcscf"]));
        assert_eq!(one["phases"][0], json!({ "name": "registration", "duration_ms": 12.5 }));
        let times: Vec<&Value> =
            one["messages"].as_array().unwrap().iter().map(|one| &one["time_ms"]).collect();
        assert_eq!(times, [&json!(0.0), &json!(1.5)]);
        assert!(one["messages"][1]["text"].as_str().unwrap().starts_with("401 REGISTER sip:"));
    }

    #[test]
    fn the_signalling_of_a_run_is_named_after_the_run() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("run");
        write(&folder, &line(1, "alice", "pcscf", "REGISTER"));
        let run = json!({ "scenario": "demo/first-call", "seed": "1" });
        fs::write(folder.join(RUN), run.to_string()).unwrap();
        let signalling = of(&[folder]).unwrap();
        assert_eq!(signalling[0].title, "demo/first-call, seed 1: alice calls bob");
    }

    #[test]
    fn damaged_signalling_is_an_error_with_its_file() {
        let place = tempfile::tempdir().unwrap();
        for broken in ["{}\n", "x", "{\"time_ns\":\"x\"}\n"] {
            write(place.path(), broken);
            let error = of(&[place.path().to_path_buf()]).unwrap_err().to_string();
            assert!(error.contains(MESSAGES), "{error}");
        }
    }
}
