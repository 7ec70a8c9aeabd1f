//! GCC of webrtc-rs and str0m beside ours, on one feedback trace: what a packet costs, from its
//! sending to the target that its feedback leads to.
//!
//! Each stack gets the same calls at the same times: a packet left, a TWCC packet arrived as bytes.
//! What is timed is its own memory of sent packets, its own parser and its own estimator.
//!
//! `peers trace FILE` writes the trace, `peers time FILE` prints a line a stack: name and ns a
//! packet. `peers fast` prints the same for the estimators alone, with reports on 2,100 packets
//! each: 500 Mbit/s, and a report each 50 ms.

mod fast;
mod trace;

use std::hint::black_box;
use std::time::{Duration, Instant};

use rtc_interceptor::{BandwidthEstimator, Gcc, History, convert_twcc};
use rtcp::transport_feedbacks::transport_layer_cc::TransportLayerCc;
use shared::marshal::Unmarshal;
use str0m::bwe_::Bwe;
use str0m::rtp_::{Bitrate, DataSize, Twcc, TwccPacketId, TwccSendRegister};
use trace::{Event, Events};
use weir::Algorithm;
use weir::controller::RateLimits;
use weir::feedback::{Outgoing, SendHistory, TwccHeader};
use weir_wire::twcc;

/// Replays of each stack; the median is printed.
const REPLAYS: usize = 31;
/// Before the payload of a feedback packet: the RTCP header.
const RTCP_HEADER: usize = 4;
/// Packets that str0m remembers, as its own session has it.
const STR0M_PACKETS: usize = 1_000;
const SSRC: u32 = 1;

const MIN_BPS: u64 = 150_000;
const START_BPS: u64 = 300_000;
const MAX_BPS: u64 = 5_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["trace", path] => trace::write(path, &trace::make()),
        ["time", path] => time(&trace::read(path)),
        ["fast"] => fast::time(),
        _ => panic!("write: peers trace FILE, peers time FILE, or peers fast"),
    }
}

fn time(events: &Events) {
    let packets = events.iter().filter(|event| matches!(event, Event::Sent { .. })).count();
    let stacks: [(&str, fn(&Events) -> u64); 3] =
        [("weir", weir), ("webrtc-rs", webrtc_rs), ("str0m", str0m)];
    for (name, replay) in stacks {
        let mut times: Vec<Duration> = (0..=REPLAYS)
            .map(|_| {
                let start = Instant::now();
                black_box(replay(black_box(events)));
                start.elapsed()
            })
            .skip(1)
            .collect();
        times.sort();
        let ns = times[REPLAYS / 2].as_nanos() as f64 / packets as f64;
        println!("{name}\t{ns:.0}\t{}", replay(events));
    }
}

/// Each replay returns the last target in bit/s, so that none of it can be left out.
fn weir(events: &Events) -> u64 {
    let bps = weir::units::Bitrate::from_bps;
    let limits = RateLimits::new(bps(MIN_BPS), bps(START_BPS), bps(MAX_BPS)).expect("in order");
    let mut controller = Algorithm::Gcc.build(limits);
    let mut history = SendHistory::default();
    for event in events {
        match event {
            Event::Sent { at, size, .. } => {
                let packet = history.on_packet_sent(*at, Outgoing::media(*size));
                controller.on_packet_sent(*at, &packet);
            }
            Event::Feedback { at, bytes } => {
                if controller.next_timeout().is_some_and(|due| due <= *at) {
                    controller.on_timeout(*at);
                }
                let view = twcc::View::parse(bytes).expect("our own receiver wrote it");
                let header = TwccHeader {
                    reference_time: view.reference_time().units(),
                    feedback_count: view.feedback_packet_count(),
                };
                if let Some(report) = history.on_twcc(header, view.arrivals()) {
                    controller.on_feedback(*at, report);
                }
                black_box(controller.target());
            }
        }
    }
    controller.target().bitrate.as_bps()
}

fn webrtc_rs(events: &Events) -> u64 {
    let origin = Instant::now();
    let instant = |at: weir::units::Timestamp| origin + Duration::from_nanos(at.as_nanos() as u64);
    let mut estimator = Gcc::new(START_BPS as f64, MIN_BPS as f64, MAX_BPS as f64);
    let mut history = History::new();
    for event in events {
        match event {
            Event::Sent { at, size, number } => {
                let (number, size) = (*number as u16, size.as_bytes() as usize);
                history.add_outgoing(SSRC, number, true, number, size, instant(*at));
            }
            Event::Feedback { at, bytes } => {
                let feedback = TransportLayerCc::unmarshal(&mut bytes.as_slice())
                    .expect("our own receiver wrote it");
                for acknowledgement in convert_twcc(&feedback) {
                    history.on_twcc_feedback(instant(*at), acknowledgement);
                }
                estimator.on_reports(instant(*at), &history.take_reports());
                black_box(estimator.target_bitrate());
            }
        }
    }
    estimator.target_bitrate() as u64
}

fn str0m(events: &Events) -> u64 {
    let origin = Instant::now();
    let instant = |at: weir::units::Timestamp| origin + Duration::from_nanos(at.as_nanos() as u64);
    let mut estimator = Bwe::new(Bitrate::from(START_BPS));
    estimator.set_bitrate(Bitrate::from(MIN_BPS), Bitrate::from(MAX_BPS));
    let mut history = TwccSendRegister::new(STR0M_PACKETS);
    for event in events {
        match event {
            Event::Sent { at, size, number } => {
                let size = size.as_bytes() as usize;
                history.register_seq(TwccPacketId::new(*number), instant(*at), size);
                estimator.on_media_sent(DataSize::from(size), false, instant(*at));
            }
            Event::Feedback { at, bytes } => {
                let feedback = Twcc::try_from(&bytes[RTCP_HEADER..]).expect("as above");
                if let Some(records) = history.apply_report(feedback, instant(*at)) {
                    estimator.update(records, instant(*at));
                }
                black_box(estimator.handle_timeout(instant(*at), false));
                black_box(estimator.poll_estimate());
            }
        }
    }
    estimator.last_estimate().map_or(0, |estimate| estimate.as_u64())
}
