//! RTP and RTCP on the wire: bytes to values and back, without allocation on the way in.
//!
//! Two layers. A *view* (`rtp::View`, `twcc::View`, ...) borrows bytes that its `parse` has
//! checked once, so that its getters cannot fail; `parse` is total on hostile input. A *value*
//! (`RtpHeader`, `Report`, `Remb`, or the arrivals given to `twcc::Builder`) cannot say what the format
//! cannot carry, and its `emit` writes the exact bytes. All fields are big-endian; bit 0 is the most
//! significant.
//!
//! Sequence numbers leave this crate as they are on the wire, modulo 2^16; unwrapping needs history
//! and belongs to who keeps it.

#![no_std]
#![warn(missing_docs)]

extern crate alloc;

mod bytes;
mod error;
pub mod header;
pub mod remb;
pub mod report;
pub mod rtp;
pub mod twcc;

pub use error::Error;
