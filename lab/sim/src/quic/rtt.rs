//! Round-trip time [RFC9002 §5].

use weir::units::TimeDelta;

/// `kInitialRtt` [RFC9002 §6.2.2].
const INITIAL: TimeDelta = TimeDelta::from_millis(333);
/// `kGranularity` [RFC9002 §6.1.2].
const GRANULARITY: TimeDelta = TimeDelta::from_millis(1);

/// The estimator. Names in backticks are the RFC's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    /// `latest_rtt`
    pub(super) latest: TimeDelta,
    /// `smoothed_rtt` and `rttvar`, once there is a sample.
    estimate: Option<(TimeDelta, TimeDelta)>,
    /// `min_rtt`
    minimum: TimeDelta,
}

impl Rtt {
    pub(super) const fn new() -> Self {
        Self { latest: INITIAL, estimate: None, minimum: TimeDelta::MAX }
    }

    /// A sample, with the time for which the receiver says it held its ACK back [RFC9002 §5.3].
    pub(super) fn on_sample(&mut self, latest: TimeDelta, ack_delay: TimeDelta) {
        self.latest = latest;
        self.minimum = self.minimum.min(latest);
        let Some((smoothed, variation)) = self.estimate else {
            self.estimate = Some((latest, latest / 2));
            return;
        };
        let shorter = latest - ack_delay;
        let adjusted = if shorter >= self.minimum { shorter } else { latest };
        let variation = variation + ((smoothed - adjusted).abs() - variation) / 4;
        self.estimate = Some((smoothed + (adjusted - smoothed) / 8, variation));
    }

    /// `smoothed_rtt`
    pub(super) fn smoothed(&self) -> TimeDelta {
        self.estimate.map_or(INITIAL, |(smoothed, _)| smoothed)
    }

    /// After this time a packet before an acknowledged one is lost [RFC9002 §6.1.2].
    pub(super) fn loss_delay(&self) -> TimeDelta {
        (self.latest.max(self.smoothed()) * 9 / 8).max(GRANULARITY)
    }

    /// After this time without news a probe leaves [RFC9002 §6.2.1].
    pub(super) fn probe_timeout(&self, max_ack_delay: TimeDelta) -> TimeDelta {
        let variation = self.estimate.map_or(INITIAL / 2, |(_, variation)| variation);
        self.smoothed() + (variation * 4).max(GRANULARITY) + max_ack_delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

    // [RFC9002 §5.3]
    #[test]
    fn the_ack_delay_is_taken_off_down_to_the_minimum() {
        let mut rtt = Rtt::new();
        assert_eq!(rtt.probe_timeout(MS(0)), MS(999));
        rtt.on_sample(MS(100), MS(80));
        assert_eq!(rtt.smoothed(), MS(100));
        rtt.on_sample(MS(116), MS(8));
        assert_eq!(rtt.smoothed(), MS(101));
        rtt.on_sample(MS(101), MS(8));
        assert_eq!(rtt.smoothed(), MS(101));
    }

    // [RFC9002 §6.1.2]
    #[test]
    fn the_larger_of_the_latest_and_the_smoothed_time_decides() {
        let mut rtt = Rtt::new();
        rtt.on_sample(MS(80), MS(0));
        assert_eq!(rtt.loss_delay(), MS(90));
        rtt.on_sample(MS(160), MS(0));
        assert_eq!(rtt.loss_delay(), MS(180));
        rtt.on_sample(MS(80), MS(0));
        assert_eq!(rtt.loss_delay(), rtt.smoothed() * 9 / 8);
    }
}
