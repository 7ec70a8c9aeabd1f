//! `gcc` in a closed loop over a simple path. The complaints are those of users of other
//! implementations.

#![expect(clippy::incompatible_msrv, reason = "tests run with the compiler of the lab")]

mod path;

use path::{Path, Trace, run};
use weir::controllers::gcc::Gcc;
use weir::{Bitrate, RateLimits, TimeDelta};

fn drive(path: &Path, seconds: i64) -> Trace {
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(150), kbps(300), kbps(2_500)).unwrap();
    let trace = run(&mut Gcc::new(limits), path, seconds);
    assert!(trace.targets.iter().all(|(_, target)| limits.clamp(*target) == *target));
    trace
}

// [LIBWEBRTC §ProbeController]: probes at 3 and 6 times 300 kbit/s, not growth of 8 % per second.
#[test]
fn probes_find_a_link_of_1_mbps_within_half_a_second() {
    let trace = drive(&Path::new(&[(0, 1_000)]), 120);
    let ramp_s = trace.reaches_kbps(0, 850).unwrap();
    assert!(ramp_s < 0.5, "{ramp_s}");
    let received = trace.received_kbps(20..120);
    assert!((900.0..1_000.0).contains(&received), "{received}");
    assert!(trace.link_delay_ms(20..120, 95) < 100.0);
    assert!(trace.loss_ratio(20..120) < 0.01);
}

/// Complaint 4: stuck low, no recovery.
#[test]
fn it_follows_a_drop_to_300_kbps_and_its_end() {
    let trace = drive(&Path::new(&[(0, 1_000), (40, 300), (70, 1_000)]), 120);
    assert!(trace.target_kbps(42) <= 330.0);
    assert!(trace.received_kbps(42..70) > 0.8 * 300.0);
    let recovery_s = trace.reaches_kbps(70, 850).unwrap();
    assert!(recovery_s < 20.0, "{recovery_s}");
}

/// Complaint 1: the estimate grows without bound while the source is application-limited. Probes
/// measure the path, so the target may rise here, but only to the measured capacity.
#[test]
fn a_limited_source_does_not_let_the_target_rise_above_the_link() {
    let source_max = Bitrate::from_kbps(200);
    let trace = drive(&Path { source_max, ..Path::new(&[(0, 1_000)]) }, 300);
    let highest = trace.targets.iter().map(|(_, target)| target.as_kbps_f64()).fold(0.0, f64::max);
    assert!((300.0..=1_100.0).contains(&highest), "{highest}");
    assert!(trace.link_delay_ms(20..300, 95) < 50.0);
}

/// Complaint 2: collapse on healthy links.
#[test]
fn jitter_that_reorders_does_not_make_it_collapse() {
    let jitter = TimeDelta::from_millis(20);
    let trace = drive(&Path { jitter, ..Path::new(&[(0, 1_000)]) }, 120);
    let received = trace.received_kbps(20..120);
    assert!(received > 800.0, "{received}");
}

/// Complaint 3, and the goal of 85 % of 2 Mbit/s at 5 % random loss. Here the loss is after the
/// bottleneck, which therefore carried the received rate divided by 0.95.
#[test]
fn random_loss_of_5_percent_leaves_85_percent_of_2_mbps() {
    let trace = drive(&Path { loss: 0.05, ..Path::new(&[(0, 2_000)]) }, 120);
    let received = trace.received_kbps(20..120);
    assert!(received / 0.95 > 0.85 * 2_000.0, "{received}");
}

/// The median of the loss ratios that seeds 1 to 7 have in these seconds.
fn median_loss(path: &Path, seconds: std::ops::Range<i64>) -> f64 {
    let mut ratios: std::vec::Vec<f64> = std::vec::Vec::new();
    for seed in 1..=7 {
        let trace = drive(&Path { seed, ..path.clone() }, seconds.end);
        ratios.push(trace.loss_ratio(seconds.clone()));
    }
    ratios.sort_by(f64::total_cmp);
    ratios[3]
}

/// The other side of complaint 3: the controller still reacts to loss by congestion.
///
/// About two seeds of seven end in a standing queue that stays full, with a fifth of the packets
/// lost: the threshold of the delay has adapted to it. Which ones they are is chance.
#[test]
fn with_random_loss_of_5_percent_a_drop_of_the_capacity_is_still_followed() {
    let path = Path { loss: 0.05, ..Path::new(&[(0, 2_000), (40, 500)]) };
    for seed in 1..=7 {
        let target = drive(&Path { seed, ..path.clone() }, 46).target_kbps(45);
        assert!(target < 600.0, "seed {seed}: {target}");
    }
    let loss = median_loss(&path, 45..100);
    assert!(loss < 0.1, "{loss}");
}

/// Complaint 7: without a pacer, or with a slow one, bursts are lost.
#[test]
fn frames_leave_before_the_next_one_comes_and_no_burst_is_lost() {
    let path = Path { max_queue: TimeDelta::from_millis(100), ..Path::new(&[(0, 1_000)]) };
    assert!(drive(&path, 120).pacer_delay_ms(20..120, 95) < 33.0);
    let loss = median_loss(&path, 20..120);
    assert!(loss < 0.001, "{loss}");
}

#[test]
fn a_pause_of_the_source_leaves_the_target_where_it_was() {
    let trace = drive(&Path { pause: 40..60, ..Path::new(&[(0, 1_000)]) }, 90);
    assert_eq!(trace.target_kbps(59), trace.target_kbps(41));
    let received = trace.received_kbps(61..90);
    assert!(received > 800.0, "{received}");
}

#[test]
fn an_outage_lowers_the_target_and_its_end_lets_it_rise() {
    let trace = drive(&Path { outage: 40..50, ..Path::new(&[(0, 1_000)]) }, 90);
    let (before, after) = (trace.target_kbps(40), trace.target_kbps(50));
    assert!(after < 0.5 * before, "{before} {after}");
    let recovery_s = trace.reaches_kbps(50, 850).unwrap();
    assert!(recovery_s < 20.0, "{recovery_s}");
}

#[test]
fn the_same_path_gives_the_same_targets() {
    let path = Path { loss: 0.02, ..Path::new(&[(0, 1_000), (20, 500)]) };
    assert_eq!(drive(&path, 40).targets, drive(&path, 40).targets);
}
