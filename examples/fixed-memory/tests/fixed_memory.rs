//! Each controller runs in the piece of memory that [`bytes_for`] names, as it runs without one.

#[path = "../../../library/weir/tests/it/closed_loop/path.rs"]
#[allow(dead_code)]
mod path;

use std::alloc::{GlobalAlloc, Layout, System};
use std::mem::MaybeUninit;

use path::Loop;
use weir::controllers::{gcc, nada, scream, scream_v2, sluice};
use weir::{Algorithm, Bitrate, Controller, RateLimits, TimeDelta};
use weir_fixed_memory::{Confined, FixedMemory, bytes_for};

#[global_allocator]
static MEMORY: FixedMemory<System> = FixedMemory::new(System);

const CAPACITY_KBPS: u64 = 3_000;
/// Half of the longest round trip that the sizes are made for.
const ONE_WAY_MS: i64 = 150;

fn limits() -> RateLimits {
    let kbps = Bitrate::from_kbps;
    RateLimits::new(kbps(150), kbps(300), kbps(2_500)).expect("in order")
}

fn give(bytes: usize) {
    MEMORY.give(vec![MaybeUninit::uninit(); bytes].leak());
}

/// The controller by its own type: its state lies outside of the piece.
fn confined(algorithm: Algorithm) -> Box<dyn Controller + Send> {
    fn boxed<C: Controller + Send + 'static>(
        controller: Confined<C, System>,
    ) -> Box<dyn Controller + Send> {
        Box::new(controller)
    }
    let limits = limits();
    match algorithm {
        Algorithm::Gcc => boxed(MEMORY.confine(|| gcc::Gcc::new(limits))),
        Algorithm::Nada => boxed(MEMORY.confine(|| nada::Nada::new(limits))),
        Algorithm::Scream => boxed(MEMORY.confine(|| scream::Scream::new(limits))),
        Algorithm::ScreamV2 => boxed(MEMORY.confine(|| scream_v2::ScreamV2::new(limits))),
        Algorithm::Sluice => boxed(MEMORY.confine(|| sluice::Sluice::new(limits))),
        _ => panic!("{algorithm} has no size of its own"),
    }
}

/// 200 s with losses, late packets, a fall of the capacity and 2 s without feedback. Returns the
/// targets.
fn targets(controller: Box<dyn Controller + Send>) -> Vec<u64> {
    let mut path = Loop::with_controller(controller, limits(), CAPACITY_KBPS, ONE_WAY_MS);
    path.loss_percent = 1;
    path.late_percent = 2;
    path.late_by = TimeDelta::from_millis(100);
    path.jitter = TimeDelta::from_millis(10);
    let mut targets = Vec::new();
    for second in 0..200 {
        path.capacity =
            Bitrate::from_kbps(if (100..150).contains(&second) { 500 } else { CAPACITY_KBPS });
        path.feedback_lost = (60..62).contains(&second);
        path.run(1);
        targets.push(path.controller.target().bitrate.as_bps());
    }
    targets
}

// One test, because the piece belongs to the whole process.
#[test]
fn each_controller_runs_in_its_piece_as_it_does_without() {
    println!(
        "\n| controller | its piece, bytes | peak of what is in use, bytes |\n|---|---:|---:|"
    );
    for algorithm in Algorithm::all() {
        let bytes = bytes_for(algorithm);
        give(bytes);
        let without = targets(algorithm.build(limits()));
        assert_eq!(MEMORY.peak(), 0, "{algorithm} is not in the piece");
        let within = targets(confined(algorithm));
        println!("| `{algorithm}` | {bytes} | {} |", MEMORY.peak());
        assert_eq!(within, without, "{algorithm}");
        assert!(MEMORY.peak() <= bytes);
        assert_eq!(MEMORY.used(), 0, "{algorithm} left something in the piece");
    }
    give(4_096);
    let wrap = |controller| MEMORY.confine(|| controller);
    weir::testing::check_wrapper(wrap).expect("it passes on every call");
    what_does_not_fit_fails_and_the_rest_is_not_touched();
}

fn what_does_not_fit_fails_and_the_rest_is_not_touched() {
    give(1_024);
    let layout = Layout::from_size_align(2_048, 8).unwrap();
    // SAFETY: the layout is not empty; the allocation that succeeds is freed once, outside.
    unsafe {
        assert!(MEMORY.within(|| MEMORY.alloc(layout)).is_null());
        let small = Layout::from_size_align(256, 8).unwrap();
        let inside = MEMORY.within(|| MEMORY.alloc(small));
        assert_eq!(MEMORY.used(), 256);
        let outside = MEMORY.alloc(layout);
        assert!(!outside.is_null());
        assert_eq!(MEMORY.used(), 256);
        MEMORY.dealloc(inside, small);
        MEMORY.dealloc(outside, layout);
    }
    assert_eq!(MEMORY.used(), 0);
}
