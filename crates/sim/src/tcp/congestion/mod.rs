//! Congestion controls: one trait, a file each.
//!
//! The sender owns loss detection and the proportional reduction of the window; a control says how
//! the window grows and to what it falls.

mod bbr;
mod cubic;
mod cubic_linux;
mod hystart;
mod reno;
#[cfg(test)]
mod testing;

use std::fmt;

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_net::seed::Stream;

use super::delivery_rate::Sample;

/// A congestion control by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// CUBIC.
    Cubic(Cubic),
    /// Reno of RFC 5681, with the recovery that all controls share.
    Reno,
    /// BBR version 1.
    Bbr,
}

/// Which CUBIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cubic {
    /// As RFC 9438 has it, with HyStart++ of RFC 9406.
    Rfc9438,
    /// As Linux 6 has it, with HyStart, which ends slow start at once.
    Linux,
}

impl Congestion {
    pub(super) fn build(self, chance: Stream) -> Box<dyn CongestionControl> {
        match self {
            Self::Cubic(Cubic::Rfc9438) => Box::new(cubic::Rfc9438::default()),
            Self::Cubic(Cubic::Linux) => Box::new(cubic_linux::CubicLinux::default()),
            Self::Reno => Box::new(reno::Reno),
            Self::Bbr => Box::new(bbr::Bbr::new(chance)),
        }
    }
}

/// Windows in segments. A part of a segment is growth that has not come to a whole one yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    /// `cwnd`.
    pub(super) congestion: f64,
    /// `ssthresh`.
    pub(super) threshold: f64,
}

/// `IW` [RFC6928 §2].
pub(super) const INITIAL_WINDOW: f64 = 10.0;
/// The window that a congestion event leaves at least [RFC5681 §3.1].
pub(super) const LEAST_WINDOW: f64 = 2.0;

impl Window {
    pub(super) const INITIAL: Self = Self { congestion: INITIAL_WINDOW, threshold: f64::INFINITY };

    pub(super) fn is_slow_start(&self) -> bool {
        self.congestion < self.threshold
    }

    /// Grows by a segment for each acknowledged, up to the threshold; returns what is left of them
    /// for congestion avoidance. Delayed acknowledgements count in full [RFC3465 §2.1].
    pub(super) fn slow_start(&mut self, acknowledged: f64) -> f64 {
        let room = (self.threshold - self.congestion).max(0.0);
        let used = acknowledged.min(room);
        self.congestion += used;
        acknowledged - used
    }
}

/// What the sender is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// Nothing is lost.
    None,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Timeout,
}

/// What an acknowledgement tells a control.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckEvent {
    pub(super) now: Timestamp,
    /// Segments of which it is the first to say that they arrived.
    pub(super) delivered: u64,
    /// Segments that it shows to be lost.
    pub(super) lost: u64,
    /// All segments that ever arrived.
    pub(super) total_delivered: u64,
    /// Round-trip time of the newest segment that it answers.
    pub(super) rtt: Option<TimeDelta>,
    /// `SRTT`.
    pub(super) smoothed_rtt: TimeDelta,
    /// Segments in flight before it, and after.
    pub(super) prior_in_flight: u64,
    pub(super) in_flight: u64,
    /// All data below has arrived, and what will be sent next.
    pub(super) acknowledged: u64,
    pub(super) next: u64,
    pub(super) repair: Repair,
    /// The window kept the sender from sending more.
    pub(super) is_window_limited: bool,
    /// The acknowledgement advanced, so that a window may grow.
    pub(super) has_advanced: bool,
    pub(super) sample: Option<Sample>,
    /// How long the pacer will hold the next segment back.
    pub(super) departure_wait: TimeDelta,
}

/// How segments are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pacing {
    pub(super) rate: Bitrate,
    /// Segments that leave together.
    pub(super) burst: u64,
}

/// A congestion control.
pub(super) trait CongestionControl: fmt::Debug + Send {
    /// An acknowledgement, outside the proportional reductions of the window.
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent);

    /// Loss or a mark: what `ssthresh` becomes.
    fn on_congestion(&mut self, now: Timestamp, window: &Window) -> f64;

    /// The retransmission timer expired; `on_congestion` came before it.
    fn on_timeout(&mut self) {}

    /// The congestion event was none: the window is as it was before.
    fn on_undo(&mut self) {}

    /// How segments are spread; `None` sends when the window opens.
    fn pacing(&self) -> Option<Pacing> {
        None
    }

    /// Whether it sets the window itself also while losses are repaired.
    fn rules_in_recovery(&self) -> bool {
        false
    }
}
