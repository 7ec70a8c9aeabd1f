//! SCReAM, first version: RFC 8298.

use super::path::{Loop, mean_send_queue_ms};
use weir::{Algorithm, TimeDelta};

// [SCREAM §4.1.3]: 200 kbit/s a second from 300 kbit/s is 1 Mbit/s after 3.5 s.
#[test]
fn it_fills_a_path_of_1_mbps_within_5_s_and_keeps_it_full_without_loss() {
    let mut path = Loop::new(Algorithm::Scream, 1_000, 50);
    path.run(5);
    let (kbps, lost) = (path.run(55), path.lost);
    println!("{kbps} kbit/s, longest queue {}", path.longest_queue);
    assert!(kbps >= 980);
    assert_eq!(lost, 0);
    assert!(path.longest_queue < TimeDelta::from_millis(200), "half of QDELAY_TARGET_HI");
}

// SCREAM-D1
#[test]
fn a_long_path_carries_the_start_bitrate_in_the_first_second() {
    let mut path = Loop::new(Algorithm::Scream, 2_000, 210);
    let first = path.run(1);
    println!("{first} kbit/s");
    assert!(first >= 300);
}

// [SCREAM §4.1.2], [RFC6817 §3.4.2]: a longer route looks like a queue until the old base delay is
// forgotten.
#[test]
fn a_route_that_is_200_ms_longer_slows_it_for_ten_minutes_at_most() {
    let mut path = Loop::new(Algorithm::Scream, 1_000, 50);
    path.run(20);
    path.one_way_delay += TimeDelta::from_millis(200);
    path.run(10);
    let soon = path.run(50);
    path.run(9 * 60);
    let later = path.run(60);
    println!("{soon} in the first minute, {later} kbit/s after ten");
    assert!(soon >= 250);
    assert!(later >= 900);
}

// SCREAM-D8
#[test]
fn a_pause_keeps_the_target_bitrate() {
    let mut path = Loop::new(Algorithm::Scream, 2_000, 50);
    path.run(6);
    path.source_share = 0.0;
    path.run(1);
    let before = path.target_kbps();
    path.run(60);
    assert_eq!(path.target_kbps(), before);
    path.source_share = 1.0;
    path.run(2);
    let after = path.run(10);
    println!("{before} before, {after} kbit/s after");
    assert!(after >= 1_500);
}

// SCREAM-D8
#[test]
fn an_application_limited_source_keeps_the_target_where_it_is() {
    let mut path = Loop::new(Algorithm::Scream, 2_000, 50);
    path.source_share = 0.3;
    path.run(60);
    assert_eq!(path.target_kbps(), 300);
    path.source_share = 1.0;
    path.run(8);
    assert!(path.target_kbps() >= 1_500);
}

// SCREAM-D9
#[test]
fn a_slow_path_does_not_collect_a_second_of_media_in_the_send_queue() {
    let mut fast = Loop::new(Algorithm::Scream, 1_000, 50);
    fast.run(15);
    let mut slow = Loop::new(Algorithm::Scream, 300, 50);
    slow.run(15);
    let delays = (mean_send_queue_ms(&mut fast, 45), mean_send_queue_ms(&mut slow, 45));
    println!("{delays:?} ms at 1 Mbit/s and 300 kbit/s");
    assert!(delays.0 < 70 && delays.1 < 250);
}

// [SCREAM §4.1.2.1]: 5 % random loss causes a loss event in nearly every round trip.
#[test]
fn five_percent_random_loss_leaves_a_bitrate_above_the_minimum() {
    let mut path = Loop::new(Algorithm::Scream, 5_000, 50);
    path.loss_percent = 5;
    path.run(15);
    let lossy = path.run(45);
    path.loss_percent = 0;
    path.run(15);
    let healed = path.run(10);
    println!("{lossy}, then {healed} kbit/s");
    assert!(lossy >= 150);
    assert!(healed >= 2_300);
}
