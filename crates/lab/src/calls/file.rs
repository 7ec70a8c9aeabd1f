//! `call.json` as the lab reads it. A member that a record lacks is a value that nobody measured.

use serde::{Deserialize, Serialize};

/// What only a real run has.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct CallFile {
    pub bent: bool,
    pub participants: Vec<Participant>,
    pub calls: Vec<CallEntry>,
    pub peers: Vec<Peer>,
    pub captures: Vec<Capture>,
}

impl CallFile {
    /// Whether the call with this number came about and lasted.
    pub(super) fn lasted(&self, number: usize) -> bool {
        !self.calls.iter().any(|call| call.call == number && call.failure.is_some())
    }

    /// A participant of several calls has a name for each.
    pub(crate) fn name(&self, peer: &Peer) -> String {
        let ends = self.peers.iter().filter(|other| other.participant == peer.participant).count();
        match ends {
            0 | 1 => peer.participant.clone(),
            _ => format!("{}, call {}", peer.participant, peer.call),
        }
    }

    /// Who receives a stream.
    pub(super) fn receiver(&self, call: usize, stream: &Stream) -> Option<&str> {
        Some(&self.end(call, &stream.to)?.participant)
    }

    /// An end of a call, which captures name `a` or `b`.
    pub(crate) fn end(&self, call: usize, name: &str) -> Option<&Peer> {
        let mut ends = self.peers.iter().filter(|peer| peer.call == call);
        ends.nth(usize::from(name == "b"))
    }
}

/// A program that took part.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Participant {
    pub name: String,
    pub cpu_cores: Option<f64>,
    pub memory_bytes: Option<f64>,
}

/// What became of a call.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct CallEntry {
    pub call: usize,
    pub failure: Option<String>,
}

/// An end of a call.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Peer {
    pub call: usize,
    pub participant: String,
    pub setup_ms: Option<Setup>,
    pub first_frame_ms: Option<f64>,
    pub candidate_pair: Option<Pair>,
    pub limitation_s: Option<Limitation>,
    pub intervals: Vec<Interval>,
}

/// When the steps of a set-up were done, in ms since the page was opened.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Setup {
    pub camera: Option<f64>,
    pub joined: f64,
    pub start: f64,
    pub described: Option<f64>,
    pub ice: Option<f64>,
    pub connected: f64,
}

impl Setup {
    /// When a path was found. An answer to a connectivity check may overtake the description of the peer.
    pub(crate) fn path_found(&self) -> Option<f64> {
        Some(self.ice?.max(self.described?))
    }
}

/// The candidates that media went between.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pair {
    pub local: Candidate,
    pub remote: Candidate,
}

/// One of them.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Candidate {
    pub address: Option<String>,
    pub protocol: String,
    pub candidate_type: String,
}

/// How long the quality was limited by what, in s.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Limitation {
    pub none: f64,
    pub cpu: f64,
    pub bandwidth: f64,
    pub other: f64,
}

/// What getStats, or a capture, told of the time between two reports.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Interval {
    pub time_s: f64,
    pub send_bps: Option<f64>,
    pub receive_bps: Option<f64>,
    pub media_bps: Option<f64>,
    pub again_bps: Option<f64>,
    pub fec_bps: Option<f64>,
    pub encode_ms: Option<f64>,
    pub decode_ms: Option<f64>,
    pub frame_rate: Option<f64>,
    pub frame_size: Option<(u32, u32)>,
    pub freezes: Option<f64>,
    pub frozen_s: Option<f64>,
    pub rtt_ms: Option<f64>,
}

/// What the captures at both ends of a call saw.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Capture {
    pub call: usize,
    pub streams: Vec<Stream>,
    /// Of peer a, of peer b.
    pub intervals: Vec<Vec<Interval>>,
    pub compared: Vec<Compared>,
    pub agreement: Vec<Agreement>,
}

/// A media stream in them.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Stream {
    pub from: String,
    pub to: String,
    pub role: String,
    pub ssrc: u32,
    pub sent_packets: u64,
    pub received_bytes: u64,
    pub lost_packets: u64,
    pub reordered_packets: u64,
    pub duplicate_packets: u64,
    pub delay_ms: Option<Delays>,
    pub delay_counts: Vec<u64>,
}

/// Its one-way delay in ms.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Delays {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub max: f64,
}

/// What getStats counts of a stream, beside the capture at the same host.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Compared {
    pub peer: String,
    pub way: String,
    pub stream: String,
    pub mid: Option<String>,
    pub ssrcs: Vec<u32>,
    pub reported_packets: u64,
    pub captured_packets: u64,
    pub reported_payload_bytes: Option<f64>,
    pub captured_payload_bytes: Option<f64>,
    pub time_s: Vec<f64>,
    pub reported_bps: Vec<f64>,
    pub captured_bps: Vec<f64>,
}

/// Two witnesses of one quantity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Agreement {
    pub subject: String,
    pub quantity: String,
    pub witness: String,
    pub witnessed: f64,
    pub captured: f64,
    pub error: f64,
    pub limit: f64,
    pub agrees: bool,
}
