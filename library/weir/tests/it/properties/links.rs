//! Links of any rate, with reports at any interval and receivers with any clock.

use weir::controller::Settings;
use weir::testing::{Clock, Driver, Link, check_links};
use weir::{Algorithm, Bitrate, ControllerFactory, DataSize, TimeDelta};

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
    // It grows by a part of a packet a report: 0.03 of 26 Mbit/s with reports 1.8 s apart.
    is_used(Algorithm::Scream, 0.03);
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

/// Sluice uses this link, and its queue is short.
#[track_caller]
fn sluice_is_at_home(link: &Link, least: f64) {
    let factory = ControllerFactory::from(Algorithm::Sluice);
    let mut driver = Driver::new(&factory, Settings::new(link.limits()));
    let usage = driver.try_run_link(link, link.length() * 3).expect("the contract");
    // On 10 kbit/s a packet of 100 bytes takes 80 ms.
    let most = TimeDelta::from_millis(100).max(DataSize::from_bytes(200) / link.capacity);
    let is_good = usage.used >= least && usage.queue <= most;
    assert!(is_good, "{link:?}: {usage:?}");
}

// Before, the base rose by a queue each 15 s on narrow links: 250 of 300 ms.
#[test]
fn sluice_uses_links_of_10_kbps_to_1_gbps_whose_receivers_clock_drifts() {
    for kbps in [10, 60, 100, 300, 1_000, 50_000, 1_000_000] {
        for ppm in [-1_000.0, -300.0, 0.0, 300.0, 1_000.0] {
            for round_trip_ms in [1, 50] {
                let [round_trip, interval] = [round_trip_ms, 50].map(TimeDelta::from_millis);
                let link = Link::new(Bitrate::from_kbps(kbps), round_trip, interval);
                sluice_is_at_home(&link.with_clock(Clock::Drift(ppm)), 0.97);
            }
        }
    }
}

#[test]
fn sluice_uses_paths_that_become_longer_or_shorter_both_ways() {
    for kbps in [1_000, 5_000, 50_000] {
        for ms_a_second in [-1.0, -0.3, 0.3, 1.0] {
            let ms = TimeDelta::from_millis(50);
            let link = Link::new(Bitrate::from_kbps(kbps), ms, ms);
            sluice_is_at_home(&link.with_path_trend(ms_a_second * 1e-3), 0.95);
        }
    }
}
