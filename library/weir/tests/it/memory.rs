//! Memory does not grow: over a simulated hour, a sender and a receiver use no more memory in the
//! second half than in the first. Half an hour is longer than any controller remembers.

use std::ops::Range;

use weir::Algorithm;
use weir::controller::RateLimits;
use weir::feedback::{
    ArrivalRecorder, CcfbPacket, CcfbReception, Ecn, Outgoing, RtpArrivalRecorder, RtpNumber,
    SendHistory, TwccHeader,
};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use crate::heap;

const SIZE: DataSize = DataSize::from_bytes(1_250);
const MINUTE_STEPS: i64 = 60 * 20;

/// Sends 2 Mbit/s with a feedback packet every 50 ms; every hundredth packet is lost. The feedback
/// format changes every minute.
fn step(step: i64, parts: &mut Parts) {
    let now = Timestamp::ZERO + TimeDelta::from_millis(50) * step;
    for index in 0..10 {
        let send_time = now + TimeDelta::from_millis(5) * index;
        let number = parts.history.next_sequence_number() as u16;
        let rtp = RtpNumber { ssrc: 7, sequence_number: number };
        let outgoing = Outgoing::media(SIZE).with_rtp(Some(rtp));
        let packet = parts.history.on_packet_sent(send_time, outgoing);
        parts.controller.on_packet_sent(send_time, &packet);
        if packet.sequence_number % 100 != 37 {
            let arrival = send_time + TimeDelta::from_millis(25);
            parts.recorder.on_packet(arrival, number);
            parts.rtp_recorder.on_packet(arrival, rtp, Ecn::NotEct);
        }
    }
    let now = now + TimeDelta::from_millis(50);
    if parts.controller.next_timeout().is_some_and(|due| due <= now) {
        parts.controller.on_timeout(now);
    }
    feed_back(now, step, parts);
}

fn feed_back(now: Timestamp, step: i64, parts: &mut Parts) {
    let arrivals = parts.recorder.take_batch(now + TimeDelta::from_millis(25)).to_vec();
    let mut batches = parts.rtp_recorder.take_batches(now + TimeDelta::from_millis(25));
    let batch = batches.next().expect("packets arrived");
    let report = if step / MINUTE_STEPS % 2 == 0 {
        let header = TwccHeader { reference_time: 0, feedback_count: step as u8 };
        let first = arrivals[0].1;
        let ticks =
            arrivals.iter().map(|&(number, at)| (number as u16, Some(((at - first) / 250) as i32)));
        parts.history.on_twcc(header, ticks)
    } else {
        let packets = (batch.begin..).zip(batch.packets).map(|(number, packet)| CcfbPacket {
            rtp: RtpNumber { ssrc: batch.ssrc, sequence_number: number as u16 },
            reception: packet.map(|(_, ecn)| CcfbReception { ecn, offset: 30 }),
        });
        parts.history.on_ccfb((now.as_micros() * 65_536 / 1_000_000) as u32, packets)
    };
    if let Some(report) = report {
        parts.controller.on_feedback(now, report);
    }
}

struct Parts {
    history: SendHistory,
    recorder: ArrivalRecorder,
    rtp_recorder: RtpArrivalRecorder,
    controller: Box<dyn weir::Controller + Send>,
}

#[test]
fn the_second_half_hour_holds_no_more_than_the_first() {
    let kbps = Bitrate::from_kbps;
    for algorithm in Algorithm::all() {
        let limits = RateLimits::new(kbps(150), kbps(300), kbps(2_500)).expect("in order");
        let mut parts = Parts {
            history: SendHistory::default(),
            recorder: ArrivalRecorder::default(),
            rtp_recorder: RtpArrivalRecorder::default(),
            controller: algorithm.build(limits),
        };
        let mut highest_in = |minutes: Range<i64>| {
            let at_end_of = |minute: i64| {
                let steps = minute * MINUTE_STEPS..(minute + 1) * MINUTE_STEPS;
                steps.for_each(|index| step(index, &mut parts));
                heap::live_bytes()
            };
            minutes.map(at_end_of).max().expect("some minutes")
        };
        let first = highest_in(0..30);
        let grown = highest_in(30..60) - first;
        assert!(grown <= 0, "{algorithm}: {grown} bytes more in the second half hour");
    }
}
