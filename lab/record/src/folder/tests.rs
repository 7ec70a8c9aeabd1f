use std::collections::BTreeSet;

use weir::units::{DataSize, TimeDelta, Timestamp};
use weir_net::Seed;
use weir_scenario::catalogue;
use weir_sim::trace::{ROW_INTERVAL, Row};

use super::*;
use crate::calls::file::{EmulationFacts, Kind, LinkRun};

fn record(seed: u64) -> Record {
    let scenario = catalogue::find("demo/first-call").unwrap().remove(0);
    let trace = weir_sim::run(
        &scenario.sim_config(weir_controllers::LabAlgorithm::GccDraft),
        Seed::new(seed),
    );
    let info = RunInfo {
        scenario: scenario.id.clone(),
        subject: Subject::controller("gcc-draft"),
        engine: Engine::Sim,
        seed,
    };
    Record { info, scenario, trace, call: None }
}

fn bytes(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

/// The rows of a trace without what a record does not have.
fn recorded(record: &Record) -> Vec<Row> {
    record.trace.rows.iter().map(|row| row.with_send_queue(None)).collect()
}

#[test]
fn a_record_of_schema_1_has_its_subject_from_the_label() {
    let out = tempfile::tempdir().unwrap();
    let record = record(1);
    let folder = record.write(out.path()).unwrap();
    let path = folder.join(RUN);
    let mut run: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    run["schema"] = 1.into();
    run.as_object_mut().unwrap().remove("subject").expect("schema 2 has it");
    fs::write(&path, run.to_string()).unwrap();
    assert_eq!(Record::read(&folder).unwrap().info, record.info);
    run["schema"] = 3.into();
    fs::write(&path, run.to_string()).unwrap();
    let error = Record::read(&folder).unwrap_err().to_string();
    assert!(error.contains("version 3, this weir reads versions 1 to 2"), "{error}");
}

#[test]
fn a_record_read_back_writes_the_same_bytes_and_the_same_summary() {
    let out = tempfile::tempdir().unwrap();
    let record = record(1);
    let folder = record.write(&out.path().join("first")).unwrap();
    let again = Record::read(&folder).unwrap();
    assert_eq!(again.info, record.info);
    assert_eq!(again.summary(), record.summary());
    let second = again.write(&out.path().join("second")).unwrap();
    assert_eq!(bytes(&folder), bytes(&second));
}

#[test]
fn a_record_in_memory_has_the_bytes_of_a_folder() {
    for id in ["demo/first-call", "demo/wifi-5", "demo/lte-5"] {
        let scenario = catalogue::find(id).unwrap().remove(0);
        let gcc = weir_controllers::LabController::from(weir_controllers::LabAlgorithm::Gcc);
        let trace = weir_sim::run(&scenario.sim_config(&gcc), Seed::new(2));
        let info = RunInfo::simulated(&scenario, &gcc, 2);
        let record = Record { info, scenario, trace, call: None };
        let files = memory::Files::of(&record).unwrap();
        let out = tempfile::tempdir().unwrap();
        let folder = record.write(out.path()).unwrap();
        let in_memory = files.iter().map(|(name, bytes)| (name.to_string(), bytes.to_vec()));
        assert!(in_memory.eq(bytes(&folder)), "{id}");
    }
}

#[test]
fn a_video_is_read_back_as_written_and_takes_no_column_where_none_is() {
    let out = tempfile::tempdir().unwrap();
    let mut record = record(1);
    let columns = |folder: &Path| {
        let series = fs::read_to_string(folder.join("series.csv")).unwrap();
        series.lines().map(|line| line.split(',').count()).collect::<BTreeSet<usize>>()
    };
    let folder = record.write(&out.path().join("without")).unwrap();
    assert_eq!(columns(&folder), BTreeSet::from([15]));
    let (flow, repaired) =
        ("{ direction = \"up\"", "{ repair = { nack = true }, direction = \"up\"");
    let text = record.scenario.text.replacen(flow, repaired, 1);
    record.scenario = weir_scenario::parse("mine", &text, None).unwrap();
    let config = record.scenario.sim_config(weir_controllers::LabAlgorithm::GccDraft);
    record.trace = weir_sim::run(&config, Seed::new(1));
    let folder = record.write(&out.path().join("with")).unwrap();
    assert_eq!(columns(&folder), BTreeSet::from([24]));
    let again = Record::read(&folder).unwrap();
    assert!(again.trace.rows == recorded(&record));
    let frame_rate = again.summary().metric(None, "frame_rate").unwrap();
    assert!((25.0..=30.5).contains(&frame_rate), "{frame_rate}");
}

#[test]
fn what_tcp_transferred_is_read_back_as_it_was_written() {
    let out = tempfile::tempdir().unwrap();
    let mut record = record(1);
    // After the last flow of the list.
    let text = record.scenario.text.replacen("\n]\n", "\n  { kind = \"tcp\" },\n]\n", 1);
    record.scenario = weir_scenario::parse("mine", &text, None).unwrap();
    let config = record.scenario.sim_config(weir_controllers::LabAlgorithm::GccDraft);
    record.trace = weir_sim::run(&config, Seed::new(1));
    let again = Record::read(&record.write(out.path()).unwrap()).unwrap();
    assert!(again.trace.rows == recorded(&record));
    let summary = again.summary();
    let value = |path| summary.metric(Some("tcp-1-up"), path).unwrap();
    let share = value("goodput_mbps.mean") / value("rate_mbps.mean");
    // A packet of 1500 bytes has 1448 bytes of payload. A retransmission counts as received twice.
    assert!((0.9..=1448.0 / 1500.0).contains(&share), "{share}");
    assert_eq!(summary.metric(Some("media-1-up"), "goodput_mbps.mean"), None);
}

/// A command's run of a second, in which 100 bytes arrive each way in each row.
fn linked() -> Record {
    let Record { info, scenario, trace, .. } = record(1);
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
fn the_record_of_a_command_has_a_flow_each_way_and_the_commands_length() {
    let out = tempfile::tempdir().unwrap();
    let record = linked();
    let folder = record.write(out.path()).unwrap();
    let again = Record::read(&folder).unwrap();
    assert_eq!(again, record);
    assert_eq!(again.exclusion(), Some(Exclusion::Disturbed));
    let summary = again.summary();
    assert_eq!(summary.exclusion(), Some(Exclusion::Disturbed));
    assert_eq!((summary.engine.as_str(), summary.duration_s), ("link", 1.0));
    assert_eq!(summary.metric(Some("link-down"), "rate_mbps.mean"), Some(20.0 * 800.0 / 1e6));
    assert!(summary.expect.is_empty() && summary.paper.is_empty());
}

#[test]
fn the_time_of_a_command_is_there_where_there_is_one_and_has_an_end() {
    let out = tempfile::tempdir().unwrap();
    let refused = |folder: &Path, from: &str, to: &str| {
        let path = folder.join("run.json");
        let good = fs::read_to_string(&path).unwrap();
        assert!(good.contains(from), "{good}");
        fs::write(&path, good.replacen(from, to, 1)).unwrap();
        let error = Record::read(folder).unwrap_err().to_string();
        fs::write(&path, good).unwrap();
        error
    };
    let folder = linked().write(out.path()).unwrap();
    let own = ",\n  \"duration_ms\": 1000";
    assert!(refused(&folder, own, "").contains("has no duration_ms"));
    assert!(refused(&folder, own, ",\"duration_ms\": 1000000000").contains("at most"));
    assert!(refused(&folder, own, ",\"duration_ms\": 500").contains("after the end"));
    let folder = record(1).write(out.path()).unwrap();
    let flows = "\"flows\":";
    let foreign = refused(&folder, flows, "\"duration_ms\": 1000, \"flows\":");
    assert!(foreign.contains("a simulated run has no duration_ms"), "{foreign}");
}

#[test]
fn a_call_that_was_ended_early_is_as_long_as_it_ran() {
    let out = tempfile::tempdir().unwrap();
    let Record { info, scenario, trace, .. } = record(1);
    let (end, whole) = (TimeDelta::from_secs(2), scenario.duration);
    let scenario = scenario.ended_at(end);
    assert!(scenario.flows.iter().all(|flow| flow.stop <= Timestamp::ZERO + end));
    let rows = trace.rows.iter().filter(|row| row.time <= Timestamp::ZERO + end);
    let rows = rows.map(|row| row.with_send_queue(None)).collect();
    let info = RunInfo { engine: Engine::Call, ..info };
    let trace = Trace::new(trace.flows.clone()).with_rows(rows);
    let record = Record { info, scenario, trace, call: Some(CallFile::default()) };
    let folder = record.write(out.path()).unwrap();
    let again = Record::read(&folder).unwrap();
    assert_eq!(again, record);
    assert_eq!((again.scenario.ended_early, again.summary().duration_s), (true, 2.0));
    let path = folder.join("run.json");
    let longer = (whole + TimeDelta::from_secs(1)).as_millis();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"duration_ms\": 2000", &format!("\"duration_ms\": {longer}")))
        .unwrap();
    let error = Record::read(&folder).unwrap_err().to_string();
    assert!(error.contains("longer than the scenario"), "{error}");
}

#[test]
fn equal_seeds_write_equal_bytes() {
    let out = tempfile::tempdir().unwrap();
    let first = record(7).write(&out.path().join("first")).unwrap();
    let second = record(7).write(&out.path().join("second")).unwrap();
    assert_eq!(bytes(&first), bytes(&second));
}

#[test]
fn a_record_carries_the_trace_that_its_scenario_names() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("line.mahi"), "2\n4\n6\n").unwrap();
    let mut record = record(1);
    let text = record.scenario.text.replacen(
        "capacity = [[\"0s\", \"2Mbps\"], [\"15s\", \"500kbps\"], [\"25s\", \"2Mbps\"]]",
        "capacity = { trace = \"line.mahi\" }",
        1,
    );
    record.scenario = weir_scenario::parse("mine", &text, Some(place.path())).unwrap();
    let folder = record.write(&place.path().join("runs")).unwrap();
    fs::remove_file(place.path().join("line.mahi")).unwrap();
    assert_eq!(Record::read(&folder).unwrap().scenario.hops, record.scenario.hops);
}

#[test]
fn a_folder_that_exists_is_left_alone_and_nothing_half_made_stays() {
    let out = tempfile::tempdir().unwrap();
    let folder = record(1).write(out.path()).unwrap();
    let before = bytes(&folder);
    let error = record(1).write(out.path()).unwrap_err().to_string();
    assert!(error.ends_with("exists already: choose another --out, or remove it"), "{error}");
    assert_eq!(bytes(&folder), before);
    let names = fs::read_dir(folder.parent().unwrap()).unwrap();
    assert_eq!(names.count(), 1);
}

#[test]
fn records_are_found_below_a_folder_by_path() {
    let out = tempfile::tempdir().unwrap();
    let mut folders: Vec<PathBuf> =
        [2, 1].map(|seed| record(seed).write(out.path()).unwrap()).to_vec();
    folders.sort();
    assert_eq!(find(out.path()).unwrap(), folders);
    assert_eq!(find(&folders[0]).unwrap(), folders[..1]);
    assert!(find(&out.path().join("nothing")).is_err());
}

#[test]
fn a_damaged_file_is_named_with_its_line() {
    let out = tempfile::tempdir().unwrap();
    let folder = record(1).write(out.path()).unwrap();
    let damage = |file: &str, from: &str, to: &str| {
        let path = folder.join(file);
        let good = fs::read_to_string(&path).unwrap();
        fs::write(&path, good.replacen(from, to, 1)).unwrap();
        let error = Record::read(&folder).unwrap_err().to_string();
        fs::write(&path, good).unwrap();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    assert!(damage("series.csv", "\n50,", "\n51,").contains("line 2: time_ms: 51 ms"));
    assert!(damage("series.csv", "media-1", "media-9").contains("no flow 'media-9-up'"));
    assert!(damage("series.csv", "time_ms", "time").contains("the first line must be"));
    assert!(damage("events.jsonl", "\"time_us\"", "\"time\"").contains("line 1"));
    assert!(damage("run.json", "\"schema\": 2", "\"schema\": 3").contains("record version 3"));
    assert!(damage("run.json", "duration = ", "length = ").contains("the scenario in"));
    let flows = damage("run.json", "\"media-1-down\"", "\"media-2-up\"");
    assert!(flows.contains("its flows are not those of its scenario"), "{flows}");
    assert!(Record::read(&folder).is_ok());
}

#[test]
fn a_cut_off_or_misshapen_call_file_is_an_error_and_never_an_empty_call() {
    let out = tempfile::tempdir().unwrap();
    let folder = linked().write(out.path()).unwrap();
    let path = folder.join("call.json");
    let good = fs::read_to_string(&path).unwrap();
    let read = |text: &str| {
        fs::write(&path, text).unwrap();
        Reader::open(&folder, &Scenarios::default()).map(|reader| reader.exclusion())
    };
    assert_eq!(read(&good).unwrap(), Some(Exclusion::Disturbed));
    let old = good.replace("  \"refused_packets\": 0\n", "  \"added_later\": {}\n");
    assert_ne!(old, good);
    assert_eq!(read(&old).unwrap(), Some(Exclusion::Disturbed));
    let cut = &good[..good.len() / 2];
    for wrong in ["", "{}", "[]", "null", cut, &good.replace("true", "\"yes\"")] {
        let error = read(wrong).unwrap_err().to_string();
        assert!(error.contains("call.json: ") && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn numbers_that_no_run_has_are_refused_before_they_are_added_up() {
    let out = tempfile::tempdir().unwrap();
    let folder = record(1).write(out.path()).unwrap();
    let path = folder.join("series.csv");
    let good = fs::read_to_string(&path).unwrap();
    let with_last = |column: usize, number: &str| {
        let (head, last) = good.trim_end().rsplit_once('\n').unwrap();
        let mut cells: Vec<&str> = last.split(',').collect();
        cells[column] = number;
        fs::write(&path, format!("{head}\n{}\n", cells.join(","))).unwrap();
        Record::read(&folder).unwrap_err().to_string()
    };
    let time = with_last(0, "1000000000");
    assert!(time.ends_with("a row at 1000000000 ms, after the end"), "{time}");
    let largest = u64::MAX.to_string();
    for (column, number) in [(0, "18446744073709551600"), (7, &largest), (10, &largest)] {
        let error = with_last(column, number);
        assert!(error.ends_with(" is too large"), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_in_a_record_is_read_or_refused(text in ".{0,200}", line in "[0-9,a-z-]{0,80}") {
        let flows = ["media-1".to_string()];
        let header = table::Layout::first(series::GROUPS).header();
        let _ = events::parse_line(&text, &flows);
        for lines in [[text.as_str(), ""], [header.as_str(), &line]] {
            let end = weir::units::Timestamp::from_secs(9);
            let mut reader = series::SeriesReader::new(&flows, end);
            let _ = lines.map(|line| reader.read(line));
        }
    }
}

#[test]
fn links_below_a_folder_are_not_followed() {
    let out = tempfile::tempdir().unwrap();
    let folder = record(1).write(out.path()).unwrap();
    std::os::unix::fs::symlink(out.path(), out.path().join("upwards")).unwrap();
    assert_eq!(find(out.path()).unwrap(), [folder]);
}

#[test]
fn only_regular_files_of_a_record_are_read() {
    let out = tempfile::tempdir().unwrap();
    let folder = record(1).write(out.path()).unwrap();
    for name in ["run.json", "series.csv", "events.jsonl", "call.json"] {
        let path = folder.join(name);
        let good = fs::read(&path).ok();
        let make = |how: &str| {
            let _ = fs::remove_file(&path);
            match how {
                "pipe" => drop(std::process::Command::new("mkfifo").arg(&path).status().unwrap()),
                "folder" => fs::create_dir(&path).unwrap(),
                device => std::os::unix::fs::symlink(device, &path).unwrap(),
            }
        };
        for how in ["/dev/zero", "pipe", "folder"] {
            make(how);
            let error = Record::read(&folder).unwrap_err().to_string();
            let wanted = format!("{name}: is no regular file: only such files are read");
            assert!(error.ends_with(&wanted), "{how}: {error}");
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
        }
        if let Some(good) = good {
            fs::write(&path, good).unwrap();
        }
    }
    assert!(Record::read(&folder).is_ok());
}

#[test]
fn a_line_without_an_end_is_refused_before_it_fills_the_memory() {
    let out = tempfile::tempdir().unwrap();
    let folder = record(1).write(out.path()).unwrap();
    let series = fs::OpenOptions::new().write(true).open(folder.join("series.csv")).unwrap();
    series.set_len(1 << 40).unwrap();
    let error = Record::read(&folder).unwrap_err().to_string();
    assert!(error.ends_with("is too long"), "{error}");
}

#[test]
fn a_column_that_comes_late_is_empty_in_the_rows_before() {
    use weir::units::{DataSize, TimeDelta, Timestamp};
    use weir_sim::trace::{Row, Transfer, Video};
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("series.csv");
    let size = |bytes| DataSize::from_bytes(bytes);
    let row = |ms| Row::new(Timestamp::from_millis(ms), 0);
    let transfer = Some(Transfer::new(size(7), 8));
    let video = Some(Video::default().with_frozen(TimeDelta::from_millis(3)));
    let rows = [
        row(50),
        row(100).with_feedback(Some(size(5))),
        row(150).with_transfer(transfer),
        row(200).with_video(video).with_feedback(Some(size(6))).with_transfer(transfer),
        row(250),
    ];
    let flows = ["x".to_string()];
    let written = |parts: &[&[Row]]| {
        let _ = fs::remove_file(&path);
        let mut file = series::SeriesFile::create(path.clone()).unwrap();
        for rows in parts {
            file.write(&flows, rows).unwrap();
        }
        file.finish().unwrap();
        fs::read_to_string(&path).unwrap()
    };
    let whole = written(&[&rows]);
    assert_eq!(whole.lines().next().unwrap().split(',').count(), 25);
    let one_by_one: Vec<&[Row]> = rows.chunks(1).collect();
    assert_eq!(written(&one_by_one), whole);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    let mut reader = series::SeriesReader::new(&flows, Timestamp::from_secs(1));
    let read: Vec<Row> = whole.lines().filter_map(|line| reader.read(line).unwrap()).collect();
    assert_eq!(read, rows);
}

/// Two seconds of five calls in a cellular cell, with a bearer that comes and goes.
fn cellular() -> Record {
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

#[test]
fn bearers_and_blocks_are_read_back_as_they_were_written() {
    let out = tempfile::tempdir().unwrap();
    let record = cellular();
    let folder = record.write(&out.path().join("first")).unwrap();
    let again = Record::read(&folder).unwrap();
    let (own, read) = (&record.trace.access.cellular, &again.trace.access.cellular);
    assert!(own.rows == read.rows && own.blocks == read.blocks);
    assert_eq!(own.events, read.events);
    // Each of five terminals has a second bearer from 0.5 s on, which stays in the rows.
    assert_eq!(read.rows.len(), 5 * 2 * (40 + 30));
    assert_eq!(read.events.len(), 10);
    assert!(read.blocks.len() > 50, "{}", read.blocks.len());
    let second = again.write(&out.path().join("second")).unwrap();
    assert_eq!(bytes(&folder), bytes(&second));
    let names: Vec<String> = bytes(&folder).into_iter().map(|(name, _)| name).collect();
    assert!(!names.contains(&"nodes.csv".into()) && names.contains(&"bearers.csv".into()));
    let summary = again.summary();
    let value = |path| summary.shared.at(path).unwrap();
    assert!((0.0..1.0).contains(&value("terminal.caller.prb_share_up")));
    assert_eq!(value("terminal.caller.sinr_down_db"), 20.0);
}

#[test]
fn a_damaged_file_of_a_cell_is_named_with_its_line() {
    let out = tempfile::tempdir().unwrap();
    let folder = cellular().write(out.path()).unwrap();
    let damage = |file: &str, from: &str, to: &str| {
        let path = folder.join(file);
        let good = fs::read_to_string(&path).unwrap();
        assert!(good.contains(from), "{file} has no {from}");
        fs::write(&path, good.replacen(from, to, 1)).unwrap();
        let error = Record::read(&folder).unwrap_err().to_string();
        fs::write(&path, good).unwrap();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    };
    assert!(damage("bearers.csv", "\n50,", "\n51,").contains("line 2: time_ms: 51 ms"));
    assert!(damage("bearers.csv", "caller-1", "nobody").contains("no terminal 'nobody'"));
    assert!(damage("bearers.csv", ",up,", ",sideways,").contains("no direction 'sideways'"));
    assert!(damage("bearers.csv", ",2000,", ",99999999999999,").contains("too large"));
    assert!(damage("bearer-events.csv", "added", "lost").contains("no event 'lost'"));
    assert!(damage("blocks.csv", ",down,", ",").contains("no direction 'caller"));
    let ranges = damage("blocks.csv", "0-", "5-2 ");
    assert!(ranges.contains("is not a list of resource blocks"), "{ranges}");
}
