//! Detector of application-limited regions (ALR), in which the source sends much less than it may.
//!
//! Implements [LIBWEBRTC §AlrDetector].

use crate::units::{Bitrate, DataSize, TimeDelta, Timestamp};

// Parameters [LIBWEBRTC §AlrDetector]. The defaults for screen content apply to every source.
/// Share of the estimate at which the budget refills.
const BUDGET_SHARE: f64 = 0.80;
/// The budget is limited to what refills it in this time, positive or negative.
const BUDGET_WINDOW: TimeDelta = TimeDelta::from_millis(500);
/// The region begins above `START_LEVEL` and ends below `STOP_LEVEL`, both shares of a full budget.
const START_LEVEL: f64 = 0.40;
const STOP_LEVEL: f64 = -0.60;

/// A budget that sending uses up and time refills.
#[derive(Clone, Debug)]
pub(super) struct AlrDetector {
    estimate: Bitrate,
    /// Refill rate in bytes per second.
    rate: f64,
    /// Remaining budget in bytes; negative if too much was sent.
    budget: f64,
    last_sent: Option<Timestamp>,
    since: Option<Timestamp>,
}

impl AlrDetector {
    pub(super) fn new(estimate: Bitrate) -> Self {
        Self { estimate, rate: fill_rate(estimate), budget: 0.0, last_sent: None, since: None }
    }

    /// Adopts a new estimate.
    pub(super) fn set_estimate(&mut self, estimate: Bitrate) {
        if estimate == self.estimate {
            return;
        }
        self.estimate = estimate;
        self.rate = fill_rate(estimate);
        self.budget = self.budget.clamp(-self.full(), self.full());
    }

    /// A packet left.
    pub(super) fn on_packet_sent(&mut self, now: Timestamp, size: DataSize) {
        let Some(last) = self.last_sent.replace(now) else { return };
        let full = self.full();
        let used = self.budget - size.as_bytes() as f64;
        let used = if used < -full { -full } else { used };
        let filled = used + self.rate * (now - last).as_secs_f64();
        self.budget = if filled > full { full } else { filled };
        if self.budget > START_LEVEL * full && self.since.is_none() {
            self.since = Some(now);
        } else if self.budget < STOP_LEVEL * full {
            self.since = None;
        }
    }

    /// Start of the current application-limited region, if there is one.
    pub(super) fn since(&self) -> Option<Timestamp> {
        self.since
    }

    fn full(&self) -> f64 {
        self.rate * BUDGET_WINDOW.as_secs_f64()
    }
}

fn fill_rate(estimate: Bitrate) -> f64 {
    const BITS_PER_BYTE: f64 = 8.0;
    estimate.as_bps_f64() * BUDGET_SHARE / BITS_PER_BYTE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends 125 B every ms (1 Mbit/s) times `share`. Returns when the region begins or ends.
    fn run(detector: &mut AlrDetector, from_ms: i64, share: f64) -> Option<i64> {
        let before = detector.since().is_some();
        (from_ms..from_ms + 5_000).find(|&ms| {
            let size = DataSize::from_bytes((125.0 * share) as u64);
            detector.on_packet_sent(Timestamp::from_millis(ms), size);
            detector.since().is_some() != before
        })
    }

    // [LIBWEBRTC §AlrDetector]: 0.80 - 0.25 of 1 Mbit/s fill 0.4 * 0.5 s * 0.80 in 0.29 s.
    #[test]
    fn a_source_at_a_quarter_of_the_estimate_is_limited_after_290_ms() {
        let mut detector = AlrDetector::new(Bitrate::from_kbps(1_000));
        let began = run(&mut detector, 0, 0.25).unwrap();
        assert!((285..300).contains(&began), "{began}");
    }

    // [LIBWEBRTC §AlrDetector]: 0.20 of 1 Mbit/s take it from 0.4 to -0.6 of 0.4 Mbit in 2 s.
    #[test]
    fn it_is_no_longer_limited_once_more_than_the_budget_is_used() {
        let mut detector = AlrDetector::new(Bitrate::from_kbps(1_000));
        let began = run(&mut detector, 0, 0.25).unwrap();
        let ended = run(&mut detector, began, 1.0).unwrap() - began;
        assert!((1_990..2_010).contains(&ended), "{ended}");
    }

    // [LIBWEBRTC §AlrDetector]
    #[test]
    fn a_source_above_80_percent_of_the_estimate_is_not_limited() {
        let mut detector = AlrDetector::new(Bitrate::from_kbps(1_000));
        assert_eq!(run(&mut detector, 0, 0.81), None);
    }

    #[test]
    fn an_estimate_that_falls_takes_the_budget_along() {
        let mut detector = AlrDetector::new(Bitrate::from_kbps(1_000));
        run(&mut detector, 0, 0.25);
        detector.set_estimate(Bitrate::from_kbps(100));
        assert_eq!(detector.budget, 5_000.0, "0.80 * 100 kbit/s over half a second");
    }
}
