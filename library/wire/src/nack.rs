//! Generic negative acknowledgement (NACK): lists the RTP packets that a receiver misses
//! [RFC4585 §6.2.1].
//!
//! ```text
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |V=2|P|  FMT=1  |    PT=205     |            length             |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        SSRC of sender                         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                     SSRC of media source                      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |     sequence number lost      |    mask of the 16 after it    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  more such pairs                                              |
//! ```
//!
//! The least significant bit of the mask stands for the packet right after the sequence number.
//!
//! [RFC4585 §6.2.1]: https://www.rfc-editor.org/rfc/rfc4585#section-6.2.1

use core::fmt;

use crate::Error;
use crate::bytes::{Field, read_u16, read_u32, write_u16, write_u32};
use crate::header::{self, Packet, TRANSPORT_FEEDBACK};

/// Feedback format (FMT) of the generic NACK.
pub const FORMAT: u8 = 1;

mod field {
    use super::Field;
    pub const SENDER_SSRC: Field = 4..8;
    pub const MEDIA_SSRC: Field = 8..12;
    pub const PAIRS: usize = 12;
}

mod pair_field {
    use super::Field;
    pub const NUMBER: Field = 0..2;
    pub const MASK: Field = 2..4;
    pub const SIZE: usize = 4;
}

/// Number of packets that the mask of a pair covers after its sequence number.
const MASK_BITS: u16 = 16;

/// The packets of one media source that a receiver misses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack<'a> {
    sender_ssrc: u32,
    media_ssrc: u32,
    sequence_numbers: &'a [u16],
}

impl<'a> Nack<'a> {
    /// Maximum number of sequence numbers in one packet.
    pub const MAX_SEQUENCE_NUMBERS: usize = 1 << 15;

    /// The numbers should increase modulo 2^16, so that neighbours share a mask. Returns `None` if
    /// there are none, or more than half the number space.
    pub const fn new(
        sender_ssrc: u32,
        media_ssrc: u32,
        sequence_numbers: &'a [u16],
    ) -> Option<Self> {
        if sequence_numbers.is_empty() || sequence_numbers.len() > Self::MAX_SEQUENCE_NUMBERS {
            return None;
        }
        Some(Self { sender_ssrc, media_ssrc, sequence_numbers })
    }

    /// The pairs to write: a sequence number, and the mask of those after it.
    fn pairs(&self) -> impl Iterator<Item = (u16, u16)> {
        let mut rest = self.sequence_numbers;
        core::iter::from_fn(move || {
            let (&number, after) = rest.split_first()?;
            rest = after;
            let (mut mask, mut reach) = (0, 0);
            while let Some((&next, after)) = rest.split_first() {
                let distance = next.wrapping_sub(number);
                // Within one mask the packets increase; otherwise start a new pair.
                if distance <= reach || distance > MASK_BITS {
                    break;
                }
                reach = distance;
                mask |= 1 << (distance - 1);
                rest = after;
            }
            Some((number, mask))
        })
    }

    /// Size in bytes of the packet.
    pub fn size(&self) -> usize {
        field::PAIRS + self.pairs().count() * pair_field::SIZE
    }

    /// Writes the packet to the front of `buffer` and returns its size.
    ///
    /// # Panics
    /// If `buffer` is shorter than `size`.
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let size = self.size();
        let packet = &mut buffer[..size];
        header::emit(packet, TRANSPORT_FEEDBACK, FORMAT, false);
        write_u32(packet, field::SENDER_SSRC, self.sender_ssrc);
        write_u32(packet, field::MEDIA_SSRC, self.media_ssrc);
        let places = packet[field::PAIRS..].chunks_exact_mut(pair_field::SIZE);
        for ((number, mask), bytes) in self.pairs().zip(places) {
            write_u16(bytes, pair_field::NUMBER, number);
            write_u16(bytes, pair_field::MASK, mask);
        }
        size
    }
}

/// A generic NACK in checked bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<'a> {
    packet: Packet<'a>,
    pairs: &'a [u8],
}

impl<'a> View<'a> {
    /// Reads bytes that contain exactly one packet.
    ///
    /// # Errors
    /// As [`View::new`], and if the bytes are no packet of RTCP or more than one.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::new(Packet::parse(bytes)?)
    }

    /// Reads one packet of a compound. The packet must list at least one sequence number.
    ///
    /// # Errors
    /// [`Error::PacketType`] for another packet, [`Error::Truncated`] if it lists no whole pair.
    pub fn new(packet: Packet<'a>) -> Result<Self, Error> {
        if packet.packet_type() != TRANSPORT_FEEDBACK || packet.count() != FORMAT {
            return Err(Error::PacketType);
        }
        let pairs = packet.content().get(field::PAIRS..).ok_or(Error::Truncated)?;
        if pairs.is_empty() || pairs.len() % pair_field::SIZE != 0 {
            return Err(Error::Truncated);
        }
        Ok(Self { packet, pairs })
    }

    /// The receiver that misses the packets.
    pub fn sender_ssrc(&self) -> u32 {
        read_u32(self.packet.content(), field::SENDER_SSRC)
    }

    /// The media source of the missing packets.
    pub fn media_ssrc(&self) -> u32 {
        read_u32(self.packet.content(), field::MEDIA_SSRC)
    }

    /// The missing sequence numbers, in packet order.
    pub fn sequence_numbers(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.pairs.chunks_exact(pair_field::SIZE).flat_map(|pair| {
            let number = read_u16(pair, pair_field::NUMBER);
            let mask = read_u16(pair, pair_field::MASK);
            let after = (0..MASK_BITS).filter(move |bit| mask >> bit & 1 == 1);
            core::iter::once(number).chain(after.map(move |bit| number.wrapping_add(bit + 1)))
        })
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NACK sender {:#010x}, media {:#010x}", self.sender_ssrc(), self.media_ssrc())?;
        self.sequence_numbers().try_for_each(|number| write!(f, ", {number}"))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    const NUMBERS: [u16; 5] = [65_534, 65_535, 14, 15, 400];
    const BYTES: [u8; 24] = [
        0x81, 205, 0, 5, // format 1, six words
        0, 0, 0, 7, 0x0b, 0xad, 0xca, 0xfe, // sender, media
        0xff, 0xfe, 0x80, 0x01, // 65534, and the next and the 16th after it
        0x00, 0x0f, 0x00, 0x00, // 15
        0x01, 0x90, 0x00, 0x00, // 400
    ];

    // [RFC4585 §6.2.1]
    #[test]
    fn missing_numbers_share_masks_over_the_wrap() {
        let nack = Nack::new(7, 0x0bad_cafe, &NUMBERS).unwrap();
        let mut bytes = [0xaa; 24];
        assert_eq!(nack.emit(&mut bytes), nack.size());
        assert_eq!(bytes, BYTES);
        let view = View::parse(&BYTES).unwrap();
        assert_eq!((view.sender_ssrc(), view.media_ssrc()), (7, 0x0bad_cafe));
        assert!(view.sequence_numbers().eq(NUMBERS));
        assert_eq!(
            view.to_string(),
            "NACK sender 0x00000007, media 0x0badcafe, 65534, 65535, 14, 15, 400"
        );
    }

    #[test]
    fn numbers_keep_their_order_whatever_it_is() {
        let numbers = [9, 3, 3, 5, 4, 65_000, 2];
        let nack = Nack::new(1, 2, &numbers).unwrap();
        let mut bytes = [0; 60];
        let size = nack.emit(&mut bytes);
        let read: Vec<_> = View::parse(&bytes[..size]).unwrap().sequence_numbers().collect();
        assert_eq!(read, numbers);
    }

    #[test]
    fn a_nack_of_nothing_cannot_be_said() {
        assert_eq!(Nack::new(1, 2, &[]), None);
        let mut bytes = BYTES[..12].to_vec();
        bytes[3] = 2;
        assert_eq!(View::parse(&bytes), Err(Error::Truncated));
    }

    #[test]
    fn every_truncation_is_rejected() {
        for len in 0..BYTES.len() {
            assert_eq!(View::parse(&BYTES[..len]), Err(Error::Truncated), "{len}");
        }
    }

    #[test]
    fn a_packet_of_another_type_is_rejected() {
        let mut bytes = BYTES;
        bytes[1] = 206;
        assert_eq!(View::parse(&bytes), Err(Error::PacketType));
    }
}
