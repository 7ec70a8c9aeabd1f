//! Tests the keys of a capacity that is a trace.

use std::collections::BTreeMap;
use std::fs;

use weir::units::{TimeDelta, Timestamp};
use weir_net::{Capacity, TraceEnd};

use super::with;
use crate::{Scenario, parse, parse_recorded};

const LOG: &str = "\
run;Timestamp;DL_bitrate;UL_bitrate;SNR
1;2020.01.02_10.00.00;3000;300;9
1;2020.01.02_10.00.01;5000;500;8
2;2020.01.02_09.00.00;7000;700;7
";

/// The scenario whose way up has this capacity, beside a few traces.
fn read(capacity: &str) -> Result<Scenario, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("steps.txt"), "0 1\n10 3\n").unwrap();
    fs::write(folder.path().join("log.csv"), LOG).unwrap();
    fs::write(folder.path().join("opportunities.mahi"), "1\n2\n").unwrap();
    fs::write(folder.path().join("empty.txt"), "").unwrap();
    let text = with("\"2Mbps\"", capacity);
    parse("x.toml", &text, Some(folder.path())).map_err(|error| error.to_string())
}

fn up(scenario: &Scenario) -> &Capacity {
    &scenario.hops[0].up.capacity
}

fn mbps(scenario: &Scenario, seconds: i64) -> f64 {
    up(scenario).rate(Timestamp::from_secs(seconds)).unwrap().as_mbps_f64()
}

#[test]
fn rates_over_time_repeat_unless_the_scenario_holds_the_last() {
    let repeat = read("{ trace = \"steps.txt\" }").unwrap();
    let hold = read("{ trace = \"steps.txt\", trace_end = \"hold\" }").unwrap();
    assert_eq!([0, 10, 20, 30].map(|at| mbps(&repeat, at)), [1.0, 3.0, 1.0, 3.0]);
    assert_eq!([0, 10, 20, 30].map(|at| mbps(&hold, at)), [1.0, 3.0, 3.0, 3.0]);
    let Capacity::Schedule(schedule) = up(&hold) else { panic!("not a schedule") };
    assert_eq!(schedule.recording(), Some((TimeDelta::from_secs(20), TraceEnd::Hold)));
    assert_eq!(
        repeat.network_in_words()[0],
        "up: recorded rates of 20 s, repeated; their mean is 2 Mbit/s; queue 300 ms; delay 0 ms"
    );
    let part = read("{ trace = \"steps.txt\", from = \"5s\", to = \"12s\" }").unwrap();
    assert_eq!([0, 5, 7].map(|at| mbps(&part, at)), [1.0, 3.0, 1.0]);
}

#[test]
fn a_known_table_gives_the_way_that_has_the_capacity() {
    let scenario = read("{ trace = \"log.csv\", where = { run = 1 } }").unwrap();
    assert_eq!([0, 1].map(|at| mbps(&scenario, at)), [0.3, 0.5]);
    let other = "{ trace = \"log.csv\", where = { run = \"1\" }, column = \"DL_bitrate\" }";
    assert_eq!(mbps(&read(other).unwrap(), 1), 5.0);
    let all = "{ trace = \"log.csv\", where = { run = 1 }, column = 4, unit = \"kbps\", \
               time = 2, format = \"csv\" }";
    assert_eq!(mbps(&read(all).unwrap(), 1), 0.5);
    let every = "{ trace = \"log.csv\", column = 4, unit = \"MB/s\", interval = \"100ms\" }";
    assert_eq!(mbps(&read(every).unwrap(), 0), 2400.0);
}

#[test]
fn an_error_of_a_trace_names_its_file_and_its_line() {
    let cases = [
        (
            "{ trace = \"log.csv\" }",
            "x.toml:6: network.up.capacity.trace: 'log.csv': line 4: the time is earlier than \
             that of the line before; choose the rows of one run, such as where = { run = 1 }; \
             until there, to = \"1s\" is in order",
        ),
        (
            "{ trace = \"opportunities.mahi\", from = \"1ms\", to = \"3ms\" }",
            "x.toml:6: network.up.capacity.trace: 'opportunities.mahi': from and to must lie in \
             the trace, which has 0.002 s",
        ),
        (
            "{ trace = \"empty.txt\" }",
            "x.toml:6: network.up.capacity.trace: 'empty.txt': the trace is empty",
        ),
        (
            "{ trace = \"steps.txt\", format = \"mahi\" }",
            "x.toml:6: network.up.capacity.format: expected \"mahimahi\" or \"columns\" or \
             \"netem-trace\" or \"csv\" or \"json\" or \"ghent\" or \"iperf\" or \"nuttcp\" \
             or \"ping\" or \"lines\", found the text 'mahi'",
        ),
        (
            "{ trace = \"steps.txt\", unit = \"dB\" }",
            "x.toml:6: network.up.capacity.trace: 'steps.txt': rates are wanted, and the values \
             are decibels (for sinr)",
        ),
        (
            "{ trace = \"steps.txt\", column = 0 }",
            "x.toml:6: network.up.capacity.column: must be a whole number from 1 to 10000",
        ),
        (
            "{ trace = \"log.csv\", where = { run = [1] } }",
            "x.toml:6: network.up.capacity.where.run: expected a text or a number, found a list",
        ),
        (
            "{ format = \"csv\" }",
            "x.toml:6: network.up.capacity.trace is missing; write trace = \"uplink.mahi\"",
        ),
    ];
    for (capacity, message) in cases {
        assert_eq!(read(capacity).unwrap_err(), message, "{capacity}");
    }
}

#[test]
fn a_record_gives_the_same_capacity_as_the_file() {
    let capacity = "{ trace = \"log.csv\", where = { run = 1 } }";
    let scenario = read(capacity).unwrap();
    assert_eq!(scenario.traces, BTreeMap::from([("log.csv".to_owned(), LOG.to_owned().into())]));
    let recorded = parse_recorded("x.toml", &scenario.text, None, scenario.traces.clone()).unwrap();
    assert_eq!(up(&recorded), up(&scenario));
}
