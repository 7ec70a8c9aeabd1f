//! What people attach: text as editors save it, getStats in any wrapper, and what is no dump.

use serde_json::{Value, json};
use weir_analyze::{Format, StreamDirection, answer, read_bytes};

use super::made_calls::{Second, call, established, internals, reports, rtcstats};

fn lossy() -> Vec<Second> {
    call(30, |_, now| {
        now.received_video.lost = 17;
        now.received_video.packets = 153;
    })
}

const WORDS: &str = "Downlink lost 10.0 % of the packets from 0 to 29 s";

fn verdict(bytes: Vec<u8>) -> String {
    answer(&read_bytes("attached".as_ref(), bytes).unwrap()).verdict
}

fn refused(text: &str) -> String {
    let error = read_bytes("attached".as_ref(), text.as_bytes().to_vec()).unwrap_err().to_string();
    assert!(!error.contains('\n') && error.starts_with("attached"), "{error}");
    error
}

#[test]
fn text_is_read_as_any_editor_saves_it() {
    let dumps = [
        rtcstats(&established(), &lossy()),
        internals(&established(), &lossy(), 1_000, true).to_string(),
    ];
    for text in dumps {
        let windows = text.replace('\n', "\r\n");
        let utf16 = |text: &str, to_bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
            text.encode_utf16().flat_map(to_bytes).collect()
        };
        let forms = [
            text.clone().into_bytes(),
            windows.clone().into_bytes(),
            format!("\u{FEFF}{windows}").into_bytes(),
            format!("\n\r\n {text}").into_bytes(),
            utf16(&format!("\u{FEFF}{windows}"), u16::to_le_bytes),
            utf16(&format!("\u{FEFF}{text}"), u16::to_be_bytes),
            utf16(&text, u16::to_le_bytes),
        ];
        for (form, bytes) in forms.into_iter().enumerate() {
            let verdict = verdict(bytes);
            assert!(verdict.starts_with(WORDS), "form {form}: {verdict}");
        }
    }
}

/// The reports of a call, each as a map, a list, or a list of pairs.
fn forms(report: &serde_json::Map<String, Value>) -> [Value; 3] {
    let list: Vec<Value> = report.values().cloned().collect();
    let pairs: Vec<Value> = report.iter().map(|(id, object)| json!([id, object])).collect();
    [report.clone().into(), list.into(), pairs.into()]
}

/// A line of a log, and one of other words.
fn logged(json: &str) -> String {
    format!("[10:32:01.123] INFO (stats) {json}\n[10:32:01.124] [ice] connected: {{ok}}\n")
}

#[test]
fn what_get_stats_returned_is_read_in_any_wrapper() {
    for form in 0..3 {
        let all: Vec<Value> = reports(&lossy()).iter().map(|it| forms(it)[form].clone()).collect();
        let lines = |all: &[Value]| -> String { all.iter().map(|it| format!("{it}\n")).collect() };
        let timed: Vec<Value> = all.iter().map(|it| json!({ "time": 1, "stats": it })).collect();
        let texts: Vec<Value> = all.iter().map(|it| it.to_string().into()).collect();
        let wrapped = [
            lines(&all),
            Value::from(all.clone()).to_string(),
            json!({ "timestamp": 1, "stats": all }).to_string(),
            json!({ "pc-1": { "reports": all }, "user": { "name": "Anna" } }).to_string(),
            lines(&timed),
            serde_json::to_string_pretty(&json!({ "log": all })).unwrap(),
            // As programs append to a log, and as a log keeps a text.
            lines(&all).replace("}\n", "},\n").replace("]\n", "],\n"),
            lines(&texts),
            lines(&all).lines().map(logged).collect(),
            lines(&texts.iter().map(|it| json!({ "at": 1, "msg": it })).collect::<Vec<Value>>()),
        ];
        for (number, text) in wrapped.into_iter().enumerate() {
            let dump = read_bytes("attached".as_ref(), text.into_bytes()).unwrap();
            assert_eq!(dump.format, Format::GetStats);
            let verdict = answer(&dump).verdict;
            assert!(verdict.starts_with(WORDS), "form {form}, wrapper {number}: {verdict}");
        }
    }
}

#[test]
fn a_report_that_is_written_in_parts_is_one() {
    let (mut lines, mut groups) = (String::new(), String::new());
    for report in reports(&lossy()) {
        let mut by_type = serde_json::Map::new();
        for object in report.values() {
            lines += &format!("{object}\n");
            let list = by_type.entry(object["type"].as_str().unwrap()).or_insert(json!([]));
            list.as_array_mut().unwrap().push(object.clone());
        }
        groups += &format!("{}\n", Value::from(by_type));
    }
    for text in [lines, groups] {
        let dump = read_bytes("attached".as_ref(), text.into_bytes()).unwrap();
        assert_eq!(dump.connections.len(), 1);
        let answer = answer(&dump);
        assert!(answer.verdict.starts_with(WORDS), "{}", answer.verdict);
        // What the far end reported belongs to what was sent.
        let sent = answer.streams.iter().filter(|it| it.direction == StreamDirection::Sent);
        assert!(sent.clone().count() == 2 && sent.clone().all(|it| it.loss_ratio == Some(0.0)));
    }
}

#[test]
fn numbers_may_be_written_as_texts() {
    let (mut numbers, mut texts) = (String::new(), String::new());
    for mut report in reports(&lossy()) {
        numbers += &format!("{}\n", Value::from(report.clone()));
        for value in report.values_mut().flat_map(|it| it.as_object_mut().unwrap().values_mut()) {
            if value.is_number() || value.is_boolean() {
                *value = value.to_string().into();
            }
        }
        texts += &format!("{}\n", Value::from(report));
    }
    let [numbers, texts] = [numbers, texts].map(|text| {
        let answer = answer(&read_bytes("attached".as_ref(), text.into_bytes()).unwrap());
        (answer.verdict, answer.streams)
    });
    assert!(texts.0.starts_with(WORDS), "{}", texts.0);
    assert_eq!(texts, numbers);
}

/// The reports of a call, each member `timestamp` changed.
fn stamped(call: &[Second], stamp: impl Fn(f64) -> Option<Value>) -> String {
    let mut lines = String::new();
    for mut report in reports(call) {
        for object in report.values_mut() {
            let object = object.as_object_mut().unwrap();
            let ms = object.remove("timestamp").and_then(|it| it.as_f64()).unwrap();
            object.extend(stamp(ms).map(|it| ("timestamp".to_owned(), it)));
        }
        lines += &format!("{}\n", Value::from(report));
    }
    lines
}

#[test]
fn times_of_reports_have_any_unit_or_are_missing() {
    let units: [fn(f64) -> Option<Value>; 5] = [
        |ms| Some(json!(ms * 1e3)),
        |ms| Some(json!(ms * 1e6)),
        |ms| Some(json!(ms / 1e3)),
        |ms| Some(weir_analyze::iso_8601(ms)?.into()),
        |_| None,
    ];
    for (unit, stamp) in units.into_iter().enumerate() {
        let verdict = verdict(stamped(&lossy(), stamp).into_bytes());
        assert!(verdict.starts_with(WORDS), "unit {unit}: {verdict}");
    }
}

#[test]
fn a_burst_has_its_own_share_whatever_the_fractions_of_its_times() {
    let burst = call(60, |second, now| {
        if (20..23).contains(&second) {
            (now.received_video.lost, now.received_video.packets) = (68, 102);
            (now.received_audio.lost, now.received_audio.packets) = (20, 30);
        }
    });
    for step in [0.37, 1.61, 2.73] {
        let text = stamped(&burst, |ms| Some(json!(ms + (ms / 1e3 * step).fract() * 8.0)));
        let verdict = verdict(text.into_bytes());
        assert!(verdict.starts_with("Downlink lost 40.0 % of the packets from"), "{verdict}");
    }
}

#[test]
fn reports_that_are_kept_by_their_times_are_of_one_connection() {
    let mut kept = serde_json::Map::new();
    for (second, report) in reports(&lossy()).into_iter().enumerate() {
        kept.insert(format!("2025-11-29T07:06:{second:02}.000Z"), report.into());
    }
    let answer = answer(&read_bytes("made".as_ref(), json!(kept).to_string().into()).unwrap());
    assert!(answer.verdict.starts_with(WORDS), "{}", answer.verdict);
    assert_eq!(answer.connections.len(), 1);
}

#[test]
fn objects_of_phones_keep_their_values_apart() {
    for (time, member) in [("timestampUs", "members"), ("timestamp_us", "values")] {
        let mut lines = String::new();
        for report in reports(&lossy()) {
            let mut written = serde_json::Map::new();
            for (id, object) in report {
                let mut values = object.as_object().unwrap().clone();
                let us = values.remove("timestamp").and_then(|it| it.as_f64()).unwrap() * 1e3;
                let kind = values.remove("type");
                let object = json!({ "id": id, "type": kind, time: us, member: values });
                written.insert(id, object);
            }
            lines += &format!("{}\n", Value::from(written));
        }
        let verdict = verdict(lines.into_bytes());
        assert!(verdict.starts_with(WORDS), "{member}: {verdict}");
    }
}

#[test]
fn one_report_gives_means_and_says_so() {
    let last = reports(&lossy()).pop().unwrap();
    for form in forms(&last) {
        let dump = read_bytes("attached".as_ref(), form.to_string().into_bytes()).unwrap();
        let verdict = answer(&dump).verdict;
        assert!(verdict.starts_with("Downlink lost 10.0 % of the packets"), "{verdict}");
        assert!(dump.warnings[0].contains("means since the call began"), "{:?}", dump.warnings);
    }
    let good = reports(&call(30, |_, _| {})).pop().unwrap();
    let verdict = verdict(Value::from(good).to_string().into_bytes());
    assert!(verdict.starts_with("Means over the whole call"), "{verdict}");
}

#[test]
fn what_is_no_dump_is_named_with_what_to_do() {
    assert_eq!(refused(""), "attached is empty");
    assert_eq!(refused("\u{FEFF}\r\n"), "attached is empty");
    let about = refused("about:webrtc\n\nRTCPeerConnection (id=1)");
    assert!(about.contains("Firefox's page about:webrtc") && about.contains("collect"), "{about}");
    assert!(refused("<!DOCTYPE html><h1>about:webrtc</h1>").contains("about:webrtc"));
    assert!(refused("<html><p>Not found</p></html>").contains("a page of HTML"));
    assert!(refused(r#"{ "log": { "version": "1.2", "entries": [] } }"#).contains("a HAR"));
    assert!(refused("v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\n").contains("session description"));
    assert!(refused(r#"[{"type":"getUserMedia","ts":1}]"#).contains("a JSON list"));
    for log in ["[001:234] (call.cc:12): Call", "[1:2:1201/170812.345:INFO:call.cc(12)] Call"] {
        assert!(refused(log).contains("the log of a program"), "{log}");
    }
    assert!(refused("hello").contains("none of the known formats"));
    let closed = refused(r#"{"getUserMedia":[],"PeerConnections":{},"UserAgent":"x"}"#);
    assert!(closed.contains("the other one (rtcstats dump)"), "{closed}");
}

#[test]
fn a_call_of_data_alone_says_so() {
    let channel = |count: u64| {
        json!({ "D": { "id": "D", "type": "data-channel", "messagesSent": count,
            "messagesReceived": 2 * count, "bytesSent": 9, "bytesReceived": 9,
            "timestamp": 1.7e12 + count as f64 * 1e3 } })
    };
    let lines: String = (0..20).map(|it| format!("{}\n", channel(it))).collect();
    let words = "The call has no video and no audio: its one data channel sent 19 messages and \
        received 38.";
    assert_eq!(verdict(lines.into_bytes()), words);
}

// Jitsi's client leaves out what has not changed, and what is gone, alike.
#[test]
fn a_stream_that_is_left_out_for_half_a_minute_is_gone() {
    let stream = |ssrc: u64, second: u64| {
        json!({ "type": "inbound-rtp", "kind": "video", "ssrc": ssrc,
            "packetsReceived": second * 100, "packetsLost": 0, "bytesReceived": second * 100_000 })
    };
    let mut lines = String::new();
    for second in 0..3_000_u64 {
        let time = 1.7e12 + second as f64 * 1e3;
        // A new stream each 50 s.
        let name = format!("s{}", second / 50);
        let report = json!({ "timestamp": time, name: stream(second / 50 + 1, second) });
        lines += &format!("{}\n", json!(["getStats", "PC_0", report, time, second]));
    }
    let dump = read_bytes("attached".as_ref(), lines.into_bytes()).unwrap();
    assert!(dump.warnings.is_empty(), "{:?}", dump.warnings);
    let streams = &dump.connections[0].streams;
    assert_eq!(streams.len(), 60);
    let reports: usize = streams.iter().map(|it| it.reports.len()).sum();
    assert!(reports <= 60 * 82, "{reports}");
}
