//! Congestion controls: the trait, and one file for each control.
//!
//! The sender implements loss detection and the proportional reduction of the window. A control
//! decides how the window grows and what it is reduced to.

mod bbr;
mod cubic;
mod cubic_linux;
mod hystart;
mod prague;
mod reno;
#[cfg(test)]
mod testing;

use std::fmt;

use weir::units::{Bitrate, TimeDelta, Timestamp};
use weir_net::seed::Stream;

use super::delivery_rate::Sample;

pub(crate) use cubic::Rfc9438;
pub(crate) use reno::Reno;

/// A congestion control by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// CUBIC.
    Cubic(Cubic),
    /// Reno (RFC 5681), with the loss recovery that all controls share.
    Reno,
    /// BBR version 1.
    Bbr,
    /// Prague, for flows with accurate feedback of marks.
    Prague,
}

/// Variant of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cubic {
    /// CUBIC of RFC 9438, with HyStart++ of RFC 9406.
    Rfc9438,
    /// CUBIC of Linux 6, with HyStart, which ends slow start immediately.
    Linux,
}

impl Congestion {
    pub(super) fn build(self, chance: Stream) -> Box<dyn CongestionControl> {
        match self {
            Self::Cubic(Cubic::Rfc9438) => Box::new(Rfc9438::default()),
            Self::Cubic(Cubic::Linux) => Box::new(cubic_linux::CubicLinux::default()),
            Self::Reno => Box::new(Reno),
            Self::Bbr => Box::new(bbr::Bbr::new(chance)),
            Self::Prague => Box::new(prague::Prague::default()),
        }
    }
}

/// Windows in segments. A fraction of a segment is growth that does not amount to a whole segment
/// yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    /// `cwnd`.
    pub(crate) congestion: f64,
    /// `ssthresh`.
    pub(crate) threshold: f64,
}

/// `IW` [RFC6928 §2].
pub(super) const INITIAL_WINDOW: f64 = 10.0;
/// Minimum window after a congestion event [RFC5681 §3.1].
pub(crate) const LEAST_WINDOW: f64 = 2.0;

impl Window {
    pub(crate) const INITIAL: Self = Self { congestion: INITIAL_WINDOW, threshold: f64::INFINITY };

    pub(super) fn is_slow_start(&self) -> bool {
        self.congestion < self.threshold
    }

    /// Grows by one segment for each acknowledged segment, up to the threshold. Returns the
    /// remaining segments, for congestion avoidance. Delayed acknowledgements count in full
    /// [RFC3465 §2.1].
    pub(super) fn slow_start(&mut self, acknowledged: f64) -> f64 {
        let room = (self.threshold - self.congestion).max(0.0);
        let used = acknowledged.min(room);
        self.congestion += used;
        acknowledged - used
    }
}

/// The sender's state of loss repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repair {
    /// Nothing is lost.
    None,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Timeout,
}

/// Information from an acknowledgement for a congestion control.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckEvent {
    pub(crate) now: Timestamp,
    /// Newly delivered segments.
    pub(crate) delivered: u64,
    /// Newly lost segments.
    pub(crate) lost: u64,
    /// Newly reported marks, if the feedback counts them.
    pub(crate) marked: u64,
    /// Total of delivered segments.
    pub(crate) total_delivered: u64,
    /// Round-trip time of the newest delivered segment.
    pub(crate) rtt: Option<TimeDelta>,
    /// `SRTT`.
    pub(crate) smoothed_rtt: TimeDelta,
    /// Segments in flight before and after the acknowledgement.
    pub(crate) prior_in_flight: u64,
    pub(crate) in_flight: u64,
    /// `SND.UNA` and `SND.NXT`: the first unacknowledged byte, and the next byte to send.
    pub(crate) acknowledged: u64,
    pub(crate) next: u64,
    pub(crate) repair: Repair,
    /// Whether the window limited the sender.
    pub(crate) is_window_limited: bool,
    /// Whether `acknowledged` advanced, so that the window may grow.
    pub(crate) has_advanced: bool,
    pub(crate) sample: Option<Sample>,
    /// Time until the pacer releases the next segment.
    pub(crate) departure_wait: TimeDelta,
}

/// Pacing parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pacing {
    pub(super) rate: Bitrate,
    /// Number of segments that leave together.
    pub(super) burst: u64,
}

/// A congestion control.
pub(crate) trait CongestionControl: fmt::Debug + Send {
    /// Counts what an acknowledgement reports. Called for each one, before `on_ack`.
    fn count_marks(&mut self, _ack: &AckEvent) {}

    /// Takes an acknowledgement. Not called during a proportional reduction, unless
    /// `rules_in_recovery`.
    fn on_ack(&mut self, window: &mut Window, ack: &AckEvent);

    /// Loss or a mark. Returns the new `ssthresh`.
    fn on_congestion(&mut self, now: Timestamp, window: &Window) -> f64;

    /// The retransmission timer expired. If this starts a new congestion event, `on_congestion` is
    /// called first.
    fn on_timeout(&mut self) {}

    /// The last congestion event was spurious. The sender has restored the window.
    fn on_undo(&mut self) {}

    /// Pacing parameters. With `None`, segments leave as soon as the window allows.
    fn pacing(&self) -> Option<Pacing> {
        None
    }

    /// Whether the control also sets the window during loss repair.
    fn rules_in_recovery(&self) -> bool {
        false
    }
}
