//! Congestion control feedback: what of each media source arrived, when, and with which ECN mark
//! [RFC8888 §3.1].
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |V=2|P|  FMT=11 |    PT=205     |            length             |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        SSRC of sender                         |
//! +=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+
//! |                     SSRC of media source                      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |     begin sequence number     |      number of reports        |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |R|ECN| arrival time offset     | ...; if the number is odd, 16 |
//! |                               | zero bits end the block       |
//! +=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+
//! |  more such blocks, one a media source                         |
//! +=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+
//! |     report timestamp: the middle 32 bits of an NTP time       |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! The number of reports is read as the number of 16-bit reports, as erratum 8166 has it. The text
//! before the erratum meant the last sequence number by it, one less; `View` recognizes a packet
//! written so wherever it cannot be the other thing.
//!
//! `View` reads such a packet; `Builder` writes as many as a set of arrivals needs.
//!
//! [RFC8888 §3.1]: https://www.rfc-editor.org/rfc/rfc8888#section-3.1

mod builder;
#[cfg(test)]
mod tests;
mod view;

pub use builder::{Builder, Stream};
pub use view::{Block, Reports, View};

use crate::bytes::Field;

/// Feedback format (FMT) of congestion control feedback.
pub const FORMAT: u8 = 11;
/// Most reports on one media source in one packet [RFC8888 §3.1].
///
/// [RFC8888 §3.1]: https://www.rfc-editor.org/rfc/rfc8888#section-3.1
pub const MAX_REPORTS: usize = 16_384;

mod field {
    use super::Field;
    pub const SENDER_SSRC: Field = 4..8;
    /// The first block, or the timestamp.
    pub const BODY: usize = 8;
    pub const TIMESTAMP_SIZE: usize = 4;
}

mod block_field {
    use super::Field;
    pub const SSRC: Field = 0..4;
    pub const BEGIN: Field = 4..6;
    pub const NUMBER_OF_REPORTS: Field = 6..8;
    pub const REPORTS: usize = 8;
    pub const REPORT_SIZE: usize = 2;
}

const WORD: usize = 4;
const RECEIVED_FLAG: u16 = 1 << 15;
const ECN_SHIFT: u32 = 13;
const OFFSET_MASK: u16 = (1 << ECN_SHIFT) - 1;

/// The two ECN bits of the IP header [RFC3168 §5].
///
/// [RFC3168 §5]: https://www.rfc-editor.org/rfc/rfc3168#section-5
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct,
    /// ECN-capable, L4S.
    Ect1,
    /// ECN-capable.
    Ect0,
    /// Congestion Experienced.
    Ce,
}

impl Ecn {
    /// The two bits.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0,
            Self::Ect1 => 1,
            Self::Ect0 => 2,
            Self::Ce => 3,
        }
    }

    /// From the low two bits.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// How long before the report timestamp a packet arrived: 13 bits in 1/1024 s [RFC8888 §3.1].
///
/// [RFC8888 §3.1]: https://www.rfc-editor.org/rfc/rfc8888#section-3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalOffset(u16);

impl ArrivalOffset {
    /// Units in a second.
    pub const UNITS_PER_SECOND: u32 = 1024;
    /// The largest that says how long: 8 s less 3 units.
    pub const LONGEST: Self = Self(8_189);
    /// Longer than `LONGEST`.
    pub const TOO_LONG: Self = Self(0x1ffe);
    /// Not known, or the packet arrived after the report timestamp was taken.
    pub const UNKNOWN: Self = Self(0x1fff);

    /// What stands for so many units; negative if the arrival lies after the timestamp.
    pub const fn from_units(units: i64) -> Self {
        if units < 0 {
            Self::UNKNOWN
        } else if units > Self::LONGEST.0 as i64 {
            Self::TOO_LONG
        } else {
            Self(units as u16)
        }
    }

    /// The 13 bits on the wire.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The number of units, if it is one.
    pub const fn units(self) -> Option<u16> {
        if self.0 <= Self::LONGEST.0 { Some(self.0) } else { None }
    }
}

/// What is reported of a packet that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// ECN bits on arrival, CE if any copy of the packet had it.
    pub ecn: Ecn,
    /// When the first copy arrived.
    pub offset: ArrivalOffset,
}

/// The 16 bits of one packet's report. One that was not received is all zero.
fn to_bits(report: Option<Reception>) -> u16 {
    report.map_or(0, |Reception { ecn, offset }| {
        RECEIVED_FLAG | u16::from(ecn.bits()) << ECN_SHIFT | offset.0
    })
}

/// What the 16 bits say; without the received flag, the others say nothing.
fn from_bits(bits: u16) -> Option<Reception> {
    (bits & RECEIVED_FLAG != 0).then(|| Reception {
        ecn: Ecn::from_bits((bits >> ECN_SHIFT) as u8),
        offset: ArrivalOffset(bits & OFFSET_MASK),
    })
}
