//! QUIC packets as values, with the sizes that they would have on the wire.

use std::ops::Range;

use weir::units::{DataSize, TimeDelta, Timestamp};

/// IPv4 and UDP.
pub(super) const HEADERS: u64 = 28;
/// The largest QUIC packet of an IP packet of 1480 bytes, the most for which noq and quinn probe.
pub(super) const MTU: u64 = 1_452;
/// Short header with a connection ID of 8 bytes, the tag, and the head of a STREAM frame.
const FRAMING: u64 = 38;
/// The most data of a stream in a packet.
pub(super) const MAX_DATA: u64 = MTU - FRAMING;
/// A packet of the handshake [RFC9000 §14.1].
const INITIAL: u64 = 1_200;
/// Short header and tag of a packet with an ACK frame, and that frame with one range.
const ACK: u64 = 36;
/// Each further range, the three ECN counts, and each receive time with its part of the ranges.
const ACK_RANGE: u64 = 3;
const ECN_COUNTS: u64 = 9;
const RECEIVE_TIME: u64 = 4;
/// A probe of nothing but PING.
const PING: u64 = 28;

/// A QUIC packet of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QuicPacket {
    /// Asks for the connection.
    Hello,
    /// Accepts it.
    Welcome,
    /// An ack-eliciting packet of the sender.
    Data { number: u64, content: Content },
    /// Nothing but an ACK.
    Ack(Ack),
}

/// What an ack-eliciting packet has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Stream(Chunk),
    /// So many bytes that nobody reads: a DATAGRAM frame for a probe of the path.
    Padding(u64),
    /// Asks for an ACK.
    Ping,
}

/// A part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The stream: a group of frames.
    pub(super) group: u64,
    pub(super) bytes: Range<u64>,
    /// Whether it was sent before.
    pub(super) is_again: bool,
    /// The frames that end in it, as the media's own headers say.
    pub(super) ends: Vec<FrameEnd>,
}

/// The end of a frame in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameEnd {
    pub(super) offset: u64,
    pub(super) size: DataSize,
    pub(super) captured: Timestamp,
}

/// An ACK frame [RFC9000 §19.3].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ack {
    /// The packets that it acknowledges, newest first.
    pub(super) ranges: Vec<Range<u64>>,
    /// How long it was held back.
    pub(super) delay: TimeDelta,
    /// The ECN-CE count, if the packets are ECN-capable.
    pub(super) ce_count: Option<u64>,
    /// When packets arrived [QUIC-RECEIVE-TS].
    pub(super) times: Vec<(u64, Timestamp)>,
}

impl Content {
    /// Bytes of the QUIC packet.
    pub(super) fn size(&self) -> u64 {
        match self {
            Self::Stream(chunk) => FRAMING + chunk.bytes.end - chunk.bytes.start,
            Self::Padding(bytes) => FRAMING + bytes,
            Self::Ping => PING,
        }
    }
}

impl QuicPacket {
    /// Bytes of the IP packet.
    pub(super) fn size(&self) -> DataSize {
        let quic = match self {
            Self::Hello | Self::Welcome => INITIAL,
            Self::Data { content, .. } => content.size(),
            Self::Ack(ack) => {
                let ranges = ACK_RANGE * (ack.ranges.len() as u64).saturating_sub(1);
                let ecn = ack.ce_count.map_or(0, |_| ECN_COUNTS);
                ACK + ranges + ecn + RECEIVE_TIME * ack.times.len() as u64
            }
        };
        DataSize::from_bytes(HEADERS + quic)
    }
}
