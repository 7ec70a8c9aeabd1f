//! Tests the whole controller with single reports. Closed-loop tests are in tests/it/closed_loop.

use super::*;
use crate::controllers::scream_common::testing::{SIZE, round, round_with_ecn};
use crate::feedback::Ecn;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}
fn kbps(kbps: u64) -> Bitrate {
    Bitrate::from_kbps(kbps)
}
fn controller(options: Options) -> ScreamV2 {
    let limits = RateLimits::new(kbps(50), kbps(300), kbps(2_500)).unwrap();
    ScreamV2::with_options(limits, options)
}

// [SCREAMV2 §4.5.4]: a varying queue changes the delay target only if there are losses, too.
#[test]
fn a_queue_with_losses_raises_the_delay_target_and_one_without_does_not() {
    let target = |loses: bool| {
        let mut scream = controller(Options::default());
        (0..5).for_each(|number| round(&mut scream, number, false, |_| Some(30)));
        for number in 5..35 {
            let lost = |index| loses && index == 5;
            round(&mut scream, number, false, |index| (!lost(index)).then_some(180));
        }
        scream.delay_target.value()
    };
    assert_eq!(target(false), QDELAY_TARGET_LO);
    assert!(target(true) > QDELAY_TARGET_LO * 1.5, "{}", target(true));
}

// [SCREAMV2 §4.2.1.4]
#[test]
fn a_delay_that_swings_calms_the_window_and_a_steady_one_does_not() {
    let scale = |swing: i64| {
        let mut scream = controller(Options { reduce_jitter: true });
        for number in 0..400 {
            round(&mut scream, number, false, |_| Some(30 + swing * (number % 2)));
        }
        scream.jitter_scale()
    };
    assert!(scale(0) > 0.99);
    assert_eq!(scale(40), 0.0);
}

// SCREAMV2-D7: the new clock is 30 ms behind, and the queuing delay is 40 ms.
#[test]
fn a_new_clock_keeps_the_queue() {
    let mut scream = controller(Options::default());
    round(&mut scream, 0, false, |_| Some(30));
    round(&mut scream, 1, false, |_| Some(70));
    let queue = Some(TimeDelta::from_millis(40));
    assert_eq!(scream.metrics().queuing_delay, queue);
    round(&mut scream, 2, true, |_| Some(40));
    assert_eq!(scream.metrics().queuing_delay, queue);
}

// [SCREAMV2 §4.1.1]
#[test]
fn the_most_bytes_in_flight_are_those_of_this_round_trip_and_the_last() {
    let mut scream = controller(Options::default());
    round(&mut scream, 0, false, |_| Some(30));
    round(&mut scream, 1, false, |_| Some(30));
    assert_eq!(scream.round_trip_flight.previous(), SIZE * 10.0);
    let nothing = FeedbackReport::default();
    scream.on_feedback(at(2_000), &nothing);
    scream.on_feedback(at(3_000), &nothing);
    assert_eq!(scream.round_trip_flight.max(), DataSize::ZERO);
}

/// The ratio of the windows after and before a round of ten packets, and the last reason.
fn reaction(settings: Settings, fate: impl Fn(i64) -> (Option<i64>, Ecn)) -> (f64, Reason) {
    let mut scream = ScreamV2::new(settings);
    (0..3).for_each(|number| {
        round_with_ecn(&mut scream, number, false, |_| (Some(30), Ecn::Ect0));
    });
    assert_eq!(scream.metrics().reason, Reason::RampUp);
    let before = scream.window.size();
    round_with_ecn(&mut scream, 3, false, fate);
    (scream.window.size() / before, scream.metrics().reason)
}

// [SCREAMV2 §4.2.2.1]: the report that shows the congestion also lets the window grow by a few
// percent.
#[test]
fn a_loss_takes_30_percent_of_the_window_a_classic_mark_20_with_ecn() {
    let settings =
        |ecn| Settings { ecn, ..Settings::new(controller(Options::default()).settings.limits) };
    let marked = |index| (Some(30), if index == 2 { Ecn::Ce } else { Ecn::Ect0 });
    let lost = |index: i64| ((index != 2).then_some(30), Ecn::Ce);
    let (window, reason) = reaction(settings(EcnMode::Classic), lost);
    assert!((0.7..0.76).contains(&window), "{window}");
    assert_eq!(reason, Reason::Loss, "loss outranks marks");
    let (window, reason) = reaction(settings(EcnMode::Classic), marked);
    assert!((0.8..0.86).contains(&window), "{window}");
    assert_eq!(reason, Reason::Ecn);
    let (window, reason) = reaction(settings(EcnMode::Off), marked);
    assert!(window >= 1.0, "{window}");
    assert_eq!(reason, Reason::RampUp);
}

// SCREAMV2-D8
#[test]
fn one_loss_without_a_queue_takes_nothing_where_random_loss_is_tolerated() {
    let limits = controller(Options::default()).settings.limits;
    let settings = Settings { tolerate_random_loss: true, ..Settings::new(limits) };
    let (window, _) = reaction(settings, |index| ((index != 2).then_some(30), Ecn::Ect0));
    assert!(window >= 1.0, "{window}");
}

// [SCREAMV2 §4.3.1], [SCREAMV2 §4.3.2]
#[test]
fn packets_leave_within_the_window_and_one_by_one() {
    let target = controller(Options::default()).target();
    assert!(target.window.is_some());
    assert_eq!(target.burst, Burst::Ahead(TimeDelta::ZERO));
}

// [RFC8699 §5.3.1]
#[test]
fn a_share_moves_target_and_window_alike_within_the_receivers_limit() {
    let mut scream = controller(Options::default());
    round(&mut scream, 0, false, |_| Some(30));
    let (target, window) = (scream.target().bitrate, scream.window.size());
    scream.on_shared_rate(at(500), target * 2.0);
    assert_eq!(scream.target().bitrate, target * 2.0);
    assert!((scream.window.size() / window - 2.0).abs() < 1e-9);
    assert_eq!(scream.metrics().reason, Reason::Coupled);
    scream.on_receiver_limit(at(500), Some(target));
    scream.on_shared_rate(at(500), target * 3.0);
    assert_eq!(scream.target().bitrate, target);
}

#[test]
fn a_receivers_limit_holds_before_the_first_report() {
    let mut scream = controller(Options::default());
    scream.on_receiver_limit(at(0), Some(kbps(200)));
    assert_eq!(scream.target().bitrate, kbps(200));
    assert_eq!(scream.metrics().reason, Reason::ReceiverLimit);
}

// SCREAMV2-D2
#[test]
fn silence_is_looked_for_each_200_ms_from_the_first_frame_on() {
    let mut scream = controller(Options::default());
    assert_eq!(scream.next_timeout(), None);
    scream.on_media_queued(at(70), SIZE, SIZE);
    assert_eq!(scream.next_timeout(), Some(at(270)));
    scream.on_media_queued(at(100), SIZE, SIZE);
    scream.on_timeout(at(280));
    assert_eq!(scream.next_timeout(), Some(at(470)), "the grid is kept");
    scream.on_timeout(at(1_000));
    assert_eq!(scream.next_timeout(), Some(at(1_200)), "unless an interval was missed");
}
