//! A packet of RTP as a capture or an event log has it.

/// A packet of RTP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RtpPacket {
    pub ssrc: u32,
    pub sequence_number: u16,
    pub rtp_timestamp: u32,
    /// 0 throughout where it is unknown.
    pub payload_type: u8,
    /// Bytes of the header with its extensions, of the payload with SRTP's tag, and of the padding.
    pub header_size: u32,
    pub payload_size: u32,
    pub padding_size: u32,
    pub is_padding: bool,
    /// The marker bit, where it is known: of audio, the first packet after silence [RFC3551 §4.1].
    pub is_marked: bool,
    /// Identification of the IP packet, which its copies share; 0 where there is none.
    pub ip_id: u16,
    /// Transport-wide sequence number, and absolute send time.
    pub number: Option<u16>,
    pub send_time: Option<u32>,
}
