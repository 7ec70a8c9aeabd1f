//! Video at both ends of a call: frames that depend on each other, repair of lost packets, and
//! playout.
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
//! Payload bytes are counted, not carried. Headers, masks and sequence numbers are real.

mod assembler;
mod fec;
mod freezes;
mod gaps;
mod jitter_buffer;
mod packets;
mod pictures;
mod playout;
mod protection;
mod receiver;
mod receiver_reports;
mod repair_rates;
mod replay;
mod rtx_history;
mod sender;
#[cfg(test)]
mod tests;
mod ulpfec;

use weir::units::{DataSize, TimeDelta, Timestamp};

pub use freezes::Freezes;
pub(crate) use packets::{Packet, Ssrcs};
pub(crate) use pictures::Vmaf;
pub(crate) use receiver::VideoReceiver;
pub use replay::{VideoPacket, play_video};
pub(crate) use sender::VideoSender;

/// How a flow's lost packets are repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// The receiver asks for lost packets (NACK), the sender sends them again (RTX).
    pub nack: bool,
    /// The sender adds XOR parity packets (FlexFEC). Their number depends on the loss ratio.
    pub fec: bool,
    /// Time between key frames. With `None` there are key frames on request only, as in WebRTC
    /// endpoints.
    pub key_frame_interval: Option<TimeDelta>,
}

impl Repair {
    /// No repair, and key frames on request only.
    pub const NONE: Self = Self { nack: false, fec: false, key_frame_interval: None };

    weir::with! {
        with_nack: nack: bool,
        with_fec: fec: bool,
        with_key_frame_interval: key_frame_interval: Option<TimeDelta>,
    }
}

/// The properties of a media packet that the assembly of frames needs.
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
    /// Part of a key frame. Only the first packet of a key frame shows this.
    key: bool,
    /// How it came.
    receipt: Receipt,
}

/// How a packet came to the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Receipt {
    at: Timestamp,
    /// Size without IP, UDP and the fixed RTP header.
    size: DataSize,
    /// The receiver had asked for it again.
    repeated: bool,
}

/// Content of a packet of a repaired flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// First transmission of media.
    Media,
    /// Retransmission of media.
    Rtx,
    /// Parity of media packets.
    Fec,
}

/// Amounts of data by [`Kind`].
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
