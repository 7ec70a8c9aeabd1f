//! Nothing is allocated after the start.

use std::sync::Arc;
use std::time::Instant;

use noq_proto::congestion::ControllerFactory;
use weir::{Algorithm, Bitrate, RateLimits};
use weir_noq::RealTime;

use crate::calls::Calls;
use crate::heap;

#[test]
fn nothing_is_allocated_after_the_start() {
    let kbps = Bitrate::from_kbps;
    let limits = RateLimits::new(kbps(100), kbps(500), kbps(20_000)).unwrap();
    for algorithm in Algorithm::all() {
        let factory = Arc::new(RealTime::new(algorithm, limits));
        let began = Instant::now();
        let mut controller = factory.build(began, 1_200);
        let mut calls = Calls::new(began);
        // Longer than the history, and than the windows of the controllers.
        (0..60_000).for_each(|_| {
            calls.packet(&mut *controller);
        });
        let before = heap::allocations();
        (0..60_000).for_each(|_| {
            calls.packet(&mut *controller);
        });
        assert_eq!(heap::allocations() - before, 0, "{algorithm}");
    }
}
