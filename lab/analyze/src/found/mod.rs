//! What was found in a call, as types. `says` makes sentences of them, once, at the edge.

mod interface;
mod meaning;
pub(crate) mod played_audio;
mod rule;

use std::fmt;
use std::net::IpAddr;

use weir_record::calls::file::FindingSample;
use weir_record::calls::stats::Kind;

use crate::read::dump::{Connection, Stream, StreamDirection};
use played_audio::PlayedAudio;

pub(crate) use interface::Interface;
pub(crate) use meaning::Meaning;
pub use rule::Part;
pub(crate) use rule::RuleName;

/// A stream of a dump.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StreamId {
    /// The name of its connection.
    pub connection: String,
    pub direction: StreamDirection,
    pub is_audio: bool,
    pub ssrc: u32,
    pub rid: Option<String>,
}

impl StreamId {
    pub fn of(connection: &Connection, stream: &Stream) -> Self {
        Self {
            connection: connection.name.clone(),
            direction: stream.direction,
            is_audio: stream.kind == Kind::Audio,
            ssrc: stream.ssrc,
            rid: stream.rid.clone(),
        }
    }
}

/// Such as `6-1 video sent 1391274783`.
impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_audio { "audio" } else { "video" };
        let direction = match self.direction {
            StreamDirection::Sent => "sent",
            StreamDirection::Received => "received",
        };
        write!(f, "{} {kind} {direction} {}", self.connection, self.ssrc)?;
        match &self.rid {
            Some(rid) => write!(f, " layer {rid}"),
            None => Ok(()),
        }
    }
}

/// What a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    Stream(StreamId),
    /// A connection, by its name.
    Connection(String),
    /// The page, before any connection.
    Page,
}

impl Subject {
    pub fn stream(&self) -> Option<&StreamId> {
        match self {
            Self::Stream(stream) => Some(stream),
            Self::Connection(_) | Self::Page => None,
        }
    }

    pub fn connection(&self) -> Option<&str> {
        match self {
            Self::Stream(stream) => Some(&stream.connection),
            Self::Connection(name) => Some(name),
            Self::Page => None,
        }
    }

    pub fn is_sent(&self) -> bool {
        self.stream().is_some_and(|stream| stream.direction == StreamDirection::Sent)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(stream) => write!(f, "{stream}"),
            Self::Connection(name) => f.write_str(name),
            Self::Page => f.write_str("page"),
        }
    }
}

/// What a finding rests on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Evidence {
    ConnectionFailed(Ended),
    NeverConnected(Ended),
    Interruption,
    Restart,
    Refused(Refusal),
    ServerError(ServerError),
    /// The servers that were configured.
    NoTurnServer {
        servers: usize,
    },
    Path(UsedPath),
    PathChange(PathChange),
    /// Whether packets came late, all at once.
    Stall {
        streams: usize,
        came_late: bool,
    },
    /// Of a stream in a capture: it stood still, by its timestamps.
    StoodStill {
        what: &'static str,
        at_s: f64,
    },
    /// It ended so long before the call.
    StreamEnds {
        what: &'static str,
        at_s: f64,
    },
    /// Throughout, or before the other direction began.
    OneWay {
        nothing_sent: bool,
        is_begin: bool,
    },
    /// Whether the device was asleep: nothing came meanwhile either.
    Hole {
        seconds: f64,
        was_asleep: bool,
    },
    /// Seconds of the call before the first report, and whether that is the bound of the page.
    LateBegin {
        missing_s: f64,
        is_bound: bool,
    },
    Capacity(FullPath),
    Bandwidth {
        estimate_bps: Option<f64>,
        rate_bps: Option<f64>,
    },
    Pauses {
        count: u32,
        longest_ms: f64,
    },
    Spikes {
        longest_ms: Option<f64>,
        base_ms: Option<f64>,
    },
    Loss {
        lost: Option<f64>,
        rtt_ms: Option<f64>,
    },
    /// Share of the packets that met no queue, by single packets.
    RandomLoss {
        lost: f64,
    },
    Delay {
        rtt_ms: Option<f64>,
        base_ms: Option<f64>,
    },
    LossRule {
        estimate_bps: Option<f64>,
    },
    Recovery(HeldDown),
    StartUp(HeldDown),
    Underestimate(Underestimate),
    PictureSize(TooLarge),
    NotEncoded {
        source_rate: Option<f64>,
    },
    Processor {
        encode_ms: Option<f64>,
        frame_rate: Option<f64>,
    },
    Decoder {
        received_rate: Option<f64>,
        frame_rate: Option<f64>,
        decode_ms: Option<f64>,
    },
    Source(Source),
    NotSent,
    SilentSource,
    FarLoss {
        lost: Option<f64>,
        behind: Option<f64>,
    },
    SmallPicture {
        now: (u32, u32),
        before: (u32, u32),
    },
    FewFrames {
        now: f64,
        before: f64,
    },
    /// Whether it never came again.
    NothingReceived {
        is_to_end: bool,
    },
    SilentSound,
    NotDecoded {
        key_frame_requests: u64,
        is_ever: bool,
    },
    Late {
        delay_ms: Option<f64>,
        buffer_ms: Option<f64>,
        jitter_ms: Option<f64>,
    },
    Freeze {
        worst: Times,
        all: Option<Times>,
    },
    Concealment(PlayedAudio),
}

impl Evidence {
    pub fn rule(&self) -> RuleName {
        match self {
            Self::ConnectionFailed(_) => RuleName::ConnectionFailed,
            Self::NeverConnected(_) => RuleName::NeverConnected,
            Self::Interruption => RuleName::Interruption,
            Self::Restart => RuleName::Restart,
            Self::Refused(_) => RuleName::Refused,
            Self::ServerError(_) => RuleName::ServerError,
            Self::NoTurnServer { .. } => RuleName::NoTurnServer,
            Self::Path(_) => RuleName::Path,
            Self::PathChange(_) => RuleName::PathChange,
            Self::Stall { .. } | Self::StoodStill { .. } => RuleName::Stall,
            Self::StreamEnds { .. } => RuleName::StreamEnds,
            Self::OneWay { .. } => RuleName::OneWay,
            Self::Hole { .. } => RuleName::Hole,
            Self::LateBegin { .. } => RuleName::LateBegin,
            Self::Capacity(_) => RuleName::Capacity,
            Self::Bandwidth { .. } => RuleName::Bandwidth,
            Self::Pauses { .. } | Self::Spikes { .. } => RuleName::AirTime,
            Self::Loss { .. } | Self::RandomLoss { .. } => RuleName::Loss,
            Self::Delay { .. } => RuleName::Delay,
            Self::LossRule { .. } => RuleName::LossRule,
            Self::Recovery(_) => RuleName::Recovery,
            Self::StartUp(_) => RuleName::StartUp,
            Self::Underestimate(_) => RuleName::Underestimate,
            Self::PictureSize(_) => RuleName::PictureSize,
            Self::NotEncoded { .. } => RuleName::NotEncoded,
            Self::Processor { .. } => RuleName::Processor,
            Self::Decoder { .. } => RuleName::Decoder,
            Self::Source(_) => RuleName::Source,
            Self::NotSent => RuleName::NotSent,
            Self::SilentSource => RuleName::SilentSource,
            Self::FarLoss { .. } => RuleName::FarLoss,
            Self::SmallPicture { .. } => RuleName::SmallPicture,
            Self::FewFrames { .. } => RuleName::FewFrames,
            Self::NothingReceived { .. } => RuleName::NothingReceived,
            Self::SilentSound => RuleName::SilentSound,
            Self::NotDecoded { .. } => RuleName::NotDecoded,
            Self::Late { .. } => RuleName::Late,
            Self::Freeze { .. } => RuleName::Freeze,
            Self::Concealment(_) => RuleName::Concealment,
        }
    }
}

/// How a connection ended that should not have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ended {
    /// When, in s since the first report.
    pub at_s: f64,
    /// For how long it was up, or was tried.
    pub seconds: f64,
    /// Of these, seconds before the first report.
    pub before_s: f64,
    pub why: Why,
}

/// What ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    NoAnswers,
    NoPath,
    Dtls,
    /// The layer is not known.
    NotFound,
    GivenUp,
}

/// What the browser refused to the application.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    /// The method, such as `getUserMedia`.
    pub method: String,
    /// Its words, such as `NotAllowedError: Permission denied`.
    pub error: String,
}

impl Refusal {
    /// Whether it is a camera, microphone or screen that was refused.
    pub fn is_of_device(&self) -> bool {
        matches!(self.method.as_str(), "getUserMedia" | "getDisplayMedia")
    }

    /// Whether it is a candidate of the far end that was refused.
    pub fn is_of_candidate(&self) -> bool {
        self.method == "addIceCandidate"
    }
}

/// A STUN or TURN server that did not do its work.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerError {
    /// Empty if unknown.
    pub url: String,
    /// 701 if nothing came back.
    pub code: Option<u64>,
    /// Its own words, or the browser's.
    pub text: String,
}

/// The path of a connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UsedPath {
    /// Of the packets that this browser sends, to a relay too.
    pub protocol: String,
    pub local: String,
    pub remote: String,
    /// Of the device.
    pub interface: Option<Interface>,
    /// Addresses and ports; browsers may hide them.
    pub places: [Option<(IpAddr, u16)>; 2],
    /// The TURN server of a relayed local end.
    pub relay: Option<String>,
}

/// A path that became another one, with the round trips before and after in ms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PathChange {
    pub from: UsedPath,
    pub to: UsedPath,
    pub rtt_ms: Option<(f64, f64)>,
}

/// A path that was full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FullPath {
    pub is_sent: bool,
    /// Of the stream: what left the sender, or arrived.
    pub rate_bps: Option<f64>,
    pub lost: Option<f64>,
    /// Round trips in the queue, and without one, in ms.
    pub queue_ms: Option<(f64, f64)>,
    pub estimate_bps: Option<f64>,
    /// What the path carried, and what others took of it.
    pub carried: Option<(f64, Option<f64>)>,
    /// Whether far more was sent than the estimate. Then the queue was never empty, and the
    /// smallest round-trip time says nothing about the path.
    pub overflows: bool,
}

/// A target that the congestion control held down.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HeldDown {
    pub target_bps: (Option<f64>, Option<f64>),
    pub rtt_ms: Option<f64>,
    pub lost: Option<f64>,
    pub logged: Option<Logged>,
}

/// What the congestion control itself logged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Logged {
    /// When its delay detector said overuse last, in s.
    pub overuse_s: Option<f64>,
    /// Its best probe since, in bit/s.
    pub probed_bps: Option<f64>,
}

/// An estimate far below what the path carried.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Underestimate {
    /// The program, such as `Chrome 117`.
    pub program: Option<String>,
    pub estimate_bps: f64,
    pub carried_bps: f64,
    pub seconds: f64,
}

/// A picture that is too large for its target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TooLarge {
    pub size: (u32, u32),
    pub target_bps: Option<f64>,
    pub media_bps: Option<f64>,
    pub frame_rate: f64,
    pub source_rate: f64,
}

/// What an application gave to send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Source {
    Deactivated,
    /// By an event log: the sender says so itself.
    Little {
        rate_bps: Option<f64>,
        estimate_bps: Option<f64>,
    },
    /// Its frames need little of the target.
    Easy {
        source_rate: f64,
        rate_bps: Option<f64>,
        target_bps: Option<f64>,
    },
    Few {
        source_rate: f64,
        usual_rate: f64,
    },
}

/// How often and how long.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Times {
    pub count: u64,
    pub seconds: f64,
}

/// What was found, when, and what it rests on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub subject: Subject,
    /// Begin and end in s since the first report.
    pub from_s: f64,
    pub to_s: f64,
    pub evidence: Evidence,
    /// What it means for those in the call, beside what else was found.
    pub meaning: Meaning,
    /// The samples that it rests on.
    pub samples: Vec<FindingSample>,
    /// More streams of the connection that say the same.
    pub also: usize,
}

impl Found {
    /// Without samples.
    pub fn new(subject: Subject, (from_s, to_s): (f64, f64), evidence: Evidence) -> Self {
        let [from_s, to_s] = [from_s, to_s].map(rounded);
        let meaning = evidence.meaning();
        Self { subject, from_s, to_s, evidence, meaning, samples: Vec::new(), also: 0 }
    }

    pub fn rule(&self) -> RuleName {
        self.evidence.rule()
    }

    pub fn part(&self) -> Part {
        self.rule().part(self.subject.stream().is_some_and(|stream| stream.is_audio))
    }

    pub fn seconds(&self) -> f64 {
        self.to_s - self.from_s
    }

    /// The middle of a value of the samples that it rests on.
    pub fn middle(&self, value: fn(&FindingSample) -> Option<f64>) -> Option<f64> {
        let mut values: Vec<f64> = self.samples.iter().filter_map(value).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    }

    /// How much it matters to those in the call: seconds, weighted by what was left of the call in
    /// them.
    pub fn effect(&self) -> f64 {
        let (fixed, of_second) = self.rule().weights();
        fixed + of_second * self.seconds().max(0.0)
    }
}

/// Seconds to the millisecond.
pub(crate) fn rounded(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}
