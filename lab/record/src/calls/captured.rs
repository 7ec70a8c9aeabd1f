//! What the packet captures of a call saw, as `call.json` has it.

use serde::{Deserialize, Serialize};

use super::compared::{Agreement, Compared};
use super::delays::Delays;

/// What the captures at both ends of a call saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Capture {
    /// Number of the call.
    pub call: usize,
    /// The media streams.
    #[serde(default)]
    pub streams: Vec<Stream>,
    /// Intervals of peer a, then of peer b.
    #[serde(default)]
    pub intervals: Vec<Vec<CapturedInterval>>,
    /// The counts of getStats and those of the captures.
    #[serde(default)]
    pub compared: Vec<Compared>,
    /// Quantities that two witnesses measured.
    #[serde(default)]
    pub agreement: Vec<Agreement>,
}

/// A media stream in the captures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stream {
    /// The peer that sends it, `a` or `b`.
    pub from: String,
    /// The peer that receives it.
    pub to: String,
    /// `video`, `retransmission`, `audio` or `other`.
    pub role: String,
    /// Its source.
    pub ssrc: u32,
    /// The payload types that it had.
    pub payload_types: Vec<u8>,
    /// Packets that left the sender.
    pub sent_packets: u64,
    /// Their bytes, IP headers included.
    pub sent_bytes: u64,
    /// Packets that reached the receiver.
    pub received_packets: u64,
    /// Their bytes, IP headers included.
    pub received_bytes: u64,
    /// Packets that left and never arrived.
    pub lost_packets: u64,
    /// Packets that arrived after one that had left later.
    pub reordered_packets: u64,
    /// Packets that arrived more often than they had left.
    pub duplicate_packets: u64,
    /// One-way delay; `null` if nothing arrived.
    pub delay_ms: Option<Delays>,
    /// Packets by one-way delay in 30 bins of 10 ms, then all from 300 ms on.
    pub delay_counts: Vec<u64>,
}

/// What a capture saw between two reports of the peer's getStats: IP packets of the video,
/// retransmissions included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CapturedInterval {
    /// Its end, in the scenario's time.
    pub time_s: f64,
    /// Sent, in bit/s.
    pub send_bps: Option<f64>,
    /// Received, in bit/s.
    pub receive_bps: Option<f64>,
    /// Packets lost in the interval over packets lost or received in it.
    pub loss_ratio: Option<f64>,
}
