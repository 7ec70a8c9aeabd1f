//! The contract between a congestion controller and the sender that drives it.

use core::fmt;

use crate::feedback::{FeedbackReport, SentPacket};
use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

/// A sender-side congestion controller: a pure state machine.
///
/// Drive it so: call the `on_*` handlers with a `now` that never goes backwards, read [`target`] after
/// each of them, and call [`on_timeout`] once the time given by [`next_timeout`] has passed. Equal
/// calls give equal results.
///
/// [`target`]: Controller::target
/// [`on_timeout`]: Controller::on_timeout
/// [`next_timeout`]: Controller::next_timeout
pub trait Controller {
    /// The media source put `added` bytes into the send queue, which now holds `queued` bytes.
    /// Both count as the packets will: see [`SentPacket::size`].
    fn on_media_queued(&mut self, _now: Timestamp, _added: DataSize, _queued: DataSize) {}

    /// A packet left the pacer.
    fn on_packet_sent(&mut self, now: Timestamp, packet: &SentPacket);

    /// A feedback report arrived from the receiver.
    fn on_feedback(&mut self, now: Timestamp, report: &FeedbackReport);

    /// The time given by [`Controller::next_timeout`] has passed.
    fn on_timeout(&mut self, now: Timestamp);

    /// When [`Controller::on_timeout`] is due, if ever. After that call it lies later than its `now`.
    fn next_timeout(&self) -> Option<Timestamp>;

    /// What the sender should do now.
    fn target(&self) -> Target;

    /// The internal signals, for traces and reports only.
    fn metrics(&self) -> Metrics;
}

/// What a controller asks of the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Bitrate the media source should produce, headers included (see [`SentPacket::size`]).
    /// Always within the [`RateLimits`].
    pub bitrate: Bitrate,
    /// Rate at which the pacer releases queued packets.
    pub pacing_rate: Bitrate,
    /// The congestion window and what is left of it; `None` for a purely rate-based controller.
    pub window: Option<Window>,
}

/// A limit on the bytes in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Bytes that may be in flight.
    pub congestion_window: DataSize,
    /// Bytes that may be sent now; a packet may leave while this is not zero.
    pub available: DataSize,
}

/// The range a target bitrate moves in, and where it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    min: Bitrate,
    start: Bitrate,
    max: Bitrate,
}

/// Why limits were refused: they must satisfy `0 < min <= start <= max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitsError;

impl fmt::Display for LimitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bitrate limits must satisfy 0 < min <= start <= max")
    }
}
impl core::error::Error for LimitsError {}

impl RateLimits {
    /// Limits with `0 < min <= start <= max`.
    pub fn new(min: Bitrate, start: Bitrate, max: Bitrate) -> Result<Self, LimitsError> {
        if min == Bitrate::ZERO || min > start || start > max {
            return Err(LimitsError);
        }
        Ok(Self { min, start, max })
    }
    /// The lowest target bitrate.
    pub const fn min(&self) -> Bitrate {
        self.min
    }
    /// The target bitrate before the first feedback.
    pub const fn start(&self) -> Bitrate {
        self.start
    }
    /// The highest target bitrate.
    pub const fn max(&self) -> Bitrate {
        self.max
    }
    /// The bitrate moved into the limits.
    pub fn clamp(&self, bitrate: Bitrate) -> Bitrate {
        bitrate.clamp(self.min, self.max)
    }
}

/// Why a target bitrate last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// No feedback has changed it yet.
    Start,
    /// Fast growth: no sign of congestion, capacity not known.
    RampUp,
    /// Careful growth near the known capacity.
    Increase,
    /// The delay gradient says that the queue grows.
    OverUse,
    /// The queuing delay stands above what the controller aims at.
    QueuingDelay,
    /// Packets were lost.
    Loss,
    /// Packets were marked Congestion Experienced.
    Ecn,
    /// The sender's own queue is too long.
    SendQueue,
    /// The source sends less than it may.
    ApplicationLimited,
    /// Feedback stays away.
    FeedbackLost,
}

impl Reason {
    /// The words for records and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::RampUp => "ramp-up",
            Self::Increase => "increase",
            Self::OverUse => "over-use",
            Self::QueuingDelay => "queuing delay",
            Self::Loss => "loss",
            Self::Ecn => "ECN",
            Self::SendQueue => "send queue",
            Self::ApplicationLimited => "application-limited",
            Self::FeedbackLost => "feedback lost",
        }
    }
}

/// Named internal values that decided the last change, with the unit in the name.
pub type Signals = [(&'static str, f64); 4];

/// A snapshot of a controller's internals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metrics {
    /// Why the target bitrate last changed.
    pub reason: Reason,
    /// The controller's state, in its standard's words.
    pub state: &'static str,
    /// Round-trip time as the controller sees it, feedback interval included.
    pub rtt: Option<TimeDelta>,
    /// Queuing delay as the controller estimates it.
    pub queuing_delay: Option<TimeDelta>,
    /// Loss ratio as the controller estimates it, 0.0..=1.0.
    pub loss_ratio: f64,
    /// Rate at which the receiver got data, by feedback.
    pub acknowledged_bitrate: Option<Bitrate>,
    /// Values of the algorithm's own.
    pub signals: Signals,
}
