//! Complaints of users of congestion controllers, turned into rules. Every controller here keeps
//! each rule. A naive controller breaks it, which shows that the test can fail.

use super::naive::{Fault, Naive};
use super::path::Loop;
use weir::controller::{RateLimits, Settings};
use weir::{Algorithm, Bitrate, Controller, TimeDelta};

fn kbps(kbps: u64) -> Bitrate {
    Bitrate::from_kbps(kbps)
}

fn limits() -> RateLimits {
    RateLimits::new(kbps(50), kbps(300), kbps(2_500)).unwrap()
}

/// Runs a case with every controller and with a naive one. `holds` must be true for all but the
/// naive one.
fn rule<T: core::fmt::Debug>(
    fault: Fault,
    case: impl Fn(Box<dyn Controller + Send>) -> T,
    holds: impl Fn(&T) -> bool,
) {
    rule_for(&Algorithm::all().collect::<Vec<_>>(), fault, case, holds);
}

fn rule_for<T: core::fmt::Debug>(
    algorithms: &[Algorithm],
    fault: Fault,
    case: impl Fn(Box<dyn Controller + Send>) -> T,
    holds: impl Fn(&T) -> bool,
) {
    let naive = case(Naive::boxed(fault, limits()));
    let settings = Settings::new(limits()).with_tolerate_random_loss(true);
    let runs: Vec<_> = algorithms.iter().map(|a| (a.name(), case(a.build(settings)))).collect();
    println!("{fault:?}: {naive:?}; {runs:?}");
    assert!(!holds(&naive), "{fault:?} keeps the rule: {naive:?}");
    for (name, measured) in runs {
        assert!(holds(&measured), "{name} breaks the rule: {measured:?}");
    }
}

fn path(controller: Box<dyn Controller + Send>, capacity_kbps: u64) -> Loop {
    Loop::with_controller(controller, limits(), capacity_kbps, 50)
}

/// Probes of `gcc` measure a path without media, so its bound is what the path carries.
#[test]
fn complaint_1_a_limited_source_does_not_let_the_target_grow_for_ever() {
    let case = |controller| {
        let mut path = path(controller, 1_500);
        path.source_cap = kbps(200);
        path.run(120);
        path.target_kbps()
    };
    rule(Fault::GrowsForEver, case, |target| *target < 8 * 200);
}

#[test]
fn complaint_2_a_healthy_link_with_some_jitter_is_not_given_up() {
    let case = |controller| {
        let mut path = path(controller, 1_000);
        path.jitter = TimeDelta::from_millis(5);
        path.run(30);
        path.run(60)
    };
    rule(Fault::FearsDelay, case, |carried| *carried >= 300);
}

/// For controllers that can be configured to tolerate random loss, or always tolerate it.
#[test]
fn complaint_3_a_little_random_loss_leaves_most_of_the_rate() {
    let case = |controller| {
        let mut path = path(controller, 2_000);
        path.loss_percent = 1;
        path.run(30);
        path.run(60)
    };
    let bearing = [Algorithm::Gcc, Algorithm::Nada, Algorithm::ScreamV2];
    rule_for(&bearing, Fault::HalvesAtLoss, case, |carried| *carried >= 1_200);
}

#[test]
fn complaint_4_a_rate_that_fell_comes_back_with_the_capacity() {
    let case = |controller| {
        let mut path = path(controller, 1_000);
        path.run(20);
        path.capacity = kbps(200);
        path.run(20);
        path.capacity = kbps(1_000);
        path.run(30);
        path.run(30)
    };
    rule(Fault::NeverForgets, case, |carried| *carried >= 600);
}

#[test]
fn complaint_5_late_feedback_lowers_the_target_and_its_return_restores_it() {
    let case = |controller| {
        let mut path = path(controller, 1_000);
        path.run(30);
        let before = path.target_kbps();
        path.feedback_lost = true;
        path.run(5);
        let silent = path.target_kbps();
        path.feedback_lost = false;
        path.run(30);
        (before, silent, path.run(10))
    };
    rule(Fault::WaitsForFeedback, case, |&(before, silent, after)| {
        silent * 10 <= before * 8 && after >= 500
    });
}

#[test]
fn complaint_6_packets_that_overtake_others_are_not_losses() {
    let case = |controller| {
        let mut path = path(controller, 1_000);
        path.late_percent = 5;
        path.late_by = TimeDelta::from_millis(20);
        path.run(30);
        path.run(60)
    };
    rule(Fault::HalvesAtLoss, case, |carried| *carried >= 600);
}

#[test]
fn complaint_7_key_frames_are_spread_so_that_a_short_queue_bears_them() {
    let case = |controller| {
        let mut path = path(controller, 1_000);
        path.queue_limit = TimeDelta::from_millis(100);
        (path.source_cap, path.key_frame_every) = (kbps(700), Some(90));
        path.run(10);
        path.run(60);
        path.lost
    };
    rule(Fault::Bursts, case, |lost| *lost <= 90);
}

#[test]
fn complaint_8_audio_first_does_not_keep_video_small() {
    let case = |controller| {
        let mut path = path(controller, 1_000);
        path.source_cap = kbps(30);
        path.run(30);
        path.source_cap = Bitrate::MAX;
        path.run(20);
        path.run(20)
    };
    rule(Fault::FollowsTheSource, case, |carried| *carried >= 500);
}

#[test]
fn complaint_9_minimum_and_maximum_hold_below_and_above_the_capacity() {
    let case = |controller| {
        let mut within = true;
        let mut path = path(controller, 20);
        for (capacity, seconds) in [(20, 30), (10_000, 90)] {
            path.capacity = kbps(capacity);
            for _ in 0..seconds * 1_000 {
                path.step();
                within &= path.is_within_limits();
            }
        }
        (within, path.target_kbps())
    };
    rule(Fault::IgnoresLimits, case, |&(within, target)| within && target >= 1_000);
}

/// Chooses a controller by name at run time, and a naive one, not in the library, by the same
/// trait.
#[test]
fn complaint_10_controllers_are_chosen_by_name_and_exchanged_as_they_are() {
    for algorithm in Algorithm::all() {
        let chosen: Algorithm = algorithm.name().parse().unwrap();
        assert!(path(chosen.build(limits()), 1_000).run(10) >= 100, "{chosen}");
    }
    assert!(path(Naive::boxed(Fault::GrowsForEver, limits()), 1_000).run(10) >= 100);
    let unknown = "naive".parse::<Algorithm>().unwrap_err().to_string();
    assert!(Algorithm::all().all(|algorithm| unknown.contains(algorithm.name())));
}
