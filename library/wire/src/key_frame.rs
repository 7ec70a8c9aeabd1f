//! Requests for a key frame: picture loss indication [RFC4585 §6.3.1] and full intra request
//! [RFC5104 §4.3.1].
//!
//! ```text
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |V=2|P|FMT=1, 4 |    PT=206     |            length             |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        SSRC of sender                         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |              SSRC of media source; zero if FMT=4              |
//! +=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+
//! |  if FMT=4: SSRC of media source, request number (8), zero     |
//! |  (24); more such pairs                                        |
//! ```
//!
//! [RFC4585 §6.3.1]: https://www.rfc-editor.org/rfc/rfc4585#section-6.3.1
//! [RFC5104 §4.3.1]: https://www.rfc-editor.org/rfc/rfc5104#section-4.3.1

use core::fmt;

use crate::Error;
use crate::bytes::{Field, read_u32, write_u32};
use crate::header::{self, PAYLOAD_FEEDBACK, Packet};

/// Feedback format (FMT) of the picture loss indication.
pub const PICTURE_LOSS_FORMAT: u8 = 1;
/// Feedback format (FMT) of the full intra request.
pub const FULL_INTRA_FORMAT: u8 = 4;

mod field {
    use super::Field;
    pub const SENDER_SSRC: Field = 4..8;
    pub const MEDIA_SSRC: Field = 8..12;
    pub const ENTRIES: usize = 12;
}

mod entry_field {
    use super::Field;
    pub const SSRC: Field = 0..4;
    pub const REQUEST_NUMBER: usize = 4;
    pub const SIZE: usize = 8;
}

/// Picture loss indication: a decoder lacks data and asks the media source for a decodable picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureLoss {
    /// The receiver that sends the request.
    pub sender_ssrc: u32,
    /// The media source that should respond.
    pub media_ssrc: u32,
}

impl PictureLoss {
    /// Size in bytes of the packet.
    pub const SIZE: usize = field::ENTRIES;

    /// Reads bytes that contain exactly one packet.
    ///
    /// # Errors
    /// As [`PictureLoss::new`], and if the bytes are no packet of RTCP or more than one.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        Self::new(Packet::parse(bytes)?)
    }

    /// Reads one packet of a compound. Its few fields are copied, so it has no view.
    ///
    /// # Errors
    /// [`Error::PacketType`] for another packet, [`Error::Truncated`] or [`Error::Surplus`] if its
    /// size is another one.
    pub fn new(packet: Packet<'_>) -> Result<Self, Error> {
        if packet.packet_type() != PAYLOAD_FEEDBACK || packet.count() != PICTURE_LOSS_FORMAT {
            return Err(Error::PacketType);
        }
        let content = packet.content();
        match content.len() {
            ..Self::SIZE => Err(Error::Truncated),
            Self::SIZE => Ok(Self {
                sender_ssrc: read_u32(content, field::SENDER_SSRC),
                media_ssrc: read_u32(content, field::MEDIA_SSRC),
            }),
            _ => Err(Error::Surplus),
        }
    }

    /// Writes the packet to the front of `buffer` and returns its size.
    ///
    /// # Panics
    /// If `buffer` is shorter than `SIZE`.
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let packet = &mut buffer[..Self::SIZE];
        header::emit(packet, PAYLOAD_FEEDBACK, PICTURE_LOSS_FORMAT, false);
        write_u32(packet, field::SENDER_SSRC, self.sender_ssrc);
        write_u32(packet, field::MEDIA_SSRC, self.media_ssrc);
        Self::SIZE
    }
}

impl fmt::Display for PictureLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PLI sender {:#010x}, media {:#010x}", self.sender_ssrc, self.media_ssrc)
    }
}

/// One request in a [`FullIntra`] packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntraRequest {
    /// The media source that should respond.
    pub media_ssrc: u32,
    /// Increases by one with each new request to this source; a repeated request keeps its number.
    pub number: u8,
}

/// Full intra request: asks media sources for a key frame, whether or not a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullIntra<'a> {
    sender_ssrc: u32,
    requests: &'a [IntraRequest],
}

impl<'a> FullIntra<'a> {
    /// Maximum number of requests in one packet.
    pub const MAX_REQUESTS: usize = 1 << 12;

    /// Returns `None` if there is no request, or more than `MAX_REQUESTS`.
    pub const fn new(sender_ssrc: u32, requests: &'a [IntraRequest]) -> Option<Self> {
        if requests.is_empty() || requests.len() > Self::MAX_REQUESTS {
            return None;
        }
        Some(Self { sender_ssrc, requests })
    }

    /// Size in bytes of the packet.
    pub const fn size(&self) -> usize {
        field::ENTRIES + self.requests.len() * entry_field::SIZE
    }

    /// Writes the packet to the front of `buffer` and returns its size.
    ///
    /// # Panics
    /// If `buffer` is shorter than `size`.
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let size = self.size();
        let packet = &mut buffer[..size];
        packet.fill(0);
        header::emit(packet, PAYLOAD_FEEDBACK, FULL_INTRA_FORMAT, false);
        write_u32(packet, field::SENDER_SSRC, self.sender_ssrc);
        let entries = packet[field::ENTRIES..].chunks_exact_mut(entry_field::SIZE);
        for (request, bytes) in self.requests.iter().zip(entries) {
            write_u32(bytes, entry_field::SSRC, request.media_ssrc);
            bytes[entry_field::REQUEST_NUMBER] = request.number;
        }
        size
    }
}

/// A full intra request in checked bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullIntraView<'a> {
    packet: Packet<'a>,
    entries: &'a [u8],
}

impl<'a> FullIntraView<'a> {
    /// Reads bytes that contain exactly one packet.
    ///
    /// # Errors
    /// As [`FullIntraView::new`], and if the bytes are no packet of RTCP or more than one.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::new(Packet::parse(bytes)?)
    }

    /// Reads one packet of a compound. The packet must contain at least one request.
    ///
    /// # Errors
    /// [`Error::PacketType`] for another packet, [`Error::Truncated`] if it has no whole request.
    pub fn new(packet: Packet<'a>) -> Result<Self, Error> {
        if packet.packet_type() != PAYLOAD_FEEDBACK || packet.count() != FULL_INTRA_FORMAT {
            return Err(Error::PacketType);
        }
        let entries = packet.content().get(field::ENTRIES..).ok_or(Error::Truncated)?;
        if entries.is_empty() || entries.len() % entry_field::SIZE != 0 {
            return Err(Error::Truncated);
        }
        Ok(Self { packet, entries })
    }

    /// The receiver that sends the requests.
    pub fn sender_ssrc(&self) -> u32 {
        read_u32(self.packet.content(), field::SENDER_SSRC)
    }

    /// The requests in packet order.
    pub fn requests(&self) -> impl ExactSizeIterator<Item = IntraRequest> + use<'a> {
        self.entries.chunks_exact(entry_field::SIZE).map(|entry| IntraRequest {
            media_ssrc: read_u32(entry, entry_field::SSRC),
            number: entry[entry_field::REQUEST_NUMBER],
        })
    }
}

impl fmt::Display for FullIntraView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FIR sender {:#010x}", self.sender_ssrc())?;
        self.requests()
            .try_for_each(|ask| write!(f, ", media {:#010x} number {}", ask.media_ssrc, ask.number))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    const PLI: [u8; 12] = [0x81, 206, 0, 2, 0, 0, 0, 7, 0x0b, 0xad, 0xca, 0xfe];
    const FIR: [u8; 28] = [
        0x84, 206, 0, 6, 0, 0, 0, 7, 0, 0, 0, 0, // format 4, sender, no media source
        0x0b, 0xad, 0xca, 0xfe, 3, 0, 0, 0, // third request
        0, 0, 0, 9, 255, 0, 0, 0, // 255th
    ];
    const REQUESTS: [IntraRequest; 2] = [
        IntraRequest { media_ssrc: 0x0bad_cafe, number: 3 },
        IntraRequest { media_ssrc: 9, number: 255 },
    ];

    // [RFC4585 §6.3.1]
    #[test]
    fn a_picture_loss_indication_is_written_and_read() {
        let picture_loss = PictureLoss { sender_ssrc: 7, media_ssrc: 0x0bad_cafe };
        let mut bytes = [0xaa; PictureLoss::SIZE];
        assert_eq!(picture_loss.emit(&mut bytes), 12);
        assert_eq!(bytes, PLI);
        assert_eq!(PictureLoss::parse(&PLI), Ok(picture_loss));
        assert_eq!(picture_loss.to_string(), "PLI sender 0x00000007, media 0x0badcafe");
    }

    // [RFC5104 §4.3.1]
    #[test]
    fn a_full_intra_request_is_written_and_read() {
        let full_intra = FullIntra::new(7, &REQUESTS).unwrap();
        let mut bytes = [0xaa; 28];
        assert_eq!(full_intra.emit(&mut bytes), full_intra.size());
        assert_eq!(bytes, FIR);
        let view = FullIntraView::parse(&FIR).unwrap();
        assert_eq!(view.sender_ssrc(), 7);
        assert!(view.requests().eq(REQUESTS));
        let line = "FIR sender 0x00000007, media 0x0badcafe number 3, media 0x00000009 number 255";
        assert_eq!(view.to_string(), line);
    }

    #[test]
    fn every_truncation_is_rejected() {
        for len in 0..PLI.len() {
            assert_eq!(PictureLoss::parse(&PLI[..len]), Err(Error::Truncated), "{len}");
        }
        for len in 0..FIR.len() {
            assert_eq!(FullIntraView::parse(&FIR[..len]), Err(Error::Truncated), "{len}");
        }
        for words in 1..7 {
            let mut bytes = FIR[..words * 4].to_vec();
            bytes[3] = words as u8 - 1;
            assert_eq!(FullIntraView::parse(&bytes).is_ok(), words == 5, "{words} words");
        }
    }

    #[test]
    fn each_of_the_two_rejects_the_other() {
        assert_eq!(PictureLoss::parse(&FIR), Err(Error::PacketType));
        assert_eq!(FullIntraView::parse(&PLI), Err(Error::PacketType));
    }

    #[test]
    fn a_request_to_nobody_cannot_be_said() {
        assert_eq!(FullIntra::new(7, &[]), None);
    }

    #[test]
    fn a_picture_loss_indication_has_no_more_than_its_header() {
        let mut bytes = FIR;
        bytes[0] = 0x81;
        assert_eq!(PictureLoss::parse(&bytes), Err(Error::Surplus));
    }
}
