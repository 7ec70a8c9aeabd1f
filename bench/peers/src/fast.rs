//! The estimators alone, where a report has thousands of packets.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rtc_interceptor::{BandwidthEstimator, Gcc, History, convert_twcc};
use rtcp::transport_feedbacks::transport_layer_cc::TransportLayerCc;
use shared::marshal::Unmarshal;
use str0m::bwe_::Bwe;
use str0m::rtp_::{self, DataSize, Twcc, TwccPacketId, TwccSendRegister};
use weir::Algorithm;
use weir::controller::RateLimits;
use weir::feedback::{ArrivalRecorder, Outgoing, SendHistory, TwccHeader};
use weir::units::{self, Bitrate, TimeDelta, Timestamp};
use weir_wire::twcc;

use super::trace::{Event, Events};
use super::{REPLAYS, RTCP_HEADER, SSRC};

const REPORTS: i64 = 40;
const PACKETS: i64 = 2_100;
const INTERVAL: TimeDelta = TimeDelta::from_millis(50);
const DELAY: TimeDelta = TimeDelta::from_millis(25);
const PACKET: units::DataSize = units::DataSize::from_bytes(1_488);
/// One packet in so many is lost.
const LOSS: i64 = 100;
/// One TWCC packet holds a whole report.
const MAX_FEEDBACK: usize = 8_000;
const MIN_BPS: u64 = 40_000_000;
const START_BPS: u64 = 75_000_000;
const MAX_BPS: u64 = 625_000_000;

/// 500 Mbit/s for two seconds, arrivals that differ by up to 0.75 ms, and 1 % loss.
fn events() -> Events {
    let (mut recorder, mut builder) = (ArrivalRecorder::default(), twcc::Builder::new(1, 1));
    let mut events = Vec::new();
    for report in 0..REPORTS {
        let (mut late, end) = (Timestamp::ZERO, Timestamp::ZERO + INTERVAL * (report + 1));
        for number in report * PACKETS..(report + 1) * PACKETS {
            let at = Timestamp::ZERO + INTERVAL / PACKETS * number;
            events.push(Event::Sent { at, size: PACKET, number: number as u64 });
            let wobble = TimeDelta::from_micros((number / 8 * 7_919) % 900 / 250 * 250);
            late = late.max(at + DELAY + wobble);
            if number % LOSS != LOSS / 3 {
                recorder.on_packet(late, number as u16);
            }
        }
        builder.build(recorder.take_batch(end + DELAY), MAX_FEEDBACK, |bytes| {
            events.push(Event::Feedback { at: end + DELAY * 2, bytes: bytes.to_vec() });
        });
    }
    events
}

/// Time in the estimator, and its last target in bit/s, so that none of it can be left out.
type Taken = (Duration, u64);

/// Prints the median of each.
pub fn time() {
    let events = events();
    let stacks: [(&str, fn(&Events) -> Taken); 4] =
        [("weir sluice", sluice), ("weir gcc", gcc), ("webrtc-rs", webrtc_rs), ("str0m", str0m)];
    for (name, replay) in stacks {
        let mut taken: Vec<Taken> = (0..=REPLAYS).map(|_| replay(black_box(&events))).collect();
        taken.sort();
        let (time, target) = taken[taken.len() / 2];
        let packets = (REPORTS * PACKETS) as f64;
        let target = target as f64 / 1e6;
        println!("{name}\t{:.1} ns a packet\t{target:.0} Mbit/s", time.as_nanos() as f64 / packets);
    }
}

fn sluice(events: &Events) -> Taken {
    weir(Algorithm::Sluice, events)
}

fn gcc(events: &Events) -> Taken {
    weir(Algorithm::Gcc, events)
}

fn weir(algorithm: Algorithm, events: &Events) -> Taken {
    let bps = Bitrate::from_bps;
    let limits = RateLimits::new(bps(MIN_BPS), bps(START_BPS), bps(MAX_BPS)).expect("in order");
    let (mut controller, mut history) = (algorithm.build(limits), SendHistory::default());
    let mut time = Duration::ZERO;
    for event in events {
        match event {
            Event::Sent { at, size, .. } => {
                let packet = history.on_packet_sent(*at, Outgoing::media(*size));
                controller.on_packet_sent(*at, &packet);
            }
            Event::Feedback { at, bytes } => {
                let view = twcc::View::parse(bytes).expect("our own receiver wrote it");
                let header = TwccHeader {
                    reference_time: view.reference_time().units(),
                    feedback_count: view.feedback_packet_count(),
                };
                let report = history.on_twcc(header, view.arrivals()).expect("it has news");
                let start = Instant::now();
                if controller.next_timeout().is_some_and(|due| due <= *at) {
                    controller.on_timeout(*at);
                }
                controller.on_feedback(*at, report);
                black_box(controller.target());
                time += start.elapsed();
            }
        }
    }
    (time, controller.target().bitrate.as_bps())
}

/// The instant of a time of the trace.
fn instant(origin: Instant, at: Timestamp) -> Instant {
    origin + Duration::from_nanos(at.as_nanos() as u64)
}

fn webrtc_rs(events: &Events) -> Taken {
    let origin = Instant::now();
    let mut estimator = Gcc::new(START_BPS as f64, MIN_BPS as f64, MAX_BPS as f64);
    let (mut history, mut time) = (History::new(), Duration::ZERO);
    for event in events {
        match event {
            Event::Sent { at, size, number } => {
                let (number, size) = (*number as u16, size.as_bytes() as usize);
                let at = instant(origin, *at);
                history.add_outgoing(SSRC, number, true, number, size, at);
            }
            Event::Feedback { at, bytes } => {
                let feedback = TransportLayerCc::unmarshal(&mut bytes.as_slice())
                    .expect("our own receiver wrote it");
                let at = instant(origin, *at);
                for acknowledgement in convert_twcc(&feedback) {
                    history.on_twcc_feedback(at, acknowledgement);
                }
                let reports = history.take_reports();
                let start = Instant::now();
                estimator.on_reports(at, &reports);
                black_box(estimator.target_bitrate());
                time += start.elapsed();
            }
        }
    }
    (time, estimator.target_bitrate() as u64)
}

fn str0m(events: &Events) -> Taken {
    let origin = Instant::now();
    let mut estimator = Bwe::new(rtp_::Bitrate::from(START_BPS));
    estimator.set_bitrate(rtp_::Bitrate::from(MIN_BPS), rtp_::Bitrate::from(MAX_BPS));
    // Its own session remembers 1,000, which are less than a report here.
    let mut history = TwccSendRegister::new(4 * PACKETS as usize);
    let mut time = Duration::ZERO;
    for event in events {
        match event {
            Event::Sent { at, size, number } => {
                let (at, size) = (instant(origin, *at), size.as_bytes() as usize);
                history.register_seq(TwccPacketId::new(*number), at, size);
                estimator.on_media_sent(DataSize::from(size), false, at);
            }
            Event::Feedback { at, bytes } => {
                let feedback = Twcc::try_from(&bytes[RTCP_HEADER..]).expect("as above");
                let at = instant(origin, *at);
                let records = history.apply_report(feedback, at).expect("it has news");
                let records: Vec<_> = records.collect();
                let start = Instant::now();
                estimator.update(records.into_iter(), at);
                black_box(estimator.handle_timeout(at, false));
                black_box(estimator.poll_estimate());
                time += start.elapsed();
            }
        }
    }
    (time, estimator.last_estimate().map_or(0, |estimate| estimate.as_u64()))
}
