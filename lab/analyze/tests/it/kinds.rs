//! Each kind of fault that a dump of getStats shows, and its counter-example: calls of a minute
//! that are made up, so that the truth is known.

use serde_json::json;
use weir_analyze::{Answer, Dump, answer, fleet_call, read_bytes};

use super::made_calls::{Event, Second, call, established, internals, rtcstats};

fn read(text: String) -> Dump {
    read_bytes("made".as_ref(), text.into_bytes()).unwrap()
}

fn answer_of(events: &[Event], call: &[Second]) -> Answer {
    answer(&read(rtcstats(events, call)))
}

/// The answer to a minute's call that this changes.
fn minute(change: impl Fn(u64, &mut Second)) -> Answer {
    answer_of(&established(), &call(60, change))
}

fn rules(answer: &Answer) -> Vec<&str> {
    answer.findings.iter().map(|it| it.0.rule.as_str()).collect()
}

/// The verdict begins so, and only these rules find something.
fn check(answer: &Answer, begins: &str, expected: &[&str]) {
    assert!(answer.verdict.starts_with(begins), "{}", answer.verdict);
    assert_eq!(rules(answer), expected, "{}", answer.verdict);
}

const GOOD: &str = "Nothing limited this call in 59 s: 0.0 % of the packets were lost";

#[test]
fn a_good_call_is_called_good_with_its_streams() {
    let answer = minute(|_, _| {});
    check(&answer, GOOD, &[]);
    let codecs: Vec<_> = answer.streams.iter().map(|it| it.codec.as_deref()).collect();
    assert_eq!(codecs, [Some("VP8"), Some("opus"), Some("VP8"), Some("opus")]);
    let sent = &answer.streams[0];
    assert_eq!(sent.from.as_deref(), Some("192.0.2.7:40000"));
    assert_eq!((sent.lost, sent.size), (Some(0), Some((1_280, 720))));
    let begin = &answer.connections[0];
    assert!((begin.ice_s.unwrap() - 0.5).abs() < 1e-6, "{begin:?}");
    assert!((begin.dtls_s.unwrap() - 0.1).abs() < 1e-6, "{begin:?}");
}

#[test]
fn a_call_that_is_too_short_is_not_called_good() {
    let answer = answer_of(&established(), &call(3, |_, _| {}));
    check(&answer, "The dump has 2.0 s of media: that is too short", &[]);
}

// --- Losses ---

/// Loses these packets of all that this end receives in a second.
fn lose(now: &mut Second, share: f64) {
    for received in [&mut now.received_video, &mut now.received_audio] {
        let lost = (received.packets as f64 * share).round() as u64;
        received.lost = lost as i64;
        received.packets -= lost;
    }
}

#[test]
fn a_time_in_which_all_is_lost_weighs_as_much_as_any_other() {
    let answer = minute(|second, now| {
        if (20..23).contains(&second) {
            lose(now, 1.0);
        }
    });
    let words = "Downlink lost 100.0 % of the packets from 19 to 22 s";
    assert!(answer.verdict.starts_with(words), "{}", answer.verdict);
}

#[test]
fn of_several_outages_the_verdict_says_how_many() {
    let answer = minute(|second, now| {
        if [10, 11, 30, 31, 32, 50].contains(&second) {
            lose(now, 1.0);
        }
    });
    let words = "Downlink lost 100.0 % of the packets from 29 to 32 s, the longest of 3 times";
    assert!(answer.verdict.starts_with(words), "{}", answer.verdict);
}

/// Packets of a second of a stream that came, and those that are counted as lost in it, of an
/// outage from `from_s` to `to_s`: the first packet behind it shows the gap.
fn of_outage(second: u64, usual: u64, (from_s, to_s): (f64, f64)) -> (u64, i64) {
    let at_s = |packet: u64| second as f64 - 1.0 + packet as f64 / usual as f64;
    let came = (0..usual).filter(|it| !(from_s..to_s).contains(&at_s(*it))).count() as u64;
    let ends = (second as f64 - 1.0..second as f64).contains(&to_s);
    let all = ((to_s * usual as f64).ceil() - (from_s * usual as f64).ceil()) as i64;
    (came, if ends { all } else { 0 })
}

/// The share and the span in s that a verdict has of the loss of one direction.
fn told_loss(verdict: &str) -> (f64, f64, f64) {
    let words: Vec<&str> = verdict.split([' ', '.', ';']).collect();
    let number = |text: &str| text.parse::<f64>().unwrap();
    let at = words.iter().position(|it| *it == "lost").expect(verdict);
    let share = number(&format!("{}.{}", words[at + 1], words[at + 2]));
    let from = words.iter().position(|it| *it == "from").expect(verdict);
    (share, number(words[from + 1]), number(words[from + 3]))
}

#[test]
fn an_outage_has_the_true_share_of_the_span_that_is_printed() {
    for length in [0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.3, 7.0, 12.0, 20.0] {
        for from_s in [1.0, 1.6, 20.0, 20.3, 20.8, 33.0, 37.5] {
            let outage = (from_s, from_s + length);
            let answer = minute(|second, now| {
                let both = [&mut now.received_video, &mut now.received_audio];
                for received in both {
                    let usual = received.packets;
                    (received.packets, received.lost) = of_outage(second, usual, outage);
                }
            });
            let at = format!("{outage:?}: {}", answer.verdict);
            assert!(answer.verdict.starts_with("Downlink lost"), "{at}");
            let (share, from, to) = told_loss(&answer.verdict);
            let (mut lost, mut expected) = (0, 0);
            for second in from as u64 + 1..=to as u64 {
                for usual in [170, 50] {
                    lost += usual - of_outage(second, usual, outage).0;
                    expected += usual;
                }
            }
            let truth = 100.0 * lost as f64 / expected as f64;
            assert!((share - truth).abs() < 0.3, "{truth:.1} %: {at}");
            assert!(lost as f64 > 0.9 * 220.0 * length, "{at}");
        }
    }
}

#[test]
fn an_outage_of_what_is_sent_has_the_true_share() {
    for (length, every) in [(3, 1), (5, 1), (3, 5), (10, 5), (8, 2), (20, 1)] {
        let outage = 20..20 + length;
        let answer = minute(|second, now| {
            for sent in [&mut now.sent_video, &mut now.sent_audio] {
                sent.is_reported = second % every == 0;
                let is_told = sent.is_reported && !outage.contains(&second);
                let is_first = is_told && second >= outage.end && second < outage.end + every;
                sent.lost = if is_first { (length * sent.packets) as i64 } else { 0 };
            }
        });
        let at = format!("{length} s, each {every} s: {}", answer.verdict);
        assert!(answer.verdict.starts_with("Uplink lost"), "{at}");
        let (share, from, to) = told_loss(&answer.verdict);
        let truth = 100.0 * length as f64 / (to - from);
        assert!((share - truth).abs() < 0.3, "{truth:.1} %: {at}");
    }
}

#[test]
fn receiver_reports_at_any_distance_have_the_true_share() {
    for (every, percent) in [(1, 10), (2, 20), (5, 10), (5, 20), (7, 50)] {
        let answer = minute(|second, now| {
            now.sends_video = false;
            now.receives_video = false;
            now.sent_audio.is_reported = second % every == 0;
            let of_time = 50 * every as i64 * percent / 100;
            now.sent_audio.lost = if second % every == 0 { of_time } else { 0 };
        });
        let words = format!("Uplink lost {percent}.0 % of the packets");
        assert!(answer.verdict.starts_with(&words), "each {every} s: {}", answer.verdict);
        assert_eq!(rules(&answer), ["loss"]);
    }
}

#[test]
fn packets_that_come_late_are_not_lost() {
    let answer = minute(|second, now| {
        let late = if second % 4 == 1 { 12 } else { -12 };
        let late = if second % 2 == 1 { late } else { 0 };
        now.received_video.lost = late;
        now.received_video.packets = (170 - late) as u64;
    });
    check(&answer, GOOD, &[]);
}

#[test]
fn a_burst_is_not_thinned_by_the_quiet_seconds_around_it() {
    let answer = minute(|second, now| {
        let share = if (20..25).contains(&second) { 0.2 } else { 0.006 };
        lose(now, share);
    });
    let words = "Downlink lost 20.0 % of the packets from 19 to 24 s";
    assert!(answer.verdict.starts_with(words), "{}", answer.verdict);
}

#[test]
fn what_alone_lost_packets_is_named() {
    let answer = minute(|_, now| {
        (now.received_audio.packets, now.received_audio.lost) = (44, 6);
    });
    let words = "Downlink lost 12.0 % of the packets from 0 to 59 s, of audio alone.";
    assert!(answer.verdict.starts_with(words), "{}", answer.verdict);
    let answer = minute(|_, now| {
        (now.sent_video.lost, now.sent_audio.lost) = (19, 0);
    });
    let words = "Uplink lost 9.8 % of the packets from 0 to 59 s, of video alone.";
    assert!(answer.verdict.starts_with(words), "{}", answer.verdict);
}

#[test]
fn losses_of_both_directions_are_told_apart() {
    let answer = minute(|_, now| now.sent_video.lost = 2);
    let words = "Nothing limited this call in 59 s: 0.8 % of the sent packets and 0.0 % of the \
        received ones were lost";
    check(&answer, words, &[]);
}

// --- Video ---

#[test]
fn video_that_arrives_and_is_never_decoded_is_not_good() {
    let answer = minute(|_, now| {
        now.received_video.decoded = 0;
        now.received_video.key_frame_requests = 1;
    });
    let words = "Video arrived and none was decoded; this end asked for a key frame 59 times.";
    check(&answer, words, &["not decoded"]);
}

#[test]
fn a_decoder_that_is_too_slow_is_this_device_s() {
    let answer = minute(|second, now| {
        if second >= 20 {
            now.received_video.decoded = 11;
            now.received_video.decode_ms = 90.0;
        }
    });
    let words = "This device was too slow to decode from 19 s on: 11 of 30 frames a second.";
    check(&answer, words, &["decoder"]);
}

#[test]
fn an_encoder_that_makes_nothing_is_found() {
    let answer = minute(|_, now| {
        now.sent_video.fps = 0;
        (now.sent_video.packets, now.sent_video.bytes) = (0, 0);
    });
    let words = "The encoder made no frame throughout, although the camera gave frames.";
    check(&answer, words, &["not encoded"]);
}

#[test]
fn few_frames_of_the_far_end_are_its_choice() {
    let answer = minute(|second, now| {
        if second >= 20 {
            (now.received_video.frames, now.received_video.decoded) = (6, 6);
            (now.received_video.packets, now.received_video.bytes) = (34, 37_500);
        }
    });
    let words = "The far end sent 6 frames a second instead of 30 from 19 s on";
    check(&answer, words, &["few frames"]);
}

#[test]
fn a_shared_page_that_stands_still_is_good_in_both_directions() {
    let answer = minute(|second, now| {
        let still = second % 20 != 0;
        now.sent_video.content = Some("screenshare");
        now.received_video.content = Some("screenshare");
        if still {
            (now.sent_video.fps, now.sent_video.source_fps) = (1, 1.0);
            (now.sent_video.packets, now.sent_video.bytes) = (9, 10_000);
            (now.received_video.frames, now.received_video.decoded) = (1, 1);
            (now.received_video.packets, now.received_video.bytes) = (9, 10_000);
        }
    });
    check(&answer, GOOD, &[]);
}

#[test]
fn bandwidth_that_limits_throughout_is_said() {
    let answer = minute(|_, now| {
        now.estimate_kbps = 280.0;
        now.sent_video.limitation = "bandwidth";
        now.sent_video.target_kbps = 240.0;
        (now.sent_video.packets, now.sent_video.bytes) = (30, 30_000);
    });
    let words = "Sent video was limited by the bandwidth estimate of 0.3 Mbit/s throughout";
    check(&answer, words, &["bandwidth"]);
}

// Chrome caps the target by the picture's size: 600 kbit/s of 320x240.
#[test]
fn a_low_estimate_is_shared_with_the_sound() {
    let answer = minute(|_, now| {
        now.estimate_kbps = 90.0;
        now.sent_video.target_kbps = 55.0;
        (now.sent_video.packets, now.sent_video.bytes) = (8, 6_900);
        (now.sent_video.fps, now.sent_video.limitation) = (5, "bandwidth");
    });
    assert_eq!(rules(&answer), ["bandwidth"], "{}", answer.verdict);
}

#[test]
fn a_target_that_the_picture_caps_is_not_the_controller_s_fault() {
    let answer = minute(|second, now| {
        if second < 15 {
            now.estimate_kbps = 1_400.0;
            now.sent_video.limitation = "bandwidth";
            now.sent_video.size = (320, 240);
            now.sent_video.target_kbps = 600.0;
            (now.sent_video.packets, now.sent_video.bytes) = (68, 75_000);
        }
    });
    check(&answer, GOOD, &[]);
    // Where the estimate holds the target down, it is.
    let answer = minute(|second, now| {
        if second < 15 {
            now.estimate_kbps = 650.0;
            now.sent_video.target_kbps = 600.0;
            (now.sent_video.packets, now.sent_video.bytes) = (68, 75_000);
        }
    });
    assert!(rules(&answer).contains(&"start-up"), "{}", answer.verdict);
}

// --- Late ---

#[test]
fn a_jitter_buffer_that_makes_a_call_late_is_said() {
    for buffer_ms in [300.0, 450.0, 900.0] {
        let answer = minute(|_, now| {
            now.receives_video = false;
            now.received_audio.buffer_ms = buffer_ms;
        });
        let late = buffer_ms + 20.0;
        let words = format!("Received audio was {late} ms late throughout: {buffer_ms} ms in the");
        check(&answer, &words, &["late"]);
        let answer = minute(|_, now| now.received_video.buffer_ms = buffer_ms);
        check(&answer, &words.replace("audio", "video"), &["late"]);
        assert!(answer.verdict.contains("good for 0 %"), "{}", answer.verdict);
    }
}

#[test]
fn a_path_of_260_ms_is_no_limit_and_is_said() {
    let answer = minute(|_, now| now.rtt_ms = 260.0);
    check(&answer, GOOD, &[]);
    let words = "round trips took 260 ms at best, which people notice";
    assert!(answer.verdict.contains(words), "{}", answer.verdict);
}

// --- Nothing comes ---

#[test]
fn a_video_that_stops_is_not_good_for_the_rest_of_the_call() {
    let stop = |from: u64, to: u64| {
        minute(move |second, now| {
            if (from..to).contains(&second) {
                now.received_video = super::made_calls::Received {
                    packets: 0,
                    bytes: 0,
                    frames: 0,
                    decoded: 0,
                    ..now.received_video.clone()
                };
            }
        })
    };
    let answer = stop(20, 60);
    let words = "No video was received from 19 s on, and none of it was lost: the far end stopped";
    check(&answer, words, &["nothing received"]);
    assert!(answer.verdict.contains("100 % of the 19 s in which it came"), "{}", answer.verdict);
    let answer = stop(20, 40);
    let words =
        "No video was received from 19 to 39 s, and none of it was lost: the far end paused";
    check(&answer, words, &["nothing received"]);
}

#[test]
fn a_sound_of_which_no_packet_ever_came_is_not_good() {
    let answer = minute(|_, now| {
        let sound = &mut now.received_audio;
        (sound.packets, sound.bytes) = (0, 0);
    });
    check(&answer, "No audio was received", &["nothing received"]);
}

/// Nothing comes from 20 s on for so long. Then it comes at once, or goes on.
fn stalled(seconds: u64, comes_late: bool) -> Answer {
    minute(move |second, now| {
        now.is_answered = !(20..20 + seconds).contains(&second);
        for received in [&mut now.received_video, &mut now.received_audio] {
            let usual = received.packets;
            if (20..20 + seconds).contains(&second) {
                received.packets = 0;
            } else if second == 20 + seconds && comes_late {
                received.packets = usual * (seconds + 1);
            }
        }
    })
}

#[test]
fn a_path_that_stands_still_is_told_from_a_pause() {
    for seconds in [2, 3, 6] {
        for comes_late in [true, false] {
            let answer = stalled(seconds, comes_late);
            let words =
                format!("Nothing arrived from 19 to {} s, and nothing was lost", 19 + seconds);
            assert!(answer.verdict.starts_with(&words), "{}", answer.verdict);
            assert_eq!(rules(&answer), ["stall"]);
        }
    }
    // A single voice that pauses is one, and one that comes late is not.
    let voice = |comes_late: bool| {
        minute(move |second, now| {
            (now.sends_video, now.receives_video) = (false, false);
            now.received_audio.packets = match second {
                20..23 => 0,
                23 if comes_late => 200,
                _ => 50,
            };
        })
    };
    assert_eq!(rules(&voice(true)), ["stall"]);
    check(&voice(false), GOOD, &[]);
}

#[test]
fn a_hole_between_reports_says_whether_the_device_slept() {
    let slept = |sleeps: bool| {
        let all = call(60, |_, _| {});
        let text = rtcstats(&established(), &all);
        let mut lines: Vec<String> = text.lines().map(String::from).collect();
        let reports: Vec<String> = lines.split_off(5);
        lines.extend(reports[..20].iter().cloned());
        let later = if sleeps { 20 } else { 50 };
        for (number, report) in reports[later..later + 10].iter().enumerate() {
            // The same reports half a minute later.
            let (from, to) = (later + number, 50 + number);
            let time = |second: usize| format!("{:.1}", 1_764_400_000_000.0 + second as f64 * 1e3);
            lines.push(report.replace(&time(from), &time(to)));
        }
        answer(&read(lines.join("\n")))
    };
    let answer = slept(true);
    assert!(answer.verdict.contains("the device was asleep"), "{}", answer.verdict);
    assert!(rules(&answer).contains(&"no reports"));
    let answer = slept(false);
    assert!(answer.verdict.contains("while media went on"), "{}", answer.verdict);
}

#[test]
fn a_page_that_keeps_a_thousand_reports_says_what_it_has_not() {
    let all = call(1_400, |_, _| {});
    let dump = read(internals(&established(), &all, 1_000, true).to_string());
    let answer = answer(&dump);
    let words = "The first 401 s of the call are not in the dump: the page keeps the last 1,000";
    assert!(answer.verdict.contains(words), "{}", answer.verdict);
    assert_eq!(rules(&answer), ["begins late"]);
}

// --- Sound ---

#[test]
fn silence_is_told_from_sound_and_from_a_quiet_room() {
    let from_20 = |level: f64| {
        minute(move |second, now| {
            if second >= 20 {
                now.received_audio.level = level;
            }
        })
    };
    let words = "The far end's sound was silent from 19 s on";
    check(&from_20(0.0), words, &["silent sound"]);
    check(&from_20(3e-4), GOOD, &[]);
    let answer = minute(|second, now| {
        if second >= 20 {
            now.sent_audio.level = 0.0;
        }
    });
    check(&answer, "This end's microphone was silent from 19 s on", &["silent microphone"]);
    let answer = minute(|second, now| {
        if second >= 20 {
            (now.sent_audio.packets, now.sent_audio.bytes) = (0, 0);
        }
    });
    check(&answer, "No sound was sent from 19 s on", &["not sent"]);
}

#[test]
fn a_mute_is_no_cause_of_a_bad_call_in_a_fleet() {
    let all = call(60, |_, now| now.received_audio.level = 0.0);
    let row = fleet_call(read(rtcstats(&established(), &all)));
    assert_eq!((row.main_cause, row.bad_s), (None, 0.0));
    let all = call(60, |_, now| now.received_video.decoded = 0);
    let row = fleet_call(read(rtcstats(&established(), &all)));
    assert_eq!(row.main_cause.map(|it| it.name()), Some("unexplained"));
}

// --- The path, and what the browser says beside statistics ---

#[test]
fn a_change_of_the_network_is_named_and_its_longer_path_is_no_queue() {
    for after_ms in [120.0, 250.0] {
        let answer = minute(|second, now| {
            if second >= 30 {
                now.rtt_ms = after_ms;
                (now.network, now.address) = ("cellular", "203.0.113.5");
            }
        });
        check(&answer, GOOD, &["path change"]);
        let words = format!(
            "The path changed from Wi-Fi to cellular; round trips took 40 ms before and \
             {after_ms} ms after, at 30 s."
        );
        assert!(answer.verdict.contains(&words), "{}", answer.verdict);
    }
}

#[test]
fn what_the_browser_refused_comes_first_in_its_words() {
    let denied = json!({ "name": "NotAllowedError", "message": "Permission denied" });
    let mut events = established();
    events.insert(0, (-5.0, "navigator.mediaDevices.getUserMediaOnFailure", denied));
    let text = rtcstats(&events, &call(60, |_, _| {}));
    // A request of the page names no connection.
    let text = text.replacen("OnFailure\",\"7-1\"", "OnFailure\",null", 1);
    let answer = answer(&read(text));
    let words = "getUserMedia failed: NotAllowedError: Permission denied.";
    check(&answer, words, &["refused"]);
    let mut events = established();
    events.push((5.0, "setRemoteDescriptionOnFailure", json!("Failed to parse the description.")));
    let answer = answer_of(&events, &call(60, |_, _| {}));
    check(&answer, "setRemoteDescription failed: Failed to parse the description.", &["refused"]);
}

#[test]
fn a_call_that_never_connects_says_which_servers_it_had() {
    let failed = |servers: serde_json::Value| {
        let events: Vec<Event> = vec![
            (-2.0, "create", json!({ "iceServers": servers })),
            (-1.5, "oniceconnectionstatechange", json!("checking")),
            (15.0, "oniceconnectionstatechange", json!("failed")),
        ];
        answer(&read(rtcstats(&events, &[])))
    };
    let answer = failed(json!([{ "urls": ["stun:stun.example:3478"] }]));
    assert!(answer.verdict.contains("No TURN server is configured"), "{}", answer.verdict);
    assert_eq!(rules(&answer), ["never connected", "no TURN server"]);
    let answer = failed(json!([{ "urls": "turn:turn.example:3478" }]));
    assert_eq!(rules(&answer), ["never connected"]);
}

#[test]
fn a_server_whose_name_is_unknown_is_not_one_that_is_silent() {
    let error = |text: &str| {
        let error = json!({ "url": "turn:turn.example:3478", "errorCode": 701, "errorText": text });
        let mut events = established();
        events.push((-0.5, "onicecandidateerror", error));
        answer_of(&events, &call(60, |_, _| {}))
    };
    let answer = error("TURN host lookup received error.");
    check(&answer, GOOD, &["server error"]);
    assert!(answer.verdict.contains("its name was not found"), "{}", answer.verdict);
    let answer = error("STUN binding request timed out.");
    assert!(!answer.verdict.contains("turn.example"), "{}", answer.verdict);
    assert!(answer.findings[0].0.says.contains("did not answer (STUN binding"), "{answer:?}");
}

// --- Forms ---

#[test]
fn both_dumps_of_a_page_and_an_old_chrome_say_the_same() {
    let lossy = call(60, |_, now| lose(now, 0.1));
    let words = "Downlink lost 10.0 % of the packets from 0 to 59 s";
    for has_types in [true, false] {
        let dump = read(internals(&established(), &lossy, 1_000, has_types).to_string());
        let answer = answer(&dump);
        assert!(answer.verdict.starts_with(words), "{has_types}: {}", answer.verdict);
    }
    let answer = answer_of(&established(), &lossy);
    assert!(answer.verdict.starts_with(words), "{}", answer.verdict);
}
