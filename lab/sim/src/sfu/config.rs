//! Configuration of a forwarding server: its publishers, and what a subscriber watches.

use std::ops::Range;

use weir::units::{TimeDelta, Timestamp};
use weir_net::Schedule;

use crate::config::{Content, Media};

/// Somebody who sends one track to the server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Publisher {
    /// Its name. Its random streams depend on it.
    pub name: String,
    /// What it sends.
    pub kind: TrackKind,
    /// Its streams of simulcast, the smallest picture first. Audio has one.
    pub layers: Vec<PublishedLayer>,
    /// Frames a second that the camera delivers.
    pub fps: f64,
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
            content: Content::default(),
            shown: vec![(Timestamp::ZERO, (1280, 720))],
            priority: 1.0,
            may_pause: true,
            time: Timestamp::ZERO..Timestamp::MAX,
            uplink: Uplink::default(),
        }
    }

    with! {
        with_fps: fps: f64,
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

    with! {
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
}
