//! Verdict, ticket, page and a fleet's row are one judgement, told four times: none contradicts
//! another, of any dump of the tree and of calls that are made of several faults.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use weir_analyze::{Answer, Dump, Outcome, answer, fleet_call, read, read_bytes, record};
use weir_record::calls::file::Kind;

use crate::made_calls::{Event, Second, call, established, rtcstats};

const GOOD: &str = "Nothing limited this call";
const NOT_DISTURBED: &str = "nothing was found that disturbed it";
/// How the names of dumps and captures end.
const KINDS: [&str; 4] = ["gz", "xz", "pcap", "pcapng"];
/// Calls that are made of faults.
const CALLS: u64 = 400;
const SECONDS: u64 = 40;

fn check(name: &str, dump: Dump) {
    let answer = answer(&dump);
    let Answer { verdict, ticket, outcome, .. } = &answer;
    let told = format!("{name}: {outcome}: {verdict} / {ticket}");
    assert_eq!(verdict.contains(GOOD), *outcome == Outcome::Good, "{told}");
    let is_free = matches!(outcome, Outcome::Good | Outcome::MeansOnly);
    assert_eq!(ticket.contains(NOT_DISTURBED), is_free, "{told}");
    assert!(ticket.starts_with("In th") && ticket.ends_with('.'), "{told}");
    if let Ok(record) = record("one", &dump) {
        let Kind::Dump(page) = record.call.unwrap().kind else { panic!("{told}") };
        assert_eq!(page.verdict, *verdict, "{told}");
        assert_eq!(page.findings.len(), answer.findings.len(), "{told}");
    }
    let row = fleet_call(dump);
    let is_bad = matches!(outcome, Outcome::NoConnection | Outcome::Limited | Outcome::NotGood);
    assert_eq!(row.main_cause, answer.main_cause, "{told}");
    assert_eq!(row.main_cause.is_some(), is_bad, "{told}");
    assert_eq!(row.failed, *outcome == Outcome::NoConnection, "{told}");
    assert!(is_bad || row.bad_s == 0.0 && row.cause_s.iter().all(|it| *it == 0.0), "{told}");
    assert!(row.bad_s <= row.duration_s + 1e-9, "{told}: {} of {}", row.bad_s, row.duration_s);
    let causes = row.findings.iter().filter_map(|it| it.cause);
    assert!(is_bad || causes.count() == 0, "{told}");
    for (rule, words) in [("freeze", " froze "), ("concealment", "concealed"), ("late", " late ")] {
        let is_found = row.findings.iter().any(|it| it.rule == rule);
        assert!(!is_found || verdict.contains(words), "{rule}: {told}");
    }
}

fn dumps(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            dumps(&path, found);
        } else if KINDS.iter().any(|kind| path.extension() == Some(OsStr::new(kind))) {
            found.push(path);
        }
    }
}

#[test]
fn no_dump_of_the_tree_is_told_in_two_ways() {
    let mut found = Vec::new();
    dumps(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"), &mut found);
    found.sort();
    let mut judged = 0;
    for path in found {
        if let Ok(dump) = read(&path) {
            check(&path.display().to_string(), dump);
            judged += 1;
        }
    }
    assert!(judged >= 40, "{judged}");
}

/// A sequence that looks like chance, equal each time.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }
}

/// A fault of some seconds, more or less of it by `strength` of 1 to 100.
fn fault(now: &mut Second, kind: u64, strength: u64) {
    let lost = |packets: u64| packets * strength / 400;
    match kind {
        0 => now.sent_video.lost = lost(now.sent_video.packets) as i64,
        1 => now.sent_audio.lost = lost(now.sent_audio.packets) as i64,
        2 | 3 => {
            let of_video = kind == 2;
            let received = if of_video { &mut now.received_video } else { &mut now.received_audio };
            let lost = lost(received.packets);
            (received.packets, received.lost) = (received.packets - lost, lost as i64);
        }
        4 => now.rtt_ms += 5.0 * strength as f64,
        5 => now.received_video.buffer_ms += 6.0 * strength as f64,
        6 => now.received_audio.buffer_ms += 6.0 * strength as f64,
        7 => now.received_audio.concealed = 48_000 * strength / 2_000,
        8 => {
            (now.received_video.freezes, now.received_video.frozen_s) = (1, strength as f64 / 200.0)
        }
        9 => now.received_video.decoded = 30 * (100 - strength) / 100,
        10 => now.received_audio.level = 0.0,
        11 => now.sent_audio.level = 0.0,
        12 => (now.sent_audio.packets, now.sent_audio.bytes) = (0, 0),
        13 => now.sent_video.fps = 0,
        14 => {
            (now.received_video.packets, now.received_video.bytes) = (0, 0);
            (now.received_video.frames, now.received_video.decoded) = (0, 0);
        }
        15 => (now.received_audio.packets, now.received_audio.bytes) = (0, 0),
        16 => {
            now.estimate_kbps = 20.0 * strength as f64;
            now.sent_video.target_kbps = now.sent_video.target_kbps.min(now.estimate_kbps);
            now.sent_video.limitation = "bandwidth";
        }
        17 => (now.network, now.address) = ("cellular", "203.0.113.5"),
        18 => now.sent_video.source_fps = 30.0 * (100 - strength) as f64 / 100.0,
        _ => now.is_answered = false,
    }
}
const FAULTS: u64 = 20;

/// An event of a connection, or none.
fn event(kind: u64) -> Option<Event> {
    let unknown = json!({ "url": "turn:turn.example:3478", "errorCode": 701,
        "errorText": "TURN host lookup received error." });
    match kind {
        0 => Some((-0.5, "onicecandidateerror", unknown)),
        1 => Some((5.0, "addIceCandidateOnFailure", json!("Error processing ICE candidate"))),
        2 => Some((5.0, "setRemoteDescriptionOnFailure", json!("Failed to parse."))),
        3 => Some((20.0, "oniceconnectionstatechange", json!("failed"))),
        4 => Some((20.0, "restartIce", json!(null))),
        _ => None,
    }
}

#[test]
fn no_call_of_several_faults_is_told_in_two_ways() {
    let mut outcomes: Vec<Outcome> = Vec::new();
    for seed in 1..=CALLS {
        let mut draws = Draws(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut faults = Vec::new();
        for _ in 0..draws.below(4) {
            let from = draws.below(SECONDS);
            faults.push((
                from,
                from + 1 + draws.below(30),
                draws.below(FAULTS),
                1 + draws.below(100),
            ));
        }
        let length = if seed % 16 == 0 { 1 + draws.below(8) } else { SECONDS };
        let seconds = call(length, |second, now| {
            for (from, to, kind, strength) in &faults {
                if (*from..*to).contains(&second) {
                    fault(now, *kind, *strength);
                }
            }
        });
        let mut events = established();
        events.extend(event(draws.below(20)));
        let text = rtcstats(&events, &seconds);
        let name = format!("{faults:?}, {} events", events.len());
        if let Ok(dump) = read_bytes("made".as_ref(), text.into_bytes()) {
            outcomes.push(answer(&dump).outcome);
            check(&name, dump);
        }
    }
    for (outcome, least) in [
        (Outcome::Good, 50),
        (Outcome::Limited, 100),
        (Outcome::SwitchedOff, 10),
        (Outcome::NoConnection, 5),
        (Outcome::TooShort, 5),
    ] {
        let count = outcomes.iter().filter(|it| **it == outcome).count();
        assert!(count >= least, "{outcome}: {count}");
    }
}
