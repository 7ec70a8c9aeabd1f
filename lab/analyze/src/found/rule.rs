//! The rules by name: the part of a call that each blames, and how much it matters.

use std::fmt;

/// The part of a call that limits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The connection itself: ICE, DTLS, and the servers that help to make it.
    Connection,
    /// The path between the two ends.
    Network,
    /// Congestion control.
    Controller,
    /// The encoder.
    Encoder,
    /// The machine.
    Processor,
    /// The application, or its camera.
    Application,
    /// Who sends what this end receives: a sender, or a server that forwards.
    FarEnd,
    /// What was seen.
    Video,
    /// What was heard.
    Audio,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connection => "connection",
            Self::Network => "network",
            Self::Controller => "controller",
            Self::Encoder => "encoder",
            Self::Processor => "processor",
            Self::Application => "application",
            Self::FarEnd => "far end",
            Self::Video => "video",
            Self::Audio => "audio",
        })
    }
}

/// A rule that finds something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RuleName {
    ConnectionFailed,
    NeverConnected,
    Interruption,
    Restart,
    Refused,
    ServerError,
    NoTurnServer,
    Path,
    PathChange,
    Stall,
    StreamEnds,
    OneWay,
    Hole,
    LateBegin,
    Capacity,
    Bandwidth,
    AirTime,
    Loss,
    Delay,
    LossRule,
    Recovery,
    StartUp,
    Underestimate,
    PictureSize,
    NotEncoded,
    Processor,
    Decoder,
    Source,
    NotSent,
    SilentSource,
    FarLoss,
    SmallPicture,
    FewFrames,
    NothingReceived,
    SilentSound,
    NotDecoded,
    Late,
    Freeze,
    Concealment,
}

impl RuleName {
    /// How findings name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ConnectionFailed => "connection failed",
            Self::NeverConnected => "never connected",
            Self::Interruption => "interruption",
            Self::Restart => "ICE restart",
            Self::Refused => "refused",
            Self::ServerError => "server error",
            Self::NoTurnServer => "no TURN server",
            Self::Path => "path",
            Self::PathChange => "path change",
            Self::Stall => "stall",
            Self::StreamEnds => "stream ends",
            Self::OneWay => "one way",
            Self::Hole => "no reports",
            Self::LateBegin => "begins late",
            Self::Capacity => "capacity",
            Self::Bandwidth => "bandwidth",
            Self::AirTime => "air time",
            Self::Loss => "loss",
            Self::Delay => "delay",
            Self::LossRule => "loss rule",
            Self::Recovery => "recovery",
            Self::StartUp => "start-up",
            Self::Underestimate => "underestimate",
            Self::PictureSize => "picture size",
            Self::NotEncoded => "not encoded",
            Self::Processor => "processor",
            Self::Decoder => "decoder",
            Self::Source => "source",
            Self::NotSent => "not sent",
            Self::SilentSource => "silent microphone",
            Self::FarLoss => "far loss",
            Self::SmallPicture => "small picture",
            Self::FewFrames => "few frames",
            Self::NothingReceived => "nothing received",
            Self::SilentSound => "silent sound",
            Self::NotDecoded => "not decoded",
            Self::Late => "late",
            Self::Freeze => "freeze",
            Self::Concealment => "concealment",
        }
    }

    /// Whether the call, or the connection, is over with it.
    pub fn is_end(self) -> bool {
        matches!(self, Self::ConnectionFailed | Self::NeverConnected)
    }

    /// Who limits the call where it holds.
    pub fn part(self, is_audio: bool) -> Part {
        match self {
            Self::ConnectionFailed
            | Self::NeverConnected
            | Self::Interruption
            | Self::Restart
            | Self::ServerError
            | Self::NoTurnServer
            | Self::Path
            | Self::PathChange => Part::Connection,
            Self::Stall
            | Self::Capacity
            | Self::Bandwidth
            | Self::AirTime
            | Self::Loss
            | Self::Delay => Part::Network,
            Self::LossRule | Self::Recovery | Self::StartUp | Self::Underestimate => {
                Part::Controller
            }
            Self::PictureSize | Self::NotEncoded => Part::Encoder,
            Self::Processor | Self::Decoder => Part::Processor,
            Self::Refused
            | Self::Source
            | Self::NotSent
            | Self::SilentSource
            | Self::Hole
            | Self::LateBegin => Part::Application,
            Self::FarLoss
            | Self::SmallPicture
            | Self::FewFrames
            | Self::NothingReceived
            | Self::StreamEnds
            | Self::OneWay
            | Self::SilentSound => Part::FarEnd,
            Self::NotDecoded | Self::Late | Self::Freeze | Self::Concealment if is_audio => {
                Part::Audio
            }
            Self::NotDecoded | Self::Late | Self::Freeze | Self::Concealment => Part::Video,
        }
    }

    /// How much it matters to those in the call: a fixed part, and one for each second.
    pub fn weights(self) -> (f64, f64) {
        match self {
            // No call.
            Self::ConnectionFailed | Self::NeverConnected => (1e6, 0.0),
            // Neither video nor audio arrived.
            Self::Interruption => (1e5, 1.0),
            Self::Freeze
            | Self::Concealment
            | Self::NotDecoded
            | Self::Stall
            | Self::StreamEnds
            | Self::OneWay => (1.0, 5.0),
            Self::Capacity
            | Self::AirTime
            | Self::Processor
            | Self::Decoder
            | Self::PictureSize
            | Self::NotEncoded => (0.0, 4.0),
            Self::Loss | Self::FarLoss | Self::Delay | Self::Late | Self::Bandwidth => (0.0, 3.0),
            Self::Underestimate
            | Self::LossRule
            | Self::Recovery
            | Self::StartUp
            | Self::Source
            | Self::SmallPicture
            | Self::FewFrames
            | Self::NothingReceived => (0.0, 2.0),
            // They explain, and may be what people wanted.
            Self::NotSent | Self::SilentSource | Self::SilentSound => (0.0, 1.0),
            Self::Refused => (50.0, 0.0),
            Self::NoTurnServer => (4.0, 0.0),
            Self::Restart => (3.0, 0.0),
            Self::PathChange => (2.0, 0.0),
            Self::ServerError | Self::Hole | Self::LateBegin => (1.0, 0.0),
            Self::Path => (0.5, 0.0),
        }
    }
}
