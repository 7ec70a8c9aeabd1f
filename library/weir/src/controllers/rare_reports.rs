//! How far a rate may grow where reports are rare (NADA-D14, SCREAMV2-D9).
//!
//! What a rate has too much, it puts into the queue until the next report tells of it. So from the
//! rate that arrived when the path was last full, a step is at most what fills a bounded queue in
//! this time. A step after which a report told of no congestion doubles the next one, because the
//! path may carry more than it did. It must have lasted as long as it was made for: where reports
//! get lost, one may come soon after a step, and the next one late. Below that rate, and before the
//! path was ever full, a step may be larger.
//!
//! From which interval on that is, depends on the law, so the time stands in its file. `scream-v2`
//! is clocked by acknowledgements and needs them most often (150 ms). The analysis of `nada` holds
//! for 250 ms. `sluice` averages over 300 ms and more, and reports of a busy radio link come each
//! 100 to 350 ms.

use crate::units::{Bitrate, TimeDelta, Timestamp};

/// How much longer than `usual` a part of the loop takes: what a law for usual loops does not know.
pub(crate) fn beyond(time: TimeDelta, usual: TimeDelta) -> TimeDelta {
    (time - usual).max(TimeDelta::ZERO)
}

/// The largest number of doublings.
const DOUBLINGS_MAX: u32 = 6;
/// A rate counts as that of the full path from this part of it on.
const NEARLY: f64 = 0.98;

/// A step that is made for an interval of reports has lasted as long after this share of the usual
/// one: intervals differ a little.
pub(crate) const LASTED: f64 = 0.75;

/// The steps of a rate from report to report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RareSteps {
    /// What arrived when the path was last full.
    full: Option<Bitrate>,
    doublings: u32,
    /// When a step was last known to be calm, or the path to be full.
    known: Option<Timestamp>,
}

impl RareSteps {
    /// The path is full: there was a queue, and this rate arrived.
    pub(crate) fn on_full(&mut self, now: Timestamp, arrived: Bitrate) {
        *self = Self { full: Some(arrived), doublings: 0, known: Some(now) };
    }

    /// A report came without a sign of congestion, while this was the rate. A step was made for
    /// this time.
    pub(crate) fn on_calm(&mut self, now: Timestamp, rate: Bitrate, step_time: TimeDelta) {
        // A host's clock that was set back says nothing of how long it lasted.
        if let Some(known) = self.known
            && (TimeDelta::ZERO..step_time).contains(&(now - known))
        {
            return;
        }
        self.known = Some(now);
        if self.full.is_some_and(|full| rate >= full * NEARLY) {
            self.doublings = (self.doublings + 1).min(DOUBLINGS_MAX);
        }
    }

    /// The highest rate until the next report. From that of the full path on, the excess fills
    /// at most `queue` until its effect is reported after `feedback_time`, but for the doublings.
    /// A step is at most this share of the rate.
    pub(crate) fn most(
        &self,
        rate: Bitrate,
        queue: TimeDelta,
        feedback_time: TimeDelta,
        largest: f64,
    ) -> Bitrate {
        let far = rate * (1.0 + largest);
        let Some(full) = self.full else { return far };
        let step = queue / feedback_time * f64::from(1_u32 << self.doublings);
        far.min(rate.max(full) * (1.0 + step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: TimeDelta = TimeDelta::from_millis(1);

    fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }
    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }
    /// The highest next rate, with reports each 2 s.
    fn most(steps: &RareSteps, rate: u64) -> Bitrate {
        steps.most(kbps(rate), MS * 50, MS * 2_000, 0.5)
    }

    #[test]
    fn before_the_path_was_full_and_far_below_it_a_step_is_large() {
        let mut steps = RareSteps::default();
        assert_eq!(most(&steps, 1_000), kbps(1_500));
        steps.on_full(at(0), kbps(4_000));
        assert_eq!(most(&steps, 1_000), kbps(1_500));
        assert_eq!(most(&steps, 3_000), kbps(4_100));
    }

    #[test]
    fn at_the_full_paths_rate_each_calm_step_doubles_the_next_one() {
        let (mut steps, interval) = (RareSteps::default(), MS * 2_000);
        steps.on_full(at(0), kbps(1_000));
        steps.on_calm(at(2), kbps(900), interval);
        for (time, rate) in (4..).step_by(2).zip([1_025, 1_050, 1_100, 1_200, 1_400, 1_500]) {
            assert_eq!(most(&steps, 1_000), kbps(rate));
            steps.on_calm(at(time), kbps(1_000), interval);
        }
        assert_eq!(most(&steps, 1_000), kbps(1_500));
        steps.on_full(at(16), kbps(800));
        assert_eq!(most(&steps, 1_000), kbps(1_025));
    }

    #[test]
    fn a_report_soon_after_another_does_not_double_the_step() {
        for interval in [MS * 300, MS * 800, MS * 2_000] {
            let mut steps = RareSteps::default();
            steps.on_full(at(0), kbps(1_000));
            for tenth in 1..10 {
                steps.on_calm(at(0) + interval / 10 * tenth, kbps(1_000), interval);
                assert_eq!(most(&steps, 1_000), kbps(1_025), "{interval:?}, {tenth}");
            }
            steps.on_calm(at(0) + interval, kbps(1_000), interval);
            assert_eq!(most(&steps, 1_000), kbps(1_050), "{interval:?}");
        }
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_hold_the_steps() {
        let mut steps = RareSteps::default();
        steps.on_full(at(3_600), kbps(1_000));
        steps.on_calm(at(10), kbps(1_000), MS * 2_000);
        assert_eq!(most(&steps, 1_000), kbps(1_050));
    }
}
