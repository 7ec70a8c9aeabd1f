//! `gcc-draft` in a closed loop over a simple path, that of the tests of `gcc` in the library.

#[path = "../../../../../library/weir/tests/it/gcc_loop/path.rs"]
mod path;

use path::{Path, Trace, run};
use weir::{Bitrate, RateLimits, TimeDelta};
use weir_controllers::gcc_draft::GccDraft;

const MAX_KBPS: u64 = 2_500;

fn drive(path: &Path, seconds: i64) -> Trace {
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(150), kbps(300), kbps(MAX_KBPS)).unwrap();
    let trace = run(&mut GccDraft::new(limits), path, seconds);
    assert!(trace.targets.iter().all(|(_, target)| limits.clamp(*target) == *target));
    trace
}

// [GCC §5.5]: 8 % per second lead from 300 to 850 kbit/s in ln(850 / 300) / ln(1.08) = 13.53 s.
#[test]
fn it_ramps_up_to_a_link_of_1_mbps_at_8_percent_a_second() {
    let trace = drive(&Path::new(&[(0, 1_000)]), 120);
    let ramp_s = trace.reaches_kbps(0, 850).unwrap();
    assert!((13.53..13.8).contains(&ramp_s), "{ramp_s}");
    let received = trace.received_kbps(20..120);
    assert!((900.0..1_000.0).contains(&received), "{received}");
    // A packet of 1200 B and the burst of its frame take about 20 ms at this rate.
    assert!(trace.link_delay_ms(20..120, 95) < 50.0);
    assert_eq!(trace.loss_ratio(20..120), 0.0);
    // Each frame is sent before the next one comes.
    assert!(trace.pacer_delay_ms(20..120, 95) < 33.0);
}

#[test]
fn it_follows_a_drop_to_300_kbps_and_its_end() {
    let trace = drive(&Path::new(&[(0, 1_000), (40, 300), (70, 1_000)]), 120);
    let before = trace.target_kbps(40);
    assert!(before > 800.0, "{before}");
    // The queue of 300 ms fills within a second and drains within another.
    assert!(trace.target_kbps(42) <= 300.0);
    assert!(trace.link_delay_ms(42..70, 95) < 100.0);
    assert_eq!(trace.loss_ratio(42..70), 0.0);
    assert!(trace.received_kbps(42..70) > 0.9 * 300.0);
    // The variance between the two capacities makes the increase additive for nearly the whole
    // range.
    let recovery_s = trace.reaches_kbps(70, 850).unwrap();
    assert!(recovery_s < 30.0, "{recovery_s}");
}

#[test]
fn a_wide_link_is_filled_up_to_the_maximum_and_no_further() {
    let trace = drive(&Path::new(&[(0, 10_000)]), 60);
    assert_eq!(trace.target_kbps(59), MAX_KBPS as f64);
}

#[test]
fn minimum_equal_to_maximum_is_a_constant_bitrate() {
    let rate = Bitrate::from_kbps(500);
    let limits = RateLimits::new(rate, rate, rate).unwrap();
    let trace = run(&mut GccDraft::new(limits), &Path::new(&[(0, 1_000), (10, 300)]), 20);
    assert_eq!(trace.targets.len(), 1);
}

// [GCC §5.5]: the estimate stays below 1.5 times the incoming bitrate, which is at most 1.2 * 200.
#[test]
fn an_application_limited_source_does_not_let_the_target_run_away() {
    let source_max = Bitrate::from_kbps(200);
    let trace = drive(&Path { source_max, ..Path::new(&[(0, 10_000)]) }, 300);
    let highest = trace.targets.iter().map(|(_, target)| target.as_kbps_f64()).fold(0.0, f64::max);
    assert!((300.0..=1.5 * 1.2 * 200.0).contains(&highest), "{highest}");
}

// [GCC §6]: loss between 2 and 10 % does not count as congestion.
#[test]
fn random_loss_of_5_percent_costs_little() {
    let trace = drive(&Path { loss: 0.05, ..Path::new(&[(0, 1_000)]) }, 120);
    let received = trace.received_kbps(20..120);
    assert!(received > 850.0, "{received}");
}

#[test]
fn a_pause_of_the_source_leaves_the_target_where_it_was() {
    let trace = drive(&Path { pause: 40..60, ..Path::new(&[(0, 1_000)]) }, 90);
    assert_eq!(trace.target_kbps(59), trace.target_kbps(41));
    let received = trace.received_kbps(61..90);
    assert!(received > 850.0, "{received}");
}

// GCC-D13: the outage cuts to 0.85 once per second plus round-trip time.
#[test]
fn an_outage_lowers_the_target_and_its_end_lets_it_rise() {
    let trace = drive(&Path { outage: 40..50, ..Path::new(&[(0, 1_000)]) }, 90);
    let (before, after) = (trace.target_kbps(40), trace.target_kbps(50));
    assert!(after < 0.5 * before && after > 150.0, "{before} {after}");
    let recovery_s = trace.reaches_kbps(50, 850).unwrap();
    assert!(recovery_s < 30.0, "{recovery_s}");
}

#[test]
fn reordering_by_jitter_of_20_ms_costs_little() {
    let jitter = TimeDelta::from_millis(20);
    let trace = drive(&Path { jitter, ..Path::new(&[(0, 1_000)]) }, 120);
    let received = trace.received_kbps(20..120);
    assert!(received > 800.0, "{received}");
    assert!(trace.link_delay_ms(20..120, 95) < 100.0);
}

#[test]
fn the_same_path_gives_the_same_targets() {
    let path = Path { loss: 0.02, ..Path::new(&[(0, 1_000), (20, 500)]) };
    assert_eq!(drive(&path, 40).targets, drive(&path, 40).targets);
}
