//! `call.json`: the part of a record that only runs of real programs have. `weir call` and
//! `weir link` write it and the report reads it, both through [`CallFile`].
//!
//! Members that older versions did not write are optional. Any other mismatch makes the record
//! damaged.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::calls_made::CallsMade;
pub use super::captured::{Capture, CapturedInterval, Stream};
pub use super::compared::{Agreement, Compared};
pub use super::finding::{Finding, FindingSample};
pub use super::kind::{ApplicationRun, AskedPicture, CallRun, DumpRun, Kind, LinkRun};
use super::older;
pub use super::page::{AudioInterval, PageConnection, PageEvent, ReceivedAudio};
use super::quality::Quality;
use super::sound::Speech;

/// The whole file. Files of older versions are read too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct CallFile {
    /// The kind of run, with what only this kind has.
    #[serde(flatten)]
    pub kind: Kind,
    /// The machine's kernel; empty for a dump.
    #[serde(default)]
    pub kernel: String,
    /// Which parts were real and which simulated.
    #[serde(default)]
    pub engines: String,
    /// Reasons not to trust values, one sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The programs that took part; none of `weir link`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub participants: Vec<Participant>,
    /// Result of each call; of an application, one for each participant; none of `weir link`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallEntry>,
    /// Two for each call, the offering peer first; of an application and of a dump, one for each
    /// stream of video.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<Peer>,
    /// Packets that the captures were too late for.
    #[serde(default)]
    pub missed_packets: u64,
    /// What the emulator measured.
    #[serde(flatten)]
    pub emulation: EmulationFacts,
}

impl Serialize for CallFile {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(self, to)
    }
}

impl<'de> Deserialize<'de> for CallFile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let members = older::as_of_now(serde_json::Map::deserialize(from)?);
        Self::deserialize(members).map_err(serde::de::Error::custom)
    }
}

/// What the emulator measured in any run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EmulationFacts {
    /// The machine disturbed the run: its values say more about the machine than about the network.
    pub disturbed: bool,
    /// How late the emulator released packets; `null` if it released none.
    #[serde(default)]
    pub lateness_us: Option<Lateness>,
    /// Whether the emulator's thread ran before all other programs (real-time scheduling).
    #[serde(default)]
    pub released_first: bool,
    /// Share of the machine's processor time that was busy; `null` if unknown.
    #[serde(default)]
    pub cpu_busy_ratio: Option<f64>,
    /// Share of processes with a lowered priority, not part of the busy time; `null` if unknown.
    #[serde(default)]
    pub cpu_nice_ratio: Option<f64>,
    /// Share that the host of a virtual machine took, part of the busy time; `null` if unknown.
    #[serde(default)]
    pub cpu_stolen_ratio: Option<f64>,
    /// Changes typed with `--interactive`.
    #[serde(default)]
    pub changes: Vec<NetworkChange>,
    /// Packets that were not from one host to another.
    #[serde(default)]
    pub foreign_packets: u64,
    /// Packets that the receiving host did not take.
    #[serde(default)]
    pub refused_packets: u64,
    /// What the NATs did; absent without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nats: Vec<NatFacts>,
}

/// What a NAT did in a run, its set-up included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NatFacts {
    /// The participants behind it.
    pub participants: Vec<String>,
    /// Its outside addresses, in order.
    pub addresses: Vec<String>,
    /// Mappings made.
    pub mappings: u64,
    /// Packets of UDP that the firewall dropped.
    pub blocked_packets: u64,
    /// Packets from outside without a mapping.
    pub unmapped_packets: u64,
    /// Packets from outside that the filter dropped.
    pub filtered_packets: u64,
    /// Packets from inside to the NAT's own outside address.
    pub hairpin_packets: u64,
    /// Packets to an inside address from elsewhere, for which there is no route.
    pub unroutable_packets: u64,
    /// Packets that it could not translate.
    pub untranslated_packets: u64,
}

/// A histogram of the release lateness in µs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// The buckets' edges, one more than `counts`.
    pub edges: Vec<u64>,
    /// Packets between two edges.
    pub counts: Vec<u64>,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Maximum.
    pub max: u64,
}

/// A change of the network by hand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkChange {
    /// When, in the scenario's time.
    pub time_s: f64,
    /// Such as `capacity 1 Mbit/s up`.
    pub change: String,
}

impl CallFile {
    /// Outcome of the run.
    pub fn calls_made(&self) -> CallsMade {
        let succeeded = self.calls.iter().filter(|call| call.failure.is_none()).count();
        CallsMade { made: self.calls.len(), succeeded, disturbed: self.emulation.disturbed }
    }

    /// The calls whose two ends were captured.
    pub fn captures(&self) -> &[Capture] {
        match &self.kind {
            Kind::Call(call) => &call.captures,
            Kind::Link(_) | Kind::Application(_) | Kind::Dump(_) => &[],
        }
    }

    /// The pictures that each peer received.
    pub fn quality(&self) -> &[Quality] {
        match &self.kind {
            Kind::Call(call) => &call.quality,
            Kind::Application(application) => &application.quality,
            Kind::Link(_) | Kind::Dump(_) => &[],
        }
    }

    /// What was heard of each microphone at each speaker.
    pub fn speech(&self) -> &[Speech] {
        match &self.kind {
            Kind::Call(call) => &call.speech,
            Kind::Application(_) | Kind::Link(_) | Kind::Dump(_) => &[],
        }
    }

    /// What limited the streams, and when. The largest effect on the call comes first.
    pub fn findings(&self) -> &[Finding] {
        match &self.kind {
            Kind::Application(application) => &application.findings,
            Kind::Dump(dump) => &dump.findings,
            Kind::Call(_) | Kind::Link(_) => &[],
        }
    }

    /// Whether the call with this number connected and lasted.
    pub(super) fn lasted(&self, number: usize) -> bool {
        !self.calls.iter().any(|call| call.call == number && call.failure.is_some())
    }

    /// The peer's name. A participant of several calls has a name for each.
    pub fn name(&self, peer: &Peer) -> String {
        let ends = self.peers.iter().filter(|other| other.participant == peer.participant).count();
        match ends {
            0 | 1 => peer.participant.clone(),
            _ => format!("{}, call {}", peer.participant, peer.call),
        }
    }

    /// The participant that receives a stream.
    pub(super) fn receiver(&self, call: usize, stream: &Stream) -> Option<&str> {
        Some(&self.end(call, &stream.to)?.participant)
    }

    /// An end of a call. Captures name the two ends `a` and `b`.
    pub fn end(&self, call: usize, name: &str) -> Option<&Peer> {
        let mut ends = self.peers.iter().filter(|peer| peer.call == call);
        ends.nth(usize::from(name == "b"))
    }
}

/// A program that took part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Participant {
    /// Its name in the scenario.
    pub name: String,
    /// Program and version.
    #[serde(default)]
    pub program: String,
    /// Processor time over wall time of its process and everything below it. `null` where the run
    /// never began, and for a person's browser.
    #[serde(default)]
    pub cpu_cores: Option<f64>,
    /// Largest proportional set size seen; `null` in the same cases.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
}

/// Result of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallEntry {
    /// Its number.
    pub call: usize,
    /// The offering participant, then the answering one.
    #[serde(default)]
    pub participants: Vec<String>,
    /// Why it failed, in one line; `null` if it connected and lasted.
    pub failure: Option<String>,
}

/// An end of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// Number of the call.
    pub call: usize,
    /// Who it is.
    pub participant: String,
    /// `rid` of its layer of simulcast, of an application's stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// The steps of its set-up; `null` if it was not connected.
    #[serde(default)]
    pub setup_ms: Option<Setup>,
    /// First frame of the other peer, in ms since the page was opened; `null` at one that only
    /// sends.
    #[serde(default)]
    pub first_frame_ms: Option<f64>,
    /// The path of its media; `null` if it was not connected, and for a forwarding server.
    #[serde(default)]
    pub candidate_pair: Option<CandidatePair>,
    /// The transport by its last report; `null` where the browser has none.
    #[serde(default)]
    pub transport: Option<Transport>,
    /// What the camera gave by its last report.
    #[serde(default)]
    pub camera: Option<Camera>,
    /// The encoder by its last report; `null` at a peer that sends no video.
    #[serde(default)]
    pub encoder: Option<Encoder>,
    /// Time for which each cause limited the quality.
    #[serde(default)]
    pub limitation_s: Option<Limitation>,
    /// What getStats reported, every 500 ms.
    #[serde(default)]
    pub intervals: Vec<Interval>,
}

/// When the steps of a set-up were done, in ms since the page was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// The camera delivers; `null` at a peer that only receives.
    pub camera: Option<f64>,
    /// The lab has sent the configuration.
    pub joined: f64,
    /// The call begins: both peers are ready, and its time has come.
    pub start: f64,
    /// Both session descriptions are there.
    pub described: Option<f64>,
    /// ICE has found a path.
    pub ice: Option<f64>,
    /// DTLS is done and media can flow.
    pub connected: f64,
}

impl Setup {
    /// When a path was found. An answer to a connectivity check may overtake the description of the
    /// peer.
    pub fn path_found(&self) -> Option<f64> {
        Some(self.ice?.max(self.described?))
    }
}

/// The two candidates between which media was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CandidatePair {
    /// This end.
    pub local: Candidate,
    /// The far end.
    pub remote: Candidate,
}

/// An ICE candidate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// IP address; `null` where the browser hides it.
    pub address: Option<String>,
    /// UDP or TCP port.
    #[serde(default)]
    pub port: u16,
    /// `udp` or `tcp`.
    pub protocol: String,
    /// `host`, `srflx`, `prflx` or `relay`.
    pub candidate_type: String,
    /// How this end reaches its relay: `udp`, `tcp` or `tls`; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay_protocol: Option<String>,
}

/// The transport under all streams.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Transport {
    /// Protection profile of SRTP by its IANA name.
    pub srtp_cipher: Option<String>,
    /// Cipher suite of DTLS.
    pub dtls_cipher: Option<String>,
    /// How often the selected pair changed; 1 where it never did.
    pub selected_candidate_pair_changes: Option<u64>,
}

/// What a camera gave.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Camera {
    /// In pixels.
    pub width: Option<u32>,
    /// In pixels.
    pub height: Option<u32>,
    /// Frames in the last second.
    pub frames_per_second: Option<f64>,
}

/// An encoder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Encoder {
    /// The codec in use.
    pub mime_type: Option<String>,
    /// The program that encodes.
    pub encoder_implementation: Option<String>,
    /// The layers of scalable video coding, such as `L3T3`; absent where the browser does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scalability_mode: Option<String>,
}

/// Time for which each cause limited the quality, in s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limitation {
    /// By nothing.
    pub none: f64,
    /// By a slow machine.
    pub cpu: f64,
    /// By a low bitrate estimate.
    pub bandwidth: f64,
    /// By something else.
    pub other: f64,
}

/// What getStats reported of the time between two reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its end, in the scenario's time.
    pub time_s: f64,
    /// The browser's estimate of what the path carries, in bit/s.
    #[serde(default)]
    pub estimated_bps: Option<u64>,
    /// The video that the peer sent; absent at one that only receives.
    #[serde(flatten, deserialize_with = "part", skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentInterval>,
    /// The video that the peer received; absent at one that only sends.
    #[serde(flatten, deserialize_with = "part", skip_serializing_if = "Option::is_none")]
    pub received: Option<ReceivedInterval>,
}

/// A sent video in one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SentInterval {
    /// Target bitrate that the browser gave its encoder, in bit/s.
    pub target_bps: Option<u64>,
    /// IP packets, in bit/s.
    pub send_bps: Option<u64>,
    /// Payload that was sent for the first time, in bit/s.
    pub sent_media_bps: Option<u64>,
    /// Payload that was sent again, in bit/s.
    pub sent_again_bps: Option<u64>,
    /// Round-trip time of the last receiver report, where one came in the interval.
    pub rtt_ms: Option<f64>,
    /// Mean time of a packet in the pacer.
    pub pacer_ms: Option<f64>,
    /// Largest time that was waiting in the pacer; of pipelines only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacer_queue_ms: Option<f64>,
    /// Mean time to encode a frame.
    pub encode_ms: Option<f64>,
    /// Width and height of the last encoded frame, in pixels.
    pub sent_frame_size: Option<(u32, u32)>,
    /// Frames encoded a second.
    pub sent_frame_rate: Option<f64>,
    /// Mean quantizer.
    pub sent_qp: Option<f64>,
    /// What limited the quality at the end of the interval: `none`, `cpu`, `bandwidth` or `other`.
    pub limitation: Option<String>,
    /// With simulcast, each layer, the smallest picture first. Rates above are sums, the size is
    /// that of the largest that is on, and frame rate and quantizer are those of the smallest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<SentLayer>,
}

/// A layer of a sent video in one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SentLayer {
    /// Target bitrate that the browser gave its encoder, in bit/s.
    #[serde(default)]
    pub target_bps: Option<u64>,
    /// Payload that was sent for the first time, with padding, in bit/s.
    pub media_bps: u64,
    /// Width and height of the last encoded frame, in pixels.
    #[serde(default)]
    pub frame_size: Option<(u32, u32)>,
    /// Frames encoded a second.
    #[serde(default)]
    pub frame_rate: Option<f64>,
    /// Mean quantizer.
    #[serde(default)]
    pub qp: Option<f64>,
}

/// A received video in one interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReceivedInterval {
    /// IP packets, in bit/s.
    pub receive_bps: Option<u64>,
    /// Payload that was sent for the first time, in bit/s.
    pub media_bps: Option<u64>,
    /// Payload that was sent again, in bit/s.
    pub again_bps: Option<u64>,
    /// Forward error correction, in bit/s.
    pub fec_bps: Option<u64>,
    /// Packets of the stream that were lost.
    pub loss_ratio: Option<f64>,
    /// Variation of the packets' spacing.
    pub jitter_ms: Option<f64>,
    /// Mean time of a frame in the jitter buffer.
    pub jitter_buffer_ms: Option<f64>,
    /// Mean time to decode a frame.
    pub decode_ms: Option<f64>,
    /// Freezes that ended, as the browser counts them.
    pub freezes: Option<u64>,
    /// How long they lasted.
    pub frozen_s: Option<f64>,
    /// Width and height of the last decoded frame, in pixels.
    pub frame_size: Option<(u32, u32)>,
    /// Frames decoded a second.
    pub frame_rate: Option<f64>,
    /// Sum of the times between frames over the sum of their squares. A long gap lowers it more
    /// than the plain frame rate.
    pub harmonic_frame_rate: Option<f64>,
    /// Mean quantizer.
    pub qp: Option<f64>,
}

/// Values by name; `None` where no video was sent or received, or where nobody measured them.
impl Interval {
    /// Rate of the IP packets that were sent, in bit/s.
    pub fn send_bps(&self) -> Option<f64> {
        Some(self.sent.as_ref()?.send_bps? as f64)
    }

    /// Target bitrate of the encoder, in bit/s.
    pub fn target_bps(&self) -> Option<f64> {
        Some(self.sent.as_ref()?.target_bps? as f64)
    }

    /// Round-trip time of the last receiver report, where one came.
    pub fn rtt_ms(&self) -> Option<f64> {
        self.sent.as_ref()?.rtt_ms
    }

    /// Largest time that was waiting in the pacer; of pipelines only.
    pub fn pacer_queue_ms(&self) -> Option<f64> {
        self.sent.as_ref()?.pacer_queue_ms
    }

    /// Mean time to encode a frame.
    pub fn encode_ms(&self) -> Option<f64> {
        self.sent.as_ref()?.encode_ms
    }

    /// Frames encoded a second.
    pub fn sent_frame_rate(&self) -> Option<f64> {
        self.sent.as_ref()?.sent_frame_rate
    }

    /// Rate of the IP packets that were received, in bit/s.
    pub fn receive_bps(&self) -> Option<f64> {
        Some(self.received.as_ref()?.receive_bps? as f64)
    }

    /// Received payload that was sent for the first time, in bit/s.
    pub fn media_bps(&self) -> Option<f64> {
        Some(self.received.as_ref()?.media_bps? as f64)
    }

    /// Received payload that was sent again, in bit/s.
    pub fn again_bps(&self) -> Option<f64> {
        Some(self.received.as_ref()?.again_bps? as f64)
    }

    /// Received forward error correction, in bit/s.
    pub fn fec_bps(&self) -> Option<f64> {
        Some(self.received.as_ref()?.fec_bps? as f64)
    }

    /// Packets of the received stream that were lost.
    pub fn loss_ratio(&self) -> Option<f64> {
        self.received.as_ref()?.loss_ratio
    }

    /// Mean time to decode a frame.
    pub fn decode_ms(&self) -> Option<f64> {
        self.received.as_ref()?.decode_ms
    }

    /// Freezes that ended, as the browser counts them.
    pub fn freezes(&self) -> Option<f64> {
        Some(self.received.as_ref()?.freezes? as f64)
    }

    /// How long the freezes lasted that ended.
    pub fn frozen_s(&self) -> Option<f64> {
        self.received.as_ref()?.frozen_s
    }

    /// Frames decoded a second.
    pub fn frame_rate(&self) -> Option<f64> {
        self.received.as_ref()?.frame_rate
    }

    /// Width and height of the last decoded frame, in pixels.
    pub fn frame_size(&self) -> Option<(u32, u32)> {
        self.received.as_ref()?.frame_size
    }

    /// Height of the last decoded frame, in pixels.
    pub fn frame_height(&self) -> Option<f64> {
        Some(f64::from(self.frame_size()?.1))
    }
}

/// Deserializes members that are all present or all absent. Unlike serde's own `Option` of a
/// flattened struct, a member of the wrong type is an error.
fn part<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default + PartialEq,
{
    let part = T::deserialize(from)?;
    Ok((part != T::default()).then_some(part))
}
