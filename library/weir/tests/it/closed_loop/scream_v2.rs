//! SCReAM, second version: draft-ietf-ccwg-rfc8298bis-screamv2.

use super::path::{Loop, mean_send_queue_ms};
use weir::controller::{EcnMode, Settings};
use weir::{Algorithm, Bitrate, RateLimits, TimeDelta};

fn path(capacity_kbps: u64, one_way_ms: i64) -> Loop {
    Loop::new(Algorithm::ScreamV2, capacity_kbps, one_way_ms)
}

fn settings() -> Settings {
    let kbps = Bitrate::from_kbps;
    Settings::new(RateLimits::new(kbps(50), kbps(300), kbps(2_500)).unwrap())
}

fn tolerant(capacity_kbps: u64) -> Loop {
    let settings = settings().with_tolerate_random_loss(true);
    Loop::with_settings(Algorithm::ScreamV2, settings, capacity_kbps, 50)
}

// [SCREAMV2 §4.2.2]
#[test]
fn it_uses_nine_tenths_of_a_path_with_little_queue_and_without_loss() {
    for (capacity, one_way_ms) in [(1_000, 10), (1_000, 50), (1_000, 150), (2_000, 50)] {
        let mut path = path(capacity, one_way_ms);
        path.run(20);
        let (kbps, lost) = (path.run(100), path.lost);
        println!("{one_way_ms} ms: {kbps} of {capacity} kbit/s, queue {}", path.longest_queue);
        assert!(kbps * 100 >= capacity * 88);
        assert_eq!(lost, 0);
        assert!(path.longest_queue < TimeDelta::from_millis(150));
    }
}

// [SCREAMV2 §4.4]
#[test]
fn the_send_queue_holds_less_than_a_quarter_of_a_frame_period() {
    let mut path = path(1_000, 50);
    path.run(20);
    let millis = mean_send_queue_ms(&mut path, 40);
    println!("{millis} ms");
    assert!(millis <= 8);
}

// SCREAMV2-D1
#[test]
fn a_path_of_any_length_carries_the_start_bitrate_in_the_first_second() {
    for one_way_ms in [10, 50, 210] {
        let first = path(2_000, one_way_ms).run(1);
        println!("{one_way_ms} ms: {first} kbit/s");
        assert!(first >= 250);
    }
}

// [SCREAMV2 §4.5.1]: the first version needs ten minutes for this.
#[test]
fn a_route_that_is_200_ms_longer_is_no_queue_after_a_minute() {
    let mut path = path(1_000, 50);
    path.run(20);
    path.one_way_delay += TimeDelta::from_millis(200);
    path.run(60);
    let later = path.run(60);
    println!("{later} kbit/s");
    assert!(later >= 800);
}

// [SCREAMV2 §4.2.2.2]
#[test]
fn an_application_limited_source_holds_the_target_near_what_it_makes() {
    let mut path = path(2_000, 50);
    path.source_share = 0.3;
    path.run(60);
    let held = path.target_kbps();
    path.source_share = 1.0;
    path.run(10);
    println!("{held}, then {} kbit/s", path.target_kbps());
    assert!(held <= 600);
    assert!(path.target_kbps() >= 1_500);
}

#[test]
fn a_pause_keeps_a_rate_that_the_path_carries() {
    let mut path = path(2_000, 50);
    path.run(20);
    path.source_share = 0.0;
    path.run(60);
    path.source_share = 1.0;
    let first = path.run(3);
    let (after, lost) = (path.run(10), path.lost);
    println!("{first}, then {after} kbit/s");
    assert!(first >= 1_000 && after >= 1_600);
    assert_eq!(lost, 0);
}

// [SCREAMV2 §4.2.1.3], [SCREAMV2 §4.2.1.2]
#[test]
fn marks_keep_the_queue_shorter_than_delay_alone_does() {
    let run = |ecn, mark_above_ms| {
        let mut path =
            Loop::with_settings(Algorithm::ScreamV2, settings().with_ecn(ecn), 1_000, 50);
        path.mark_above = TimeDelta::from_millis(mark_above_ms);
        path.run(20);
        let kbps = path.run(100);
        println!("{ecn:?}: {kbps} kbit/s, {} marked, queue {}", path.marked, path.longest_queue);
        (kbps, path.longest_queue)
    };
    let (_, by_delay) = run(EcnMode::Off, 1_000_000);
    let (l4s_kbps, l4s) = run(EcnMode::L4s, 10);
    let (classic_kbps, classic) = run(EcnMode::Classic, 25);
    assert!(l4s < by_delay * 0.5 && classic < by_delay * 0.75);
    assert!(l4s_kbps >= 650 && classic_kbps >= 650);
}

#[test]
fn without_ecn_a_mark_means_nothing() {
    let mut marked = path(1_000, 50);
    marked.mark_above = -TimeDelta::from_secs(1);
    let mut plain = path(1_000, 50);
    assert_eq!(marked.run(30), plain.run(30));
    assert!(marked.marked > 1_000);
}

// SCREAMV2-D8
#[test]
fn tolerance_uses_85_percent_of_2_mbps_at_5_percent_random_loss() {
    let mut strict = path(2_000, 50);
    let mut tolerant = tolerant(2_000);
    let [strict, tolerant] = [&mut strict, &mut tolerant].map(|path| {
        path.loss_percent = 5;
        path.run(20);
        path.run(100)
    });
    println!("{strict} without, {tolerant} kbit/s with tolerance");
    assert!(strict < 500);
    assert!(tolerant >= 1_700);
}

// SCREAMV2-D8: congestion shows by delay or, if there is nearly no queue, by a loss ratio above the
// threshold. The second case costs the losses checked here.
#[test]
fn tolerance_still_answers_to_losses_by_congestion() {
    let after_a_drop = |mut path: Loop, queue_ms| {
        path.queue_limit = TimeDelta::from_millis(queue_ms);
        path.run(20);
        path.capacity = Bitrate::from_kbps(500);
        path.run(5);
        let (carried, sent) = (path.run(30) as f64 * 30e3, path.lost as f64 * 9_600.0);
        let loss = sent / (carried + sent);
        println!("queue of {queue_ms} ms: {} kbit/s, {loss:.3} lost", path.target_kbps());
        (path.target_kbps(), loss)
    };
    assert_eq!(after_a_drop(tolerant(2_000), 300), after_a_drop(path(2_000, 50), 300));
    let (strict, tolerant) = (after_a_drop(path(2_000, 50), 20), after_a_drop(tolerant(2_000), 20));
    assert!(strict.0 <= 600 && tolerant.0 <= 600);
    assert!(strict.1 < 0.05 && tolerant.1 < 0.15);
}
