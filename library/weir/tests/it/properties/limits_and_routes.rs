//! Limits that change in mid-call, and new routes.

use weir::controller::{Probe, Reason, Settings};
use weir::testing::{Driver, Op};
use weir::units::{Bitrate, TimeDelta};
use weir::{Algorithm, ControllerFactory};

use super::limits;

const CAPACITY: Bitrate = Bitrate::from_kbps(1_000);
const MINUTE: TimeDelta = TimeDelta::from_secs(60);

/// A driver of the algorithm after a minute on a clean link.
fn after_a_minute(algorithm: Algorithm) -> Driver {
    let factory = ControllerFactory::from(algorithm);
    let mut driver = Driver::new(&factory, Settings::new(limits(150, 300, 2_500)));
    driver.run_clean_link(CAPACITY, MINUTE, None);
    driver
}

#[test]
fn a_new_route_begins_at_the_start_bitrate_of_the_newest_limits() {
    for algorithm in Algorithm::all() {
        let mut driver = after_a_minute(algorithm);
        driver.apply(&Op::Limits(limits(150, 420, 2_500)));
        driver.apply(&Op::NewRoute);
        let bitrate = driver.controller.target().bitrate;
        assert_eq!(bitrate, Bitrate::from_kbps(420), "{algorithm}");
        assert_eq!(driver.controller.metrics().reason, Reason::NewRoute, "{algorithm}");
    }
}

#[test]
fn the_receivers_limit_outlives_the_route() {
    for algorithm in Algorithm::all() {
        let mut driver = after_a_minute(algorithm);
        let limit = Bitrate::from_kbps(200);
        driver.controller.on_receiver_limit(driver.now, Some(limit));
        driver.apply(&Op::NewRoute);
        assert_eq!(driver.controller.target().bitrate, limit, "{algorithm}");
        driver.run_clean_link(CAPACITY, MINUTE, None);
        assert!(driver.controller.target().bitrate <= limit, "{algorithm}");
    }
}

#[test]
fn a_lowered_maximum_holds_at_once_and_costs_little_once_it_is_lifted() {
    for algorithm in Algorithm::all() {
        let mut driver = after_a_minute(algorithm);
        let before = driver.controller.target().bitrate;
        driver.apply(&Op::Limits(limits(150, 300, 400)));
        assert!(driver.controller.target().bitrate <= Bitrate::from_kbps(400), "{algorithm}");
        driver.run_clean_link(CAPACITY, TimeDelta::from_secs(5), None);
        driver.apply(&Op::Limits(limits(150, 300, 2_500)));
        let after = driver.run_clean_link(CAPACITY, MINUTE, None);
        assert!(after > before * 0.7, "{algorithm}: {after} after {before}");
    }
}

#[test]
fn what_the_source_could_use_does_not_move_the_target() {
    for algorithm in Algorithm::all() {
        let mut driver = after_a_minute(algorithm);
        let before = driver.controller.target().bitrate;
        for kbps in [Some(200), Some(5_000), None] {
            driver.apply(&Op::Desired(kbps.map(Bitrate::from_kbps)));
            assert_eq!(driver.controller.target().bitrate, before, "{algorithm}");
        }
    }
}

// The pacer starts a probe only if its number is new.
#[test]
fn a_new_route_is_probed_under_a_new_number() {
    let mut driver = after_a_minute(Algorithm::Gcc);
    driver.apply(&Op::NewRoute);
    let Probe { id, rate, .. } = driver.controller.target().probe.expect("as at the start");
    assert!(id.0 >= 2, "the first two were those of the start: {id:?}");
    assert_eq!(rate, Bitrate::from_kbps(900), "three times the start bitrate");
}

// [LIBWEBRTC §ProbeController]
#[test]
fn a_raised_maximum_is_probed_at_once_if_the_path_may_carry_it() {
    let factory = ControllerFactory::from(Algorithm::Gcc);
    let mut driver = Driver::new(&factory, Settings::new(limits(150, 300, 900)));
    let capacity = Bitrate::from_kbps(2_000);
    driver.run_clean_link(capacity, MINUTE, None);
    assert_eq!(driver.controller.target().probe, None);
    driver.apply(&Op::Limits(limits(150, 300, 1_800)));
    let probe = driver.controller.target().probe.expect("a probe at the new maximum");
    assert_eq!(probe.rate, Bitrate::from_kbps(1_800));
}
