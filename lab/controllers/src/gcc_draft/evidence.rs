//! Evidence for GCC-D1 and GCC-D16: compares the controller as built with the draft on one path.
//!
//! The evidence for the other deviations is in the tests that name them.

use self::path::{Path, Trace, run};
use super::*;

#[allow(dead_code, reason = "shared with tests/it/gcc_loop, which reads the rest")]
#[path = "../../../../library/weir/tests/it/gcc_loop/path.rs"]
mod path;

fn controller() -> GccDraft {
    let kbps = Bitrate::from_kbps;
    GccDraft::new(RateLimits::new(kbps(150), kbps(300), kbps(2_500)).unwrap())
}

/// Median delay at the bottleneck in ms, and loss ratio, both after convergence.
fn delay_and_loss(mut controller: GccDraft, capacity_kbps: u64) -> (f64, f64) {
    let trace = run(&mut controller, &Path::new(&[(0, capacity_kbps)]), 120);
    (trace.link_delay_ms(20..120, 50), trace.loss_ratio(20..120))
}

// GCC-D1: a drop-tail queue of 300 ms.
#[test]
fn the_raw_gradient_fills_the_queue_and_the_scaled_one_keeps_it_short() {
    for (capacity_kbps, scaled_ms) in [(300, 40.0), (1_000, 20.0), (2_000, 20.0)] {
        let detector = OveruseDetector::with_raw_gradient();
        let raw = delay_and_loss(GccDraft { detector, ..controller() }, capacity_kbps);
        assert!(raw.0 > 280.0 && raw.1 > 0.05, "raw at {capacity_kbps} kbit/s: {raw:?}");
        let scaled = delay_and_loss(controller(), capacity_kbps);
        assert!(scaled.0 < scaled_ms, "scaled at {capacity_kbps} kbit/s: {scaled:?}");
        assert_eq!(scaled.1, 0.0);
    }
}

fn paced(factor: f64) -> Trace {
    let path = Path { pacing_factor: Some(factor), ..Path::new(&[(0, 2_000), (40, 500)]) };
    run(&mut controller(), &path, 60)
}

// GCC-D16
#[test]
fn a_pacer_at_the_target_bitrate_queues_and_one_far_above_it_bursts() {
    let (slow, built, fast) = (paced(1.0), paced(PACING_FACTOR), paced(2.5));
    let half_a_frame_ms = 1_000.0 / 30.0 / 2.0;
    assert!(slow.pacer_delay_ms(20..40, 95) > 60.0);
    assert!(slow.pacer_delay_ms(40..50, 95) > 100.0, "frames from before the drop");
    assert!(built.pacer_delay_ms(20..60, 95) < half_a_frame_ms);
    assert!(built.link_delay_ms(20..40, 95) < 60.0);
    assert!(fast.link_delay_ms(20..40, 95) > 200.0);
}
