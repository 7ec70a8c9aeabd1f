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
