//! Logs and tables of programs that no set comes from, in short forms of what they print.

use super::*;

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
