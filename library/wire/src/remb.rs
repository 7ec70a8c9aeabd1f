//! Receiver estimated maximum bitrate, REMB [REMB §2.2]: payload-specific feedback [RFC4585 §6.3].
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |V=2|P| FMT=15  |    PT=206     |            length             |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        SSRC of sender                         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                  SSRC of media source, unused                 |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |      'R'      |      'E'      |      'M'      |      'B'      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | number of SSRC| exponent  |             mantissa              |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  SSRCs that the estimate is for, as many as announced         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! [REMB §2.2]: https://datatracker.ietf.org/doc/html/draft-alvestrand-rmcat-remb-03#section-2.2
//! [RFC4585 §6.3]: https://www.rfc-editor.org/rfc/rfc4585#section-6.3

use core::fmt;

use crate::Error;
use crate::bytes::{Field, read_u24, read_u32, write_u24, write_u32};
use crate::header::{self, PAYLOAD_FEEDBACK, Packet};

/// Feedback format (FMT) of application-layer feedback, to which REMB belongs [RFC4585 §6.4].
///
/// [RFC4585 §6.4]: https://www.rfc-editor.org/rfc/rfc4585#section-6.4
pub const FORMAT: u8 = 15;
const IDENTIFIER: u32 = u32::from_be_bytes(*b"REMB");

mod field {
    use super::Field;
    pub const SENDER_SSRC: Field = 4..8;
    pub const MEDIA_SSRC: Field = 8..12;
    pub const IDENTIFIER: Field = 12..16;
    pub const SSRC_COUNT: usize = 16;
    pub const BITRATE: Field = 17..20;
    pub const SSRCS: usize = 20;
}

const SSRC_SIZE: usize = 4;
const MANTISSA_BITS: u32 = 18;
const MANTISSA_MASK: u32 = (1 << MANTISSA_BITS) - 1;

/// A receiver's bitrate estimate for a set of media sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remb<'a> {
    sender_ssrc: u32,
    bitrate_bps: u64,
    ssrcs: &'a [u32],
}

impl<'a> Remb<'a> {
    /// Maximum number of SSRCs in one packet.
    pub const MAX_SSRCS: usize = u8::MAX as usize;

    /// Makes an estimate for the sum of `ssrcs`. The mantissa has 18 bits, so the bitrate is
    /// rounded down to 18 significant bits. Returns `None` if there are more than `MAX_SSRCS`.
    pub const fn new(sender_ssrc: u32, bitrate_bps: u64, ssrcs: &'a [u32]) -> Option<Self> {
        if ssrcs.len() > Self::MAX_SSRCS {
            return None;
        }
        let shift = exponent(bitrate_bps);
        Some(Self { sender_ssrc, bitrate_bps: bitrate_bps >> shift << shift, ssrcs })
    }

    /// Size in bytes of the packet.
    pub const fn size(&self) -> usize {
        field::SSRCS + self.ssrcs.len() * SSRC_SIZE
    }

    /// Writes the packet to the front of `buffer` and returns its size.
    ///
    /// # Panics
    /// If `buffer` is shorter than `size`.
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let size = self.size();
        let packet = &mut buffer[..size];
        header::emit(packet, PAYLOAD_FEEDBACK, FORMAT, false);
        write_u32(packet, field::SENDER_SSRC, self.sender_ssrc);
        write_u32(packet, field::MEDIA_SSRC, 0);
        write_u32(packet, field::IDENTIFIER, IDENTIFIER);
        packet[field::SSRC_COUNT] = self.ssrcs.len() as u8; // Checked by `new`.
        let exponent = exponent(self.bitrate_bps);
        let mantissa = (self.bitrate_bps >> exponent) as u32;
        write_u24(packet, field::BITRATE, exponent << MANTISSA_BITS | mantissa);
        for (ssrc, bytes) in
            self.ssrcs.iter().zip(packet[field::SSRCS..].chunks_exact_mut(SSRC_SIZE))
        {
            write_u32(bytes, 0..SSRC_SIZE, *ssrc);
        }
        size
    }
}

/// The smallest exponent for which the mantissa fits its field.
const fn exponent(bitrate_bps: u64) -> u32 {
    (u64::BITS - bitrate_bps.leading_zeros()).saturating_sub(MANTISSA_BITS)
}

/// A REMB packet in checked bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<'a> {
    packet: Packet<'a>,
    bitrate_bps: u64,
    ssrcs: &'a [u8],
}

impl<'a> View<'a> {
    /// Reads bytes that contain exactly one REMB packet.
    ///
    /// # Errors
    /// As [`View::new`], and if the bytes are no packet of RTCP or more than one.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::new(Packet::parse(bytes)?)
    }

    /// Reads one packet of a compound. Other application-layer feedback is an `Error::PacketType`.
    ///
    /// # Errors
    /// [`Error::PacketType`] for another packet, [`Error::Truncated`] if it ends too early,
    /// [`Error::Overflow`] if the bitrate needs more than 64 bits.
    pub fn new(packet: Packet<'a>) -> Result<Self, Error> {
        if packet.packet_type() != PAYLOAD_FEEDBACK || packet.count() != FORMAT {
            return Err(Error::PacketType);
        }
        let content = packet.content();
        let identifier = content.get(field::IDENTIFIER).ok_or(Error::Truncated)?;
        if identifier != IDENTIFIER.to_be_bytes() {
            return Err(Error::PacketType);
        }
        let ssrcs = content.get(field::SSRCS..).ok_or(Error::Truncated)?;
        let ssrcs_size = usize::from(content[field::SSRC_COUNT]) * SSRC_SIZE;
        if ssrcs.len() < ssrcs_size {
            return Err(Error::Truncated);
        }
        if ssrcs.len() > ssrcs_size {
            return Err(Error::Surplus);
        }
        let bits = read_u24(content, field::BITRATE);
        let (exponent, mantissa) = (bits >> MANTISSA_BITS, u64::from(bits & MANTISSA_MASK));
        let bitrate_bps = mantissa << exponent;
        if bitrate_bps >> exponent != mantissa {
            return Err(Error::Overflow);
        }
        Ok(Self { packet, bitrate_bps, ssrcs })
    }

    /// The receiver that sends the estimate.
    pub fn sender_ssrc(&self) -> u32 {
        read_u32(self.packet.content(), field::SENDER_SSRC)
    }

    /// The estimate in bit/s.
    pub fn bitrate_bps(&self) -> u64 {
        self.bitrate_bps
    }

    /// The media sources that the estimate covers.
    pub fn ssrcs(&self) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        self.ssrcs.chunks_exact(SSRC_SIZE).map(|ssrc| read_u32(ssrc, 0..SSRC_SIZE))
    }
}

fn fmt_remb(
    f: &mut fmt::Formatter<'_>,
    sender_ssrc: u32,
    bitrate_bps: u64,
    ssrcs: impl Iterator<Item = u32>,
) -> fmt::Result {
    write!(f, "REMB sender {sender_ssrc:#010x}, {bitrate_bps} bit/s for")?;
    for ssrc in ssrcs {
        write!(f, " {ssrc:#010x}")?;
    }
    Ok(())
}

impl fmt::Display for Remb<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_remb(f, self.sender_ssrc, self.bitrate_bps, self.ssrcs.iter().copied())
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_remb(f, self.sender_ssrc(), self.bitrate_bps, self.ssrcs())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    const SSRCS: [u32; 2] = [0x0bad_cafe, 9];
    /// 1,000,000 = 250,000 * 2^2.
    const BYTES: [u8; 28] = [
        0x8f, 206, 0, 6, // FMT 15, 7 words
        0, 0, 0, 7, // sender
        0, 0, 0, 0, // unused
        b'R', b'E', b'M', b'B', //
        2, 0x0b, 0xd0, 0x90, // two SSRCs, exponent 2, mantissa 0x3d090
        0x0b, 0xad, 0xca, 0xfe, //
        0, 0, 0, 9, //
    ];

    fn emit(remb: &Remb<'_>) -> Vec<u8> {
        let mut bytes = vec![0xaa; remb.size()];
        assert_eq!(remb.emit(&mut bytes), bytes.len());
        bytes
    }

    /// The packet with the three bytes of exponent and mantissa replaced.
    fn with_bitrate(bits: [u8; 3]) -> [u8; 28] {
        let mut bytes = BYTES;
        bytes[field::BITRATE].copy_from_slice(&bits);
        bytes
    }

    // [REMB §2.2]
    #[test]
    fn an_estimate_is_written_and_read() {
        let remb = Remb::new(7, 1_000_000, &SSRCS).unwrap();
        assert_eq!(emit(&remb), BYTES);
        let view = View::parse(&BYTES).unwrap();
        assert_eq!((view.sender_ssrc(), view.bitrate_bps()), (7, 1_000_000));
        assert!(view.ssrcs().eq(SSRCS));
        let line = "REMB sender 0x00000007, 1000000 bit/s for 0x0badcafe 0x00000009";
        assert_eq!(view.to_string(), line);
        assert_eq!(remb.to_string(), line);
    }

    // [REMB §2.2]
    #[test]
    fn a_bitrate_keeps_its_18_highest_bits() {
        let carried = |bps| {
            let bytes = emit(&Remb::new(7, bps, &SSRCS).unwrap());
            View::parse(&bytes).unwrap().bitrate_bps()
        };
        for exact in [0, 1, (1 << 18) - 1, 1 << 18, 1 << 63] {
            assert_eq!(carried(exact), exact);
        }
        assert_eq!(carried((1 << 18) + 1), 1 << 18, "rounded down");
        assert_eq!(carried(u64::MAX), u64::MAX >> 46 << 46);
    }

    #[test]
    fn a_bitrate_beyond_64_bits_is_rejected() {
        let bits = |exponent: u32, mantissa: u32| {
            let [_, rest @ ..] = (exponent << MANTISSA_BITS | mantissa).to_be_bytes();
            View::parse(&with_bitrate(rest)).map(|view| view.bitrate_bps())
        };
        assert_eq!(bits(46, MANTISSA_MASK), Ok(u64::MAX >> 46 << 46));
        assert_eq!(bits(47, MANTISSA_MASK), Err(Error::Overflow));
        assert_eq!(bits(63, 1), Ok(1 << 63));
        assert_eq!(bits(63, 2), Err(Error::Overflow));
        assert_eq!(bits(63, 0), Ok(0));
    }

    #[test]
    fn every_truncation_is_rejected() {
        for len in 0..BYTES.len() {
            assert_eq!(View::parse(&BYTES[..len]), Err(Error::Truncated), "{len}");
        }
        // Shorter packets with a matching length in the header.
        for words in 1..BYTES.len() / 4 {
            let mut short = BYTES[..words * 4].to_vec();
            short[3] = words as u8 - 1;
            assert_eq!(View::parse(&short), Err(Error::Truncated), "{words}");
        }
    }

    #[test]
    fn the_number_of_ssrcs_fits_the_length() {
        let with_count = |count| {
            let mut bytes = BYTES;
            bytes[field::SSRC_COUNT] = count;
            View::parse(&bytes).map(|view| view.ssrcs().len())
        };
        assert_eq!(with_count(1), Err(Error::Surplus));
        assert_eq!(with_count(2), Ok(2));
        assert_eq!(with_count(3), Err(Error::Truncated));
    }

    #[test]
    fn other_feedback_is_not_an_estimate() {
        for (at, value) in [(0, 0x81), (1, 205), (12, b'r')] {
            let mut bytes = BYTES;
            bytes[at] = value;
            assert_eq!(View::parse(&bytes), Err(Error::PacketType), "{at}");
        }
    }

    #[test]
    fn a_packet_holds_at_most_255_ssrcs() {
        assert!(Remb::new(7, 1, &[9; 256]).is_none());
        let bytes = emit(&Remb::new(7, 1, &[9; 255]).unwrap());
        assert_eq!(View::parse(&bytes).unwrap().ssrcs().len(), 255);
    }
}
