//! Rate policers: many losses without a queue limit the reference window [SCREAMV2 §4.5.2].

use crate::units::{TimeDelta, Timestamp};

// Parameters [SCREAMV2 §4.5.2].
/// `LOSS_RATE_THRESHOLD_POLICER`: loss rate that shows a policer.
const LOSS_RATE_THRESHOLD_POLICER: f64 = 0.1;
/// `BETA_LOSS_POLICER`: share of the window that becomes its limit.
const BETA_LOSS_POLICER: f64 = 0.9;
/// Share of the delay target below which there is no queue.
const QUEUE: f64 = 0.25;
/// Growth of the limit per round trip, so that a false detection does not last.
const GROWTH: f64 = 0.001;

/// `max_policed_ref_wnd`.
#[derive(Clone, Debug, Default)]
pub(super) struct PolicerGuard {
    limit: Option<f64>,
    grown: Timestamp,
}

impl PolicerGuard {
    /// Takes the averaged loss rate and delay after a loss.
    pub fn on_loss(&mut self, loss_rate: f64, delay: TimeDelta, target: TimeDelta, ref_wnd: f64) {
        if loss_rate > LOSS_RATE_THRESHOLD_POLICER && delay < target * QUEUE {
            self.limit = Some(ref_wnd * BETA_LOSS_POLICER);
        }
    }

    /// The window within the limit, which grows with each round trip.
    pub fn cap(&mut self, now: Timestamp, rtt: TimeDelta, ref_wnd: f64) -> f64 {
        let Some(limit) = &mut self.limit else { return ref_wnd };
        if now - self.grown >= rtt {
            *limit *= 1.0 + GROWTH;
            self.grown = now;
        }
        ref_wnd.min(*limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: TimeDelta = TimeDelta::from_millis(60);

    /// The window after losses at 10 kB, of 20 kB.
    fn capped(loss_rate: f64, delay_ms: i64) -> f64 {
        let mut guard = PolicerGuard::default();
        guard.on_loss(loss_rate, TimeDelta::from_millis(delay_ms), TARGET, 10_000.0);
        guard.cap(Timestamp::ZERO, TimeDelta::from_millis(100), 20_000.0)
    }

    // [SCREAMV2 §4.5.2]
    #[test]
    fn ten_percent_of_loss_without_a_queue_limit_the_window_to_nine_tenths() {
        assert_eq!(capped(0.11, 5), 9_000.0);
        assert_eq!(capped(0.09, 5), 20_000.0);
        assert_eq!(capped(0.11, 15), 20_000.0, "a queue of a quarter of the target");
    }

    // [SCREAMV2 §4.5.2]
    #[test]
    fn the_limit_grows_by_a_thousandth_in_a_round_trip() {
        let mut guard = PolicerGuard { limit: Some(9_000.0), ..PolicerGuard::default() };
        let rtt = TimeDelta::from_millis(100);
        for (at, limit) in [(100, 9_009.0), (150, 9_009.0), (200, 9_018.009)] {
            let capped = guard.cap(Timestamp::from_millis(at), rtt, 20_000.0);
            assert!((capped - limit).abs() < 1e-6, "{capped}");
        }
    }
}
