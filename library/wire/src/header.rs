//! RTCP common header and compound packets [RFC3550 §6.4.1, §6.1].
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |V=2|P|  count  |  packet type  |  length in words, minus one   |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! `count` is the number of report blocks in a report, and the format (FMT) in a feedback packet.
//!
//! [RFC3550 §6.4.1, §6.1]: https://www.rfc-editor.org/rfc/rfc3550#section-6.4.1

use core::fmt;

use crate::Error;
use crate::bytes::{Field, read_u16, write_u16};

mod field {
    use super::Field;
    pub const FLAGS: usize = 0;
    pub const PACKET_TYPE: usize = 1;
    pub const LENGTH: Field = 2..4;
}

/// Packet type of a sender report.
pub const SENDER_REPORT: u8 = 200;
/// Packet type of a receiver report.
pub const RECEIVER_REPORT: u8 = 201;
/// Packet type of transport-layer feedback [RFC4585 §6.2].
///
/// [RFC4585 §6.2]: https://www.rfc-editor.org/rfc/rfc4585#section-6.2
pub const TRANSPORT_FEEDBACK: u8 = 205;
/// Packet type of payload-specific feedback [RFC4585 §6.3].
///
/// [RFC4585 §6.3]: https://www.rfc-editor.org/rfc/rfc4585#section-6.3
pub const PAYLOAD_FEEDBACK: u8 = 206;

/// Bytes in the common header.
pub(crate) const SIZE: usize = 4;
/// Protocol version in the first two bits of RTP and RTCP packets.
pub(crate) const VERSION: u8 = 2;
const WORD: usize = 4;
const PADDING_FLAG: u8 = 1 << 5;
const COUNT_MASK: u8 = (1 << 5) - 1;

/// One RTCP packet. Its header, length and padding are checked; its content is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The whole packet, up to the length in its header.
    bytes: &'a [u8],
    /// Offset at which the padding begins.
    content_end: usize,
}

impl<'a> Packet<'a> {
    /// Reads bytes that contain exactly one packet.
    ///
    /// # Errors
    /// As [`Packet::split_first`], and [`Error::Surplus`] if bytes follow the packet.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        match Self::split_first(bytes)? {
            (packet, []) => Ok(packet),
            _ => Err(Error::Surplus),
        }
    }

    /// Reads the first packet of a compound. Also returns the bytes after it.
    ///
    /// # Errors
    /// [`Error::Truncated`], [`Error::Version`] or [`Error::Padding`] if the header does not fit
    /// the bytes.
    pub fn split_first(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        if bytes.len() < SIZE {
            return Err(Error::Truncated);
        }
        if bytes[field::FLAGS] >> 6 != VERSION {
            return Err(Error::Version);
        }
        let size = (usize::from(read_u16(bytes, field::LENGTH)) + 1) * WORD;
        let (bytes, rest) = bytes.split_at_checked(size).ok_or(Error::Truncated)?;
        let mut content_end = size;
        if bytes[field::FLAGS] & PADDING_FLAG != 0 {
            // [RFC3550 §6.4.1] requires a multiple of four, but TWCC writers pad by single bytes.
            // Any count that leaves the header intact is accepted.
            let padding = usize::from(bytes[size - 1]);
            if padding == 0 || padding > size - SIZE {
                return Err(Error::Padding);
            }
            content_end -= padding;
        }
        Ok((Self { bytes, content_end }, rest))
    }

    /// The five bits after the padding flag: a count of blocks, or a feedback format.
    pub fn count(&self) -> u8 {
        self.bytes[field::FLAGS] & COUNT_MASK
    }

    /// The packet type.
    pub fn packet_type(&self) -> u8 {
        self.bytes[field::PACKET_TYPE]
    }

    /// The packet without its padding; begins with the common header.
    pub fn content(&self) -> &'a [u8] {
        &self.bytes[..self.content_end]
    }

    /// The whole packet.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl fmt::Display for Packet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (packet_type, count, size) = (self.packet_type(), self.count(), self.bytes.len());
        write!(f, "RTCP type {packet_type}, count {count}, {size} B")
    }
}

/// Writes the common header of the packet that fills `packet`, which must be whole words long.
pub(crate) fn emit(packet: &mut [u8], packet_type: u8, count: u8, is_padded: bool) {
    debug_assert!(count <= COUNT_MASK && packet.len().is_multiple_of(WORD));
    let length =
        u16::try_from(packet.len() / WORD - 1).expect("an RTCP packet has at most 2^16 words");
    packet[field::FLAGS] = VERSION << 6 | if is_padded { PADDING_FLAG } else { 0 } | count;
    packet[field::PACKET_TYPE] = packet_type;
    write_u16(packet, field::LENGTH, length);
}

/// Iterator over the packets of a compound, in order. It ends after the first error.
#[derive(Clone, Debug)]
pub struct Packets<'a> {
    rest: &'a [u8],
}

impl<'a> Packets<'a> {
    /// Iterates over the packets of one datagram.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Packets<'a> {
    type Item = Result<Packet<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match Packet::split_first(self.rest) {
            Ok((packet, rest)) => {
                self.rest = rest;
                Some(Ok(packet))
            }
            Err(error) => {
                // The length of a broken packet cannot be trusted, so the next packet cannot be
                // found.
                self.rest = &[];
                Some(Err(error))
            }
        }
    }
}

impl core::iter::FusedIterator for Packets<'_> {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    /// An empty receiver report, then an application packet of 8 bytes whose last 2 are padding.
    const COMPOUND: [u8; 16] = [
        0x80, 201, 0, 1, 0, 0, 0, 7, // V=2, no padding, no block, 2 words, SSRC 7
        0xa3, 204, 0, 1, b'w', b'r', 0, 2, // V=2, padding, subtype 3, 2 words
    ];

    // [RFC3550 §6.1]
    #[test]
    fn a_compound_yields_its_packets_in_order() {
        let packets: Vec<_> = Packets::new(&COMPOUND).map(|packet| packet.unwrap()).collect();
        assert_eq!(packets.len(), 2);
        assert_eq!((packets[0].packet_type(), packets[0].count()), (RECEIVER_REPORT, 0));
        assert_eq!(packets[0].content(), &COMPOUND[..8]);
        assert_eq!((packets[1].packet_type(), packets[1].count()), (204, 3));
        assert_eq!(packets[1].content(), &COMPOUND[8..14]);
        assert_eq!(packets[1].as_bytes(), &COMPOUND[8..]);
        assert_eq!(packets[1].to_string(), "RTCP type 204, count 3, 8 B");
    }

    #[test]
    fn every_truncation_is_rejected() {
        for len in 0..8 {
            assert_eq!(Packet::parse(&COMPOUND[..len]), Err(Error::Truncated), "{len}");
        }
        for len in 9..16 {
            let last = Packets::new(&COMPOUND[..len]).last();
            assert_eq!(last, Some(Err(Error::Truncated)), "{len}");
        }
    }

    #[test]
    fn a_compound_ends_after_its_first_error() {
        let mut bytes = COMPOUND;
        bytes[0] = 0x40;
        let mut packets = Packets::new(&bytes);
        assert_eq!(packets.next(), Some(Err(Error::Version)));
        assert_eq!(packets.next(), None);
    }

    #[test]
    fn bytes_after_a_single_packet_are_rejected() {
        assert_eq!(Packet::parse(&COMPOUND), Err(Error::Surplus));
    }

    // [RFC3550 §6.4.1]
    #[test]
    fn padding_must_be_at_least_a_byte_and_leave_the_header() {
        let with_padding = |count| {
            let mut bytes = COMPOUND;
            bytes[15] = count;
            Packet::parse(&bytes[8..]).map(|packet| packet.content().len())
        };
        assert_eq!(with_padding(0), Err(Error::Padding));
        assert_eq!(with_padding(1), Ok(7));
        assert_eq!(with_padding(4), Ok(4));
        assert_eq!(with_padding(5), Err(Error::Padding));
    }
}
