//! Wire format of media packets: header sizes, identifiers and the RTP clock.

use weir::units::Timestamp;
use weir_wire::rtp::{AbsSendTime, ExtensionId, ExtensionIds, PayloadType, RtpHeader};

/// IPv4 and UDP headers.
pub(crate) const IP_UDP: u64 = 20 + 8;
/// Authentication tag of SRTP with its default cipher [RFC3711 §4.2].
pub(crate) const SRTP_TAG: u64 = 10;
/// Trailer of SRTCP: an index and the authentication tag [RFC3711 §3.4].
pub(crate) const SRTCP_TRAILER: u64 = 4 + SRTP_TAG;
/// Maximum size of an RTP packet with its header, as WebRTC endpoints use it.
pub(crate) const MAX_RTP_PACKET: u64 = 1_200;
/// Size of the fixed part of an RTP header.
pub(crate) const FIXED_HEADER: usize = 12;
/// Size of an RTP header with a one-byte header extension for the transport-wide sequence number or
/// the absolute send time.
pub(crate) const RTP_HEADER: usize = FIXED_HEADER + 8;
/// Size of a media packet on the wire without its payload.
pub(crate) const OVERHEAD: u64 = IP_UDP + RTP_HEADER as u64 + SRTP_TAG;
/// The part of [`OVERHEAD`] that a browser counts. It does not count the SRTP tag, because its
/// sender does not know the cipher [LIBWEBRTC §TransportFeedbackAdapter].
pub(crate) const COUNTED_OVERHEAD: u64 = OVERHEAD - SRTP_TAG;
/// Maximum size of a media packet on the wire.
pub(crate) const MAX_PACKET: u64 = IP_UDP + MAX_RTP_PACKET + SRTP_TAG;
pub(crate) const EXTENSION_ID: ExtensionId = ExtensionId::new(1).unwrap();
pub(crate) const EXTENSION_IDS: ExtensionIds =
    ExtensionIds::NONE.with_transport_sequence_number(Some(EXTENSION_ID));
pub(crate) const PAYLOAD_TYPE: PayloadType = PayloadType::new(96).unwrap();
pub(crate) const VIDEO_CLOCK_HZ: f64 = 90_000.0;

/// The RTP headers of a media packet. Payload bytes are counted, not carried.
pub(crate) type MediaHeader = [u8; RTP_HEADER];

/// Converts a time to the video clock, which has 32 bits and wraps around.
pub(crate) fn rtp_timestamp(now: Timestamp) -> u32 {
    (now.as_secs_f64() * VIDEO_CLOCK_HZ) as u64 as u32
}

/// Departure information in the RTP header extension.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Departure {
    /// The transport-wide sequence number.
    Number(u16),
    /// The absolute send time, for a receiver that estimates the rate.
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
