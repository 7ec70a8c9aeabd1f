//! Congestion events: loss and ECN marks, at most one event per round trip.
//!
//! Implements the trigger of [SCREAM §4.1.2.1].

use crate::controller::Reason;
use crate::units::{TimeDelta, Timestamp};

/// `BETA_LOSS`: factor applied to the congestion window at a loss event [SCREAM §4.1.1.1].
const BETA_LOSS: f64 = 0.8;
/// `BETA_ECN`: factor applied to window and target bitrate at an ECN event [SCREAM §4.1.1.1].
const BETA_ECN: f64 = 0.9;
/// `BETA_R`: factor applied to the target bitrate at a loss event [SCREAM §4.1.1.1].
const BETA_R: f64 = 0.9;

/// The sign of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Congestion {
    /// Packets were lost.
    Loss,
    /// Packets were marked.
    Ecn,
    /// Acknowledgements are missing (SCREAM-D2).
    Silence,
}

impl Congestion {
    /// Factor applied to the congestion window [SCREAM §4.1.2.1].
    pub const fn window_factor(self) -> f64 {
        match self {
            Self::Loss | Self::Silence => BETA_LOSS,
            Self::Ecn => BETA_ECN,
        }
    }

    /// Factor applied to the target bitrate [SCREAM §4.1.3].
    pub const fn rate_factor(self) -> f64 {
        match self {
            Self::Loss | Self::Silence => BETA_R,
            Self::Ecn => BETA_ECN,
        }
    }

    /// The reason reported for the lower target bitrate.
    pub const fn reason(self) -> Reason {
        match self {
            Self::Loss => Reason::Loss,
            Self::Ecn => Reason::Ecn,
            Self::Silence => Reason::FeedbackLost,
        }
    }
}

/// Limits congestion events to one per round trip.
#[derive(Clone, Debug, Default)]
pub(super) struct CongestionEvents {
    last: Option<Timestamp>,
}

impl CongestionEvents {
    /// Returns the congestion event caused by this acknowledgement, if any. Loss takes precedence
    /// over marks.
    pub fn on_acknowledged(
        &mut self,
        now: Timestamp,
        rtt: TimeDelta,
        lost: bool,
        marked: bool,
    ) -> Option<Congestion> {
        let congestion = match (lost, marked) {
            (true, _) => Congestion::Loss,
            (false, true) => Congestion::Ecn,
            (false, false) => return None,
        };
        if self.last.is_some_and(|last| now - last <= rtt) {
            return None;
        }
        self.last = Some(now);
        Some(congestion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(100);

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_000 + millis)
    }

    // [SCREAM §4.1.2.1]
    #[test]
    fn a_second_event_needs_more_than_one_round_trip() {
        let mut events = CongestionEvents::default();
        assert_eq!(events.on_acknowledged(at(0), RTT, true, false), Some(Congestion::Loss));
        assert_eq!(events.on_acknowledged(at(50), RTT, true, true), None);
        assert_eq!(events.on_acknowledged(at(100), RTT, false, true), None);
        assert_eq!(events.on_acknowledged(at(101), RTT, false, true), Some(Congestion::Ecn));
    }

    // [SCREAM §4.1.2.1]
    #[test]
    fn loss_outranks_a_mark_and_silence_of_both_is_no_event() {
        let mut events = CongestionEvents::default();
        assert_eq!(events.on_acknowledged(at(0), RTT, false, false), None);
        assert_eq!(events.on_acknowledged(at(0), RTT, true, true), Some(Congestion::Loss));
    }

    // [SCREAM §4.1.1.1], [SCREAM §4.1.2.1], [SCREAM §4.1.3]
    #[test]
    fn each_congestion_has_its_factors_and_its_reason() {
        let table = [Congestion::Loss, Congestion::Ecn, Congestion::Silence]
            .map(|c| (c.window_factor(), c.rate_factor(), c.reason()));
        assert_eq!(
            table,
            [(0.8, 0.9, Reason::Loss), (0.9, 0.9, Reason::Ecn), (0.8, 0.9, Reason::FeedbackLost),]
        );
    }
}
