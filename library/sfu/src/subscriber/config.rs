//! Configuration of a subscriber and its streams.

use core::fmt;

use weir::units::TimeDelta;
use weir_rtcp::{EnqueueError, SenderConfig};
use weir_wire::rtp::{ExtensionId, PayloadType};

use crate::rewriter::WINDOW;

/// Configuration of a [`Subscriber`](crate::Subscriber).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriberConfig {
    /// The transport: header extensions, overhead, and the stream of padding packets.
    pub sender: SenderConfig,
}

impl SubscriberConfig {
    /// A transport with TWCC under this extension id. `padding_ssrc` must not be that of a track,
    /// and no track may have the payload type of padding, which is 127: `forward` refuses both.
    pub const fn twcc(padding_ssrc: u32, id: ExtensionId) -> Self {
        let sender = SenderConfig::twcc(padding_ssrc, id).with_padding_ssrc(padding_ssrc);
        Self { sender }
    }

    /// Any transport of `weir-rtcp`. With `sender_reports` there are reports on each track.
    pub const fn new(sender: SenderConfig) -> Self {
        Self { sender }
    }
}

/// The stream in which a track leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutgoingStream {
    /// Its SSRC, whichever layer is forwarded.
    pub ssrc: u32,
    /// Its payload type.
    pub payload_type: PayloadType,
    /// Clock rate of its timestamps, in Hz. The default is 90,000, as for video.
    pub clock_rate: u32,
    /// Whether the payload is VP8, whose picture ids are then rewritten.
    pub is_vp8: bool,
    /// The id of dependency descriptors, if its packets have them. Then they say which frames are
    /// left out, and their numbers are rewritten too.
    pub dependency: Option<ExtensionId>,
    /// SSRC and payload type of retransmissions. Without, a packet is sent again as it was.
    pub rtx: Option<(u32, PayloadType)>,
    /// Packets are kept for retransmissions for this time. The default is 1 s.
    pub cache_time: TimeDelta,
    /// The most packets that are kept, each of which takes its size. The default is 16,384: at most
    /// 20 MB, which a stream of 160 Mbit/s takes. Faster streams are kept for a shorter time.
    pub cached_packets: usize,
    /// How long a packet that the publisher's uplink lost may still come: see
    /// [`Rewriter::with_window`](crate::Rewriter::with_window). The default is 2 s.
    pub window: TimeDelta,
}

impl OutgoingStream {
    /// Video other than VP8, without retransmission stream.
    pub const fn new(ssrc: u32, payload_type: PayloadType) -> Self {
        Self {
            ssrc,
            payload_type,
            clock_rate: 90_000,
            is_vp8: false,
            dependency: None,
            rtx: None,
            cache_time: TimeDelta::from_secs(1),
            cached_packets: 1 << 14,
            window: WINDOW,
        }
    }

    weir::with! {
        const
        with_clock_rate: clock_rate: u32,
        with_is_vp8: is_vp8: bool,
        with_dependency: dependency: Option<ExtensionId>,
        with_rtx: rtx: Option<(u32, PayloadType)>,
        with_cache_time: cache_time: TimeDelta,
        with_cached_packets: cached_packets: usize,
        with_window: window: TimeDelta,
    }
}

/// Why a packet cannot be forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForwardError {
    /// No track has this id.
    UnknownTrack,
    /// The bytes are not an RTP packet.
    Malformed,
    /// The packet cannot be sent over this transport.
    Unsendable(EnqueueError),
}

impl From<EnqueueError> for ForwardError {
    fn from(error: EnqueueError) -> Self {
        Self::Unsendable(error)
    }
}

impl fmt::Display for ForwardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTrack => f.write_str("no track has this id"),
            Self::Malformed => f.write_str("not an RTP packet"),
            Self::Unsendable(error) => error.fmt(f),
        }
    }
}
impl core::error::Error for ForwardError {}
