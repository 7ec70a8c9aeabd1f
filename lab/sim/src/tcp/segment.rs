//! Segments as values, with the sizes that they would have on the wire.
//!
//! Data goes in one direction, acknowledgements in the other. Sequence numbers are offsets in the
//! data of a transfer and do not wrap. The handshake uses none.

use std::ops::Range;

use weir::units::{DataSize, Timestamp};

/// IPv4 and TCP headers without options.
const IP_TCP: u64 = 20 + 20;
/// Options of a SYN: segment size, SACK permitted, timestamps, window scale.
const SYN_OPTIONS: u64 = 20;
/// Size of the timestamps option, padding included. Every segment after the handshake has it
/// [RFC7323 §3.2].
const TIMESTAMPS: u64 = 12;
/// Size of a SACK option without blocks, padding included, and size of each block [RFC2018 §3].
const SACK_OPTION: u64 = 4;
const SACK_BLOCK: u64 = 8;
/// Maximum number of SACK blocks that fit into the 40 bytes of options together with timestamps
/// [RFC2018 §3].
pub(super) const MAX_SACK_BLOCKS: usize = 3;

/// Data of a full segment, in an IP packet of 1500 bytes.
pub(super) const MSS: u64 = 1_500 - IP_TCP - TIMESTAMPS;

/// A range of a transfer's data.
pub(super) type Part = Range<u64>;

/// A segment of one of a flow's successive connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TcpPacket {
    pub(super) connection: u64,
    pub(super) segment: Segment,
}

/// A TCP segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    /// Asks for a connection.
    Syn,
    /// Accepts it.
    SynAck,
    /// From sender to receiver. Without data it completes the handshake.
    Data(Data),
    /// From receiver to sender.
    Ack(Ack),
}

/// A data segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Data {
    pub(super) part: Part,
    /// TSval: when it was sent.
    pub(super) sent_at: Timestamp,
    /// TSecr: `sent_at` of the newest acknowledgement.
    pub(super) echo: Timestamp,
    /// CWR flag: the sender has reduced its window in response to an echoed mark [RFC3168 §6.1.2].
    pub(super) cwr: bool,
}

/// An acknowledgement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ack {
    /// All data below has arrived.
    pub(super) next: u64,
    /// Receive window, from `next` on.
    pub(super) window: u64,
    /// SACK blocks, the most recently changed one first [RFC2018 §4].
    pub(super) blocks: Blocks,
    /// Data that arrived twice, reported as the first SACK block [RFC2883 §4].
    pub(super) duplicate: Option<Part>,
    /// TSval: when it was sent.
    pub(super) sent_at: Timestamp,
    /// TSecr: `sent_at` of the acknowledged segment [RFC7323 §4.3].
    pub(super) echo: Timestamp,
    /// ECE flag: a mark arrived, and no `cwr` since [RFC3168 §6.1.3].
    pub(super) ece: bool,
    /// `r.cep`: marked packets so far, if the connection has accurate feedback [RFC9768 §3.2].
    pub(super) marks: u64,
}

/// The blocks of a SACK option without the one for a duplicate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Blocks {
    blocks: [Part; MAX_SACK_BLOCKS],
    count: usize,
}

impl Blocks {
    /// The first `room` of `blocks`.
    pub(super) fn first_of(blocks: &[Part], room: usize) -> Self {
        let mut taken = Self { count: blocks.len().min(room), ..Self::default() };
        taken.blocks[..taken.count].clone_from_slice(&blocks[..taken.count]);
        taken
    }

    pub(super) fn as_slice(&self) -> &[Part] {
        &self.blocks[..self.count]
    }
}

impl Segment {
    /// Size of the IP packet.
    pub(super) fn size(&self) -> DataSize {
        let after_ip_tcp = match self {
            Self::Syn | Self::SynAck => SYN_OPTIONS,
            Self::Data(data) => TIMESTAMPS + data.part.end - data.part.start,
            Self::Ack(ack) => {
                let blocks = ack.blocks.count as u64 + u64::from(ack.duplicate.is_some());
                let sack = if blocks == 0 { 0 } else { SACK_OPTION + SACK_BLOCK * blocks };
                TIMESTAMPS + sack
            }
        };
        DataSize::from_bytes(IP_TCP + after_ip_tcp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_ip_packets_with_timestamps_and_sack() {
        let size = |segment: Segment| segment.size().as_bytes();
        let (sent_at, echo) = (Timestamp::ZERO, Timestamp::ZERO);
        let data = |end| Segment::Data(Data { part: 0..end, sent_at, echo, cwr: false });
        assert_eq!(size(Segment::Syn), 60);
        assert_eq!(size(data(0)), 52);
        assert_eq!(size(data(MSS)), 1_500);
        assert_eq!(size(Segment::Ack(Ack::default())), 52);
        let blocks = Blocks::first_of(&[1..2, 3..4, 5..6, 7..8], 3);
        assert_eq!(blocks.as_slice(), [1..2, 3..4, 5..6]);
        assert_eq!(size(Segment::Ack(Ack { blocks, ..Ack::default() })), 80);
        let duplicate = Some(1..2);
        assert_eq!(size(Segment::Ack(Ack { duplicate, ..Ack::default() })), 64);
    }
}
