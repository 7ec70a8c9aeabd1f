//! Memory does not grow: over a simulated hour, a sender and a receiver use no more memory in the
//! second half than in the first. Half an hour is longer than any controller remembers. And at
//! 1 Gbit/s it stays below a bound.

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

/// Bytes that a sender of 1 Gbit/s holds at most: its history, the newest report, the controller.
const MOST: isize = 8 << 20;
/// A packet of it, and the time between two.
const FAST: (DataSize, TimeDelta) = (DataSize::from_bytes(1_250), TimeDelta::from_micros(10));
/// Packets that the history keeps.
const HISTORY: i64 = 32_768;
/// Packets that are sent in a round trip of 20 ms.
const ON_THE_WAY: i64 = 2_000;

/// A report on the packets from `first` up to those that are on the way at `now`.
fn report_on(
    history: &mut SendHistory,
    now: Timestamp,
    first: i64,
) -> Option<&weir::FeedbackReport> {
    const TICK_US: i64 = 250;
    let end = history.next_sequence_number() - ON_THE_WAY;
    let newest_us = (now - FAST.1 * ON_THE_WAY / 2).as_micros();
    let reference_time = newest_us / 64_000 - 100;
    let reference_us = reference_time * 64_000;
    let arrivals = (first.max(end - HISTORY / 2)..end).map(|number| {
        let arrived_us = newest_us - (end - number) * FAST.1.as_micros();
        let ticks = (arrived_us - reference_us) / TICK_US;
        (number as u16, (number % 100 != 37).then_some(ticks as i32))
    });
    let reference_time = (reference_time & 0xFF_FFFF) as u32;
    history.on_twcc(TwccHeader { reference_time, feedback_count: 0 }, arrivals)
}

/// Sends 1 Gbit/s for this long, with a report in each `interval`. Returns the highest target.
fn send_fast(algorithm: Algorithm, interval: TimeDelta, length: TimeDelta) -> Bitrate {
    let gbps = Bitrate::from_kbps(1_000_000);
    let limits = RateLimits::new(gbps * 0.01, gbps * 0.5, gbps).expect("in order");
    let (mut history, mut controller) = (SendHistory::default(), algorithm.build(limits));
    let mut now = Timestamp::from_secs(10);
    let (end, mut due, mut next) = (now + length, now + interval, 0);
    let mut highest = Bitrate::ZERO;
    while now < end {
        now += FAST.1;
        let packet = history.on_packet_sent(now, Outgoing::media(FAST.0));
        controller.on_packet_sent(now, &packet);
        if controller.next_timeout().is_some_and(|due| due <= now) {
            controller.on_timeout(now);
        }
        if now >= due {
            due += interval;
            if let Some(report) = report_on(&mut history, now, next) {
                controller.on_feedback(now, report);
            }
            next = packet.sequence_number + 1 - ON_THE_WAY;
            highest = highest.max(controller.target().bitrate);
        }
    }
    highest
}

#[test]
fn a_sender_of_1_gbps_holds_a_few_megabytes() {
    let ms = TimeDelta::from_millis;
    println!("| controller | a report each | bytes |\n|---|---:|---:|");
    for algorithm in Algorithm::all() {
        for interval in [50, 1_000] {
            let run = || {
                let highest = send_fast(algorithm, ms(interval), ms(2_000 + interval * 2));
                assert!(highest > Bitrate::from_kbps(50_000), "{algorithm}: {highest}");
            };
            let peak = heap::peak_bytes(run);
            println!("| `{algorithm}` | {} | {peak} |", ms(interval));
            assert!(peak <= MOST, "{algorithm}: {peak} bytes with a report each {interval} ms");
        }
    }
}
