//! From a scenario to a call, and from a call to a record of the same shape as a simulated run's.
//!
//! Capacity, queue, sent, received and lost packets come from the emulator, which sees every IP packet
//! (RTCP, STUN and DTLS included, a few per cent); target bitrate (the browser's bandwidth estimate)
//! and round-trip time come from getStats, every 500 ms, and stand in each row of 50 ms that they hold
//! for.

use std::borrow::Cow;

use serde_json::{Value, json};
use weir::units::{TimeDelta, Timestamp};
use weir_emu::{DirectionRecord, Emulation, Sample};
use weir_lab::record::Record;
use weir_lab::run::RunInfo;
use weir_lab::scenario::{Direction, Flow, Media, Scenario, Source, Traffic};
use weir_net::Seed;
use weir_sim::trace::{RateChange, Row, Trace};

use crate::derive::{self, Interval};
use crate::message::VideoConfig;
use crate::run::{CallConfig, CallOutcome, PeerOutcome};

/// Why browsers cannot play a scenario.
#[derive(Debug, thiserror::Error)]
#[error("{scenario} cannot be called: {why}")]
pub struct Unplayable {
    scenario: String,
    why: &'static str,
}

impl CallConfig {
    /// A call over the scenario's network: peer a is host A. One media flow up, or one each way, from
    /// 0 s on; the encoder's limit is the first flow's largest bitrate. A call has video alone, so the
    /// scenario's audio is left out, and the record says so.
    pub fn of(scenario: &Scenario, seed: u64) -> Result<Self, Unplayable> {
        let refuse = |why| Err(Unplayable { scenario: scenario.id.clone(), why });
        let flows: Vec<&Flow> = video(scenario).map(|(_, flow)| flow).collect();
        let directions: Vec<Direction> = flows.iter().map(|flow| flow.direction).collect();
        let two_way = match directions[..] {
            [Direction::Up] => false,
            [Direction::Up, Direction::Down] => true,
            _ => return refuse("a call has one media flow up, or one up and then one down"),
        };
        let first = flows[0];
        let whole = |flow: &&Flow| flow.start == Timestamp::ZERO && flow.stop == first.stop;
        if !flows.iter().all(whole) {
            return refuse("a call's flows begin at 0s and end together");
        }
        let media: Option<Vec<&Media>> = flows.iter().map(|flow| flow.media()).collect();
        let (Some(media), Some(hop)) = (media, scenario.only_hop()) else {
            return refuse("a call has media flows alone, over one bottleneck");
        };
        let cap = match media[0].source {
            Source::Filler { cap, .. } => cap,
            Source::Rfc8593 { .. } => None,
        };
        let limit = media[0].settings.limits.max();
        let max_bitrate = cap.map_or(limit, |cap| cap.min(limit));
        Ok(Self {
            up: hop.up.clone(),
            down: hop.down.clone(),
            duration: first.stop - Timestamp::ZERO,
            video: VideoConfig { max_bitrate, ..VideoConfig::default() },
            two_way,
            seed: Seed::new(seed),
        })
    }
}

/// The flows that a call has, with their index: all but the audio.
fn video(scenario: &Scenario) -> impl Iterator<Item = (usize, &Flow)> {
    scenario.flows.iter().enumerate().filter(|(_, flow)| !matches!(flow.traffic, Traffic::Audio))
}

/// The call as a record.
pub fn record(scenario: &Scenario, info: RunInfo, outcome: &CallOutcome) -> Record {
    let mut trace = Trace {
        flows: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
        ..Trace::default()
    };
    for (index, flow) in video(scenario) {
        let (sender, link) = match flow.direction {
            Direction::Up => (&outcome.peers[0], &outcome.emulation.hops[0].up),
            Direction::Down => (&outcome.peers[1], &outcome.emulation.hops[0].down),
        };
        let intervals = sender.intervals();
        trace.rows.extend(rows(index, link, &intervals));
        let changes = derive::estimate_changes(&intervals).into_iter();
        trace.events.extend(changes.map(|change| rate_change(index, change)));
    }
    trace.rows.sort_by_key(|row| (row.time, row.flow));
    trace.events.sort_by_key(|event| (event.time, event.flow));
    Record { info, scenario: scenario.clone(), trace, call: Some(call_json(scenario, outcome)) }
}

/// What the record says should not be trusted, one line each.
pub fn warnings(record: &Record) -> Vec<String> {
    let list = record.call.as_ref().and_then(|call| call["warnings"].as_array());
    let texts = list.into_iter().flatten().filter_map(Value::as_str);
    texts.map(String::from).collect()
}

fn rows(flow: usize, link: &DirectionRecord, intervals: &[Interval]) -> Vec<Row> {
    let mut after = 0;
    let row = |sample: &Sample| {
        while intervals.get(after).is_some_and(|interval| interval.end < sample.time) {
            after += 1;
        }
        let interval = intervals.get(after).filter(|interval| interval.start < sample.time);
        let sent = interval.and_then(|interval| interval.sent.as_ref());
        let stun = interval.and_then(|interval| interval.stun_rtt);
        Row {
            time: sample.time,
            flow,
            capacity: sample.capacity,
            // The encoder's share of it is `target_bps` in call.json.
            target: sent.and(interval).and_then(|interval| interval.estimated_bitrate),
            pacing_rate: None,
            congestion_window: None,
            // What came to the bottleneck: the emulator does not see the sender's own queue.
            sent: sample.traffic.offered,
            received: sample.traffic.delivered,
            sent_packets: sample.traffic.offered_packets,
            lost_packets: sample.traffic.lost_packets + sample.traffic.dropped_packets,
            rtt: sent.and_then(|sent| sent.rtt).or(stun).map(whole_micros),
            queuing_delay: sample.traffic.mean_wait().map(whole_micros),
            queue: sample.queued,
            video: None,
            transfer: None,
        }
    };
    link.samples.iter().map(row).collect()
}

fn whole_micros(time: TimeDelta) -> TimeDelta {
    TimeDelta::from_micros(time.as_micros())
}

fn rate_change(flow: usize, change: derive::EstimateChange) -> RateChange {
    RateChange {
        time: change.time,
        flow,
        from: change.from,
        to: change.to,
        reason: "not told by getStats".into(),
        state: "browser".into(),
        signals: [const { (Cow::Borrowed(""), 0.0) }; 4],
    }
}

fn call_json(scenario: &Scenario, outcome: &CallOutcome) -> Value {
    let Emulation { real_time, cpu_busy, foreign_packets, refused_packets, .. } =
        &outcome.emulation;
    json!({
        "browser": outcome.browser,
        "kernel": outcome.kernel,
        "engines": "real: browsers, codecs, kernel; simulated: the bottleneck between the hosts",
        "warnings": warnings_of(scenario, outcome),
        "lateness_us": lateness(&outcome.emulation),
        "released_first": real_time,
        "cpu_busy_ratio": cpu_busy,
        "foreign_packets": foreign_packets,
        "refused_packets": refused_packets,
        "peers": outcome.peers.iter().map(peer_json).collect::<Vec<_>>(),
    })
}

fn warnings_of(scenario: &Scenario, outcome: &CallOutcome) -> Vec<String> {
    let bent = outcome.emulation.bent();
    let bent = bent.iter().map(|bent| format!("this machine bent the run: {bent}"));
    let silent = video(scenario).count() < scenario.flows.len();
    let silent = silent.then(|| "the scenario's audio is not in the call".into());
    bent.chain(outcome.notes.iter().cloned()).chain(silent).collect()
}

fn lateness(emulation: &Emulation) -> Value {
    let buckets: Vec<(u64, u64)> = emulation.lateness.buckets_us().collect();
    let us = |share| emulation.lateness.quantile(share).map(|time| time.as_micros() as u64);
    if buckets.is_empty() {
        return Value::Null;
    }
    let edges: Vec<u64> = std::iter::once(0).chain(buckets.iter().map(|bucket| bucket.0)).collect();
    json!({
        "edges": edges,
        "counts": buckets.iter().map(|bucket| bucket.1).collect::<Vec<u64>>(),
        "p50": us(0.5),
        "p99": us(0.99),
        "max": emulation.lateness.max().as_micros() as u64,
    })
}

fn peer_json(peer: &PeerOutcome) -> Value {
    let interval = |interval: &Interval| {
        let received = interval.received.as_ref();
        let sent = interval.sent.as_ref();
        json!({
            "time_s": interval.end.as_secs_f64(),
            "target_bps": sent.and_then(|sent| sent.target_bitrate).map(|rate| rate.as_bps()),
            "send_bps": sent.map(|sent| sent.send_rate.as_bps()),
            "receive_bps": received.map(|received| received.receive_rate.as_bps()),
            "loss_ratio": received.and_then(|received| received.loss_ratio),
            "freezes": received.map(|received| received.freezes),
            "frozen_s": received.map(|received| received.frozen.as_secs_f64()),
            "frame_size": received.and_then(|received| received.frame_size),
            "frame_rate": received.and_then(|received| received.frame_rate),
            "estimated_bps": interval.estimated_bitrate.map(|rate| rate.as_bps()),
        })
    };
    json!({
        "setup_ms": peer.setup,
        "first_frame_ms": peer.first_frame_ms,
        "candidate_pair": { "local": peer.pair.local, "remote": peer.pair.remote },
        "intervals": peer.intervals().iter().map(interval).collect::<Vec<_>>(),
    })
}
