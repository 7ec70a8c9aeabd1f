//! A report is of records, wherever they come from.

use std::sync::atomic::AtomicBool;

use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_controllers::{LabAlgorithm, LabController};
use weir_net::Seed;
use weir_record::calls::file::{CallFile, EmulationFacts, Kind, LinkRun};
use weir_record::run::{Engine, RunInfo};
use weir_record::subject::Subject;
use weir_record::{Record, memory};
use weir_scenario::catalogue;
use weir_sim::trace::{ROW_INTERVAL, Trace};

use super::{Report, simulated};

/// Two seconds of five calls in a cellular cell, with a bearer that comes and goes.
pub(super) fn cellular() -> Record {
    let found = catalogue::find("demo/lte-5").unwrap().remove(0);
    let bearer = "[network.terminal.caller.bearer.video]\nqci = 2\ngbr = \"1Mbps\"\n\
                  from = \"500ms\"\nuntil = \"1500ms\"\n[media]";
    let text = found.text.replacen("\"60s\"", "\"2s\"", 1).replacen("[media]", bearer, 1);
    let scenario = weir_scenario::parse("mine", &text, None).unwrap();
    let config = scenario.sim_config(weir_controllers::LabAlgorithm::GccDraft);
    let trace = weir_sim::run(&config, Seed::new(1));
    let info = RunInfo {
        scenario: "mine".into(),
        subject: Subject::controller("gcc-draft"),
        engine: Engine::Sim,
        seed: 1,
    };
    Record { info, scenario, trace, call: None }
}

/// A command that ran for a second.
fn linked() -> Record {
    let Record { info, scenario, trace, .. } =
        simulated("demo/first-call", LabAlgorithm::GccDraft, 1);
    let scenario = scenario.linked(TimeDelta::from_secs(1));
    let template = trace.rows[0];
    let row = |index: i64, flow| {
        let mut row = template.with_target(None).with_feedback(None).with_send_queue(None);
        (row.time, row.flow) = (Timestamp::ZERO + ROW_INTERVAL * index, flow);
        row.with_received(DataSize::from_bytes(100))
    };
    let rows = (1..=20).flat_map(|index| [row(index, 0), row(index, 1)]).collect();
    let flows = scenario.flows.iter().map(|flow| flow.name.clone()).collect();
    let subject = Subject::of_label(Engine::Link, "ping -c 3 10.45.0.2");
    let info = RunInfo { subject, engine: Engine::Link, ..info };
    let emulation = EmulationFacts { disturbed: true, ..EmulationFacts::default() };
    let call =
        Some(CallFile { kind: Kind::Link(LinkRun::default()), emulation, ..CallFile::default() });
    Record { info, scenario, trace: Trace::new(flows).with_rows(rows), call }
}

#[test]
fn records_in_memory_and_on_disk_give_the_same_report() {
    for id in ["demo/first-call", "demo/wifi-5", "demo/lte-5"] {
        let scenario = catalogue::find(id).unwrap().remove(0);
        let gcc = LabController::from(LabAlgorithm::Gcc);
        let trace = weir_sim::run(&scenario.sim_config(&gcc), Seed::new(2));
        let info = RunInfo::simulated(&scenario, &gcc, 2);
        let record = Record { info, scenario, trace, call: None };
        let files = memory::Files::of(&record).unwrap();
        let out = tempfile::tempdir().unwrap();
        let folder = record.write(out.path()).unwrap();
        let stop = AtomicBool::new(false);
        let of_memory = Report::of_files(&[files], "x", &stop).unwrap().unwrap();
        let of_folder = Report::of(&[folder], "x", &stop).unwrap().unwrap();
        let thinned = |json: String| {
            let mut value: serde_json::Value = serde_json::from_str(&json).unwrap();
            for group in value["scenarios"][0]["groups"].as_array_mut().unwrap() {
                group["events"].take();
            }
            value
        };
        assert_eq!(thinned(of_memory.json()), thinned(of_folder.json()), "{id}");
    }
}

#[test]
fn a_run_that_was_recorded_again_counts_once_also_by_another_version() {
    let record = simulated("demo/first-call", LabAlgorithm::GccDraft, 1);
    let out = tempfile::tempdir().unwrap();
    let folders = ["a", "b", "c"].map(|name| record.write(&out.path().join(name)).unwrap());
    let file = folders[1].join("run.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut run: serde_json::Value = serde_json::from_str(&text).unwrap();
    run["weir"] = "0.0.1".into();
    std::fs::write(&file, run.to_string()).unwrap();
    let report = Report::of(&folders, "x", &AtomicBool::new(false)).unwrap().unwrap();
    let report: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
    assert_eq!(report["runs"], 1);
    assert_eq!(report["scenarios"][0]["groups"][0]["seeds"], serde_json::json!(["1"]));
}

#[test]
fn a_report_shows_a_command_beside_simulated_runs() {
    let report = |records: &[Record]| {
        serde_json::to_value(Report::of_records(records, "weir report runs")).unwrap()
    };
    let both = report(&[linked(), simulated("demo/first-call", LabAlgorithm::GccDraft, 1)]);
    let [scenario] = both["scenarios"].as_array().unwrap().as_slice() else { panic!("one") };
    assert_eq!(scenario["duration_s"], 40.0);
    let groups = scenario["groups"].as_array().unwrap();
    let group = groups.iter().find(|group| group["flow"] == "link-up").unwrap();
    assert_eq!(group["engine"], "link");
    assert_eq!(group["series"]["time_s"].as_array().unwrap().len(), 20);
    let again = "weir link demo/first-call --seed 1 -- ping -c 3 10.45.0.2";
    assert_eq!(group["command"], again);
    // `weir link` makes one run at a time.
    let other = Record { info: RunInfo { seed: 2, ..linked().info }, ..linked() };
    let twice = report(&[linked(), other]).to_string();
    assert!(twice.contains(&format!("{again} && ")), "{twice}");
}
