//! QUIC: media or data over one connection, both ends, without clock, sockets or cryptography.
//!
//! ```text
//! source -> streams -> sender --------- packets ---------> network -> receiver -> frames, bytes
//!    ^                  | window and pacer: weir-quic, or a rival       |
//!    |                  | loss: 3 packets, 9/8 round trips, probes      | reassembly, ACK ranges
//!    +---- estimate ----+<--------------- ACKs <------- network <-------+
//! ```
//!
//! The model is ours, and what it gives is simulated. It follows [RFC9000] and [RFC9002], and
//! where these leave a choice, the stacks noq and quinn. `docs/results/quic.md` has it beside
//! both. A connection has one handshake of a round trip. There is no flow control: the stacks' own
//! limits are far above what a call has in flight.

mod bbr;
mod control;
mod ends;
mod pacer;
mod packet;
mod pair;
mod ranges;
mod receiver;
mod recovery;
mod rtt;
mod sender;
mod streams;
#[cfg(test)]
mod tests;

use weir::units::{Bitrate, TimeDelta};

pub(crate) use ends::QuicEnds;
pub(crate) use packet::QuicPacket;
pub use pair::{QuicDatagram, QuicPair};

/// Packets for one ACK [RFC9000 §13.2.2].
const PACKETS_PER_ACK: u64 = 2;
/// `max_ack_delay` [RFC9000 §18.2].
const MAX_ACK_DELAY: TimeDelta = TimeDelta::from_millis(25);

/// Media or data over a QUIC connection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Quic<M> {
    /// Its media: a [`Media`](crate::Media), of which controller and settings alone apply.
    pub media: M,
    /// What controls it.
    pub congestion: QuicCongestion,
    /// The stack whose pacer and window it has.
    pub stack: QuicStack,
    /// What it sends.
    pub source: QuicSource,
    /// How its frames travel.
    pub delivery: QuicDelivery,
    /// How its receiver acknowledges.
    pub ack: QuicAck,
}

impl<M> Quic<M> {
    /// Media of this source under the controller, in noq, with an ACK for every second packet.
    pub const fn new(media: M, source: QuicSource) -> Self {
        Self {
            media,
            congestion: QuicCongestion::Media,
            stack: QuicStack::Noq,
            source,
            delivery: QuicDelivery::Streams,
            ack: QuicAck::new(),
        }
    }

    /// The same with other media.
    pub fn carrying<N>(self, media: N) -> Quic<N> {
        let Self { media: _, congestion, stack, source, delivery, ack } = self;
        Quic { media, congestion, stack, source, delivery, ack }
    }

    weir::with! {
        with_congestion: congestion: QuicCongestion,
        with_stack: stack: QuicStack,
        with_delivery: delivery: QuicDelivery,
        with_ack: ack: QuicAck,
    }
}

/// What controls a QUIC connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuicCongestion {
    /// A controller for media, through `weir-quic`.
    Media,
    /// CUBIC [RFC9438] without HyStart++, as noq and quinn have it.
    ///
    /// [RFC9438]: https://www.rfc-editor.org/rfc/rfc9438
    Cubic,
    /// NewReno [RFC9002 §7].
    ///
    /// [RFC9002 §7]: https://www.rfc-editor.org/rfc/rfc9002#section-7
    NewReno,
    /// BBRv3 [BBR3].
    ///
    /// [BBR3]: https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06
    Bbr3,
}

/// The stack after which pacer and window are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuicStack {
    /// It takes a pacing rate from its controller, and its bucket holds 10 ms.
    Noq,
    /// It paces 1.25 windows in a round trip, and its bucket holds at least 10 packets.
    Quinn,
}

/// What a QUIC flow sends.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum QuicSource {
    /// 30 frames a second from an encoder with moq's policy. It takes `headroom` of the estimate,
    /// falls at once, climbs by 25 % a second, and ignores moves below 5 %. A second of frames is
    /// a group, which is a stream.
    Adaptive {
        /// The first rate.
        start: Bitrate,
        /// The highest rate.
        max: Bitrate,
        /// Its part of the estimate.
        headroom: f64,
    },
    /// The same frames at a rate that follows nothing.
    Fixed(Bitrate),
    /// One stream that always has data.
    Bulk,
}

/// How the frames of a QUIC flow travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuicDelivery {
    /// A stream for each group of a second, newer groups first. What is lost is sent again until
    /// the group ended a second ago.
    Streams,
    /// DATAGRAM frames in order, each once [RFC9221]. What has waited for a second is dropped.
    ///
    /// [RFC9221]: https://www.rfc-editor.org/rfc/rfc9221
    Datagrams,
}

/// How a receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuicAck {
    /// Packets for one ACK.
    pub packets: u64,
    /// An ACK is held back at most this long.
    pub delay: TimeDelta,
    /// Whether ACKs have the times at which packets arrived [QUIC-RECEIVE-TS].
    pub receive_times: bool,
}

impl QuicAck {
    /// An ACK for every second packet, at the latest after 25 ms, without receive times.
    pub const fn new() -> Self {
        Self { packets: PACKETS_PER_ACK, delay: MAX_ACK_DELAY, receive_times: false }
    }

    weir::with! {
        with_packets: packets: u64,
        with_delay: delay: TimeDelta,
        with_receive_times: receive_times: bool,
    }
}

impl Default for QuicAck {
    fn default() -> Self {
        Self::new()
    }
}
