//! The answer: one verdict first, and findings that agree with each other.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weir_analyze::{Answer, Dump, answer, findings, read, record};

fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn dump(name: &str) -> Dump {
    read(&place(name)).unwrap()
}

/// All dumps of calls that were made here.
fn all_dumps() -> Vec<(String, Dump)> {
    let mut all = Vec::new();
    for folder in ["dumps", "networks"] {
        for entry in fs::read_dir(place(folder)).unwrap() {
            let name = format!("{folder}/{}", entry.unwrap().file_name().to_string_lossy());
            if name.ends_with(".gz")
                && let Ok(dump) = read(&place(&name))
            {
                all.push((name, dump));
            }
        }
    }
    assert!(all.len() > 20, "{}", all.len());
    all
}

/// An rtcstats dump of these events. Times are in s.
fn made(events: &[(&str, &str, Value, f64)]) -> Dump {
    let mut text = String::new();
    for (name, connection, value, time_s) in events {
        let event = json!([name, connection, value, 1.7e12 + time_s * 1e3]);
        text += &format!("{event}\n");
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), text).unwrap();
    read(file.path()).unwrap()
}

/// Received audio after so many seconds: 48,000 samples a second, of which `concealed` in all.
fn audio(seconds: f64, concealed: u64, gaps: u64) -> Value {
    json!({ "A": {
        "type": "inbound-rtp", "kind": "audio", "ssrc": 7, "timestamp": 1.7e12 + seconds * 1e3,
        "packetsReceived": (seconds * 50.0) as u64, "packetsLost": 0, "bytesReceived": 4_000,
        "totalSamplesReceived": (seconds * 48e3) as u64, "concealedSamples": concealed,
        "silentConcealedSamples": 0, "concealmentEvents": gaps,
        "jitterBufferDelay": seconds * 48e3 * 0.06,
        "jitterBufferEmittedCount": (seconds * 48e3) as u64,
    } })
}

fn rules(answer: &Answer) -> Vec<&str> {
    answer.findings.iter().map(|it| it.0.rule.as_str()).collect()
}

/// What is said first of each dump that others published, so that a change of any rule shows here.
#[test]
fn published_dumps_have_their_verdicts() {
    let verdicts = [
        (
            "chrome-relay",
            "Uplink was full at 0.6 Mbit/s from 100 to 110 s. Downlink lost 19.0 % of the packets \
             from 80 to 90 s.",
        ),
        (
            "chrome-standard-pc-failed",
            "Connection PC_0 failed at 14.8 s, 14.8 s after it was established",
        ),
        ("chrome96-standard-stats-p2p-add-transceiver", "Nothing limited this call in 20 s"),
        ("firefox-relay", "Nothing limited this call in 39 s"),
        (
            "google-legacy-stats-sfu",
            // 5 of 8564, and 12 of 27114.
            "Nothing limited this call in 107 s: 0.1 % of the sent packets and 0.0 % of the \
             received ones were lost, round trips took 46 ms",
        ),
        (
            "google-standard-stats-p2p",
            // Each loss is one report's: of streams that come back after half a minute without a
            // packet.
            "The application gave little video to send from 17 to 32 s.",
        ),
        (
            "safari-relay",
            // Of what was sent before and after the interruption, 56 % were lost.
            "The connection was interrupted at 152.9 s, for 0.4 s. Uplink fell to 0.4 Mbit/s",
        ),
        (
            "undefined-ice-candidate",
            "Connection PC_0 failed at 14.9 s, 15.0 s after it was established",
        ),
    ];
    for (name, begins) in verdicts {
        let verdict = answer(&dump(&format!("dumps/jitsi/{name}.gz"))).verdict;
        assert!(verdict.starts_with(begins), "{name}: {verdict}");
    }
}

/// Reports of Chrome's old statistics, whose values are text: one sent video at a target of 200
/// kbit/s.
fn old_chrome() -> Dump {
    let mut events = Vec::new();
    for second in 0..20_u32 {
        let sent = 25_000 * second;
        let lost = if second > 10 { 3 * (second - 10) } else { 0 };
        let report = json!({
            "ssrc_77_send": {
                "timestamp": 0, "type": "ssrc", "mediaType": "video", "ssrc": "77",
                "packetsSent": (25 * second).to_string(), "bytesSent": sent.to_string(),
                "packetsLost": lost.to_string(), "googRtt": "46",
                "framesEncoded": (30 * second).to_string(), "googFrameRateSent": "30",
                "googFrameWidthSent": "320", "googFrameHeightSent": "180",
                "googBandwidthLimitedResolution": "true", "googCpuLimitedResolution": "false",
            },
            "bweforvideo": {
                "timestamp": 0, "type": "VideoBwe", "googTargetEncBitrate": "200000",
                "googAvailableSendBandwidth": "428493",
            },
            "Conn-0-1-0": {
                "timestamp": 0, "type": "googCandidatePair", "googActiveConnection": "true",
                "googLocalCandidateType": "relay", "googRemoteCandidateType": "stun",
                "googTransportType": "tcp", "googRtt": "46", "bytesSent": sent.to_string(),
                "googLocalAddress": "192.0.2.1:5000", "googRemoteAddress": "[2001:db8::1]:443",
            },
        });
        events.push(("getstats", "PC_0", report, f64::from(second)));
    }
    made(&events)
}

#[test]
fn the_old_statistics_of_chrome_are_read() {
    let dump = old_chrome();
    let [stream] = &dump.connections[0].streams[..] else { panic!("one stream") };
    let report = &stream.reports.last().unwrap().timed.report;
    let outbound = report.outbound.as_ref().unwrap();
    assert_eq!((outbound.bytes_sent, outbound.frame_width), (475_000, Some(320)));
    assert_eq!(outbound.target_bitrate, Some(200_000.0));
    let remote = report.remote_inbound.as_ref().unwrap();
    assert_eq!((remote.packets_lost, remote.round_trip_time), (Some(27), Some(0.046)));
    let pair = report.pair.as_ref().unwrap();
    assert_eq!(pair.available_outgoing_bitrate, Some(428_493.0));
    assert_eq!(
        (pair.local.candidate_type.as_str(), pair.remote.candidate_type.as_str()),
        ("relay", "srflx")
    );
    assert_eq!(
        (pair.remote.address, pair.remote.port),
        (Some("2001:db8::1".parse().unwrap()), 443)
    );
    let verdict = answer(&dump).verdict;
    assert!(verdict.contains("Uplink lost 12.0 % of the packets from 10 to 19 s"), "{verdict}");
    assert!(verdict.contains("TCP"), "{verdict}");
}

#[test]
fn a_failed_connection_comes_first_and_is_no_success() {
    let video = |packets: u64, time_s: f64| {
        json!({ "V": {
            "type": "inbound-rtp", "kind": "video", "ssrc": 9, "packetsReceived": packets,
            "timestamp": 1.7e12 + time_s * 1e3, "packetsLost": 0,
            "bytesReceived": packets * 1_000,
        } })
    };
    let dump = made(&[
        ("oniceconnectionstatechange", "PC_0", json!("checking"), 0.0),
        ("oniceconnectionstatechange", "PC_0", json!("connected"), 1.0),
        ("onconnectionstatechange", "PC_0", json!("connected"), 1.0),
        ("getstats", "PC_0", video(100, 2.0), 2.0),
        ("getstats", "PC_0", video(200, 3.0), 3.0),
        ("oniceconnectionstatechange", "PC_0", json!("disconnected"), 10.0),
        ("oniceconnectionstatechange", "PC_0", json!("failed"), 16.0),
        ("onconnectionstatechange", "PC_0", json!("failed"), 16.0),
    ]);
    let answer = answer(&dump);
    assert_eq!(answer.findings[0].0.rule, "connection failed");
    let begin = "Connection PC_0 failed at 14.0 s, 15.0 s after it was established";
    assert!(answer.verdict.starts_with(begin), "{}", answer.verdict);
    let record = record("failed", &dump).unwrap();
    let call = &record.call.unwrap().calls[0];
    assert!(call.failure.as_ref().is_some_and(|it| it.contains("PC_0 failed")), "{call:?}");
}

#[test]
fn a_dump_of_a_connection_never_made_is_answered_without_a_stream() {
    let dump = made(&[
        ("oniceconnectionstatechange", "PC_0", json!("checking"), 0.0),
        ("onicecandidateerror", "PC_0", json!({ "url": "turn:192.0.2.1", "errorCode": 701 }), 9.0),
        ("oniceconnectionstatechange", "PC_0", json!("failed"), 20.0),
    ]);
    let answer = answer(&dump);
    assert!(answer.verdict.contains("was never established"), "{}", answer.verdict);
    assert_eq!(rules(&answer), ["never connected", "server error"]);
    let line = answer.findings[1].to_string();
    assert!(line.starts_with("at 9.0 s, PC_0: connection: "), "an event is an instant: {line}");
    let server = &answer.findings[1].0.says;
    assert_eq!(server, "turn:192.0.2.1 did not answer");
}

#[test]
fn freezes_are_in_the_verdict_with_their_count_and_seconds() {
    let answer = answer(&dump("dumps/drop.rtcstats.gz"));
    let begin = "Uplink fell to 0.4 Mbit/s from 5 to 15 s";
    assert!(answer.verdict.starts_with(begin), "{}", answer.verdict);
    assert!(answer.verdict.contains("Video froze twice, 5.1 s in all."), "{}", answer.verdict);
    let freeze = answer.findings.iter().find(|it| it.0.rule == "freeze").unwrap();
    assert!(freeze.0.from_s >= 5.0 && freeze.0.to_s <= 15.0, "{freeze:?}");
}

// Of the 16 s between its reports, 5.1 s are frozen.
#[test]
fn the_verdict_says_for_how_long_received_video_was_good() {
    let answer = answer(&dump("dumps/drop.rtcstats.gz"));
    let good = answer.good_time;
    assert!((good.no_picture_s - 5.1).abs() < 0.1, "{good:?}");
    assert!(good.late_s > 1.0 && (15.0..18.0).contains(&good.watched_s()), "{good:?}");
    assert!(answer.verdict.contains("Received video was good for"), "{}", answer.verdict);
    assert!(answer.verdict.contains("no new picture"), "{}", answer.verdict);
    // A call in which nobody sends video to this end has no such sentence.
    let answer = self::answer(&made(&[
        ("getstats", "PC_0", audio(1.0, 0, 0), 1.0),
        ("getstats", "PC_0", audio(2.0, 0, 0), 2.0),
    ]));
    assert!(!answer.verdict.contains("good for"), "{}", answer.verdict);
}

#[test]
fn the_freezes_of_a_stream_are_one_finding_at_its_worst_seconds() {
    let freezes = |count: u64, seconds: f64, time_s: f64| {
        json!({ "V": { "type": "inbound-rtp", "kind": "video", "ssrc": 9, "packetsLost": 0,
            "packetsReceived": 100 * (time_s as u64), "bytesReceived": 1_000_000,
            "freezeCount": count,
            "totalFreezesDuration": seconds, "timestamp": 1.7e12 + time_s * 1e3 } })
    };
    let reports = [(0, 0.0), (1, 0.3), (1, 0.3), (1, 0.3), (1, 0.3), (3, 2.8), (3, 2.8), (3, 2.8)];
    let mut events = Vec::new();
    for (number, (count, seconds)) in reports.into_iter().enumerate() {
        let time_s = number as f64 * 4.0;
        events.push(("getstats", "PC_0", freezes(count, seconds, time_s), time_s));
    }
    let answer = answer(&made(&events));
    assert_eq!(rules(&answer), ["freeze"]);
    let found = &answer.findings[0].0;
    assert_eq!((found.from_s, found.to_s), (16.0, 20.0));
    let says = "the picture froze twice, 2.5 s in all; 3 times, 2.8 s in all over the whole call";
    assert_eq!(found.says, says);
}

#[test]
fn an_event_before_the_first_report_has_no_negative_time() {
    let video = json!({ "V": { "type": "inbound-rtp", "kind": "video", "ssrc": 9, "packetsLost": 0,
        "packetsReceived": 100, "bytesReceived": 100_000, "timestamp": 1.7e12 + 2_000.0 } });
    let dump = made(&[
        ("oniceconnectionstatechange", "PC_1", json!("checking"), 0.0),
        ("getstats", "PC_0", video, 2.0),
        ("oniceconnectionstatechange", "PC_1", json!("failed"), 17.0),
    ]);
    let answer = answer(&dump);
    let never = answer.findings.iter().find(|it| it.0.rule == "never connected").unwrap();
    assert_eq!((never.0.from_s, never.0.to_s), (0.0, 15.0), "{answer:?}");
}

#[test]
fn concealed_audio_is_in_the_answer_with_its_gaps_and_jitter_buffer() {
    let report =
        |time_s, concealed, gaps| ("getstats", "PC_0", audio(time_s, concealed, gaps), time_s);
    let events =
        [report(1.0, 0, 0), report(2.0, 0, 0), report(3.0, 9_600, 4), report(4.0, 9_600, 4)];
    let answer = answer(&made(&events));
    assert_eq!(rules(&answer), ["concealment"]);
    let found = &answer.findings[0].0;
    assert_eq!((found.from_s, found.to_s), (1.0, 2.0));
    assert!(found.says.contains("20.0 % concealed in 4 gaps, jitter buffer 60 ms"), "{found:?}");
    assert_eq!(answer.verdict, "Audio had 4 gaps: 6.7 % of it was concealed.");
    assert_eq!(answer.details.len(), 1, "{:?}", answer.details);
}

// The capacity rises at 10 s, from 0.5 to 1.5 Mbit/s.
#[test]
fn an_estimate_far_below_what_trains_measured_is_the_controllers() {
    let answer = answer(&dump("networks/rise.log.gz"));
    let low = answer.findings.iter().find(|it| it.0.rule == "underestimate").unwrap();
    assert!((9.0..11.5).contains(&low.0.from_s) && low.0.to_s > 15.0, "{low:?}");
    assert!(low.0.says.starts_with("the sender's estimate stayed at 0."), "{low:?}");
    assert!(answer.verdict.contains("of what the path carried"), "{}", answer.verdict);
    // The other calls use what their path carries.
    for name in ["networks/constant.log.gz", "networks/aqm.log.gz", "dumps/muted.log.gz"] {
        let found = findings(&dump(name));
        assert!(found.iter().all(|it| it.0.rule != "underestimate"), "{name}: {found:?}");
    }
}

#[test]
fn retransmissions_are_no_video_of_their_own() {
    let sent = |ssrc: u32, packets: u64, rtx: Option<u32>, time_s: f64| {
        json!({ "type": "outbound-rtp", "kind": "video", "ssrc": ssrc, "packetsSent": packets,
            "timestamp": 1.7e12 + time_s * 1e3, "bytesSent": packets * 1_000, "rtxSsrc": rtx })
    };
    let report = |packets, time_s| {
        let both = json!({ "M": sent(1, packets, Some(2), time_s), "R": sent(2, 3, None, time_s) });
        ("getstats", "PC_0", both, time_s)
    };
    let dump = made(&[report(100, 1.0), report(200, 2.0), report(300, 3.0)]);
    let ssrcs: Vec<u32> = dump.connections[0].streams.iter().map(|it| it.ssrc).collect();
    assert_eq!(ssrcs, [1]);
}

#[test]
fn findings_of_the_same_seconds_do_not_contradict_each_other() {
    for (name, dump) in all_dumps() {
        let found = findings(&dump);
        let of = |rule: &str| found.iter().filter(|it| it.0.rule == rule).collect::<Vec<_>>();
        for full in of("capacity") {
            for free in [of("recovery"), of("start-up"), of("loss rule")].concat() {
                let from = full.0.from_s.max(free.0.from_s);
                let shared = full.0.to_s.min(free.0.to_s) - from;
                let half = (free.0.to_s - free.0.from_s) / 2.0;
                assert!(shared <= half, "{name}: {full} and {free}");
            }
            for loss in of("loss").iter().filter(|it| it.0.from_s < full.0.to_s) {
                let is_later = loss.0.to_s > full.0.to_s;
                let without = loss.0.says.contains("without a queue");
                assert!(!without || is_later, "{name}: {full} and {loss}");
            }
        }
    }
}

#[test]
fn no_finding_compares_with_an_unknown_value() {
    for (name, dump) in all_dumps() {
        let answer = answer(&dump);
        assert!(!answer.verdict.is_empty() && answer.verdict.ends_with('.'), "{name}");
        for finding in &answer.findings {
            let says = &finding.0.says;
            assert!(!says.contains("unknown"), "{name}: {says}");
            assert!(!says.contains(" 0 kbit/s left"), "{name}: {says}");
        }
    }
}

#[test]
fn a_call_without_a_limit_says_so_with_what_is_known() {
    let answer = answer(&dump("dumps/free.rtcstats.gz"));
    assert_eq!(answer.findings, []);
    assert!(answer.verdict.starts_with("Nothing limited this call in 17 s"), "{}", answer.verdict);
}

// The server numbers anew what it sends, and these numbers have no holes.
#[test]
fn what_was_lost_on_another_s_way_to_the_server_is_no_loss_of_this_end_s() {
    let dump = dump("dumps/far-loss.log.gz");
    let found = findings(&dump);
    assert!(found.len() == 1 && found[0].0.rule == "far loss", "{found:?}");
    let verdict = answer(&dump).verdict;
    // Most of it was sent again under its own numbers, and came late: of the 132 packets between
    // 10.5 and 14 s, 13 never came.
    let words = "Of what the far end sent, 9.8 % was lost from 10.5 to 14 s, before the server";
    assert!(verdict.contains(words), "{verdict}");
    assert!(!verdict.contains("Downlink"), "{verdict}");
}
