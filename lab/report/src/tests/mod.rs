mod captured;
mod cellular;
mod records;
mod server;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use weir_net::Seed;

use LabAlgorithm::{Gcc, Gcc2013, GccDraft, Nada, Scream};
use weir_record::Record;
use weir_record::calls::file::CallFile;
use weir_record::run::RunInfo;
use weir_record::subject::Subject;
use weir_scenario::catalogue;

use super::*;
use captured::captured_call;

fn simulated(id: &str, algorithm: LabAlgorithm, seed: u64) -> Record {
    let scenario = catalogue::find(id).unwrap().remove(0);
    let trace = weir_sim::run(&scenario.sim_config(algorithm), Seed::new(seed));
    let info = RunInfo::simulated(&scenario, &algorithm.into(), seed);
    Record { info, scenario, trace, call: None }
}

/// A `call.json` with these members.
fn call_file(value: Value) -> CallFile {
    serde_json::from_value(value).unwrap()
}

/// A record in the shape of a call's: the trace is simulated, for there is no browser here.
fn call(seed: u64) -> Record {
    let mut record = simulated("demo/first-call", GccDraft, seed);
    record.info.engine = Engine::Call;
    record.info.subject = Subject::browser("chromium");
    record.call = Some(call_file(json!({
        "bent": false,
        "warnings": ["the processors were busy for 97 % of the time (limit 95 %)"],
        "lateness_us": {"edges": [0, 8, 16], "counts": [9, 1], "p50": 8, "p99": 12, "max": 12},
    })));
    record
}

fn json(records: &[Record]) -> Value {
    serde_json::from_str(&Report::of_records(records, "weir report runs").json()).unwrap()
}

/// Names of members that the files in `lab/web/src/format` give to an interface.
fn members(interface: &str) -> Vec<String> {
    let mut source = String::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../web/src/format");
    for file in fs::read_dir(folder).unwrap() {
        source += &fs::read_to_string(file.unwrap().path()).unwrap();
    }
    let start = format!("export interface {interface} {{\n");
    let (_, body) = source.split_once(&start).unwrap();
    let (body, _) = body.split_once("\n}").unwrap();
    let name = |line: &str| Some(line.trim().split_once(": ")?.0.to_string());
    body.lines().filter_map(name).filter(|name| !name.starts_with(['*', '/'])).collect()
}

fn assert_shape(value: &Value, interface: &str) {
    let keys: Vec<&String> = value.as_object().expect(interface).keys().collect();
    let mut wanted = members(interface);
    wanted.sort();
    let mut found = keys.clone();
    found.sort();
    assert_eq!(found, wanted.iter().collect::<Vec<_>>(), "{interface}");
}

#[test]
fn a_report_has_every_member_that_the_page_reads_and_no_other() {
    let records: Vec<Record> = [1, 2]
        .into_iter()
        .flat_map(|seed| {
            [
                simulated("demo/first-call", GccDraft, seed),
                simulated("lund/sudden-reduction", Nada, seed),
            ]
        })
        .chain([call(1)])
        .collect();
    let report = json(&records);
    assert_shape(&report, "Report");
    assert_eq!(report["runs"], 5);
    assert_eq!(report["controllers"], json!(["gcc-draft", "nada", "chromium"]));
    assert_shape(&report["definitions"][0], "Definition");
    let [demo, lund] = report["scenarios"].as_array().unwrap().as_slice() else { panic!() };
    for scenario in [demo, lund] {
        assert_shape(scenario, "Scenario");
        for group in scenario["groups"].as_array().unwrap() {
            assert_shape(group, "Group");
            assert_shape(&group["series"], "Series");
            assert_shape(&group["events"][0], "RateChange");
            assert_shape(&group["box"], "Boxes");
            assert_shape(&group["points"][0], "Point");
            let points = group["series"]["time_s"].as_array().unwrap().len();
            for (name, column) in group["series"].as_object().unwrap() {
                assert_eq!(column.as_array().unwrap().len(), points, "{name}");
            }
        }
        assert_shape(&scenario["groups"][0]["box"]["utilization"], "BoxPlot");
        assert_shape(&scenario["sections"][0], "SectionRow");
    }
    assert_shape(&lund["paper"][0], "PaperRow");
    assert_shape(&lund["findings"][0], "Finding");
    assert_shape(&demo["sim_real"][0], "SimReal");
    // Two flows of the one scenario that was also called.
    assert_eq!(report["errors"].as_array().unwrap().len(), 2);
    assert_shape(&report["errors"][0], "ErrorRow");
    assert_shape(&demo["sim_real"][0]["rows"][0], "SimRealRow");
    let real = demo["groups"].as_array().unwrap().iter().find(|g| g["engine"] == "call").unwrap();
    assert_shape(&real["lateness_us"], "Histogram");
}

#[test]
fn a_flow_that_shows_its_video_has_a_row_of_what_the_viewer_saw() {
    let with = json(&[simulated("repair/random-loss", Nada, 1)]);
    let rows = with["scenarios"][0]["video"].as_array().unwrap();
    assert_eq!(rows.len(), 1);
    assert_shape(&rows[0], "VideoRow");
    assert_eq!(rows[0]["flow"], "media-1");
    assert!(rows[0]["frame_rate"].as_f64().unwrap() > 20.0);
    let without = json(&[simulated("demo/first-call", Nada, 1)]);
    assert_eq!(without["scenarios"][0]["video"], json!([]));
}

#[test]
fn the_rate_of_a_flow_is_split_into_video_and_repair() {
    let split = |record: Record| json(&[record])["scenarios"][0]["split"].clone();
    let simulated = split(simulated("repair/random-loss", Nada, 1));
    assert_shape(&simulated[0], "SplitRow");
    let of = |key: &str| simulated[0][key].as_f64().unwrap();
    let parts = of("video_mbps") + of("retransmission_mbps") + of("fec_mbps");
    // A flow without feedback packets in its own direction has only these parts.
    assert!((parts / of("rate_mbps") - 1.0).abs() < 0.01, "{parts} of {}", of("rate_mbps"));
    assert!(of("fec_mbps") > 0.0 && of("retransmission_mbps") > 0.0);
    let mut real = captured_call(1);
    real.call.as_mut().unwrap().calls[1].failure = None;
    let real = split(real);
    // Peer a receives the downlink flow, peer b the uplink flow.
    let flows = [&real[0]["flow"], &real[1]["flow"]];
    assert_eq!(flows, [&json!("media-1-down"), &json!("media-1-up")]);
    assert_eq!((&real[1]["video_mbps"], &real[1]["fec_mbps"]), (&json!(1.5), &Value::Null));
    assert!(real[1]["capacity_mbps"].as_f64().is_some());
}

#[test]
fn a_load_has_a_row_of_the_whole_time_and_one_of_each_of_its_sections() {
    let report = json(&[simulated("delft/wired-4/queue300", Gcc, 1)]);
    let rows = report["scenarios"][0]["loads"].as_array().unwrap();
    let sections: Vec<&Value> = rows.iter().map(|row| &row["section"]).collect();
    assert_eq!(sections, [&Value::Null, &json!("TCP alone"), &json!("both")]);
    assert_shape(&rows[0], "LoadRow");
    let (rate, goodput) = (&rows[1]["rate_mbps"], &rows[1]["goodput_mbps"]);
    assert!(goodput.as_f64().unwrap() < rate.as_f64().unwrap());
    // TCP is alone on the path, so retransmissions are the packets that the queue dropped.
    assert!(rows[1]["retransmitted_packets"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_report_tells_verdicts_shares_and_what_changed_since_2013() {
    let records = [
        simulated("rfc8867/5.4", Nada, 1),
        simulated("bari/two-gcc/b1000", Gcc, 1),
        simulated("bari/two-gcc/b1000", Gcc2013, 1),
    ];
    let report = json(&records);
    let [bari, rfc] = report["scenarios"].as_array().unwrap().as_slice() else { panic!() };
    assert_shape(&rfc["expectations"][0], "Expectation");
    assert_shape(&rfc["fairness"][0], "FairnessRow");
    assert_shape(&report["verdicts"][0], "RequirementRow");
    assert_shape(&report["then_and_now"][0], "ThenAndNow");
    assert_shape(&report["then_and_now"][0]["then"], "FlowMeans");
    // Audio has no curve; two algorithms have one row for each flow.
    assert_eq!(rfc["groups"].as_array().unwrap().len(), 3);
    assert_eq!(bari["fairness"].as_array().unwrap().len(), 2);
    assert_eq!(report["then_and_now"].as_array().unwrap().len(), 2);
    let newcomers = report["verdicts"].as_array().unwrap().iter().find(|verdict| {
        (&verdict["requirement"], &verdict["controller"]) == (&json!("2a"), &json!("nada"))
    });
    assert_eq!(newcomers.unwrap()["tested"], 2);
}

#[test]
fn many_groups_have_few_points_each() {
    assert_eq!((Detail::of(1).points, Detail::of(1).changes), (1_200, 400));
    assert_eq!((Detail::of(200).points, Detail::of(200).changes), (600, 100));
    assert_eq!((Detail::of(5_000).points, Detail::of(5_000).changes), (200, 20));
}

#[test]
fn the_order_of_the_records_does_not_change_a_byte() {
    let mut records = vec![
        simulated("demo/first-call", Scream, 1),
        simulated("demo/first-call", GccDraft, 2),
        simulated("demo/first-call", GccDraft, 1),
        call(1),
    ];
    // A second call with the same seed, but with other results.
    let mut other = call(2);
    other.info.seed = 1;
    records.push(other);
    let first = Report::of_records(&records, "weir report runs").json();
    records.reverse();
    assert_eq!(Report::of_records(&records, "weir report runs").json(), first);
    records.swap(0, 2);
    records.push(records[0].clone());
    assert_eq!(
        Report::of_records(&records, "weir report runs").json(),
        first,
        "a record given twice"
    );
}

#[test]
fn groups_are_by_flow_then_engine_then_controller() {
    let records = [
        call(1),
        simulated("demo/first-call", Scream, 1),
        simulated("demo/first-call", GccDraft, 1),
    ];
    let report = json(&records);
    let groups = report["scenarios"][0]["groups"].as_array().unwrap();
    let name =
        |group: &Value| format!("{} {}", group["flow"], group["controller"]).replace('"', "");
    let names: Vec<String> = groups.iter().map(name).collect();
    let controllers = ["gcc-draft", "scream", "chromium"];
    let expected: Vec<String> = ["media-1-up", "media-1-down"]
        .iter()
        .flat_map(|flow| controllers.map(|controller| format!("{flow} {controller}")))
        .collect();
    assert_eq!(names, expected);
}

#[test]
fn a_group_carries_the_command_that_makes_its_runs_again() {
    let command = |seeds: &[u64]| {
        let records: Vec<Record> =
            seeds.iter().map(|seed| simulated("demo/first-call", Nada, *seed)).collect();
        json(&records)["scenarios"][0]["groups"][0]["command"].as_str().unwrap().to_string()
    };
    let run = "weir run demo/first-call --controller nada";
    assert_eq!(command(&[2, 1]), format!("{run} --seeds 2"));
    assert_eq!(command(&[7]), format!("{run} --seed 7"));
    assert_eq!(command(&[1, 3]), format!("{run} --seed 1 && {run} --seed 3"));
}

#[test]
fn hostile_text_stays_inside_the_json() {
    let mut record = simulated("demo/first-call", Nada, 1);
    let title = "</script><script>alert(1)</script><!-- \" \\";
    let quoted = title.replace('\\', r"\\").replace('"', r#"\""#);
    let text = record.scenario.text.lines().map(|line| match line.starts_with("title = ") {
        true => format!("title = \"{quoted}\"\n"),
        false => format!("{line}\n"),
    });
    record.scenario.text = text.collect();
    let text = Report::of_records(&[record], "weir report runs").json();
    assert!(!text.contains('<'));
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["scenarios"][0]["title"], title);
}

#[test]
fn warnings_and_the_worst_lateness_come_from_the_calls() {
    let mut late = call(2);
    late.call.as_mut().unwrap().emulation.lateness_us.as_mut().unwrap().p99 = 15;
    let report = json(&[call(1), late]);
    let group = &report["scenarios"][0]["groups"][0];
    assert_eq!(group["lateness_us"]["p99"], 15.0);
    let warnings = group["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 2);
    assert!(warnings[1].as_str().unwrap().starts_with("seed 2: the processors were busy"));
    let sim = json(&[simulated("demo/first-call", Nada, 1)]);
    assert_eq!(sim["scenarios"][0]["groups"][0]["lateness_us"], Value::Null);
    assert_eq!(sim["scenarios"][0]["groups"][0]["warnings"], json!([]));
}

#[test]
fn a_run_of_another_scenario_text_is_warned_of() {
    let first = simulated("demo/first-call", Nada, 1);
    let mut second = simulated("demo/first-call", Nada, 2);
    second.scenario.text.push_str("# edited\n");
    let report = json(&[first, second]);
    let warnings = &report["scenarios"][0]["groups"][0]["warnings"];
    assert_eq!(warnings.as_array().unwrap().len(), 1);
    assert!(warnings[0].as_str().unwrap().starts_with("seed 2: this run's scenario file differs"));
}

const JUDGED: &str = r#"
title = "A test"
source = "This test"
description = "Two seconds."
duration = "2s"
[network.up]
capacity = [["0s", "1600kbps"], ["1s", "3200kbps"]]
[[flow]]
[[paper]]
location = "Table 1"
metric = "utilization"
published = "0.5"
[[paper]]
location = "Table 2"
metric = "utilization"
controller = "scream"
published = "0.9"
[[expect]]
metric = "utilization"
above = 0.1
[[finding]]
text = "NADA uses at least 0.375 of the link."
location = "Section 1"
controller = "nada"
metric = "utilization"
above = 0.375
[[finding]]
text = "NADA uses at most 0.374 of the link."
location = "Section 2"
controller = "nada"
metric = "utilization"
below = 0.374
[[finding]]
text = "GCC uses most of the link."
location = "Section 3"
controller = "gcc-draft"
metric = "utilization"
is = "highest"
[[finding]]
text = "GCC uses least of the link."
location = "Section 4"
controller = "gcc-draft"
metric = "utilization"
is = "lowest"
[[finding]]
text = "SCReAM uses most of the link."
location = "Section 5"
controller = "scream"
metric = "utilization"
is = "highest"
"#;

/// A run of two seconds that receives a share of what the link carries.
fn judged(controller: &str, engine: Engine, seed: u64, share: f64) -> Record {
    use weir::units::{Bitrate, Timestamp};
    use weir_sim::trace::{ROW_INTERVAL, Row, Trace};

    let scenario = weir_scenario::parse("test/judged", JUDGED, None).unwrap();
    let row = |index: i64| {
        let capacity = Bitrate::from_kbps(if index < 20 { 1_600 } else { 3_200 });
        Row::new(Timestamp::ZERO + ROW_INTERVAL * (index + 1), 0)
            .with_capacity(Some(capacity))
            .with_received((capacity * ROW_INTERVAL) * share)
    };
    let rows = (0..40).map(row).collect();
    let trace = Trace::new(vec!["media-1".into()]).with_rows(rows);
    let (scenario_id, subject) = (scenario.id.clone(), Subject::of_label(engine, controller));
    let info = RunInfo { scenario: scenario_id, subject, engine, seed };
    Record { info, scenario, trace, call: None }
}

#[test]
fn findings_are_judged_by_the_means_over_the_seeds() {
    // 0.25 and 0.5 have a mean of 0.375, exactly in binary.
    let nada = [(1, 0.25), (2, 0.5)].map(|(seed, share)| judged("nada", Engine::Sim, seed, share));
    let holds = |records: &[Record]| -> Vec<Option<bool>> {
        Report::of_records(records, "").scenarios[0].findings.iter().map(|f| f.holds).collect()
    };
    let none = None;
    assert_eq!(holds(&nada), [Some(true), Some(false), none, none, none]);
    let gcc = judged("gcc-draft", Engine::Sim, 1, 0.5);
    let both = [&nada[..], std::slice::from_ref(&gcc)].concat();
    assert_eq!(holds(&both), [Some(true), Some(false), Some(true), Some(false), none]);
    // GCC alone has no rival, and a real call is not a rival.
    let real = judged("chromium", Engine::Call, 1, 0.1);
    assert_eq!(holds(&[gcc, real]), [none; 5]);
    let measured: Vec<String> = Report::of_records(&both, "").scenarios[0]
        .findings
        .iter()
        .map(|f| f.measured.clone())
        .collect();
    assert_eq!(
        measured,
        [
            "utilization of nada is 0.375 (holds if at least 0.375)",
            "utilization of nada is 0.375 (holds if at most 0.374)",
            "utilization of gcc-draft is 0.500; nada 0.375",
            "utilization of gcc-draft is 0.500; nada 0.375",
            "utilization of scream was not measured; gcc-draft 0.500, nada 0.375",
        ]
    );
}

#[test]
fn published_values_stand_beside_the_mean_and_range_over_the_seeds() {
    let nada = [(1, 0.25), (2, 0.5)].map(|(seed, share)| judged("nada", Engine::Sim, seed, share));
    let records = [&nada[..], &[judged("gcc-draft", Engine::Sim, 1, 0.5)]].concat();
    let report = Report::of_records(&records, "");
    let rows = report.scenarios[0].paper.iter();
    let cells: Vec<_> =
        rows.map(|row| (row.controller.as_deref().unwrap(), row.measured.as_deref())).collect();
    assert_eq!(
        cells,
        [("gcc-draft", Some("0.500")), ("nada", Some("0.375 (0.250 to 0.500)")), ("scream", None)]
    );
}

#[test]
fn a_published_value_of_gcc_stands_beside_real_calls_another_does_not() {
    let beside = |algorithm: LabAlgorithm| -> Vec<(Option<String>, Option<String>)> {
        let mut record = judged("chromium", Engine::Call, 1, 0.5);
        record.call =
            Some(call_file(json!({ "calls": [{ "call": 1, "failure": null }], "bent": false })));
        let ours = format!("controller = \"{}\"", algorithm.name());
        record.scenario.text = record.scenario.text.replacen("controller = \"scream\"", &ours, 1);
        let mut rows = std::mem::take(&mut Report::of_records(&[record], "").scenarios[0].paper);
        rows.retain(|row| row.location == "Table 2");
        rows.into_iter().map(|row| (row.controller, row.measured)).collect()
    };
    let row = |name: &str, measured: Option<&str>| (Some(name.into()), measured.map(Into::into));
    assert_eq!(beside(Gcc2013), [row("gcc-2013", None), row("chromium", Some("0.500"))]);
    assert_eq!(beside(Scream), [row("scream", None)]);
}

#[test]
fn published_values_stand_beside_calls_judged_unless_disturbed() {
    let real = |seed, share: f64, disturbed: bool| {
        let mut record = judged("chromium", Engine::Call, seed, share);
        let calls = json!([{ "call": 1, "failure": null }]);
        record.call = Some(call_file(json!({ "calls": calls, "bent": disturbed })));
        record
    };
    let sound = Report::of_records(&[real(1, 1.0, true), real(2, 0.5, false)], "");
    let scenario = &sound.scenarios[0];
    assert_eq!(scenario.paper[0].controller.as_deref(), Some("chromium"));
    assert_eq!(scenario.paper[0].measured.as_deref(), Some("0.500"));
    let calls = scenario.calls.as_ref().unwrap();
    assert_eq!((calls.tried, calls.disturbed, calls.left_out.len()), (1, false, 1));
    assert!(scenario.groups[0].warnings[0].starts_with("seed 1 is left out of all values"));
    let of_calls = |report: &Report| {
        let all = report.scenarios[0].expectations.iter();
        all.filter(|it| it.controller == "chromium").count()
    };
    let disturbed = Report::of_records(&[real(2, 0.5, true)], "");
    assert_eq!((of_calls(&sound) > 0, of_calls(&disturbed)), (true, 0));
    let scenario = &disturbed.scenarios[0];
    assert_eq!(scenario.paper[0].measured.as_deref(), Some("0.500, disturbed by the machine"));
    let calls = scenario.calls.as_ref().unwrap();
    assert_eq!((calls.tried, calls.disturbed, calls.left_out.len()), (1, true, 0));
}

#[test]
fn a_failed_call_counts_in_the_success_ratio_and_in_no_mean() {
    let real = |seed, share: f64, failure: Option<&str>| {
        let mut record = judged("chromium", Engine::Call, seed, share);
        record.call = Some(call_file(json!({
            "calls": [{ "call": 1, "failure": failure }], "bent": false,
            "warnings": failure.into_iter().collect::<Vec<_>>(),
        })));
        record
    };
    let records = [real(1, 0.0, Some("no camera")), real(2, 0.5, None)];
    let report = Report::of_records(&records, "");
    let scenario = &report.scenarios[0];
    assert_eq!(scenario.paper[0].measured.as_deref(), Some("0.500"));
    assert_eq!(scenario.groups[0].seeds, ["2"]);
    assert_eq!(scenario.groups[0].warnings, ["seed 1 is left out of all values: no camera"]);
    assert_eq!(report.participants[0].success_ratio, Some(0.5));
    let calls = scenario.calls.as_ref().unwrap();
    assert_eq!((calls.tried, calls.succeeded, calls.left_out.len()), (2, 1, 0));
    assert_eq!(calls.failures, ["seed 1, call 1: no camera"]);

    let alone = Report::of_records(&records[..1], "");
    let scenario = &alone.scenarios[0];
    assert_eq!((scenario.paper[0].measured.as_deref(), scenario.groups.len()), (None, 0));
    assert_eq!(alone.participants[0].success_ratio, Some(0.0));
    assert!(!scenario.expectations.iter().any(|it| it.controller == "chromium"));
}

#[test]
fn a_call_that_was_made_elsewhere_has_its_curves_although_it_broke_off() {
    let mut record = judged("chromium", Engine::Call, 1, 0.5);
    record.info.subject = Subject::Analyzed { dump: "a.gz".into(), open_loop: None };
    let calls = json!({ "calls": [{ "call": 1, "failure": "it failed" }], "bent": false });
    record.call = Some(call_file(calls));
    let report = Report::of_records(&[record], "");
    let scenario = &report.scenarios[0];
    assert_eq!(scenario.groups[0].seeds, ["1"]);
    assert!(scenario.duration_s > 0.0);
    assert_eq!(report.participants[0].success_ratio, Some(0.0));
}

#[test]
fn a_real_call_stands_beside_its_simulation_with_its_error() {
    let records = [
        judged("gcc", Engine::Sim, 1, 1.0),
        judged("gcc", Engine::Sim, 2, 0.5),
        // Neither is the best model of Chromium.
        judged("gcc-draft", Engine::Sim, 1, 0.5),
        judged("nada", Engine::Sim, 1, 0.5),
        judged("chromium", Engine::Call, 1, 0.5),
    ];
    let report = Report::of_records(&records, "");
    let [pair] = report.scenarios[0].sim_real.as_slice() else { panic!("one pair") };
    assert_eq!((&*pair.sim_controller, &*pair.real_controller), ("gcc", "chromium"));
    let row = |name: &str| pair.rows.iter().find(|row| row.metric == name).unwrap();
    let rate = row("Received rate, mean");
    assert_eq!((rate.simulated, rate.real, rate.error), (Some(1.8), Some(1.2), Some(0.6)));
    let rtt = row("Round-trip time, mean");
    assert_eq!((rtt.simulated, rtt.error), (None, None));
    assert!(rtt.note.contains("getStats"));
    // Seed 2 and the call stay below 90 %.
    let reached = row("Time to 90 % of 3.2 Mbit/s from 1 s");
    assert_eq!((reached.simulated, reached.real, reached.error), (Some(1.0), None, None));
    assert_eq!(
        reached.note,
        "Not reached in 1 of 2 simulated runs. Not reached in 1 of 1 real run."
    );
}

#[test]
fn only_the_metrics_that_are_shown_are_defined() {
    let terms = |records: &[Record]| -> Vec<String> {
        Report::of_records(records, "").definitions.into_iter().map(|d| d.term).collect()
    };
    let sim = terms(&[judged("nada", Engine::Sim, 1, 1.0)]);
    assert!(sim.contains(&"Utilization".into()));
    assert!(!sim.contains(&"target_utilization".into()));
    assert!(!sim.contains(&"Time to 90 %".into()));
    let lund = terms(&[simulated("lund/rmcat-ns3", Nada, 1)]);
    assert!(lund.contains(&"target_utilization".into()));
}
