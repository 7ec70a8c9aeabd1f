//! Interface between the simulator and a flow: packets and deadlines go in, packets come out.

use std::borrow::Cow;

use weir::feedback::Ecn;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_sfu::TrackConfig;

use crate::quic::QuicPacket;
use crate::rtp_format::MediaHeader;
use crate::sfu::{News, Request};
use crate::tcp::TcpPacket;
use crate::trace::{Forwarded, Heard, LayerDecision, Seen, Transfer, Video};

/// One of the two ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The end that sends the data.
    Sender,
    /// The end that receives the data.
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

/// Both ends of a flow. They are one object but share no state: one end learns about the other only
/// from packets. The one exception is the round-trip time that a browser's receiver knows from
/// extended reports, which have no bytes here.
pub(crate) trait Ends: Send {
    /// Time at which an end wants to be called next, if any.
    fn next_deadline(&self, end: End) -> Option<Timestamp>;

    /// The time returned by `next_deadline` has come.
    fn on_deadline(&mut self, now: Timestamp, end: End, out: &mut Outbox);

    /// A packet from the other end arrived.
    fn on_packet(&mut self, now: Timestamp, end: End, packet: &Packet, out: &mut Outbox);

    /// A packet left the queue of the sender's terminal, or was dropped there. Only TCP limits the
    /// packets that wait in the queue of its own host.
    fn on_left_host(&mut self, _now: Timestamp, _packet: &Packet, _out: &mut Outbox) {}

    /// Another flow of the same sender changed this flow's share of their rate. Only media flows
    /// have a share.
    fn on_shared_rate(&mut self, _now: Timestamp, _share: Bitrate, _out: &mut Outbox) {}

    /// Current state of the sender, for the trace.
    fn state(&self) -> SenderState;

    /// The forwarding server has news for its part of the flow. Returns whether anything changed.
    fn on_news(&mut self, _now: Timestamp, _news: &News<'_>, _out: &mut Outbox) -> bool {
        false
    }

    /// Returns what the forwarding server did for a subscriber since the last call. `share` is its
    /// part of the capacity, if that is known; `tracks` are those of the server. `None` for other
    /// flows.
    fn take_forwarded(
        &mut self,
        _share: Option<Bitrate>,
        _tracks: &mut dyn Iterator<Item = (usize, &TrackConfig)>,
    ) -> Option<Forwarded> {
        None
    }

    /// Returns the video results since the last call, if the receiver plays video. `is_last` is
    /// true for the last call of the run.
    fn take_video(&mut self, _now: Timestamp, _is_last: bool) -> Option<Video> {
        None
    }

    /// Returns what was seen since the last call, if the receiver plays video as a browser does.
    fn take_seen(&mut self) -> Option<Seen> {
        None
    }

    /// Returns what was heard since the last call, if the receiver plays audio.
    fn take_heard(&mut self) -> Option<Heard> {
        None
    }

    /// Returns the results of a transfer since the last call. `None` for flows other than TCP and
    /// QUIC.
    fn take_transfer(&mut self) -> Option<Transfer> {
        None
    }
}

/// A packet of a flow.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Size of the whole IP packet.
    pub(crate) size: DataSize,
    /// ECN codepoint. A queue on the path may change it to CE.
    pub(crate) ecn: Ecn,
    pub(crate) body: Body,
}

/// Content of a packet. Payload bytes are counted, not carried.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// RTP headers.
    Rtp(MediaHeader),
    /// RTP headers and the first bytes of the payload.
    RtpPayload(Vec<u8>),
    /// A complete RTCP packet.
    Rtcp(Vec<u8>),
    /// A TCP segment; boxed, because acknowledgements are large and links move packets often.
    Tcp(Box<TcpPacket>),
    /// A QUIC packet; boxed, because few flows have them.
    Quic(Box<QuicPacket>),
    /// Nothing but its size.
    Udp,
    /// Audio recorded up to this time.
    Audio(Timestamp),
}

/// State of a flow's sender. Values that its kind of traffic does not have are `None`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderState {
    pub(crate) target: Option<Bitrate>,
    pub(crate) pacing_rate: Option<Bitrate>,
    pub(crate) congestion_window: Option<DataSize>,
    pub(crate) send_queue: Option<DataSize>,
}

/// Actions that a flow requests during a call. The simulator empties it after each call.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Packets to send to the other end.
    pub(crate) packets: Vec<Packet>,
    /// Changes of the target bitrate.
    pub(crate) changes: Vec<Change>,
    /// A round-trip time that the sender measured.
    pub(crate) rtt: Option<TimeDelta>,
    /// What a subscriber's part of the forwarding server decided, and needs from the rest of it.
    pub(crate) decisions: Vec<LayerDecision>,
    pub(crate) requests: Vec<Request>,
}

/// A [`crate::trace::RateChange`] without time and flow. The simulator adds both.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) from: Bitrate,
    pub(crate) to: Bitrate,
    pub(crate) reason: &'static str,
    pub(crate) state: &'static str,
    pub(crate) signals: Vec<(Cow<'static, str>, f64)>,
}
