//! RTP and RTCP on the wire: bytes to values and back, without allocation on the way in.
//!
//! Two layers. A *view* (`rtp::View`, `twcc::View`, `ccfb::View`, ...) borrows bytes that its `parse`
//! has checked once, so that its getters cannot fail; `parse` is total on hostile input. A *value*
//! (`RtpHeader`, `Report`, `Remb`, or the arrivals given to `twcc::Builder`) cannot say what the format
//! cannot carry, and its `emit` writes the exact bytes. A packet that is only a few numbers, as a
//! picture loss indication is, is read straight into its value. All fields are big-endian; bit 0 is
//! the most significant.
//!
//! Sequence numbers leave this crate as they are on the wire, modulo 2^16; unwrapping needs history
//! and belongs to who keeps it.

#![no_std]
#![warn(missing_docs)]

extern crate alloc;

mod bytes;
pub mod ccfb;
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
