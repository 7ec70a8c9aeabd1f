//! What `sluice` needs of the heap: nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use weir::Controller;
use weir::controller::RateLimits;
use weir::controllers::sluice::Sluice;
use weir::feedback::{FeedbackReport, PacketReport, SentPacket};
use weir::units::{DataSize, Timestamp};

use super::feed::{ONE_WAY, kbps, ms};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; only a counter is updated.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same as this one's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above, and so from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// All windows are rings of sums or of minima, so the state is all the memory.
#[test]
fn a_million_packets_need_no_memory_beyond_the_state() {
    let before = ALLOCATIONS.get();
    let mut sluice = Sluice::new(RateLimits::new(kbps(150), kbps(300), kbps(20_000)).unwrap());
    let mut allocated = ALLOCATIONS.get() - before;
    let now = Timestamp::from_secs(100);
    for report in 0..50_000 {
        let now = now + ms(50) * report;
        let numbers = report * 20..(report + 1) * 20;
        let packets = numbers.clone().map(|number| {
            let (sent, queue) = (now - ms(400) + ms(number % 20), ms(number / 400 % 300));
            let size = DataSize::from_bytes(1_000 + number as u64 % 7 * 30);
            let arrival = (number % 50 != 0).then_some(sent + ONE_WAY + queue);
            PacketReport::new(number, size, sent).with_arrival_time(arrival)
        });
        let feedback = FeedbackReport::new(packets.collect());
        let before = ALLOCATIONS.get();
        for number in numbers {
            sluice.on_packet_sent(now, &SentPacket::new(number, DataSize::from_bytes(1_000)));
        }
        sluice.on_feedback(now, &feedback);
        if sluice.next_timeout().is_some_and(|due| due <= now) {
            sluice.on_timeout(now);
        }
        allocated += ALLOCATIONS.get() - before;
    }
    assert_eq!(allocated, 0);
    assert!(size_of::<Sluice>() <= 2_464, "{} bytes of state", size_of::<Sluice>());
}
