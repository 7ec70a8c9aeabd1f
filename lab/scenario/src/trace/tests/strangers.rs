//! Logs and tables of programs that no set comes from, in short forms of what they print.

use super::super::*;

fn series(text: &str, options: &Options) -> Vec<(f64, f64)> {
    let reading = read_all(text, options).unwrap_or_else(|error| panic!("{error}\n{text}"));
    match reading.trace {
        Trace::Rates(series) => {
            series.steps().iter().map(|step| (step.0.as_secs_f64(), step.1.as_mbps_f64())).collect()
        }
        Trace::Times(series) => {
            let mut values = Vec::new();
            for (at, delay) in series.steps() {
                values.push((at.as_secs_f64(), delay.as_secs_f64() * 1e3));
            }
            values
        }
        other => panic!("{other:?}"),
    }
}

fn error(text: &str, options: &Options) -> String {
    read_all(text, options).unwrap_err().to_string()
}

fn named(want: Want, column: &str) -> Options {
    Options { column: Some(Column::Name(column.into())), ..Options::new(want) }
}

fn in_lines(want: Want, column: &str) -> Options {
    Options { format: Some(Format::Lines), ..named(want, column) }
}

fn every_second(options: Options) -> Options {
    Options { interval: Some(TimeDelta::from_secs(1)), ..options }
}

/// Two values, a second apart.
const TWO: [(f64, f64); 2] = [(0.0, 20.0), (1.0, 30.0)];

#[test]
fn a_log_of_words_is_read_behind_the_text_before_its_values() {
    let hping = "HPING a (eth0 192.0.2.1): S set, 40 headers + 0 data bytes\n\
        len=46 ip=192.0.2.1 ttl=57 seq=0 win=65535 rtt=40.0 ms\n\
        len=46 ip=192.0.2.1 ttl=57 seq=1 win=65535 rtt=60.0 ms\n";
    assert_eq!(series(hping, &every_second(in_lines(Want::Delay, "rtt="))), TWO);
    let tcping = "seq 0: tcp response from 192.0.2.1 [open]  20.000 ms\n\
        seq 1: tcp response from 192.0.2.1 [open]  30000.000 us\n";
    assert_eq!(series(tcping, &every_second(in_lines(Want::Delay, "[open]"))), TWO);
    let owping = "seq_no=0  delay=20.0 ms  (sync)\nseq_no=1  delay=30.0 ms  (sync)\n";
    assert_eq!(series(owping, &every_second(in_lines(Want::Delay, "delay="))), TWO);
    let station = "Station 02:00:00:00:00:01 (on wlan0)\n\ttx bitrate:\t20.0 MBit/s VHT-MCS 9\n\
        Station 02:00:00:00:00:01 (on wlan0)\n\ttx bitrate:\t30.0 MBit/s VHT-MCS 9\n";
    assert_eq!(series(station, &every_second(in_lines(Want::Up, "tx bitrate"))), TWO);
}

#[test]
fn the_times_of_a_log_of_words_begin_its_lines_or_stand_behind_a_text() {
    let ss = "09:30:00\nESTAB 0 0 192.0.2.1:1 192.0.2.2:443\n\
        \t cubic rto:204 rtt:40.5/0.5 delivery_rate 20Mbps busy:1ms\n\
        09:30:01\n\t cubic rto:204 rtt:60.5/0.5 delivery_rate 30000Kbps busy:1ms\n";
    assert_eq!(series(ss, &in_lines(Want::Up, "delivery_rate")), TWO);
    let ms = Some(Unit::Time(1e-3));
    let rtt = Options { unit: ms, ..in_lines(Want::Delay, "rtt:") };
    assert_eq!(series(ss, &rtt), [(0.0, 20.25), (1.0, 30.25)]);
    let netperf = "Interim result: 20.0 10^6bits/s over 1.0 seconds ending at 1715938200.500\n\
        Interim result: 30.0 10^6bits/s over 1.0 seconds ending at 1715938201.500\n";
    let behind = Options {
        time: Some(Column::Name("ending at".into())),
        unit: Some(Unit::Rate(1e6)),
        ..in_lines(Want::Up, "result:")
    };
    assert_eq!(series(netperf, &behind), TWO);
    for stamp in ["[1715938200.5]", "2024-05-17 09:30:0", "[100.0]", "Fri May 17 09:30:0"] {
        let mut text = String::new();
        for (second, rate) in [("0", "20"), ("1", "30")] {
            let stamp = match stamp.strip_suffix(']') {
                Some(start) => format!("{}{second}.5]", &start[..start.len() - 3]),
                None if stamp.starts_with("Fri") => format!("{stamp}{second} 2024"),
                None => format!("{stamp}{second}"),
            };
            text += &format!("{stamp} 7 of 9, rate={rate} Mbit/s\n");
        }
        assert_eq!(series(&text, &in_lines(Want::Up, "rate=")), TWO, "{text}");
    }
}

#[test]
fn a_log_of_words_says_which_key_it_needs() {
    let text = "7 sent, rate=20\n8 sent, rate=30\n";
    assert!(error(text, &Options::new(Want::Up)).contains("format = \"lines\""));
    let none = Options { format: Some(Format::Lines), ..Options::new(Want::Up) };
    assert!(error(text, &none).contains("write column"));
    assert!(error(text, &in_lines(Want::Up, "rate=")).contains("write unit"));
    let unit = Options { unit: Some(Unit::Rate(1e6)), ..in_lines(Want::Up, "rate=") };
    assert!(error(text, &unit).contains("write time"));
    assert!(error(text, &in_lines(Want::Up, "rtt=")).contains("no line has 'rtt='"));
}

#[test]
fn amounts_are_rates_over_the_times_of_their_rows() {
    let bytes = Options { unit: Some(Unit::Amount(8.0)), ..named(Want::Up, "Bytes") };
    let table = "time,Bytes\n0,2500000\n1,1250000\n1,2500000\n2,2500000\n";
    assert_eq!(series(table, &bytes), [(0.0, 20.0), (1.0, 30.0), (2.0, 20.0)]);
    let ends = Options { times: Some(RowTimes::End), ..bytes.clone() };
    assert_eq!(series("time,Bytes\n0,9\n1,2500000\n3,7500000\n", &ends), TWO);
    let columns = Options { unit: Some(Unit::Amount(8e6)), ..Options::new(Want::Up) };
    assert_eq!(series("0 2.5\n1 3.75\n2 2.5\n", &columns)[..2], TWO);
}

#[test]
fn what_a_counter_gains_is_a_rate_until_the_next_row() {
    let text = "uptimeMillis,rxBytes\n5000,1000000\n6000,3500000\n7000,\n8000,11000000\n";
    let message = error(text, &named(Want::Up, "rxBytes"));
    assert!(message.contains("counter = true"), "{message}");
    let unit = Some(Unit::Amount(8.0));
    let counter = Options { unit, counter: true, ..named(Want::Up, "rxBytes") };
    assert_eq!(series(text, &counter), TWO);
    let back = "time,rxBytes\n0,5\n1,7\n2,6\n";
    assert!(error(back, &counter).starts_with("line 4: the counter goes back"));
    let rate = Options { unit: Some(Unit::Rate(1.0)), ..counter };
    assert!(error(text, &rate).contains("unit = \"B\""));
}

#[test]
fn the_newest_row_may_be_first() {
    let text = "time,rate_mbps\n09:30:02,9\n09:30:01,30\n09:30:00,20\n";
    assert_eq!(series(text, &Options::new(Want::Up)), [(0.0, 20.0), (1.0, 30.0), (2.0, 9.0)]);
    // Two rows may be of two experiments.
    let two = "time,rate_mbps\n09:30:01,30\n09:30:00,20\n";
    assert!(error(two, &Options::new(Want::Up)).contains("earlier than that of the line before"));
}

#[test]
fn lines_before_a_header_are_left_out_by_a_key() {
    let text = "\"Dstat 0.7.4 CSV output\"\n\"Author:\",\"x\"\n\n\
        \"epoch\",\"recv_mbps\",\"send\"\n1715938200,20,1\n1715938201,30,1\n";
    let message = error(text, &Options::new(Want::Up));
    assert!(message.contains("write skip = "), "{message}");
    let skip = Options { skip: 3, ..Options::new(Want::Up) };
    assert_eq!(series(text, &skip), TWO);
    let wrong = text.replace("1715938201,30,1", "1715938201,x,1");
    assert!(error(&wrong, &skip).starts_with("line 6: "));
}

#[test]
fn headers_may_end_with_a_separator_or_stand_in_a_comment() {
    let mtr = "Start_Time,Host,Avg_ms,\n1715938200,a,20\n1715938201,a,30\n";
    assert_eq!(series(mtr, &named(Want::Delay, "Avg_ms")), TWO);
    let rows = "time,rate_mbps\n0,20,\n1,30,\n";
    assert_eq!(series(rows, &Options::new(Want::Up)), TWO);
    let sadf = "# hostname;timestamp;IFACE;rx\nme;2024-05-17 09:30:00 UTC;eth0;2500\n\
        me;2024-05-17 09:30:01 UTC;eth0;3750\n";
    let options = Options {
        unit: Some(Unit::Rate(8e3)),
        time: Some(Column::Name("timestamp".into())),
        ..named(Want::Up, "rx")
    };
    assert_eq!(series(sadf, &options), TWO);
    let rrd = "            rx         tx\n\n1715938200: 2.5e+06 1.0\n1715938201: 3.75e+06 nan\n";
    let options = Options { unit: Some(Unit::Rate(8.0)), ..named(Want::Up, "rx") };
    assert_eq!(series(rrd, &options), TWO);
}

#[test]
fn the_longest_list_of_a_file_is_named_with_the_way_to_it() {
    let text = r#"{"status": "success", "data": {"result": [{"metric": {"a": "b"},
        "values": [[1715938200, "20e6"], [1715938201, "30e6"]]}]}}"#;
    let message = error(text, &Options::new(Want::Up));
    assert!(message.ends_with("list = \"data.result.0.values\""), "{message}");
}

#[test]
fn a_number_in_words_is_read_whole_or_refused() {
    let log = |values: [&str; 2]| {
        format!("09:30:00 rate={}, seq=1\n09:30:01 rate={}, seq=2\n", values[0], values[1])
    };
    let mbps = Options { unit: Some(Unit::Rate(1e6)), ..in_lines(Want::Up, "rate=") };
    for values in [["20", "30"], ["20e0", "3e1"], ["20Mbps", "30000kbps"], ["20.0", "30"]] {
        assert_eq!(series(&log(values), &mbps), TWO, "{values:?}");
    }
    let kbps = Options { unit: Some(Unit::Rate(1e3)), ..mbps.clone() };
    assert_eq!(series(&log(["20,000.0", "30'000"]), &kbps), TWO);
    let comma = Options { decimal: Some(Decimal::Comma), ..kbps };
    assert_eq!(series(&log(["20.000,0", "30.000"]), &comma), TWO);
    assert!(error(&log(["20,5", "30"]), &mbps).contains("write decimal = \",\""));
    assert!(error(&log(["20,500", "30"]), &mbps).contains("\".\""));
}

#[test]
fn the_column_of_times_need_not_be_the_first() {
    for table in [
        ",time,rate_mbps\n0,0,20\n1,1,30\n",
        "rate_mbps,time\n20,0\n30,1\n",
        "seconds,rate_mbps\n0,20\n1,30\n",
        "ms,rate_mbps\n0,20\n1000,30\n",
        "us_since_start,rate_mbps\n0,20\n1000000,30\n",
        "date,time,rate_mbps\n2024-06-30,23:59:59,20\n2024-07-01,00:00:00,30\n",
        "Time|Rate (Mbit/s)\n0|20\n1|30\n",
        "| time | rate_mbps |\n|------|-----------|\n| 0 | 20 |\n| 1 | 30 |\n",
        "% made by a program\ntime,rate_mbps\n0,20\n1,30\n",
        "time,rate_mbps\n0,20\ntime,rate_mbps\n1,30\n\u{1a}",
    ] {
        assert_eq!(series(table, &Options::new(Want::Up)), TWO, "{table}");
    }
    let named = Options { time: Some(Column::Name("b".into())), ..Options::new(Want::Up) };
    assert_eq!(series("a,b,rate_mbps\n7,0,20\n7,1,30\n", &named), TWO);
    let message = error("time,rate\n0,20\n1,30\n", &Options::new(Want::Up));
    assert!(message.ends_with("the unit of 'rate' is not known; write unit"), "{message}");
    let two = "start_time,end_time,rate_mbps\n0,1,20\n1,2,30\n";
    assert_eq!(series(two, &Options::new(Want::Up)), TWO);
    let ends = "end_time,rate_mbps\n0,9\n1,20\n2,30\n";
    assert!(error(ends, &Options::new(Want::Up)).contains("write times = \"end\""));
    let chosen = Options { times: Some(RowTimes::End), ..Options::new(Want::Up) };
    assert_eq!(series(ends, &chosen), TWO);
}

#[test]
fn a_row_that_is_the_same_as_the_first_is_no_header() {
    let options = Options {
        duration: Some(Column::Number(1)),
        column: Some(Column::Number(2)),
        time_unit: Some(TimeDelta::from_secs(1)),
        unit: Some(Unit::Rate(1e6)),
        ..Options::new(Want::Up)
    };
    let steps = series("1;20;0\n1;20;0\n1;30;0\n", &options);
    assert_eq!(steps.last(), Some(&(2.0, 30.0)));
}

/// A table of 200 rows whose times are written by a function of their number.
fn timed(time: impl Fn(u32) -> String) -> String {
    let mut text = String::from("time,rate_mbps\n");
    for row in 0..200 {
        text += &format!("{},{}\n", time(row), 20 + row % 7);
    }
    text
}

#[test]
fn times_too_coarse_for_their_rows_are_not_believed() {
    for (rows, interval) in [(2, "500ms"), (4, "250ms"), (5, "200ms")] {
        for is_clock in [false, true] {
            let text = timed(|row| match is_clock {
                true => format!("10:{:02}:{:02}", row / rows / 60, row / rows % 60),
                false => (row / rows).to_string(),
            });
            let message = error(&text, &Options::new(Want::Up));
            assert!(message.contains(&format!("interval = \"{interval}\"")), "{message}");
            assert!(message.contains("where"), "{message}");
            let start = Options { times: Some(RowTimes::Start), ..Options::new(Want::Up) };
            assert_eq!(series(&text, &start).len(), 200 / rows as usize);
        }
    }
    // Rows that are only repeated, or a few seconds with two rows, say nothing wrong.
    let mut repeated = String::from("time,rate_mbps\n");
    for row in 0..200 {
        repeated += &format!("{},{}\n", row / 2, 20 + row / 2);
    }
    assert_eq!(series(&repeated, &Options::new(Want::Up)).len(), 100);
    let some = timed(|row| (row - row / 5).to_string());
    assert_eq!(series(&some, &Options::new(Want::Up)).len(), 161);
}

#[test]
fn numbers_that_are_a_clock_or_days_are_not_taken_for_seconds() {
    for step in [1, 5, 20] {
        let text = timed(|row| {
            let seconds = 9 * 3_600 + 58 * 60 + row * step;
            format!("{:02}{:02}{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
        });
        let message = error(&text, &Options::new(Want::Up));
        assert!(message.contains("time_format = \"%H%M%S\""), "{message}");
        let format = Options { time_format: Some("%H%M%S".into()), ..Options::new(Want::Up) };
        let steps = series(&text, &format);
        assert_eq!(steps.last().map(|step| step.0), Some(f64::from(199 * step)));
        let days = timed(|row| format!("{:.9}", 45_464.25 + f64::from(row * step) / 86_400.0));
        let message = error(&days, &Options::new(Want::Up));
        assert!(message.contains("time_unit = \"d\""), "{message}");
        let unit = Some(TimeDelta::from_secs(86_400));
        let steps = series(&days, &Options { time_unit: unit, ..Options::new(Want::Up) });
        assert!((steps[199].0 - f64::from(199 * step)).abs() < 0.001);
    }
    // Seconds since 1970, since a start, or since a machine was started.
    for start in [0.0, 1_718_964_672.0, 45_464.0, 101_130.0] {
        for step in [0.001, 0.1, 1.0, 20.0, 60.0, 100.0] {
            let text = timed(|row| format!("{:.3}", start + f64::from(row) * step));
            assert_eq!(series(&text, &Options::new(Want::Up)).len(), 200, "{start} {step}");
        }
    }
}

#[test]
fn a_pause_is_called_a_pause_and_no_bunch() {
    for pause in [90, 3_600] {
        let text = timed(|row| (row + row / 100 * pause).to_string());
        let message = error(&text, &Options::new(Want::Up));
        assert!(message.contains("choose a part by where, from and to"), "{message}");
    }
}

#[test]
fn what_the_server_of_iperf3_says_is_not_a_second_test() {
    let line = |from: u32, rate: u32| {
        format!("[  5]  {from}.00-{}.00  sec  1.0 MBytes  {rate}.0 Mbits/sec\n", from + 1)
    };
    let client = line(0, 20) + &line(1, 30);
    let both = format!("{client}\nServer output:\n{}{}", line(0, 19), line(1, 29));
    assert_eq!(series(&both, &Options::new(Want::Up)), TWO);
    // A second test is one, and what a log lacks keeps its time.
    let two = format!("{client}{client}");
    assert_eq!(series(&two, &Options::new(Want::Up)).len(), 4);
    let cut = line(3, 20) + &line(7, 30);
    assert_eq!(series(&cut, &Options::new(Want::Up)), [(0.0, 20.0), (4.0, 30.0)]);
}
