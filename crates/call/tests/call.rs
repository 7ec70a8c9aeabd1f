//! One real call of two browsers through the emulator. Needs root and a Chromium.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_call::{CallConfig, CallError, CallOutcome, Peer, VideoConfig, run_call};
use weir_net::{Aqm, Capacity, Jitter, LinkConfig, LossModel, QueueLimit, Schedule, Seed};

/// Calls one after the other: they share the processors, and each looks for what it left behind.
static ALONE: Mutex<()> = Mutex::new(());

/// Whether `error` says that this machine cannot make calls.
fn is_missing_a_part(error: &CallError) -> bool {
    use weir_emu::Error::{NoTun, NotRoot};
    matches!(error, CallError::NoBrowser | CallError::Emulator(NotRoot | NoTun))
}

fn link() -> LinkConfig {
    let capacity = Schedule::constant(Bitrate::from_kbps(2000)).unwrap();
    LinkConfig {
        capacity: Capacity::Schedule(capacity),
        aqm: Aqm::DropTail,
        queue: QueueLimit::Time(TimeDelta::from_millis(300)),
        delay: TimeDelta::from_millis(25).into(),
        jitter: Jitter::None,
        loss: LossModel::None,
        duplicate: 0.0,
    }
}

fn config() -> CallConfig {
    CallConfig {
        up: link(),
        down: link(),
        duration: TimeDelta::from_secs(8),
        video: VideoConfig { width: 640, height: 360, ..VideoConfig::default() },
        two_way: false,
        seed: Seed::new(1),
    }
}

/// Folders of this process's calls, and processes that run in one.
fn leftovers() -> Vec<String> {
    let prefix = format!("weir-call-{}-", std::process::id());
    let is_ours = |text: &str| text.contains(&prefix);
    let folders = fs::read_dir(std::env::temp_dir()).unwrap();
    let folders = folders.flatten().map(|entry| entry.path().display().to_string());
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let command_lines = processes
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "));
    folders.chain(command_lines).filter(|text| is_ours(text)).collect()
}

/// Bytes in IP packets that arrived in the time between the first and the last report of a peer,
/// as the link counts them and as the browser does.
fn delivered_and_received(outcome: &CallOutcome, peer: Peer) -> (f64, f64) {
    let intervals = outcome.peers[peer as usize].intervals();
    let (start, end) = (intervals[0].start, intervals[intervals.len() - 1].end);
    let hop = &outcome.emulation.hops[0];
    let direction = if peer == Peer::B { &hop.up } else { &hop.down };
    let within = |time: Timestamp| start < time && time <= end;
    let samples = direction.samples.iter().filter(|sample| within(sample.time));
    let delivered: u64 = samples.map(|sample| sample.traffic.delivered.as_bytes()).sum();
    let received: u64 =
        intervals.iter().map(|interval| interval.transport_received.as_bytes()).sum();
    (delivered as f64, received as f64)
}

#[test]
fn a_call_of_two_browsers_takes_the_emulated_path_and_leaves_nothing() {
    let _alone = ALONE.lock().unwrap();
    let outcome = match run_call(&config(), &AtomicBool::new(false), &mut |_| {}) {
        Err(error) if is_missing_a_part(&error) => return println!("skipped: {error}"),
        result => result.unwrap(),
    };
    for peer in &outcome.peers {
        let ends = [&peer.pair.local, &peer.pair.remote].map(|end| end.address.unwrap());
        assert!(ends.iter().all(|end| end.to_string().starts_with("10.45.0.")), "{ends:?}");
    }
    let sent = outcome.peers[0].intervals();
    let received = outcome.peers[1].intervals();
    let media = |interval: &weir_call::derive::Interval| {
        interval.received.as_ref().is_some_and(|received| received.packets > 0)
    };
    assert!(received.iter().filter(|interval| media(interval)).count() >= 10);
    assert!(received.iter().all(|interval| interval.sent.is_none()));
    assert!(outcome.peers[1].first_frame_ms.is_some());
    // The model can be late, never early.
    let round_trips: Vec<_> = sent.iter().filter_map(|i| i.sent.as_ref()?.rtt).collect();
    assert!(!round_trips.is_empty());
    assert!(round_trips.iter().all(|rtt| *rtt >= TimeDelta::from_millis(50)), "{round_trips:?}");
    // The edges of the two windows are up to one sample of 50 ms apart, of some 6 s, and the
    // browser leaves the STUN checks out: together less than 3 %.
    let (delivered, received) = delivered_and_received(&outcome, Peer::B);
    println!("delivered {delivered} B, received {received} B, ratio {:.4}", received / delivered);
    assert!((received / delivered - 1.0).abs() < 0.03, "{received} of {delivered}");
    assert_eq!(leftovers(), [""; 0]);
}

#[test]
fn an_interrupted_call_leaves_nothing() {
    let _alone = ALONE.lock().unwrap();
    let error = run_call(&config(), &AtomicBool::new(true), &mut |_| {}).unwrap_err();
    if is_missing_a_part(&error) {
        return println!("skipped: {error}");
    }
    assert!(matches!(error, CallError::Cancelled), "{error}");
    assert_eq!(leftovers(), [""; 0]);
}

#[test]
fn peers_that_cannot_reach_each_other_give_a_cause() {
    let _alone = ALONE.lock().unwrap();
    let mut config = config();
    config.up.loss = LossModel::Random(1.0);
    let error = run_call(&config, &AtomicBool::new(false), &mut |_| {}).unwrap_err();
    if is_missing_a_part(&error) {
        return println!("skipped: {error}");
    }
    let text = error.to_string();
    assert!(text.contains("No connection to the other peer"), "{text}");
    assert!(!Path::new("/run/netns").exists() || fs::read_dir("/run/netns").unwrap().count() == 0);
    assert_eq!(leftovers(), [""; 0]);
}
