//! How media packets look on the wire: sizes of headers, numbers, the clock.

use weir::units::Timestamp;
use weir_wire::rtp::{AbsSendTime, ExtensionId, ExtensionIds, PayloadType, RtpHeader};

/// IPv4 and UDP headers.
pub(crate) const IP_UDP: u64 = 20 + 8;
/// Authentication tag of SRTP with its default cipher [RFC3711 §4.2].
pub(crate) const SRTP_TAG: u64 = 10;
/// SRTCP adds an index to the tag [RFC3711 §3.4].
pub(crate) const SRTCP_TRAILER: u64 = 4 + SRTP_TAG;
/// Largest RTP packet, header included: what WebRTC endpoints use.
pub(crate) const MAX_RTP_PACKET: u64 = 1_200;
/// Bytes that every RTP header begins with.
pub(crate) const FIXED_HEADER: usize = 12;
/// RTP header with a one-byte header extension that carries the transport-wide sequence number, or the
/// absolute send time.
pub(crate) const RTP_HEADER: usize = FIXED_HEADER + 8;
/// What every media packet takes besides its payload.
pub(crate) const OVERHEAD: u64 = IP_UDP + RTP_HEADER as u64 + SRTP_TAG;
/// What of it a browser counts: it does not know what its packets are encrypted with
/// [LIBWEBRTC §TransportFeedbackAdapter].
pub(crate) const COUNTED_OVERHEAD: u64 = OVERHEAD - SRTP_TAG;
/// Largest media packet on the wire.
pub(crate) const MAX_PACKET: u64 = IP_UDP + MAX_RTP_PACKET + SRTP_TAG;
pub(crate) const EXTENSION_ID: ExtensionId = ExtensionId::new(1).unwrap();
pub(crate) const EXTENSION_IDS: ExtensionIds =
    ExtensionIds { transport_sequence_number: Some(EXTENSION_ID), abs_send_time: None };
pub(crate) const PAYLOAD_TYPE: PayloadType = PayloadType::new(96).unwrap();
pub(crate) const VIDEO_CLOCK_HZ: f64 = 90_000.0;

/// The headers of a media packet as they go over the wire; its payload is only counted.
pub(crate) type MediaHeader = [u8; RTP_HEADER];

/// The video clock: 32 bits, which wrap.
pub(crate) fn rtp_timestamp(now: Timestamp) -> u32 {
    (now.as_secs_f64() * VIDEO_CLOCK_HZ) as u64 as u32
}

/// What the extension of an RTP header says of the packet's departure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Departure {
    /// The transport-wide sequence number.
    Number(u16),
    /// The absolute send time, for a receiver that estimates.
    Time(AbsSendTime),
}

impl Departure {
    pub(crate) fn write(self, header: &mut RtpHeader) {
        (header.transport_sequence_number, header.abs_send_time) = match self {
            Self::Number(number) => (Some((EXTENSION_ID, number)), None),
            Self::Time(time) => (None, Some((EXTENSION_ID, time))),
        };
    }
}
