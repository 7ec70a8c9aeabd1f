//! RTP and RTCP wire formats: converts between bytes and values. Reading does not allocate,
//! but for the structure of a dependency descriptor.
//!
//! Two layers. A *view* (`rtp::View`, `twcc::View`, `ccfb::View`, ...) borrows bytes. Its `parse`
//! checks them once, accepts any input without a panic, and leaves getters that cannot fail. A
//! *value* (`RtpHeader`, `Report`, `Remb`, or the arrivals given to `twcc::Builder`) can represent
//! only what the format can carry; its `emit` writes the exact bytes. A packet of only a few
//! numbers, such as a picture loss indication, has no view: its bytes are read straight into the
//! value. All fields are big-endian; bit 0 is the most significant.
//!
//! Sequence numbers stay modulo 2^16, as on the wire. Unwrapping needs history, so the caller does
//! it.

#![no_std]
#![warn(missing_docs)]
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

extern crate alloc;

/// Defines `with_*` methods, which return the value with one field changed. Callers build types
/// that are `non_exhaustive` with these.
macro_rules! with {
    ($($name:ident: $field:ident: $type:ty,)*) => {$(
        #[doc = concat!("The same with this \
            [`", stringify!($field), "`](#structfield.", stringify!($field), ").")]
        #[must_use]
        pub const fn $name(mut self, $field: $type) -> Self {
            self.$field = $field;
            self
        }
    )*};
}

mod bytes;
pub mod ccfb;
pub mod dependency;
mod error;
pub mod flexfec;
pub mod header;
pub mod key_frame;
pub mod nack;
pub mod remb;
pub mod report;
pub mod rtp;
pub mod twcc;
pub mod vp8;

pub use error::Error;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
