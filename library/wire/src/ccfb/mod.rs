//! Congestion control feedback (CCFB): for each media source, which packets arrived, when, and with
//! which ECN mark [RFC8888 §3.1].
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
//! The number of reports is the count of 16-bit reports, as corrected by erratum 8166. The text
//! before the erratum described it as the distance to the last sequence number, which is one less.
//! `View` recognizes the old meaning wherever the packet does not fit the new one.
//!
//! `View` reads one packet; `Builder` writes as many as a set of arrivals needs.
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
/// Maximum number of reports on one media source in one packet [RFC8888 §3.1].
///
/// [RFC8888 §3.1]: https://www.rfc-editor.org/rfc/rfc8888#section-3.1
pub const MAX_REPORTS: usize = 16_384;

mod field {
    use super::Field;
    pub const SENDER_SSRC: Field = 4..8;
    /// Offset of the first block, or of the timestamp if there is no block.
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
    /// The two bits as on the wire.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0,
            Self::Ect1 => 1,
            Self::Ect0 => 2,
            Self::Ce => 3,
        }
    }

    /// Decodes the low two bits; ignores the others.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }
}

/// Time between a packet's arrival and the report timestamp: 13 bits in units of 1/1024 s
/// [RFC8888 §3.1].
///
/// [RFC8888 §3.1]: https://www.rfc-editor.org/rfc/rfc8888#section-3.1
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalOffset(u16);

impl ArrivalOffset {
    /// Units in a second.
    pub const UNITS_PER_SECOND: u32 = 1024;
    /// The largest value that is an exact duration: 8 s less 3 units.
    pub const LONGEST: Self = Self(8_189);
    /// Any duration longer than `LONGEST`.
    pub const TOO_LONG: Self = Self(0x1ffe);
    /// The arrival time is unknown, or lies after the report timestamp.
    pub const UNKNOWN: Self = Self(0x1fff);

    /// Encodes a number of units, which is negative if the packet arrived after the timestamp.
    pub const fn from_units(units: i64) -> Self {
        if units < 0 {
            Self::UNKNOWN
        } else if units > Self::LONGEST.0 as i64 {
            Self::TOO_LONG
        } else {
            Self(units as u16)
        }
    }

    /// The 13 bits as on the wire.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// The duration in units; `None` for `TOO_LONG` and `UNKNOWN`.
    pub const fn units(self) -> Option<u16> {
        if self.0 <= Self::LONGEST.0 { Some(self.0) } else { None }
    }
}

/// Report on one received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// ECN bits on arrival: CE if any copy of the packet was marked CE.
    pub ecn: Ecn,
    /// Arrival of the first copy.
    pub offset: ArrivalOffset,
}

/// Encodes one packet's report as 16 bits, all zero if the packet was not received.
fn to_bits(report: Option<Reception>) -> u16 {
    report.map_or(0, |Reception { ecn, offset }| {
        RECEIVED_FLAG | u16::from(ecn.bits()) << ECN_SHIFT | offset.0
    })
}

/// Decodes 16 bits. Without the received flag the other bits have no meaning.
fn from_bits(bits: u16) -> Option<Reception> {
    (bits & RECEIVED_FLAG != 0).then(|| Reception {
        ecn: Ecn::from_bits((bits >> ECN_SHIFT) as u8),
        offset: ArrivalOffset(bits & OFFSET_MASK),
    })
}
