//! What is simulated.

use weir::Algorithm;
use weir::controller::RateLimits;
use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_net::LinkConfig;

/// A network and the flows that use it.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Length of the run.
    pub duration: TimeDelta,
    /// From host A to host B.
    pub up: LinkConfig,
    /// From host B to host A.
    pub down: LinkConfig,
    /// How often a receiver sends transport-wide feedback.
    pub feedback_interval: TimeDelta,
    /// The media flows.
    pub flows: Vec<Flow>,
}

/// Which way a flow's media goes; its feedback goes the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From A to B.
    Up,
    /// From B to A.
    Down,
}

/// One media flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its name; also names its streams of chance.
    pub name: String,
    /// Which way its media goes.
    pub direction: Direction,
    /// When it starts.
    pub start: Timestamp,
    /// When it ends.
    pub stop: Timestamp,
    /// What controls it.
    pub algorithm: Algorithm,
    /// Range of its target bitrate.
    pub limits: RateLimits,
    /// What makes its frames.
    pub source: Source,
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
    /// The statistical source of RFC 8593, with that RFC's parameters.
    Rfc8593 {
        /// Frames a second.
        fps: f64,
    },
}
