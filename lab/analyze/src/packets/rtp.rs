//! A packet of RTP as a capture or an event log has it.

use super::extensions::Candidates;

/// A packet of RTP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RtpPacket {
    pub ssrc: u32,
    pub sequence_number: u16,
    pub rtp_timestamp: u32,
    /// Bytes of the header with its extensions, of the payload with SRTP's tag, and of the padding.
    pub header_size: u32,
    pub payload_size: u32,
    pub padding_size: u32,
    pub is_padding: bool,
    pub extensions: Extensions,
}

/// Header extensions that matter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extensions {
    /// An event log names them.
    Known { number: Option<u16>, send_time: Option<u32> },
    /// A capture has their ids only.
    Unknown(Candidates),
}
