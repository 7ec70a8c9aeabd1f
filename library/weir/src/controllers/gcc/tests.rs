//! Tests of the `Controller` contract, call by call, and of all parts together.

use alloc::vec::Vec;

use super::*;
use crate::feedback::{Ecn, PacketReport};
use crate::units::DataSize;

const SIZE: DataSize = DataSize::from_bytes(1_250);

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn kbps(kbps: u64) -> Bitrate {
    Bitrate::from_kbps(kbps)
}

fn controller(min_kbps: u64, start_kbps: u64, max_kbps: u64) -> Gcc {
    Gcc::new(RateLimits::new(kbps(min_kbps), kbps(start_kbps), kbps(max_kbps)).unwrap())
}

fn report(packets: Vec<PacketReport>) -> FeedbackReport {
    FeedbackReport { packets, ..FeedbackReport::default() }
}

/// A sender with a packet every `spacing_ms` and feedback every 50 ms, on a path of 25 ms.
struct Loop {
    gcc: Gcc,
    number: i64,
    reasons: Vec<Reason>,
}

impl Loop {
    fn new(gcc: Gcc) -> Self {
        Self { gcc, number: 0, reasons: Vec::new() }
    }

    /// `wait_ms` returns the queuing delay of a packet, or `None` if the packet is lost.
    fn run(
        &mut self,
        from_ms: i64,
        to_ms: i64,
        spacing_ms: usize,
        wait_ms: impl Fn(i64, i64) -> Option<i64>,
    ) {
        for start in (from_ms..to_ms).step_by(50) {
            let mut packets = Vec::new();
            for ms in (start..start + 50).step_by(spacing_ms) {
                let number = self.number;
                self.number += 1;
                self.send(ms, number);
                packets.push(packet(number, ms, wait_ms(ms, number).map(|wait| ms + 25 + wait)));
            }
            self.gcc.on_feedback(at(start + 100), &report(packets));
            self.reasons.push(self.gcc.metrics().reason);
        }
    }

    fn send(&mut self, ms: i64, sequence_number: i64) {
        let packet = SentPacket {
            sequence_number,
            size: SIZE,
            queued: DataSize::ZERO,
            probe: None,
            padding: false,
        };
        self.gcc.on_packet_sent(at(ms), &packet);
    }

    fn kbps(&self) -> f64 {
        self.gcc.target().bitrate.as_kbps_f64()
    }
}

fn packet(number: i64, send_ms: i64, arrival_ms: Option<i64>) -> PacketReport {
    PacketReport {
        sequence_number: number,
        size: SIZE,
        send_time: at(send_ms),
        arrival_time: arrival_ms.map(at),
        ecn: Ecn::NotEct,
        recovered: false,
        probe: None,
    }
}

fn free(_: i64, _: i64) -> Option<i64> {
    Some(0)
}

#[test]
fn it_starts_at_the_start_bitrate_with_a_probe_and_paces_at_2_5_times() {
    let gcc = controller(100, 300, 5_000);
    let target = gcc.target();
    assert_eq!((target.bitrate, target.pacing_rate), (kbps(300), kbps(750)));
    assert_eq!(target.probe.map(|probe| probe.rate), Some(kbps(900)));
    assert_eq!((gcc.metrics().reason, gcc.metrics().state), (Reason::Start, "hold"));
}

// [LIBWEBRTC §GoogCcNetworkController]
#[test]
fn after_feedback_it_paces_at_1_1_times_the_target_in_bursts_of_40_ms() {
    let mut path = Loop::new(controller(100, 300, 5_000));
    path.run(0, 1_000, 10, free);
    let target = path.gcc.target();
    assert_eq!(target.pacing_rate, target.bitrate * 1.1);
    assert_eq!(target.burst, Burst::Whole(TimeDelta::from_millis(40)));
}

// A probe of 5 packets, 1 ms apart: 10 Mbit/s.
#[test]
fn a_probe_that_gets_through_sets_the_target_at_once() {
    let mut path = Loop::new(controller(100, 300, 2_500));
    let mut packets = Vec::new();
    while let Some(probe) = path.gcc.target().probe {
        let number = packets.len() as i64;
        let sent = SentPacket {
            sequence_number: number,
            size: SIZE,
            queued: DataSize::ZERO,
            probe: Some(probe.id),
            padding: false,
        };
        let ms = 6 * number;
        path.gcc.on_packet_sent(at(ms), &sent);
        packets.push(PacketReport { probe: Some(probe.id), ..packet(number, ms, Some(ms + 25)) });
    }
    assert_eq!(packets.len(), 10, "two probes of five packets");
    path.gcc.on_feedback(at(150), &report(packets));
    assert_eq!(path.kbps(), 1_666.666);
    assert_eq!(path.gcc.metrics().reason, Reason::Probe);
    let further = path.gcc.target().probe.map(|probe| probe.rate);
    assert_eq!(further, Some(kbps(2_500)), "a further one, up to the maximum");
}

#[test]
fn growth_over_use_and_hold_are_told_with_their_reason_and_state() {
    let mut path = Loop::new(controller(100, 900, 5_000));
    path.run(0, 4_000, 10, free);
    assert_eq!(path.gcc.metrics().reason, Reason::RampUp);
    assert_eq!(path.gcc.metrics().state, "increase");
    // The queue grows by half a ms per ms.
    path.run(4_000, 4_400, 10, |ms, _| Some((ms - 4_000) / 2));
    assert!(path.reasons.contains(&Reason::OverUse));
    assert!(path.kbps() < 0.85 * 1_010.0, "{}", path.kbps());
    let cut = path.kbps();
    path.run(4_400, 4_600, 10, |ms, _| Some((200 - (ms - 4_400)).max(0)));
    assert!(path.kbps() <= cut);
    path.run(4_600, 9_000, 10, free);
    assert!(path.kbps() > cut);
    // More arrives than at over-use, so the capacity is no longer known.
    assert_eq!(path.gcc.metrics().reason, Reason::RampUp);
}

// Complaint 3 of the field.
#[test]
fn random_loss_of_4_percent_does_not_cut_the_target() {
    let mut path = Loop::new(controller(100, 1_100, 5_000));
    path.run(0, 20_000, 10, |_, number| (number % 25 != 7).then_some(0));
    assert!(path.kbps() >= 1_100.0, "{}", path.kbps());
    assert!((path.gcc.metrics().loss_ratio - 0.04).abs() < 0.01);
}

#[test]
fn reports_of_lost_packets_alone_cut_as_well() {
    let mut path = Loop::new(controller(100, 900, 5_000));
    path.run(0, 3_000, 10, free);
    let before = path.kbps();
    path.run(3_000, 6_000, 10, |_, _| None);
    assert!(path.kbps() < before, "{}", path.kbps());
    assert_eq!(path.gcc.metrics().reason, Reason::Loss);
}

// [LIBWEBRTC §LossBasedBweV2]
#[test]
fn heavy_loss_cuts_with_its_reason_and_marks_with_theirs() {
    for (ecn, reason) in [(Ecn::NotEct, Reason::Loss), (Ecn::Ce, Reason::Ecn)] {
        let mut path = Loop::new(controller(100, 900, 5_000));
        path.run(0, 3_000, 10, free);
        let before = path.kbps();
        for start in (3_000..5_000).step_by(50) {
            let bad = |number: i64, ms: i64| match ecn {
                Ecn::Ce => PacketReport { ecn, ..packet(number, ms, Some(ms + 25)) },
                _ => packet(number, ms, None),
            };
            let fate = |(index, ms): (usize, i64)| {
                let number = start / 10 + index as i64;
                if index % 2 == 0 { bad(number, ms) } else { packet(number, ms, Some(ms + 25)) }
            };
            let packets = (start..start + 50).step_by(10).enumerate().map(fate).collect();
            path.gcc.on_feedback(at(start + 100), &report(packets));
            path.reasons.push(path.gcc.metrics().reason);
        }
        assert!(path.reasons.contains(&reason), "{reason:?}");
        assert!(path.kbps() < before);
    }
}

#[test]
fn the_receivers_limit_caps_the_target_and_lifting_it_lets_go() {
    let mut path = Loop::new(controller(100, 900, 5_000));
    path.run(0, 2_000, 10, free);
    let before = path.kbps();
    path.gcc.on_receiver_limit(at(2_100), Some(kbps(500)));
    assert_eq!((path.kbps(), path.gcc.metrics().reason), (500.0, Reason::ReceiverLimit));
    path.gcc.on_receiver_limit(at(2_200), Some(kbps(1)));
    assert_eq!(path.kbps(), 100.0, "not below the minimum");
    path.gcc.on_receiver_limit(at(2_300), None);
    assert_eq!((path.kbps(), path.gcc.metrics().reason), (before, Reason::ReceiverLimit));
}

// [LIBWEBRTC §CongestionWindowPushbackController]: a window of 900 kbit/s times at least 25 + 350
// ms.
#[test]
fn bytes_in_flight_beyond_the_window_take_from_the_source_not_the_target() {
    let mut path = Loop::new(controller(100, 900, 5_000));
    path.run(0, 2_000, 10, free);
    let before = path.kbps();
    assert_eq!(path.gcc.target().source_bitrate, path.gcc.target().bitrate);
    for ms in (2_000..2_700).step_by(5) {
        path.send(ms, path.number + (ms - 2_000) / 5);
    }
    assert_eq!(path.kbps(), before);
    assert_eq!(path.gcc.target().source_bitrate, kbps(30), "the least that is left");
    path.number += 140;
    path.run(2_700, 4_000, 10, free);
    assert_eq!(path.gcc.target().source_bitrate, path.gcc.target().bitrate);
}

// Complaint 5 of the field.
#[test]
fn without_feedback_the_estimate_falls_by_a_fifth_a_second_after_3_s() {
    let mut path = Loop::new(controller(1, 900, 5_000));
    for ms in (0..5_500).step_by(10) {
        path.send(ms, ms / 10);
    }
    assert_eq!(path.gcc.estimate.rate, kbps(900) * 0.8 * 0.8 * 0.8);
    assert_eq!(path.gcc.metrics().reason, Reason::FeedbackLost);
}

// [LIBWEBRTC §SendSideBandwidthEstimation]
#[test]
fn receiver_reports_alone_grow_by_8_percent_a_second_and_see_no_delay() {
    let mut path = Loop::new(controller(100, 1_000, 5_000));
    for second in 0..4 {
        for ms in (0..1_000).step_by(10) {
            path.send(second * 1_000 + ms, second * 100 + ms / 10);
        }
        let fate = |index: i64| {
            let ms = second * 1_000 + 10 * index;
            packet(second * 100 + index, ms, Some(ms + 300 * second))
        };
        let packets = (0..100).map(fate).collect();
        let arrival_times = ArrivalTimes::RoundTrip;
        let report = FeedbackReport { arrival_times, ..report(packets) };
        path.gcc.on_feedback(at(second * 1_000 + 1_050), &report);
    }
    // x 1.08 and 1 kbit/s four times.
    assert_eq!(path.gcc.estimate.rate, Bitrate::from_bps(1_364_995));
    assert_eq!(path.gcc.metrics().state, "loss rules");
    assert_eq!(path.gcc.target().pacing_rate, path.gcc.estimate.rate * 2.5);
}

// [LIBWEBRTC §GoogCcNetworkController]
#[test]
fn what_limits_the_estimate_is_asked_on_a_change_and_stands_till_then() {
    let mut path = Loop::new(controller(100, 900, 1_500));
    path.gcc.on_round_trip_time(at(0), TimeDelta::from_millis(50));
    path.run(0, 3_000, 10, free);
    path.run(3_000, 4_000, 10, |ms, _| Some((ms - 3_000) / 2));
    // A source at an eighth of its rate is application-limited while the queue drains.
    path.run(4_000, 6_000, 80, |ms, _| Some((6_000 - ms) / 4));
    let is_limited = |path: &Loop| path.gcc.probing.alr.since().is_some();
    assert!(is_limited(&path));
    assert_eq!(path.gcc.delay_based.usage(), BandwidthUsage::Underuse);
    let estimate = path.gcc.estimate.rate;
    path.run(6_000, 20_000, 80, free);
    assert_eq!(path.gcc.delay_based.usage(), BandwidthUsage::Normal);
    assert_eq!(
        (path.gcc.estimate.rate, is_limited(&path)),
        (estimate, true),
        "nothing has changed"
    );
    assert_eq!(path.gcc.target().probe, None, "though it was due 10 s ago");
    path.gcc.on_round_trip_time(at(20_000), TimeDelta::from_millis(51));
    path.send(20_000, path.number);
    assert_eq!(path.gcc.target().probe.map(|probe| probe.rate), Some(estimate * 2.0));
}

// [LIBWEBRTC §GoogCcNetworkController]
#[test]
fn where_receiver_reports_tell_the_round_trip_time_feedback_does_not() {
    let reported_rtt = |path: &Loop| path.gcc.round_trip.reported_ms;
    let mut path = Loop::new(controller(100, 900, 1_500));
    path.run(0, 3_000, 10, free);
    assert_eq!(reported_rtt(&path), Some(60), "of the last packet of each report");
    path.gcc.on_round_trip_time(at(3_000), TimeDelta::from_millis(50));
    path.run(3_000, 7_900, 10, free);
    assert_eq!(reported_rtt(&path), Some(50));
    path.run(7_900, 8_000, 10, free);
    assert_eq!(reported_rtt(&path), Some(60), "no report for 5 s");
    path.gcc.on_round_trip_time(at(8_100), TimeDelta::from_secs(11));
    assert_eq!(reported_rtt(&path), Some(10_000), "no round trip is taken to be longer");
}

#[test]
fn a_new_clock_restarts_the_delays_and_keeps_the_estimate() {
    let mut path = Loop::new(controller(100, 900, 5_000));
    path.run(0, 3_000, 10, free);
    let before = path.kbps();
    let packets = (0..5).map(|i| packet(300 + i, 3_000 + 10 * i, Some(90_000 + 10 * i))).collect();
    let new_clock = true;
    path.gcc.on_feedback(at(3_100), &FeedbackReport { new_clock, ..report(packets) });
    assert!(path.kbps() >= before);
    assert_eq!(path.gcc.metrics().signals[0].1, 0.0);
    assert_eq!(path.gcc.metrics().acknowledged_bitrate, None);
}

#[test]
fn arrivals_may_come_in_any_order_within_a_report() {
    let (mut in_order, mut swapped) = (controller(100, 900, 5_000), controller(100, 900, 5_000));
    for start in (0..3_000).step_by(100) {
        let packets = |order: [i64; 10]| {
            let fate = |n: i64| packet(start / 10 + n, start + 10 * n, Some(start + 10 * n + 25));
            order.into_iter().map(fate).collect()
        };
        in_order.on_feedback(at(start + 200), &report(packets([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])));
        swapped.on_feedback(at(start + 200), &report(packets([3, 1, 0, 2, 9, 4, 6, 5, 7, 8])));
    }
    assert_eq!(in_order.target(), swapped.target());
    assert_eq!(in_order.metrics(), swapped.metrics());
}
