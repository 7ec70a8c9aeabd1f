//! Links of any rate, with reports at any interval and receivers with any clock.

use weir::controller::Settings;
use weir::testing::{Clock, Driver, Link, check_links};
use weir::{Algorithm, Bitrate, ControllerFactory, TimeDelta};

/// Links for each controller. More of them take longer than a test may.
const LINKS: u32 = 16;

/// Each of the drawn links is used to this share.
#[track_caller]
fn is_used(algorithm: Algorithm, least: f64) {
    check_links(&ControllerFactory::from(algorithm), LINKS, 1, least)
        .unwrap_or_else(|failure| panic!("{algorithm}: {failure}"));
}

#[test]
fn sluice_uses_links_of_any_rate_with_any_clock_and_feedback() {
    is_used(Algorithm::Sluice, 0.8);
}

#[test]
fn nada_uses_links_of_any_rate_with_any_clock_and_feedback() {
    is_used(Algorithm::Nada, 0.6);
}

#[test]
fn both_screams_send_on_links_of_any_rate_with_any_clock_and_feedback() {
    is_used(Algorithm::ScreamV2, 0.6);
    is_used(Algorithm::Scream, 0.1);
}

// libwebrtc's constants do not fit the ends of the ranges.
#[test]
fn gcc_sends_on_links_of_any_rate_with_any_clock_and_feedback() {
    is_used(Algorithm::Gcc, 0.1);
}

// NADA-D14, SCREAMV2-D9: before, nada had 298 ms of queue and scream-v2 0.2 of the link.
#[test]
fn reports_up_to_2_s_apart_leave_the_link_used_and_its_queue_short() {
    let ms = TimeDelta::from_millis;
    for algorithm in [Algorithm::Nada, Algorithm::ScreamV2] {
        for (round_trip, interval) in (0..).zip([200, 400, 700, 1_000, 1_500, 2_000]) {
            for loses_reports in [false, true] {
                let round_trip = ms([5, 50, 150][round_trip % 3]);
                let link = Link::new(Bitrate::from_kbps(2_000), round_trip, ms(interval))
                    .with_loses_reports(loses_reports);
                let factory = ControllerFactory::from(algorithm);
                let mut driver = Driver::new(&factory, Settings::new(link.limits()));
                let usage = driver.try_run_link(&link, link.length()).expect("the contract");
                println!("{algorithm} {link:?}: {usage:?}");
                let least = if loses_reports { 0.75 } else { 0.8 };
                assert!(usage.used >= least && usage.queue < ms(110), "{algorithm}: {usage:?}");
            }
        }
    }
}

#[test]
fn sluice_uses_links_of_1_mbps_to_1_gbps_whose_receivers_clock_drifts() {
    for mbps in [1, 50, 500, 1_000] {
        for ppm in [-1_000.0, 1_000.0] {
            let ms = TimeDelta::from_millis(50);
            let link =
                Link::new(Bitrate::from_kbps(mbps * 1_000), ms, ms).with_clock(Clock::Drift(ppm));
            let factory = ControllerFactory::from(Algorithm::Sluice);
            let mut driver = Driver::new(&factory, Settings::new(link.limits()));
            let usage = driver.try_run_link(&link, link.length()).expect("the contract");
            assert!(usage.used >= 0.97, "{mbps} Mbit/s, {ppm} ppm: {usage:?}");
        }
    }
}
