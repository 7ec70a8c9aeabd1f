//! Tests the readers with small files of the shapes of each format, all made up.

use proptest::prelude::*;
use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_net::{Capacity, TraceEnd};

use super::series::{MAX_LENGTH, Samples};
use super::{Cell, Column, Format, MAX_SAMPLES, Options, Trace, Unit, Want, read};

mod strangers;

/// The times in ms, the values in kbit/s or dB, and the length in ms.
type Shown = (Vec<(i64, f64)>, i64);

fn shown(text: &str, options: &Options) -> Result<Shown, String> {
    let ms = |at: Timestamp| at.as_millis();
    match read(text, options).map_err(|error| error.to_string())? {
        Trace::Opportunities(_) => Err("opportunities".into()),
        Trace::Rates(series) => {
            let steps = series.steps().iter().map(|step| (ms(step.0), step.1.as_kbps_f64()));
            Ok((steps.collect(), series.length().as_millis()))
        }
        Trace::Decibels(series) | Trace::Shares(series) => {
            let steps = series.steps().iter().map(|step| (ms(step.0), step.1));
            Ok((steps.collect(), series.length().as_millis()))
        }
        Trace::Times(series) => {
            let steps = series.steps().iter().map(|step| (ms(step.0), step.1.as_millis_f64()));
            Ok((steps.collect(), series.length().as_millis()))
        }
    }
}

fn up(text: &str) -> Result<Shown, String> {
    shown(text, &Options::new(Want::Up))
}

fn down(text: &str) -> Result<Shown, String> {
    shown(text, &Options::new(Want::Down))
}

fn decibels(text: &str) -> Result<Shown, String> {
    shown(text, &Options::new(Want::Decibels))
}

fn ok(steps: &[(i64, f64)], length: i64) -> Result<Shown, String> {
    Ok((steps.to_vec(), length))
}

fn refused<T>(message: &str) -> Result<T, String> {
    Err(message.into())
}

fn named(column: &str) -> Option<Column> {
    Some(Column::Name(column.into()))
}

#[test]
fn one_column_is_a_mahimahi_trace() {
    let trace = |text| read(text, &Options::new(Want::Down));
    assert!(matches!(trace("\u{feff}# made up\n1\n1\n3\n"), Ok(Trace::Opportunities(_))));
    assert_eq!(
        down("1\n0.5\n"),
        refused(
            "trace line 2: expected a time in whole milliseconds, not '0.5'; if the lines are \
             values, write column = 1, unit and interval"
        )
    );
    assert_eq!(decibels("1\n2\n"), refused("a mahimahi trace holds no decibels"));
    let hold = trace("1\n2\n").unwrap().capacity(TraceEnd::Hold).unwrap();
    assert_eq!(hold.nominal_rate(Timestamp::ZERO), Some(Bitrate::from_kbps(12_000)));
}

#[test]
fn two_columns_are_seconds_and_mbit_s_or_decibels() {
    let text = "# seconds Mbit/s\n0 2\n\n10.5 0\n14\t0.25\n";
    let steps = [(0, 2000.0), (10_500, 0.0), (14_000, 250.0)];
    assert_eq!(up(text), ok(&steps, 17_500));
    assert_eq!(up(&text.replace([' ', '\t'], ",").replace("#,", "# ")), ok(&steps, 17_500));
    assert_eq!(decibels("0 12.5\n1 -3\n"), ok(&[(0, 12.5), (1_000, -3.0)], 2_000));
    // The first line is the start, and the only one lasts for ever.
    assert_eq!(up("1000 3\n1001 4\n"), ok(&[(0, 3000.0), (1_000, 4000.0)], 2_000));
    assert_eq!(up("7 3"), ok(&[(0, 3000.0)], 1_000));
    let in_kbps = Options {
        unit: Some(Unit::Rate(1e3)),
        time_unit: Some(TimeDelta::from_millis(1)),
        ..Options::new(Want::Up)
    };
    assert_eq!(shown("0 300\n20 400\n", &in_kbps), ok(&[(0, 300.0), (20, 400.0)], 40));
}

#[test]
fn two_columns_are_strict() {
    let cases = [
        ("0 2\n0 3\n", "line 2: the time is that of the line before"),
        (
            "0 2\n1 3\n0.5 2\n",
            "line 3: the time is earlier than that of the line before; until there, to = \"1s\" is \
             in order",
        ),
        ("0 2\n1 two\n", "line 2: expected a number, not 'two'"),
        ("0 2\n1\n", "line 2: expected a time and a value, not '1'"),
        ("0 2\n1 2 3\n", "line 2: expected a time and a value, not '1 2 3'"),
        ("0 2\n1 -2\n", "line 2: expected a rate from 0 to 1000 Gbit/s, not -2"),
        ("0 2\n1 1e9\n", "line 2: expected a rate from 0 to 1000 Gbit/s, not 1000000000"),
        ("0 2\n-1 2\n", "line 2: expected a time in seconds, not '-1'"),
        ("0 2\ninf 2\n", "line 2: expected a time in seconds, not 'inf'"),
        ("0 2\n1 nan\n", "line 2: expected a number, not 'nan'"),
        ("0 2\n3600001 2\n", "line 2: more than 1000 hours after the first line"),
        ("", "the trace is empty"),
        (
            "hello\n",
            "line 1: 'hello' is no trace; write its format; of a log in words, write format = \
             \"lines\", and as column the text before the values",
        ),
        ("1 2 3\n", "line 1: 3 columns without a header; write column, unit and time"),
    ];
    for (text, message) in cases {
        assert_eq!(up(text), refused(message), "{text:?}");
    }
    assert_eq!(decibels("0 201\n"), refused("line 1: expected from -200 to 200 dB, not 201"));
}

#[test]
fn a_part_of_a_trace_starts_with_the_value_of_its_start() {
    let part = |from: i64, to: i64| Options {
        from: Some(TimeDelta::from_secs(from)),
        to: Some(TimeDelta::from_secs(to)),
        ..Options::new(Want::Up)
    };
    let text = "0 1\n10 2\n20 3\n30 4\n";
    assert_eq!(shown(text, &part(15, 30)), ok(&[(0, 2000.0), (5_000, 3000.0)], 15_000));
    assert_eq!(shown(text, &part(10, 40)).unwrap().0.len(), 3);
    let message = "from and to must lie in the trace, which has 40 s";
    assert_eq!(shown(text, &part(10, 41)), refused(message));
    assert_eq!(shown(text, &part(10, 10)), refused(message));
    assert_eq!(shown(text, &part(-5, 10)), refused(message));
}

#[test]
fn netem_trace_s_json_is_read_with_and_without_units() {
    let human = r#"{"RepeatedBwPatternConfig": {"pattern": [
        {"StaticBwConfig": {"bw": "12Mbps", "duration": "1s"}},
        {"StaticBwConfig": {"bw": "1Mbps 500kbps", "duration": "1s 500ms"}}
    ], "count": 0}}"#;
    assert_eq!(down(human), ok(&[(0, 12_000.0), (1_000, 1_500.0)], 2_500));
    let plain = r#"{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{"bw":
        {"gbps":0,"bps":12000000},"duration":{"secs":1,"nanos":0}}}],"count":2}}"#;
    assert_eq!(up(plain), ok(&[(0, 12_000.0), (1_000, 12_000.0)], 2_000));
    let trace = r#"{"TraceBwConfig":{"pattern":[
        ["20ms",["2Mbps","4.5Mbps"]],["1ms",[]],["2ms",["1Mb/s"]]]}}"#;
    assert_eq!(up(trace), ok(&[(0, 2_000.0), (20, 4_500.0), (40, 1_000.0)], 42));
    let compact = r#"{"TraceBwConfig":[[20,[2,4.5]],[2.0,[1]]]}"#;
    assert_eq!(up(compact), up(trace));
    // The values that netem-trace has by default.
    assert_eq!(up(r#"{"StaticBwConfig":{}}"#), ok(&[(0, 12_000.0)], 1_000));
    let teeth = r#"{"SawtoothBwConfig":{"bottom":"12Mbps","top":"16Mbps","duration":"700ms",
        "step":"100ms","interval":"500ms","duty_ratio":0.8}}"#;
    let mbps: Vec<f64> = up(teeth).unwrap().0.iter().map(|step| step.1 / 1e3).collect();
    assert_eq!(mbps, [12.0, 13.0, 14.0, 15.0, 16.0, 12.0, 13.0]);
}

#[test]
fn what_netem_trace_s_json_cannot_tell_is_refused_by_name() {
    let cases = [
        (r#"{"NormalizedBwConfig":{"mean":"12Mbps"}}"#, "NormalizedBwConfig draws its rates"),
        (
            r#"{"SawtoothBwConfig":{"std_dev":"1Mbps","seed":7}}"#,
            "SawtoothBwConfig with std_dev draws noise",
        ),
        (r#"{"StaticDelayConfig":{"delay":"1s"}}"#, "bandwidths are wanted, and it has delays"),
        (r#"{"FixedBwConfig":{}}"#, "unknown variant `FixedBwConfig`"),
        (r#"{"StaticBwConfig":{"bandwidth":"1Mbps"}}"#, "unknown field `bandwidth`"),
        ("{\n\"StaticBwConfig\":\n{\"bw\":\"1MB\"}}", "line 3: expected a rate such as"),
        (r#"{"StaticBwConfig":{"duration":"1 fortnight"}}"#, "expected a duration such as"),
        (r#"{"StaticBwConfig":{"bw":12}}"#, "expected a rate such as"),
        (r#"{"StaticBwConfig":{"duration":"0s"}}"#, "the trace has no values"),
        (r#"{"StaticBwConfig":{"duration":"1001h"}}"#, "expected a duration such as"),
        (r#"{"SawtoothBwConfig":{"step":"0s"}}"#, "step and interval above 0"),
        (r#"{"RepeatedBwPatternConfig":{"count":18446744073709551615}}"#, "has no values"),
        (
            r#"{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{"duration":"1ns"}}],
                "count":18446744073709551615}}"#,
            "more than 4194304 steps",
        ),
        (
            r#"{"RepeatedBwPatternConfig":{"pattern":[{"RepeatedBwPatternConfig":{"count":0}},
                {"StaticBwConfig":{}}],"count":0}}"#,
            "has the count 0, for ever",
        ),
        ("{", "EOF while parsing"),
        (r#"{"a":1,"b":{}}"#, "an object with 'a', 'b', of no known program"),
    ];
    for (text, words) in cases {
        let error = up(text).unwrap_err();
        assert!(error.contains(words), "{text}: {error}");
    }
    let deep = format!("{}{}", r#"{"RepeatedBwPatternConfig":{"pattern":["#.repeat(5_000), "1");
    assert!(up(&deep).unwrap_err().contains("recursion limit"));
}

/// G-NetTrack Pro's columns, with which UCC recorded its 4G and 5G sets.
const GNETTRACK: &str = "\
Timestamp,Longitude,Latitude,Speed,Operatorname,CellID,NetworkMode,RSRP,RSRQ,SNR,CQI,RSSI,\
DL_bitrate,UL_bitrate,State
2020.01.02_23.59.58,1.0,2.0,0,A,7,5G,-90,-11,9.0,8,-60,1500,20,D
2020.01.02_23.59.59,1.0,2.0,0,A,7,5G,-91,-12,-,8,-60,-,30,D
2020.01.02_23.59.59,1.0,2.0,0,A,7,5G,-91,-12,-,8,-60,1200,40,D
2020.01.03_00.00.01,1.0,2.0,0,A,7,5G,-93,-13,7.5,7,-61,0,50,D
";

#[test]
fn g_nettrack_s_columns_give_each_way_in_kbit_s_and_the_snr() {
    // The last row of a second counts, and a value that is missing stays what it was.
    assert_eq!(down(GNETTRACK), ok(&[(0, 1500.0), (1_000, 1200.0), (3_000, 0.0)], 5_000));
    assert_eq!(up(GNETTRACK), ok(&[(0, 20.0), (1_000, 40.0), (3_000, 50.0)], 5_000));
    assert_eq!(decibels(GNETTRACK), ok(&[(0, 9.0), (3_000, 7.5)], 5_000));
    let rsrp = Options {
        column: named("RSRP"),
        unit: Some(Unit::Decibels),
        ..Options::new(Want::Decibels)
    };
    assert_eq!(shown(GNETTRACK, &rsrp).unwrap().0.last(), Some(&(3_000, -93.0)));
    let rate = Options { column: named("DL_bitrate"), ..Options::new(Want::Decibels) };
    let message = "line 1: decibels are wanted, and the values are rates (for capacity)";
    assert_eq!(shown(GNETTRACK, &rate), refused(message));
    let late = GNETTRACK.replace("2020.01.03_00.00.01", "2020.01.03_00.01.01");
    let message = "line 5: 62 s after the line before; choose a part by where, from and to";
    assert_eq!(down(&late), refused(message));
}

#[test]
fn the_5gophers_and_lumos5g_tables_need_a_run() {
    let text = "protocol,carrier,num_tcp_conn,run_num,seq_num,throughput_mbps\n\
                TCP,A,1.0,1,20,400.5\nTCP,A,1.0,1,21,410\nTCP,A,8.0,2,20,900\nTCP,A,8.0,2,21,950\n";
    let message = "line 4: the time is earlier than that of the line before; choose the rows of \
                   one run, such as where = { run_num = 1 }; until there, to = \"1s\" is in order";
    assert_eq!(down(text), refused(message));
    let with = |rows: &[(&str, Cell)]| Options {
        rows: rows.iter().map(|(name, cell)| ((*name).into(), cell.clone())).collect(),
        ..Options::new(Want::Down)
    };
    let second = with(&[("num_tcp_conn", Cell::Number(8.0)), ("carrier", Cell::Text("A".into()))]);
    assert_eq!(shown(text, &second), ok(&[(0, 900e3), (1_000, 950e3)], 2_000));
    let none = with(&[("run_num", Cell::Number(3.0))]);
    assert_eq!(shown(text, &none), refused("no row has what where says"));
    let wrong = with(&[("run", Cell::Number(3.0))]);
    assert_eq!(shown(text, &wrong), refused("line 1: there is no column 'run'"));
    let message = "line 1: 5Gophers has no one rate of the way up; name a column";
    assert_eq!(up(text), refused(message));

    let drive = "protocol,num_tcp_conn,seq_num,Sprint_throughput_mbps,Verizon_throughput_mbps\n\
                 TCP,8,0,25.5,50\nTCP,8,1,65,82\nTCP,8,9,0.5,1\n";
    let column = Options { column: named("Sprint_throughput_mbps"), ..Options::new(Want::Down) };
    let steps = [(0, 25_500.0), (1_000, 65_000.0), (9_000, 500.0)];
    assert_eq!(shown(drive, &column), ok(&steps, 17_000));
    assert!(down(drive).unwrap_err().contains("name a column"));

    let lumos = "run_num,seq_num,lte_rssnr,nr_ssSinr,Throughput,mobility_mode\n\
                 1,1,3,2147483647,80,walking\n1,2,3,12,90,walking\n1,3,3,11,70,walking\n";
    assert_eq!(down(lumos), ok(&[(0, 80e3), (1_000, 90e3), (2_000, 70e3)], 3_000));
    assert_eq!(decibels(lumos), ok(&[(0, 12.0), (2_000, 11.0)], 3_000));
}

#[test]
fn the_nuwins_tables_are_known_by_their_columns() {
    let iperf = "time,throughput_mbps,retrans,cwnd_kb,weather,area\n\
                 2024-06-21T10:00:00.000-08:00,5.5,0,90,normal,urban\n\
                 2024-06-21T10:00:00.500-08:00,6.5,0,90,normal,urban\n";
    assert_eq!(up(iperf), ok(&[(0, 5500.0), (500, 6500.0)], 1_000));
    assert_eq!(down(iperf), up(iperf));
    let xcal = "utc_ts,local_dt,run_id,dl_tput_mbps,ul_tput_mbps,\
                LTE KPI PCell Serving RSRQ [dB],alerts\n\
                1730000000.0,x,a,10,1,-9,\"one, two\"\n1730000001.0,x,a,20,2,-10,\"\"\"\"\n";
    assert_eq!(down(xcal), ok(&[(0, 10e3), (1_000, 20e3)], 2_000));
    assert_eq!(up(xcal), ok(&[(0, 1e3), (1_000, 2e3)], 2_000));
    let quality = named("LTE KPI PCell Serving RSRQ [dB]");
    let quality = Options { column: quality, ..Options::new(Want::Decibels) };
    assert_eq!(shown(xcal, &quality), ok(&[(0, -9.0), (1_000, -10.0)], 2_000));
    let starlink = "utc_ts,tput_dl_bps,tput_ul_bps\n1730000000.25,1000000,2000\n";
    assert_eq!(up(starlink), ok(&[(0, 2.0)], 1_000));
    let padded = "utc_ts,tput_dl,tput_ul\n1730000000,3,\n1730000000.5,4,0.5\n";
    assert_eq!(down(padded), ok(&[(0, 3e3), (500, 4e3)], 1_000));
}

#[test]
fn ghent_s_logs_give_bytes_in_milliseconds() {
    let text = "1450000000000 0 51.0 3.7 0 0\n\
                1450000001000 1000 51.0 3.7 1250000 1000\n\
                1450000001500 1500 51.0 3.7 0 0500\n";
    assert_eq!(down(text), ok(&[(0, 10_000.0), (1_000, 0.0)], 1_500));
    assert!(decibels(text).is_err());
    let back = format!("{text}1450000001600 1400 51.0 3.7 9 100\n");
    let message = "line 4: expected a time no earlier than that of the line before, not \
                   '1450000001600 1400 51.0 3.7 9 100'";
    assert_eq!(down(&back), refused(message));
    assert_eq!(
        down("1 2 3 4 5 6\n1 2 3 4 5\n"),
        refused("line 2: expected six numbers, not '1 2 3 4 5'")
    );
}

#[test]
fn a_list_of_objects_is_a_table() {
    // Sabre has Ghent's logs in this form.
    let text = r#"[
        {"duration_ms": 500, "bandwidth_kbps": 5555, "latency_ms": 20},
        {"bandwidth_kbps": 0, "duration_ms": 1000, "more": [1, {"a": null}]}
    ]"#;
    assert_eq!(down(text), ok(&[(0, 5555.0), (500, 0.0)], 1_500));
    let rows = r#"[{"t":0,"sinr":{"db":1},"rate":null},{"t":1,"rate":2.5},{"t":2,"rate":"3"}]"#;
    let options = Options {
        column: named("rate"),
        unit: Some(Unit::Rate(1e6)),
        time: named("t"),
        ..Options::new(Want::Up)
    };
    assert_eq!(shown(rows, &options), ok(&[(0, 2500.0), (2_000, 3000.0)], 3_000));
    let cases = [
        ("[]", "the list is empty"),
        (
            r#"{"start":{},"intervals":[],"error":"unable to connect: Connection refused"}"#,
            "the list is empty, and its error is 'unable to connect: Connection refused'",
        ),
        ("[true]", "line 1: invalid type: boolean `true`, expected an object, a row of a table"),
        ("[1]", "time = 1; it has '1'"),
        ("[{\"a\":1}]", "time = \"Timestamp\"; it has 'a'"),
        (
            "[{\"duration_ms\":1,\"bandwidth_kbps\":1},\n{\"duration_ms\":0}]",
            "line 2: expected milliseconds above 0, not '0'",
        ),
    ];
    for (text, message) in cases {
        let error = up(text).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn columns_of_unknown_tables_are_named_or_numbered() {
    let text = "when;what;how much [Mbps]\n0;x;1.5\n0.5;y;2\n";
    let options =
        Options { column: named("how much [Mbps]"), time: named("when"), ..Options::new(Want::Up) };
    assert_eq!(shown(text, &options), ok(&[(0, 1500.0), (500, 2000.0)], 1_000));
    let message = "line 1: no known table; write which column to read, such as column = \
                   \"DL_bitrate\", unit = \"kbps\", time = \"Timestamp\"; it has 'when', \
                   'what', 'how much [Mbps]'";
    assert_eq!(up(text), refused(message));
    let slip = Options { column: named("wat"), ..options.clone() };
    assert_eq!(
        shown(text, &slip),
        refused("line 1: there is no column 'wat'; did you mean 'what'?")
    );
    let no_unit = Options { column: named("what"), ..options.clone() };
    let message = "line 1: the unit of 'what' is not known; write unit";
    assert_eq!(shown(text, &no_unit), refused(message));
    let no_time = Options { time: None, ..options.clone() };
    let message = "line 1: which column has the time? Write time, duration or interval";
    assert_eq!(shown(text, &no_time), refused(message));
    let every = TimeDelta::from_millis(100);
    let every = Options { time: None, interval: Some(every), ..options.clone() };
    assert_eq!(shown(text, &every), ok(&[(0, 1500.0), (100, 2000.0)], 200));
    let both = Options { interval: every.interval, ..options };
    assert_eq!(
        shown(text, &both),
        refused("line 1: write time, duration or interval, not several")
    );

    let numbered = Options {
        column: Some(Column::Number(3)),
        unit: Some(Unit::Rate(8e3)),
        time: Some(Column::Number(1)),
        time_unit: Some(TimeDelta::from_millis(1)),
        ..Options::new(Want::Down)
    };
    assert_eq!(shown("5 a 1\n10 b 2\n", &numbered), ok(&[(0, 8.0), (5, 16.0)], 10));
    let message = "line 2: expected 3 cells as in the first line, found 2";
    assert_eq!(shown("5 a 1\n10 b\n", &numbered), refused(message));
    let none = Options { column: Some(Column::Number(4)), ..numbered };
    let message = "line 1: there are 3 columns, and no column 4";
    assert_eq!(shown("5 a 1\n", &none), refused(message));
}

#[test]
fn cells_in_quotes_may_have_tabs_between_them() {
    let text = "\"time\"\t\"note\"\t\"rate_mbps\"\n\"0\"\t\t\"1\"\n\"1\"\t\"a\"\t\"2\"\n";
    let options = Options { column: named("rate_mbps"), ..Options::new(Want::Up) };
    assert_eq!(shown(text, &options), ok(&[(0, 1000.0), (1_000, 2000.0)], 2_000));
}

#[test]
fn a_list_may_be_in_an_element_of_another_one() {
    let text = r#"{"runs":[{"rows":[]},{"rows":[{"time":0,"rate_kbps":8}]}]}"#;
    let of = |list: &str| Options { list: Some(list.into()), ..Options::new(Want::Up) };
    assert_eq!(shown(text, &of("runs.1.rows")), ok(&[(0, 8.0)], 1_000));
    for (list, words) in [("runs.2.rows", "there is no '2'"), ("runs.rows", "sequence")] {
        let error = shown(text, &of(list)).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_column_of_intervals_lasts_and_one_of_their_starts_does_not() {
    let text = |name: &str| format!("{name},rate_kbps\n1000,1\n2000,2\n4000,3\n");
    let of = |name: &str| Options { time: named(name), ..Options::new(Want::Up) };
    let of = |name: &str| shown(&text(name), &Options { column: named("rate_kbps"), ..of(name) });
    for name in ["interval_ms", "period_ms", "length (ms)", "durationMs"] {
        assert_eq!(of(name), ok(&[(0, 1.0), (1_000, 2.0), (3_000, 3.0)], 7_000), "{name}");
    }
    for name in ["interval_start_ms", "time_ms"] {
        assert_eq!(of(name), ok(&[(0, 1.0), (1_000, 2.0), (3_000, 3.0)], 5_000), "{name}");
    }
}

#[test]
fn rows_that_all_came_at_once_say_no_time() {
    let rows: String =
        (0..60).map(|row| format!("{:.6},{row}\n", 24.0 + f64::from(row) * 4e-5)).collect();
    let text = format!("time,rate_kbps\n{rows}");
    let error = up(&text).unwrap_err();
    assert!(error.starts_with("line 3: all rows came at once"), "{error}");
    let every = Some(TimeDelta::from_millis(500));
    let every = Options { interval: every, column: named("rate_kbps"), ..Options::new(Want::Up) };
    assert_eq!(shown(&text, &every).unwrap().1, 30_000);
}

#[test]
fn a_comment_may_name_the_columns() {
    let text = "# written by a script\n# time_ms, ul_kbps, dl_kbps\n0,300,1\n500,400,2\n";
    let ul = Options { column: named("ul_kbps"), ..Options::new(Want::Up) };
    for separator in [",", ";", "\t", " "] {
        let text = text.replace(", ", ",").replace(',', separator);
        assert_eq!(shown(&text, &ul), ok(&[(0, 300.0), (500, 400.0)], 1_000), "{separator:?}");
    }
    // Other comments name nothing.
    let other = text.replace(", dl_kbps", "");
    let message = "line 3: 3 columns without a header; write column, unit and time";
    assert_eq!(up(&other), refused(message));
}

#[test]
fn a_key_that_a_format_does_not_have_is_refused() {
    let column = Options { interval: Some(TimeDelta::from_secs(1)), ..Options::new(Want::Up) };
    assert_eq!(
        shown("0 1\n1 2\n", &column),
        refused("a trace of the format columns has no interval")
    );
    let mahimahi = Options {
        format: Some(Format::Mahimahi),
        unit: Some(Unit::Rate(1.0)),
        ..Options::new(Want::Up)
    };
    let message = "a trace of the format mahimahi has no unit";
    assert_eq!(shown("1\n", &mahimahi), refused(message));
}

#[test]
fn rates_become_a_schedule_that_repeats_or_holds() {
    let capacity = |end| {
        let trace = read("0 1\n1 2\n", &Options::new(Want::Up)).unwrap();
        trace.capacity(end).unwrap()
    };
    let mbps = |capacity: &Capacity, seconds| {
        capacity.rate(Timestamp::from_secs(seconds)).unwrap().as_mbps_f64()
    };
    let [repeat, hold] = [TraceEnd::Repeat, TraceEnd::Hold].map(capacity);
    assert_eq!([0, 1, 2, 3].map(|at| mbps(&repeat, at)), [1.0, 2.0, 1.0, 2.0]);
    assert_eq!([0, 1, 2, 3].map(|at| mbps(&hold, at)), [1.0, 2.0, 2.0, 2.0]);
    let nothing = read("0 0\n1 0\n", &Options::new(Want::Up)).unwrap();
    let error = nothing.capacity(TraceEnd::Repeat).unwrap_err().to_string();
    assert_eq!(error, "all rates are 0");
}

#[test]
fn a_series_has_a_value_at_every_time() {
    let Trace::Decibels(series) = read("0 1\n1 2\n", &Options::new(Want::Decibels)).unwrap() else {
        panic!("not decibels");
    };
    let at = |seconds, end| series.at(Timestamp::from_secs(seconds), end);
    assert_eq!([0, 1, 2, 7].map(|at_s| at(at_s, TraceEnd::Repeat)), [1.0, 2.0, 1.0, 2.0]);
    assert_eq!([0, 1, 2, 7].map(|at_s| at(at_s, TraceEnd::Hold)), [1.0, 2.0, 2.0, 2.0]);
}

#[test]
fn the_number_of_samples_is_bounded() {
    let mut samples = Samples::strict();
    for at in 0..MAX_SAMPLES {
        samples.push(at, at as i64, 1.0).unwrap();
    }
    let error = samples.push(9, MAX_SAMPLES as i64, 1.0).unwrap_err().to_string();
    assert_eq!(error, "line 9: more than 4194304 samples");
}

/// Whatever the text, it is refused in one line of the file, or makes a sound trace.
fn survives(text: &str, options: &Options) {
    match read(text, options) {
        Err(error) => {
            let message = error.to_string();
            assert!(!message.contains(|c: char| c.is_control()), "{message:?}");
            assert!(message.chars().count() < 500, "{message}");
            let lines = 1 + text.matches(['\n', '\r']).count();
            assert!(error.line().is_none_or(|line| (1..=lines).contains(&line)), "{message}");
        }
        Ok(Trace::Decibels(series) | Trace::Shares(series)) => {
            assert!(series.steps().iter().all(|step| step.1.abs() <= 200.0));
        }
        Ok(Trace::Times(series)) => {
            assert!(series.steps().iter().all(|step| step.1 <= TimeDelta::from_secs(1_000)));
        }
        Ok(trace) => {
            if let Trace::Rates(series) = &trace {
                assert_eq!(series.steps()[0].0, Timestamp::ZERO);
                assert!(series.steps().is_sorted_by(|a, b| a.0 < b.0));
                assert!((1..=MAX_LENGTH).contains(&series.length().as_nanos()));
            }
            if let Ok(capacity) = trace.capacity(TraceEnd::Repeat) {
                let mean = capacity.nominal_rate(Timestamp::ZERO).unwrap();
                assert!(mean <= Bitrate::from_bps(1_000_000_000_000) || text.len() > 1_000);
            }
        }
    }
}

fn options() -> impl Strategy<Value = Options> {
    let want = prop::sample::select(vec![
        Want::Up,
        Want::Down,
        Want::Decibels,
        Want::Delay,
        Want::Loss,
        Want::Jitter,
    ]);
    let formats = Format::ALL.map(|named| named.1).to_vec();
    let column = prop_oneof![
        Just(None),
        (0..4_usize).prop_map(|number| Some(Column::Number(number))),
        prop::sample::select(vec!["a", "seq_num", "SNR", "t"]).prop_map(named),
    ];
    let time = prop::option::of((-5..20_i64).prop_map(TimeDelta::from_secs));
    let parts = (column.clone(), column, time.clone(), time.clone(), time);
    let unit = prop::option::of(prop::sample::select(Unit::ALL.map(|named| named.1).to_vec()));
    let format = prop::option::of(prop::sample::select(formats));
    (want, format, unit, parts).prop_map(|(want, format, unit, parts)| {
        let (column, time, interval, from, to) = parts;
        Options { format, column, unit, time, interval, from, to, ..Options::new(want) }
    })
}

/// Files of each format, to be damaged.
const FILES: [&str; 10] = [
    "[  5]   0.00-1.00   sec  10.5 MBytes  88.1 Mbits/sec    0    250 KBytes\n",
    " 11.2500 MB /   1.00 sec =   94.3718 Mbps     0 retrans\n",
    "[RepeatedLossPatternConfig]\npattern = [{ StaticLossConfig = { loss = [0.5] } }]\n",
    r#"{"start":{},"intervals":[{"sum":{"start":0,"end":1,"bits_per_second":8e6}}]}"#,
    "1\n2\n2\n9\n",
    "0 2\n10 0\n14 0.25\n",
    GNETTRACK,
    "1450000001000 1000 51.0 3.7 1250000 1000\n1450000001500 1500 51.0 3.7 0 500\n",
    r#"{"RepeatedBwPatternConfig":{"pattern":[{"StaticBwConfig":{"bw":"12Mbps"}},
        {"TraceBwConfig":{"pattern":[["20ms",["2Mbps"]]]}},{"SawtoothBwConfig":{}}],"count":3}}"#,
    "[{\"duration_ms\": 500, \"bandwidth_kbps\": 5},\n{\"duration_ms\": 5, \"bandwidth_kbps\": 0}]",
];

/// Text inserted to damage a file.
const DAMAGE: &str = "(\"|\\[|\\]|\\{|\\}|,|;|:|-|\\.|\n|\r|\t| |\u{2028}|\u{0}|inf|nan|-1|0|1e999|\
                      99999999999999999999|ms|bps|null|\\PC{0,3})";

proptest! {
    #[test]
    fn any_text_is_a_trace_or_refused_in_one_line(text in any::<String>(), options in options()) {
        survives(&text, &options);
    }

    #[test]
    fn any_numbers_are_a_trace_or_refused_in_one_line(
        text in "([0-9.eE+-]{1,22}[ ,;\t\n]){0,40}",
        options in options(),
    ) {
        survives(&text, &options);
    }

    #[test]
    fn a_damaged_trace_is_a_trace_or_refused_in_one_line(
        file in prop::sample::select(FILES.to_vec()),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 0..12_usize, DAMAGE), 1..4),
        options in options(),
        is_plain in any::<bool>(),
    ) {
        let mut chars: Vec<char> = file.chars().collect();
        for (place, length, replacement) in cuts {
            let start = place.index(chars.len() + 1);
            let end = (start + length).min(chars.len());
            chars.splice(start..end, replacement.chars());
        }
        let options = if is_plain { Options::new(options.want) } else { options };
        survives(&chars.into_iter().collect::<String>(), &options);
    }
}
