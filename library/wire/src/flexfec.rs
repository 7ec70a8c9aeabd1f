//! The header of flexible FEC with flexible masks [RFC8627 §4.2.2.1].
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |0|0|P|X|  CC   |M| PT recovery |        length recovery        |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                      timestamp recovery                       |
//! +=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+
//! |     base sequence number      |k|          mask 0-14          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |k|                   mask 15-45, if k was 1                    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                    mask 46-109, if k was 1 twice              |
//! |                                                               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! The header is at the front of the payload of an RTP packet whose CSRC list names the media
//! source. After it comes the parity of the protected packets, without their first twelve bytes. Of
//! the standard's variants, only the one with flexible masks and a single media source is
//! supported. Other variants begin with other bits, or have a base and a mask for each CSRC.
//!
//! [RFC8627 §4.2.2.1]: https://www.rfc-editor.org/rfc/rfc8627#section-4.2.2.1

use core::fmt;

use crate::Error;
use crate::bytes::{Field, read_u16, read_u32, read_u64, write_u16, write_u32, write_u64};

mod field {
    use super::Field;
    pub const FLAGS: Field = 0..2;
    pub const LENGTH: Field = 2..4;
    pub const TIMESTAMP: Field = 4..8;
    pub const BASE: Field = 8..10;
    pub const MASK_15: Field = 10..12;
    pub const MASK_31: Field = 12..16;
    pub const MASK_64: Field = 16..24;
}

/// The two bits that select the variant; both are zero here.
const VARIANT_MASK: u16 = 0b11 << 14;
const MORE_15: u16 = 1 << 15;
const MORE_31: u32 = 1 << 31;

/// Mask of the packets that a repair packet protects: at most 110 offsets from its base number.
///
/// Offset 0 is the most significant bit, as on the wire. Offsets are called places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask(u128);

impl Mask {
    /// Number of places in a mask.
    pub const PLACES: u32 = 110;
    const FIRST: u128 = 1 << 127;
    /// First places of the parts of 31 and 64 bits.
    const PART_31: u32 = 15;
    const PART_64: u32 = 46;

    /// The mask with these places. Returns `None` if there is no place, or one beyond the last.
    pub fn new(places: impl IntoIterator<Item = u32>) -> Option<Self> {
        let mut bits = 0;
        for place in places {
            if place >= Self::PLACES {
                return None;
            }
            bits |= Self::FIRST >> place;
        }
        (bits != 0).then_some(Self(bits))
    }

    /// The places in increasing order.
    pub fn places(self) -> impl Iterator<Item = u32> {
        (0..Self::PLACES).filter(move |place| self.0 & Self::FIRST >> place != 0)
    }

    fn part_15(self) -> u16 {
        (self.0 >> (u128::BITS - Self::PART_31)) as u16
    }

    fn part_31(self) -> u32 {
        (self.0 << Self::PART_31 >> (u128::BITS - 31)) as u32
    }

    fn part_64(self) -> u64 {
        (self.0 << Self::PART_64 >> (u128::BITS - 64)) as u64
    }

    fn from_parts(part_15: u16, part_31: u32, part_64: u64) -> Self {
        let part_15 = u128::from(part_15) << (u128::BITS - Self::PART_31);
        let part_31 = u128::from(part_31) << (u128::BITS - Self::PART_64);
        let part_64 = u128::from(part_64) << (u128::BITS - Self::PLACES);
        Self(part_15 | part_31 | part_64)
    }
}

/// Parity of the fixed header fields of the protected packets, and the mask of those packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Parity of the first 16 bits of the RTP headers: padding, extension, CSRC count, marker and
    /// payload type. The two version bits are left out.
    flags: u16,
    /// Parity of the packet sizes without the first twelve bytes of each.
    pub length: u16,
    /// Parity of the RTP timestamps.
    pub timestamp: u32,
    /// The RTP sequence number of place 0.
    pub base_sequence_number: u16,
    /// The protected packets.
    pub mask: Mask,
}

impl Header {
    /// Size in bytes of the largest header.
    pub const MAX_SIZE: usize = field::MASK_64.end;

    /// A header whose parity covers no packet yet. Add packets with [`Header::protect`].
    pub const fn new(base_sequence_number: u16, mask: Mask) -> Self {
        Self { flags: 0, length: 0, timestamp: 0, base_sequence_number, mask }
    }

    /// Adds a packet to the parity, or removes one that was added before. Once all packets but one
    /// are removed, the parity equals the fields of that packet. `rtp_flags` are the first 16 bits
    /// of its RTP header, `length` is its size without the first twelve bytes.
    pub const fn protect(&mut self, rtp_flags: u16, length: u16, timestamp: u32) {
        self.flags ^= rtp_flags & !VARIANT_MASK;
        self.length ^= length;
        self.timestamp ^= timestamp;
    }

    /// Parity of the first 16 bits of the RTP headers, without the version bits.
    pub const fn flags(&self) -> u16 {
        self.flags
    }

    /// The sequence numbers of the protected packets, increasing modulo 2^16.
    pub fn sequence_numbers(&self) -> impl Iterator<Item = u16> + use<> {
        let base = self.base_sequence_number;
        self.mask.places().map(move |place| base.wrapping_add(place as u16))
    }

    /// Size in bytes of the header.
    pub fn size(&self) -> usize {
        match (self.mask.part_31(), self.mask.part_64()) {
            (0, 0) => field::MASK_15.end,
            (_, 0) => field::MASK_31.end,
            _ => field::MASK_64.end,
        }
    }

    /// Writes the header to the front of `buffer` and returns its size.
    ///
    /// # Panics
    /// If `buffer` is shorter than `size`.
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let size = self.size();
        let bytes = &mut buffer[..size];
        write_u16(bytes, field::FLAGS, self.flags);
        write_u16(bytes, field::LENGTH, self.length);
        write_u32(bytes, field::TIMESTAMP, self.timestamp);
        write_u16(bytes, field::BASE, self.base_sequence_number);
        let more_15 = if size > field::MASK_15.end { MORE_15 } else { 0 };
        write_u16(bytes, field::MASK_15, more_15 | self.mask.part_15());
        if size > field::MASK_15.end {
            let more_31 = if size > field::MASK_31.end { MORE_31 } else { 0 };
            write_u32(bytes, field::MASK_31, more_31 | self.mask.part_31());
        }
        if size > field::MASK_31.end {
            write_u64(bytes, field::MASK_64, self.mask.part_64());
        }
        size
    }

    /// Reads the header at the front of a payload. Also returns the parity after it.
    ///
    /// # Errors
    /// [`Error::Truncated`] if the payload ends within the header, [`Error::Variant`] for a variant
    /// without masks, [`Error::NoStatus`] if it protects no packet.
    pub fn parse(payload: &[u8]) -> Result<(Self, &[u8]), Error> {
        if payload.len() < field::MASK_15.end {
            return Err(Error::Truncated);
        }
        let flags = read_u16(payload, field::FLAGS);
        if flags & VARIANT_MASK != 0 {
            return Err(Error::Variant);
        }
        let part_15 = read_u16(payload, field::MASK_15);
        let (mut part_31, mut part_64, mut end) = (0, 0, field::MASK_15.end);
        if part_15 & MORE_15 != 0 {
            end = field::MASK_31.end;
            if payload.len() < end {
                return Err(Error::Truncated);
            }
            part_31 = read_u32(payload, field::MASK_31);
            if part_31 & MORE_31 != 0 {
                end = field::MASK_64.end;
                if payload.len() < end {
                    return Err(Error::Truncated);
                }
                part_64 = read_u64(payload, field::MASK_64);
            }
        }
        let mask = Mask::from_parts(part_15 & !MORE_15, part_31 & !MORE_31, part_64);
        if mask.0 == 0 {
            return Err(Error::NoStatus);
        }
        let header = Self {
            flags,
            length: read_u16(payload, field::LENGTH),
            timestamp: read_u32(payload, field::TIMESTAMP),
            base_sequence_number: read_u16(payload, field::BASE),
            mask,
        };
        Ok((header, &payload[end..]))
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlexFEC base seq {}, protects", self.base_sequence_number)?;
        self.sequence_numbers().try_for_each(|number| write!(f, " {number}"))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    /// Protects 65535, 0 and 13, which fit the first part of the mask.
    const SHORT: [u8; 12] = [
        0x10, 0xe0, 0x00, 0x30, // extension, marker and type; length
        0x00, 0x00, 0x0b, 0xb8, // timestamp
        0xff, 0xff, 0x60, 0x01, // base 65535; places 0, 1 and 14
    ];

    fn short() -> Header {
        let mut header = Header::new(65_535, Mask::new([0, 1, 14]).unwrap());
        header.protect(0x9060, 1_000, 3_000);
        header.protect(0x80e0, 1_000, 6_000);
        header.protect(0x8060, 48, 6_000);
        header
    }

    fn emit(header: &Header) -> Vec<u8> {
        let mut bytes = [0xaa; Header::MAX_SIZE];
        let size = header.emit(&mut bytes);
        assert_eq!(size, header.size());
        bytes[..size].to_vec()
    }

    // [RFC8627 §4.2.2.1]
    #[test]
    fn fifteen_places_take_the_short_mask() {
        assert_eq!(emit(&short()), SHORT);
        let mut payload = SHORT.to_vec();
        payload.extend([1, 2, 3]);
        assert_eq!(Header::parse(&payload), Ok((short(), &[1, 2, 3][..])));
        assert!(short().sequence_numbers().eq([65_535, 0, 13]));
        assert_eq!(short().to_string(), "FlexFEC base seq 65535, protects 65535 0 13");
    }

    // [RFC8627 §4.2.2.1]
    #[test]
    fn more_places_take_the_longer_masks() {
        let mask_bytes = |places: &[u32]| {
            let header = Header::new(5, Mask::new(places.iter().copied()).unwrap());
            let bytes = emit(&header);
            assert_eq!(Header::parse(&bytes), Ok((header, &[][..])));
            bytes[10..].to_vec()
        };
        assert_eq!(mask_bytes(&[15, 45]), [0x80, 0, 0x40, 0, 0, 1]);
        assert_eq!(mask_bytes(&[0, 46, 109]), [0xc0, 0, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 1]);
    }

    // [RFC8627 §6.3.2]
    #[test]
    fn taking_out_all_packets_but_one_leaves_that_one() {
        let mut header = short();
        header.protect(0x9060, 1_000, 3_000);
        header.protect(0x8060, 48, 6_000);
        assert_eq!((header.flags(), header.length, header.timestamp), (0x00e0, 1_000, 6_000));
    }

    #[test]
    fn every_truncation_is_rejected() {
        for places in [[0, 14], [0, 45], [0, 109]] {
            let bytes = emit(&Header::new(5, Mask::new(places).unwrap()));
            for len in 0..bytes.len() {
                assert_eq!(Header::parse(&bytes[..len]), Err(Error::Truncated), "{len}");
            }
        }
    }

    #[test]
    fn the_variants_without_masks_are_rejected() {
        for bits in [0x40, 0x80, 0xc0] {
            let mut bytes = SHORT;
            bytes[0] |= bits;
            assert_eq!(Header::parse(&bytes), Err(Error::Variant));
        }
    }

    #[test]
    fn a_mask_has_between_1_and_110_places() {
        assert_eq!(Mask::new([]), None);
        assert_eq!(Mask::new([110]), None);
        assert!(Mask::new(0..110).unwrap().places().eq(0..110));
        let mut bytes = SHORT;
        bytes[10..].fill(0);
        assert_eq!(Header::parse(&bytes), Err(Error::NoStatus));
    }
}
