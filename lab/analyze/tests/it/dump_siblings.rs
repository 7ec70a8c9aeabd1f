//! Dumps like those that people attached, of other years and of other pages: the rules hold there,
//! too.

use std::io::Write;

use serde_json::{Value, json};
use weir_analyze::{Answer, answer, read_bytes};

use crate::made_calls::{Event, Second, call, established, internals, reports, rtcstats};

fn answer_of(content: Vec<u8>) -> Answer {
    answer(&read_bytes("made".as_ref(), content).unwrap())
}

fn minute(change: impl Fn(u64, &mut Second)) -> Answer {
    answer_of(rtcstats(&established(), &call(60, change)).into_bytes())
}

#[test]
fn a_hold_is_a_pause_and_no_path_that_stands_still() {
    let hold = |is_answered: bool| {
        minute(move |second, now| {
            if (20..40).contains(&second) {
                now.is_answered = is_answered;
                for received in [&mut now.received_video, &mut now.received_audio] {
                    (received.packets, received.bytes) = (0, 0);
                    (received.frames, received.decoded) = (0, 0);
                }
            }
        })
    };
    let verdict = hold(true).verdict;
    assert!(verdict.contains("the far end paused it"), "{verdict}");
    assert!(!verdict.contains("stood still"), "{verdict}");
    let verdict = hold(false).verdict;
    assert!(verdict.starts_with("Nothing arrived from 19 to 39 s"), "{verdict}");
    // Firefox does not say what was answered; in a hold, this end sends nothing either.
    let both = minute(|second, now| {
        if (20..40).contains(&second) {
            now.is_answered = false;
            for received in [&mut now.received_video, &mut now.received_audio] {
                (received.packets, received.bytes) = (0, 0);
                (received.frames, received.decoded) = (0, 0);
            }
            for sent in [&mut now.sent_video, &mut now.sent_audio] {
                (sent.packets, sent.bytes, sent.fps) = (0, 0, 0);
            }
        }
    });
    assert!(!both.verdict.contains("stood still"), "{}", both.verdict);
}

#[test]
fn the_first_report_of_the_far_end_counts_since_the_stream_began() {
    // The far end reports a sound each 5 s, and its object comes with the first report.
    for lost in [2, 4, 10] {
        let all = call(60, |_, now| now.sent_audio.lost = lost);
        let mut lines = Vec::new();
        for (second, mut report) in reports(&all).into_iter().enumerate() {
            let told = (second / 5 * 5) as i64;
            match report["far-audio"].as_object_mut().filter(|_| second >= 5) {
                Some(far) => {
                    far.insert("packetsLost".into(), json!((told + 1) * lost));
                    far.insert("roundTripTimeMeasurements".into(), json!(told / 5));
                }
                None => drop(report.remove("far-audio")),
            }
            lines.push(Value::from(report).to_string());
        }
        let answer = answer_of(lines.join("\n").into_bytes());
        let sound = answer.streams.iter().find(|it| it.ssrc == 101).unwrap();
        let (ratio, truth) = (sound.loss_ratio.unwrap(), lost as f64 / 50.0);
        assert!((ratio - truth).abs() < 0.003, "{ratio}, not {truth}");
    }
}

#[test]
fn a_video_that_is_switched_off_is_no_encoder_s_fault() {
    let off = |second: u64, now: &mut Second| {
        if second >= 30 {
            let sent = &mut now.sent_video;
            (sent.packets, sent.bytes, sent.fps, sent.target_kbps) = (0, 0, 0, 0.0);
        }
    };
    let mut lines = String::new();
    for (second, mut report) in reports(&call(60, off)).into_iter().enumerate() {
        report["out-video"]["active"] = (second < 30).into();
        lines += &format!("{}\n", Value::from(report));
    }
    let answer = answer_of(lines.into_bytes());
    let words = "The application deactivated the video that it sends from 29 to 59 s.";
    assert!(answer.verdict.starts_with(words), "{}", answer.verdict);
    assert!(!answer.ticket.contains("too busy"), "{}", answer.ticket);
}

#[test]
fn counters_that_begin_anew_are_no_silence() {
    let mut lines = String::new();
    for (begin, count) in [(0, 30), (31, 30)] {
        for mut report in reports(&call(count, |_, _| {})) {
            for object in report.values_mut() {
                let ms = object["timestamp"].as_f64().unwrap();
                object["timestamp"] = json!(ms + f64::from(begin) * 1e3);
            }
            lines += &format!("{}\n", Value::from(report));
        }
    }
    let answer = answer_of(lines.into_bytes());
    assert!(answer.verdict.starts_with("Nothing limited"), "{}", answer.verdict);
}

#[test]
fn what_firefox_says_of_the_far_end_under_its_own_types_is_the_far_end_s() {
    let all = call(60, |_, now| {
        (now.sent_audio.lost, now.sent_video.lost) = (5, 19);
    });
    let mut lines = String::new();
    for mut report in reports(&all) {
        for object in report.values_mut() {
            let object = object.as_object_mut().unwrap();
            let is_remote = object["type"] == "remote-inbound-rtp";
            if is_remote {
                object.insert("type".into(), "inbound-rtp".into());
                object.insert("roundTripTime".into(), 40.into());
            }
            object.insert("isRemote".into(), is_remote.into());
        }
        lines += &format!("{}\n", Value::from(report));
    }
    let answer = answer_of(lines.into_bytes());
    assert_eq!(answer.streams.len(), 4);
    assert!(answer.verdict.starts_with("Uplink lost 9.9 %"), "{}", answer.verdict);
    assert!(!answer.verdict.contains("ownlink"), "{}", answer.verdict);
    assert_eq!(answer.streams[0].rtt_ms, Some(40.0));
}

#[test]
fn a_dump_that_begins_late_says_so_in_the_dates_of_any_language() {
    let all = call(700, |_, _| {});
    let dates: [&dyn Fn(u64, u64, u64) -> String; 4] = [
        &|hour, minute, second| format!("11/29/2025, {hour}:{minute:02}:{second:02} AM"),
        &|hour, minute, second| format!("29.11.2025, {hour:02}:{minute:02}:{second:02}"),
        &|hour, minute, second| format!("29/11/2025 {hour:02}:{minute:02}:{second:02}"),
        &|hour, minute, second| format!("2025-11-29T{hour:02}:{minute:02}:{second:02}.000Z"),
    ];
    for (number, date) in dates.into_iter().enumerate() {
        // The first report is of 07:06:40 UTC, and the dump keeps those from 300 s on.
        let mut dump = internals(&[], &all, 400, true);
        let connection = &mut dump["PeerConnections"]["7-1"];
        let event = |second, state: &str| {
            json!({ "time": date(7, 6, second), "type": "iceconnectionstatechange",
                "value": format!("\"{state}\"") })
        };
        connection["updateLog"] = json!([event(38, "checking"), event(39, "connected")]);
        let verdict = answer_of(dump.to_string().into_bytes()).verdict;
        assert!(verdict.contains("The first 301 s of the call"), "date {number}: {verdict}");
    }
}

#[test]
fn a_page_that_stands_still_without_any_frame_is_good() {
    let answer = minute(|second, now| {
        for content in [&mut now.received_video.content, &mut now.sent_video.content] {
            *content = Some("screenshare");
        }
        if second % 15 != 0 {
            (now.received_video.frames, now.received_video.decoded) = (0, 0);
            (now.received_video.packets, now.received_video.bytes) = (2, 300);
        }
    });
    assert!(answer.verdict.starts_with("Nothing limited"), "{}", answer.verdict);
    assert!(answer.verdict.contains("good for 100 %"), "{}", answer.verdict);
}

/// The values of all series of a webrtc-internals dump.
fn all_series(dump: &mut Value) -> &mut serde_json::Map<String, Value> {
    dump["PeerConnections"]["7-1"]["stats"].as_object_mut().unwrap()
}

fn silent_from_20(second: u64, now: &mut Second) {
    if second >= 20 {
        now.received_audio.level = 0.0;
    }
}

#[test]
fn levels_without_energy_tell_silence_as_well() {
    let mut dump = internals(&established(), &call(60, silent_from_20), 1_000, true);
    let series = all_series(&mut dump);
    let energy = series.remove("in-audio-totalAudioEnergy").unwrap();
    series.remove("in-audio-totalSamplesDuration");
    let level: Vec<f64> = (0..60).map(|second| if second < 20 { 0.1 } else { 0.0 }).collect();
    let level = json!(level).to_string();
    let written = json!({ "startTime": energy["startTime"], "endTime": energy["endTime"],
        "statsType": "inbound-rtp", "values": level });
    series.insert("in-audio-audioLevel".into(), written);
    let answer = answer_of(dump.to_string().into_bytes());
    assert!(answer.verdict.starts_with("The far end's sound was silent"), "{}", answer.verdict);
}

#[test]
fn what_old_chrome_counts_of_a_track_is_its_stream_s() {
    const OF_TRACKS: [&str; 7] = [
        "framesReceived",
        "frameWidth",
        "frameHeight",
        "freezeCount",
        "totalFreezesDuration",
        "jitterBufferDelay",
        "jitterBufferEmittedCount",
    ];
    let frozen = call(60, |second, now| {
        if second == 30 {
            (now.received_video.freezes, now.received_video.frozen_s) = (1, 2.5);
        }
    });
    let mut dump = internals(&established(), &frozen, 1_000, false);
    let series = all_series(&mut dump);
    let own = "RTCInboundRTPStream_in_video";
    let mut id = Value::Null;
    for member in OF_TRACKS {
        let Some(mut moved) = series.remove(&format!("{own}-{member}")) else { continue };
        series.insert(format!("RTCMediaStreamTrack_receiver_3-{member}"), moved.clone());
        moved["values"] = json!(vec!["RTCMediaStreamTrack_receiver_3"; 60]).to_string().into();
        id = moved;
    }
    series.insert(format!("{own}-trackId"), id);
    let answer = answer_of(dump.to_string().into_bytes());
    assert!(answer.verdict.contains("Video froze once, 2.5 s"), "{}", answer.verdict);
    assert_eq!(answer.streams[2].size, Some((1_280, 720)));
}

#[test]
fn series_without_types_are_told_by_their_members() {
    let lossy = call(60, |_, now| {
        for received in [&mut now.received_video, &mut now.received_audio] {
            let lost = received.packets / 10;
            (received.packets, received.lost) = (received.packets - lost, lost as i64);
        }
    });
    let mut dump = internals(&established(), &lossy, 1_000, true);
    for (name, written) in all_series(&mut dump) {
        let written = written.as_object_mut().unwrap();
        written.remove("statsType");
        if name.ends_with("-type") {
            written.insert("values".into(), json!("[]"));
        }
    }
    let answer = answer_of(dump.to_string().into_bytes());
    assert!(answer.verdict.starts_with("Downlink lost 10.0 %"), "{}", answer.verdict);
}

#[test]
fn a_refused_screen_is_named_by_what_was_asked_for() {
    let mut dump = internals(&established(), &call(30, |_, _| {}), 1_000, true);
    dump["getUserMedia"] = json!([
        { "request_id": 4, "timestamp": 1.0, "request_type": "getDisplayMedia", "video": "" },
        { "request_id": 4, "timestamp": 2.0, "error": "NotAllowedError",
          "error_message": "Permission denied by user" },
    ]);
    let answer = answer_of(dump.to_string().into_bytes());
    let words = "getDisplayMedia failed: NotAllowedError: Permission denied by user.";
    assert!(answer.verdict.starts_with(words), "{}", answer.verdict);
}

#[test]
fn checks_that_go_on_until_the_page_is_saved_are_no_connection() {
    let mut dump = internals(&[], &[], 1_000, true);
    let values = json!(vec![0; 20]).to_string();
    let series = json!({ "startTime": "2025-11-29T07:06:40.000Z",
        "endTime": "2025-11-29T07:06:59.000Z", "statsType": "peer-connection", "values": values });
    all_series(&mut dump).insert("P-state".into(), series);
    let checking: Event = (0.5, "oniceconnectionstatechange", json!("checking"));
    let log = json!([{ "timestamp": 1_764_400_000_000.0 + checking.0 * 1e3,
        "type": checking.1, "value": checking.2.to_string() }]);
    dump["PeerConnections"]["7-1"]["updateLog"] = log;
    let answer = answer_of(dump.to_string().into_bytes());
    assert!(answer.verdict.contains("was never established"), "{}", answer.verdict);
}

#[test]
fn a_dump_that_is_cut_does_not_say_that_all_was_good_without_a_word() {
    let text = internals(&established(), &call(60, |_, _| {}), 1_000, true).to_string();
    let whole = answer_of(text.clone().into_bytes()).verdict;
    assert!(!whole.contains("The file is cut"), "{whole}");
    let half = answer_of(text.into_bytes()[..40_000].to_vec()).verdict;
    assert!(half.contains("The file is cut"), "{half}");
}

#[test]
fn a_single_report_does_not_say_when_it_was_good() {
    let late = call(60, |second, now| {
        if second < 20 {
            now.received_video.buffer_ms = 2_000.0;
        }
    });
    let last = reports(&late).pop().unwrap();
    let answer = answer_of(json!(last).to_string().into_bytes());
    assert!(!answer.verdict.contains("Received video was good"), "{}", answer.verdict);
}

#[test]
fn a_dump_behind_notes_in_an_archive_is_found() {
    let dump = rtcstats(&established(), &call(30, |_, _| {})).into_bytes();
    let mut archive = Vec::new();
    for (name, data) in [("readme.txt", b"as saved at noon".to_vec()), ("a/dump.txt", dump)] {
        archive.extend(b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0");
        archive.extend([data.len() as u32; 2].map(u32::to_le_bytes).concat());
        archive.extend([name.len() as u8, 0, 0, 0]);
        archive.write_all(name.as_bytes()).unwrap();
        archive.extend(data);
    }
    archive.extend(b"PK\x01\x02");
    assert!(answer_of(archive).verdict.starts_with("Nothing limited"));
    let mut tar = vec![b'a'; 600];
    tar[257..262].copy_from_slice(b"ustar");
    let error = read_bytes("made".as_ref(), tar).unwrap_err().to_string();
    assert!(error.contains("tar archive"), "{error}");
    let old_log = [0x0A, 4, 8, 1, 0x10, 1, 0x0A, 4, 8, 1, 0x10, 1].to_vec();
    let error = read_bytes("made".as_ref(), old_log).unwrap_err().to_string();
    assert!(error.contains("first format"), "{error}");
}
