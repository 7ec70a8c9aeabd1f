//! The three functions that a page calls. Texts pass through the module's memory.

/// A place for `length` bytes, for the caller to write the request to.
#[unsafe(no_mangle)]
pub extern "C" fn weir_alloc(length: usize) -> *mut u8 {
    let bytes: Box<[u8]> = vec![0; length].into();
    Box::into_raw(bytes).cast()
}

/// Gives a place back.
///
/// # Safety
///
/// `start` and `length` are those of a place from [`weir_alloc`] or [`weir_answer`] that is still
/// in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_free(start: *mut u8, length: usize) {
    // SAFETY: the caller passes what `Box::into_raw` gave, once.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(start, length)) });
}

/// Answers a request. The upper half of the result is the answer's place, the lower its length in
/// bytes. The caller gives back both places.
///
/// # Safety
///
/// `start` and `length` are those of a place from [`weir_alloc`], which holds the request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_answer(start: *const u8, length: usize) -> u64 {
    // SAFETY: the caller owns the place and does not write to it during the call.
    let request = unsafe { std::slice::from_raw_parts(start, length) };
    let answer = crate::answer(&String::from_utf8_lossy(request)).into_bytes().into_boxed_slice();
    let length = answer.len() as u64;
    (Box::into_raw(answer).cast::<u8>() as usize as u64) << 32 | length
}
