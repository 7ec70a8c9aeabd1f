//! What a host says of a track: its layers, how it is shown, and what may be done to it.

use alloc::vec::Vec;

use weir::units::Bitrate;

/// A track's number, which the host chooses. It is unique within a
/// [`Subscriber`](crate::Subscriber).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrackId(pub u32);

/// What a track carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Sound. It is always forwarded, and the other tracks share what it leaves.
    Audio,
    /// Moving pictures: fewer frames per second are seen.
    Camera,
    /// Slides and text: sharpness counts more than frames per second.
    Screen,
}

/// How the layers of a track depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Structure {
    /// Each stream is encoded on its own. A change of the stream needs a key frame.
    Simulcast,
    /// Each stream is a spatial layer over the streams below it. Streams above can be left out at
    /// any frame; a return needs a key frame.
    Svc,
}

/// One operating point of a track: what is forwarded together, and what it costs.
///
/// A track lists its points from the cheapest to the dearest. A point of simulcast is one stream up
/// to a temporal layer. A point of SVC is all streams up to this one, up to a temporal layer.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Layer {
    /// Number of the simulcast stream or spatial layer, from 0, the smallest.
    pub stream: u8,
    /// The highest temporal layer that is forwarded, from 0.
    pub temporal: u8,
    /// Width of the picture, in pixels.
    pub width: u16,
    /// Height of the picture, in pixels.
    pub height: u16,
    /// Frames per second.
    pub frame_rate: f64,
    /// What the whole point takes, headers included. Zero: the publisher does not send it now.
    pub bitrate: Bitrate,
}

impl Layer {
    /// A point with all temporal layers: one stream of this size at 30 frames per second.
    pub const fn new(stream: u8, width: u16, height: u16, bitrate: Bitrate) -> Self {
        Self { stream, temporal: u8::MAX, width, height, frame_rate: 30.0, bitrate }
    }

    weir::with! {
        const
        with_temporal: temporal: u8,
        with_frame_rate: frame_rate: f64,
        with_bitrate: bitrate: Bitrate,
    }

    /// Pixels of the picture.
    pub(crate) fn pixels(&self) -> f64 {
        f64::from(self.width) * f64::from(self.height)
    }
}

/// A track as one subscriber sees it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TrackConfig {
    /// What it carries.
    pub kind: Kind,
    /// How its layers depend on each other.
    pub structure: Structure,
    /// Its operating points, from the cheapest to the dearest. Audio has one, with its bitrate.
    pub layers: Vec<Layer>,
    /// Its weight against other tracks of the same size on the screen. The default is 1.
    pub priority: f64,
    /// Width at which it is shown, in pixels of the subscriber's screen.
    pub shown_width: u16,
    /// Height at which it is shown, in pixels. A track of no size is not forwarded.
    pub shown_height: u16,
    /// Whether it may be paused if not even the cheapest point fits. The default is true. Without,
    /// the cheapest point is forwarded even if it does not fit.
    pub may_pause: bool,
}

impl TrackConfig {
    /// A camera in simulcast, shown at 640x360.
    pub const fn camera(layers: Vec<Layer>) -> Self {
        Self {
            kind: Kind::Camera,
            structure: Structure::Simulcast,
            layers,
            priority: 1.0,
            shown_width: 640,
            shown_height: 360,
            may_pause: true,
        }
    }

    /// A shared screen in simulcast, shown at 1280x720. It counts twice.
    pub const fn screen(layers: Vec<Layer>) -> Self {
        let mut track = Self::camera(layers);
        track.kind = Kind::Screen;
        track.priority = 2.0;
        track.shown_width = 1280;
        track.shown_height = 720;
        track
    }

    /// Sound of this bitrate, headers included.
    pub fn audio(bitrate: Bitrate) -> Self {
        let mut track = Self::camera(alloc::vec![Layer::new(0, 0, 0, bitrate)]);
        track.kind = Kind::Audio;
        track.may_pause = false;
        track
    }

    /// The same with this structure.
    #[must_use]
    pub fn with_structure(mut self, structure: Structure) -> Self {
        self.structure = structure;
        self
    }

    /// The same with this priority.
    #[must_use]
    pub fn with_priority(mut self, priority: f64) -> Self {
        self.priority = priority;
        self
    }

    /// The same, shown at this size in pixels.
    #[must_use]
    pub fn with_shown(mut self, width: u16, height: u16) -> Self {
        self.shown_width = width;
        self.shown_height = height;
        self
    }

    /// The same with this permission to pause it.
    #[must_use]
    pub fn with_may_pause(mut self, may_pause: bool) -> Self {
        self.may_pause = may_pause;
        self
    }

    pub(crate) fn shown_pixels(&self) -> f64 {
        f64::from(self.shown_width) * f64::from(self.shown_height)
    }
}

/// What a host knows of the frame to which a packet belongs, from the payload or from a dependency
/// descriptor. [`PayloadDescriptor`](crate::PayloadDescriptor) reads it for VP8,
/// [`DependencyReader`](crate::DependencyReader) for streams with dependency descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// Number of the simulcast stream or spatial layer.
    pub stream: u8,
    /// Temporal layer.
    pub temporal: u8,
    /// The packet is the first of a frame that needs no other frame.
    pub starts_key_frame: bool,
    /// From this frame on, higher temporal layers can be decoded: it needs only the base layer.
    pub is_switching_point: bool,
}

impl Frame {
    /// A packet of a frame of the base layer, which is no switching point.
    pub const fn new(stream: u8) -> Self {
        Self { stream, temporal: 0, starts_key_frame: false, is_switching_point: false }
    }

    weir::with! {
        const
        with_stream: stream: u8,
        with_temporal: temporal: u8,
        with_starts_key_frame: starts_key_frame: bool,
        with_is_switching_point: is_switching_point: bool,
    }
}
