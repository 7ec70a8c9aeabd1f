//! Detects missing feedback, for controllers whose document does not say how (NADA-D9, `sluice`),
//! and the usual time between two reports, without which nobody knows what is missing.
//!
//! [RFC8836 §2] asks to treat missing feedback as a sign of congestion.

use crate::units::{TimeDelta, Timestamp};

/// Assumed round-trip time until one is measured.
const RTT_UNKNOWN: TimeDelta = TimeDelta::from_secs(1);

/// Share of a new interval in the smoothed one, if it is as long as that.
const INTERVAL_GAIN: f64 = 1.0 / 8.0;
/// Of less than this, no multiple is a gap.
pub(crate) const INTERVAL_LEAST: TimeDelta = TimeDelta::from_millis(5);
/// The longest interval that counts: two seconds, with half of the reports lost.
const INTERVAL_MAX: TimeDelta = TimeDelta::from_secs(4);

/// Feedback is missing after this many times the usual interval. If half of the reports get lost,
/// the usual interval is three times as long, and one in 4,096 gaps is longer than this.
pub(crate) const MISSED_REPORTS: f64 = 4.0;

/// The usual time between two reports, unknown before the second one.
///
/// It is an exponential mean in which each interval weighs by its length. So what comes in several
/// parts, because it tells of more packets than one part can hold, counts as one report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReportInterval {
    /// When the last report came, or the first packet left before there was one.
    last: Option<Timestamp>,
    interval: Interval,
}

/// What is known of the interval of reports.
#[derive(Clone, Copy, Debug, Default)]
enum Interval {
    #[default]
    Unknown,
    /// After the first report: it came an interval at most, and a round trip, after the first
    /// packet.
    AtMost(TimeDelta),
    /// The mean.
    Usual(TimeDelta),
}

impl ReportInterval {
    /// A packet left.
    pub(crate) fn on_packet_sent(&mut self, now: Timestamp) {
        if matches!(self.interval, Interval::Unknown) {
            self.last.get_or_insert(now);
        }
    }

    /// A report came.
    pub(crate) fn on_report(&mut self, now: Timestamp) {
        let last = self.last.replace(now).unwrap_or(now);
        // The host's clock may have been set back.
        let since = (now - last).clamp(TimeDelta::ZERO, INTERVAL_MAX);
        self.interval = match self.interval {
            Interval::Unknown => Interval::AtMost(since),
            Interval::AtMost(most) if since < INTERVAL_LEAST => Interval::AtMost(most),
            Interval::AtMost(_) => Interval::Usual(since),
            Interval::Usual(usual) => {
                // One long gap is a time without feedback, and not how often it comes.
                let since = since.min(usual.max(INTERVAL_LEAST) * MISSED_REPORTS);
                let weight = since / usual.max(INTERVAL_LEAST);
                Interval::Usual(usual + (since - usual) * INTERVAL_GAIN * weight)
            }
        };
    }

    /// How long feedback may be overdue before it is missing: `least`, or as long as
    /// [`MISSED_REPORTS`] reports take.
    pub(crate) fn patience(&self, least: TimeDelta) -> TimeDelta {
        self.patience_for(least, MISSED_REPORTS)
    }

    /// The same for this number of reports. Before the second report, two may take as long as the
    /// first one did.
    pub(crate) fn patience_for(&self, least: TimeDelta, reports: f64) -> TimeDelta {
        match self.interval {
            Interval::Unknown => least,
            Interval::AtMost(most) => least.max(most * 2.0),
            Interval::Usual(usual) => least.max(usual * reports),
        }
    }

    /// The smoothed interval.
    pub(crate) fn usual(&self) -> Option<TimeDelta> {
        match self.interval {
            Interval::Usual(usual) => Some(usual),
            Interval::Unknown | Interval::AtMost(_) => None,
        }
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

    /// The usual interval in ms after reports at these times.
    fn usual(times: impl IntoIterator<Item = i64>) -> i64 {
        let mut reports = ReportInterval::default();
        for time in times {
            reports.on_report(at(time));
        }
        reports.usual().unwrap().as_millis()
    }

    #[test]
    fn a_report_in_parts_is_one_and_a_lost_one_is_soon_no_change() {
        for interval in [5, 50, 400, 2_000] {
            assert_eq!(usual((0..40).map(|n| n * interval)), interval);
            let without = |last: i64| (0..=last).filter(|n| *n != 39).map(|n| n * interval);
            assert_eq!(usual(without(40)), interval * 5 / 4, "one of two reports counts twice");
            assert!(usual(without(60)) <= interval + interval / 20, "{interval}");
            for parts in 2..20 {
                let spread = interval / 100;
                let times =
                    (0..40 * parts).map(|n| n / parts * interval + n % parts * spread / parts);
                let usual = usual(times);
                assert!((interval * 9 / 10..=interval).contains(&usual), "{usual} of {interval}");
            }
        }
    }

    #[test]
    fn it_follows_reports_that_come_more_often_or_less() {
        for (before, after) in [(50, 2_000), (2_000, 50), (5, 1_000), (1_000, 5)] {
            let times = (0..20).map(|n| n * before);
            let long = before.max(after) * 40 / after;
            let later = (1..=long).map(|n| 19 * before + n * after);
            let usual = usual(times.chain(later));
            assert!((usual - after).abs() <= after / 20, "{usual} after {before}, {after}");
        }
    }

    #[test]
    fn until_the_second_report_the_first_one_tells_how_long_to_wait() {
        let mut reports = ReportInterval::default();
        reports.on_packet_sent(at(10));
        reports.on_packet_sent(at(500));
        assert_eq!(reports.patience(PATIENCE), PATIENCE);
        reports.on_report(at(2_010));
        assert_eq!(reports.patience(PATIENCE), TimeDelta::from_secs(4));
        reports.on_report(at(2_012));
        assert_eq!(reports.patience(PATIENCE), TimeDelta::from_secs(4), "a part of the first");
        reports.on_report(at(2_112));
        assert_eq!(reports.patience(PATIENCE), PATIENCE);
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
    fn feedback_ends_the_watch_and_an_unknown_round_trip_is_a_second() {
        let mut silence = Silence::default();
        silence.on_packet_sent(at(0), None, PATIENCE);
        assert_eq!(silence.deadline(), Some(at(1500)));
        silence.on_feedback();
        assert_eq!(silence.deadline(), None);
    }
}
