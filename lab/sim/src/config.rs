//! Configuration of a simulation: the network and the flows.

use std::ops::Range;

use weir::controller::Settings;
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_controllers::LabController;
use weir_net::Schedule;
pub use weir_net::path::Direction;
use weir_net::path::{AccessPlan, Attachment, Hop};

pub use weir_rtcp::Feedback;
pub use weir_sfu::Structure;

pub use crate::media::Repair;
use crate::quic::Quic;
use crate::receiver_clock::ReceiverClock;
use crate::tcp::Tcp;

/// A network and the flows that use it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Length of the run.
    pub duration: TimeDelta,
    /// The access network, such as a Wi-Fi cell. Host A and other hosts on its side are its
    /// terminals.
    pub access: Option<AccessPlan>,
    /// The bottlenecks between host A (or the access network) and host B, in order from A's side to
    /// B's.
    pub hops: Vec<Hop>,
    /// The traffic.
    pub flows: Vec<FlowConfig>,
    /// Those who send to the forwarding server; empty without one.
    pub publishers: Vec<Publisher>,
}

impl Config {
    /// A network without an access network.
    pub fn wired(duration: TimeDelta, hops: Vec<Hop>, flows: Vec<FlowConfig>) -> Self {
        Self { duration, access: None, hops, flows, publishers: Vec::new() }
    }

    weir::with! {
        with_access: access: Option<AccessPlan>,
        with_publishers: publishers: Vec<Publisher>,
    }
}

/// One flow. A scenario describes flows in the same way, with traffic of its own type `T`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FlowConfig<T = FlowKind> {
    /// Its name. The flow's random streams depend on it.
    pub name: String,
    /// Direction of its data. Its feedback goes in the opposite direction.
    pub direction: Direction,
    /// The terminal of the access network at which the flow ends on A's side. `None` if the flow
    /// does not cross the access network.
    pub attachment: Option<Attachment>,
    /// Indices of the hops that it crosses.
    pub hops: Range<usize>,
    /// Additional one-way delay of this flow's own access link, in each direction.
    pub access_delay: TimeDelta,
    /// When it starts.
    pub start: Timestamp,
    /// When it ends.
    pub stop: Timestamp,
    /// Times without anything to send, sorted and disjoint.
    pub pauses: Vec<Range<Timestamp>>,
    /// Number of the call that it belongs to, from 1. A simulation does not need it.
    pub call: Option<usize>,
    /// Whether the receiver of media with `repair`, or of speech, plays it as a browser does, and
    /// what is seen or heard is measured.
    pub quality: bool,
    /// The traffic that it carries.
    pub traffic: T,
}

impl<T> FlowConfig<T> {
    /// A flow from host A to host B over the first hop, from time zero for `duration`.
    pub fn new(name: impl Into<String>, duration: TimeDelta, traffic: T) -> Self {
        Self {
            name: name.into(),
            direction: Direction::Up,
            attachment: None,
            hops: 0..1,
            access_delay: TimeDelta::ZERO,
            start: Timestamp::ZERO,
            stop: Timestamp::ZERO + duration,
            pauses: Vec::new(),
            call: None,
            quality: false,
            traffic,
        }
    }

    /// The same flow with other traffic.
    pub fn carrying<U>(&self, traffic: U) -> FlowConfig<U> {
        FlowConfig {
            name: self.name.clone(),
            direction: self.direction,
            attachment: self.attachment,
            hops: self.hops.clone(),
            access_delay: self.access_delay,
            start: self.start,
            stop: self.stop,
            pauses: self.pauses.clone(),
            call: self.call,
            quality: self.quality,
            traffic,
        }
    }

    weir::with! {
        with_direction: direction: Direction,
        with_attachment: attachment: Option<Attachment>,
        with_hops: hops: Range<usize>,
        with_access_delay: access_delay: TimeDelta,
        with_start: start: Timestamp,
        with_stop: stop: Timestamp,
        with_pauses: pauses: Vec<Range<Timestamp>>,
        with_call: call: Option<usize>,
        with_quality: quality: bool,
    }

    /// Whether its sender is a terminal of the access network, so that its packets first wait in
    /// the queue of that terminal.
    pub(crate) fn sends_from_terminal(&self) -> bool {
        self.attachment.is_some() && self.direction == Direction::Up
    }
}

impl FlowConfig {
    /// Whether what its receiver sends is counted as feedback.
    pub(crate) const fn has_feedback(&self) -> bool {
        matches!(self.traffic, FlowKind::Media(_) | FlowKind::Subscriber(_) | FlowKind::Quic(_))
    }
}

/// The traffic of a flow.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FlowKind {
    /// Media under a congestion controller.
    Media(Media),
    /// Media from the forwarding server to somebody who watches.
    Subscriber(Watching),
    /// Data over TCP.
    Tcp(Tcp),
    /// Media or data over QUIC.
    Quic(Quic<Media>),
    /// Packets at a given rate, without congestion control.
    Udp(Udp),
}

/// A media stream and its controller.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Media<C = LabController> {
    /// Builds its controller: an [`LabAlgorithm`](weir_controllers::LabAlgorithm) or a controller
    /// of your own. In a scenario, only says which one.
    pub controller: C,
    /// Limits of its target bitrate, ECN mode and priority.
    pub settings: Settings,
    /// Name of the sender. Media flows with the same sender divide the sum of their rates by
    /// priority. A flow with `None` is not coupled to any other.
    pub sender: Option<String>,
    /// The model that produces its frames.
    pub source: Source,
    /// The most that the source produces, whatever its target, in steps of time: an encoder that
    /// switches layers of simulcast on and off.
    pub source_limit: Option<Schedule>,
    /// The clock of its receiver.
    pub receiver_clock: ReceiverClock,
    /// Feedback format of its receiver, with the time from which each one applies. Before the first
    /// of these times the format is TWCC.
    pub feedback: Vec<(Timestamp, Feedback)>,
    /// Interval at which its receiver sends TWCC or CCFB. Receiver reports have a timing of their
    /// own.
    pub feedback_interval: TimeDelta,
    /// How lost packets are repaired. With `None` the receiver only counts packets and plays no
    /// video.
    pub repair: Option<Repair>,
    /// When its host tells the controller that packets take another route. In order.
    pub route_changes: Vec<Timestamp>,
    /// The publishers that a subscriber of the forwarding server watches, by index; empty without a
    /// server.
    pub watches: Vec<usize>,
}

impl<C> Media<C> {
    /// Media under a controller, with transport-wide feedback every 50 ms and without repair.
    pub fn new(controller: impl Into<C>, settings: impl Into<Settings>, source: Source) -> Self {
        Self {
            controller: controller.into(),
            settings: settings.into(),
            sender: None,
            source,
            source_limit: None,
            receiver_clock: ReceiverClock::default(),
            feedback: Vec::new(),
            feedback_interval: TimeDelta::from_millis(50),
            repair: None,
            route_changes: Vec::new(),
            watches: Vec::new(),
        }
    }

    /// The largest bitrate of its encoder: the cap of the source, or the controller's maximum.
    pub fn encoder_limit(&self) -> Bitrate {
        let max = self.settings.limits.max();
        match self.source {
            Source::Filler { cap, .. } | Source::Encoder { cap, .. } => {
                cap.map_or(max, |cap| cap.min(max))
            }
            Source::Rfc8593 { .. } => max,
        }
    }

    /// The same stream under another controller.
    pub fn under<D>(self, controller: D) -> Media<D> {
        Media {
            controller,
            settings: self.settings,
            sender: self.sender,
            source: self.source,
            source_limit: self.source_limit,
            receiver_clock: self.receiver_clock,
            feedback: self.feedback,
            feedback_interval: self.feedback_interval,
            repair: self.repair,
            route_changes: self.route_changes,
            watches: self.watches,
        }
    }

    weir::with! {
        with_sender: sender: Option<String>,
        with_source_limit: source_limit: Option<Schedule>,
        with_receiver_clock: receiver_clock: ReceiverClock,
        with_feedback: feedback: Vec<(Timestamp, Feedback)>,
        with_feedback_interval: feedback_interval: TimeDelta,
        with_repair: repair: Option<Repair>,
        with_route_changes: route_changes: Vec<Timestamp>,
    }
}

/// A media source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// Every frame has exactly the size that the target bitrate asks for, as with video of noise.
    Filler {
        /// Frames a second.
        fps: f64,
        /// Maximum rate of the encoder.
        cap: Option<Bitrate>,
    },
    /// The statistical model of RFC 8593. Its other parameters are those of the RFC.
    Rfc8593 {
        /// Frames a second.
        fps: f64,
        /// `tau_v`: time after a change of its rate during which the model ignores its target.
        reaction: TimeDelta,
    },
    /// Model of the video encoder of a browser or of a pipeline, fitted to what was measured.
    Encoder {
        /// Frames a second that the camera delivers.
        fps: f64,
        /// Maximum rate of the encoder, counted without packet headers.
        cap: Option<Bitrate>,
        /// What the camera shows, and what the page asked of the encoder.
        video: EncoderVideo,
    },
}

/// The video of an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncoderVideo {
    /// Width of the camera's picture in pixels.
    pub width: u32,
    /// Height of the camera's picture in pixels.
    pub height: u32,
    /// The codec.
    pub codec: Codec,
    /// What the camera shows.
    pub content: Content,
    /// What the sender gives up first.
    pub degradation: Degradation,
    /// Number of layers: 1, or 3 for simulcast with a half and a quarter of the sides as well.
    pub layers: u32,
    /// What drives the encoder.
    pub driver: EncoderDriver,
}

/// What drives an encoder: each gives it a target in its own way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EncoderDriver {
    /// A browser, with the overshoot detector of libwebrtc.
    #[default]
    Browser,
    /// A pipeline of `weir call`: VP8 with a short buffer behind the element `weircc`.
    Pipeline,
}

impl EncoderVideo {
    /// 720p of noise by VP8, which keeps its size.
    pub const DEFAULT: Self = Self {
        width: 1280,
        height: 720,
        codec: Codec::Vp8,
        content: Content::Noise,
        degradation: Degradation::MaintainResolution,
        layers: 1,
        driver: EncoderDriver::Browser,
    };
}

impl Default for EncoderVideo {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// A video codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// VP8.
    Vp8,
    /// VP9.
    Vp9,
    /// H.264.
    H264,
    /// AV1.
    Av1,
}

impl Codec {
    /// Name in a session description.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Vp8 => "VP8",
            Self::Vp9 => "VP9",
            Self::H264 => "H264",
            Self::Av1 => "AV1",
        }
    }
}

/// What a camera of the lab shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// Colour bars with noise that the encoder can make as small as it is asked to.
    #[default]
    Noise,
    /// Colour bars with so little noise that the best quality needs less than a call's usual
    /// target.
    Easy,
    /// Colour bars with so much noise that the coarsest quality needs more than a low target.
    Hard,
    /// A page of fine detail that stands still and jumps every two seconds.
    Screen,
    /// Four seconds of a film.
    Film,
    /// A drawn person who talks before a shelf.
    Head,
    /// Drawn pages of text that stand for a moment and scroll on.
    Slides,
}

/// What a sender gives up first if its target does not suffice [MST-CONTENT-HINT §4].
///
/// [MST-CONTENT-HINT §4]: https://www.w3.org/TR/mst-content-hint/
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Degradation {
    /// It keeps the size of the picture and drops frames.
    #[default]
    MaintainResolution,
    /// It keeps the frame rate and makes the picture smaller.
    MaintainFramerate,
    /// It does both in turn.
    Balanced,
}

impl Source {
    /// Mean time between two packets of a burst. A browser passes its packets to the socket one by
    /// one (measured). The packets of the other sources leave at the same time.
    pub(crate) const fn hand_over(self) -> TimeDelta {
        if self.is_browser() { TimeDelta::from_micros(70) } else { TimeDelta::ZERO }
    }

    /// Whether the sender behaves as a browser's sender in other respects, too.
    pub(crate) const fn is_browser(self) -> bool {
        match self {
            Self::Encoder { video, .. } => matches!(video.driver, EncoderDriver::Browser),
            Self::Filler { .. } | Self::Rfc8593 { .. } => false,
        }
    }

    /// Whether the sender is a pipeline of `weir call`.
    pub(crate) const fn is_pipeline(self) -> bool {
        matches!(self, Self::Encoder { .. }) && !self.is_browser()
    }
}

/// Packets of one size at a given rate.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Udp {
    /// Rate of the IP packets.
    pub rate: Schedule,
    /// Size of the IP packets [RFC8868 §4.3].
    ///
    /// [RFC8868 §4.3]: https://www.rfc-editor.org/rfc/rfc8868#section-4.3
    pub packet: DataSize,
    /// What is in the packets, if they are speech that the receiver plays.
    pub speech: Option<Speech>,
}

/// What is in a packet of speech.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speech {
    /// How long its speech lasts.
    pub length: TimeDelta,
    /// How much of the end of the packet before a packet has as a coarse copy (FEC of Opus); zero:
    /// nothing.
    pub copied: TimeDelta,
    /// Whether it has the one before as it was (RED), with that one's own copy.
    pub red: bool,
    /// Whether the pauses of the speech are hardly sent (DTX of Opus).
    pub dtx: bool,
}

impl Speech {
    /// Packets of this length, without copies and with every pause.
    pub const fn plain(length: TimeDelta) -> Self {
        Self { length, copied: TimeDelta::ZERO, red: false, dtx: false }
    }
}

impl Udp {
    /// IP packets of this size at this rate.
    pub const fn new(rate: Schedule, packet: DataSize) -> Self {
        Self { rate, packet, speech: None }
    }

    weir::with! {
        with_speech: speech: Option<Speech>,
    }
}

/// Somebody who sends one track to the server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Publisher {
    /// Its name. Its random streams depend on it.
    pub name: String,
    /// What it sends.
    pub kind: TrackKind,
    /// Its streams of simulcast or layers of SVC, the smallest picture first. Audio has one. A
    /// layer of SVC has the rate that it adds to those below.
    pub layers: Vec<PublishedLayer>,
    /// Frames a second that the camera delivers.
    pub fps: f64,
    /// Temporal layers of each stream: 1 to 3.
    pub temporal_layers: u8,
    /// How its layers depend on each other.
    pub structure: Structure,
    /// What the camera shows.
    pub content: Content,
    /// Size at which every subscriber shows it, in pixels, each from a given time on. The first is
    /// at time zero. A size of zero: it is hidden.
    pub shown: Vec<(Timestamp, (u16, u16))>,
    /// Its weight against other tracks of the same size.
    pub priority: f64,
    /// Whether a server may pause it if its smallest layer does not fit.
    pub may_pause: bool,
    /// When it joins and leaves.
    pub time: Range<Timestamp>,
    /// Its way to the server.
    pub uplink: Uplink,
}

impl Publisher {
    /// A camera of 30 frames a second for the whole run, shown at full size, with a wired uplink.
    pub fn new(name: impl Into<String>, kind: TrackKind, layers: Vec<PublishedLayer>) -> Self {
        Self {
            name: name.into(),
            kind,
            layers,
            fps: 30.0,
            temporal_layers: 1,
            structure: Structure::Simulcast,
            content: Content::default(),
            shown: vec![(Timestamp::ZERO, (1280, 720))],
            priority: 1.0,
            may_pause: true,
            time: Timestamp::ZERO..Timestamp::MAX,
            uplink: Uplink::default(),
        }
    }

    weir::with! {
        with_fps: fps: f64,
        with_temporal_layers: temporal_layers: u8,
        with_structure: structure: Structure,
        with_content: content: Content,
        with_shown: shown: Vec<(Timestamp, (u16, u16))>,
        with_priority: priority: f64,
        with_may_pause: may_pause: bool,
        with_time: time: Range<Timestamp>,
        with_uplink: uplink: Uplink,
    }
}

/// What a publisher sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackKind {
    /// Sound.
    Audio,
    /// A camera.
    Camera,
    /// A shared screen.
    Screen,
}

/// One stream of a publisher.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedLayer {
    /// Width of its picture, in pixels.
    pub width: u16,
    /// Height of its picture, in pixels.
    pub height: u16,
    /// What its encoder is asked for, headers included.
    pub rate: Schedule,
}

/// The way from a publisher to the server. It is not a network of the simulation: nothing else is
/// on it, and its RTCP has no bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Uplink {
    /// Delay in each direction.
    pub delay: TimeDelta,
    /// Share of the packets that are lost, each for itself.
    pub loss: f64,
    /// Time from a request for a key frame until the next picture is encoded as one: what
    /// signalling and encoder take besides the delay.
    pub key_frame_delay: TimeDelta,
}

impl Default for Uplink {
    fn default() -> Self {
        Self {
            delay: TimeDelta::from_millis(20),
            loss: 0.0,
            key_frame_delay: TimeDelta::from_millis(50),
        }
    }
}

/// A flow from the server to somebody who watches.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Watching {
    /// Controller, limits and feedback. Its source is not used: what is sent comes from publishers.
    pub media: Media,
    /// The publishers that are watched, by index, in rising order.
    pub publishers: Vec<usize>,
    /// The core of the server.
    pub core: Core,
}

impl Watching {
    /// Watches these publishers through our core.
    pub const fn new(media: Media, publishers: Vec<usize>) -> Self {
        Self { media, publishers, core: Core::Weir }
    }

    weir::with! {
        with_core: core: Core,
    }
}

/// What decides in the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Core {
    /// The library's crate `weir-sfu`.
    #[default]
    Weir,
    /// A rival: layers from the smallest on while they fit the controller's target.
    Greedy,
    /// A rival: the rules of LiveKit's allocator.
    LiveKit,
    /// A rival: the rules of mediasoup's transports.
    Mediasoup,
}
