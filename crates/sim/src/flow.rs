//! What the simulator asks of a flow: packets and deadlines in, packets out.

use std::borrow::Cow;

use weir::feedback::Ecn;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};

use crate::rtp_format::MediaHeader;
use crate::tcp::TcpPacket;
use crate::trace::{Transfer, Video};

/// One of the two ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Where its data comes from.
    Sender,
    /// Where its data goes.
    Receiver,
}

impl End {
    pub(crate) const BOTH: [Self; 2] = [Self::Sender, Self::Receiver];

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
}

/// Both ends of a flow at work. They share one object and nothing else: what one end knows of the
/// other came in a packet.
pub(crate) trait Ends {
    /// When an end wants to be called, if ever.
    fn next_deadline(&self, end: End) -> Option<Timestamp>;

    /// The time given by `next_deadline` has come.
    fn on_deadline(&mut self, now: Timestamp, end: End, out: &mut Outbox);

    /// A packet of the other end arrived.
    fn on_packet(&mut self, now: Timestamp, end: End, packet: &Packet, out: &mut Outbox);

    /// A packet left the terminal that is the sender's host, or was dropped there. Only TCP holds back
    /// for the queue of its own host.
    fn on_left_host(&mut self, _now: Timestamp, _packet: &Packet, _out: &mut Outbox) {}

    /// Another flow of the same sender moved this one's share of their rate. Only media flows have one.
    fn on_shared_rate(&mut self, _now: Timestamp, _share: Bitrate, _out: &mut Outbox) {}

    /// What the sender is at, for the trace.
    fn state(&self) -> State;

    /// What became of its video since the last call, if its receiver shows one; `is_last` if nothing
    /// follows.
    fn take_video(&mut self, _is_last: bool) -> Option<Video> {
        None
    }

    /// What TCP transferred since the last call; `None` where there is no TCP.
    fn take_transfer(&mut self) -> Option<Transfer> {
        None
    }
}

/// A packet as its sender makes it and its receiver gets it.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Size of the whole IP packet.
    pub(crate) size: DataSize,
    /// A queue on the way may have marked it.
    pub(crate) ecn: Ecn,
    pub(crate) body: Body,
}

/// What a packet carries; payloads are only counted.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// RTP headers.
    Rtp(MediaHeader),
    /// RTP headers and what the payload begins with.
    RtpPayload(Vec<u8>),
    /// An RTCP packet, whole.
    Rtcp(Vec<u8>),
    /// A TCP segment; boxed, because acknowledgements are large and links move packets often.
    Tcp(Box<TcpPacket>),
    /// Nothing but its size.
    Udp,
}

/// What the sender of a flow is at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    pub(crate) target: Option<Bitrate>,
    pub(crate) pacing_rate: Option<Bitrate>,
    pub(crate) congestion_window: Option<DataSize>,
}

/// What a flow wants done after a call. It is emptied after each.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Packets to send to the other end.
    pub(crate) packets: Vec<Packet>,
    /// Changes of the target bitrate.
    pub(crate) changes: Vec<Change>,
    /// A round-trip time that the sender measured.
    pub(crate) rtt: Option<TimeDelta>,
}

/// A [`crate::trace::RateChange`] without time and flow, which the simulator knows.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) from: Bitrate,
    pub(crate) to: Bitrate,
    pub(crate) reason: &'static str,
    pub(crate) state: &'static str,
    pub(crate) signals: Vec<(Cow<'static, str>, f64)>,
}
