//! Transport-wide feedback: which packets of a transport arrived, and when [TWCC].
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |V=2|P|  FMT=15 |    PT=205     |            length             |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        SSRC of sender                         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |              SSRC of media source (any of the transport)      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |     base sequence number      |      packet status count      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |        reference time, 64 ms                  | feedback count|
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  packet chunks, 2 bytes each: a status for every packet from  |
//! |  the base on; symbols after the status count say nothing      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  receive deltas, 1 or 2 bytes each, 250 us: one for every     |
//! |  received packet, since the one before it, the first since    |
//! |  the reference time                                           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  zero padding to 32 bits; if any, P and a count in its last   |
//! |  byte                                                         |
//! ```
//!
//! `View` reads one packet; `Builder` writes as many as a set of arrivals needs.
//!
//! [TWCC]: https://datatracker.ietf.org/doc/html/draft-holmer-rmcat-transport-wide-cc-extensions-01

mod builder;
mod chunk;
#[cfg(test)]
mod tests;
mod view;

pub use builder::Builder;
pub use view::{Arrivals, View};

use core::fmt;

use crate::bytes::Field;

/// Feedback format (FMT) of transport-wide feedback.
pub const FORMAT: u8 = 15;
/// Microseconds in a tick, the unit of receive deltas.
pub const TICK_US: i64 = 250;
/// Ticks in the unit of the reference time, 64 ms.
const TICKS_PER_REFERENCE_UNIT: i64 = 256;

mod field {
    use super::Field;
    pub const SENDER_SSRC: Field = 4..8;
    pub const MEDIA_SSRC: Field = 8..12;
    pub const BASE_SEQUENCE_NUMBER: Field = 12..14;
    pub const STATUS_COUNT: Field = 14..16;
    pub const REFERENCE_TIME: Field = 16..19;
    pub const FEEDBACK_COUNT: usize = 19;
    pub const CHUNKS: usize = 20;
}

/// A receiver's clock in units of 64 ms, modulo 2^24 units (12.4 days).
///
/// The value has 24 unsigned bits. Code that drops the top bit sees a jump every 6.2 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceTime(u32);

impl ReferenceTime {
    /// Microseconds per unit.
    pub const UNIT_US: i64 = TICKS_PER_REFERENCE_UNIT * TICK_US;
    const BITS: u32 = 24;

    /// Keeps the low 24 bits; a negative time wraps to the upper half.
    pub const fn from_units(units: i64) -> Self {
        Self((units & ((1 << Self::BITS) - 1)) as u32)
    }

    /// The 24 bits as on the wire.
    pub const fn units(self) -> u32 {
        self.0
    }

    /// Units from `earlier` to this time, by the shorter direction around the wrap: -2^23..2^23.
    ///
    /// The sum of these differences unwraps the reference times of successive feedback packets.
    pub const fn units_since(self, earlier: Self) -> i32 {
        let unused = u32::BITS - Self::BITS;
        // Shift the 24-bit difference to the top bits, so that it is sign-extended on the way back.
        (self.0.wrapping_sub(earlier.0) << unused) as i32 >> unused
    }
}

impl fmt::Display for ReferenceTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} s", f64::from(self.0) * Self::UNIT_US as f64 / 1e6)
    }
}
