//! Video as both ends of a call handle it: frames that depend on each other, repair of lost packets,
//! and playout.
//!
//! ```text
//! source -> packets -> send queue -> network -> Assembler -> Playout -> Freezes
//!    ^       |  |        ^    ^         |         ^    |
//!    | v     |  +> FecEncoder |         +> FecDecoder  v
//!    |       +-> RtxHistory --+         +-----------> Gaps
//! RepairRates        ^                                 |
//!                    +------------- NACK, PLI <--------+
//! ```
//!
//! Payload bytes are counted, not carried; headers, masks and sequence numbers are real.

mod assembler;
mod fec;
mod freezes;
mod gaps;
mod packets;
mod playout;
mod protection;
mod receiver;
mod receiver_reports;
mod repair_rates;
mod rtx_history;
mod sender;
#[cfg(test)]
mod tests;
mod ulpfec;

use weir::units::{DataSize, TimeDelta, Timestamp};

pub(crate) use packets::{Packet, Ssrcs};
pub(crate) use receiver::VideoReceiver;
pub(crate) use sender::VideoSender;

/// How a flow's lost packets are repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// The receiver asks for lost packets (NACK), the sender sends them again (RTX).
    pub nack: bool,
    /// The sender adds XOR parity packets (FlexFEC), as many as the loss ratio calls for.
    pub fec: bool,
    /// Time between key frames; `None` for key frames on request only, as WebRTC endpoints do.
    pub key_frame_interval: Option<TimeDelta>,
}

/// A media packet, as far as putting frames together needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MediaPacket {
    /// RTP sequence number, unwrapped.
    number: i64,
    /// When its frame was captured, from the RTP timestamp.
    captured: Timestamp,
    /// First packet of its frame.
    first: bool,
    /// Last packet of its frame.
    last: bool,
    /// Of a frame that depends on no other; known from its first packet only.
    key: bool,
}

/// What a packet of a repaired flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Media, for the first time.
    Media,
    /// Media, again.
    Rtx,
    /// Parity of media packets.
    Fec,
}

/// Bytes by [`Kind`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Split {
    media: DataSize,
    rtx: DataSize,
    fec: DataSize,
}

impl Split {
    fn add(&mut self, kind: Kind, size: DataSize) {
        match kind {
            Kind::Media => self.media += size,
            Kind::Rtx => self.rtx += size,
            Kind::Fec => self.fec += size,
        }
    }
}
