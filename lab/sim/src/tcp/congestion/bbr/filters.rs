//! BBR's filters: the maximum of recent delivery rates, and the aggregation of acknowledgements.

use weir::units::{TimeDelta, Timestamp};

/// `BtlBwFilterLen`: length of the filter in rounds [BBR §4.1.1].
const RATE_ROUNDS: u64 = 10;
/// Length in rounds of each half of the aggregation window (Linux).
const AGGREGATION_ROUNDS: u32 = 5;
/// Maximum excess of acknowledgements, as time at the estimated rate (Linux).
const MOST_AGGREGATION: TimeDelta = TimeDelta::from_millis(100);

/// Windowed maximum of the delivery rate, in segments a second.
#[derive(Clone, Debug, Default)]
pub(super) struct MaxRate {
    round: u64,
    /// Rates by round, in falling order. Each is the maximum since its round.
    rates: Vec<(u64, f64)>,
}

impl MaxRate {
    pub(super) fn on_round(&mut self) {
        self.round += 1;
    }

    pub(super) fn on_sample(&mut self, rate: f64) {
        self.rates.retain(|&(round, kept)| kept > rate && round + RATE_ROUNDS >= self.round);
        self.rates.push((self.round, rate));
    }

    pub(super) fn maximum(&self) -> f64 {
        self.rates.first().map_or(0.0, |&(_, rate)| rate)
    }
}

/// Excess of acknowledged data over the estimated rate, which occurs on Wi-Fi and other links that
/// aggregate.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    /// Maximum excess in segments, in the current half of the window and in the previous half.
    highest: [f64; 2],
    rounds: u32,
    epoch_start: Timestamp,
    acknowledged: f64,
}

impl Aggregation {
    pub(super) fn on_ack(
        &mut self,
        now: Timestamp,
        delivered: u64,
        rate: f64,
        is_round_start: bool,
        has_filled_pipe: bool,
    ) {
        if is_round_start {
            self.rounds += 1;
            // Before the pipe is full, each half is one round, because rates are still rising.
            if self.rounds >= if has_filled_pipe { AGGREGATION_ROUNDS } else { 1 } {
                self.rounds = 0;
                self.highest = [0.0, self.highest[0]];
            }
        }
        let mut expected = rate * (now - self.epoch_start).as_secs_f64();
        if self.acknowledged <= expected {
            (self.acknowledged, self.epoch_start, expected) = (0.0, now, 0.0);
        }
        self.acknowledged += delivered as f64;
        self.highest[0] = self.highest[0].max(self.acknowledged - expected);
    }

    /// Extension of the congestion window.
    pub(super) fn window(&self, rate: f64, has_filled_pipe: bool) -> f64 {
        if !has_filled_pipe {
            return 0.0;
        }
        let most = rate * MOST_AGGREGATION.as_secs_f64();
        libm::floor(self.highest[0].max(self.highest[1]).min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_rate_is_forgotten_after_ten_rounds_and_the_next_follows() {
        let mut rate = MaxRate::default();
        for sample in [100.0, 90.0, 95.0] {
            rate.on_sample(sample);
            rate.on_round();
        }
        assert_eq!(rate.maximum(), 100.0);
        for _ in 0..8 {
            rate.on_round();
        }
        rate.on_sample(10.0);
        assert_eq!(rate.maximum(), 95.0);
        rate.on_sample(120.0);
        assert_eq!(rate.maximum(), 120.0);
    }

    #[test]
    fn acknowledgements_at_the_rate_are_no_aggregation_and_bunches_are() {
        let mut aggregation = Aggregation::default();
        let at = |ms: i64| Timestamp::from_millis(ms);
        // 1000 segments a second, two every 2 ms: the excess is the last two.
        for ms in (0..100).step_by(2) {
            aggregation.on_ack(at(ms), 2, 1_000.0, false, true);
        }
        assert_eq!(aggregation.window(1_000.0, true), 2.0);
        for ms in (100..200).step_by(20) {
            aggregation.on_ack(at(ms), 20, 1_000.0, false, true);
        }
        assert!(aggregation.window(1_000.0, true) >= 20.0);
        assert_eq!(aggregation.window(1_000.0, false), 0.0);
    }
}
