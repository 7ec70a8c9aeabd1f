//! Round-trip time and retransmission timeout.

use weir::units::TimeDelta;

// Parameters [RFC6298 §2].
/// `alpha`, `beta`: smoothing gains of the round-trip time and of its variation, as divisors.
const SMOOTHING: i64 = 8;
const VARIATION_SMOOTHING: i64 = 4;
/// `K`: factor on the variation in the timeout.
const K: i64 = 4;
/// The timeout before the first sample.
const INITIAL_TIMEOUT: TimeDelta = TimeDelta::from_secs(1);
/// Minimum of `K * RTTVAR`. The RFC requires a timeout of at least a second. In Linux it is at
/// least 200 ms above the smoothed time (`tcp_rto_min`), and that is what is deployed today.
pub(super) const LEAST_VARIATION: TimeDelta = TimeDelta::from_millis(200);
/// Maximum timeout (Linux: `tcp_rto_max`).
const LONGEST_TIMEOUT: TimeDelta = TimeDelta::from_secs(120);

/// The estimator.
#[derive(Clone, Debug, Default)]
pub(super) struct RttEstimator {
    /// `SRTT` and `RTTVAR`, once there is a sample.
    estimate: Option<(TimeDelta, TimeDelta)>,
    /// Minimum sample.
    minimum: Option<TimeDelta>,
    /// Timeouts since the last sample.
    backoff: u32,
}

impl RttEstimator {
    /// Takes an unambiguous sample [RFC6298 §3].
    pub(super) fn on_sample(&mut self, rtt: TimeDelta) {
        self.backoff = 0;
        self.minimum = Some(self.minimum.map_or(rtt, |minimum| minimum.min(rtt)));
        self.estimate = Some(match self.estimate {
            None => (rtt, rtt / 2), // [RFC6298 §2.2]
            Some((smoothed, variation)) => (
                // [RFC6298 §2.3]
                smoothed + (rtt - smoothed) / SMOOTHING,
                variation + ((smoothed - rtt).abs() - variation) / VARIATION_SMOOTHING,
            ),
        });
    }

    /// The timer has expired. Doubles the timeout [RFC6298 §5.5].
    pub(super) fn on_timeout(&mut self) {
        self.backoff += 1;
    }

    /// `SRTT`.
    pub(super) fn smoothed(&self) -> Option<TimeDelta> {
        self.estimate.map(|estimate| estimate.0)
    }

    /// Minimum sample of the connection.
    pub(super) fn minimum(&self) -> Option<TimeDelta> {
        self.minimum
    }

    /// `RTO`.
    pub(super) fn timeout(&self) -> TimeDelta {
        let base = self.estimate.map_or(INITIAL_TIMEOUT, |(smoothed, variation)| {
            smoothed + (variation * K).max(LEAST_VARIATION)
        });
        let doublings = self.backoff.min(LONGEST_TIMEOUT.as_nanos().ilog2());
        let nanos = base.as_nanos().saturating_mul(1 << doublings);
        TimeDelta::from_nanos(nanos).min(LONGEST_TIMEOUT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> TimeDelta {
        TimeDelta::from_millis(ms)
    }

    // [RFC6298 §2]
    #[test]
    fn the_first_sample_is_the_smoothed_time_and_half_of_it_the_variation() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.timeout(), ms(1_000));
        rtt.on_sample(ms(400));
        assert_eq!((rtt.smoothed(), rtt.timeout()), (Some(ms(400)), ms(400 + 4 * 200)));
        // SRTT 7/8 * 400 + 1/8 * 480 = 410; RTTVAR 3/4 * 200 + 1/4 * 80 = 170.
        rtt.on_sample(ms(480));
        assert_eq!((rtt.smoothed(), rtt.timeout()), (Some(ms(410)), ms(410 + 4 * 170)));
        assert_eq!(rtt.minimum(), Some(ms(400)));
    }

    #[test]
    fn the_timeout_is_200_ms_above_the_smoothed_time_at_least() {
        let mut rtt = RttEstimator::default();
        for _ in 0..100 {
            rtt.on_sample(ms(50));
        }
        assert_eq!(rtt.timeout(), ms(250));
    }

    // [RFC6298 §5.5]
    #[test]
    fn the_timeout_doubles_up_to_its_bound_and_a_sample_ends_that() {
        let mut rtt = RttEstimator::default();
        let mut timeouts = Vec::new();
        for _ in 0..9 {
            timeouts.push(rtt.timeout().as_millis() / 1_000);
            rtt.on_timeout();
        }
        assert_eq!(timeouts, [1, 2, 4, 8, 16, 32, 64, 120, 120]);
        for _ in 0..1_000 {
            rtt.on_timeout();
        }
        assert_eq!(rtt.timeout(), TimeDelta::from_secs(120));
        rtt.on_sample(ms(100));
        assert_eq!(rtt.timeout(), ms(100 + 4 * 50));
    }
}
