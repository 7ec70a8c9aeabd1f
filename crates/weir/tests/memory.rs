//! Memory stays flat: over a simulated hour a sender and a receiver hold no more at the end than after
//! the first ten minutes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

use weir::Algorithm;
use weir::controller::RateLimits;
use weir::feedback::{ArrivalRecorder, Outgoing, SendHistory, TwccHeader};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

static LIVE_BYTES: AtomicIsize = AtomicIsize::new(0);

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; only a counter is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE_BYTES.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is this one's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the pointer came from `alloc` above, that is from the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SIZE: DataSize = DataSize::from_bytes(1_250);
const MINUTE_STEPS: i64 = 60 * 20;

/// 2 Mbit/s and a feedback packet every 50 ms, with a lost packet in each hundred.
fn step(step: i64, parts: &mut Parts) {
    let now = Timestamp::ZERO + TimeDelta::from_millis(50) * step;
    for index in 0..10 {
        let send_time = now + TimeDelta::from_millis(5) * index;
        let packet = parts.history.on_packet_sent(
            send_time,
            Outgoing { queued: DataSize::ZERO, ..Outgoing::media(SIZE) },
        );
        parts.controller.on_packet_sent(send_time, &packet);
        if packet.sequence_number % 100 != 37 {
            let arrival = send_time + TimeDelta::from_millis(25);
            parts.recorder.on_packet(arrival, packet.sequence_number as u16);
        }
    }
    let now = now + TimeDelta::from_millis(50);
    if parts.controller.next_timeout().is_some_and(|due| due <= now) {
        parts.controller.on_timeout(now);
    }
    let header = TwccHeader { reference_time: 0, feedback_count: step as u8 };
    let batch = parts.recorder.take_batch(now + TimeDelta::from_millis(25)).to_vec();
    let first = batch[0].1;
    let arrivals =
        batch.iter().map(|&(number, at)| (number as u16, Some(((at - first) / 250) as i32)));
    if let Some(report) = parts.history.on_twcc(header, arrivals) {
        parts.controller.on_feedback(now, report);
    }
}

struct Parts {
    history: SendHistory,
    recorder: ArrivalRecorder,
    controller: Box<dyn weir::Controller + Send>,
}

// One test alone in this program: another one's allocations would count as well.
#[test]
fn an_hour_holds_no_more_than_ten_minutes() {
    let kbps = Bitrate::from_kbps;
    for algorithm in Algorithm::ALL {
        let limits = RateLimits::new(kbps(150), kbps(300), kbps(2_500)).expect("in order");
        let mut parts = Parts {
            history: SendHistory::default(),
            recorder: ArrivalRecorder::default(),
            controller: algorithm.build(limits),
        };
        (0..10 * MINUTE_STEPS).for_each(|index| step(index, &mut parts));
        let after_ten_minutes = LIVE_BYTES.load(Ordering::Relaxed);
        (10 * MINUTE_STEPS..60 * MINUTE_STEPS).for_each(|index| step(index, &mut parts));
        let grown = LIVE_BYTES.load(Ordering::Relaxed) - after_ten_minutes;
        assert!(grown <= 0, "{algorithm}: {grown} bytes more after an hour");
    }
}
