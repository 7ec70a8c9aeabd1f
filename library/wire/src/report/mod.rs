//! Sender and receiver reports [RFC3550 §6.4].
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |V=2|P|   RC    | PT=200 or 201 |            length             |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        SSRC of sender                         |
//! +=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+
//! |  only if PT=200: NTP time (64), RTP time (32),                |
//! |                  packets sent (32), payload bytes sent (32)   |
//! +=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+=+
//! |                   SSRC of the source reported                 |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | fraction lost |       cumulative number of packets lost       |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |           extended highest sequence number received           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                      interarrival jitter                      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |         last SR (middle 32 bits of its NTP time)              |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                   delay since last SR, 1/65536 s              |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! There are RC such blocks. Profile-specific extensions may follow the last one.
//!
//! [RFC3550 §6.4]: https://www.rfc-editor.org/rfc/rfc3550#section-6.4

mod reception;

use core::fmt;

use crate::Error;
use crate::bytes::{Field, read_u24, read_u32, read_u64, write_u24, write_u32, write_u64};
use crate::header::{self, Packet, RECEIVER_REPORT, SENDER_REPORT};
pub use reception::ReceptionStats;

mod field {
    use super::Field;
    pub const SSRC: Field = 4..8;
    /// Offset of the sender information, or of the first block in a receiver report.
    pub const BODY: usize = 8;
}

mod info_field {
    use super::Field;
    pub const NTP_TIME: Field = 0..8;
    pub const RTP_TIME: Field = 8..12;
    pub const PACKET_COUNT: Field = 12..16;
    pub const OCTET_COUNT: Field = 16..20;
    pub const SIZE: usize = 20;
}

mod block_field {
    use super::Field;
    pub const SSRC: Field = 0..4;
    pub const FRACTION_LOST: usize = 4;
    pub const CUMULATIVE_LOST: Field = 5..8;
    pub const EXTENDED_HIGHEST_SEQUENCE_NUMBER: Field = 8..12;
    pub const JITTER: Field = 12..16;
    pub const LAST_SENDER_REPORT: Field = 16..20;
    pub const DELAY_SINCE_LAST_SENDER_REPORT: Field = 20..24;
    pub const SIZE: usize = 24;
}

/// A sender's information about its own stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderInfo {
    /// Time at which the report was sent: NTP time, 32 bits of seconds and 32 bits of fraction.
    pub ntp_time: u64,
    /// The same instant on the clock of the RTP timestamps.
    pub rtp_time: u32,
    /// RTP packets sent since the start.
    pub packet_count: u32,
    /// Payload bytes sent since the start.
    pub octet_count: u32,
}

impl SenderInfo {
    fn read(bytes: &[u8]) -> Self {
        Self {
            ntp_time: read_u64(bytes, info_field::NTP_TIME),
            rtp_time: read_u32(bytes, info_field::RTP_TIME),
            packet_count: read_u32(bytes, info_field::PACKET_COUNT),
            octet_count: read_u32(bytes, info_field::OCTET_COUNT),
        }
    }

    fn write(&self, bytes: &mut [u8]) {
        write_u64(bytes, info_field::NTP_TIME, self.ntp_time);
        write_u32(bytes, info_field::RTP_TIME, self.rtp_time);
        write_u32(bytes, info_field::PACKET_COUNT, self.packet_count);
        write_u32(bytes, info_field::OCTET_COUNT, self.octet_count);
    }
}

/// Packets lost since the start of reception: 24 bits, negative if duplicates outnumber losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CumulativeLost(i32);

impl CumulativeLost {
    const MAX: i64 = (1 << 23) - 1;
    const MIN: i64 = -(1 << 23);

    /// Clamps the number to the range of the field [RFC3550 §A.3].
    ///
    /// [RFC3550 §A.3]: https://www.rfc-editor.org/rfc/rfc3550#appendix-A.3
    pub const fn clamped(lost: i64) -> Self {
        Self(if lost > Self::MAX {
            Self::MAX as i32
        } else if lost < Self::MIN {
            Self::MIN as i32
        } else {
            lost as i32
        })
    }

    /// The clamped number.
    pub const fn get(self) -> i32 {
        self.0
    }
}

/// A receiver's report on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportBlock {
    /// The media source that the block is about.
    pub ssrc: u32,
    /// Loss ratio since the previous report, in units of 1/256.
    pub fraction_lost: u8,
    /// Packets lost since the start.
    pub cumulative_lost: CumulativeLost,
    /// Highest sequence number received in the low 16 bits, the count of its cycles in the high 16.
    pub extended_highest_sequence_number: u32,
    /// Smoothed mean deviation of the transit time, in units of the RTP clock.
    pub jitter: u32,
    /// Compact NTP time of the last sender report received; 0 if there was none.
    pub last_sender_report: u32,
    /// Time since that sender report arrived, in units of 1/65536 s; 0 if there was none.
    pub delay_since_last_sender_report: u32,
}

impl ReportBlock {
    /// The round-trip time in units of 1/65536 s, for a report that arrived at compact NTP time
    /// `arrival`. `None` if the receiver had no sender report yet [RFC3550 §6.4.1].
    ///
    /// Zero if clock drift between the two ends makes the result negative.
    ///
    /// [RFC3550 §6.4.1]: https://www.rfc-editor.org/rfc/rfc3550#section-6.4.1
    pub fn round_trip_time(&self, arrival: u32) -> Option<u32> {
        if self.last_sender_report == 0 {
            return None;
        }
        let rtt = arrival
            .wrapping_sub(self.last_sender_report)
            .wrapping_sub(self.delay_since_last_sender_report);
        Some(if rtt.cast_signed() < 0 { 0 } else { rtt })
    }

    fn read(bytes: &[u8]) -> Self {
        // Shift the 24-bit number to the top bits, so that it is sign-extended on the way back.
        let cumulative_lost = (read_u24(bytes, block_field::CUMULATIVE_LOST) << 8) as i32 >> 8;
        Self {
            ssrc: read_u32(bytes, block_field::SSRC),
            fraction_lost: bytes[block_field::FRACTION_LOST],
            cumulative_lost: CumulativeLost(cumulative_lost),
            extended_highest_sequence_number: read_u32(
                bytes,
                block_field::EXTENDED_HIGHEST_SEQUENCE_NUMBER,
            ),
            jitter: read_u32(bytes, block_field::JITTER),
            last_sender_report: read_u32(bytes, block_field::LAST_SENDER_REPORT),
            delay_since_last_sender_report: read_u32(
                bytes,
                block_field::DELAY_SINCE_LAST_SENDER_REPORT,
            ),
        }
    }

    fn write(&self, bytes: &mut [u8]) {
        write_u32(bytes, block_field::SSRC, self.ssrc);
        bytes[block_field::FRACTION_LOST] = self.fraction_lost;
        let cumulative_lost = self.cumulative_lost.get().cast_unsigned();
        write_u24(bytes, block_field::CUMULATIVE_LOST, cumulative_lost);
        write_u32(
            bytes,
            block_field::EXTENDED_HIGHEST_SEQUENCE_NUMBER,
            self.extended_highest_sequence_number,
        );
        write_u32(bytes, block_field::JITTER, self.jitter);
        write_u32(bytes, block_field::LAST_SENDER_REPORT, self.last_sender_report);
        write_u32(
            bytes,
            block_field::DELAY_SINCE_LAST_SENDER_REPORT,
            self.delay_since_last_sender_report,
        );
    }
}

/// Compact NTP time: the middle 32 bits of an NTP time, in units of 1/65536 s, modulo 18 hours.
pub const fn compact_ntp(ntp_time: u64) -> u32 {
    (ntp_time >> 16) as u32
}

/// Converts microseconds since an arbitrary origin to NTP time. Both ends can compare differences
/// of such times, which is enough for round-trip times and feedback.
pub const fn ntp_from_micros(time_us: i64) -> u64 {
    // The product is exact in 128 bits. The low 64 bits of the result are the time modulo 2^32 s.
    ((time_us as i128) << 32).div_euclid(1_000_000) as u64
}

/// Compact NTP time of [`ntp_from_micros`].
pub const fn compact_ntp_from_micros(time_us: i64) -> u32 {
    compact_ntp(ntp_from_micros(time_us))
}

/// A sender report if it has sender information, otherwise a receiver report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report<'a> {
    sender_ssrc: u32,
    sender_info: Option<SenderInfo>,
    blocks: &'a [ReportBlock],
}

impl<'a> Report<'a> {
    /// Maximum number of blocks in one report.
    pub const MAX_BLOCKS: usize = 31;

    /// Returns `None` if there are more than `MAX_BLOCKS` blocks.
    pub const fn new(
        sender_ssrc: u32,
        sender_info: Option<SenderInfo>,
        blocks: &'a [ReportBlock],
    ) -> Option<Self> {
        if blocks.len() > Self::MAX_BLOCKS {
            return None;
        }
        Some(Self { sender_ssrc, sender_info, blocks })
    }

    /// Size in bytes of the report.
    pub const fn size(&self) -> usize {
        let info_size = if self.sender_info.is_some() { info_field::SIZE } else { 0 };
        field::BODY + info_size + self.blocks.len() * block_field::SIZE
    }

    /// Writes the report to the front of `buffer` and returns its size.
    ///
    /// # Panics
    /// If `buffer` is shorter than `size`.
    pub fn emit(&self, buffer: &mut [u8]) -> usize {
        let size = self.size();
        let packet = &mut buffer[..size];
        let packet_type = if self.sender_info.is_some() { SENDER_REPORT } else { RECEIVER_REPORT };
        header::emit(packet, packet_type, self.blocks.len() as u8, false);
        write_u32(packet, field::SSRC, self.sender_ssrc);
        let mut body = &mut packet[field::BODY..];
        if let Some(info) = &self.sender_info {
            let (bytes, rest) = body.split_at_mut(info_field::SIZE);
            info.write(bytes);
            body = rest;
        }
        for (block, bytes) in self.blocks.iter().zip(body.chunks_exact_mut(block_field::SIZE)) {
            block.write(bytes);
        }
        size
    }
}

/// A sender or receiver report in checked bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View<'a> {
    packet: Packet<'a>,
    /// Empty in a receiver report.
    info: &'a [u8],
    blocks: &'a [u8],
}

impl<'a> View<'a> {
    /// Reads bytes that contain exactly one report.
    ///
    /// # Errors
    /// As [`View::new`], and if the bytes are no packet of RTCP or more than one.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        Self::new(Packet::parse(bytes)?)
    }

    /// Reads one packet of a compound.
    ///
    /// # Errors
    /// [`Error::PacketType`] for another packet, [`Error::Truncated`] if it ends before its last
    /// block.
    pub fn new(packet: Packet<'a>) -> Result<Self, Error> {
        let info_size = match packet.packet_type() {
            SENDER_REPORT => info_field::SIZE,
            RECEIVER_REPORT => 0,
            _ => return Err(Error::PacketType),
        };
        let blocks_size = usize::from(packet.count()) * block_field::SIZE;
        let body = packet.content().get(field::BODY..).ok_or(Error::Truncated)?;
        let (info, body) = body.split_at_checked(info_size).ok_or(Error::Truncated)?;
        let blocks = body.get(..blocks_size).ok_or(Error::Truncated)?;
        Ok(Self { packet, info, blocks })
    }

    /// The end that sends the report.
    pub fn sender_ssrc(&self) -> u32 {
        read_u32(self.packet.content(), field::SSRC)
    }

    /// The sender information; `None` in a receiver report.
    pub fn sender_info(&self) -> Option<SenderInfo> {
        if !self.info.is_empty() { Some(SenderInfo::read(self.info)) } else { None }
    }

    /// One block for each media source in the report.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = ReportBlock> + use<'a> {
        self.blocks.chunks_exact(block_field::SIZE).map(ReportBlock::read)
    }
}

impl fmt::Display for ReportBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ssrc {:#010x}, lost {}/256", self.ssrc, self.fraction_lost)?;
        write!(f, ", {} in all", self.cumulative_lost.get())?;
        write!(f, ", highest seq {}", self.extended_highest_sequence_number)?;
        write!(f, ", jitter {}", self.jitter)?;
        write!(f, ", last SR {:#010x}", self.last_sender_report)?;
        write!(f, " + {}", self.delay_since_last_sender_report)
    }
}

impl fmt::Display for SenderInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ntp {:#018x}, time {}", self.ntp_time, self.rtp_time)?;
        write!(f, ", sent {} packets, {} B", self.packet_count, self.octet_count)
    }
}

/// Formats one line for a report, both for a value and for a view.
fn fmt_report(
    f: &mut fmt::Formatter<'_>,
    sender_ssrc: u32,
    sender_info: Option<SenderInfo>,
    blocks: impl Iterator<Item = ReportBlock>,
) -> fmt::Result {
    let name = if sender_info.is_some() { "SR" } else { "RR" };
    write!(f, "{name} sender {sender_ssrc:#010x}")?;
    if let Some(info) = sender_info {
        write!(f, ", {info}")?;
    }
    for block in blocks {
        write!(f, "; {block}")?;
    }
    Ok(())
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_report(f, self.sender_ssrc, self.sender_info, self.blocks.iter().copied())
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_report(f, self.sender_ssrc(), self.sender_info(), self.blocks())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    const BLOCK: ReportBlock = ReportBlock {
        ssrc: 0x0bad_cafe,
        fraction_lost: 64,
        cumulative_lost: CumulativeLost::clamped(-2),
        extended_highest_sequence_number: 0x0001_0203,
        jitter: 90,
        last_sender_report: 0xb705_2000,
        delay_since_last_sender_report: 0x0005_4000,
    };
    const INFO: SenderInfo = SenderInfo {
        ntp_time: 0xb44d_b705_2000_0000,
        rtp_time: 0x0001_5f90,
        packet_count: 1000,
        octet_count: 1_200_000,
    };
    const SR: [u8; 52] = [
        0x81, 200, 0, 12, // one block, 13 words
        0, 0, 0, 7, // sender
        0xb4, 0x4d, 0xb7, 0x05, 0x20, 0, 0, 0, // NTP
        0x00, 0x01, 0x5f, 0x90, // RTP time
        0, 0, 0x03, 0xe8, // packets
        0, 0x12, 0x4f, 0x80, // octets
        0x0b, 0xad, 0xca, 0xfe, // source
        64, 0xff, 0xff, 0xfe, // a quarter lost; -2 in two's complement of 24 bits
        0x00, 0x01, 0x02, 0x03, // one cycle, then 515
        0, 0, 0, 90, // jitter
        0xb7, 0x05, 0x20, 0x00, // last SR
        0x00, 0x05, 0x40, 0x00, // 5.25 s after it
    ];

    fn emit(report: &Report<'_>) -> Vec<u8> {
        let mut bytes = vec![0xaa; report.size()];
        assert_eq!(report.emit(&mut bytes), bytes.len());
        bytes
    }

    /// A receiver report with the same sender and block.
    fn receiver_report() -> Vec<u8> {
        let mut bytes = vec![0x81, 201, 0, 7, 0, 0, 0, 7];
        bytes.extend_from_slice(&SR[28..]);
        bytes
    }

    // [RFC3550 §4]
    #[test]
    fn ntp_time_counts_seconds_in_its_high_half() {
        assert_eq!(ntp_from_micros(2_500_000), 0x0000_0002_8000_0000);
        assert_eq!(ntp_from_micros(-500_000), 0xffff_ffff_8000_0000);
        assert_eq!(compact_ntp_from_micros(2_500_000), 0x0002_8000);
    }

    // [RFC3550 §6.4.1]
    #[test]
    fn a_sender_report_is_written_and_read() {
        let report = Report::new(7, Some(INFO), &[BLOCK]).unwrap();
        assert_eq!(emit(&report), SR);
        let view = View::parse(&SR).unwrap();
        assert_eq!((view.sender_ssrc(), view.sender_info()), (7, Some(INFO)));
        assert!(view.blocks().eq([BLOCK]));
        let line = "SR sender 0x00000007, ntp 0xb44db70520000000, time 90000, \
                    sent 1000 packets, 1200000 B; ssrc 0x0badcafe, lost 64/256, -2 in all, \
                    highest seq 66051, jitter 90, last SR 0xb7052000 + 344064";
        assert_eq!(view.to_string(), line);
        assert_eq!(report.to_string(), line);
    }

    // [RFC3550 §6.4.2]
    #[test]
    fn a_receiver_report_is_written_and_read() {
        let report = Report::new(7, None, &[BLOCK]).unwrap();
        let bytes = receiver_report();
        assert_eq!(emit(&report), bytes);
        let view = View::parse(&bytes).unwrap();
        assert_eq!((view.sender_ssrc(), view.sender_info()), (7, None));
        assert!(view.blocks().eq([BLOCK]));
    }

    #[test]
    fn every_truncation_is_rejected() {
        for bytes in [&SR[..], &receiver_report()] {
            for len in 0..bytes.len() {
                assert_eq!(View::parse(&bytes[..len]), Err(Error::Truncated), "{len}");
            }
            // Shorter packets with a matching length in the header.
            for words in 1..bytes.len() / 4 {
                let mut short = bytes[..words * 4].to_vec();
                short[3] = words as u8 - 1;
                assert_eq!(View::parse(&short), Err(Error::Truncated), "{words}");
            }
        }
    }

    // [RFC3550 §6.4.3]
    #[test]
    fn a_profile_specific_extension_is_ignored() {
        let mut bytes = receiver_report();
        bytes.extend([1, 2, 3, 4]);
        bytes[3] += 1;
        assert!(View::parse(&bytes).unwrap().blocks().eq([BLOCK]));
    }

    #[test]
    fn another_packet_type_is_not_a_report() {
        let mut bytes = SR;
        bytes[1] = 202;
        assert_eq!(View::parse(&bytes), Err(Error::PacketType));
    }

    #[test]
    fn a_report_holds_at_most_31_blocks() {
        assert!(Report::new(7, None, &[BLOCK; 32]).is_none());
        let blocks = [BLOCK; 31];
        let bytes = emit(&Report::new(7, None, &blocks).unwrap());
        assert!(View::parse(&bytes).unwrap().blocks().eq(blocks));
    }

    // The example of [RFC3550 §6.4.1]: 6.125 s.
    #[test]
    fn round_trip_time_is_arrival_less_last_sr_less_delay() {
        assert_eq!(compact_ntp(INFO.ntp_time), BLOCK.last_sender_report);
        assert_eq!(BLOCK.round_trip_time(0xb710_8000), Some(0x0006_2000));
    }

    #[test]
    fn round_trip_time_holds_across_the_wrap_of_compact_time() {
        let block = ReportBlock {
            last_sender_report: 0xffff_0000,
            delay_since_last_sender_report: 0x0001_0000,
            ..BLOCK
        };
        assert_eq!(block.round_trip_time(0x0000_8000), Some(0x8000));
    }

    #[test]
    fn round_trip_time_is_zero_when_drift_makes_it_negative() {
        let sum = BLOCK.last_sender_report + BLOCK.delay_since_last_sender_report;
        assert_eq!(BLOCK.round_trip_time(sum - 1), Some(0));
    }

    #[test]
    fn round_trip_time_needs_a_sender_report() {
        let block = ReportBlock { last_sender_report: 0, ..BLOCK };
        assert_eq!(block.round_trip_time(0xb710_8000), None);
    }

    // [RFC3550 §A.3]
    #[test]
    fn cumulative_loss_is_clamped_to_24_bits() {
        assert_eq!(CumulativeLost::clamped(1 << 40).get(), 0x7f_ffff);
        assert_eq!(CumulativeLost::clamped(-(1 << 40)).get(), -0x80_0000);
    }
}
