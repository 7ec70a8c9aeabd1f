//! Detects missing feedback, for controllers whose document does not say how (NADA-D9, `sluice`),
//! and the usual time between two reports, without which nobody knows what is missing.
//!
//! [RFC8836 §2] asks to treat missing feedback as a sign of congestion.

use crate::units::{TimeDelta, Timestamp};

/// Assumed round-trip time until one is measured.
const RTT_UNKNOWN: TimeDelta = TimeDelta::from_secs(1);

/// Share of a new interval in the smoothed one.
const INTERVAL_GAIN: f64 = 1.0 / 8.0;
/// Of less than this, no multiple is a gap.
const INTERVAL_LEAST: TimeDelta = TimeDelta::from_millis(5);
/// The longest interval that counts: two seconds, with half of the reports lost.
const INTERVAL_MAX: TimeDelta = TimeDelta::from_secs(4);

/// Feedback is missing after this many times the usual interval. If half of the reports get lost,
/// the usual interval is twice as long, and one in 256 gaps is longer than this.
const MISSED_REPORTS: f64 = 4.0;

/// The usual time between two reports: an exponential mean, unknown before the second report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReportInterval {
    last: Option<Timestamp>,
    usual: Option<TimeDelta>,
}

impl ReportInterval {
    /// A report came.
    pub(crate) fn on_report(&mut self, now: Timestamp) {
        let Some(last) = self.last.replace(now) else { return };
        // The host's clock may have been set back.
        let since = (now - last).clamp(TimeDelta::ZERO, INTERVAL_MAX);
        let usual = self.usual.unwrap_or(since);
        // One long gap is a time without feedback, and not how often it comes.
        let since = since.min(usual.max(INTERVAL_LEAST) * MISSED_REPORTS);
        self.usual = Some(usual + (since - usual) * INTERVAL_GAIN);
    }

    /// How long feedback may be overdue before it is missing: `least`, or as long as
    /// [`MISSED_REPORTS`] reports take.
    pub(crate) fn patience(&self, least: TimeDelta) -> TimeDelta {
        least.max(self.usual().unwrap_or(TimeDelta::ZERO) * MISSED_REPORTS)
    }

    /// The smoothed interval.
    pub(crate) fn usual(&self) -> Option<TimeDelta> {
        self.usual
    }
}

/// A timer that starts with the first packet sent after a report and stops at the next report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Silence {
    deadline: Option<Timestamp>,
}

impl Silence {
    /// Whether the timer is running.
    pub(crate) fn is_running(&self) -> bool {
        self.deadline.is_some()
    }

    /// Starts the timer if it is not running. Feedback on this packet is due after a round-trip
    /// time; if none has arrived `patience` later, the state of the path is unknown.
    pub(crate) fn on_packet_sent(
        &mut self,
        now: Timestamp,
        rtt: Option<TimeDelta>,
        patience: TimeDelta,
    ) {
        if self.deadline.is_none() {
            let rtt = rtt.unwrap_or(RTT_UNKNOWN).max(TimeDelta::ZERO);
            self.deadline = Some(now + rtt + patience);
        }
    }

    /// Stops the timer.
    pub(crate) fn on_feedback(&mut self) {
        self.deadline = None;
    }

    pub(crate) fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// Returns true once after the deadline has passed. The next packet sent sets a new deadline,
    /// so a source that pauses is not penalized for its own silence.
    pub(crate) fn has_ended(&mut self, now: Timestamp) -> bool {
        self.deadline.take_if(|deadline| *deadline <= now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: TimeDelta = TimeDelta::from_millis(500);

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    // NADA-D9
    #[test]
    fn it_ends_a_round_trip_time_and_500_ms_after_the_first_packet_sent() {
        let mut silence = Silence::default();
        assert_eq!(silence.deadline(), None);
        for sent in [0, 400] {
            silence.on_packet_sent(at(sent), Some(TimeDelta::from_millis(100)), PATIENCE);
        }
        assert_eq!(silence.deadline(), Some(at(600)));
        assert!(!silence.has_ended(at(599)));
        assert!(silence.has_ended(at(600)));
        assert_eq!(silence.deadline(), None);
        assert!(!silence.has_ended(at(700)), "nothing was sent since");
    }

    // NADA-D9
    #[test]
    fn feedback_ends_the_watch_and_an_unknown_round_trip_time_counts_as_a_second() {
        let mut silence = Silence::default();
        silence.on_packet_sent(at(0), None, PATIENCE);
        assert_eq!(silence.deadline(), Some(at(1500)));
        silence.on_feedback();
        assert_eq!(silence.deadline(), None);
    }
}
