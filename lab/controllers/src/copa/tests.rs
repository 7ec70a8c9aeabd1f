//! The whole controller with single reports.

use super::*;
use weir::feedback::PacketReport;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn controller() -> Copa {
    let kbps = Bitrate::from_kbps;
    Copa::new(RateLimits::new(kbps(150), kbps(300), kbps(2_500)).unwrap())
}

/// Rounds of 200 ms at the target bitrate, whose packets take `delay_ms`. Returns the target.
fn run(copa: &mut Copa, rounds: core::ops::Range<i64>, delay_ms: i64) -> Bitrate {
    for number in rounds {
        let sent = at(200 * number);
        let bytes = (copa.target().bitrate * TimeDelta::from_millis(200)).as_bytes() / 10;
        let mut packets = Vec::new();
        for index in 0..10 {
            let (sequence, size) = (10 * number + index, DataSize::from_bytes(bytes));
            copa.on_packet_sent(sent, &SentPacket::new(sequence, size));
            let arrival = Some(sent + TimeDelta::from_millis(delay_ms));
            packets.push(PacketReport::new(sequence, size, sent).with_arrival_time(arrival));
        }
        copa.on_feedback(at(200 * number + 60 + delay_ms), &FeedbackReport::new(packets));
    }
    copa.target().bitrate
}

// [COPA §2.1]
#[test]
fn an_empty_path_doubles_the_rate_and_a_queue_takes_it_back() {
    let mut copa = controller();
    let first = run(&mut copa, 0..10, 20);
    assert!(first > Bitrate::from_kbps(1_000), "{first}");
    assert_eq!(copa.metrics().reason, Reason::RampUp);
    // 1 / (0.5 * 80 ms) is 25 packets a second.
    let queued = run(&mut copa, 10..13, 100);
    assert!(queued < first * 0.9, "{first} {queued}");
    assert_eq!((copa.metrics().reason, copa.metrics().state), (Reason::QueuingDelay, "default"));
}

// [COPA §2.2]
#[test]
fn a_queue_that_stays_for_five_round_trips_is_competed_with() {
    let mut copa = controller();
    run(&mut copa, 0..10, 20);
    let held = run(&mut copa, 10..40, 100);
    assert_eq!(copa.metrics().state, "competitive");
    assert!(held > Bitrate::from_kbps(1_000), "{held}");
}

// COPA-D6
#[test]
fn missing_feedback_halves_the_window() {
    let mut copa = controller();
    let before = run(&mut copa, 0..10, 20);
    copa.on_packet_sent(at(3_000), &SentPacket::new(500, PACKET));
    let due = copa.next_timeout().expect("a packet is in flight");
    copa.on_timeout(due);
    assert_eq!(copa.metrics().reason, Reason::FeedbackLost);
    let after = copa.target().bitrate;
    assert!((after / before - 0.5).abs() < 0.01, "{before} {after}");
}

// COPA-D2
#[test]
fn what_is_in_flight_closes_the_window() {
    let mut copa = controller();
    run(&mut copa, 0..10, 20);
    let open = copa.target().window.unwrap().available;
    let packets = open.as_bytes() / PACKET.as_bytes() + 1;
    for number in 0..packets {
        copa.on_packet_sent(at(2_100), &SentPacket::new(1_000 + number as i64, PACKET));
    }
    assert_eq!(copa.target().window.unwrap().available, DataSize::ZERO);
}
