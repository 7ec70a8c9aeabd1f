//! What every function of the border does: check the pointers, keep panics inside, return a status.

use core::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use weir::units::Timestamp;

use crate::status::weir_status;
use crate::{WEIR_MAX_PACKET, WEIR_MAX_PACKETS};

/// Bytes of somebody else: a packet or a datagram. Copy what a handle handed out before you pass it
/// to the same handle.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct weir_bytes {
    /// The first byte. May be NULL if the length is zero.
    pub data: *const u8,
    /// Number of bytes, at most `WEIR_MAX_PACKET`.
    pub length: usize,
}

impl weir_bytes {
    /// The bytes, for as long as they stay where they are.
    pub(crate) const fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr(), length: bytes.len() }
    }
}

/// The outcome of a function's body. The error is any status other than `Ok`.
pub(crate) type Outcome<T = ()> = Result<T, weir_status>;

/// The state that every handle has beside its object.
#[derive(Debug)]
pub(crate) struct Guard {
    /// A call panicked, so the object may be in any state.
    broken: Cell<bool>,
    /// The latest `now` of all calls.
    latest: Timestamp,
}

impl Guard {
    pub(crate) const fn new() -> Self {
        Self { broken: Cell::new(false), latest: Timestamp::from_nanos(i64::MIN) }
    }

    /// Remembers whether the call panicked. Returns its status.
    fn note(&self, status: weir_status) -> weir_status {
        if status == weir_status::Internal {
            self.broken.set(true);
        }
        status
    }

    /// Converts a time of the caller. If it lies before that of an earlier call, the earlier call's
    /// time is used.
    pub(crate) fn now(&mut self, now_ns: i64) -> Timestamp {
        self.latest = self.latest.max(Timestamp::from_nanos(now_ns));
        self.latest
    }
}

/// An object behind an opaque pointer.
pub(crate) trait Handle {
    /// The state that all handles have.
    fn guard(&self) -> &Guard;
}

/// Runs the body of a function that changes the object.
///
/// # Safety
/// The handle came from a `new` function of its type and has not been freed, or it is NULL or not
/// aligned. No other call uses it at the same time.
pub(crate) unsafe fn change<H: Handle>(
    handle: *mut H,
    body: impl FnOnce(&mut H) -> Outcome,
) -> weir_status {
    if let Err(status) = check_aligned(handle) {
        return status;
    }
    // SAFETY: it is aligned and not NULL; the rest is this function's condition.
    let handle = unsafe { &mut *handle };
    if handle.guard().broken.get() {
        return weir_status::Internal;
    }
    let status = contain(|| body(handle));
    handle.guard().note(status)
}

/// Runs the body of a function that only reads the object.
///
/// # Safety
/// As [`change`].
pub(crate) unsafe fn read<H: Handle>(
    handle: *const H,
    body: impl FnOnce(&H) -> Outcome,
) -> weir_status {
    if let Err(status) = check_aligned(handle) {
        return status;
    }
    // SAFETY: it is aligned and not NULL; the rest is this function's condition.
    let handle = unsafe { &*handle };
    if handle.guard().broken.get() {
        return weir_status::Internal;
    }
    handle.guard().note(contain(|| body(handle)))
}

/// Runs a body without a handle. A panic ends here: it must not reach the caller's frames.
pub(crate) fn contain(body: impl FnOnce() -> Outcome) -> weir_status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => weir_status::Ok,
        Ok(Err(status)) => status,
        Err(_) => weir_status::Internal,
    }
}

/// Creates an object, and writes its pointer to `out`. After an error, NULL is there.
///
/// # Safety
/// `out` is NULL or may be written.
pub(crate) unsafe fn create<H>(out: *mut *mut H, make: impl FnOnce() -> Outcome<H>) -> weir_status {
    contain(|| {
        check_aligned(out)?;
        // SAFETY: it is aligned and not NULL, and the caller lets us write there.
        unsafe { out.write(core::ptr::null_mut()) };
        let handle = Box::into_raw(Box::new(make()?));
        // SAFETY: as above.
        unsafe { out.write(handle) };
        Ok(())
    })
}

/// Frees an object. NULL is allowed. What is not aligned is no handle and stays as it is.
///
/// # Safety
/// As [`change`]. The handle must not be used afterwards.
pub(crate) unsafe fn free<H>(handle: *mut H) {
    if check_aligned(handle).is_ok() {
        contain(|| {
            // SAFETY: it came from `create`, which made it with `Box::into_raw`.
            drop(unsafe { Box::from_raw(handle) });
            Ok(())
        });
    }
}

/// An error unless the pointer may point to a `T`.
pub(crate) fn check_aligned<T>(pointer: *const T) -> Outcome {
    if pointer.is_null() {
        return Err(weir_status::NullPointer);
    }
    if pointer.is_aligned() { Ok(()) } else { Err(weir_status::InvalidArgument) }
}

/// Writes a value to the caller's variable.
///
/// # Safety
/// `out` is NULL or may be written.
pub(crate) unsafe fn put<T>(out: *mut T, value: T) -> Outcome {
    check_aligned(out)?;
    // SAFETY: it is aligned and not NULL, and the caller lets us write there.
    unsafe { out.write(value) };
    Ok(())
}

/// The caller's array; an error if it has more than `WEIR_MAX_PACKETS` elements.
///
/// The pointer is borrowed so that the slice cannot outlive the call that it came with.
///
/// # Safety
/// `first` is NULL or points to `count` elements that live and do not change while it is borrowed.
/// They are not in the object that a handle of the same call points to, nor in bytes that this
/// handle handed out: the call may write there.
pub(crate) unsafe fn array<T>(first: &*const T, count: usize) -> Outcome<&[T]> {
    let first = *first;
    if count > WEIR_MAX_PACKETS {
        return Err(weir_status::InvalidArgument);
    }
    if count == 0 {
        return Ok(&[]);
    }
    check_aligned(first)?;
    // SAFETY: it is aligned and not NULL; the rest is this function's condition.
    Ok(unsafe { core::slice::from_raw_parts(first, count) })
}

/// The caller's packet; an error if it is longer than `WEIR_MAX_PACKET`.
///
/// # Safety
/// As [`array`], with bytes.
pub(crate) unsafe fn packet(data: &*const u8, length: usize) -> Outcome<&[u8]> {
    if length > WEIR_MAX_PACKET {
        return Err(weir_status::InvalidArgument);
    }
    // SAFETY: as this function requires.
    unsafe { array(data, length) }
}

/// A switch of the caller: 0 or 1.
pub(crate) fn switch(value: u8) -> Outcome<bool> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(weir_status::InvalidArgument),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fragile(Guard);

    impl Handle for Fragile {
        fn guard(&self) -> &Guard {
            &self.0
        }
    }

    #[test]
    fn a_panic_ends_at_the_border_and_the_handle_can_only_be_freed() {
        let mut handle = core::ptr::null_mut();
        // SAFETY: the pointers are valid, and the handle is freed once.
        unsafe {
            assert_eq!(create(&mut handle, || Ok(Fragile(Guard::new()))), weir_status::Ok);
            assert_eq!(change(handle, |_| Err(weir_status::NotRtp)), weir_status::NotRtp);
            assert_eq!(change(handle, |_| panic!("a defect")), weir_status::Internal);
            assert_eq!(change(handle, |_| Ok(())), weir_status::Internal);
            assert_eq!(read(handle, |_| Ok(())), weir_status::Internal);
            free(handle);
        }
    }

    #[test]
    fn what_is_not_aligned_is_no_handle() {
        #[repr(align(8))]
        struct Aligned(Guard);
        impl Handle for Aligned {
            fn guard(&self) -> &Guard {
                &self.0
            }
        }
        let misaligned = core::ptr::without_provenance_mut::<Aligned>(9);
        // SAFETY: nothing is read from the false pointer.
        unsafe {
            assert_eq!(change(misaligned, |_| Ok(())), weir_status::InvalidArgument);
            assert_eq!(read(misaligned, |_| Ok(())), weir_status::InvalidArgument);
            free(misaligned);
            assert_eq!(
                change(core::ptr::null_mut::<Aligned>(), |_| Ok(())),
                weir_status::NullPointer
            );
        }
    }

    #[test]
    fn time_never_runs_backwards() {
        let mut guard = Guard::new();
        assert_eq!(guard.now(-5).as_nanos(), -5);
        assert_eq!(guard.now(9).as_nanos(), 9);
        assert_eq!(guard.now(i64::MIN).as_nanos(), 9);
    }

    #[test]
    fn arrays_are_checked_before_they_are_read() {
        // SAFETY: nothing is read from the false pointers.
        unsafe {
            let misaligned = core::ptr::without_provenance::<u64>(9);
            assert_eq!(array(&misaligned, 1), Err(weir_status::InvalidArgument));
            assert_eq!(array(&misaligned, usize::MAX), Err(weir_status::InvalidArgument));
            assert_eq!(array::<u64>(&core::ptr::null(), 1), Err(weir_status::NullPointer));
            assert_eq!(array::<u64>(&core::ptr::null(), 0), Ok(&[][..]));
            assert_eq!(packet(&core::ptr::null(), 70_000), Err(weir_status::InvalidArgument));
        }
    }
}
