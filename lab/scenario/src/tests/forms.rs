//! Forms of one table: encodings, separators, commas, blanks and logs of programs.

use std::fmt::Write as _;
use std::fs;

use weir::units::{Bitrate, TimeDelta};

use crate::trace::{Options, Reading, Trace, Want, read_all, read_file};

/// Length in ms and mean in kbit/s, ms or percent of a file with these keys.
fn of_bytes(content: &[u8], keys: &str, want: Want) -> Result<(i64, f64), String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), content).unwrap();
    let keys = format!("trace = \"a\"{keys}");
    let (reading, _) = read_file(&keys, want, folder.path()).map_err(|error| error.to_string())?;
    Ok(length_and_mean(reading))
}

fn length_and_mean(reading: Reading) -> (i64, f64) {
    let (steps, length): (Vec<(i64, f64)>, TimeDelta) = match reading.trace {
        Trace::Opportunities(_) => panic!("no steps"),
        Trace::Rates(of) => (numbers(of.steps(), Bitrate::as_kbps_f64), of.length()),
        Trace::Times(of) => (numbers(of.steps(), TimeDelta::as_millis_f64), of.length()),
        Trace::Decibels(of) => (numbers(of.steps(), |db| db), of.length()),
        Trace::Shares(of) => (numbers(of.steps(), |share| share * 100.0), of.length()),
    };
    let ends = steps.iter().skip(1).map(|step| step.0).chain([length.as_nanos()]);
    let sum: f64 = steps.iter().zip(ends).map(|(step, end)| step.1 * (end - step.0) as f64).sum();
    let mean = sum / length.as_nanos() as f64;
    (length.as_millis(), (mean * 1e3).round() / 1e3)
}

fn numbers<T: Copy>(
    steps: &[(weir::units::Timestamp, T)],
    number: impl Fn(T) -> f64,
) -> Vec<(i64, f64)> {
    steps.iter().map(|step| (step.0.as_nanos(), number(step.1))).collect()
}

fn rate(content: &str, keys: &str) -> Result<(i64, f64), String> {
    of_bytes(content.as_bytes(), keys, Want::Up)
}

/// 8 and 2 Mbit/s, a second each, under this header and with this between the cells.
fn plain(header: &str) -> String {
    format!("{header}\n0,8\n1,2\n")
}

const PLAIN: Result<(i64, f64), String> = Ok((2_000, 5_000.0));

#[test]
fn a_text_is_read_in_every_encoding_of_a_mark_and_with_every_end_of_line() {
    let text = plain("time,rate_mbps");
    let wide = |unit: fn(u16) -> [u8; 2], mark: [u8; 2]| {
        let units = text.encode_utf16().flat_map(unit);
        mark.into_iter().chain(units).collect::<Vec<u8>>()
    };
    let of = |bytes: &[u8]| of_bytes(bytes, "", Want::Up);
    assert_eq!(of(text.as_bytes()), PLAIN);
    assert_eq!(of(text.replace('\n', "\r\n").as_bytes()), PLAIN);
    assert_eq!(of(text.replace('\n', "\r").as_bytes()), PLAIN);
    assert_eq!(of(format!("\u{feff}{text}").as_bytes()), PLAIN);
    assert_eq!(of(&wide(u16::to_le_bytes, [0xFF, 0xFE])), PLAIN);
    assert_eq!(of(&wide(u16::to_be_bytes, [0xFE, 0xFF])), PLAIN);
    let bare = wide(u16::to_le_bytes, [0xFF, 0xFE]).split_off(2);
    assert!(of(&bare).unwrap_err().contains("save it as a text in UTF-8"));
    let latin = of(b"time (\xB5s),rate_mbps\n0,8\n").unwrap_err();
    assert!(latin.contains("is no text in UTF-8"), "{latin}");
    assert_eq!(rate("0 8\r1 2\r", ""), PLAIN);
}

#[test]
fn a_decimal_comma_is_asked_for_and_then_read_in_every_form() {
    let half = Ok((1_000, 5_000.0));
    for text in [
        "time;rate_mbps\n0,0;8,5\n0,5;1,5\n",
        "time\trate_mbps\n0,0\t8,5\n0,5\t1,5\n",
        "time,rate_mbps\n\"0,0\",\"8,5\"\n\"0,5\",\"1,5\"\n",
        "0,0;8,5\n0,5;1,5\n",
        "0,0 8,5\n0,5 1,5\n",
    ] {
        let error = rate(text, "").unwrap_err();
        assert!(error.contains("if commas are decimal, write decimal = \",\""), "{text}: {error}");
        assert_eq!(rate(text, ", decimal = \",\""), half, "{text}");
    }
    let three = "time;up_mbps;down_mbps\n0,0;8,5;20,1\n0,5;1,5;20,1\n";
    let keys = ", decimal = \",\", column = \"up_mbps\", time = \"time\"";
    assert_eq!(rate(three, keys), half);
    assert_eq!(rate("0;8\n1;2\n", ", decimal = \",\""), PLAIN);
    let error = rate("[{\"time\":0,\"rate_mbps\":8}]", ", decimal = \",\"").unwrap_err();
    assert!(error.ends_with("a trace of the format json has no decimal"), "{error}");
}

#[test]
fn quotes_hide_separators_and_empty_lines_end_no_table() {
    assert_eq!(rate(&plain("\"time\",\"rate, Mbps\""), ""), PLAIN);
    let keys = ", time = 1, column = 2";
    assert_eq!(rate(&plain("\"time; s\",\"rate, Mbps\""), keys), PLAIN);
    assert_eq!(rate("\"time\" \"rate Mbps\"\n0 8\n1 2\n", ""), PLAIN);
    assert_eq!(rate("time,rate_mbps\n0,8\n1,2\n,\n,\n", ""), PLAIN);
    assert_eq!(rate("sep=;\ntime;rate_mbps\n0;8\n1;2\n", ""), PLAIN);
    let more = "time,lost,rate_mbps,place\n0,1,8,here\n1,0,2,there\n";
    assert_eq!(rate(more, ""), PLAIN);
    let both = rate("time,up_mbps,down_mbps\n0,1,8\n", "").unwrap_err();
    assert!(both.contains("write which column to read"), "{both}");
    assert_eq!(rate("time,up_mbps,down_mbps\n0,8,1\n1,2,1\n", ", column = \"up_mbps\""), PLAIN);
    assert_eq!(rate("time,rate\n0,8 Mbps\n1,2000 kbps\n", ", unit = \"Mbps\""), PLAIN);
    for blank in ["NULL", "n/a", "None", "--", "#N/A", "NaN"] {
        let text = format!("time,rate_mbps\n0,8\n1,{blank}\n2,2\n3,{blank}\n");
        assert_eq!(rate(&text, ""), Ok((4_000, 5_000.0)), "{blank}");
    }
}

#[test]
fn a_comment_above_two_columns_names_their_units() {
    let text = "0 8000\n500 2000\n";
    for comment in ["# time_ms rate_kbps", "#time_ms,rate_kbps", "# Time [ms]   Rate [kbit/s]"] {
        assert_eq!(rate(&format!("{comment}\n{text}"), ""), Ok((1_000, 5_000.0)), "{comment}");
    }
    for comment in ["# a drive", "# of the drive of 2024", "#", "# x,y"] {
        assert_eq!(rate(&format!("{comment}\n0 8\n1 2\n"), ""), PLAIN, "{comment}");
    }
    let lasts = rate(&format!("# duration_ms rate_kbps\n{text}"), "").unwrap_err();
    assert!(lasts.contains("write duration = 1, column = 2, unit and time_unit"), "{lasts}");
    let keys = ", unit = \"Mbps\", time_unit = \"s\"";
    assert_eq!(rate("# time_ms rate_kbps\n0 8\n1 2\n", keys), PLAIN);
    let rtt = of_bytes(b"# time rtt_ms\n0 20\n1 40\n", "", Want::Delay);
    assert_eq!(rtt, Ok((2_000, 15.0)));
}

#[test]
fn a_number_of_another_unit_asks_for_it() {
    let hint = "write time_unit, such as \"ms\"";
    for text in ["1700000000000 8\n", "time,rate_mbps\n1700000000000,8\n"] {
        assert!(rate(text, "").unwrap_err().contains(hint), "{text}");
    }
    let digits = rate("time,rate_mbps\n20241321121100,8\n", "").unwrap_err();
    assert!(digits.ends_with("or time_format"), "{digits}");
    let values = rate("8.5\n1.5\n", "").unwrap_err();
    assert!(values.ends_with("if the lines are values, write column = 1, unit and interval"));
    let keys = ", column = 1, unit = \"Mbps\", interval = \"1s\"";
    assert_eq!(rate("8.5\n1.5\n", keys), PLAIN);
    let percent = of_bytes(b"time,loss_ratio\n0,2\n", "", Want::Loss).unwrap_err();
    assert!(percent.ends_with("if it is percent, write unit = \"%\""), "{percent}");
}

#[test]
fn a_name_of_a_round_trip_halves_it_and_the_least_one_is_in_no_minutes() {
    for name in ["rtt_ms", "RTT (ms)", "srtt_ms", "avgRttMs", "round_trip_ms", "pingMs"] {
        let text = format!("time,{name}\n0,20\n1,40\n");
        assert_eq!(of_bytes(text.as_bytes(), "", Want::Delay), Ok((2_000, 15.0)), "{name}");
    }
    let one_way = of_bytes(b"time,owd_us\n0,20000\n1,40000\n", "", Want::Delay);
    assert_eq!(one_way, Ok((2_000, 30.0)));
    let least = of_bytes(b"time,rtt_min\n0,20\n", "", Want::Delay).unwrap_err();
    assert!(least.contains("unit"), "{least}");
}

#[test]
fn rows_that_came_in_bunches_are_refused_however_many_they_were() {
    let value = |row: i64| if row % 25 == 24 { 30 } else { 4 };
    let table = |at: &dyn Fn(i64) -> f64| {
        let mut text = String::from("time,rate_mbps\n");
        for row in 0..100 {
            let _ = writeln!(text, "{:.6},{}", at(row), value(row));
        }
        text
    };
    let bunches = |of: i64, apart: f64| {
        let at = move |row: i64| (row / of * of) as f64 * 0.5 + (row % of) as f64 * apart;
        table(&at)
    };
    for of in [3, 5, 8, 25] {
        let error = rate(&bunches(of, 40e-6), "").unwrap_err();
        assert!(error.contains("such as interval = \"500ms\", or times = \"start\""), "{error}");
    }
    for of in [8, 25] {
        let error = rate(&bunches(of, 0.0), "").unwrap_err();
        assert!(error.contains("such as interval = \"500ms\""), "{of}: {error}");
    }
    // A line that stalled for five seconds, three times.
    let stalled = |row: i64| match row {
        20..30 => 14.5 + (row - 20) as f64 * 30e-6,
        50..60 => 29.5 + (row - 50) as f64 * 30e-6,
        row => row as f64 * 0.5,
    };
    assert!(rate(&table(&stalled), "").unwrap_err().contains("interval"));
    let trusted = rate(&bunches(25, 40e-6), ", times = \"start\"");
    assert!(trusted.is_ok(), "{trusted:?}");
    // Most rows in pairs, with values that change.
    let mut text = String::from("time,rate_mbps\n");
    for row in 0..100 {
        let _ = writeln!(text, "{:.4},{row}", (row / 2) as f64 + (row % 2) as f64 * 1e-4);
    }
    assert!(rate(&text, "").unwrap_err().contains("such as interval = \"500ms\""));
    // The set is known to have rows of half a second.
    let known = text.replace("rate_mbps", "throughput_mbps");
    assert_eq!(rate(&known, ""), Ok((50_000, 49_500.0)));
    // Two rows a second with whole seconds, stairs, and a measured jitter are no bunches.
    assert!(rate(&bunches(2, 0.0), "").is_ok());
    let mut stairs = String::new();
    for step in 0..20 {
        let _ = writeln!(stairs, "{}.0 {step}\n{}.999 {step}", step * 10, step * 10 + 9);
    }
    assert!(rate(&stairs, "").is_ok());
    let jitter = |row: i64| row as f64 * 0.5 + (row * 7_919 % 10) as f64 / 50.0;
    assert!(rate(&table(&jitter), "").is_ok());
    let same = rate("step,rate_mbps\n1,8\n1,2\n", ", time = \"step\", column = 2").unwrap_err();
    assert!(same.ends_with("write how long each row lasts, by duration or interval"), "{same}");
}

#[test]
fn rows_of_json_may_be_lists_values_or_lines_and_may_leave_cells_out() {
    let two = ", column = 2, time = 1, unit = \"Mbps\"";
    assert_eq!(rate("[[0,8],[1,2]]", two), PLAIN);
    let one = ", column = 1, unit = \"Mbps\", interval = \"1s\"";
    assert_eq!(rate("[8,null,2,2.0]", one), Ok((4_000, 5_000.0)));
    assert_eq!(rate("{\"time\":0,\"rate_mbps\":8}\n{\"time\":1,\"rate_mbps\":2}\n", ""), PLAIN);
    let late = r#"[{"time":0},{"time":1,"rate_mbps":8},{"time":2},{"time":3,"rate_mbps":2}]"#;
    assert_eq!(rate(late, ""), Ok((4_000, 6_500.0)));
    let error = rate("[[0,8],[1,2]]", "").unwrap_err();
    assert!(error.contains("it has '1', '2'"), "{error}");
    let lines = "{\"a\":1}\n{\"a\":2}\n";
    let error = rate(lines, ", list = \"a\"").unwrap_err();
    assert!(error.ends_with("it is a list already; leave the key list out"), "{error}");
    // Intel's LPP has entries without a rate.
    let lpp = r#"{"version":1,"entries":[{"entryNo":1,"dateTime":"2020-11-05T13:45:38+01:00"},
        {"entryNo":2,"dateTime":"2020-11-05T13:45:39+01:00","ulBw":8000},
        {"entryNo":3,"dateTime":"2020-11-05T13:45:40+01:00","ulBw":2000}]}"#;
    assert_eq!(rate(lpp, ""), Ok((3_000, 6_000.0)));
}

#[test]
fn each_way_that_iperf_prints_gives_the_same_rates() {
    let log = |role: &str, unit: &str| {
        let mut text = String::from("[ ID] Interval           Transfer     Bitrate\n");
        for (second, rate) in [8, 2].iter().enumerate() {
            let _ = writeln!(
                text,
                "[  5]{role}   {second}.00-{}.00   sec  1.00 MBytes  {rate}.00 {unit}    0",
                second + 1
            );
        }
        text
    };
    assert_eq!(rate(&log("", "Mbits/sec"), ""), PLAIN);
    // Its bytes come in powers of 1024.
    assert_eq!(rate(&log("", "KBytes/sec"), ""), Ok((2_000, 40.96)));
    assert_eq!(rate(&log("", "MBytes/sec"), ""), Ok((2_000, 41_943.04)));
    let stamped = log("", "Mbits/sec").replace("[  5]", "Thu Jun 20 10:00:00 2024 [  5]");
    assert_eq!(rate(&stamped, ""), PLAIN);
    let both = log("[TX-C]", "Mbits/sec") + &log("[RX-C]", "Kbits/sec").replace("[  5]", "[  7]");
    assert_eq!(rate(&both, ""), PLAIN);
    assert_eq!(of_bytes(both.as_bytes(), "", Want::Down), Ok((2_000, 5.0)));
    let stream = r#"{"event":"start","data":{"version":"iperf 3.17"}}
        {"event":"interval","data":{"sum":{"start":0,"end":1,"bits_per_second":8e6}}}
        {"event":"interval","data":{"sum":{"start":1,"end":2,"bits_per_second":2e6}}}
        {"event":"end","data":{}}"#;
    assert_eq!(rate(stream, ""), PLAIN);
}

#[test]
fn what_a_file_is_stays_known_whatever_its_form() {
    let options = Options::new(Want::Up);
    let reading = read_all("time;rate_mbps\n0;8\n1;2\n", &options).unwrap();
    assert_eq!(reading.content.columns, ["time", "rate_mbps"]);
    assert_eq!(reading.content.times, "times in 'time'");
}
