use alloc::vec::Vec;

use super::*;
use crate::receiver::{ReceivedPacket, ReceiverEstimator};
use weir::controller::RateLimits;
use weir::feedback::PacketReport;
use weir::units::DataSize;

const SIZE: DataSize = DataSize::from_bytes(1_000);

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn kbps(kbps: u64) -> Bitrate {
    Bitrate::from_kbps(kbps)
}

/// Sends frames of four packets every 33 ms (970 kbit/s) from `from_ms` to `to_ms` over a path of
/// 25 ms, where packets also wait `wait_ms`. Returns the rates that the receiver sends, and when.
fn receive(
    receiver: &mut Receiver,
    from_ms: i64,
    to_ms: i64,
    wait_ms: impl Fn(i64) -> i64,
) -> Vec<(i64, Bitrate)> {
    let mut sent = Vec::new();
    for frame_ms in (from_ms..to_ms).step_by(33) {
        for packet in 0..4 {
            let send_ms = frame_ms + packet;
            let now_ms = send_ms + 25 + wait_ms(send_ms);
            while let Some(due) = receiver.next_timeout().filter(|&due| due <= at(now_ms)) {
                receiver.on_timeout(due);
                sent.extend(receiver.take_limit().map(|limit| (due.as_millis(), limit)));
            }
            let (send_time, rtp_timestamp) = (at(send_ms), (frame_ms * 90) as u32);
            receiver
                .on_packet(at(now_ms), &ReceivedPacket { send_time, rtp_timestamp, size: SIZE });
            sent.extend(receiver.take_limit().map(|limit| (now_ms, limit)));
        }
    }
    sent
}

// [BARI §signalling]
#[test]
fn a_rate_that_grows_is_sent_once_a_second() {
    let sent = receive(&mut Receiver::new(), 0, 5_500, |_| 0);
    let times: Vec<_> = sent.iter().map(|&(ms, _)| ms).collect();
    assert_eq!(times, [1_025, 2_025, 3_025, 4_025, 5_025]);
    assert!(sent.is_sorted_by_key(|&(_, limit)| limit), "{sent:?}");
}

// [BARI §signalling]: each frame waits 12 ms longer.
#[test]
fn over_use_is_sent_at_once() {
    let mut receiver = Receiver::new();
    let calm = receive(&mut receiver, 0, 4_950, |_| 0);
    let grown = calm.last().unwrap().1;
    let sent = receive(&mut receiver, 4_950, 5_940, |ms| (ms - 4_950) / 33 * 12);
    let (first_ms, cut) = *sent.iter().find(|&&(_, limit)| limit < grown).unwrap();
    assert!((5_075..5_400).contains(&first_ms), "{sent:?}");
    assert!(cut < grown * 0.97, "{cut} after {grown}");
    let cuts = sent.windows(2).filter(|pair| pair[1].1 < pair[0].1).map(|pair| pair[1].0);
    let times: Vec<_> = cuts.collect();
    assert!(times.len() > 1, "{sent:?}");
    // [LW2013 §remote_rate_control]
    assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 200), "{sent:?}");
}

#[test]
fn a_receiver_that_gets_nothing_says_nothing() {
    let mut receiver = Receiver::new();
    receive(&mut receiver, 0, 2_000, |_| 0);
    for second in 3..10 {
        receiver.on_timeout(at(second * 1_000));
        let limit = receiver.take_limit();
        assert_eq!(limit.is_some(), second < 5, "{second}");
    }
    assert_eq!(receiver.next_timeout(), None);
}

#[test]
fn a_limit_is_handed_out_once() {
    let mut receiver = Receiver::new();
    receive(&mut receiver, 0, 990, |_| 0);
    receiver.on_timeout(at(1_025));
    assert!(receiver.take_limit().is_some());
    assert_eq!(receiver.take_limit(), None);
}

// [RFC3550 §5.1]
#[test]
fn frames_count_on_over_the_wraps_of_their_timestamps() {
    let mut receiver = Receiver::new();
    for frame in 0..40_i64 {
        let send_time = at(33 * frame);
        let rtp_timestamp = (frame << 28) as u32;
        receiver.on_packet(send_time, &ReceivedPacket { send_time, rtp_timestamp, size: SIZE });
    }
    assert_eq!(receiver.frame.last(), Some(39 << 28));
}

fn controller(start_kbps: u64) -> Gcc2013 {
    Gcc2013::new(RateLimits::new(kbps(100), kbps(start_kbps), kbps(5_000)).unwrap())
}

/// A report on 40 packets of the previous second, of which the first `lost` are lost.
fn report(second: i64, lost: i64, arrival_times: ArrivalTimes) -> FeedbackReport {
    let packet = |number: i64| {
        let send_time = at((second - 1) * 1_000 + number * 25);
        PacketReport::new(second * 40 + number, SIZE, send_time)
            .with_arrival_time((number >= lost).then_some(send_time + TimeDelta::from_millis(25)))
    };
    FeedbackReport::new((0..40).map(packet).collect()).with_arrival_times(arrival_times)
}

// [BARI §sender-side control]
#[test]
fn the_target_is_the_lower_one_of_both_rates() {
    let mut controller = controller(1_000);
    controller.on_receiver_limit(at(500), Some(kbps(800)));
    assert_eq!(controller.target().bitrate, kbps(800));
    assert_eq!(controller.metrics().reason, Reason::ReceiverLimit);
    controller.on_feedback(at(1_000), &report(1, 0, ArrivalTimes::RoundTrip));
    assert_eq!(controller.target().bitrate, kbps(800));
    controller.on_receiver_limit(at(1_500), Some(kbps(2_000)));
    controller.on_feedback(at(2_000), &report(2, 0, ArrivalTimes::RoundTrip));
    assert_eq!(controller.target().bitrate, Bitrate::from_bps(841_050));
    assert_eq!(controller.metrics().reason, Reason::Increase);
    controller.on_feedback(at(3_000), &report(3, 8, ArrivalTimes::RoundTrip));
    assert_eq!(controller.target().bitrate, Bitrate::from_bps(756_945));
    assert_eq!(controller.metrics().reason, Reason::Loss);
}

// [RFC8699 §5]: the receiver's rate stays in force.
#[test]
fn a_share_of_a_coupled_rate_is_taken_over_up_to_the_receivers_rate() {
    let mut controller = controller(1_000);
    controller.on_shared_rate(at(100), kbps(400));
    assert_eq!(controller.target().bitrate, kbps(400));
    assert_eq!(controller.metrics().reason, Reason::Coupled);
    controller.on_receiver_limit(at(200), Some(kbps(300)));
    controller.on_shared_rate(at(300), kbps(600));
    assert_eq!(controller.target().bitrate, kbps(300));
}

// BARI-D6
#[test]
fn no_feedback_halves_the_rate_each_two_seconds_and_a_round_trip() {
    let mut controller = controller(1_000);
    let packet = SentPacket::new(0, SIZE);
    let mut halved = Vec::new();
    for ms in (0..7_000).step_by(10) {
        if controller.next_timeout().is_some_and(|timeout| timeout <= at(ms)) {
            controller.on_timeout(at(ms));
            halved.push((ms, controller.target().bitrate));
        }
        controller.on_packet_sent(at(ms), &packet);
    }
    assert_eq!(halved, [(2_000, kbps(500)), (4_000, kbps(250)), (6_000, kbps(125))]);
    assert_eq!(controller.metrics().reason, Reason::FeedbackLost);
    controller.on_feedback(at(8_000), &report(7, 0, ArrivalTimes::RoundTrip));
    controller.on_packet_sent(at(9_000), &packet);
    // The newest packet of that report was sent at 6975 ms.
    assert_eq!(controller.next_timeout(), Some(at(9_000 + 2_000 + 1_025)));
}

// BARI-D7, [LW2013 §remote_bitrate_estimator]
#[test]
fn the_delay_based_half_runs_once_a_second_at_the_sender() {
    let mut controller = controller(4_000);
    let mut changed = Vec::new();
    for tick in 1..=50 {
        let before = controller.ceiling();
        let mut report = report(1, 0, ArrivalTimes::Measured);
        report.packets.truncate(10);
        let shift = TimeDelta::from_millis(250 * (tick - 1));
        for packet in &mut report.packets {
            packet.send_time += shift;
            packet.arrival_time = packet.arrival_time.map(|arrival| arrival + shift);
        }
        controller.on_feedback(at(250 * tick), &report);
        if controller.ceiling() != before {
            changed.push(250 * tick);
        }
    }
    assert!(changed.len() > 5, "{changed:?}");
    assert!(changed.windows(2).all(|pair| (pair[1] - pair[0]) % 1_000 == 0), "{changed:?}");
}

// BARI-D7
#[test]
fn packets_of_a_report_are_taken_in_the_order_of_their_arrival() {
    let [in_order, reversed] = [false, true].map(|reversed| {
        let mut controller = controller(4_000);
        for second in 1..=6 {
            let mut report = report(second, 0, ArrivalTimes::Measured);
            if reversed {
                report.packets.reverse();
            }
            controller.on_feedback(at(second * 1_000), &report);
        }
        controller.ceiling()
    });
    assert!(in_order.is_some());
    assert_eq!(in_order, reversed);
}

// BARI-D7
#[test]
fn per_packet_feedback_runs_the_delay_based_half_at_the_sender() {
    let mut controller = controller(4_000);
    for second in 1..=2 {
        controller.on_feedback(at(second * 1_000), &report(second, 0, ArrivalTimes::Measured));
    }
    // 40 packets of 1000 B a second are 320 kbit/s.
    let target = controller.target().bitrate;
    assert!((kbps(310)..kbps(360)).contains(&target), "{target}");
    assert_eq!(controller.metrics().reason, Reason::OverUse);
    controller.on_feedback(at(4_000), &report(4, 0, ArrivalTimes::RoundTrip));
    controller.on_feedback(at(5_000), &report(5, 0, ArrivalTimes::RoundTrip));
    assert!(controller.target().bitrate > target * 1.09, "what was found here is forgotten");
}

#[test]
fn a_switch_between_the_kinds_of_feedback_keeps_the_rate() {
    let mut controller = controller(300);
    let mut last = controller.target().bitrate;
    for second in 1..40 {
        let arrival_times =
            if second % 5 < 3 { ArrivalTimes::Measured } else { ArrivalTimes::RoundTrip };
        controller.on_feedback(at(second * 1_000), &report(second, 0, arrival_times));
        let target = controller.target().bitrate;
        assert!(target >= last * 0.7 && target <= last * 1.1, "{last} then {target}");
        last = target;
    }
}
