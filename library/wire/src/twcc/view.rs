//! Reading transport-wide feedback.

use core::fmt;

use super::chunk::{Chunk, Symbol, Symbols};
use super::{FORMAT, ReferenceTime, field};
use crate::Error;
use crate::bytes::{read_u16, read_u24, read_u32};
use crate::header::{Packet, TRANSPORT_FEEDBACK};

/// Maximum number of bytes after the deltas. Old writers pad to a word without setting the padding
/// flag.
const MAX_UNMARKED_PADDING: usize = 3;

/// Transport-wide feedback in checked bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<'a> {
    packet: Packet<'a>,
    /// The chunks that cover the status count.
    chunks: &'a [u8],
    /// As many bytes of deltas as the chunks call for.
    deltas: &'a [u8],
}

impl<'a> View<'a> {
    /// Reads bytes that contain exactly one feedback packet.
    ///
    /// # Errors
    /// As [`View::new`], and if the bytes are no packet of RTCP or more than one.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::new(Packet::parse(bytes)?)
    }

    /// Reads one packet of a compound.
    ///
    /// A packet that reports received packets but carries no deltas is rejected as truncated: a
    /// controller cannot use it. (The second form of the sequence number extension can request such
    /// feedback.)
    ///
    /// # Errors
    /// [`Error::PacketType`] for another packet, [`Error::Truncated`] if it ends too early,
    /// [`Error::NoStatus`] if it reports on no packet, [`Error::ReservedSymbol`] for a status that
    /// is reserved.
    pub fn new(packet: Packet<'a>) -> Result<Self, Error> {
        if packet.packet_type() != TRANSPORT_FEEDBACK || packet.count() != FORMAT {
            return Err(Error::PacketType);
        }
        let content = packet.content();
        let body = content.get(field::CHUNKS..).ok_or(Error::Truncated)?;
        let mut uncovered = read_u16(content, field::STATUS_COUNT);
        if uncovered == 0 {
            return Err(Error::NoStatus);
        }
        let mut rest = body;
        let mut deltas_size = 0;
        while uncovered > 0 {
            let (bits, after) = rest.split_first_chunk().ok_or(Error::Truncated)?;
            let chunk = Chunk::from_bits(u16::from_be_bytes(*bits))?;
            let covered = chunk.len().min(uncovered);
            let tally = chunk.tally(covered)?;
            deltas_size += tally.small_deltas + 2 * tally.large_deltas;
            uncovered -= covered;
            rest = after;
        }
        let chunks = &body[..body.len() - rest.len()];
        let (deltas, surplus) = rest.split_at_checked(deltas_size).ok_or(Error::Truncated)?;
        if surplus.len() > MAX_UNMARKED_PADDING {
            return Err(Error::Surplus);
        }
        Ok(Self { packet, chunks, deltas })
    }

    /// The receiver that sends the feedback.
    pub fn sender_ssrc(&self) -> u32 {
        read_u32(self.packet.content(), field::SENDER_SSRC)
    }

    /// SSRC of any media source of the transport.
    pub fn media_ssrc(&self) -> u32 {
        read_u32(self.packet.content(), field::MEDIA_SSRC)
    }

    /// Transport-wide sequence number of the first packet reported.
    pub fn base_sequence_number(&self) -> u16 {
        read_u16(self.packet.content(), field::BASE_SEQUENCE_NUMBER)
    }

    /// Number of packets reported, received or not; at least one.
    pub fn packet_status_count(&self) -> u16 {
        read_u16(self.packet.content(), field::STATUS_COUNT)
    }

    /// The time to which arrivals are relative.
    pub fn reference_time(&self) -> ReferenceTime {
        let units = read_u24(self.packet.content(), field::REFERENCE_TIME);
        ReferenceTime::from_units(i64::from(units))
    }

    /// Count of feedback packets modulo 2^8. A step of more than one means that feedback was lost.
    pub fn feedback_packet_count(&self) -> u8 {
        self.packet.content()[field::FEEDBACK_COUNT]
    }

    /// For each packet in sequence order: its number, and, if it was received, its arrival in ticks
    /// of 250 us since the reference time.
    pub fn arrivals(&self) -> Arrivals<'a> {
        Arrivals {
            sequence_number: self.base_sequence_number(),
            left: self.packet_status_count(),
            ticks: 0,
            chunks: self.chunks,
            symbols: Symbols::EMPTY,
            deltas: self.deltas,
        }
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let received = self.arrivals().filter(|(_, arrival)| arrival.is_some()).count();
        write!(f, "TWCC sender {:#010x}, media {:#010x}", self.sender_ssrc(), self.media_ssrc())?;
        write!(f, ", count {}", self.feedback_packet_count())?;
        write!(f, ", base seq {}", self.base_sequence_number())?;
        write!(f, ", received {received} of {}", self.packet_status_count())?;
        write!(f, ", reference {}", self.reference_time())
    }
}

/// Iterator over the packets of a feedback packet; see `View::arrivals`.
#[derive(Clone, Debug)]
pub struct Arrivals<'a> {
    /// Sequence number of the next packet.
    sequence_number: u16,
    /// Packets not yet returned.
    left: u16,
    /// Arrival of the last received packet in ticks. The sum of 65535 deltas of 16 bits cannot
    /// overflow.
    ticks: i32,
    /// Chunks not yet read.
    chunks: &'a [u8],
    /// What is left of the last chunk read.
    symbols: Symbols,
    /// Deltas not yet read.
    deltas: &'a [u8],
}

const _: () = assert!(u16::MAX as i64 * i16::MIN as i64 >= i32::MIN as i64);

impl Arrivals<'_> {
    #[inline]
    fn next_symbol(&mut self) -> Symbol {
        // A loop, because a run may have length zero.
        loop {
            if let Some(symbol) = self.symbols.next() {
                return symbol.expect("symbols were checked");
            }
            let (bits, rest) =
                self.chunks.split_first_chunk().expect("chunks cover the status count");
            let chunk = Chunk::from_bits(u16::from_be_bytes(*bits)).expect("chunks were checked");
            self.symbols = chunk.symbols();
            self.chunks = rest;
        }
    }

    fn next_delta<const SIZE: usize>(&mut self) -> [u8; SIZE] {
        let (delta, rest) = self.deltas.split_first_chunk().expect("deltas were counted");
        self.deltas = rest;
        *delta
    }
}

impl Iterator for Arrivals<'_> {
    type Item = (u16, Option<i32>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let sequence_number = self.sequence_number;
        self.sequence_number = sequence_number.wrapping_add(1);
        let delta = match self.next_symbol() {
            Symbol::Lost => return Some((sequence_number, None)),
            Symbol::SmallDelta => i32::from(u8::from_be_bytes(self.next_delta())),
            Symbol::LargeDelta => i32::from(i16::from_be_bytes(self.next_delta())),
        };
        self.ticks += delta;
        Some((sequence_number, Some(self.ticks)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

impl ExactSizeIterator for Arrivals<'_> {}
impl core::iter::FusedIterator for Arrivals<'_> {}
