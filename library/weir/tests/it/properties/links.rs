//! Links of any rate, with reports at any interval and receivers with any clock.

use weir::testing::check_links;
use weir::{Algorithm, ControllerFactory};

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
    is_used(Algorithm::Nada, 0.3);
}

#[test]
fn both_screams_send_on_links_of_any_rate_with_any_clock_and_feedback() {
    is_used(Algorithm::ScreamV2, 0.1);
    is_used(Algorithm::Scream, 0.1);
}

// libwebrtc's constants do not fit the ends of the ranges.
#[test]
fn gcc_sends_on_links_of_any_rate_with_any_clock_and_feedback() {
    is_used(Algorithm::Gcc, 0.1);
}
