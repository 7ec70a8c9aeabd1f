//! A controller in a fixed piece of memory, for devices that must know before they start how much
//! memory each part takes.
//!
//! The controllers allocate: their windows grow with the packet rate. [`FixedMemory`] is a global
//! allocator that gives a controller a piece of its own and leaves everything else to another
//! allocator. What the controller asks for beyond the piece fails, which ends the program; it never
//! takes memory that belongs to another part. [`bytes_for`] says how much each controller needs.
//!
//! ```
//! use std::alloc::System; // Without std: the allocator of the device.
//! use std::mem::MaybeUninit;
//!
//! use weir::controllers::nada::Nada;
//! use weir_fixed_memory::{FixedMemory, bytes_for};
//! use weir::{Algorithm, Bitrate, Controller, RateLimits};
//!
//! #[global_allocator]
//! static MEMORY: FixedMemory<System> = FixedMemory::new(System);
//!
//! let kbps = Bitrate::from_kbps;
//! let limits = RateLimits::new(kbps(150), kbps(300), kbps(2_500)).expect("in order");
//! let piece = vec![MaybeUninit::uninit(); bytes_for(Algorithm::Nada)]; // On a device: a static.
//! MEMORY.give(piece.leak());
//! // Goes into a `MediaSender`, for example.
//! let controller = MEMORY.confine(|| Nada::new(limits));
//! assert_eq!(controller.target().bitrate, kbps(300));
//! assert!(MEMORY.peak() <= bytes_for(Algorithm::Nada));
//! ```
//!
//! One thread calls the controller, and nothing else allocates meanwhile: neither another thread
//! nor an interrupt handler. What another thread allocates at that time would lie in the
//! controller's piece. That is no memory error, but the piece may then be too small.

#![no_std]

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use linked_list_allocator::Heap;

use weir::Algorithm;
use weir::controller::Controller;

/// Bytes in which a controller runs at up to 2.5 Mbit/s with packets of 1200 bytes, feedback every
/// 50 ms, and a round trip of up to 600 ms, half of which is a queue.
///
/// The sizes are for 64-bit processors, where a test runs each controller in a piece of its size.
/// 32-bit processors need a little less. On a shorter path a fraction is enough
/// (`docs/results/costs.md`): look at [`FixedMemory::peak`] of your own test, and leave room
/// beyond it, because a vector that grows needs its old and its new memory at the same time. The
/// state of the controller itself lies where the program puts it, outside of the piece.
///
/// # Panics
/// If the algorithm is newer than this table.
pub const fn bytes_for(algorithm: Algorithm) -> usize {
    match algorithm {
        Algorithm::Gcc => 80 * 1024,
        Algorithm::Nada | Algorithm::Scream | Algorithm::ScreamV2 => 16 * 1024,
        // All that it remembers is in its state.
        Algorithm::Sluice => 256,
        _ => panic!("no size is known for this algorithm"),
    }
}

/// A global allocator with a piece of memory for a controller. `A` serves everything else.
#[derive(Debug)]
pub struct FixedMemory<A> {
    rest: A,
    /// Whether the controller is at work.
    is_inside: AtomicBool,
    /// Whether someone uses `heap`.
    is_locked: AtomicBool,
    heap: UnsafeCell<Heap>,
    /// Addresses of the piece. Both are zero before it is given.
    start: AtomicUsize,
    end: AtomicUsize,
    peak: AtomicUsize,
}

// SAFETY: `heap` is used only in `with_heap`, under a lock. The rest is atomic.
unsafe impl<A: Sync> Sync for FixedMemory<A> {}

impl<A> FixedMemory<A> {
    /// An allocator without a piece for the controller yet.
    pub const fn new(rest: A) -> Self {
        Self {
            rest,
            is_inside: AtomicBool::new(false),
            is_locked: AtomicBool::new(false),
            heap: UnsafeCell::new(Heap::empty()),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
        }
    }

    /// Sets the controller's piece, in place of the one before. The allocator aligns it, which may
    /// cost up to 16 bytes.
    ///
    /// # Panics
    /// If something in the piece before is in use, or if the new one has less than 64 bytes.
    pub fn give(&self, memory: &'static mut [MaybeUninit<u8>]) {
        let size = memory.len();
        assert!(size >= 64, "{size} bytes are too little for any controller");
        let start = memory.as_mut_ptr().cast::<u8>();
        self.with_heap(|heap| {
            assert_eq!(heap.used(), 0, "the piece before is in use");
            // SAFETY: the reference is exclusive and lives for ever, and nothing of the piece
            // before is in use.
            unsafe { heap.init(start, size) };
            self.start.store(start as usize, Ordering::Release);
            self.end.store(start as usize + size, Ordering::Release);
            self.peak.store(0, Ordering::Relaxed);
        });
    }

    /// Does work whose allocations lie in the controller's piece. Memory goes back to where it came
    /// from, whoever frees it.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        /// Restores the state also after a panic.
        struct Inside<'a>(&'a AtomicBool, bool);
        impl Drop for Inside<'_> {
            fn drop(&mut self) {
                self.0.store(self.1, Ordering::Release);
            }
        }
        let before = self.is_inside.load(Ordering::Acquire);
        self.is_inside.store(true, Ordering::Release);
        let _inside = Inside(&self.is_inside, before);
        work()
    }

    /// Builds a controller inside the piece, where it stays.
    pub fn confine<C>(&'static self, build: impl FnOnce() -> C) -> Confined<C, A> {
        Confined { controller: Some(self.within(build)), memory: self }
    }

    /// Bytes of the piece that are in use, with the allocator's rounding.
    pub fn used(&self) -> usize {
        self.with_heap(|heap| heap.used())
    }

    /// The most bytes that were in use at a time since [`FixedMemory::give`].
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    fn with_heap<T>(&self, work: impl FnOnce(&mut Heap) -> T) -> T {
        while self.is_locked.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        /// Unlocks also after a panic.
        struct Locked<'a>(&'a AtomicBool);
        impl Drop for Locked<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        let _locked = Locked(&self.is_locked);
        // SAFETY: the lock gives exclusive access.
        work(unsafe { &mut *self.heap.get() })
    }

    fn contains(&self, pointer: *mut u8) -> bool {
        let range = self.start.load(Ordering::Acquire)..self.end.load(Ordering::Acquire);
        range.contains(&(pointer as usize))
    }
}

// SAFETY: an allocation comes either from the heap of the piece or from `rest`, and goes back to
// the one whose addresses it has. Both are sound allocators, and the heap is used under a lock.
unsafe impl<A: GlobalAlloc> GlobalAlloc for FixedMemory<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !self.is_inside.load(Ordering::Acquire) {
            // SAFETY: the caller keeps the contract of `alloc`.
            return unsafe { self.rest.alloc(layout) };
        }
        self.with_heap(|heap| {
            let allocated = heap.allocate_first_fit(layout);
            self.peak.fetch_max(heap.used(), Ordering::Relaxed);
            allocated.map_or(null_mut(), NonNull::as_ptr)
        })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        if !self.contains(pointer) {
            // SAFETY: it came from `rest`, as its address is not in the piece.
            return unsafe { self.rest.dealloc(pointer, layout) };
        }
        // SAFETY: an allocation is not at address zero.
        let pointer = unsafe { NonNull::new_unchecked(pointer) };
        // SAFETY: it came from this heap, as its address says, with this layout.
        self.with_heap(|heap| unsafe { heap.deallocate(pointer, layout) });
    }
}

/// A controller whose allocations lie in a piece of memory of its own. See the [module](self).
#[derive(Debug)]
pub struct Confined<C, A: 'static> {
    /// `None` only while it is dropped.
    controller: Option<C>,
    memory: &'static FixedMemory<A>,
}

impl<C, A> Confined<C, A> {
    fn read<T>(&self, work: impl FnOnce(&C) -> T) -> T {
        let controller = self.controller.as_ref().expect("it is not dropped");
        self.memory.within(|| work(controller))
    }

    fn change<T>(&mut self, work: impl FnOnce(&mut C) -> T) -> T {
        let controller = self.controller.as_mut().expect("it is not dropped");
        self.memory.within(|| work(controller))
    }
}

impl<C, A> Drop for Confined<C, A> {
    fn drop(&mut self) {
        self.memory.within(|| self.controller = None);
    }
}

impl<C: Controller, A> Controller for Confined<C, A> {
    weir::forward_controller!(change, read);
}
