//! The messages of an event log that the analysis reads, as in libwebrtc's `rtc_event_log2.proto`.
//!
//! A message is a batch. Its plain members are those of the first event; a member ending in
//! `deltas` has those of the other events ([`super::deltas`]).

/// Field numbers of the messages in the log [RTCLOG2].
pub(super) mod field {
    pub const INCOMING_RTP: u64 = 2;
    pub const OUTGOING_RTP: u64 = 3;
    pub const INCOMING_RTCP: u64 = 4;
    pub const OUTGOING_RTCP: u64 = 5;
    pub const BEGIN_LOG: u64 = 16;
    pub const LOSS_BASED: u64 = 18;
    pub const DELAY_BASED: u64 = 19;
    pub const PROBE: u64 = 21;
    pub const PROBE_SUCCESS: u64 = 22;
    pub const PROBE_FAILURE: u64 = 23;
    pub const APPLICATION_LIMITED: u64 = 24;
    pub const VIDEO_RECEIVE: u64 = 103;
    pub const VIDEO_SEND: u64 = 104;
}

/// Packets of RTP in one direction. Both directions have the same form.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RtpPackets {
    #[prost(int64, tag = "1")]
    pub timestamp_ms: i64,
    #[prost(uint32, tag = "4")]
    pub sequence_number: u32,
    #[prost(fixed32, tag = "5")]
    pub rtp_timestamp: u32,
    #[prost(fixed32, tag = "6")]
    pub ssrc: u32,
    #[prost(uint32, tag = "8")]
    pub payload_size: u32,
    #[prost(uint32, tag = "9")]
    pub header_size: u32,
    #[prost(uint32, tag = "10")]
    pub padding_size: u32,
    #[prost(uint32, tag = "11")]
    pub number_of_deltas: u32,
    #[prost(uint32, optional, tag = "15")]
    pub transport_sequence_number: Option<u32>,
    #[prost(uint32, optional, tag = "17")]
    pub absolute_send_time: Option<u32>,
    #[prost(bytes = "vec", tag = "101")]
    pub timestamp_ms_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "104")]
    pub sequence_number_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "105")]
    pub rtp_timestamp_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "106")]
    pub ssrc_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "108")]
    pub payload_size_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "109")]
    pub header_size_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "110")]
    pub padding_size_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "115")]
    pub transport_sequence_number_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "117")]
    pub absolute_send_time_deltas: Vec<u8>,
}

/// Packets of RTCP in one direction, before encryption or after decryption.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RtcpPackets {
    #[prost(int64, tag = "1")]
    pub timestamp_ms: i64,
    #[prost(bytes = "vec", tag = "2")]
    pub raw_packet: Vec<u8>,
    #[prost(uint32, tag = "3")]
    pub number_of_deltas: u32,
    #[prost(bytes = "vec", tag = "101")]
    pub timestamp_ms_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "102")]
    pub raw_packet_blobs: Vec<u8>,
}

/// The begin of the log.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct BeginLog {
    #[prost(uint32, tag = "2")]
    pub version: u32,
}

/// Estimates of what the path carries, after the loss-based limit: the sender's targets.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct LossBasedUpdates {
    #[prost(int64, tag = "1")]
    pub timestamp_ms: i64,
    #[prost(uint32, tag = "2")]
    pub bitrate_bps: u32,
    #[prost(uint32, tag = "5")]
    pub number_of_deltas: u32,
    #[prost(bytes = "vec", tag = "101")]
    pub timestamp_ms_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "102")]
    pub bitrate_bps_deltas: Vec<u8>,
}

/// States of the detector of delay.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DelayBasedUpdates {
    #[prost(int64, tag = "1")]
    pub timestamp_ms: i64,
    /// 0 for unknown, 1 for normal, 2 for underuse, 3 for overuse.
    #[prost(uint32, tag = "3")]
    pub detector_state: u32,
    #[prost(uint32, tag = "4")]
    pub number_of_deltas: u32,
    #[prost(bytes = "vec", tag = "101")]
    pub timestamp_ms_deltas: Vec<u8>,
    #[prost(bytes = "vec", tag = "103")]
    pub detector_state_deltas: Vec<u8>,
}

/// A probe that begins, or its success: the rate that it tries, or that it reached.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Probe {
    #[prost(int64, tag = "1")]
    pub timestamp_ms: i64,
    #[prost(uint32, tag = "3")]
    pub bitrate_bps: u32,
}

/// A probe without a result.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ProbeFailure {
    #[prost(int64, tag = "1")]
    pub timestamp_ms: i64,
}

/// Whether the sender finds that the application gives it less than it may send.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ApplicationLimited {
    #[prost(int64, tag = "1")]
    pub timestamp_ms: i64,
    #[prost(bool, tag = "2")]
    pub is_limited: bool,
}

/// A video that is sent.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct VideoSendStream {
    #[prost(uint32, tag = "2")]
    pub ssrc: u32,
    #[prost(uint32, optional, tag = "3")]
    pub rtx_ssrc: Option<u32>,
}

/// A video that is received.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct VideoReceiveStream {
    #[prost(uint32, tag = "2")]
    pub remote_ssrc: u32,
    #[prost(uint32, optional, tag = "4")]
    pub rtx_ssrc: Option<u32>,
}
