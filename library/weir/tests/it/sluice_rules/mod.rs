//! The rules of `docs/reference/controllers/sluice.md`, in their order, each as a test of what a
//! caller can see. They are written from that page, not from the code.
//!
//! Most tests choose the delay of each packet by hand: 2 Mbit/s arrive, and no queue answers to the
//! target. The unit is the time between two reports, 50 ms.

mod clocks;
mod feed;
mod hand_over;
mod limited;
mod marks;
mod memory;
mod policer;
mod radio;

use std::collections::VecDeque;

use feed::{Feed, ONE_WAY, PACKETS, comes, kbps, ms, near};
use weir::Controller;
use weir::controller::{Burst, EcnMode, RateLimits, Reason, Settings};
use weir::feedback::{Ecn, FeedbackReport, PacketReport, SentPacket};
use weir::units::{Bitrate, DataSize, TimeDelta};

// S-1
#[test]
fn the_standing_queue_is_the_least_delay_of_two_buckets_and_the_open_one() {
    let mut feed = Feed::settled();
    // The packets of a frame wait for each other; only the shortest wait counts.
    (0..4).for_each(|_| feed.window(&[60, 70, 80, 30, 90]));
    near(feed.signal("queue_ms"), 30.0, 0.1);
    feed.window(&[90]);
    near(feed.signal("queue_ms"), 30.0, 0.1);
    (0..2).for_each(|_| feed.window(&[90]));
    near(feed.signal("queue_ms"), 90.0, 0.1);
}

// S-2
#[test]
fn the_base_is_the_smallest_delay_of_two_periods_of_15_s() {
    let mut feed = Feed::new(2_000);
    feed.run(1_000, 0);
    feed.run(9_000, 20);
    near(feed.signal("queue_ms"), 20.0, 0.1);
    // A drain has no base tests (S-20).
    feed.grow(80);
    feed.run(3_000, 80);
    near(feed.signal("queue_ms"), 80.0, 0.1);
    feed.run(30_000, 80);
    near(feed.signal("queue_ms"), 0.0, 0.1);
}

// S-2
#[test]
fn another_format_begins_a_new_base() {
    let mut feed = Feed::settled();
    feed.clock = ms(-5_000);
    feed.new_clock = true;
    feed.run(500, 14);
    near(feed.signal("queue_ms"), 0.0, 0.1);
}

// S-3: a gain of 1/64, and at most 30 ms a difference.
#[test]
fn the_noise_is_the_mean_difference_of_buckets() {
    let mut feed = Feed::settled();
    let before = feed.signal("noise_ms");
    feed.run(50, 214);
    near(feed.signal("noise_ms"), before + (30.0 - before) / 64.0, 0.01);
    for _ in 0..300 {
        feed.run(50, 10);
        feed.run(50, 14);
    }
    near(feed.signal("noise_ms"), 4.0, 0.1);
}

// S-4
#[test]
fn the_delivered_rate_is_what_arrived_by_the_receivers_clock() {
    let mut feed = Feed::settled();
    let delivered = |feed: &Feed| feed.sluice.metrics().acknowledged_bitrate.unwrap().as_kbps_f64();
    near(delivered(&feed), 2_000.0, 40.0);
    feed.is_lost = |number| number % 2 == 0;
    feed.run(1_000, 14);
    // The odd half has 1300 bytes a packet.
    near(delivered(&feed), 1_040.0, 40.0);
    feed.is_lost = |_| false;
    // The queue grows by 10 ms a window: what is sent in 50 ms arrives in 60.
    let mut feed = Feed::settled();
    for window in 0..12 {
        let queue: Vec<i64> = (0..10).map(|packet| 14 + 10 * window + packet).collect();
        feed.window(&queue);
    }
    near(delivered(&feed), 2_000.0 * 50.0 / 60.0, 60.0);
}

// S-5: 10 ms are two packets of 1250 bytes at 2 Mbit/s.
#[test]
fn the_reference_is_5_ms_noise_and_two_packets() {
    let mut feed = Feed::settled();
    let packets_ms = |feed: &Feed| 2.0 * 1_250.0 * 8.0 / feed.target();
    let noise = feed.signal("noise_ms");
    near(feed.signal("reference_ms"), 5.0 + 1.5 * noise + packets_ms(&feed), 0.3);
    (0..300_i64).for_each(|window| drop(feed.run(50, 2 + 30 * (window % 10 - 5).abs())));
    let noise = feed.signal("noise_ms");
    near(feed.signal("reference_ms"), 45.0 + packets_ms(&feed).min(30.0), 0.5);
    assert!(5.0 + 1.5 * noise > 45.0, "the noise of {noise} ms reaches the limit");
}

// S-6
#[test]
fn losses_count_only_if_they_come_with_the_queue_or_are_more_than_a_fifth() {
    let beside = |idle: fn(i64) -> bool, standing: fn(i64) -> bool| {
        let (mut feed, mut reasons) = (Feed::new(2_000), Vec::new());
        for _ in 0..20 {
            feed.is_lost = idle;
            feed.run(500, 2);
            feed.is_lost = standing;
            feed.run(500, 20);
            reasons.extend(feed.reasons.clone());
        }
        reasons.contains(&Reason::Loss)
    };
    let tenth = |number| number % 10 == 0;
    let quarter = |number| number % 4 == 0;
    assert!(!beside(tenth, tenth), "as many without a queue");
    assert!(beside(|_| false, tenth), "only while a queue stands");
    assert!(!beside(quarter, quarter), "a base loss of a quarter");
    let mut feed = Feed::settled();
    feed.is_lost = |number| number % 4 == 0;
    feed.run(5_000, 14);
    assert!(feed.reasons.contains(&Reason::Loss), "a quarter where none was lost before");
}

// S-7: the scale falls to 0.85 at most once per round trip of 300 ms, that is in each sixth report.
#[test]
fn congestion_takes_15_percent_of_level_and_scale_once_a_round_trip() {
    let mut feed = Feed::settled();
    feed.is_lost = |number| number % 3 == 0;
    let mut scales = vec![feed.signal("scale_ratio")];
    for _ in 0..60 {
        feed.run(50, 14);
        scales.push(feed.signal("scale_ratio"));
    }
    let falls: Vec<usize> = (1..scales.len()).filter(|at| scales[*at] < scales[at - 1]).collect();
    assert!(falls.len() >= 2 && falls.windows(2).all(|pair| pair[1] - pair[0] >= 6), "{falls:?}");
    for at in falls {
        near(scales[at] / scales[at - 1], 0.85, 0.001);
    }
    feed.is_lost = |_| false;
    feed.run(4_000, 14);
    let before = feed.signal("scale_ratio");
    feed.run(1_000, 14);
    near(feed.signal("scale_ratio") / before, 1.02, 0.002);
}

fn with_ecn(ecn: EcnMode) -> Feed {
    let limits = RateLimits::new(kbps(150), kbps(2_000), kbps(20_000)).unwrap();
    Feed::with(Settings::new(limits).with_ecn(ecn)).settle()
}

// S-7
#[test]
fn a_classic_mark_counts_as_a_loss() {
    let mut feed = with_ecn(EcnMode::Classic);
    let scale = feed.signal("scale_ratio");
    feed.ecn = Ecn::Ce;
    feed.run(50, 14);
    assert_eq!(feed.reasons, [Reason::Ecn]);
    near(feed.signal("scale_ratio") / scale, 0.85, 0.002);
}

// S-8: all packets of the round trip before are unmarked, all of this report are marked.
#[test]
fn under_l4s_a_marked_round_trip_takes_half_of_alpha() {
    let mut feed = with_ecn(EcnMode::L4s);
    let before = feed.signal("level_kbps");
    feed.ecn = Ecn::Ce;
    feed.run(50, 14);
    assert_eq!(feed.reasons, [Reason::Ecn]);
    near(feed.signal("scale_ratio"), 1.0, 0.0);
    // The share since the last look is between one report of seven and all.
    let alpha = 2.0 * (1.0 - feed.signal("level_kbps") / before);
    assert!((1.0 / 16.0 / 7.0..=1.0 / 16.0 + 0.001).contains(&alpha), "{alpha}");
    // Then half a packet of 1500 bytes in a round trip, per round trip, for 2 s.
    feed.ecn = Ecn::Ect1;
    let levels = feed.run(1_000, 0);
    let per_s = 0.5 * 1_500.0 * 8.0 / 0.3 / 0.3 / 1_000.0;
    near((levels[19].1 - levels[9].1) / 0.5, per_s, per_s * 0.1);
}

// S-9
#[test]
fn the_start_grows_by_1_6_a_second_until_the_queue_is_10_ms_up() {
    let mut feed = Feed::new(500);
    let grown = feed.run(1_000, 0);
    let [first, last] = [grown[8].0, grown[18].0];
    near((last / first).ln() / 0.5, 1.6, 0.01);
    assert_eq!(feed.reasons.last(), Some(&Reason::RampUp));
    feed.run(300, 60);
    assert_eq!(feed.state(), "drain");
    near(feed.signal("level_kbps"), 2_000.0, 700.0);
}

// With eight tenths of the packets, the level falls to eight tenths by a time constant of 300 ms.
// S-10
#[test]
fn while_a_queue_stands_the_level_follows_the_delivered_rate() {
    let mut feed = Feed::settled();
    feed.packets = PACKETS * 8 / 10;
    feed.run(300, 14);
    let levels = feed.run(3_000, 14);
    near(levels[59].1, 1_600.0, 20.0);
    let after =
        levels.iter().position(|(_, level)| *level < 1_600.0 + 400.0 * (-1.0_f64).exp()).unwrap();
    assert!((6..20).contains(&after), "{after} reports for window and time constant");
}

// S-11: 0.03 / s, twice as much with each 250 ms, up to 0.9 / s.
#[test]
fn without_a_queue_the_growth_doubles_each_250_ms() {
    let mut feed = Feed::settled();
    // Twice as much is sent from the sixth report on, so that S-21 is no limit.
    feed.packets = 2 * PACKETS;
    let levels = feed.run(2_000, 0);
    let growth = |at: usize| (levels[at + 1].1 / levels[at].1).ln() / 0.05;
    near(growth(4) / growth(0), 2.0_f64.powf(200.0 / 250.0), 0.01);
    near(growth(0), 0.03, 0.005);
    near(growth(35), 0.9, 0.001);
}

// S-11: half of what was there before the drain came back at once.
#[test]
fn below_nine_tenths_of_the_level_before_growth_is_0_3_at_least() {
    let mut feed = Feed::settled();
    feed.packets = PACKETS / 2;
    feed.run(300, 14);
    feed.run(600, 60);
    assert_eq!(feed.state(), "drain");
    let levels = feed.run(500, 0);
    let growth = (levels[3].1 / levels[2].1).ln() / 0.05;
    near(growth, 0.3, 0.01);
}

// S-13
#[test]
fn in_track_the_rate_is_the_level_less_what_the_queue_is_too_long() {
    let mut feed = Feed::settled();
    feed.run(3_000, 20);
    let above_s = (20.0 - feed.signal("reference_ms")) / 1_000.0;
    near(feed.target(), feed.signal("level_kbps") * (1.0 - above_s / 0.3), 2.0);
}

// S-13
#[test]
fn a_drain_sends_what_arrives_less_the_excess_queue_but_half_at_least() {
    let mut feed = Feed::settled();
    feed.grow(60);
    feed.run(1_000, 60);
    assert_eq!(feed.state(), "drain");
    let above_s = (60.0 - feed.signal("reference_ms")) / 1_000.0;
    near(feed.target(), 2_000.0 * (1.0 - above_s / 0.3), 60.0);
    feed.grow(250);
    feed.run(1_000, 250);
    near(feed.target(), 1_000.0, 30.0);
}

// S-15, S-16
#[test]
fn three_seconds_and_a_round_trip_of_crowding_mean_a_rival() {
    let mut feed = Feed::settled();
    feed.grow(120);
    let before = feed.signal("crowded_s");
    feed.run(2_700, 120);
    assert_ne!(feed.state(), "compete");
    let crowded = feed.signal("crowded_s");
    // The last report of the growth was on 114 ms, so the next one came 6 ms later.
    near(crowded, before + 2.706, 0.001);
    feed.shrink(0);
    let crowded = feed.signal("crowded_s");
    feed.run(1_000, 0);
    near(feed.signal("crowded_s"), crowded - 0.4, 0.01);
    feed.grow(120);
    feed.run(1_000, 120);
    assert_eq!(feed.state(), "compete");
    assert!(feed.reasons.contains(&Reason::Competing));
    let mut falling = Feed::settled();
    falling.grow(280);
    for step in 0..80 {
        falling.run(50, 280 - step * 3);
    }
    assert_ne!(falling.state(), "compete", "it falls by 60 ms a second");
}

// S-15
#[test]
fn after_two_seconds_of_crowding_a_drain_keeps_a_fifth_of_the_level() {
    let mut feed = Feed::settled();
    let before = feed.signal("level_kbps");
    feed.grow(120);
    // One packet in 50 ms arrives: others have the rest.
    feed.packets = 1;
    while feed.signal("crowded_s") < 1.9 {
        feed.run(50, 120);
    }
    assert!(feed.target() < before * 0.15, "{}", feed.target());
    while feed.state() == "drain" {
        feed.run(50, 120);
    }
    assert_eq!(feed.state(), "compete");
    near(feed.target(), before * 0.2, before * 0.02);
}

fn competing() -> Feed {
    let mut feed = Feed::settled();
    feed.grow(120);
    while feed.signal("crowded_s") < 3.4 {
        feed.run(50, 120);
    }
    feed.run(100, 120);
    assert_eq!(feed.state(), "compete");
    feed
}

// S-16: 1.5 packets of 1500 bytes in a round trip of 300 ms, per round trip; a loss takes a fifth.
#[test]
fn the_rate_of_a_flow_that_competes_grows_as_tcps_does() {
    let mut feed = competing();
    let grown = feed.run(1_000, 120);
    let per_s = 1.5 * 1_500.0 * 8.0 / 0.3 / 0.3 / 1_000.0;
    near((grown[19].0 - grown[9].0) / 0.5, per_s, per_s * 0.05);
    feed.is_lost = |number| number % 3 == 0;
    let mut before = feed.target();
    for _ in 0..20 {
        feed.run(50, 120);
        if feed.reasons == [Reason::Loss] {
            near(feed.target() / before, 0.8, 0.01);
            return;
        }
        before = feed.target();
    }
    panic!("no response to a third of the packets lost");
}

// S-16: at 40 packets a second a ratio needs a second after each response; of a half that is lost,
// nine are enough.
#[test]
fn a_competing_flow_does_not_wait_for_40_packets_to_see_half_lost() {
    let mut feed = competing();
    feed.packets = 2;
    feed.run(1_000, 120);
    feed.is_lost = |number| number % 2 == 0;
    feed.run(1_000, 120);
    let rates = feed.run(2_000, 120);
    let mut falls = (1..rates.len()).filter(|&at| rates[at].0 < rates[at - 1].0 * 0.85);
    let first = falls.next().expect("a response");
    let apart = falls.next().expect("another") - first;
    assert!((8..=10).contains(&apart), "{apart} reports, where 40 packets take 20");
}

// S-17: without a loss the first test comes after 9 s, takes half of the rate, and lasts 1.3 s.
#[test]
fn the_test_of_a_rival_halves_the_rate_and_believes_an_emptier_queue() {
    let test = |feed: &mut Feed| {
        let mut before = feed.target();
        for report in 0..400 {
            feed.run(50, 120);
            if feed.reasons == [Reason::BaseTest] {
                near(feed.target() / before, 0.5, 0.01);
                return report;
            }
            before = feed.target();
        }
        panic!("no test of the rival");
    };
    let mut feed = competing();
    assert!((178..=184).contains(&test(&mut feed)));
    let before = feed.target();
    feed.run(1_500, 120);
    near(feed.target() / before, 2.0, 0.1);
    assert_eq!(feed.state(), "compete", "the queue is refilled, so the rival is there");
    let mut feed = competing();
    test(&mut feed);
    feed.run(200, 50);
    assert_ne!(feed.state(), "compete", "nobody refills it");
}

// S-17
#[test]
fn a_second_of_calm_or_a_queue_of_more_than_a_second_ends_the_competition() {
    let mut feed = competing();
    feed.shrink(2);
    feed.run(850, 2);
    assert_eq!(feed.state(), "compete");
    feed.run(300, 2);
    assert_ne!(feed.state(), "compete");
    let mut feed = Feed::new(2_000);
    feed.rtt = ms(1_500);
    feed.run(1_800, 0);
    feed.grow(900);
    feed.run(4_000, 900);
    assert_eq!(feed.state(), "compete");
    feed.grow(1_050);
    feed.run(200, 1_050);
    assert_ne!(feed.state(), "compete");
}

// S-19
#[test]
fn a_delay_that_steps_by_100_ms_and_stays_is_a_longer_path() {
    let mut feed = Feed::settled();
    feed.run(700, 114);
    assert_eq!(feed.state(), "drain");
    feed.run(500, 114);
    assert_eq!(feed.state(), "track");
    near(feed.signal("queue_ms"), 0.0, 0.1);
}

// S-20: the round trip of 300 ms and 100 ms.
#[test]
fn the_base_is_tested_after_10_s_without_a_sight_of_the_empty_path() {
    let mut feed = Feed::settled();
    feed.run(200, 0);
    feed.run(9_800, 14);
    assert!(!feed.reasons.contains(&Reason::BaseTest));
    let tested = feed.run(600, 14);
    let at = feed.reasons.iter().position(|reason| *reason == Reason::BaseTest).expect("a test");
    near(tested[at].0, 0.75 * 2_000.0, 40.0);
    let factors: Vec<bool> = (0..20)
        .map(|_| {
            feed.run(50, 14);
            feed.pacing_factor() < 1.06
        })
        .collect();
    assert!(!factors[12], "the test is over: {factors:?}");
}

// S-21
#[test]
fn no_growth_leads_above_one_and_a_half_times_what_is_sent() {
    let mut feed = Feed::new(500);
    feed.run(10_000, 0);
    near(feed.target(), 1.5 * 2_000.0, 60.0);
    // The sent rate is known after half of the window of 500 ms. Then a larger start does not grow.
    let grown = Feed::new(5_000).run(10_000, 0);
    near(grown.last().unwrap().0, grown[12].0, 0.0);
}

// S-21
#[test]
fn the_rate_falls_at_once_and_rises_by_9_4_percent_in_100_ms_at_most() {
    let mut feed = Feed::settled();
    feed.grow(250);
    feed.run(1_000, 250);
    let low = feed.target();
    assert!(low < 1_100.0, "{low}");
    // A queue falls by no more than the time that passes.
    let mut rise: Vec<_> = (0..5).flat_map(|step| feed.run(50, 210 - step * 45)).collect();
    rise.extend(feed.run(2_000, 14));
    let steps = rise.windows(2).map(|pair| (pair[1].0 / pair[0].0).ln() / 0.05);
    near(steps.fold(0.0, f64::max), 0.9, 0.001);
}

// S-23: a round trip of 300 ms and 500 ms, and again.
#[test]
fn missing_feedback_halves_the_target_again_and_again() {
    let mut feed = Feed::settled();
    let before = feed.target();
    let mut halvings = Vec::new();
    for step in 0..50 {
        let now = feed.now + ms(50) * step;
        feed.sluice.on_packet_sent(now, &SentPacket::new(feed.number, DataSize::from_bytes(1_250)));
        feed.number += 1;
        let due = feed.sluice.next_timeout().expect("a deadline");
        if due <= now {
            feed.sluice.on_timeout(now);
            halvings.push(feed.target() / before);
        }
    }
    assert_eq!(feed.sluice.metrics().reason, Reason::FeedbackLost);
    assert!((2..=3).contains(&halvings.len()), "{halvings:?}");
    near(halvings[0], 0.5, 0.001);
    near(halvings[1], 0.25, 0.001);
}

// S-23
#[test]
fn reports_that_call_every_packet_lost_are_no_feedback() {
    let mut feed = Feed::settled();
    let before = feed.target();
    let mut halvings = 0;
    for step in 0..50 {
        let now = feed.now + ms(50) * step;
        let sent = SentPacket::new(feed.number, DataSize::from_bytes(1_250));
        feed.sluice.on_packet_sent(now, &sent);
        let lost = PacketReport::new(feed.number, sent.size, now);
        feed.sluice.on_feedback(now + ms(50), &FeedbackReport::new(vec![lost]));
        feed.number += 1;
        if feed.sluice.next_timeout().is_some_and(|due| due <= now) {
            feed.sluice.on_timeout(now);
            halvings += 1;
        }
    }
    assert!((2..=3).contains(&halvings), "{halvings}");
    near(feed.target() / before, 0.5f64.powi(halvings), 0.001);
}

// S-24
#[test]
fn packets_leave_singly_at_1_4_times_the_target_1_05_in_a_drain_and_l4s() {
    let mut feed = Feed::settled();
    near(feed.pacing_factor(), 1.4, 0.001);
    assert_eq!(feed.sluice.target().burst, Burst::Ahead(TimeDelta::ZERO));
    feed.grow(60);
    assert_eq!(feed.state(), "drain");
    near(feed.pacing_factor(), 1.05, 0.001);
    near(with_ecn(EcnMode::L4s).pacing_factor(), 1.05, 0.001);
}

// S-25
#[test]
fn the_target_is_within_limits_receivers_limit_and_coupled_share() {
    let mut feed = Feed::settled();
    feed.sluice.on_receiver_limit(feed.now, Some(kbps(700)));
    near(feed.target(), 700.0, 0.0);
    feed.run(1_000, 14);
    near(feed.target(), 700.0, 0.0);
    feed.sluice.on_receiver_limit(feed.now, None);
    near(feed.target(), 2_000.0, 100.0);
    feed.sluice.on_shared_rate(feed.now, kbps(900));
    assert_eq!((feed.target(), feed.sluice.metrics().reason), (900.0, Reason::Coupled));
    feed.sluice.on_shared_rate(feed.now, kbps(50));
    near(feed.target(), 150.0, 0.0);
}

/// A flow of 1.3 Mbit/s beside a load of 0.7 in a queue of 2 Mbit/s, which grows to 45 ms and stays
/// there.
fn beside_others() -> Feed {
    through_queue(kbps(2_000), 0.35, 3, 60)
}

/// A flow of 1.3 Mbit/s through a queue of this capacity, of which others take this part, and 0.3
/// more in the first reports. A report comes every 49 ms.
fn through_queue(capacity: Bitrate, others: f64, first: u32, reports: u32) -> Feed {
    let mut feed = Feed::new(1_200);
    feed.packets = 6;
    feed.run(400, 0);
    let (mut at, mut sent) = (feed.now, VecDeque::new());
    let mut free_at = at;
    for report in 0..reports {
        let others = if report < first { others + 0.3 } else { others };
        // Gaps and sizes of a source that varies: the two factors differ.
        let packets = (0..7).map(|_| {
            let gap = ms(if feed.number % 3 == 0 { 11 } else { 5 });
            let size = DataSize::from_bytes(if feed.number % 2 == 0 { 1_000 } else { 1_275 });
            at += gap;
            free_at += size / capacity + gap * others;
            feed.sluice.on_packet_sent(at, &SentPacket::new(feed.number, size));
            feed.number += 1;
            let report = PacketReport::new(feed.number - 1, size, at);
            report.with_arrival_time(Some(free_at + ONE_WAY))
        });
        let packets = packets.collect();
        sent.push_back(FeedbackReport::new(packets));
        if sent.len() > 6 {
            let report = sent.pop_front().expect("a report");
            feed.sluice.on_feedback(comes(at + ms(6), &report), &report);
        }
    }
    feed
}

// S-15
#[test]
fn a_queue_of_a_flow_that_is_alone_is_no_rivals() {
    let beside = through_queue(kbps(2_000), 0.35, 7, 140);
    assert_eq!(beside.state(), "compete");
    let alone = through_queue(kbps(1_300), 0.0, 7, 140);
    assert!(alone.signal("queue_ms") > 70.0 && alone.signal("share_ratio") > 0.9);
    assert!(alone.signal("crowded_s") > 3.3);
    assert_ne!(alone.state(), "compete");
}

// S-26
#[test]
fn the_gaps_of_packets_that_wait_tell_the_part_of_others() {
    near(beside_others().signal("share_ratio"), 0.65, 0.03);
    near(Feed::new(2_000).signal("share_ratio"), 1.0, 0.0);
}

// S-27: with an own part of 0.65 the surplus is a half.
#[test]
fn a_flow_with_more_than_its_part_wants_a_shorter_queue() {
    let feed = beside_others();
    let surplus = (feed.signal("share_ratio") - 0.55) / 0.2;
    let noise = feed.signal("noise_ms");
    let alone = 5.0 + 1.5 * noise + (2.0 * 1_140.0 * 8.0 / feed.target()).min(30.0);
    let wanted = (alone * (1.0 - surplus * 0.7)).max(5.0 + noise);
    near(feed.signal("reference_ms"), wanted, 1.5);
}
