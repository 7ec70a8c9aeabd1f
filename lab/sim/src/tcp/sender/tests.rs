use weir_net::Seed;

use super::super::congestion::Congestion;
use super::super::segment::Blocks;
use super::*;

const RTT: TimeDelta = TimeDelta::from_millis(100);
const WINDOW: u64 = 1 << 20;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// A sender of this many segments, after a handshake of 100 ms. Its host has ticks every 4 ms from
/// zero. A timer fires at the tick after its time, a long timer at every eighth tick only.
fn sender(segments: u64) -> Sender {
    let limits = Limits { length: Some(segments * MSS), send_buffer: WINDOW, small_queue: None };
    let control = Congestion::Reno.build(Seed::new(1).stream("test"));
    let mut sender = Sender::new(control, limits, Timers::FROM_ZERO);
    sender.on_connected(Some(RTT), WINDOW);
    sender
}

/// Numbers of the segments that leave now.
fn leave(sender: &mut Sender, ms: i64) -> Vec<u64> {
    std::iter::from_fn(|| sender.next_segment(at(ms)))
        .map(|outgoing| outgoing.data.part.start / MSS)
        .collect()
}

/// An acknowledgement: next expected segment, segments received above it, and echoed time.
fn ack(next: u64, above: &[(u64, u64)], echo_ms: i64) -> Ack {
    let parts: Vec<_> = above.iter().map(|(from, to)| from * MSS..to * MSS).collect();
    let blocks = Blocks::first_of(&parts, 3);
    Ack { next: next * MSS, window: WINDOW, blocks, echo: at(echo_ms), ..Ack::default() }
}

/// Runs the sender's timers until a time. Returns the times and numbers of the segments sent.
fn run_timers(sender: &mut Sender, until_ms: i64) -> Vec<(i64, u64)> {
    let mut left = Vec::new();
    while let Some(now) = sender.next_deadline().filter(|&now| now <= at(until_ms)) {
        sender.on_deadline(now);
        let ms = now.as_millis();
        left.extend(leave(sender, ms).into_iter().map(|number| (ms, number)));
    }
    left
}

// [RFC6928 §2]
#[test]
fn ten_segments_leave_first_and_two_for_each_acknowledged_in_slow_start() {
    let mut sender = sender(100);
    assert_eq!(leave(&mut sender, 0), (0..10).collect::<Vec<u64>>());
    sender.on_ack(at(100), &ack(1, &[], 0));
    assert_eq!(leave(&mut sender, 100), [10, 11]);
}

#[test]
fn a_full_interface_holds_segments_back_until_packets_have_left_it() {
    let mut sender = sender(100);
    sender.limits.small_queue = Some(2 * MSS);
    // Two segments do not exceed the limit, three do.
    assert_eq!(leave(&mut sender, 0), [0, 1, 2]);
    sender.on_left_host(&(0..MSS));
    assert_eq!(leave(&mut sender, 1), [3]);
    assert_eq!(sender.next_deadline(), Some(at(208)), "the tail probe, and no busy pacer");
    sender.on_left_host(&(MSS..4 * MSS));
    assert_eq!(leave(&mut sender, 2), [4, 5, 6]);
}

// [RFC8985 §7]: two round trips of 100 ms after the last segment, and 2 ms.
#[test]
fn a_lost_end_is_probed_after_two_round_trips() {
    let mut sender = sender(10);
    leave(&mut sender, 0);
    sender.on_ack(at(100), &ack(8, &[], 0));
    assert_eq!(run_timers(&mut sender, 399), [(308, 9)]);
    // The probe arrived above the hole. Segment 8 is lost, because 9 was retransmitted long after
    // it.
    sender.on_ack(at(408), &ack(8, &[(9, 10)], 0));
    assert_eq!(leave(&mut sender, 408), [8]);
}

// [RFC8985 §7.4.2]
#[test]
fn a_probe_that_repaired_a_loss_counts_as_congestion() {
    let threshold_after = |duplicate| {
        let mut sender = sender(1_000);
        sender.peer_edge = 10 * MSS;
        leave(&mut sender, 0);
        sender.on_ack(at(100), &Ack { window: MSS, ..ack(9, &[], 0) });
        // The receive window is full, so the last segment itself is the probe. It is sent after two
        // round-trip times plus the maximum delay of an acknowledgement, but no later than the
        // timeout of 100 + 200 ms.
        assert_eq!(run_timers(&mut sender, 500), [(416, 9)]);
        let answer = Ack { duplicate, ..ack(10, &[], 416) };
        sender.on_ack(at(516), &answer);
        leave(&mut sender, 516);
        sender.on_ack(at(616), &ack(11, &[], 516));
        sender.window.threshold
    };
    // Nine segments have increased the window to 19. The eleventh shows that the probe was needed.
    assert_eq!(threshold_after(None), 9.0);
    assert_eq!(threshold_after(Some(9 * MSS..10 * MSS)), f64::INFINITY);
}

// [RFC6298 §5.5]
#[test]
fn timeouts_come_at_doubling_distances() {
    let mut sender = sender(10);
    leave(&mut sender, 0);
    // A probe after 202 ms; then SRTT of 100 ms + 4 * RTTVAR of 50 ms = 300 ms, doubled each time.
    let expected = [(208, 9), (512, 0), (1_120, 0), (2_336, 0), (4_864, 0)];
    assert_eq!(run_timers(&mut sender, 9_000), expected);
    assert_eq!(sender.congestion_window(), DataSize::from_bytes(MSS));
}

// [RFC6298 §3], [RFC7323 §4.1]
#[test]
fn an_answer_to_a_retransmission_is_timed_by_its_timestamp() {
    let mut sender = sender(1);
    leave(&mut sender, 0);
    let left = run_timers(&mut sender, 400);
    assert_eq!(left, [(320, 0)]);
    // The sample is 80 ms from the probe, not 400 ms from the original: SRTT 7/8 * 100 + 1/8 * 80.
    sender.on_ack(at(400), &ack(1, &[], 320));
    assert_eq!(sender.rtt.smoothed(), Some(TimeDelta::from_micros(97_500)));
    assert!(sender.is_done());
}

// [RFC4015 §3]
#[test]
fn a_timeout_that_was_only_a_delay_is_undone() {
    let mut sender = sender(100);
    leave(&mut sender, 0);
    let left = run_timers(&mut sender, 520);
    // The probe was new data. Then the window shrank to one segment, the first.
    assert_eq!(left, [(208, 10), (512, 0)]);
    assert_eq!(sender.window.congestion, 1.0);
    sender.on_ack(at(612), &ack(1, &[], 0));
    assert_eq!(sender.window.threshold, f64::INFINITY);
    assert_eq!(sender.window.congestion, 11.0);
    assert_eq!(sender.board.lost(), 0);
}

#[test]
fn a_timeout_that_was_a_loss_is_not_undone() {
    let mut sender = sender(100);
    leave(&mut sender, 0);
    run_timers(&mut sender, 520);
    sender.on_ack(at(612), &ack(1, &[], 512));
    assert_eq!(sender.window.threshold, 5.0);
    assert!(sender.window.congestion < 5.0);
}

// [RFC6937 §3]
#[test]
fn a_loss_halves_the_window_over_a_round_trip() {
    let mut sender = sender(1_000);
    sender.window = Window { congestion: 20.0, threshold: 20.0 };
    assert_eq!(leave(&mut sender, 0).len(), 20);
    let mut left = Vec::new();
    for number in 1..20 {
        sender.on_ack(at(100 + number), &ack(0, &[(1, number as u64 + 1)], 0));
        left.extend(leave(&mut sender, 100 + number));
    }
    // Two new segments before the loss is detected, then the retransmission, then a segment for
    // every second delivery.
    assert_eq!(left[..3], [20, 21, 0], "{left:?}");
    assert_eq!(sender.board.in_flight(), 10, "{left:?}");
    assert_eq!(sender.window.threshold, 10.0);
    sender.on_ack(at(220), &ack(22, &[], 120));
    assert!((10.0..10.5).contains(&sender.window.congestion), "{:?}", sender.window);
}

// [RFC8985 §6.2], and Linux's ticks.
#[test]
fn the_reordering_timer_begins_a_reduction_with_one_retransmission() {
    let mut sender = sender(1_000);
    sender.window = Window { congestion: 8.0, threshold: 8.0 };
    assert_eq!(leave(&mut sender, 0).len(), 8);
    sender.on_ack(at(101), &ack(0, &[(7, 8)], 0));
    assert_eq!(leave(&mut sender, 101), [8]);
    // Reordering window of 25 ms plus 2 ms: seven ticks and the rest of the tick at 100 ms.
    assert_eq!(run_timers(&mut sender, 140), [(132, 0)]);
    assert_eq!((sender.window.threshold, sender.window.congestion), (4.0, 2.0));
}

// [RFC3168 §6.1.2]
#[test]
fn marks_of_one_round_trip_halve_the_window_once_and_resend_nothing() {
    let mut sender = sender(1_000);
    sender.window = Window { congestion: 20.0, threshold: 20.0 };
    leave(&mut sender, 0);
    let mut left = Vec::new();
    for next in 1..=20 {
        sender.on_ack(at(100), &Ack { ece: true, ..ack(next, &[], 0) });
        while let Some(outgoing) = sender.next_segment(at(100)) {
            assert!(!outgoing.is_retransmission);
            left.push(outgoing.data.cwr);
        }
    }
    assert_eq!(sender.window.congestion, 10.0);
    assert_eq!(left.iter().filter(|cwr| **cwr).count(), 1);
    assert!(left[0]);
}

#[test]
fn no_more_is_in_flight_than_the_receiver_takes_or_the_host_keeps() {
    let mut taken = sender(1_000);
    taken.peer_edge = 4 * MSS;
    assert_eq!(leave(&mut taken, 0).len(), 4);
    assert!(!taken.is_window_limited);
    let mut kept = sender(1_000);
    kept.limits.send_buffer = 3 * MSS;
    assert_eq!(leave(&mut kept, 0).len(), 3);
}
