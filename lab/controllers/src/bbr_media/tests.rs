//! The whole controller with single reports.

use super::*;
use weir::feedback::PacketReport;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn controller() -> BbrMedia {
    let kbps = Bitrate::from_kbps;
    BbrMedia::new(RateLimits::new(kbps(150), kbps(300), kbps(2_500)).unwrap())
}

/// Rounds of 100 ms at the target, over a path of 20 ms that carries `capacity` and drops the rest.
/// Returns the highest target of each round.
fn run(bbr: &mut BbrMedia, rounds: core::ops::Range<i64>, capacity: Bitrate) -> Vec<Bitrate> {
    let mut targets = Vec::new();
    for number in rounds {
        let sent = at(1_000 + 100 * number);
        let offered = bbr.target().bitrate;
        let bytes = (offered * TimeDelta::from_millis(100)).as_bytes() / 50;
        let kept = (50.0 * (capacity / offered).min(1.0)) as i64;
        let mut packets = Vec::new();
        for index in 0..50 {
            let (sequence, size) = (50 * number + index, DataSize::from_bytes(bytes));
            bbr.on_packet_sent(sent, &SentPacket::new(sequence, size));
            let arrival = (index < kept).then_some(sent + TimeDelta::from_millis(20));
            packets.push(PacketReport::new(sequence, size, sent).with_arrival_time(arrival));
        }
        bbr.on_feedback(sent + TimeDelta::from_millis(50), &FeedbackReport::new(packets));
        targets.push(bbr.target().bitrate);
    }
    targets
}

// [BBR3 §5.3.1]
#[test]
fn the_start_grows_to_the_capacity_and_the_cycle_stays_near_it() {
    let mut bbr = controller();
    let capacity = Bitrate::from_kbps(1_000);
    let targets = run(&mut bbr, 0..200, capacity);
    assert!(targets[..10].iter().any(|target| *target > capacity), "{targets:?}");
    let late = &targets[100..];
    let mean = late.iter().map(|target| target.as_kbps_f64()).sum::<f64>() / late.len() as f64;
    assert!((800.0..1_100.0).contains(&mean), "{mean}");
}

// BBRM-D6
#[test]
fn missing_feedback_halves_the_bandwidth() {
    let mut bbr = controller();
    run(&mut bbr, 0..100, Bitrate::from_kbps(1_000));
    let before = bbr.bandwidth().min(bbr.target().bitrate);
    bbr.on_packet_sent(at(20_000), &SentPacket::new(9_000, PACKET));
    let due = bbr.next_timeout().expect("a packet is in flight");
    bbr.on_timeout(due);
    assert_eq!(bbr.metrics().reason, Reason::FeedbackLost);
    assert!((bbr.bandwidth() / before - 0.5).abs() < 0.01);
}

// BBRM-D3
#[test]
fn a_window_of_two_products_and_a_report_closes() {
    let mut bbr = controller();
    run(&mut bbr, 0..100, Bitrate::from_kbps(1_000));
    let window = bbr.target().window.unwrap();
    for number in 0..100 {
        bbr.on_packet_sent(at(20_000), &SentPacket::new(9_000 + number, PACKET));
    }
    assert!(window.available > DataSize::ZERO);
    assert_eq!(bbr.target().window.unwrap().available, DataSize::ZERO);
}
