//! The part of `call.json` that only an application under test has: its RTCPeerConnections, what
//! its pages called, and the audio that arrived.

use serde::{Deserialize, Serialize};

/// An RTCPeerConnection of a page. Times are in the scenario's time, and negative before time zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PageConnection {
    /// Number of the participant.
    pub call: usize,
    /// Its name.
    pub participant: String,
    /// The connection's name in the participant's dump.
    pub connection: String,
    /// Address of the page or frame that made it.
    #[serde(default)]
    pub url: String,
    /// When it was made, in s.
    pub created_s: f64,
    /// When the page set its first session description, in s.
    #[serde(default)]
    pub described_s: Option<f64>,
    /// When it was connected, keys agreed on, in s.
    #[serde(default)]
    pub connected_s: Option<f64>,
    /// When the first frame of a received video was decoded, in s; late by up to 50 ms.
    #[serde(default)]
    pub first_frame_s: Option<f64>,
}

impl PageConnection {
    /// Time from its first description to connected, in ms.
    pub(super) fn setup_ms(&self) -> Option<f64> {
        Some((self.connected_s? - self.described_s?) * 1e3)
    }

    /// Time from its first description to the first decoded frame, in ms.
    pub(super) fn first_frame_ms(&self) -> Option<f64> {
        Some((self.first_frame_s? - self.described_s?) * 1e3)
    }
}

/// What a page called, or what happened to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PageEvent {
    /// When, in the scenario's time.
    pub time_s: f64,
    /// Whose page.
    pub participant: String,
    /// The connection; `null` for the page itself.
    #[serde(default)]
    pub connection: Option<String>,
    /// The function, such as `setParameters`, or the event, such as `onconnectionstatechange`.
    pub event: String,
    /// The arguments' kinds, or the event's value, as JSON.
    #[serde(default)]
    pub value: String,
}

/// An audio stream that a participant received.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceivedAudio {
    /// Number of the participant.
    pub call: usize,
    /// Its name.
    pub participant: String,
    /// The stream's source.
    pub ssrc: u32,
    /// What getStats reported, every 500 ms.
    #[serde(default)]
    pub intervals: Vec<AudioInterval>,
}

/// Received audio in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AudioInterval {
    /// Its end, in the scenario's time.
    pub time_s: f64,
    /// IP packets, in bit/s.
    #[serde(default)]
    pub receive_bps: Option<u64>,
    /// Packets that were lost.
    #[serde(default)]
    pub loss_ratio: Option<f64>,
    /// Samples that were made up because theirs did not arrive in time, without silence.
    #[serde(default)]
    pub concealed_ratio: Option<f64>,
    /// Gaps that were concealed.
    #[serde(default)]
    pub concealments: Option<u64>,
    /// Mean time of a sample in the jitter buffer.
    #[serde(default)]
    pub jitter_buffer_ms: Option<f64>,
}
