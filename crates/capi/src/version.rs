//! Functions without a handle.

use core::ffi::c_char;

use crate::border::packet;

/// The version of the library at run time, such as `0.1.0`. The text lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn weir_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Whether a datagram on a port that carries both RTP and RTCP is RTCP: 1 if it is, 0 if it is RTP,
/// anything else or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn weir_is_rtcp(data: *const u8, length: usize) -> i32 {
    // SAFETY: as this function requires.
    unsafe { packet(data, length) }.is_ok_and(weir_rtcp::is_rtcp).into()
}
