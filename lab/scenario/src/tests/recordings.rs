//! Files as people have them, and what they mean.

use std::fmt::Write as _;
use std::fs;

use weir::units::{TimeDelta, Timestamp};
use weir_net::cellular::SignalChange;
use weir_net::path::AccessConfig;
use weir_net::wifi::RateControl;
use weir_net::{Capacity, Jitter, LossModel};

use crate::{Scenario, parse};

const HEAD: &str = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n";

/// The scenario with this network, beside a file of this name.
fn beside(file: &str, content: &[u8], network: &str) -> Result<Scenario, String> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(file), content).unwrap();
    let text = format!("{HEAD}{network}\n[[flow]]\n");
    parse("x.toml", &text, Some(folder.path())).map_err(|error| error.to_string())
}

/// The capacity up of a file and these keys.
fn capacity(file: &str, content: &str, keys: &str) -> Result<Capacity, String> {
    let network = format!("[network.up]\ncapacity = {{ trace = \"{file}\"{keys} }}");
    beside(file, content.as_bytes(), &network).map(|mut it| it.hops.remove(0).up.capacity)
}

/// Mbit/s in each of these seconds.
fn mbps<const N: usize>(capacity: &Capacity, seconds: [i64; N]) -> [f64; N] {
    seconds.map(|at| {
        let from = Timestamp::from_secs(at);
        let bits = capacity.bits(from, from + TimeDelta::from_secs(1)).unwrap();
        (bits / 1e3).round() / 1e3
    })
}

fn length_s(capacity: &Capacity) -> f64 {
    capacity.recorded_length().unwrap().as_secs_f64()
}

/// A log through a pipe that is emptied every 12.5 s, with 25 rows of half a second.
fn buffered(header: &str) -> String {
    let mut text = format!("{header}\n");
    for bunch in 0..2 {
        for row in 0..25 {
            let seconds = 5.0 + f64::from(bunch) * 12.5 + f64::from(row) * 40e-6;
            let rate = if row == 24 { 30 } else { 4 };
            let _ = writeln!(text, "2024-05-27T11:13:{seconds:09.6},{rate}");
        }
    }
    text
}

#[test]
fn times_of_an_emptied_pipe_are_refused_unless_the_set_is_known() {
    let known = capacity("a.csv", &buffered("time,throughput_mbps"), "").unwrap();
    assert_eq!((length_s(&known), mbps(&known, [0, 12])), (25.0, [4.0, 17.0]));
    let text = buffered("when,rate_mbps");
    let keys = ", column = \"rate_mbps\", time = \"when\"";
    let error = capacity("a.csv", &text, keys).unwrap_err();
    assert!(error.contains("how long each row lasts, such as interval = \"500ms\""), "{error}");
    let keys = ", column = \"rate_mbps\", interval = \"500ms\"";
    assert_eq!(length_s(&capacity("a.csv", &text, keys).unwrap()), 25.0);
    let bare = text.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>();
    let bare: String = bare.replace("2024-05-27T11:13:", "");
    let error = capacity("a.txt", &bare, "").unwrap_err();
    assert!(error.contains("interval = \"500ms\" with column = 2 and unit"), "{error}");
    // Points of a plot come in pairs, and are no such log.
    let pairs: String = (0..20).map(|n| format!("{0} 1\n{0}.999 1\n", n * 10)).collect();
    assert!(capacity("a.txt", &pairs, "").is_ok());
}

#[test]
fn blank_cells_keep_their_time_at_both_ends() {
    let mut text = String::from("time,dl_mbps,ul_mbps\n");
    for at in 0..30 {
        let up = match at {
            0..10 => "",
            10..20 => "2",
            _ => "0.5",
        };
        let _ = writeln!(text, "{at},{},{up}", if at < 20 { 8 } else { 1 });
    }
    let keys = ", column = \"ul_mbps\", time = \"time\"";
    let up = capacity("a.csv", &text, keys).unwrap();
    assert_eq!(mbps(&up, [0, 9, 10, 19, 20, 29, 30]), [2.0, 2.0, 2.0, 2.0, 0.5, 0.5, 2.0]);
    let ends = "time,r_mbps\n0,3\n1,\n2,\n3,\n";
    let of_time = capacity("a.csv", ends, ", column = 2, time = 1").unwrap();
    let of_interval = capacity("a.csv", ends, ", column = 2, interval = \"1s\"").unwrap();
    assert_eq!((length_s(&of_time), length_s(&of_interval)), (4.0, 4.0));
}

#[test]
fn blanks_are_no_gap_and_a_gap_is_one_with_dates_and_with_seconds() {
    let rows = |time: &dyn Fn(i64) -> String, missing: bool| {
        let mut text = String::from("time,rate_mbps\n");
        for at in 0..120 {
            let blank = (20..90).contains(&at);
            if !(blank && missing) {
                let _ = writeln!(text, "{},{}", time(at), if blank { "" } else { "8" });
            }
        }
        text
    };
    let date = |at: i64| format!("2024-06-21 10:{:02}:{:02}", 10 + at / 60, at % 60);
    let keys = ", column = \"rate_mbps\", time = \"time\"";
    for time in [&date as &dyn Fn(i64) -> String, &|at| at.to_string()] {
        let blank = capacity("a.csv", &rows(time, false), keys).unwrap();
        assert_eq!((length_s(&blank), mbps(&blank, [50])), (120.0, [8.0]));
        let error = capacity("a.csv", &rows(time, true), keys).unwrap_err();
        assert!(error.contains("line 22: 71 s after the line before"), "{error}");
        let part = format!("{keys}, to = \"20s\"");
        assert!(capacity("a.csv", &rows(time, true), &part).is_ok());
    }
    // A row every two minutes has no gaps.
    let slow = "time,rate_mbps\n0,1\n120,2\n240,3\n";
    assert!(capacity("a.csv", slow, keys).is_ok());
}

#[test]
fn a_column_says_its_unit_by_its_name() {
    let of = |text: &str, keys: &str| capacity("a.csv", text, keys);
    let bytes = of("time,rate_MBps\n0,1\n1,1\n", ", column = \"rate_MBps\", time = \"time\"");
    assert_eq!(mbps(&bytes.unwrap(), [0]), [8.0]);
    let ms = "timestamp_ms,rate_mbps\n0,8\n500,2\n1000,8\n1500,2\n";
    let ms = of(ms, ", column = \"rate_mbps\", time = \"timestamp_ms\"").unwrap();
    assert_eq!((length_s(&ms), mbps(&ms, [0, 1])), (2.0, [5.0, 5.0]));
    let open = of("time,rate_MBPS\n0,1\n", ", column = 2, time = 1").unwrap_err();
    assert!(open.ends_with("the unit of 'rate_MBPS' is not known; write unit"), "{open}");
    let epoch = of("ts,rate_mbps\n1700000000000,1\n", ", column = 2, time = 1").unwrap_err();
    assert!(epoch.contains("write time_unit, such as \"ms\""), "{epoch}");
}

#[test]
fn rows_may_say_how_long_they_last() {
    let text = "duration_s,rate_mbps\n1,8\n3,2\n";
    let named = ", column = \"rate_mbps\", time = \"duration_s\"";
    let key = ", column = \"rate_mbps\", duration = \"duration_s\"";
    for keys in [named, key] {
        let of = capacity("a.csv", text, keys).unwrap();
        assert_eq!((length_s(&of), mbps(&of, [0, 1, 3])), (4.0, [8.0, 2.0, 2.0]));
    }
    let open = ", column = \"r_mbps\", duration = \"lasts\"";
    let error = capacity("a.csv", "lasts,r_mbps\n1,8\n", open).unwrap_err();
    assert!(error.contains("the unit of 'lasts' is not known; write time_unit"), "{error}");
}

#[test]
fn a_clock_that_steps_back_matters_only_in_the_part_that_is_used() {
    let text = "Timestamp,DL_bitrate,UL_bitrate\n\
                2019.11.27_07.45.10,8000,800\n2019.11.27_07.45.11,8000,800\n\
                2019.11.27_07.45.12,4000,400\n2019.11.27_07.45.13,4000,400\n\
                2019.11.27_07.45.14,2000,200\n2019.11.27_07.45.13,2000,200\n\
                2019.11.27_07.45.14,2000,200\n2019.11.27_07.45.15,8000,800\n";
    let first = capacity("a.csv", text, ", to = \"4s\"").unwrap();
    assert_eq!(mbps(&first, [0, 1, 2, 3, 4]), [0.8, 0.8, 0.4, 0.4, 0.8]);
    let last = capacity("a.csv", text, ", from = \"5s\"").unwrap();
    assert_eq!((length_s(&last), mbps(&last, [0])), (1.0, [0.8]));
    let error = capacity("a.csv", text, "").unwrap_err();
    assert!(error.contains("line 7: the time is earlier than that of the line before"), "{error}");
    assert!(error.ends_with("; until there, to = \"4s\" is in order"), "{error}");
    assert!(!error.contains("where"), "{error}");
}

#[test]
fn dates_are_read_as_people_write_them() {
    let keys = ", column = \"rate_mbps\", time = \"time\"";
    for text in [
        "time,rate_mbps\nThu Aug 11 13:41:30 UTC 2022,8\nThu Aug 11 13:41:31 UTC 2022,4\n",
        "time,rate_mbps\n11:40:59,8\n11:41:00,4\n",
        "time,rate_mbps\n23:59:59,8\n00:00:00,4\n",
        "time,rate_mbps\n2024-06-21 23:59:59 CEST,8\n2024-06-22 00:00:00 CEST,4\n",
        "time,rate_mbps\n20240621T235959,8\n20240622T000000,4\n",
        "time,rate_mbps\n20240621_235959,8\n20240622_000000,4\n",
        "time,rate_mbps\n20240621235959,8\n20240622000000,4\n",
        "time,rate_mbps\nFeb 28 23:59:59,8\nFeb 29 00:00:00,4\n",
        "time,rate_mbps\n[21/Jun/2024:23:59:59 +0200],8\n[22/Jun/2024:00:00:00 +0200],4\n",
        "time,rate_mbps\n21-Jun-24 23:59:59,8\n22-Jun-24 00:00:00,4\n",
    ] {
        let of = capacity("a.csv", text, keys).unwrap();
        assert_eq!((length_s(&of), mbps(&of, [0, 1])), (2.0, [8.0, 4.0]), "{text}");
    }
    let us = "time,rate_mbps\n\"01/16/2021, 4:04:00 PM\",8\n\"01/16/2021, 4:04:01 PM\",4\n";
    let error = capacity("a.csv", us, keys).unwrap_err();
    assert!(error.contains("write time_format, such as"), "{error}");
    let keys = format!("{keys}, time_format = \"%m/%d/%Y, %I:%M:%S %p\"");
    assert_eq!(mbps(&capacity("a.csv", us, &keys).unwrap(), [0, 1]), [8.0, 4.0]);
    let ns = "t,rate_mbps\n1700000000000000000,8\n1700000001000000000,4\n";
    let keys = ", column = 2, time = 1, time_unit = \"ns\"";
    assert_eq!(mbps(&capacity("a.csv", ns, keys).unwrap(), [0, 1]), [8.0, 4.0]);
}

#[test]
fn pensieve_s_rows_hold_until_their_time() {
    // 2.50 Mbit/s in 20 s; as the rates from each time on, 2.20 in 25 s.
    let text = "0 9\n5 1\n10 2\n15 3\n20 4\n";
    let ends = capacity("a.txt", text, ", times = \"end\"").unwrap();
    assert_eq!((length_s(&ends), mbps(&ends, [0, 5, 19, 20])), (20.0, [1.0, 2.0, 4.0, 1.0]));
    let starts = capacity("a.txt", text, "").unwrap();
    assert_eq!((length_s(&starts), mbps(&starts, [0, 24])), (25.0, [9.0, 4.0]));
}

#[test]
fn logs_of_programs_need_no_script() {
    let iperf = r#"{"start":{"version":"iperf 3.9"},"intervals":[
        {"streams":[],"sum":{"start":0,"end":1,"bits_per_second":9e6,"omitted":true}},
        {"streams":[],"sum":{"start":0,"end":1,"bits_per_second":8e6,"omitted":false}},
        {"sum":{"start":1,"end":2.0,"bits_per_second":4000000,"omitted":false}},
        {"sum":{"start":2.0,"end":3,"bits_per_second":6000000,"omitted":false}}],"end":{}}"#;
    let of = capacity("a.json", iperf, "").unwrap();
    assert_eq!((length_s(&of), mbps(&of, [0, 1, 2])), (3.0, [8.0, 4.0, 6.0]));
    let both = iperf.replace(
        r#","omitted":false}"#,
        r#","omitted":false},
        "sum_bidir_reverse":{"start":0,"end":1,"bits_per_second":3e6}"#,
    );
    let network = "[network.up]\ncapacity = { trace = \"a.json\" }\n\
                   [network.down]\ncapacity = { trace = \"a.json\" }";
    let hop = beside("a.json", both.as_bytes(), network).unwrap().hops.remove(0);
    assert_eq!(mbps(&hop.up.capacity, [0, 1, 2]), [8.0, 4.0, 6.0]);
    assert_eq!(mbps(&hop.down.capacity, [0, 1, 2]), [3.0; 3]);
    let text = "Connecting to host 10.0.0.1, port 5201\n\
        [ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n\
        [  5]   0.00-1.00   sec  1.00 MBytes  8.00 Mbits/sec    0    250 KBytes       \n\
        [  5]   1.00-2.00   sec   500 KBytes  4000 Kbits/sec    0    250 KBytes       \n\
        [  5]   2.00-3.00   sec   750 KBytes  6.00 Mbits/sec    0    250 KBytes       \n\
        - - - - - - - - -\n\
        [  5]   0.00-3.00   sec  2.25 MBytes  6.00 Mbits/sec    0             sender\n\
        [  5]   0.00-3.04   sec  2.20 MBytes  5.90 Mbits/sec                  receiver\n";
    let of = capacity("a.log", text, "").unwrap();
    assert_eq!((length_s(&of), mbps(&of, [0, 1, 2])), (3.0, [8.0, 4.0, 6.0]));
    let nuttcp = "    1.0000 MB /   1.00 sec =    8.3886 Mbps     0 retrans\n\
        \x20   0.5000 MB /   1.00 sec =    4.1943 Mbps     0 retrans\n\
        \x20   1.5000 MB /   2.00 sec =    6.2915 Mbps 1 %TX 2 %RX 0 retrans 0.20 msRTT\n";
    let of = capacity("a.log", nuttcp, "").unwrap();
    assert_eq!((length_s(&of), mbps(&of, [0, 1])), (2.0, [8.389, 4.194]));
}

#[test]
fn a_list_in_an_object_is_found_or_named() {
    let rtc = r#"{"type":"video","downlink":{},"uplink":{"trace_pattern":[
        {"duration":1000,"capacity":300,"loss":0,"rtt":89,"jitter":0},
        {"duration":500,"capacity":1200,"loss":0.1,"rtt":103,"jitter":4}]}}"#;
    let of = capacity("a.json", rtc, "").unwrap();
    assert_eq!((length_s(&of), mbps(&of, [0, 3])), (1.5, [0.3, 0.3]));
    let all = "[network.up]\ncapacity = { trace = \"a.json\" }\ndelay = { trace = \"a.json\" }\n\
               loss = { trace = \"a.json\" }\njitter = { trace = \"a.json\", kind = \"netem\" }";
    let up = beside("a.json", rtc.as_bytes(), all).unwrap().hops.remove(0).up;
    let ms = |at| up.delay.at(Timestamp::from_millis(at)).as_millis_f64();
    assert_eq!([0, 1_000, 1_500].map(ms), [44.5, 51.5, 44.5]);
    assert_eq!((up.loss, up.changes.loss[0].1), (LossModel::Random(0.0), LossModel::Random(0.1)));
    let four = Jitter::Uniform { amount: TimeDelta::from_millis(4), reorder: true };
    assert_eq!(up.changes.jitter[0], (Timestamp::from_secs(1), four));
    let both = r#"{"uplink":{"trace_pattern":[{"duration":500,"capacity":300,"rtt":89}]},
        "downlink":{"trace_pattern":[{"duration":500,"capacity":900,"rtt":20}]}}"#;
    let delay = |keys: &str| {
        let network = format!("[network.down]\ndelay = {{ trace = \"a.json\"{keys} }}");
        let down = beside("a.json", both.as_bytes(), &network)?.hops.remove(0).down;
        Ok::<_, String>(down.delay.at(Timestamp::ZERO).as_millis_f64())
    };
    assert_eq!(delay(", list = \"downlink.trace_pattern\""), Ok(10.0));
    let error = delay("").unwrap_err();
    assert!(error.contains("has rows of both directions"), "{error}");
    let deep = r#"{"data":{"rows":[{"t":0,"of":{"mbps":3}},{"t":1,"of":{"mbps":5}}]}}"#;
    let error = capacity("a.json", deep, "").unwrap_err();
    assert!(error.contains("an object with 'data', of no known program; write where"), "{error}");
    let other = r#"{"a":1,"b":{"c":[3],"of":{"rates":[{"t":0}]}}}"#;
    let error = capacity("a.json", other, "").unwrap_err();
    assert!(error.contains("such as list = \"b.of.rates\""), "{error}");
    let keys = ", list = \"data.rows\", column = \"of.mbps\", time = \"t\"";
    assert_eq!(mbps(&capacity("a.json", deep, keys).unwrap(), [0, 1]), [3.0, 5.0]);
    let down = "[network.down]\ncapacity = { trace = \"a.json\" }";
    let error = beside("a.json", rtc.as_bytes(), down).unwrap_err();
    assert!(error.contains("there is no 'trace_pattern' in it"), "{error}");
    let lpp = r#"{"version":1,"entries":[{"dateTime":"2023-01-02 10:00:00","dlBw":2000},
        {"dateTime":"2023-01-02 10:00:01","dlBw":4000}]}"#;
    let network = "[network.down]\ncapacity = { trace = \"a.json\" }";
    let down = beside("a.json", lpp.as_bytes(), network).unwrap().hops.remove(0).down.capacity;
    assert_eq!(mbps(&down, [0, 1]), [2.0, 4.0]);
}

#[test]
fn rattan_s_files_give_rates_delays_and_losses() {
    let rate = "[[RepeatedBwPatternConfig.pattern]]\nStaticBwConfig = { bw = \"2Mbps\", \
                duration = \"1s\" }\n[[RepeatedBwPatternConfig.pattern]]\n\
                StaticBwConfig = { bw = \"4Mbps\", duration = \"1s\" }\n";
    assert_eq!(mbps(&capacity("a.trace", rate, "").unwrap(), [0, 1, 2]), [2.0, 4.0, 2.0]);
    let delay = r#"{"RepeatedDelayPatternConfig":{"pattern":[
        {"StaticDelayConfig":{"delay":"20ms","duration":"1s"}},
        {"StaticDelayConfig":{"delay":"50ms","duration":"1s"}}],"count":0}}"#;
    let network = "[network.up]\ndelay = { trace = \"d.json\" }";
    let up = beside("d.json", delay.as_bytes(), network).unwrap().hops.remove(0).up;
    let ms = |at| up.delay.at(Timestamp::from_secs(at)).as_millis_f64();
    assert_eq!([0, 1, 2, 59].map(ms), [20.0, 50.0, 20.0, 50.0]);
    let loss = "[StaticLossConfig]\nloss = [0.25]\nduration = \"1s\"\n";
    let network = "[network.up]\nloss = { trace = \"l.toml\" }";
    let up = beside("l.toml", loss.as_bytes(), network).unwrap().hops.remove(0).up;
    assert_eq!(up.loss, LossModel::Random(0.25));
    let several = loss.replace("[0.25]", "[0.25, 0.5]");
    let error = beside("l.toml", several.as_bytes(), network).unwrap_err();
    assert!(error.contains("depends on the packet before"), "{error}");
}

#[test]
fn a_ping_log_is_a_delay_of_half_a_round_trip_in_order() {
    let text = "time,rtt_ms\n0.0,65.6\n0.2,46.9\n0.4,52.0\n";
    let network = "[network.up]\ndelay = { trace = \"p.csv\" }";
    let up = beside("p.csv", text.as_bytes(), network).unwrap().hops.remove(0).up;
    let ms = |at| up.delay.at(Timestamp::from_millis(at)).as_millis_f64();
    assert_eq!([0, 200, 400, 600].map(ms), [32.8, 23.45, 26.0, 32.8]);
    let network = "[network.up]\ndelay = { trace = \"p.csv\", round_trip = false, \
                   trace_end = \"hold\" }";
    let up = beside("p.csv", text.as_bytes(), network).unwrap().hops.remove(0).up;
    let ms = |at| up.delay.at(Timestamp::from_millis(at)).as_millis_f64();
    assert_eq!([0, 400, 9_000].map(ms), [65.6, 52.0, 52.0]);
}

#[test]
fn a_terminal_takes_its_signal_from_a_known_table() {
    let text = "Timestamp,SNR,DL_bitrate,UL_bitrate\n2019.11.27_07.45.10,12,8000,800\n\
                2019.11.27_07.45.11,-,8000,800\n2019.11.27_07.45.12,3,8000,800\n";
    let network = |keys: &str| {
        format!(
            "[network]\nkind = \"cellular\"\nbandwidth = \"10MHz\"\n[network.terminal.phone]\n\
             sinr = {{ trace = \"s.csv\"{keys} }}"
        )
    };
    let of = |keys: &str| {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("s.csv"), text).unwrap();
        let text = format!("{HEAD}{}\n[[flow]]\nterminal = \"phone\"\n", network(keys));
        let scenario = parse("x.toml", &text, Some(folder.path()));
        let access = scenario.map_err(|error| error.to_string())?.access.unwrap();
        let AccessConfig::Cellular(cell) = access.config else { panic!("no cell") };
        Ok::<_, String>(cell.terminals[0].signal.down.mean.clone())
    };
    let values = vec![(Timestamp::ZERO, 12.0), (Timestamp::from_secs(2), 3.0)];
    let held = SignalChange::Trace { values: values.clone(), period: None };
    assert_eq!(of(""), Ok(held.clone()));
    assert_eq!(of(", column = \"SNR\", unit = \"dB\""), Ok(held));
    let period = Some(TimeDelta::from_secs(3));
    let repeated = SignalChange::Trace { values, period };
    assert_eq!(of(", trace_end = \"repeat\""), Ok(repeated));
    assert!(of(", column = \"DL_bitrate\"").unwrap_err().contains("decibels are wanted"));
}

#[test]
fn a_station_takes_the_fastest_scheme_below_a_recorded_rate() {
    let network = "[network]\nkind = \"wifi\"\n[network.station.laptop]\n\
                   rate = { trace = \"r.csv\", trace_end = \"hold\" }";
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("r.csv"), "time,phy_mbps\n0,65\n1,7\n2,1\n3,300\n").unwrap();
    let text = format!("{HEAD}{network}\n[[flow]]\nstation = \"laptop\"\n");
    let scenario = parse("x.toml", &text, Some(folder.path())).unwrap();
    let AccessConfig::Wifi(cell) = scenario.access.unwrap().config else { panic!("no cell") };
    let RateControl::Steps(first, later) = &cell.stations[0].down.rate else { panic!("no steps") };
    let schemes: Vec<usize> = later.iter().map(|step| step.1.mcs.index()).collect();
    assert_eq!((first.mcs.index(), schemes), (7, vec![0, 0, 15]));
}

#[test]
fn opportunities_have_parts_ends_and_another_reading() {
    let lines: String = (1..=4_000).filter(|ms| *ms <= 3_000).map(|ms| format!("{ms}\n")).collect();
    let part = capacity("a.mahi", &lines, ", from = \"1s\", to = \"2500ms\"").unwrap();
    assert_eq!((length_s(&part), mbps(&part, [1])), (1.5, [12.0]));
    assert!(capacity("a.mahi", &lines, ", trace_end = \"hold\"").is_ok());
    let small = capacity("a.mahi", &lines, ", opportunity = \"750B\"").unwrap();
    assert_eq!(mbps(&small, [1]), [6.0]);
    let error = capacity("a.mahi", &lines, ", opportunity = \"2MB\"").unwrap_err();
    assert!(error.contains("must be at most 1MB"), "{error}");
}

#[test]
fn a_packed_file_is_unpacked_up_to_a_limit() {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::io::Write;
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(b"0 2\n1 4\n").unwrap();
    let packed = packed.finish().unwrap();
    let network = "[network.up]\ncapacity = { trace = \"a.txt.gz\" }";
    let scenario = beside("a.txt.gz", &packed, network).unwrap();
    assert_eq!(mbps(&scenario.hops[0].up.capacity, [0, 1]), [2.0, 4.0]);
    assert_eq!(*scenario.traces["a.txt.gz"].read().unwrap(), "0 2\n1 4\n");
    let cut = beside("a.txt.gz", &packed[..packed.len() - 4], network).unwrap_err();
    assert!(cut.contains("cannot read 'a.txt.gz'"), "{cut}");
}
