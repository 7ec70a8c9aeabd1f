//! The functions that `watch.js` calls. Texts pass through the module's memory.

use crate::Watch;

/// Begins to watch a call of which the reports of the last `window_s` seconds count.
#[unsafe(no_mangle)]
pub extern "C" fn weir_watch_begin(window_s: f64) -> *mut Watch {
    Box::into_raw(Box::new(Watch::new(window_s)))
}

/// Ends a call.
///
/// # Safety
///
/// `call` is from [`weir_watch_begin`] and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_watch_end(call: *mut Watch) {
    // SAFETY: the caller passes what `Box::into_raw` gave, once.
    drop(unsafe { Box::from_raw(call) });
}

/// A place for `length` bytes, for the caller to write an event to.
#[unsafe(no_mangle)]
pub extern "C" fn weir_watch_alloc(length: usize) -> *mut u8 {
    let bytes: Box<[u8]> = vec![0; length].into();
    Box::into_raw(bytes).cast()
}

/// Gives a place back.
///
/// # Safety
///
/// `start` and `length` are those of a place from [`weir_watch_alloc`] or [`weir_watch_take`] that
/// is still in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_watch_free(start: *mut u8, length: usize) {
    // SAFETY: the caller passes what `Box::into_raw` gave, once.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, length)) });
}

/// Takes an event and answers in JSON. The upper half of the result is the answer's place, the
/// lower its length in bytes. The caller gives back both places.
///
/// # Safety
///
/// `call` is from [`weir_watch_begin`] and has not ended. `start` and `length` are those of a place
/// from [`weir_watch_alloc`], which holds the event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_watch_take(call: *mut Watch, start: *const u8, length: usize) -> u64 {
    // SAFETY: the caller owns the call and the place, and uses neither during this one.
    let (call, event) = unsafe { (&mut *call, std::slice::from_raw_parts(start, length)) };
    let answer = call.take(event).into_bytes().into_boxed_slice();
    let length = answer.len() as u64;
    (Box::into_raw(answer).cast::<u8>() as usize as u64) << 32 | length
}
