//! Tests of the `Controller` contract, call by call.

use alloc::vec::Vec;

use super::*;
use weir::feedback::{Ecn, PacketReport};

const SIZE: DataSize = DataSize::from_bytes(1_250);

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn controller(min_kbps: u64, start_kbps: u64, max_kbps: u64) -> GccDraft {
    let kbps = Bitrate::from_kbps;
    GccDraft::new(RateLimits::new(kbps(min_kbps), kbps(start_kbps), kbps(max_kbps)).unwrap())
}

fn packet(number: i64, send_ms: i64, arrival_ms: Option<i64>) -> PacketReport {
    PacketReport::new(number, SIZE, at(send_ms)).with_arrival_time(arrival_ms.map(at))
}

fn report(packets: Vec<PacketReport>) -> FeedbackReport {
    FeedbackReport::new(packets)
}

/// Feeds reports every 50 ms for 1 Mbit/s: a packet every 10 ms, which waits `wait_ms` in the
/// queue.
fn feed(controller: &mut GccDraft, from_ms: i64, to_ms: i64, wait_ms: impl Fn(i64) -> i64) {
    for start in (from_ms..to_ms).step_by(50) {
        let sent = (start..start + 50).step_by(10);
        let packets = sent.map(|ms| packet(ms / 10, ms, Some(ms + 25 + wait_ms(ms)))).collect();
        controller.on_feedback(at(start + 100), &report(packets));
    }
}

fn send(controller: &mut GccDraft, ms: i64) {
    controller.on_packet_sent(at(ms), &SentPacket::new(0, SIZE));
}

fn kbps(controller: &GccDraft) -> f64 {
    controller.target().bitrate.as_kbps_f64()
}

#[test]
fn it_starts_at_the_start_bitrate_and_waits_for_nothing() {
    let controller = controller(100, 300, 2_000);
    assert_eq!(controller.target().bitrate, Bitrate::from_kbps(300));
    assert_eq!(controller.target().pacing_rate, Bitrate::from_kbps(450));
    assert_eq!(controller.next_timeout(), None);
    assert_eq!(
        (controller.metrics().reason, controller.metrics().state),
        (Reason::Start, "increase")
    );
}

#[test]
fn growth_over_use_and_hold_are_told_with_their_reason_and_state() {
    let mut controller = controller(100, 1_000, 5_000);
    feed(&mut controller, 0, 2_000, |_| 0);
    assert_eq!(
        (controller.metrics().reason, controller.metrics().state),
        (Reason::RampUp, "increase")
    );
    assert_eq!(controller.metrics().acknowledged_bitrate, Some(Bitrate::from_kbps(1_020)));
    // The queue grows by 5 ms with each packet.
    feed(&mut controller, 2_000, 2_200, |ms| (ms - 2_000) / 2);
    assert_eq!(
        (controller.metrics().reason, controller.metrics().state),
        (Reason::OverUse, "decrease")
    );
    assert!(kbps(&controller) <= 0.85 * 1_020.0);
    let cut = kbps(&controller);
    // The queue stands still, then drains. Meanwhile the estimate is held.
    feed(&mut controller, 2_200, 2_300, |ms| 100 - (ms - 2_200) / 2);
    assert_eq!((controller.metrics().state, kbps(&controller)), ("hold", cut));
}

// Over-use and the following drain may lie within one report.
#[test]
fn an_over_use_that_ends_within_a_report_still_cuts() {
    let mut controller = controller(100, 1_000, 5_000);
    feed(&mut controller, 0, 2_000, |_| 0);
    let sent = (2_000..2_400).step_by(10);
    let wait =
        |ms: i64| if ms < 2_200 { (ms - 2_000) / 2 } else { (100 - (ms - 2_200) / 2).max(0) };
    let packets = sent.map(|ms| packet(ms / 10, ms, Some(ms + 25 + wait(ms)))).collect();
    controller.on_feedback(at(2_500), &report(packets));
    assert_eq!(controller.usage, BandwidthUsage::Normal, "the last signal");
    assert_eq!(
        (controller.metrics().reason, controller.metrics().state),
        (Reason::OverUse, "decrease")
    );
}

#[test]
fn arrivals_may_come_in_any_order_within_a_report() {
    let mut in_order = controller(100, 1_000, 5_000);
    let mut swapped = in_order.clone();
    for start in (0..3_000).step_by(100) {
        let arrival = |number: i64| start + 10 * number + 25;
        let packets = |order: [i64; 10]| {
            order.iter().map(|&n| packet(n, start + 10 * n, Some(arrival(n)))).collect()
        };
        in_order.on_feedback(at(start + 200), &report(packets([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])));
        swapped.on_feedback(at(start + 200), &report(packets([3, 1, 0, 2, 9, 4, 6, 5, 7, 8])));
    }
    assert_eq!(in_order.metrics().signals, swapped.metrics().signals);
    assert_eq!(in_order.target(), swapped.target());
}

// [GCC §6]: if all is lost, p = 1, which halves the bitrate every second.
#[test]
fn reports_of_lost_packets_alone_cut_by_half_a_second() {
    let mut controller = controller(100, 1_000, 5_000);
    for interval in 0..=20 {
        let first = interval * 10;
        let packets = (first..first + 10).map(|number| packet(number, number * 10, None)).collect();
        controller.on_feedback(at(interval * 100), &report(packets));
    }
    assert_eq!((kbps(&controller), controller.metrics().reason), (250.0, Reason::Loss));
    assert_eq!(controller.metrics().loss_ratio, 1.0);
    assert_eq!(controller.metrics().rtt, None);
}

#[test]
fn after_a_cut_by_loss_the_target_grows_again_with_a_reason() {
    let mut controller = controller(100, 1_000, 5_000);
    let lost = (0..25).map(|number| packet(number, number * 10, None)).collect();
    controller.on_feedback(at(0), &report(Vec::from([packet(0, 0, Some(25))])));
    controller.on_feedback(at(1_000), &report(lost));
    assert_eq!(controller.metrics().reason, Reason::Loss);
    let cut = kbps(&controller);
    feed(&mut controller, 1_000, 3_000, |_| 0);
    assert_eq!(controller.metrics().reason, Reason::Increase);
    let two_intervals_bps = libm::round(cut * 1e3 * 1.05 * 1.05);
    assert_eq!(controller.target().bitrate.as_bps_f64(), two_intervals_bps);
}

// GCC-D13: as written, the target would stay at 1000 kbit/s as long as feedback is missing.
#[test]
fn while_feedback_stays_away_each_second_costs_15_percent() {
    let mut controller = controller(100, 1_000, 5_000);
    let mut cuts = Vec::new();
    for ms in (0..4_000).step_by(10) {
        if controller.next_timeout().is_some_and(|timeout| timeout <= at(ms)) {
            controller.on_timeout(at(ms));
            assert!(controller.next_timeout().is_none_or(|timeout| timeout > at(ms)));
            assert_eq!(controller.metrics().reason, Reason::FeedbackLost);
            cuts.push((ms, kbps(&controller)));
        }
        send(&mut controller, ms);
    }
    assert_eq!(cuts, [(1_000, 850.0), (2_000, 722.5), (3_000, 614.125)]);
}

#[test]
fn feedback_on_what_was_sent_is_awaited_a_second_and_a_round_trip() {
    let mut controller = controller(100, 1_000, 5_000);
    controller.on_feedback(at(100), &report(Vec::from([packet(0, 0, Some(50))])));
    assert_eq!(controller.metrics().rtt, Some(TimeDelta::from_millis(100)));
    assert_eq!(controller.next_timeout(), None, "a source that pauses gets no feedback");
    send(&mut controller, 200);
    assert_eq!(controller.next_timeout(), Some(at(1_300)));
    controller.on_timeout(at(1_299));
    assert_eq!((kbps(&controller), controller.next_timeout()), (1_000.0, Some(at(1_300))));
    controller.on_feedback(at(1_299), &report(Vec::from([packet(1, 200, None)])));
    assert_eq!(controller.next_timeout(), None);
}

#[test]
fn an_empty_report_is_no_feedback() {
    let mut controller = controller(100, 1_000, 5_000);
    send(&mut controller, 0);
    controller.on_feedback(at(500), &report(Vec::new()));
    assert_eq!(controller.next_timeout(), Some(at(1_000)));
}

#[test]
fn a_packet_that_was_called_lost_is_no_measure_of_the_round_trip_time() {
    let mut controller = controller(100, 1_000, 5_000);
    let late = packet(0, 0, Some(900)).with_recovered(true);
    controller.on_feedback(at(1_000), &report(Vec::from([late])));
    assert_eq!(controller.metrics().rtt, None);
}

// [RFC8699 §5.3.1]
#[test]
fn a_share_of_a_coupled_rate_is_not_held_back_by_losses_before_it() {
    let mut controller = controller(100, 1_000, 5_000);
    let lost = (0..25).map(|number| packet(number, number * 10, None)).collect();
    controller.on_feedback(at(0), &report(Vec::from([packet(0, 0, Some(25))])));
    controller.on_feedback(at(1_000), &report(lost));
    assert!(kbps(&controller) < 600.0);
    controller.on_shared_rate(at(1_100), Bitrate::from_kbps(800));
    assert_eq!((kbps(&controller), controller.metrics().reason), (800.0, Reason::Coupled));
}

// GCC-D3
#[test]
fn a_jump_of_the_receivers_clock_by_hours_costs_nothing() {
    let mut plain = controller(100, 1_000, 5_000);
    feed(&mut plain, 0, 6_000, |_| 0);
    for jump_ms in [3_600_000, -3_600_000] {
        let mut jumped = controller(100, 1_000, 5_000);
        feed(&mut jumped, 0, 6_000, |ms| if ms < 3_000 { 0 } else { jump_ms });
        assert!(kbps(&jumped) >= kbps(&plain), "{} {}", kbps(&jumped), kbps(&plain));
        assert_ne!(jumped.metrics().reason, Reason::OverUse);
    }
}

// GCC-D3, GCC-D18
#[test]
fn a_pause_or_a_new_clock_forgets_the_gradient() {
    for (resumed_ms, shift_ms, new_clock) in [(6_000, 0, false), (2_200, 900, true)] {
        let mut controller = controller(100, 1_000, 5_000);
        feed(&mut controller, 0, 2_000, |_| 0);
        feed(&mut controller, 2_000, 2_200, |ms| (ms - 2_000) / 2);
        let gradient = |controller: &GccDraft| controller.metrics().signals[0];
        assert!(gradient(&controller).1 > 10.0);
        let sent = (resumed_ms..resumed_ms + 50).step_by(10);
        let packets = sent.map(|ms| packet(ms / 10, ms, Some(ms + 125 + shift_ms))).collect();
        let report = report(packets).with_new_clock(new_clock);
        controller.on_feedback(at(resumed_ms + 1_100), &report);
        assert_eq!(gradient(&controller), ("gradient_ms", 0.0));
    }
}

// GCC-D18
#[test]
fn without_arrival_times_loss_alone_decides_from_the_bitrate_in_use() {
    let mut controller = controller(100, 1_000, 5_000);
    feed(&mut controller, 0, 2_000, |_| 0);
    let before = kbps(&controller);
    // Reports by round-trip time that a gradient would call over-use: each is 10 ms longer.
    let round_trip = |controller: &mut GccDraft, from: i64, lost_of_100: i64| {
        for start in (from..from + 2_000).step_by(50) {
            let sent = (start..start + 50).step_by(10);
            let arrival =
                |ms: i64| (ms / 10 % 100 >= lost_of_100).then_some(ms + 100 + (start - from) / 5);
            let packets = sent.map(|ms| packet(ms / 10, ms, arrival(ms))).collect();
            let report = report(packets)
                .with_arrival_times(ArrivalTimes::RoundTrip)
                .with_new_clock(start == 2_000);
            controller.on_feedback(at(start + 100), &report);
        }
    };
    round_trip(&mut controller, 2_000, 0);
    let grown = kbps(&controller);
    assert!((before * 1.04..before * 1.16).contains(&grown), "{before}, then {grown}");
    round_trip(&mut controller, 4_000, 20);
    assert!(kbps(&controller) < grown * 0.95);
    assert_eq!(controller.metrics().reason, Reason::Loss);
}

// GCC-D18
#[test]
fn a_new_clock_is_no_queue() {
    let mut controller = controller(100, 1_000, 5_000);
    feed(&mut controller, 0, 2_000, |_| 0);
    for start in (2_000..4_000).step_by(50) {
        let sent = (start..start + 50).step_by(10);
        let packets = sent.map(|ms| packet(ms / 10, ms, Some(ms + 925))).collect();
        let new_clock = start == 2_000;
        controller.on_feedback(at(start + 100), &report(packets).with_new_clock(new_clock));
        assert_ne!(controller.metrics().reason, Reason::OverUse);
    }
}

// GCC-D17
#[test]
fn marks_mean_nothing_without_ecn_and_a_loss_with_it() {
    let run = |ecn| {
        let limits = controller(100, 1_000, 5_000).settings.limits;
        let mut controller = GccDraft::new(Settings::new(limits).with_ecn(ecn));
        for start in (0..4_000).step_by(50) {
            let marked = |ms| {
                let ecn = if ms % 50 == 0 { Ecn::Ce } else { Ecn::Ect0 };
                packet(ms / 10, ms, Some(ms + 25)).with_ecn(ecn)
            };
            let packets = (start..start + 50).step_by(10).map(marked).collect();
            controller.on_feedback(at(start + 100), &report(packets));
        }
        let Metrics { reason, loss_ratio, .. } = controller.metrics();
        (kbps(&controller), reason, loss_ratio)
    };
    let (without, _, loss_ratio) = run(EcnMode::Off);
    assert!(without > 1_200.0);
    assert_eq!(loss_ratio, 0.0);
    let (with_ecn, reason, loss_ratio) = run(EcnMode::Classic);
    assert!(with_ecn < 900.0);
    assert_eq!((reason, loss_ratio), (Reason::Ecn, 0.2));
}
