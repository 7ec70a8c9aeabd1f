//! What is simulated.

use std::ops::Range;

use weir::ControllerFactory;
use weir::controller::Settings;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::Schedule;
use weir_net::path::{AccessPlan, Attachment, Hop};

pub use weir_rtcp::Feedback;

pub use crate::media::Repair;
use crate::tcp::Tcp;

/// A network and the flows that use it.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Length of the run.
    pub duration: TimeDelta,
    /// The access network, such as a Wi-Fi cell, whose terminals host A and others on its side are.
    pub access: Option<AccessPlan>,
    /// The bottlenecks between host A, or the access network, and host B, in a row from A's side to B's.
    pub hops: Vec<Hop>,
    /// The traffic.
    pub flows: Vec<FlowConfig>,
}

impl Config {
    /// A network of hops alone.
    pub fn wired(duration: TimeDelta, hops: Vec<Hop>, flows: Vec<FlowConfig>) -> Self {
        Self { duration, access: None, hops, flows }
    }
}

/// Which way a flow's data goes; its feedback goes the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From A's side to B's.
    Up,
    /// From B's side to A's.
    Down,
}

/// One flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowConfig {
    /// Its name; also names its streams of chance.
    pub name: String,
    /// Which way its data goes.
    pub direction: Direction,
    /// The terminal of the access network that its end on A's side is; without one it does not cross that
    /// network.
    pub attachment: Option<Attachment>,
    /// The hops that it crosses.
    pub hops: Range<usize>,
    /// Delay of its own way to the first hop, in each direction.
    pub access_delay: TimeDelta,
    /// When it starts.
    pub start: Timestamp,
    /// When it ends.
    pub stop: Timestamp,
    /// When it has nothing to send, in order and apart.
    pub pauses: Vec<Range<Timestamp>>,
    /// What it carries.
    pub traffic: FlowKind,
}

impl FlowConfig {
    /// A flow from host A to host B over the first hop for so long from time zero.
    pub fn new(name: impl Into<String>, duration: TimeDelta, traffic: FlowKind) -> Self {
        Self {
            name: name.into(),
            direction: Direction::Up,
            attachment: None,
            hops: 0..1,
            access_delay: TimeDelta::ZERO,
            start: Timestamp::ZERO,
            stop: Timestamp::ZERO + duration,
            pauses: Vec::new(),
            traffic,
        }
    }

    /// Whether its sender is a terminal of the access network, whose queue its packets wait in first.
    pub(crate) fn sends_from_terminal(&self) -> bool {
        self.attachment.is_some() && self.direction == Direction::Up
    }
}

/// What a flow carries.
#[derive(Clone, Debug, PartialEq)]
pub enum FlowKind {
    /// Media under a congestion controller.
    Media(Media),
    /// Data over TCP.
    Tcp(Tcp),
    /// Packets at a given rate.
    Udp(Udp),
}

/// A media stream and its controller.
#[derive(Clone, Debug, PartialEq)]
pub struct Media {
    /// What makes its controller: an [`Algorithm`](weir::Algorithm), or a controller of your own.
    pub controller: ControllerFactory,
    /// Range of its target bitrate, ECN, priority.
    pub settings: Settings,
    /// Media flows with the same sender here share the sum of their rates by priority; a flow that has
    /// none is on its own.
    pub sender: Option<String>,
    /// What makes its frames.
    pub source: Source,
    /// What its receiver tells of the packets that arrived, from when on; TWCC before the first.
    pub feedback: Vec<(Timestamp, Feedback)>,
    /// How often its receiver sends TWCC or CCFB. Receiver reports keep their own time.
    pub feedback_interval: TimeDelta,
    /// How lost packets are repaired; `None` for a receiver that only counts packets and shows nothing.
    pub repair: Option<Repair>,
}

impl Media {
    /// Media under a controller, with transport-wide feedback each 50 ms and no repair.
    pub fn new(
        controller: impl Into<ControllerFactory>,
        settings: impl Into<Settings>,
        source: Source,
    ) -> Self {
        Self {
            controller: controller.into(),
            settings: settings.into(),
            sender: None,
            source,
            feedback: Vec::new(),
            feedback_interval: TimeDelta::from_millis(50),
            repair: None,
        }
    }
}

/// A media source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// Meets its target with every frame, as noise video does.
    Filler {
        /// Frames a second.
        fps: f64,
        /// Rate beyond which the encoder does not go.
        cap: Option<Bitrate>,
    },
    /// The statistical source of RFC 8593, with that RFC's other parameters.
    Rfc8593 {
        /// Frames a second.
        fps: f64,
        /// `tau_v`: after a change of its rate it ignores its target for this long.
        reaction: TimeDelta,
    },
    /// A browser's VP8 encoder, as calls were measured.
    Encoder {
        /// Frames a second of the camera.
        fps: f64,
        /// Rate of the frames, without headers, beyond which the encoder does not go.
        cap: Option<Bitrate>,
    },
}

impl Source {
    /// What each packet takes on average until the next one may follow. A browser hands its packets to the
    /// socket one by one, as measured; the others' bursts leave at once.
    pub(crate) const fn hand_over(self) -> TimeDelta {
        if self.is_browser() { TimeDelta::from_micros(70) } else { TimeDelta::ZERO }
    }

    /// Whether it stands for what a browser's sender does, too.
    pub(crate) const fn is_browser(self) -> bool {
        matches!(self, Self::Encoder { .. })
    }
}

/// Packets of one size at a given rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Udp {
    /// Rate of the IP packets.
    pub rate: Schedule,
    /// Size of the IP packets [RFC8868 §4.3].
    ///
    /// [RFC8868 §4.3]: https://www.rfc-editor.org/rfc/rfc8868#section-4.3
    pub packet: DataSize,
}
