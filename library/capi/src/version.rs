//! The version of the library.

use core::ffi::c_char;

/// The version of the library at run time, such as `0.1.0`. The text lives for ever.
#[unsafe(no_mangle)]
pub extern "C" fn weir_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
