//! The heap: a fixed piece of memory, and a count of what each owner holds.
//!
//! With the feature `fixed-memory`, the controller has a piece of its own by
//! [`weir_fixed_memory`], and the program ends with an error if it does not suffice. So the run
//! proves that the controller needs no more.
//!
//! The change from one owner to another is also a mark for `scripts/test/count-instructions.c`,
//! which counts the instructions of each.

use core::alloc::{GlobalAlloc, Layout};
#[cfg(feature = "fixed-memory")]
use core::mem::MaybeUninit;
use core::mem::size_of;
use core::ptr::addr_of_mut;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use embedded_alloc::LlffHeap;
#[cfg(feature = "fixed-memory")]
use weir_fixed_memory::FixedMemory;

/// Memory of the heap in bytes: more than any of the controllers needs.
const HEAP_SIZE: usize = 1024 * 1024;
/// Memory of the controller alone in bytes: `WEIR_CONTROLLER_MEMORY` of the build.
#[cfg(feature = "fixed-memory")]
const CONTROLLER_SIZE: usize = decimal(env!("WEIR_CONTROLLER_MEMORY"));
/// Bytes before each allocation, which hold its owner. They do not count.
const TAG: usize = 8;

/// Who allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Owner {
    /// The sender around the controller: send history, pacer, feedback.
    Sender,
    /// The controller.
    Controller,
    /// The media packets.
    Media,
    /// The simulated network and the receiver.
    Network,
}
const OWNERS: usize = 4;

/// Bytes that an owner holds, and the most that it has held.
struct Count {
    held: AtomicUsize,
    peak: AtomicUsize,
}

struct Heap {
    inner: LlffHeap,
    counts: [Count; OWNERS],
    owner: AtomicUsize,
}

#[cfg_attr(not(feature = "fixed-memory"), global_allocator)]
static HEAP: Heap = Heap {
    inner: LlffHeap::empty(),
    counts: [const { Count { held: AtomicUsize::new(0), peak: AtomicUsize::new(0) } }; OWNERS],
    owner: AtomicUsize::new(Owner::Network as usize),
};

/// Gives the heap its memory. Called once, before the first allocation.
pub(crate) fn start() {
    static mut ALL: [u8; HEAP_SIZE] = [0; HEAP_SIZE];
    // SAFETY: the memory has no other user, and `start` is called once.
    unsafe { HEAP.inner.init(addr_of_mut!(ALL) as usize, HEAP_SIZE) };
    #[cfg(feature = "fixed-memory")]
    {
        static mut OF_CONTROLLER: [MaybeUninit<u8>; CONTROLLER_SIZE] =
            [MaybeUninit::uninit(); CONTROLLER_SIZE];
        // SAFETY: this is the only reference to it, because `start` is called once.
        MEMORY.give(unsafe { &mut *addr_of_mut!(OF_CONTROLLER) });
    }
}

/// The allocator of everything but the controller.
#[cfg(feature = "fixed-memory")]
struct Rest;

#[cfg(feature = "fixed-memory")]
#[global_allocator]
static MEMORY: FixedMemory<Rest> = FixedMemory::new(Rest);

#[cfg(feature = "fixed-memory")]
// SAFETY: every call goes to the heap unchanged.
unsafe impl GlobalAlloc for Rest {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract.
        unsafe { HEAP.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { HEAP.dealloc(pointer, layout) }
    }
}

/// The number that a text of digits stands for.
#[cfg(feature = "fixed-memory")]
const fn decimal(text: &str) -> usize {
    let digits = text.as_bytes();
    let (mut number, mut index) = (0, 0);
    while index < digits.len() {
        assert!(digits[index].is_ascii_digit(), "WEIR_CONTROLLER_MEMORY is a number of bytes");
        number = number * 10 + (digits[index] - b'0') as usize;
        index += 1;
    }
    number
}

/// Defines the functions that the counter of instructions looks for. Each has a body of its own, as
/// the linker merges functions with equal bodies.
macro_rules! marks {
    ($($name:ident: $owner:ident,)*) => {
        $(
            #[unsafe(no_mangle)]
            #[inline(never)]
            extern "C" fn $name() {
                core::hint::black_box(Owner::$owner);
            }
        )*
        fn mark(owner: usize) {
            match owner {
                $(owner if owner == Owner::$owner as usize => $name(),)*
                _ => {}
            }
        }
    };
}
marks! {
    mark_sender: Sender,
    mark_controller: Controller,
    mark_media: Media,
    mark_network: Network,
}

/// Does work whose allocations and instructions belong to this owner.
pub fn within<T>(owner: Owner, work: impl FnOnce() -> T) -> T {
    let before = HEAP.owner.swap(owner as usize, Relaxed);
    mark(owner as usize);
    #[cfg(feature = "fixed-memory")]
    let result = if owner == Owner::Controller { MEMORY.within(work) } else { work() };
    #[cfg(not(feature = "fixed-memory"))]
    let result = work();
    HEAP.owner.store(before, Relaxed);
    mark(before);
    result
}

/// The most bytes that the owner has held at a time.
pub fn peak(owner: Owner) -> usize {
    #[cfg(feature = "fixed-memory")]
    if owner == Owner::Controller {
        return MEMORY.peak();
    }
    HEAP.counts[owner as usize].peak.load(Relaxed)
}

fn tagged(layout: Layout) -> Option<Layout> {
    // Nothing here needs an alignment of more than 8 bytes.
    let fits = layout.align() <= TAG;
    fits.then(|| Layout::from_size_align(layout.size() + TAG, TAG).ok()).flatten()
}

// SAFETY: every call goes to the inner heap, with room for a tag before the bytes of the caller.
// The tag keeps their alignment.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(tagged) = tagged(layout) else { return core::ptr::null_mut() };
        let owner = self.owner.load(Relaxed);
        // SAFETY: the size is not zero.
        let start = unsafe { self.inner.alloc(tagged) };
        if start.is_null() {
            return start;
        }
        let count = &self.counts[owner];
        let held = count.held.load(Relaxed) + layout.size();
        count.held.store(held, Relaxed);
        count.peak.store(held.max(count.peak.load(Relaxed)), Relaxed);
        const { assert!(size_of::<usize>() <= TAG) };
        // SAFETY: the allocation begins with room for the tag.
        unsafe {
            start.cast::<usize>().write(owner);
            start.add(TAG)
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let Some(tagged) = tagged(layout) else { return };
        // SAFETY: `alloc` wrote the tag before the pointer that it returned.
        let start = unsafe { pointer.sub(TAG) };
        let owner = unsafe { start.cast::<usize>().read() };
        let held = &self.counts[owner].held;
        held.store(held.load(Relaxed) - layout.size(), Relaxed);
        // SAFETY: the allocation came from this heap with this layout.
        unsafe { self.inner.dealloc(start, tagged) };
    }
}

struct OneThread;
critical_section::set_impl!(OneThread);
// SAFETY: there is one thread and no interrupt, so nothing can interrupt a critical section.
unsafe impl critical_section::Impl for OneThread {
    unsafe fn acquire() -> critical_section::RawRestoreState {}
    unsafe fn release(_: critical_section::RawRestoreState) {}
}
