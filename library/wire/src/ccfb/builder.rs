//! Writing congestion control feedback.

use alloc::vec::Vec;

use super::{
    ArrivalOffset, Ecn, FORMAT, MAX_REPORTS, Reception, WORD, block_field, field, to_bits,
};
use crate::bytes::{write_u16, write_u32};
use crate::header::{self, TRANSPORT_FEEDBACK};
use crate::report::compact_ntp_from_micros;

/// One media source's part of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream<P> {
    /// The media source.
    pub ssrc: u32,
    /// RTP sequence number of the first packet.
    pub begin_sequence_number: u16,
    /// For each packet from there on: its arrival in microseconds and its ECN bits, or `None` if it
    /// is missing.
    pub packets: P,
}

/// Writes the feedback of one receiver, in as many packets as it needs.
#[derive(Clone, Debug)]
pub struct Builder {
    sender_ssrc: u32,
    /// The packet being filled. Its allocation is reused.
    packet: Vec<u8>,
}

impl Builder {
    /// Smallest `max_size`: it has room for two packets of one source.
    pub const MIN_PACKET_SIZE: usize =
        field::BODY + block_field::REPORTS + 2 * block_field::REPORT_SIZE + field::TIMESTAMP_SIZE;

    /// A builder for the receiver with this SSRC.
    pub const fn new(sender_ssrc: u32) -> Self {
        Self { sender_ssrc, packet: Vec::new() }
    }

    /// Reports the streams as of `now_us` microseconds. Each packet has at most `max_size` bytes
    /// and the same timestamp, and is passed to `emit`. A stream without packets is left out: the
    /// standard allows an empty block for a silent stream, but libwebrtc rejects one at the end.
    ///
    /// # Panics
    /// If `max_size` is less than `MIN_PACKET_SIZE`.
    pub fn build<P: ExactSizeIterator<Item = Option<(i64, Ecn)>>>(
        &mut self,
        now_us: i64,
        streams: impl IntoIterator<Item = Stream<P>>,
        max_size: usize,
        mut emit: impl FnMut(&[u8]),
    ) {
        assert!(max_size >= Self::MIN_PACKET_SIZE, "{max_size} bytes cannot hold feedback");
        let blocks_end = max_size / WORD * WORD - field::TIMESTAMP_SIZE;
        self.start();
        for Stream { ssrc, begin_sequence_number, mut packets } in streams {
            let mut begin = begin_sequence_number;
            while packets.len() > 0 {
                let room = (blocks_end - self.packet.len()).saturating_sub(block_field::REPORTS);
                let count = packets.len().min(room / block_field::REPORT_SIZE).min(MAX_REPORTS);
                if count == 0 {
                    self.finish(now_us, &mut emit);
                    continue;
                }
                // The sequence number wraps on the wire. The count fits 15 bits.
                self.start_block(ssrc, begin, count as u16);
                for packet in packets.by_ref().take(count) {
                    self.push_report(now_us, packet);
                }
                self.packet.resize(self.packet.len().next_multiple_of(WORD), 0);
                begin = begin.wrapping_add(count as u16);
            }
        }
        self.finish(now_us, &mut emit);
    }

    fn start(&mut self) {
        self.packet.clear();
        self.packet.resize(field::BODY, 0);
    }

    fn start_block(&mut self, ssrc: u32, begin: u16, count: u16) {
        let start = self.packet.len();
        self.packet.resize(start + block_field::REPORTS, 0);
        let block = &mut self.packet[start..];
        write_u32(block, block_field::SSRC, ssrc);
        write_u16(block, block_field::BEGIN, begin);
        write_u16(block, block_field::NUMBER_OF_REPORTS, count);
    }

    fn push_report(&mut self, now_us: i64, packet: Option<(i64, Ecn)>) {
        let report = packet.map(|(arrival_us, ecn)| Reception {
            ecn,
            offset: ArrivalOffset::from_units(nearest_unit(now_us.saturating_sub(arrival_us))),
        });
        self.packet.extend_from_slice(&to_bits(report).to_be_bytes());
    }

    /// Passes the packet to `emit` unless it has no blocks, and starts the next one.
    fn finish(&mut self, now_us: i64, emit: &mut impl FnMut(&[u8])) {
        if self.packet.len() > field::BODY {
            self.packet.extend_from_slice(&compact_ntp_from_micros(now_us).to_be_bytes());
            header::emit(&mut self.packet, TRANSPORT_FEEDBACK, FORMAT, false);
            write_u32(&mut self.packet, field::SENDER_SSRC, self.sender_ssrc);
            emit(&self.packet);
        }
        self.start();
    }
}

/// Converts a time to the unit of the offset. Rounds to nearest, because rounding down would shift
/// every arrival by half a unit on average. A negative time stays negative. A time beyond the range
/// of 64 bits is too long for the offset in any case.
fn nearest_unit(time_us: i64) -> i64 {
    const MICROS_PER_SECOND: i64 = 1_000_000;
    if time_us < 0 {
        return -1;
    }
    let scaled = time_us.saturating_mul(i64::from(ArrivalOffset::UNITS_PER_SECOND));
    scaled.saturating_add(MICROS_PER_SECOND / 2) / MICROS_PER_SECOND
}
