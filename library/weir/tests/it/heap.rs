//! The system's heap, with counts. They are those of one thread, because the harness and tests
//! beside a counting one have threads of their own. Tests of other crates include this file.

#![allow(dead_code, reason = "a program of tests may need one of the counts only")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<isize> = const { Cell::new(0) };
    static PEAK_BYTES: Cell<isize> = const { Cell::new(0) };
}

/// How often this thread has allocated.
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

/// What this thread has allocated and not freed, in bytes.
pub fn live_bytes() -> isize {
    LIVE_BYTES.get()
}

/// The most that this thread held at a time while `run` did, beside what it held before, in bytes.
pub fn peak_bytes(run: impl FnOnce()) -> isize {
    let before = LIVE_BYTES.get();
    PEAK_BYTES.set(before);
    run();
    PEAK_BYTES.get() - before
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; only counters are updated.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        let live = LIVE_BYTES.get() + layout.size() as isize;
        LIVE_BYTES.set(live);
        PEAK_BYTES.set(PEAK_BYTES.get().max(live));
        // SAFETY: the caller keeps the contract of `alloc`, which is the same as this one's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.set(LIVE_BYTES.get() - layout.size() as isize);
        // SAFETY: the pointer came from `alloc` above, and so from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
