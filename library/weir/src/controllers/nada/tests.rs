//! Tests the whole controller with single reports. Closed-loop tests are in tests/it/nada_loop.rs.

use alloc::vec::Vec;

use super::*;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}
fn kbps(kbps: u64) -> Bitrate {
    Bitrate::from_kbps(kbps)
}
fn nada(min: u64, start: u64, max: u64) -> Nada {
    Nada::new(RateLimits::new(kbps(min), kbps(start), kbps(max)).unwrap())
}

/// Packet `number` has 1250 bytes, is sent at `number` times 10 ms (1 Mbit/s) and arrives 40 ms
/// later.
fn packet(number: i64) -> PacketReport {
    PacketReport {
        sequence_number: number,
        size: DataSize::from_bytes(1250),
        send_time: at(10 * number),
        arrival_time: Some(at(10 * number + 40)),
        ecn: Ecn::Ect0,
        recovered: false,
        probe: None,
    }
}
fn lost(number: i64) -> PacketReport {
    PacketReport { arrival_time: None, ..packet(number) }
}
/// One report for ten packets, every 100 ms. It arrives 80 ms after the last of them was sent.
fn feed(nada: &mut Nada, rounds: core::ops::Range<i64>, make: impl Fn(i64) -> PacketReport) {
    for round in rounds {
        let packets: Vec<_> = (10 * round..10 * (round + 1)).map(&make).collect();
        let report = FeedbackReport { packets, missing_feedback: 0, ..FeedbackReport::default() };
        nada.on_feedback(at(100 * round + 170), &report);
    }
}

// [NADA §4.3]: gamma = 50 / (80 + 100 + 120).
#[test]
fn a_clean_path_ramps_up_to_a_sixth_more_than_what_arrives() {
    let mut nada = nada(150, 300, 2500);
    feed(&mut nada, 0..10, packet);
    assert_eq!(nada.target().bitrate, Bitrate::from_bps(1_166_667));
    let metrics = nada.metrics();
    assert_eq!((metrics.reason, metrics.state), (Reason::RampUp, "accelerated ramp-up"));
    assert_eq!(metrics.rtt, Some(TimeDelta::from_millis(80)));
    assert_eq!(metrics.queuing_delay, Some(TimeDelta::ZERO));
    assert_eq!(metrics.acknowledged_bitrate, Some(kbps(1000)));
}

// [NADA §4.2]: p_loss never decays to zero; the ramp-up must not wait for that.
#[test]
fn ramp_up_returns_500_ms_after_a_loss_despite_its_smoothed_ratio() {
    let mut nada = nada(150, 300, 2500);
    feed(&mut nada, 0..10, |number| if number == 35 { lost(number) } else { packet(number) });
    feed(&mut nada, 10..200, packet);
    let metrics = nada.metrics();
    assert!(metrics.loss_ratio > 0.0 && metrics.loss_ratio < 1e-9, "{}", metrics.loss_ratio);
    assert_eq!(metrics.state, "accelerated ramp-up");
}

// [NADA §4.2]
#[test]
fn the_state_follows_the_newest_500_ms() {
    let mut nada = nada(150, 300, 2500);
    let mut state_after = |round: i64| {
        feed(&mut nada, round..round + 1, |n| if n == 35 { lost(n) } else { packet(n) });
        nada.metrics().state
    };
    let states: Vec<_> = (0..10).map(&mut state_after).collect();
    let ramp_up = |round: &usize| states[*round] == "accelerated ramp-up";
    assert_eq!((0..10).filter(ramp_up).collect::<Vec<_>>(), [0, 1, 2, 8, 9]);
}

/// A packet that was queued for `queue_us`.
fn queued(number: i64, queue_us: i64) -> PacketReport {
    let arrival_time = Some(at(10 * number + 40) + TimeDelta::from_micros(queue_us));
    PacketReport { arrival_time, ..packet(number) }
}

// [NADA §4.2]: the filtered delay must be below QEPS. One short delay in 15 is enough for that.
#[test]
fn the_ramp_up_ends_where_15_packets_in_a_row_waited_for_10_ms() {
    let state_after = |queue_us: &dyn Fn(i64) -> i64| {
        let mut nada = nada(150, 300, 2500);
        feed(&mut nada, 0..10, packet);
        feed(&mut nada, 10..15, |number| queued(number, queue_us(number)));
        nada.metrics().state
    };
    assert_eq!(state_after(&|_| 9_999), "accelerated ramp-up");
    assert_eq!(state_after(&|_| 10_000), "gradual update");
    assert_eq!(state_after(&|n| if n % 15 == 0 { 0 } else { 30_000 }), "accelerated ramp-up");
    assert_eq!(state_after(&|n| if n % 16 == 0 { 0 } else { 30_000 }), "gradual update");
}

// [NADA §4.2]: 60 ms count as 50 * exp(-0.5 * 10 / 50).
#[test]
fn a_long_queue_counts_for_less_while_a_loss_is_live() {
    let d_tilde = |is_lost: bool, turns_up: bool| {
        let mut nada = nada(150, 300, 2500);
        feed(&mut nada, 0..5, |n| if n == 35 && is_lost { lost(n) } else { packet(n) });
        feed(&mut nada, 5..7, |number| match number {
            50 if turns_up => PacketReport { recovered: true, ..packet(35) },
            _ => packet(number),
        });
        feed(&mut nada, 7..9, |number| queued(number, 60_000));
        nada.metrics().signals[1]
    };
    assert_eq!(d_tilde(false, false), ("d_tilde_ms", 60.0));
    let (_, warped) = d_tilde(true, false);
    assert!((warped - 45.242).abs() < 1e-3, "{warped}");
    assert_eq!(d_tilde(true, true), ("d_tilde_ms", 60.0));
}

// NADA-D17
#[test]
fn a_loss_counts_no_longer_once_the_path_was_calm() {
    let mut nada = nada(150, 300, 2500);
    feed(&mut nada, 0..10, |n| if n == 35 { lost(n) } else { packet(n) });
    assert_eq!(nada.metrics().state, "accelerated ramp-up");
    feed(&mut nada, 10..12, |number| queued(number, 60_000));
    assert_eq!(nada.metrics().signals[1], ("d_tilde_ms", 60.0));
}

// NADA-D18: the path is 100 ms longer each way from packet 100 on.
#[test]
fn a_path_that_is_longer_both_ways_keeps_the_rate() {
    let mut nada = nada(150, 300, 2500);
    feed(&mut nada, 0..30, packet);
    let before = nada.target().bitrate;
    for round in 30..60 {
        let later = |number| queued(number, 100_000);
        let packets: Vec<_> = (10 * round..10 * (round + 1)).map(later).collect();
        let report = FeedbackReport { packets, ..FeedbackReport::default() };
        nada.on_feedback(at(100 * round + 370), &report);
    }
    assert_eq!(nada.metrics().queuing_delay, Some(TimeDelta::ZERO));
    assert!(nada.target().bitrate >= before, "{}", nada.target().bitrate);
}

// [NADA §5.1.2]
#[test]
fn the_smoothed_ratios_settle_at_the_shares_of_packets() {
    let limits = RateLimits::new(kbps(150), kbps(300), kbps(2500)).unwrap();
    let mut nada = Nada::new(Settings { ecn: EcnMode::Classic, ..Settings::new(limits) });
    feed(&mut nada, 0..100, |number| match number % 25 {
        3 | 9 => lost(number),
        14 => PacketReport { ecn: Ecn::Ce, ..packet(number) },
        _ => packet(number),
    });
    let metrics = nada.metrics();
    assert!((metrics.loss_ratio - 0.08).abs() < 1e-3, "{}", metrics.loss_ratio);
    let (_, marking_ratio) = metrics.signals[3];
    assert!((marking_ratio - 0.04).abs() < 1e-3, "{marking_ratio}");
}

// [RFC8699 §5.3.1]
#[test]
fn a_share_of_a_coupled_rate_is_the_target_at_once() {
    let mut nada = nada(150, 300, 2500);
    feed(&mut nada, 0..10, packet);
    nada.on_shared_rate(at(1100), kbps(700));
    assert_eq!((nada.target().bitrate, nada.metrics().reason), (kbps(700), Reason::Coupled));
}

// NADA-D5
#[test]
fn a_packet_that_turns_up_ends_the_gradual_update_at_once() {
    let mut nada = nada(150, 300, 2500);
    feed(&mut nada, 0..4, |number| if number == 35 { lost(number) } else { packet(number) });
    assert_eq!(nada.metrics().state, "gradual update");
    feed(&mut nada, 4..5, |number| match number {
        40 => PacketReport { recovered: true, arrival_time: Some(at(395)), ..packet(35) },
        _ => packet(number),
    });
    assert_eq!(nada.metrics().state, "accelerated ramp-up");
}

// NADA-D4
#[test]
fn reports_of_nothing_but_losses_lower_the_rate_to_the_minimum() {
    let mut nada = nada(150, 300, 2500);
    feed(&mut nada, 0..10, packet);
    feed(&mut nada, 10..20, lost);
    assert_eq!(nada.target().bitrate, kbps(150));
    assert_eq!(nada.metrics().reason, Reason::Loss);
}

// [NADA §4.2]: a queue of 20 ms causes gradual update, in which marks count.
#[test]
fn marks_lower_the_rate_and_are_named_as_the_reason() {
    let limits = RateLimits::new(kbps(150), kbps(300), kbps(2500)).unwrap();
    let run = |ecn| {
        let mut nada = Nada::new(Settings { ecn: EcnMode::Classic, ..Settings::new(limits) });
        feed(&mut nada, 0..10, packet);
        feed(&mut nada, 10..13, |number| PacketReport {
            arrival_time: Some(at(10 * number + 60)),
            ecn,
            ..packet(number)
        });
        (nada.target().bitrate, nada.metrics().reason)
    };
    let (marked, unmarked) = (run(Ecn::Ce), run(Ecn::Ect0));
    assert!(marked.0 < unmarked.0, "{marked:?} {unmarked:?}");
    assert_eq!(marked.1, Reason::Ecn);
}

// [NADA §5.2.2], NADA-D10
#[test]
fn a_full_send_queue_lowers_the_target_and_raises_the_pacing_rate() {
    let mut nada = nada(150, 300, 1000);
    feed(&mut nada, 0..10, packet);
    assert_eq!(nada.target().bitrate, kbps(1000));
    nada.on_media_queued(at(1075), DataSize::from_bytes(9000), DataSize::from_bytes(9000));
    assert_eq!(nada.target().bitrate, kbps(1000));
    feed(&mut nada, 10..11, packet);
    assert_eq!((nada.target().bitrate, nada.metrics().reason), (kbps(950), Reason::SendQueue));
    assert_eq!(nada.target().pacing_rate, kbps(1000), "RMAX bounds the sending rate");
}

// NADA-D9
#[test]
fn silence_halves_the_rate_each_time_it_lasts_too_long() {
    let mut nada = nada(150, 300, 2500);
    feed(&mut nada, 0..10, packet);
    let before = nada.target().bitrate;
    let sent = SentPacket {
        sequence_number: 100,
        size: DataSize::from_bytes(1250),
        queued: DataSize::ZERO,
        probe: None,
        padding: false,
    };
    nada.on_packet_sent(at(2000), &sent);
    assert_eq!(nada.next_timeout(), Some(at(2000 + 80 + 500)));
    nada.on_timeout(at(2580));
    assert_eq!(nada.target().bitrate, before * 0.5);
    assert_eq!(nada.metrics().reason, Reason::FeedbackLost);
    assert_eq!(nada.next_timeout(), None);
    nada.on_packet_sent(at(2590), &sent);
    assert!(nada.next_timeout() > Some(at(2590)));
}

#[test]
fn clocks_with_any_offset_give_the_same_rates() {
    let run = |offset| {
        let mut nada = nada(150, 300, 2500);
        feed(&mut nada, 0..30, |number| {
            let queue = TimeDelta::from_micros(number * number % 37 * 1000);
            let packet = packet(number);
            PacketReport { arrival_time: packet.arrival_time.map(|t| t + queue + offset), ..packet }
        });
        (nada.target(), nada.metrics())
    };
    let hours = |hours: i64| TimeDelta::from_secs(3600 * hours);
    assert_eq!(run(hours(0)), run(hours(5)));
    assert_eq!(run(hours(0)), run(hours(-5)));
}

#[test]
fn a_minimum_equal_to_the_maximum_holds_through_everything() {
    let mut nada = nada(500, 500, 500);
    feed(&mut nada, 0..5, packet);
    feed(&mut nada, 5..10, lost);
    nada.on_timeout(at(99_000));
    assert_eq!((nada.target().bitrate, nada.target().pacing_rate), (kbps(500), kbps(500)));
    assert_eq!(nada.metrics().reason, Reason::Start);
}

#[test]
fn an_empty_report_changes_nothing() {
    let mut nada = nada(150, 300, 2500);
    nada.on_feedback(at(0), &FeedbackReport::default());
    assert_eq!(nada.target().bitrate, kbps(300));
    assert_eq!(nada.metrics().acknowledged_bitrate, None);
}

fn marked(number: i64) -> PacketReport {
    PacketReport { ecn: if number % 20 == 0 { Ecn::Ce } else { Ecn::Ect0 }, ..packet(number) }
}

// NADA-D11
#[test]
fn a_mark_ends_the_ramp_up_and_lowers_the_rate_but_only_with_ecn() {
    let limits = RateLimits::new(kbps(150), kbps(300), kbps(2500)).unwrap();
    let run = |ecn| {
        let mut nada = Nada::new(Settings { ecn, ..Settings::new(limits) });
        feed(&mut nada, 0..10, packet);
        feed(&mut nada, 10..60, marked);
        (nada.target().bitrate, nada.metrics().state)
    };
    for ecn in [EcnMode::Classic, EcnMode::L4s] {
        let (bitrate, state) = run(ecn);
        assert_eq!(state, "gradual update");
        assert!(bitrate < kbps(1_000), "{bitrate}");
    }
    assert_eq!(run(EcnMode::Off), (Bitrate::from_bps(1_166_667), "accelerated ramp-up"));
}

// NADA-D12
#[test]
fn a_new_clock_moves_neither_signal_nor_mode() {
    let mut nada = nada(150, 300, 2500);
    feed(&mut nada, 0..10, packet);
    let before = nada.metrics();
    let later = |number| {
        let arrival_time = Some(at(10 * number + 90_040));
        PacketReport { arrival_time, ..packet(number) }
    };
    let report = FeedbackReport {
        packets: (100..110).map(later).collect(),
        new_clock: true,
        ..FeedbackReport::default()
    };
    nada.on_feedback(at(1_170), &report);
    let after = nada.metrics();
    assert_eq!((after.queuing_delay, after.state), (before.queuing_delay, before.state));
}

// NADA-D12: the new clock is 30 ms behind, and the queuing delay is 40 ms.
#[test]
fn a_new_clock_keeps_a_queue_and_counts_what_arrives_anew() {
    let mut nada = nada(150, 300, 2500);
    feed(&mut nada, 0..10, packet);
    feed(&mut nada, 10..12, |number| queued(number, 40_000));
    assert!(nada.metrics().acknowledged_bitrate > Some(kbps(900)));
    let report = FeedbackReport {
        packets: (120..130).map(|number| queued(number, 10_000)).collect(),
        new_clock: true,
        ..FeedbackReport::default()
    };
    nada.on_feedback(at(1_370), &report);
    let metrics = nada.metrics();
    assert_eq!(metrics.queuing_delay, Some(TimeDelta::from_millis(40)));
    assert_eq!(metrics.acknowledged_bitrate, Some(kbps(200)), "10 packets in 500 ms");
}
