//! Behaviour that both versions of SCReAM share; how good it is depends on the limits.

use super::path::Loop;
use weir::{Algorithm, Bitrate, TimeDelta};

fn path(version: Algorithm) -> Loop {
    Loop::new(version, 1_000, 50)
}

// [SCREAM §4.1.2.2], [SCREAM §4.1.3], [SCREAMV2 §4.2.2]
#[test]
fn it_follows_a_drop_to_300_kbps_and_the_way_back() {
    for (version, least_low, least_high) in
        [(Algorithm::Scream, 270, 950), (Algorithm::ScreamV2, 240, 850)]
    {
        let mut path = path(version);
        path.run(15);
        path.capacity = Bitrate::from_kbps(300);
        path.run(10);
        let (low, low_lost) = (path.run(20), path.lost);
        path.capacity = Bitrate::from_kbps(1_000);
        path.run(10);
        let high = path.run(20);
        println!("{version}: {low}, {low_lost} lost, then {high} kbit/s");
        assert!((least_low..=300).contains(&low));
        assert!(low_lost <= 20, "at most one packet a second");
        assert!(high >= least_high);
    }
}

// SCREAM-D2, SCREAMV2-D2
#[test]
fn without_feedback_50_kbps_leave_and_with_it_the_rate_comes_back() {
    for (version, settling, most, settled, least_back) in
        [(Algorithm::Scream, 3, 51, 10, 950), (Algorithm::ScreamV2, 15, 140, 15, 800)]
    {
        let mut path = path(version);
        path.run(20);
        path.feedback_lost = true;
        path.run(settling);
        let silent = path.run(20);
        assert_eq!(path.controller.metrics().state, "feedback lost");
        path.feedback_lost = false;
        path.run(settled);
        let back = path.run(10);
        println!("{version}: {silent}, then {back} kbit/s");
        assert!((49..=most).contains(&silent));
        assert!(back >= least_back);
    }
}

// SCREAM-D3, SCREAMV2-D4
#[test]
fn a_step_of_the_receivers_clock_does_not_hold_the_rate_down() {
    for (version, least) in [(Algorithm::Scream, 900), (Algorithm::ScreamV2, 800)] {
        for hours in [-5, 5] {
            let mut path = path(version);
            path.run(20);
            path.clock_offset += TimeDelta::from_secs(3_600) * hours;
            path.run(5);
            let kbps = path.run(20);
            println!("{version}, {hours} h: {kbps} kbit/s");
            assert!(kbps >= least);
        }
    }
}
