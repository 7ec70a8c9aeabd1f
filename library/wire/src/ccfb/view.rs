//! Reading congestion control feedback.

use core::fmt;

use super::{FORMAT, MAX_REPORTS, Reception, block_field, field, from_bits};
use crate::Error;
use crate::bytes::{read_u16, read_u32};
use crate::header::{Packet, TRANSPORT_FEEDBACK};

/// Meaning of the field "number of reports". Writers disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The count of reports, as in erratum 8166.
    Count,
    /// The distance from the first report to the last, as in the text before the erratum; zero
    /// means none.
    Last,
}

impl Meaning {
    /// The count of reports in a block whose field is `number`.
    fn count(self, number: u16) -> usize {
        match (self, number) {
            (Self::Last, 1..) => usize::from(number) + 1,
            _ => usize::from(number),
        }
    }

    /// Splits the first block off.
    fn split_block(self, blocks: &[u8]) -> Result<(Block<'_>, &[u8]), Error> {
        if blocks.len() < block_field::REPORTS {
            return Err(Error::Truncated);
        }
        let count = self.count(read_u16(blocks, block_field::NUMBER_OF_REPORTS));
        if count > MAX_REPORTS {
            return Err(Error::TooManyReports);
        }
        let reports_end = block_field::REPORTS + count * block_field::REPORT_SIZE;
        let block_end = reports_end.next_multiple_of(super::WORD);
        let (block, rest) = blocks.split_at_checked(block_end).ok_or(Error::Truncated)?;
        let (block, padding) = block.split_at(reports_end);
        // Padding after an odd count is zero. Other bits are a report that this meaning does not
        // count.
        if padding.iter().any(|&byte| byte != 0) {
            return Err(Error::Padding);
        }
        Ok((Block { bytes: block }, rest))
    }

    fn check(self, mut blocks: &[u8]) -> Result<(), Error> {
        while !blocks.is_empty() {
            (_, blocks) = self.split_block(blocks)?;
        }
        Ok(())
    }
}

/// Congestion control feedback in checked bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<'a> {
    packet: Packet<'a>,
    blocks: &'a [u8],
    meaning: Meaning,
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
    /// The number of reports is first read as their count. If the blocks then do not end where the
    /// packet ends, it is read as the distance to the last report. One ambiguity remains: an old
    /// writer whose block has an even number of reports, of which the last is a packet not
    /// received, produces the same bytes as a new writer with one report less. The packet is read
    /// as the latter; a later feedback may report the loss.
    ///
    /// # Errors
    /// [`Error::PacketType`] for another packet, [`Error::Truncated`] or [`Error::TooManyReports`]
    /// if its blocks do not fit it.
    pub fn new(packet: Packet<'a>) -> Result<Self, Error> {
        if packet.packet_type() != TRANSPORT_FEEDBACK || packet.count() != FORMAT {
            return Err(Error::PacketType);
        }
        let body = packet.content().get(field::BODY..).ok_or(Error::Truncated)?;
        let blocks_size = body.len().checked_sub(field::TIMESTAMP_SIZE).ok_or(Error::Truncated)?;
        let blocks = &body[..blocks_size];
        let meaning = match Meaning::Count.check(blocks) {
            Ok(()) => Meaning::Count,
            Err(error) => Meaning::Last.check(blocks).map(|()| Meaning::Last).map_err(|_| error)?,
        };
        Ok(Self { packet, blocks, meaning })
    }

    /// The receiver that sends the feedback.
    pub fn sender_ssrc(&self) -> u32 {
        read_u32(self.packet.content(), field::SENDER_SSRC)
    }

    /// Time of the report: compact NTP time on the clock of the sender reports.
    pub fn timestamp(&self) -> u32 {
        let content = self.packet.content();
        read_u32(content, content.len() - field::TIMESTAMP_SIZE..content.len())
    }

    /// One block for each media source in the report.
    pub fn blocks(&self) -> impl Iterator<Item = Block<'a>> + Clone + use<'a> {
        let (mut rest, meaning) = (self.blocks, self.meaning);
        core::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (block, after) = meaning.split_block(rest).expect("blocks were checked");
            rest = after;
            Some(block)
        })
    }
}

/// The reports on one media source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// Ends after the last report, before any padding.
    bytes: &'a [u8],
}

impl<'a> Block<'a> {
    /// The media source.
    pub fn ssrc(&self) -> u32 {
        read_u32(self.bytes, block_field::SSRC)
    }

    /// RTP sequence number of the first packet reported; in a block without reports, the highest
    /// one received.
    pub fn begin_sequence_number(&self) -> u16 {
        read_u16(self.bytes, block_field::BEGIN)
    }

    /// For each packet in sequence order: its number, and its report if it was received.
    pub fn reports(&self) -> Reports<'a> {
        Reports {
            sequence_number: self.begin_sequence_number(),
            rest: &self.bytes[block_field::REPORTS..],
        }
    }
}

/// Iterator over the reports of a block; see `Block::reports`.
#[derive(Clone, Debug)]
pub struct Reports<'a> {
    /// Sequence number of the next packet.
    sequence_number: u16,
    rest: &'a [u8],
}

impl Iterator for Reports<'_> {
    type Item = (u16, Option<Reception>);

    fn next(&mut self) -> Option<Self::Item> {
        let (bits, rest) = self.rest.split_first_chunk()?;
        let sequence_number = self.sequence_number;
        self.sequence_number = sequence_number.wrapping_add(1);
        self.rest = rest;
        Some((sequence_number, from_bits(u16::from_be_bytes(*bits))))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.rest.len() / block_field::REPORT_SIZE;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Reports<'_> {}
impl core::iter::FusedIterator for Reports<'_> {}

impl fmt::Display for Block<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let received = self.reports().filter(|(_, report)| report.is_some()).count();
        write!(f, "ssrc {:#010x}, begin seq {}", self.ssrc(), self.begin_sequence_number())?;
        write!(f, ", received {received} of {}", self.reports().len())
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CCFB sender {:#010x}, time {:#010x}", self.sender_ssrc(), self.timestamp())?;
        self.blocks().try_for_each(|block| write!(f, "; {block}"))
    }
}
