//! What two witnesses of a call say of the same packets.

use serde::{Deserialize, Serialize};

/// Direction of a stream, seen from the peer that reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StreamDirection {
    /// The peer sends it.
    #[default]
    Sent,
    /// The peer receives it.
    Received,
}

impl StreamDirection {
    /// Its name in records and reports: `sent` or `received`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
        }
    }
}

/// Counts of a stream by getStats and by the capture at the same host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compared {
    /// Peer whose browser counted, `a` or `b`.
    pub peer: String,
    /// Whether the peer sends the stream or receives it.
    #[serde(rename = "way")]
    pub direction: StreamDirection,
    /// `video`, `retransmissions`, `video and retransmissions` or `audio`.
    pub stream: String,
    /// The media section of the session description.
    pub mid: Option<String>,
    /// SSRCs of the counted streams.
    pub ssrcs: Vec<u32>,
    /// Packets by getStats.
    pub reported_packets: u64,
    /// Packets by the capture.
    pub captured_packets: u64,
    /// Payload by getStats; `null` where the browser does not report what SRTP adds.
    pub reported_payload_bytes: Option<u64>,
    /// Payload by the capture; `null` in the same case.
    pub captured_payload_bytes: Option<u64>,
    /// When each report was made, in the scenario's time.
    pub time_s: Vec<f64>,
    /// Payload since the report before, by getStats, in bit/s.
    pub reported_bps: Vec<u64>,
    /// The same by the capture.
    pub captured_bps: Vec<u64>,
}

/// One quantity, measured by two witnesses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// The subject and the place of the measurement: `audio a to b, at a`.
    pub subject: String,
    /// `packets`, `payload bytes`, `bytes`, `lost packets` or `mean delay, ms`.
    pub quantity: String,
    /// The witness other than the capture: `getStats` or `emulator`.
    pub witness: String,
    /// Value of this witness.
    pub witnessed: f64,
    /// Value of the capture.
    pub captured: f64,
    /// Witnessed minus captured.
    pub error: f64,
    /// Largest error at which the two still agree.
    pub limit: f64,
    /// Whether the error is within the limit.
    pub agrees: bool,
}
